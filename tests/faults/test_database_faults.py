"""PostgreSQL restarts, cuts connections, or blocks writes."""

import pytest

from tests.faults import database
from tests.faults.exactness import assert_exact
from tests.faults.processes import PLATFORMS
from tests.faults.support import audience, await_part, lasting, many, meanwhile, wait_at_random


@pytest.mark.parametrize("act", [database.restart, database.crash])
def test_workers_keep_their_outcomes_while_postgresql_restarts(act, system, channel):
    audience(channel, many(300))
    notification = channel.send(*PLATFORMS)
    for part in (0.2, 0.6):
        await_part(channel, part)
        wait_at_random(system, 0.3)
        act(system)
    later = channel.send(*PLATFORMS)
    assert_exact(channel, [notification, later])


def test_connections_cut_at_any_moment_double_nothing(system, channel):
    """After each cut the send makes progress first. Cuts by the clock would let a busy machine
    finish no transaction between two."""
    audience(channel, many(300))
    with meanwhile(lambda: (wait_at_random(system, 0.3), database.cut(system)), times=5):
        notifications = [channel.send(*PLATFORMS) for _ in range(2)]
    for part in sorted(system.random.uniform(0, 1.8) for _ in range(15)):
        await_part(channel, part)
        database.cut(system)
    assert_exact(channel, notifications)


def test_a_lock_on_the_deliveries_delays_the_send_and_loses_nothing(system, channel):
    """20 s in `make soak`, 5 s in `make test`: more than a sixth of a lease in both."""
    audience(channel, many(300))
    notification = channel.send(*PLATFORMS)
    await_part(channel, system.random.uniform(0.1, 0.5))
    with meanwhile(lambda: database.lock(system, lasting(5, 20)), times=1):
        later = channel.send(*PLATFORMS)
    assert_exact(channel, [notification, later])

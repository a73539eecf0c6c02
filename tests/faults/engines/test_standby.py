"""The primary of PostgreSQL is lost, and its synchronous standby takes its place."""

from tests.faults.exactness import assert_exact, stored
from tests.faults.support import await_part, requests, under_load


def test_what_was_answered_202_outlives_the_primary_and_ends_once(system, channel):
    """Twice, so that the second time the server that was lost first is promoted."""
    with under_load(channel) as notifications:
        for act in (system.engine.fail_over, system.engine.rejoin) * 2:
            await_part(channel, 1.0, since=requests(channel))
            act()
    assert stored(channel) == set(notifications)
    assert_exact(channel, notifications)

"""Several machines: links that are cut and slow, machines that vanish, clocks that differ."""

import time
from datetime import UTC

import pytest

from tests.faults.exactness import assert_exact
from tests.faults.processes import PLATFORMS, until
from tests.faults.support import (
    audience,
    await_part,
    each_in_the_middle,
    many,
    requests,
    under_load,
)

_CUT_SECONDS = 4.0  # less than a call may take
_PAIRS = (("w1", "w2"), ("w3", "w4"))  # each pair serves each platform


@pytest.mark.parametrize(
    "hosts", [("postgres",), ("redis",), ("w1", "plan1"), ("web1", "web2")], ids="+".join
)
def test_a_link_that_is_cut_for_seconds_makes_nothing_go_twice(system, channel, hosts):
    with under_load(channel) as notifications:
        await_part(channel, 1.0)
        for host in hosts:
            system.hosts[host].cut()
        time.sleep(_CUT_SECONDS)
        for host in hosts:
            system.hosts[host].heal()
        await_part(channel, 1.0, since=requests(channel))
    assert_exact(channel, notifications)


def test_links_that_are_slow_by_100_ms_make_nothing_go_twice(system, channel):
    for host in ("web1", "plan1", *_PAIRS[0]):
        system.hosts[host].slow(0.1)
    with under_load(channel) as notifications:
        await_part(channel, 3.0)
    assert_exact(channel, notifications)


@pytest.mark.parametrize("loss", ["kill_host", "vanish"])
def test_what_lost_worker_hosts_held_goes_on_before_its_leases_end(system, channel, loss):
    for _, device in audience(channel, many(300)):
        device.behave("slow", seconds=0.3)  # so that calls are in flight
    held = []

    def held_by(processes):
        return system.rows(_HELD, [channel.id, processes])

    def lose(_platform):
        processes = {
            pair: [*system.begun_by(pair[0]), *system.begun_by(pair[1])] for pair in _PAIRS
        }
        lost = max(_PAIRS, key=lambda pair: len(held_by(processes[pair])))
        for host in lost:
            getattr(system, loss)(host)
        held.extend(held_by(processes[lost]))  # not what they ended until now

    with each_in_the_middle(channel, ("web",), lose):
        notification = channel.send(*PLATFORMS)
    began = time.monotonic()
    assert held

    for batch_id, lease_number, lease_until in held:
        taken = [batch_id, lease_number]
        until(lambda taken=taken: system.rows(_TAKEN, taken), "others have the batch", seconds=150)
        assert system.rows(_TAKEN, taken)[0][0] < lease_until
    print(f"{loss}: others had the batches after {time.monotonic() - began:.0f} s")  # noqa: T201 (a figure for who reads the run)
    assert_exact(channel, [notification])


def test_a_web_host_and_a_planner_with_beat_that_vanish_make_nothing_go_twice(system, channel):
    with under_load(channel) as notifications:
        await_part(channel, 1.0)
        system.vanish("web1")
        system.vanish("plan1")
        await_part(channel, 3.0, since=requests(channel))
        for host in ("web1", "plan1"):
            system.hosts[host].heal()
        system.run_all()
        until(system.is_up, "both web hosts answer")
        await_part(channel, 1.0, since=requests(channel))
    assert_exact(channel, notifications)


@pytest.fixture
def shifted(system):
    """Clocks differ by up to two minutes. The only planner is a minute ahead of the only beat."""
    system.stop_all()
    system.shifts = {"web1": 60, "plan2": 60, "w1": 60, "w2": -60}
    system.idle = {("plan1", "worker-plan"), ("plan2", "beat")}
    system.run_all()
    until(system.is_up, "the service is up")
    until(system.do_workers_hear, "the workers hear")
    yield system
    system.stop_all()
    system.shifts, system.idle = {}, set()


def test_clocks_that_differ_by_a_minute_lose_and_double_nothing(shifted, channel):
    system = shifted
    with under_load(channel) as notifications:
        await_part(channel, 2.0)
        moment = system.value("SELECT now() + '2 seconds'::interval").astimezone(UTC)
        notifications.append(channel.send(*PLATFORMS, scheduled_at=moment.isoformat()))
        await_part(channel, 2.0, since=requests(channel))
    assert_exact(channel, notifications)
    said = system.redis.hgetall("pushsvc:clocks")  # which the doctor names
    ahead = {machine: round(float(each.partition(":")[2]), -1) for machine, each in said.items()}
    assert {"plan2": 60, "w1": 60, "w2": -60, "w3": 0}.items() <= ahead.items()


_HELD = """
SELECT id, lease_number, lease_until FROM notifications_app_batch
WHERE channel_id = %s AND status = 'leased' AND holder = ANY(%s)
"""
_TAKEN = "SELECT claimed_at FROM notifications_app_batch WHERE id = %s AND lease_number > %s"

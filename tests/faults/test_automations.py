"""Automations while planners and PostgreSQL are killed: each device is in the day's notification
once."""

import time

from tests.faults import automations, database
from tests.faults.exactness import assert_exact, got
from tests.faults.processes import PLATFORMS
from tests.faults.support import audience, many, meanwhile


def test_each_tagged_device_gets_it_once_although_planners_and_postgresql_are_killed(
    system, channel
):
    audience(channel, many(120))
    automations.create(channel)
    devices = sorted(channel.devices)
    slices = iter([devices[at : at + 10] for at in range(0, len(devices), 10)])
    rounds = -(-len(devices) // 10)

    with meanwhile(lambda: automations.tag(channel, next(slices)), times=rounds):
        for crash in (None, database.crash, database.cut, None, database.crash):
            time.sleep(system.random.uniform(0.2, 1.0))
            if crash:
                crash(system)
            system.kill("worker-plan")
            system.end_plan_leases()
            system.start("worker-plan")

    (notification,) = automations.wait_until_fired(channel)
    assert_exact(channel, [notification])
    assert set(got(channel)[notification]) == set(devices)
    shown = channel.read(notification)
    assert (shown["status"], shown["recipient_count"]) == ("sent", len(devices))
    assert len(PLATFORMS) == len({channel.platform_of[each] for each in devices})

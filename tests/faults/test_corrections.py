"""Corrections while planners and workers are killed: exactly those get one to whom the first
notification was delivered."""

from tests.faults.exactness import DELIVERED, assert_exact, outcomes
from tests.faults.processes import DELIVERING, PLATFORMS
from tests.faults.support import audience, await_part, many, requests, wait_at_random


def test_exactly_who_was_delivered_the_first_gets_the_correction_although_all_are_killed(
    system, channel
):
    audience(channel, many(300))
    browsers = [id_ for id_, of in channel.platform_of.items() if of == "web"]
    refused = system.random.sample(browsers, len(browsers) // 3)
    for id_ in refused:
        channel.devices[id_].behave("too_large")
    wrong = channel.send(*PLATFORMS)
    assert_exact(channel, [wrong])
    reached = {id_ for id_, row in outcomes(channel, wrong).items() if row[0] == DELIVERED}
    assert reached == channel.devices.keys() - {*refused}
    for id_ in refused:
        channel.devices[id_].behave("accept")
    left = system.random.sample(sorted(reached), 10)
    for id_ in left:
        channel.unsubscribe(id_)
    audience(channel, many(50))  # who came later has nothing to correct

    before = requests(channel)
    right = channel.send(*PLATFORMS, replaces=str(wrong))
    for part in (0.0, 0.1, 0.3):
        await_part(channel, part, since=before)
        wait_at_random(system, 0.3)
        system.kill("worker-plan", *DELIVERING)
        system.end_plan_leases()
        system.end_leases(*PLATFORMS)
        system.run_all()

    assert_exact(channel, [right])
    got = {id_: row[0] for id_, row in outcomes(channel, right).items()}
    assert got == dict.fromkeys(reached - {*left}, DELIVERED)

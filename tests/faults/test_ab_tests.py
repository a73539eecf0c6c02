"""Tests of variants, while planners are killed."""

from tests.faults.exactness import DELIVERED, assert_exact, outcomes
from tests.faults.processes import PLATFORMS, until
from tests.faults.support import audience, many, wait_at_random
from tests.faults.variants import TESTED, assert_split, end_tests

_TESTED = """
SELECT bool_and(plan.status <> 'planning') AND bool_and(batch.status = 'done')
FROM notifications_app_plan plan
LEFT JOIN notifications_app_batch batch ON batch.plan_id = plan.id
WHERE plan.notification_id = %s AND plan.part = 0
"""


def test_everybody_gets_one_message_although_planners_are_killed_while_a_test_is_decided(
    system, channel
):
    audience(channel, many(300))
    notification = channel.send(*PLATFORMS, **TESTED)
    until(lambda: system.value(_TESTED, [notification]), "the test is delivered")
    tested = set(outcomes(channel, notification))
    assert 0 < len(tested) < len(channel.devices)

    end_tests(channel)
    for _ in range(5):
        wait_at_random(system, 0.7)
        system.kill("worker-plan")
        system.end_plan_leases()
        system.start("worker-plan")

    assert_exact(channel, [notification])
    ended = outcomes(channel, notification)
    assert ended.keys() == {*channel.devices}
    assert {status for status, *_ in ended.values()} == {DELIVERED}
    assert_split(channel, notification)

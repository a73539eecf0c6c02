"""Tests of variants, while planners are killed."""

from tests.faults.exactness import DELIVERED, assert_exact, outcomes
from tests.faults.processes import PLATFORMS, until
from tests.faults.support import audience, many, wait_at_random

VARIANTS = [{"name": "short", "title": "Sale"}, {"name": "long", "title": "Our sale begins"}]
_END = "UPDATE notifications_app_notification SET decides_at = now() WHERE decides_at IS NOT NULL"
_TESTED = """
SELECT bool_and(plan.status <> 'planning') AND bool_and(batch.status = 'done')
FROM notifications_app_plan plan
LEFT JOIN notifications_app_batch batch ON batch.plan_id = plan.id
WHERE plan.notification_id = %s AND plan.part = 0
"""
_OF_THE_REST = """
SELECT DISTINCT (notification.decision->>'variant')::int, batch.variant
FROM notifications_app_batch batch
JOIN notifications_app_plan plan ON plan.id = batch.plan_id AND plan.part = 1
JOIN notifications_app_notification notification ON notification.id = batch.notification_id
WHERE batch.notification_id = %s
"""


def test_everybody_gets_one_message_although_planners_are_killed_while_a_test_is_decided(
    system, channel
):
    audience(channel, many(300))
    test = {"share": 30, "minutes": 15}
    notification = channel.send(*PLATFORMS, variants=VARIANTS, test=test)
    until(lambda: system.value(_TESTED, [notification]), "the test is delivered")
    tested = set(outcomes(channel, notification))
    assert 0 < len(tested) < len(channel.devices)

    system.rows(_END)
    for _ in range(5):
        wait_at_random(system, 0.7)
        system.kill("worker-plan")
        system.end_plan_leases()
        system.start("worker-plan")

    assert_exact(channel, [notification])
    ended = outcomes(channel, notification)
    assert ended.keys() == {*channel.devices}
    assert {status for status, *_ in ended.values()} == {DELIVERED}
    ((winner, variant),) = system.rows(_OF_THE_REST, [notification])
    assert winner == variant

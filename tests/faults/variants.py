"""Variants of a send, and the decision of their test."""

from tests.faults.processes import until

VARIANTS = [{"name": "short", "title": "Sale"}, {"name": "long", "title": "Our sale begins"}]
SPLIT = {"variants": VARIANTS}
TESTED = SPLIT | {"test": {"share": 30, "minutes": 15}}
_END = """
UPDATE notifications_app_notification SET decides_at = now()
WHERE channel_id = %s AND decides_at IS NOT NULL AND decision IS NULL
"""
_UNDECIDED = """
SELECT count(*) FROM notifications_app_notification
WHERE channel_id = %s AND test IS NOT NULL AND decision IS NULL
"""
_OF_THE_REST = """
SELECT DISTINCT (notification.decision->>'variant')::int, batch.variant
FROM notifications_app_batch batch
JOIN notifications_app_plan plan ON plan.id = batch.plan_id AND plan.part = 1
JOIN notifications_app_notification notification ON notification.id = batch.notification_id
WHERE batch.notification_id = %s
"""


def end_tests(channel):
    """Ends the time of the tests that have begun."""
    channel.system.rows(_END, [channel.id])


def decide(channel):
    """Waits until each of the channel's tests has begun, ended and is decided."""

    def are_decided():
        end_tests(channel)
        return channel.system.value(_UNDECIDED, [channel.id]) == 0

    until(are_decided, "the tests are decided")


def assert_split(channel, notification_id):
    """The variants have what the notification has, and the rest of a test has the winner."""
    shown = channel._call("GET", f"/notification/{notification_id}/details").body
    counts = channel.read(notification_id)
    for name in ("recipient_count", "delivered_count", "bounced_count"):
        assert sum(each[name] for each in shown["variants"]) == counts[name]
    are_given = all(each["recipient_count"] for each in shown["variants"])
    assert are_given == bool(counts["recipient_count"])  # caps may have left out everybody
    if shown["test"]:
        ((winner, variant),) = channel.system.rows(_OF_THE_REST, [notification_id])
        assert winner == variant

"""An automation of a channel: devices get a tag, and then its notification."""

from tests.faults.processes import until

_WELCOME = {
    "name": "Welcome",
    "trigger": {"event": "subscriptions.tagged", "tag": "new"},
    "delay_minutes": 0,
    "notification": {"body": "Begin here.", "target_platforms": ["all"], "cap": "ignore"},
}
# Without it, the next slice would be fired in a minute.
_FIRE = """
UPDATE notifications_app_automation SET fire_at = statement_timestamp() WHERE channel_id = %s
"""
_WAITING = """
SELECT count(*) FROM notifications_app_automationentry entry
JOIN notifications_app_automation automation ON automation.id = automation_id
WHERE channel_id = %s
"""
_NOTIFICATIONS = """
SELECT notification_id FROM notifications_app_automationday
JOIN notifications_app_automation automation ON automation.id = automation_id
WHERE channel_id = %s AND fired > 0
"""
_END = """
WITH own AS (
  SELECT id FROM notifications_app_automation WHERE channel_id = %(channel)s
), days AS (
  UPDATE notifications_app_automationday SET ends_at = statement_timestamp()
  WHERE automation_id IN (SELECT id FROM own)
)
UPDATE notifications_app_plan SET release_at = statement_timestamp(), due_at = statement_timestamp()
WHERE driver = 'slice' AND part = 0 AND status = 'planning' AND channel_id = %(channel)s
"""


def create(channel):
    made = channel._call("POST", f"/channel/{channel.id}/automations", _WELCOME)
    assert made.status == 201, made


def tag(channel, devices):
    """Adds the tag, which is noted, and fires what is noted. Repeats the request while the database
    is away: it is safe to repeat."""
    body = {"subscription_ids": [str(each) for each in devices]}

    def is_taken():
        path = f"/channel/{channel.id}/tags/new/members"
        return channel._call("POST", path, body).status == 200

    until(is_taken, "the tag is added")
    channel.system.rows(_FIRE, [channel.id])


def wait_until_fired(channel):
    """Waits until nobody waits, and ends the days. Returns their notifications."""

    def is_all_fired():
        channel.system.rows(_FIRE, [channel.id])
        return channel.system.value(_WAITING, [channel.id]) == 0

    until(is_all_fired, "nobody waits any more")
    channel.system.rows(_END, {"channel": channel.id})
    return [row[0] for row in channel.system.rows(_NOTIFICATIONS, [channel.id])]

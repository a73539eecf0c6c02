"""Automations while planners and PostgreSQL are killed: each device is in the day's notification
once."""

import time

from tests.faults import database
from tests.faults.exactness import assert_exact, got
from tests.faults.processes import PLATFORMS, until
from tests.faults.support import audience, many, meanwhile

WELCOME = {
    "name": "Welcome",
    "trigger": {"event": "subscriptions.tagged", "tag": "new"},
    "delay_minutes": 0,
    "notification": {"body": "Begin here.", "target_platforms": ["all"]},
}
# Without it, the next slice would be fired in a minute.
_FIRE = "UPDATE notifications_app_automation SET fire_at = statement_timestamp()"
_NOTIFICATIONS = "SELECT notification_id FROM notifications_app_automationday WHERE fired > 0"
_END = """
WITH days AS (UPDATE notifications_app_automationday SET ends_at = statement_timestamp())
UPDATE notifications_app_plan SET release_at = statement_timestamp(), due_at = statement_timestamp()
WHERE driver = 'slice' AND part = 0 AND status = 'planning'
"""


def test_each_tagged_device_gets_it_once_although_planners_and_postgresql_are_killed(
    system, channel
):
    audience(channel, many(120))
    made = channel._call("POST", f"/channel/{channel.id}/automations", WELCOME)
    assert made.status == 201, made
    devices = sorted(channel.devices)
    slices = iter([devices[at : at + 10] for at in range(0, len(devices), 10)])
    rounds = -(-len(devices) // 10)

    def tag():
        _until_taken(channel, next(slices))
        system.rows(_FIRE)

    with meanwhile(tag, times=rounds):
        for crash in (None, database.crash, database.cut, None, database.crash):
            time.sleep(system.random.uniform(0.2, 1.0))
            if crash:
                crash(system)
            system.kill("worker-plan")
            system.end_plan_leases()
            system.start("worker-plan")

    def all_fired():
        system.rows(_FIRE)
        return not system.value("SELECT count(*) FROM notifications_app_automationentry")

    until(all_fired, "nobody waits any more")
    (notification,) = [row[0] for row in system.rows(_NOTIFICATIONS)]
    system.rows(_END)
    assert_exact(channel, [notification])
    assert set(got(channel)[notification]) == set(devices)
    shown = channel.read(notification)
    assert (shown["status"], shown["recipient_count"]) == ("sent", len(devices))
    assert len(PLATFORMS) == len({channel.platform_of[each] for each in devices})


def _until_taken(channel, devices):
    """Repeats the request while the database is away. It is safe to repeat."""
    body = {"subscription_ids": [str(each) for each in devices]}

    def is_taken():
        path = f"/channel/{channel.id}/tags/new/members"
        return channel._call("POST", path, body).status == 200

    until(is_taken, "the tag is added")

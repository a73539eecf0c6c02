"""Finds who did not click a notification in time, for automations that follow this.

When the hours after a notification's end are over, firing reads its recipients in slices and notes
those that got it and did not click it. How far an automation has read is stored with it, in the
transaction that notes them, so each recipient is read once. So is how far it has looked if there is
none to read.
"""

from typing import Final

from notifications_app.models import SLICE_TARGETS, Automation, AutomationEvent
from notifications_app.states import STATES
from pushsvc.common.store import sql


def unclicked_note(automation: Automation) -> bool:
    """Notes the next slice for the locked automation. Returns whether there may be more."""
    if automation.event != AutomationEvent.UNCLICKED:
        return False
    parameters = {
        "automation": automation.pk,
        "channel": automation.channel_id,
        "name": automation.about.get("name"),
        "label": automation.about.get("label"),
        "hours": automation.about["hours"],
        "delay": automation.delay_minutes,
        "most": SLICE_TARGETS,
    }
    return any(read for (read,) in sql.rows(_NOTE, STATES | parameters))


# In SQL, because the ORM cannot insert what it reads. The notification is the one at which the
# automation has stopped, or the next one that ended. Without a name or a label it is a campaign:
# neither a test nor a correction nor for targets. Who clicked a later correction of it has clicked
# it. A slice that is not full is the notification's last one.
# If there is none, all that ended before `looked_until` has been looked at. What ends later has a
# later end, because no transaction that ends a notification lasts for `hours`, at least one.
_NOTE: Final = """
WITH own AS MATERIALIZED (
  SELECT read_until, read_notification_id, read_after,
    statement_timestamp() - make_interval(hours => %(hours)s) AS looked_until
  FROM notifications_app_automation WHERE id = %(automation)s
), next AS MATERIALIZED (
  SELECT notification.id, notification.finished_at,
    coalesce(notification.root_id, notification.id) AS root_id,
    CASE WHEN notification.id = own.read_notification_id THEN own.read_after END AS after
  FROM own JOIN notifications_app_notification AS notification
    ON notification.channel_id = %(channel)s AND notification.status = %(notification_sent)s
    AND notification.finished_at >= own.read_until
    AND notification.finished_at <= own.looked_until
  WHERE (notification.finished_at > own.read_until OR own.read_notification_id IS NULL
      OR notification.id > own.read_notification_id
      OR notification.id = own.read_notification_id AND own.read_after IS NOT NULL)
    AND notification.only_subscription_id IS NULL
    AND coalesce(notification.name = %(name)s, true)
    AND coalesce(notification.labels ? %(label)s, %(label)s::text IS NULL)
    AND (NOT notification.has_targets AND notification.root_id IS NULL
      OR coalesce(%(name)s::text, %(label)s::text) IS NOT NULL)
    AND NOT EXISTS (SELECT FROM notifications_app_automationday AS day
                    WHERE day.notification_id IN (notification.id, notification.root_id)
                      AND day.automation_id = %(automation)s)
  ORDER BY notification.finished_at, notification.id LIMIT 1
), slice AS MATERIALIZED (
  SELECT delivery.* FROM next CROSS JOIN LATERAL (
    SELECT subscription_id, status, clicked_at FROM notifications_app_delivery
    WHERE notification_id = next.id
      AND subscription_id > coalesce(next.after, '00000000-0000-0000-0000-000000000000')
    ORDER BY subscription_id LIMIT %(most)s) AS delivery
), noted AS (
  INSERT INTO notifications_app_automationentry (automation_id, subscription_id, due_at)
  SELECT %(automation)s, subscription_id, statement_timestamp() + make_interval(mins => %(delay)s)
  FROM slice
  WHERE status = %(delivery_delivered)s AND clicked_at IS NULL
    AND NOT EXISTS (
      SELECT FROM next JOIN notifications_app_notification AS correction
        ON correction.root_id = next.root_id AND correction.id > next.id
      JOIN notifications_app_delivery AS corrected ON corrected.notification_id = correction.id
      WHERE corrected.subscription_id = slice.subscription_id AND corrected.clicked_at IS NOT NULL)
    AND NOT EXISTS (SELECT FROM notifications_app_automationentry AS waiting
                    WHERE waiting.subscription_id = slice.subscription_id
                      AND waiting.automation_id = %(automation)s)
  ORDER BY subscription_id
)
UPDATE notifications_app_automation SET read_until = coalesce(next.finished_at, own.looked_until),
  read_notification_id = next.id,
  read_after = (SELECT subscription_id FROM slice ORDER BY subscription_id OFFSET %(most)s - 1)
FROM own LEFT JOIN next ON true WHERE notifications_app_automation.id = %(automation)s
  AND (next.id IS NOT NULL OR own.looked_until > own.read_until)
RETURNING next.id
"""

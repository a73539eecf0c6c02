"""The part of the planner's statement that counts the devices of each target."""

from typing import Final

_TARGETS_COUNTED: Final = """, counted AS (
  UPDATE notifications_app_target AS target
  SET devices = coalesce(target.devices, 0) + found.devices
  FROM (SELECT notification_id, place, count({planned}) AS devices
        FROM known JOIN named USING (position) LEFT JOIN reached USING (position)
          LEFT JOIN {join}
        GROUP BY notification_id, place) AS found
  WHERE target.notification_id = found.notification_id AND target.position = found.place
)"""


def targets_counted(*, is_shared: bool) -> str:
    """A CTE that counts each device for its target once, whichever part planned it. `is_shared`: as
    in PlanLease."""
    if is_shared:
        planned, join = "subscription_id", "deliveries ON deliveries.subscription_id = reached.id"
        return _TARGETS_COUNTED.format(planned=f"deliveries.{planned}", join=join)
    join = "recipients ON recipients.plan_id = named.plan_id AND recipients.id = reached.id"
    return _TARGETS_COUNTED.format(planned="recipients.id", join=join)

"""The parts of the statement of windows.py that find the devices of targets."""

from typing import Final

from subscriptions_app.audiences.targets import targets_part


def named_part(*, is_slice: bool) -> str:
    """CTEs that end with `scanned`, the devices of the targets of plans with at most `most`.
    `is_slice`: only of the `most` targets from the position `first` on."""
    return _NAMED.format(own=_OF_SLICE if is_slice else "")


# The audiences of several plans. One row more than `most` is read, to find out which are small. One
# count with GROUP BY, because a count for each plan would read the rows of all plans.
SMALL_PLANS: Final = """small AS MATERIALIZED (
  SELECT plan.* FROM plan LEFT JOIN (
    SELECT plan_id, count(*) FROM {found} GROUP BY plan_id
  ) AS found ON found.plan_id = plan.id
  WHERE coalesce(found.count, 0) <= %(most)s
)"""
_OF_SLICE: Final = "\n      AND position >= %(first)s AND position < %(first)s + %(most)s"
# Targets are locked in the order of notifications and positions, because the windows of other
# platforms count devices in the same rows. In `named`, each target gets its own position.
_NAMED: Final = f"""listed AS MATERIALIZED (
  SELECT plan.id AS plan_id, target.* FROM plan CROSS JOIN LATERAL (
    SELECT notification_id, position AS place, external_id, subscription_id
    FROM notifications_app_target WHERE notification_id = plan.notification_id{{own}}
    ORDER BY position LIMIT %(most)s + 1 FOR NO KEY UPDATE
  ) AS target
), {SMALL_PLANS.format(found="listed")}, named AS MATERIALIZED (
  SELECT row_number() OVER () AS position, plan_id, channel_id, listed.notification_id, place,
    external_id, subscription_id
  FROM listed JOIN small ON small.id = plan_id
), {targets_part()}, scanned AS MATERIALIZED (
  SELECT DISTINCT ON (plan_id, reached.id) plan_id, reached.id, push_service, person_id, choices,
    timezone, timezone_changed_at
  FROM reached JOIN named USING (position) JOIN small ON small.id = plan_id
  WHERE reached.platform = small.platform ORDER BY plan_id, reached.id
)"""  # noqa: S608 - text of our own

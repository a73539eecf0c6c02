"""Finds the recipients of parts, window by window, or the whole audience if it is small."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from channels_app.selectors import channel_totals
from notifications_app.content.values import MAX_TARGETS
from notifications_app.models import Driver
from notifications_app.pipeline.recipients import PlanLease, Source, Window, write_recipients
from subscriptions_app.audiences.targets import targets_part
from subscriptions_app.audiences.windows import (
    INDEX_ROWS,
    are_few_expected,
    first_part,
    indexed_window_part,
    window_part,
)
from subscriptions_app.categories.consent import wants_part
from subscriptions_app.segments.compiler import compiled_for_index, indexed_part, required_tags
from subscriptions_app.segments.rules import Rule
from subscriptions_app.tags.selectors import smallest_tag, tag_window_part


def write_window(lease: PlanLease, *, cursor: UUID | None, only: UUID | None) -> Window:
    """Writes batches and deliveries for the matching subscriptions of the next window.

    If the rule requires a tag, windows read the devices of the tag. Otherwise, if the index on
    attributes finds few candidates for the rule, the first window is the only one and reads the
    candidates. A send to targets also has one window. So the cost depends on the number of these
    devices, not on the size of the channel.
    """
    if lease.driver == Driver.IDS:
        return write_whole([lease], most=MAX_TARGETS)[lease.plan_id]
    position = {"cursor": cursor or UUID(int=0), "window": settings.PLAN_WINDOW}
    tags = [] if lease.rule is None else required_tags(lease.rule)
    if tags:
        return _write_tagged(lease, tags, position)
    if cursor is None and lease.rule is not None:
        window = _write_candidates(lease, lease.rule)
        if window is not None:
            return window
    scanned = window_part(lease.audience, lease.columns)
    return _write(lease, _SCAN.format(scanned=scanned), _SCAN_ENDS, {**position, "only": only})


def write_whole(leases: Sequence[PlanLease], *, most: int) -> dict[int, Window]:
    """Writes batches and deliveries for the whole audiences of new plans, in one statement. Returns
    the windows by plan id. Skips plans that have more than `most` subscriptions or targets.

    The plans must have one driver and no rules. Of several plans, none may be shared.
    """
    is_direct = leases[0].driver == Driver.IDS
    is_asked = any(lease.category for lease in leases)
    text = (_SMALL_DIRECT if is_direct else _SMALL) + (_SMALL_ASKED if is_asked else _SMALL_ALL)
    if is_direct:
        text += _TARGETS_COUNTED
    source = Source(text, "true", "NULL::uuid", is_asked, plans="small")
    return write_recipients(leases, source, {"most": most})


def _write_tagged(lease: PlanLease, tags: Sequence[str], position: dict[str, Any]) -> Window:
    """Reads the devices of the smallest required tag. The next window may read another tag: all
    windows read in the order of ids, so the devices up to the cursor are done with any tag."""
    driver = smallest_tag(lease.channel_id, [lease.platform], tags, after=position["cursor"])
    source = _SCAN.format(scanned=tag_window_part(lease.audience, lease.columns))
    return _write(lease, source, _SCAN_ENDS, {**position, "tag": driver})


def _write_candidates(lease: PlanLease, rule: Rule) -> Window | None:
    """Writes the candidates as the only window. Returns None and writes nothing if reading the
    channel is cheaper."""
    indexed_rule = indexed_part(rule)
    if indexed_rule is None:
        return None
    subscribers = getattr(channel_totals(lease.channel_id), f"{lease.platform}_subscribers")
    most = min(INDEX_ROWS, subscribers)
    indexed = compiled_for_index(indexed_rule)
    if subscribers <= settings.PLAN_WINDOW or not are_few_expected(indexed, most):
        return None
    candidates, scanned = indexed_window_part(lease.audience, indexed, lease.columns)
    source = _CANDIDATES.format(candidates=candidates, scanned=scanned)
    # One more than may be read, to find out whether there are more.
    parameters = {"most": most + 1}
    window = _write(lease, source, _CANDIDATES_END, {**indexed.parameters, **parameters})
    return window if window.is_last else None


def _write(lease: PlanLease, source: str, is_last: str, parameters: dict[str, Any]) -> Window:
    own = {
        **lease.audience.parameters,
        "plan": lease.plan_id,
        "channel": lease.channel_id,
        "platform": lease.platform,
    }
    if lease.consent is None:
        recipients = _RECIPIENTS
    else:
        recipients = _CONSENTING.format(wants=lease.consent.text)
        own |= lease.consent.parameters
    found = Source(f"{source}, {recipients}", is_last, _LAST_ID, lease.consent is not None)
    return write_recipients([lease], found, own | parameters)[lease.plan_id]


# The CTE `scanned`, and the condition that nothing is left. MATERIALIZED, so that it is read once.
_SCAN: Final = "scanned AS MATERIALIZED ({scanned})"
_SCAN_ENDS: Final = "(SELECT count(*) FROM scanned) < %(window)s"
_CANDIDATES: Final = """candidates AS MATERIALIZED ({candidates}),
scanned AS MATERIALIZED ({scanned} AND (SELECT count(*) FROM candidates) < %(most)s)"""
_CANDIDATES_END: Final = "(SELECT count(*) FROM candidates) < %(most)s"
_LAST_ID: Final = "(SELECT id FROM scanned ORDER BY id DESC LIMIT 1)"

_RECIPIENTS: Final = """recipients AS (
  SELECT %(plan)s::bigint AS plan_id, id, push_service FROM scanned WHERE is_recipient
)"""
# Consent is evaluated for the audience only.
_CONSENTING: Final = """asked AS MATERIALIZED (
  SELECT %(plan)s::bigint AS plan_id, id, push_service, {wants} AS is_wanted
  FROM scanned AS subscription WHERE is_recipient
), recipients AS (
  SELECT plan_id, id, push_service FROM asked WHERE is_wanted
)"""

# The audiences of several plans. One row more than `most` is read, to find out which are small. One
# count with GROUP BY, because a count for each plan would read the rows of all plans.
_SMALL_PLANS: Final = """small AS MATERIALIZED (
  SELECT plan.* FROM plan LEFT JOIN (
    SELECT plan_id, count(*) FROM {found} GROUP BY plan_id
  ) AS found ON found.plan_id = plan.id
  WHERE coalesce(found.count, 0) <= %(most)s
)"""
_SMALL: Final = f"""scanned AS MATERIALIZED (
  SELECT plan.id AS plan_id, first.* FROM plan CROSS JOIN LATERAL ({first_part("plan")}) AS first
), {_SMALL_PLANS.format(found="scanned")}"""  # noqa: S608 - text of our own
# Targets are locked in the order of notifications and positions, because the windows of other
# platforms count devices in the same rows. In `named`, each target gets its own position.
_SMALL_DIRECT: Final = f"""listed AS MATERIALIZED (
  SELECT plan.id AS plan_id, target.* FROM plan CROSS JOIN LATERAL (
    SELECT notification_id, position AS place, external_id, subscription_id
    FROM notifications_app_target WHERE notification_id = plan.notification_id
    ORDER BY position LIMIT %(most)s + 1 FOR NO KEY UPDATE
  ) AS target
), {_SMALL_PLANS.format(found="listed")}, named AS MATERIALIZED (
  SELECT row_number() OVER () AS position, plan_id, channel_id, listed.notification_id, place,
    external_id, subscription_id
  FROM listed JOIN small ON small.id = plan_id
), {targets_part()}, scanned AS MATERIALIZED (
  SELECT DISTINCT ON (plan_id, reached.id) plan_id, reached.id, push_service, person_id, choices
  FROM reached JOIN named USING (position) JOIN small ON small.id = plan_id
  WHERE reached.platform = small.platform ORDER BY plan_id, reached.id
)"""  # noqa: S608 - text of our own
_SMALL_ALL: Final = """, recipients AS (
  SELECT plan_id, scanned.id, push_service FROM scanned JOIN small ON small.id = plan_id
)"""
_SMALL_ASKED: Final = f""", asked AS MATERIALIZED (
  SELECT plan_id, subscription.id, push_service,
    small.category = '' OR {wants_part("small.channel_id", "small.category")} AS is_wanted
  FROM scanned AS subscription JOIN small ON small.id = plan_id
), recipients AS (
  SELECT plan_id, id, push_service FROM asked WHERE is_wanted
)"""  # noqa: S608 - text of our own
_TARGETS_COUNTED: Final = """, counted AS (
  UPDATE notifications_app_target AS target
  SET devices = coalesce(target.devices, 0) + found.devices
  FROM (SELECT notification_id, place, count(recipients.id) AS devices
        FROM known JOIN named USING (position) LEFT JOIN reached USING (position)
          LEFT JOIN recipients ON recipients.plan_id = named.plan_id AND recipients.id = reached.id
        GROUP BY notification_id, place) AS found
  WHERE target.notification_id = found.notification_id AND target.position = found.place
)"""

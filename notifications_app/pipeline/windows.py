"""Finds the recipients of plans and writes their batches and deliveries, in one statement.

`_STATEMENT` is this statement. It has a place for each part of a Source, which finds recipients: in
the next window of a plan, or in the whole audiences of several plans if they are small.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from channels_app.selectors import channel_totals
from notifications_app.models import Driver
from notifications_app.pipeline import splitting
from notifications_app.pipeline.contacts import CAPPED_COUNT, REPEATED_COUNT, Limits
from notifications_app.pipeline.direct import SMALL_PLANS, named_part
from notifications_app.pipeline.lease import IN_ZONES, PlanLease
from notifications_app.pipeline.send_rates import batch_size
from notifications_app.pipeline.target_counts import targets_counted
from pushsvc.common.store import sql
from subscriptions_app.audiences.narrowing import narrowest
from subscriptions_app.audiences.windows import (
    INDEX_ROWS,
    LAST_ID,
    are_few_expected,
    first_part,
    indexed_window_part,
    moved_window_part,
    window_part,
    zones_window_part,
)
from subscriptions_app.categories.consent import wants_part
from subscriptions_app.segments.compiler import (
    Condition,
    compiled_for_index,
    indexed_part,
)
from subscriptions_app.segments.ledger import ledger_window_part
from subscriptions_app.segments.rules import Rule
from subscriptions_app.tags.selectors import tag_window_part

# A change of a time zone that the start did not see may have been written so long before it.
_UNSEEN: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Window:
    """`is_last`: the whole audience was read. `last_id`: the last subscription that was read.
    `opted_out`: how many of the audience refuse the notification's category. `zone_at`: the place
    of the last one's time zone. `early`: how many of the audience must wait for their zone.
    `capped`, `repeated`: how many are left out because of a cap, and because their schedule
    contacted them lately."""

    is_last: bool
    last_id: UUID | None
    recipients: int
    batches: int
    opted_out: int = 0
    zone_at: int = 0
    early: int = 0
    capped: int = 0
    repeated: int = 0


@dataclass(frozen=True, kw_only=True)
class Source:
    """The parts of `_STATEMENT` that find recipients, for the rows of `plan`.

    `scanned`: CTEs, the last of which is `scanned`, the subscriptions that are read. `audience`: a
    FROM clause of those that belong to the audience, named `subscription`; `plan_id`: the plan of
    such a row. `wants`: whether it wants the category of the notification; "" if there is none.
    `counted`: a CTE that counts recipients. `plans`: the CTE of the plans that get a window;
    `is_last`, `last_id`, `zone_at` and `early`: of the window.
    """

    scanned: str
    audience: str
    plan_id: str
    wants: str
    plans: str
    is_last: str
    last_id: str
    zone_at: str = "0"
    early: str = "0"
    counted: str = ""


def write_window(
    lease: PlanLease,
    *,
    cursor: UUID | None,
    until: UUID | None = None,
    only: UUID | None = None,
    zone_at: int = 0,
) -> Window:
    """Writes batches and deliveries for the matching subscriptions of the next window.

    If the rule requires a tag or an outcome of an earlier notification, windows read the devices of
    the tag, or the recipients of that notification. If instead the index on attributes finds few
    candidates for the rule, the first window is the only one and reads the candidates. A send to
    targets also has one window. So the cost depends on the number of these devices, not on the size
    of the channel. The windows of movers read these alone, and those of a range the channel,
    `until` its end.
    """
    if lease.has_targets:
        return write_whole([lease], most=lease.most_targets)[lease.plan_id]
    begin = cursor or UUID(int=0)
    rows = settings.PLAN_WINDOW * splitting.windows_in_one(lease.weights)
    position = {"cursor": begin, "window": rows}
    if lease.driver == Driver.MOVERS:
        return _write_one(lease, moved(lease), {**position, "since": lease.started_at - _UNSEEN})
    narrow = None
    is_free = not zone_at and until is None  # how to go on; otherwise earlier windows decided it
    if lease.rule is not None and is_free:
        # The next window may read by another condition: all windows read in the order of ids, so
        # the devices up to the cursor are done with any.
        narrow = narrowest(lease.channel_id, [lease.platform], lease.rule, after=begin)
    if narrow and "tag" in narrow:
        return _write_one(lease, tagged(lease), {**position, "tag": narrow["tag"]})
    if cursor is None and lease.rule is not None:
        window = _write_candidates(lease, lease.rule)
        if window is not None:
            return window
    if narrow:
        named = {"named": narrow["notification"]}
        return _write_one(lease, of_ledger(lease, narrow["outcome"]), {**position, **named})
    if lease.driver == Driver.ZONES:
        return _write_one(lease, zoned(lease), {**position, "zone_at": max(zone_at, 1)})
    return _write_one(lease, scan(lease), {**position, "until": until or LAST_ID, "only": only})


def write_whole(leases: Sequence[PlanLease], *, most: int) -> dict[int, Window]:
    """Writes batches and deliveries for the whole audiences of new plans, in one statement. Returns
    the windows by plan id. Skips plans that have more than `most` subscriptions or targets.

    The plans must have one driver, and neither rules, time zones, rates, variants nor limits,
    unless there is
    only one.
    """
    source = whole(leases[0], has_category=any(lease.category for lease in leases))
    own = {"most": most, "since": leases[0].started_at - _UNSEEN, "first": leases[0].first_target}
    # A plan for any parameters would not fit a rule, zones or limits.
    is_plain = leases[0].rule_json is None and leases[0].zones is None and not leases[0].limits
    is_direct = is_plain and leases[0].has_targets and not leases[0].is_slice
    is_prepared = is_direct and sql.are_few(leases)
    parameters = {**leases[0].audience.parameters, **own}
    return _write(leases, source, parameters, is_prepared=is_prepared)


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
    # One more than may be read, to find out whether there are more.
    parameters = {**indexed.parameters, "most": most + 1}
    window = _write_one(lease, candidates(lease, indexed), parameters)
    return window if window.is_last else None


def _write_one(lease: PlanLease, source: Source, parameters: Mapping[str, Any]) -> Window:
    return _write([lease], source, {**parameters_of(lease), **parameters})[lease.plan_id]


def _write(
    leases: Sequence[PlanLease],
    source: Source,
    parameters: Mapping[str, Any],
    *,
    is_prepared: bool = False,
) -> dict[int, Window]:
    """Returns the windows by plan id. Of several plans, none may be shared or have a rate."""
    leases = sorted(leases, key=PlanLease.order)
    own: dict[str, Any] = {
        "plans": [each.plan_id for each in leases],
        "notifications": [each.notification_id for each in leases],
        "channels": [each.channel_id for each in leases],
        "platforms": [each.platform for each in leases],
        "categories": [each.category for each in leases],
        "size": batch_size(leases[0].rate_per_minute),
    }
    limits, weights = leases[0].limits, leases[0].weights
    text = statement(source, is_shared=leases[0].is_shared, limits=limits, weights=weights)
    own |= limits.parameters if limits else {}
    own |= splitting.parameters(leases[0].notification_id) if weights else {}
    rows = sql.rows(text, own | dict(parameters), is_prepared=is_prepared)
    return {plan_id: Window(*rest) for plan_id, *rest in rows}


def parameters_of(lease: PlanLease) -> dict[str, Any]:
    """The parameters of the sources for one plan."""
    return {
        **lease.audience.parameters,
        **(lease.consent.parameters if lease.consent else {}),
        "plan": lease.plan_id,
        "channel": lease.channel_id,
        "platform": lease.platform,
    }


def scan(lease: PlanLease) -> Source:
    """Reads the channel's next subscriptions. Parameters: `cursor`, `until`, `window` and
    `only`."""
    text = window_part(lease.audience, lease.columns)
    return _of_one(lease, f"scanned AS MATERIALIZED ({text})", is_last=_IS_LAST_WINDOW)


def tagged(lease: PlanLease) -> Source:
    """Reads the next devices of a tag. Parameters: `cursor`, `window` and `tag`."""
    text = tag_window_part(lease.audience, lease.columns)
    return _of_one(lease, f"scanned AS MATERIALIZED ({text})", is_last=_IS_LAST_WINDOW)


def of_ledger(lease: PlanLease, outcome: str) -> Source:
    """Reads the next recipients of an earlier notification. Parameters: `cursor`, `window` and
    `named`."""
    text = ledger_window_part(lease.audience.text, outcome, lease.columns)
    return _of_one(lease, f"scanned AS MATERIALIZED ({text})", is_last=_IS_LAST_WINDOW)


def candidates(lease: PlanLease, indexed: Condition) -> Source:
    """Reads what the index on attributes finds, unless that reaches `most`."""
    found, text = indexed_window_part(lease.audience, indexed, lease.columns)
    scanned = f"""candidates AS MATERIALIZED ({found}), scanned AS MATERIALIZED (
  {text} AND {_IS_LAST_CANDIDATE}
)"""
    return _of_one(lease, scanned, is_last=_IS_LAST_CANDIDATE)


def zoned(lease: PlanLease) -> Source:
    """Reads the channel's next subscriptions with the plan's time zones. Parameters: `cursor`,
    `zone_at` and `window`."""
    text = zones_window_part(lease.of_rule, lease.columns)
    last = "(SELECT {} FROM scanned ORDER BY place DESC, id DESC LIMIT 1)"
    source = _of_one(lease, f"scanned AS MATERIALIZED ({text})", is_last=_IS_LAST_WINDOW)
    zone_at = f"coalesce({last.format('place')}, 0)"
    return replace(source, last_id=last.format("id"), zone_at=zone_at)


def moved(lease: PlanLease) -> Source:
    """Reads the channel's next subscriptions whose time zone has changed. Parameters: `cursor`,
    `since` and `window`."""
    text = moved_window_part(lease.of_rule, lease.columns)
    source = _of_one(lease, f"scanned AS MATERIALIZED ({text})", is_last=_IS_LAST_WINDOW)
    return replace(source, audience=f"{source.audience} AND {IN_ZONES}", early=_EARLY_MOVERS)


def whole(lease: PlanLease, *, has_category: bool) -> Source:
    """Reads the audiences of plans that have at most `most` subscriptions or targets. `lease`: one
    of theirs; the only one, if it has time zones."""
    is_direct = lease.has_targets
    in_zones = f" WHERE {IN_ZONES}" if lease.zones is not None else ""
    if lease.driver == Driver.MOVERS and lease.limits:
        in_zones += _HAS_MOVED
    wants = f"small.category = '' OR {wants_part('small.channel_id', 'small.category')}"
    return Source(
        scanned=named_part(is_slice=lease.is_slice) if is_direct else _SMALL,
        audience=f"scanned AS subscription JOIN small ON small.id = plan_id{in_zones}",
        plan_id="plan_id",
        wants=wants if has_category else "",
        plans="small",
        is_last="true",
        last_id="NULL::uuid",
        early=_EARLY_TARGETS if in_zones else "0",
        counted=targets_counted(is_shared=lease.is_shared) if is_direct else "",
    )


def _of_one(lease: PlanLease, scanned: str, *, is_last: str) -> Source:
    return Source(
        scanned=scanned,
        audience="scanned AS subscription WHERE is_recipient",
        plan_id="%(plan)s::bigint",
        wants=lease.consent.text if lease.consent else "",
        plans="plan",
        is_last=is_last,
        last_id="(SELECT id FROM scanned ORDER BY id DESC LIMIT 1)",
    )


def statement(
    source: Source,
    *,
    is_shared: bool,
    limits: Limits | None = None,
    weights: tuple[int, ...] = (),
) -> str:
    """The whole statement. `is_shared`, `limits`, `weights`: as in PlanLease."""
    audience = _CONSENTING if source.wants else _AUDIENCE
    variant = ", variant" if weights else ""
    if limits:
        audience = limits.part(is_shared=is_shared)
    return _STATEMENT.format(
        scanned=source.scanned,
        recipients=audience.format(
            plan_id=source.plan_id, wants=source.wants or "true", audience=source.audience
        ),
        on_conflict=_SKIP_PLANNED if is_shared else "",
        filled=_FILLED_BY_INSERTED.format(variant=variant) if is_shared else "SELECT * FROM slots",
        variant=variant,
        placed=splitting.placed_part(weights),
        counted=source.counted,
        plans=source.plans,
        is_last=source.is_last,
        last_id=source.last_id,
        opted_out="coalesce(refusing.count, 0)" if source.wants else "0",
        capped=CAPPED_COUNT if limits else "0",
        repeated=REPEATED_COUNT if limits else "0",
        zone_at=source.zone_at,
        early=source.early,
        refusing=_REFUSING if source.wants else "",
    )


# In SQL, because the ORM has no INSERT … SELECT. The size of a window is the number of
# subscriptions that are read, so a window without recipients costs no more than others. Ids of
# batches are drawn before the batches are written, because each delivery row contains one. They
# follow the order of the subscriptions, so that workers call all push services from the start.
_STATEMENT: Final = """
WITH plan AS MATERIALIZED (
  SELECT * FROM unnest(%(plans)s::bigint[], %(notifications)s::uuid[], %(channels)s::uuid[],
                       %(platforms)s::text[], %(categories)s::text[])
    AS plan (id, notification_id, channel_id, platform, category)
), {scanned}, {recipients}, placed AS (
  SELECT plan_id, id, push_service{variant},
    (row_number() OVER (PARTITION BY plan_id, push_service{variant} ORDER BY id) - 1) / %(size)s
      AS slot
  FROM {placed}
), slots AS MATERIALIZED (
  SELECT plan_id, push_service, slot{variant}, count(*) AS recipient_count,
    nextval(pg_get_serial_sequence('notifications_app_batch', 'id')) AS batch_id
  FROM placed GROUP BY plan_id, push_service, slot{variant}
  ORDER BY plan_id, slot, push_service{variant}
), deliveries AS (
  INSERT INTO notifications_app_delivery (notification_id, subscription_id, batch_id)
  SELECT plan.notification_id, placed.id, slots.batch_id
  FROM placed JOIN slots USING (plan_id, push_service, slot{variant})
    JOIN plan ON plan.id = plan_id
  ORDER BY plan.notification_id, placed.id
  {on_conflict}
), filled AS (
  {filled}
), batches AS (
  INSERT INTO notifications_app_batch
    (id, plan_id, notification_id, channel_id, platform, push_service, recipient_count{variant})
  SELECT batch_id, plan.id, plan.notification_id, plan.channel_id, plan.platform, push_service,
    recipient_count{variant}
  FROM filled JOIN plan ON plan.id = plan_id
){counted}
SELECT plan.id, {is_last} AS is_last,
  {last_id} AS last_id,
  coalesce(written.recipients, 0) AS recipients, coalesce(written.batches, 0) AS batches,
  {opted_out} AS opted_out, {zone_at} AS zone_at, {early} AS early,
  {capped} AS capped, {repeated} AS repeated
FROM {plans} AS plan LEFT JOIN (
  SELECT plan_id, sum(recipient_count)::bigint AS recipients, count(*) AS batches
  FROM filled GROUP BY plan_id
) AS written ON written.plan_id = plan.id {refusing}
"""

_AUDIENCE: Final = """recipients AS (
  SELECT {plan_id} AS plan_id, subscription.id, push_service FROM {audience}
)"""
# Consent is evaluated for the audience only.
_CONSENTING: Final = """asked AS MATERIALIZED (
  SELECT {plan_id} AS plan_id, subscription.id, push_service, {wants} AS is_wanted FROM {audience}
), recipients AS (
  SELECT plan_id, id, push_service FROM asked WHERE is_wanted
)"""
_REFUSING: Final = """LEFT JOIN (
  SELECT plan_id, count(*) FROM asked WHERE NOT is_wanted GROUP BY plan_id
) AS refusing ON refusing.plan_id = plan.id"""

# A device that another part planned is skipped, so batches are counted from the inserted rows. All
# parts insert in the order of ids, so two of them cannot deadlock.
_SKIP_PLANNED: Final = "ON CONFLICT DO NOTHING RETURNING batch_id, subscription_id"
_FILLED_BY_INSERTED: Final = """SELECT plan_id, push_service, batch_id,
    inserted.recipient_count{variant}
  FROM slots JOIN (
    SELECT batch_id, count(*) AS recipient_count FROM deliveries GROUP BY batch_id
  ) AS inserted USING (batch_id)"""

_IS_LAST_WINDOW: Final = "(SELECT count(*) FROM scanned) < %(window)s"
_IS_LAST_CANDIDATE: Final = "(SELECT count(*) FROM candidates) < %(most)s"

_SMALL: Final = f"""scanned AS MATERIALIZED (
  SELECT plan.id AS plan_id, first.* FROM plan CROSS JOIN LATERAL ({first_part("plan")}) AS first
), {SMALL_PLANS.format(found="scanned")}"""  # noqa: S608 - text of our own
# Who was left out by their part is not judged again by the last one.
_HAS_MOVED: Final = " AND subscription.timezone_changed_at >= %(since)s"
_EARLY_TARGETS: Final = f"(SELECT count(*) FROM scanned AS subscription WHERE NOT {IN_ZONES})"  # noqa: S608 - our own
_EARLY_MOVERS: Final = f"""(
  SELECT count(*) FROM scanned AS subscription WHERE is_recipient AND NOT {IN_ZONES}
)"""  # noqa: S608 - text of our own

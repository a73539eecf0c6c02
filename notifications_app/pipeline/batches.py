"""Claims batches fairly, frees lost leases, makes parked batches ready, and finds overdue batches.

Every statement is conditional and safe to repeat, so two workers or two ticks at once do no harm.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.db.models.lookups import IsNull, LessThan

from channels_app.selectors import usable_credentials
from notifications_app.models import SMALL_BATCH, Batch, Notification, Plan
from notifications_app.pipeline import send_rates
from notifications_app.pipeline.breakers import UNKNOWN_HOSTS
from notifications_app.pipeline.lease import RENEW_SECONDS, Lease
from notifications_app.pipeline.transitions import CREDENTIALS_REFUSED, EXPIRED, STOPPED
from notifications_app.querysets import MOST_LEASE_LOSSES, BatchQuerySet, any_key, is_in
from notifications_app.states import IDLE, STATES, BatchStatus, PlanStatus
from pushsvc.common import metrics
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.store import sql
from pushsvc.common.store.presence import disconnected, process_id

_PLANS_AT_ONCE = 8
_MOST_COUNTED = 101  # one more than a claim takes
_SILENT_SECONDS = RENEW_SECONDS + 2.0  # without a renewal
_REST_SECONDS = 5.0  # in which a live process still renews its lease
_IS_LATE = Q(status__in=IDLE, notification__paused_at__isnull=True) & (
    Q(plan__deadline_at__lt=Now())
    | Q(notification__expires_at__lt=Now())
    | Q(notification__stopped_at__isnull=False)
)


def claim(
    platform: Platform,
    *,
    most: int,
    skip: Sequence[str],
    processes: int,
    skip_channels: Sequence[UUID] = (),
) -> list[Lease]:
    """Leases the next due batch; returns [] if there is none. If the batch is small, also leases
    other small batches of the channel at the push service. Together they have no more recipients
    left than a full batch. A batch of a send with a rate is leased alone, when it is its turn.

    `most`: how many batches. `skip`: names of breakers whose batches are not claimed. `processes`:
    how many serve the platform.

    The channel whose last claim is longest ago comes first, and within it the notification that
    has waited longest. So a small send waits for one batch of a large one, not for all of it.
    """
    begun = time.monotonic()
    with sql.brief_transaction():
        skipped = [*skip, *_unknown_hosts_to_skip(platform, processes)]
        for plan_id, has_rate, due in _plans_with_work(platform, skipped, skip_channels):
            if has_rate and not send_rates.lock_due(plan_id, platform):
                continue
            parameters = {"plan": plan_id, "skip": skipped, **_taken()}
            claimed = sql.rows(CLAIM, parameters, is_prepared=True)
            if claimed:
                *first, recipients = claimed[0]
                lease = Lease.of(first, begun=begun)
                if has_rate:
                    return [_charged(lease, recipients)]
                others = [] if due == 1 else _companions(lease, recipients, most - 1)
                leaves_none = due == 1 + len(others)
                return [replace(lease, leaves_none=leaves_none), *others]
    return []


def _charged(lease: Lease, recipients: int) -> Lease:
    send_rates.charge(lease.notification_id, recipients)
    return replace(lease, charged=recipients)


def shorten_dead() -> int:
    """Shortens the leases of dead processes to a few seconds: leases that were not renewed in
    time, and whose process has no connection to Redis. A paused process keeps its connection.
    Returns how many."""
    silent = timedelta(seconds=settings.LEASE_SECONDS - _SILENT_SECONDS)
    batches = Batch.objects.leased().filter(lease_until__lt=Now() + silent)
    holders = {holder for holder in batches.values_list("holder", flat=True) if holder}
    dead = disconnected(holders) if holders else None
    if not dead:
        return 0
    parameters = {
        "silent": silent,
        "rest": timedelta(seconds=_REST_SECONDS),
        "dead": list(dead),
    }
    return sql.execute(SHORTEN, STATES | parameters)


def free_lost(limit: int = 100) -> int:
    """Makes batches ready whose lease ended without their worker. Returns how many."""
    parameters = {"limit": limit, "most_losses": MOST_LEASE_LOSSES}
    freed = sql.rows(FREE_LOST, STATES | parameters)
    for platform, lost in Counter(platform for (platform,) in freed).items():
        metrics.LEASE_LOSSES.add(lost, platform, "silent")
    return len(freed)


def claim_parked(platform: Platform, channel_id: UUID) -> Lease | None:
    """Leases the batch of the platform that has been parked longest, to try paused credentials with
    one of its recipients. None if there is none. If the lease is lost, workers park it again."""
    begun = time.monotonic()
    parameters = {
        "channel": channel_id,
        "platform": platform,
        "parked_for": timedelta(seconds=settings.PARKED_SECONDS),
        **_taken(),
    }
    claimed = sql.rows(CLAIM_PARKED, STATES | parameters)
    return Lease.of(claimed[0], begun=begun) if claimed else None


def unpark(limit: int = 1000) -> int:
    """Makes parked batches ready whose platform has credentials that are not refused. Returns how
    many. Their time of parking is kept if the same credentials are accepted again, until a pass
    hands them back, so that a platform that is paused again at once prolongs no wait."""
    own = {"channel": OuterRef("channel"), "platform": OuterRef("platform")}
    parked = Batch.objects.parked().filter(
        Exists(usable_credentials().filter(**own)), parked_at__isnull=False
    )
    ids = list(parked.order_by("pk").values_list("pk", flat=True)[:limit])
    return sql.execute(UNPARK, STATES | {"ids": ids}) if ids else 0


def overdue(limit: int = 200) -> list[tuple[int, str]]:
    """(batch id, bounce code) of idle batches that are past their deadline, belong to a stopped
    notification, or were parked for too long. Batches of paused notifications are not overdue."""
    # A batch that the database refused recently waits. Otherwise it would delay others each second.
    may_bounce = Q(bounce_again_at__isnull=True) | Q(bounce_again_at__lte=Now())
    found = overdue_batches().filter(may_bounce).order_by("pk")
    return list(found.values_list("pk", "bounce_code")[:limit])


def bounce_code(batch_id: int) -> str | None:
    """The code with which the overdue batch is to be bounced. None if it is not overdue."""
    found = _with_bounce_code(Batch.objects.filter(_is_parked_too_long() | _IS_LATE, pk=batch_id))
    return found.values_list("bounce_code", flat=True).first()


def overdue_batches() -> QuerySet[Any]:
    """Overdue batches, each with its `bounce_code`."""
    parked = Batch.objects.filter(_is_parked_too_long())
    # Only batches of overdue plans are read, so batches that are in time cost nothing. Found by
    # notification, because the index of open batches begins with it.
    is_over = Q(expires_at__lt=Now()) | Q(stopped_at__isnull=False)
    is_over |= Q(LessThan(OuterRef("deadline_at"), Now()))
    own = Notification.objects.filter(is_over, pk=OuterRef("notification"), paused_at__isnull=True)
    plans = Plan.objects.exclude(status=PlanStatus.DONE).filter(recipient_count__gt=0)
    over = plans.filter(IsNull(any_key(own), False))
    late = Batch.objects.open().filter(_IS_LATE, is_in("notification", over.values("notification")))
    ids = parked.values("pk").union(late.values("pk"), all=True)
    return _with_bounce_code(Batch.objects.filter(is_in("pk", ids)))


def _is_parked_too_long() -> Q:
    since = Now() - timedelta(seconds=settings.PARKED_SECONDS)
    return Q(status=BatchStatus.PARKED, plan__halted_at__isnull=True, parked_at__lt=since)


def _with_bounce_code(found: BatchQuerySet[Batch]) -> QuerySet[Any]:
    is_stopped = When(notification__stopped_at__isnull=False, then=Value(STOPPED))
    is_parked = When(status=BatchStatus.PARKED, then=Value(CREDENTIALS_REFUSED))
    return found.annotate(bounce_code=Case(is_stopped, is_parked, default=Value(EXPIRED)))


def due_counts(most: int) -> dict[str, int]:
    """How many batches of each platform are due now, counted up to `most`."""
    parameters = {"platforms": list(PLATFORM_VALUES), "most": most, "ahead": send_rates.AHEAD}
    return Counter(dict(sql.rows(DUE_COUNTS, STATES | parameters)))


def _taken() -> dict[str, Any]:
    return {"lease": timedelta(seconds=settings.LEASE_SECONDS), "holder": process_id()}


def _plans_with_work(
    platform: Platform, skip: list[str], skip_channels: Sequence[UUID]
) -> Iterator[tuple[int, bool, int]]:
    """Ids of plans with due batches, fairest first, whether they have a rate, and how many batches
    of the platform are due, counted up to _MOST_COUNTED. Reads a few at a time, because the first
    plan usually has a batch that no other worker has locked."""
    tried: list[int] = []
    while True:
        parameters = {
            "platform": platform,
            "skip": skip,
            "channels": list(skip_channels),
            "tried": [*tried, *send_rates.not_due()],
        }
        plans = sql.rows(NEXT_PLANS, parameters, is_prepared=True)
        yield from ((int(pk), bool(rate), int(due)) for pk, rate, due in plans)
        if len(plans) < _PLANS_AT_ONCE:
            return
        tried += [pk for pk, *_ in plans]


def _companions(first: Lease, recipients: int, most: int) -> list[Lease]:
    """Leases small batches that are served with the first one. `recipients`: how many the first
    has left. A batch after a lease loss is served alone. A batch of unknown hosts too, because the
    processes that unknown hosts may occupy are counted by batches."""
    room = settings.BATCH_SIZE - recipients
    if first.lease_losses or first.push_service == UNKNOWN_HOSTS or min(room, most) <= 0:
        return []
    parameters = {
        "channel": first.channel_id,
        "platform": first.platform,
        "push_service": first.push_service,
        "room": room,
        "most": most,
        **_taken(),
    }
    claimed = sql.rows(CLAIM_COMPANIONS, parameters, is_prepared=True)
    return [Lease.of(row, begun=first.begun) for row in claimed]


def _unknown_hosts_to_skip(platform: Platform, processes: int) -> list[str]:
    """Batches of unknown hosts may occupy a quarter of the web processes, and at least one."""
    if platform != Platform.WEB:
        return []
    if sql.try_lock("share of unknown hosts"):  # one claim at a time counts and decides
        most = {"platform": platform, "most": max(1, processes // 4)}
        if sql.rows(_HAVE_UNKNOWN_HOSTS_ROOM, most, is_prepared=True)[0][0]:
            return []
    return [UNKNOWN_HOSTS]


# In SQL, because it is a part of every claim, and the ORM needs longer to compile it than the
# database to run it.
_HAVE_UNKNOWN_HOSTS_ROOM = sql.with_constants(
    """
SELECT count(*) < %(most)s FROM notifications_app_batch
WHERE status = %(batch_leased)s AND lease_until IS NOT NULL
  AND platform = %(platform)s AND push_service = %(service)s
""",
    STATES | {"service": UNKNOWN_HOSTS},
)

# In SQL, because the ORM has no LATERAL, and writes a correlated max() only with GROUP BY. With
# GROUP BY, PostgreSQL reads all batches of a channel; without, the last entry of an index. LATERAL,
# because with EXISTS PostgreSQL may compare each plan with each due batch. A channel's last claim
# is read for its first plan only, so that many plans of a channel cost one index lookup.
NEXT_PLANS = sql.with_constants(
    """
SELECT id, has_rate, (SELECT count(*) FROM (
    SELECT FROM notifications_app_batch batch
    WHERE batch.platform = %(platform)s AND batch.status = %(batch_ready)s
      AND batch.due_at <= statement_timestamp() AND batch.recipient_count > 0
    ORDER BY batch.due_at LIMIT %(most_counted)s) AS counted)
FROM (
  SELECT due.id, due.channel_id, due.has_rate,
    CASE WHEN row_number() OVER (PARTITION BY due.channel_id ORDER BY due.id) = 1 THEN
      (SELECT max(claimed_at) FROM notifications_app_batch served
       WHERE served.channel_id = due.channel_id AND served.platform = %(platform)s)
    END AS channel_served,
    (SELECT max(claimed_at) FROM notifications_app_batch served
     WHERE served.plan_id = due.id) AS plan_served
  FROM (
    SELECT plan.id, plan.channel_id, plan.has_rate
    FROM notifications_app_plan plan
    CROSS JOIN LATERAL (
      SELECT FROM notifications_app_batch batch
      WHERE batch.plan_id = plan.id AND batch.status = %(batch_ready)s
        AND batch.due_at <= statement_timestamp() AND batch.push_service <> ALL(%(skip)s)
        AND batch.push_service || ' ' || batch.channel_id <> ALL(%(skip)s)
      ORDER BY batch.due_at LIMIT 1) AS own
    WHERE plan.platform = %(platform)s AND plan.status <> %(plan_done)s
      AND plan.recipient_count > 0 AND plan.halted_at IS NULL
      AND plan.id <> ALL(%(tried)s)
      AND plan.channel_id <> ALL(%(channels)s)) AS due
) AS waiting
ORDER BY max(channel_served) OVER (PARTITION BY channel_id) NULLS FIRST,
  plan_served NULLS FIRST, id
LIMIT %(most)s
""",
    STATES | {"most": _PLANS_AT_ONCE, "most_counted": _MOST_COUNTED},
)

# In SQL, because the ORM has no LATERAL. Starts from plans that are not halted, so a tick reads
# only the plan of a paused notification, not its batches. Ordered, so that PostgreSQL reads the
# plan's part of an index. Otherwise it might scan the table, expecting to find enough batches soon.
DUE_COUNTS = f"""
SELECT wanted.platform, count(*)
FROM unnest(%(platforms)s::text[]) AS wanted (platform)
CROSS JOIN LATERAL (
  SELECT FROM notifications_app_plan plan
  CROSS JOIN LATERAL (
    SELECT FROM notifications_app_batch
    WHERE plan_id = plan.id AND status = %(batch_ready)s AND due_at <= statement_timestamp()
    ORDER BY due_at LIMIT %(most)s) AS own
  WHERE plan.platform = wanted.platform AND plan.status <> %(plan_done)s
    AND plan.recipient_count > 0 AND plan.halted_at IS NULL AND {send_rates.IS_DUE_PART}
  LIMIT %(most)s) AS due
GROUP BY wanted.platform
"""  # noqa: S608 - text of our own

# In SQL, because an update of the ORM does not return rows. SKIP LOCKED: workers that claim at the
# same time get different batches and do not wait for one another.
_LEASE = """UPDATE notifications_app_batch
SET status = %(batch_leased)s, lease_number = lease_number + 1, claimed_at = clock_timestamp(),
    lease_until = clock_timestamp() + %(lease)s, holder = %(holder)s"""
# The columns of Lease.
_LEASED = """RETURNING id, lease_number, lease_losses, plan_id, notification_id, channel_id,
  platform, push_service, claimed_at, variant"""

CLAIM = sql.with_constants(
    f"""
{_LEASE}
WHERE id = (
  SELECT id FROM notifications_app_batch
  WHERE plan_id = %(plan)s AND status = %(batch_ready)s AND due_at <= statement_timestamp()
    AND push_service <> ALL(%(skip)s)
    AND push_service || ' ' || channel_id <> ALL(%(skip)s)
  ORDER BY due_at, id LIMIT 1
  FOR NO KEY UPDATE SKIP LOCKED)
{_LEASED}, recipient_count - delivered_count - bounced_count
""",  # noqa: S608 - text of our own
    STATES,
)

# The batches that have been due longest, as long as there is room. They are read from the index of
# small batches, so that other plans and the full batches of a large notification cost nothing. A
# plan is looked up for each batch, because a join might read all plans. All are chosen before any
# is locked, so that other workers can claim the rest. ARRAY, because PostgreSQL might evaluate a
# set again for each batch. CASE, because PostgreSQL might read all ready batches to find these.
CLAIM_COMPANIONS = sql.with_constants(
    f"""
WITH small AS (
  SELECT id, sum(recipients) OVER (ORDER BY due_at, id) AS recipients FROM (
    SELECT id, due_at, recipient_count - delivered_count - bounced_count AS recipients
    FROM notifications_app_batch batch
    WHERE channel_id = %(channel)s AND platform = %(platform)s
      AND push_service = %(push_service)s AND status = %(batch_ready)s
      AND due_at <= statement_timestamp() AND recipient_count <= {SMALL_BATCH}
      AND lease_losses = 0
      AND recipient_count - delivered_count - bounced_count <= %(room)s
      AND (SELECT halted_at IS NULL AND has_rate IS NOT TRUE FROM notifications_app_plan
           WHERE id = batch.plan_id)
    ORDER BY due_at, id LIMIT %(most)s) AS own
)
{_LEASE}
WHERE id IN (
  SELECT id FROM notifications_app_batch
  WHERE id = ANY (ARRAY(SELECT id FROM small WHERE recipients <= %(room)s))
    AND CASE WHEN id > 0 THEN status = %(batch_ready)s END
  FOR NO KEY UPDATE SKIP LOCKED)
{_LEASED}
""",  # noqa: S608 - a number of our own
    STATES,
)

# All in SQL, because the ORM locks rows only in an explicit transaction: two more round trips in
# every tick. SKIP LOCKED: a late flush that is still writing renews its lease, and the tick must
# not wait for it. A statement that never waits cannot deadlock, so it may lock rows in any order.
SHORTEN = """
UPDATE notifications_app_batch SET lease_until = statement_timestamp() + %(rest)s
WHERE id IN (
  SELECT id FROM notifications_app_batch
  WHERE status = %(batch_leased)s AND holder = ANY(%(dead)s)
    AND lease_until < statement_timestamp() + %(silent)s
    AND lease_until > statement_timestamp() + %(rest)s
  FOR NO KEY UPDATE SKIP LOCKED)
"""

FREE_LOST = """
UPDATE notifications_app_batch
SET status = %(batch_ready)s, lease_until = NULL, due_at = statement_timestamp(),
    lease_losses = least(lease_losses + 1, %(most_losses)s)
WHERE id = ANY(ARRAY(
  SELECT id FROM notifications_app_batch
  WHERE status = %(batch_leased)s AND lease_until < statement_timestamp()
  LIMIT %(limit)s
  FOR NO KEY UPDATE SKIP LOCKED))
RETURNING platform
"""

CLAIM_PARKED = f"""
{_LEASE}
WHERE id = (
  SELECT batch.id FROM notifications_app_batch batch
  JOIN notifications_app_plan plan ON plan.id = batch.plan_id AND plan.halted_at IS NULL
  WHERE batch.channel_id = %(channel)s AND batch.platform = %(platform)s
    AND batch.status = %(batch_parked)s
    AND batch.parked_at > statement_timestamp() - %(parked_for)s
  ORDER BY batch.parked_at, batch.id LIMIT 1
  FOR NO KEY UPDATE OF batch SKIP LOCKED)
{_LEASED}
"""  # noqa: S608 - text of our own

UNPARK = """
UPDATE notifications_app_batch batch
SET status = %(batch_ready)s, due_at = statement_timestamp(),
    parked_at = CASE WHEN credential.updated_at > parked_at THEN NULL ELSE parked_at END
FROM channels_app_providercredential credential
WHERE credential.channel_id = batch.channel_id AND credential.platform = batch.platform
  AND batch.id IN (
  SELECT id FROM notifications_app_batch
  WHERE id = ANY(%(ids)s) AND status = %(batch_parked)s
  FOR NO KEY UPDATE SKIP LOCKED)
"""

"""Plans due notifications: writes their deliveries and batches.

One conditional statement starts a notification, copies the audience's rule and inserts the plans.
The database itself writes the rows, one window of subscription ids at a time. A transaction locks
the plan, checks the lease, writes a window and moves the cursor. So a planner may die at any
point, and the next one continues at the cursor. New plans of all channels are planned together, so
that many small plans cost few statements. A large one is divided after its first window, so that
several planners plan it side by side.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.models import F, Value
from django.db.models.functions import Greatest, Least, Now

from channels_app.counters import counters_add
from notifications_app.models import Driver, Notification, Plan
from notifications_app.pipeline import ranges, send_rates, wakeup
from notifications_app.pipeline.counting import (
    check_end_later,
    finish_complete,
    hourly_add,
    notifications_add,
)
from notifications_app.pipeline.lease import PlanLease
from notifications_app.pipeline.plan_queue import (
    PLAN_LEASE,
    RoundRobin,
    claim_plans,
    lock_plans,
    start_due,
)
from notifications_app.pipeline.timed_starts import movers_releases, start_timed
from notifications_app.pipeline.windows import Window, write_whole, write_window
from notifications_app.states import STATES, PlanStatus
from pushsvc.common import worker
from pushsvc.common.correlation import Correlation, following, named
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.telemetry import spans

logger = structlog.stdlib.get_logger(__name__)

_FAILED_PLAN_WAIT = timedelta(seconds=5)
_OTHERS_WAIT = timedelta(seconds=1)
_GRID_SECONDS = 0.1
_STARTS = 1_000
_TRANSACTION_SECONDS = 0.1  # in which windows of several plans are written


_round_robin = RoundRobin()  # of this process


def work(*, seconds: float, pace: worker.Pace | None = None) -> bool:
    """Starts due notifications and plans slices. Returns False if nothing is left, and True if the
    time is up or the worker must stop. `pace` receives the number of notifications that start."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not worker.is_stopping():
        started = start_due(round_robin=_round_robin)
        if _round_robin.is_timed_due:
            started += start_timed(round_robin=_round_robin)
        if pace:
            pace.found(started)
        leases = claim_plans(most=settings.CLAIM_PLANS, round_robin=_round_robin)
        if leases:
            run_slice(leases, until=until)
        elif not started:
            return False
    return True


def run_slice(leases: Sequence[PlanLease], *, until: float = math.inf) -> None:
    """Plans windows of the leased plans in turn until the slice ends, at latest at the monotonic
    second `until`. Then hands back plans that have windows left, so that other plans get a turn.
    Plans of which no window was written stay new."""
    until = min(until, time.monotonic() + settings.PLAN_SLICE_SECONDS)
    left, ended = leases, 0
    try:
        while left:
            planned, left = _plan_windows(left)
            ended += sum(each.window.is_last for each in planned)
            if time.monotonic() >= until or worker.is_stopping():
                break
    except Exception:
        # It is not known which of several plans failed. They do not stay new, so from now on each
        # is planned alone.
        wait = _FAILED_PLAN_WAIT if len(leases) == 1 else timedelta()
        _end(lambda: Plan.objects.leased_by(*leases).hand_back_failed(wait=wait))
        raise
    if ended < len(leases):
        _end(lambda: Plan.objects.leased_by(*leases).hand_back())


def plan_windows(leases: Sequence[PlanLease]) -> list[PlanLease]:
    """Plans the next window of each plan in one transaction. The transaction ends early if a window
    is not the last one of its plan, or if it takes too long. Returns the leases of plans that have
    windows left.

    A subscription that is active throughout is planned exactly once: ids are read in order, and
    the transaction that writes the rows also moves the cursor.
    """
    return _plan_windows(leases)[1]


def _plan_windows(leases: Sequence[PlanLease]) -> "tuple[list[_Planned], list[PlanLease]]":
    """The windows that were planned, and the leases of plans that have windows left."""
    began = time.time_ns()
    until = time.monotonic() + _TRANSACTION_SECONDS
    planned: list[_Planned] = []
    with sql.brief_transaction(is_repeatable=True):  # if it is undone, the cursor is, too
        plans = lock_plans(leases)
        own = [lease for lease in leases if lease.plan_id in plans]
        held = [lease for lease in own if not _must_wait(lease, plans[lease.plan_id])]
        _begin_rates(held, plans)
        for written in _written(held, plans):
            planned += written
            if not _may_go_on(written) or time.monotonic() >= until:
                break
        if planned:
            _count_windows(planned)
    _report(planned, began)
    for each in planned:
        if each.plan.cursor is None and not each.window.is_last and not each.again_at:
            ranges.divide(each.lease)
    done = {each.plan.pk for each in planned}
    left = [lease for lease in held if lease.plan_id not in done]
    left += [each.lease for each in planned if not each.window.is_last and not each.again_at]
    return planned, left


@dataclass(frozen=True)
class _Planned:
    """A window that was written. `again_at`: it ends the plan until then, when the plan reads its
    audience once more."""

    lease: PlanLease
    plan: Plan
    window: Window
    again_at: datetime | None = None

    @property
    def is_empty_end(self) -> bool:
        """Whether this is the last window and has no batches. Then the plan has no work left,
        unless earlier windows have batches."""
        return self.window.is_last and not self.window.batches


def _begin_rates(leases: Sequence[PlanLease], plans: Mapping[int, Plan]) -> None:
    """An edit decides for plans that it meets, so only others follow the rate that was read."""
    new = [each for each in leases if each.rate_per_minute and plans[each.plan_id].has_rate is None]
    if new:
        send_rates.begin({each.notification_id for each in new})
        Plan.objects.filter(pk__in=[each.plan_id for each in new]).update(has_rate=True)


def _written(leases: Sequence[PlanLease], plans: Mapping[int, Plan]) -> Iterator[list[_Planned]]:
    """Writes the next windows step by step: first small audiences together, then one window of each
    other plan."""
    done: set[int] = set()
    for driver in Driver:
        group = [each for each in leases if _may_be_small(each, plans[each.plan_id], driver)]
        if len(group) > 1:
            windows = write_whole(group, most=settings.PLAN_WINDOW // settings.CLAIM_PLANS)
            done |= windows.keys()
            small = [each for each in group if each.plan_id in windows]
            if small:
                yield [_Planned(each, plans[each.plan_id], windows[each.plan_id]) for each in small]
    for lease in leases:
        if lease.plan_id not in done:
            plan = plans[lease.plan_id]
            yield [_written_alone(lease, plan)]


def _written_alone(lease: PlanLease, plan: Plan) -> _Planned:
    if lease.driver == Driver.MOVERS:
        return _of_movers(lease, plan)
    only = plan.only_subscription_id if plan.bucket_from is None else None
    window = write_window(
        lease, cursor=plan.cursor, until=plan.until, only=only, zone_at=plan.zone_at
    )
    return _Planned(lease, plan, window)


def _must_wait(lease: PlanLease, plan: Plan) -> bool:
    """Whether a test was not decided when the lease began, or other parts of the platform are still
    to be planned before the movers. Then ends the lease for a while."""
    if plan.follows_test:
        if lease.winner is not None:
            return False
    elif plan.driver != Driver.MOVERS or not _are_others_left(plan):
        return False
    Plan.objects.filter(pk=plan.pk).update(
        due_at=Now() + _OTHERS_WAIT, lease_until=None, sliced_at=None
    )
    return True


def _are_others_left(plan: Plan) -> bool:
    own = Plan.objects.filter(notification=plan.notification_id, platform=plan.platform)
    return own.filter(status=PlanStatus.PLANNING).exclude(pk=plan.pk).exists()


def _of_movers(lease: PlanLease, plan: Plan) -> _Planned:
    """Plans those in whose zone it is time. If a window left out others, the last one ends the plan
    only until the next zone's time."""
    now, moments = sql.now(), movers_releases(lease.notification_id, lease.platform)
    due = [zone for zone, moment in moments.items() if moment <= now]
    window = write_window(replace(lease, zones=due), cursor=plan.cursor)
    is_left = bool(plan.zone_at or window.early)
    again_at = min((each for each in moments.values() if each > now), default=now)
    ends_at = plan.notification.expires_at
    if not (window.is_last and is_left) or (ends_at and again_at >= ends_at):
        return _Planned(lease, plan, replace(window, zone_at=int(is_left)))
    return _Planned(lease, plan, replace(window, is_last=False), again_at)


def _may_be_small(lease: PlanLease, plan: Plan, driver: str) -> bool:
    """Whether the plan may be planned together with others of the driver. A plan with a rule may
    not, because a rule may read many subscriptions for few recipients. One with a rate has batches
    of another size, one with variants has batches of each, and one with caps may meet a person of
    another plan."""
    if lease.driver != driver or lease.is_shared or plan.cursor is not None:
        return False
    is_plain = lease.rule_json is None and not lease.rate_per_minute and lease.limits is None
    return is_plain and not lease.weights and plan.only_subscription_id is None


def _may_go_on(written: Sequence[_Planned]) -> bool:
    """Whether the transaction may write more windows. It ends after a statement that locked targets
    or contacts, or that may wait for rows of another part: one statement locks them in one order,
    but two statements together would not."""
    are_last = all(each.window.is_last for each in written)
    locked = (
        each.lease.has_targets or each.lease.is_shared or each.lease.limits for each in written
    )
    return are_last and not any(locked)


def _report(planned: Sequence[_Planned], began: int) -> None:
    """Logs the windows and wakes up the platforms' workers. If all windows are of one notification,
    both follow its correlation. `began`: nanoseconds of Unix time."""
    for each in planned:
        _record_span(each, began)
    if not planned:
        return
    correlations = {each.lease.notification_id: each.lease.correlation for each in planned}
    about = {
        **named("channel", "channels", {each.lease.channel_id for each in planned}),
        **named("notification", "notifications", correlations),
        **named("plan", "plans", [each.lease.plan_id for each in planned]),
    }
    with following(next(iter(correlations.values())) if len(correlations) == 1 else Correlation()):
        logger.info(
            "windows.planned",
            **about,
            recipients=sum(each.window.recipients for each in planned),
            batches=sum(each.window.batches for each in planned),
        )
        _wake_platforms(planned)


def _record_span(planned: _Planned, began: int) -> None:
    lease = planned.lease
    span = spans.begin(
        "plan window",
        lease.correlation,
        began=began,
        notification=lease.notification_id,
        channel=lease.channel_id,
        platform=lease.platform,
        plan=lease.plan_id,
    )
    span.end(recipients=planned.window.recipients, batches=planned.window.batches)


def _wake_platforms(planned: Sequence[_Planned]) -> None:
    """Sends one wakeup for each BATCH_SIZE recipients, because one claim may take many small
    batches."""
    for platform, recipients in _recipients_by_platform(planned).items():
        wakeup.wake(platform, math.ceil(recipients / settings.BATCH_SIZE))


def _recipients_by_platform(planned: Sequence[_Planned]) -> Counter[Platform]:
    recipients: Counter[Platform] = Counter()
    for each in planned:
        recipients[each.lease.platform] += each.window.recipients
    return +recipients


def anything_to_plan() -> bool:
    """Whether a notification is due or a plan has windows left."""
    due = Notification.objects.due().values_list("channel")
    return due.union(Plan.objects.plannable().values_list("channel"), all=True).exists()


def starts_within(seconds: float) -> list[float]:
    """The waits in seconds until the notifications that become due within `seconds`, rounded up to
    _GRID_SECONDS, without repetitions. Reads only the next _STARTS notifications."""
    ahead = timedelta(seconds=seconds)
    coming = Notification.objects.due_within(ahead).order_by("scheduled_at")
    waits = coming.annotate(wait=F("scheduled_at") - Now()).values_list("wait", flat=True)
    grid = {math.ceil(wait.total_seconds() / _GRID_SECONDS) for wait in waits[:_STARTS]}
    return [step * _GRID_SECONDS for step in sorted(grid)]


def _count_windows(planned: Sequence[_Planned]) -> None:
    windows = [each.window for each in planned]
    parameters = {
        "ids": [each.plan.pk for each in planned],
        "cursors": [each.window.last_id or each.plan.cursor for each in planned],
        "is_last": [window.is_last for window in windows],
        "recipients": [window.recipients for window in windows],
        "opted_out": [window.opted_out for window in windows],
        "capped": [window.capped for window in windows],
        "repeated": [window.repeated for window in windows],
        "zones_at": [window.zone_at for window in windows],
        "lease": PLAN_LEASE,
    }
    sql.execute(COUNT_WINDOWS, parameters, is_prepared=sql.are_few(planned))
    sums: dict[UUID, Counter[str]] = defaultdict(Counter)
    for each in planned:
        if each.window.recipients or each.is_empty_end or each.again_at:
            sums[each.plan.notification_id]["recipients"] += each.window.recipients
    if sums:
        notifications_add(sums)
    for each in planned:
        if each.again_at is not None:
            _plan_again(each.plan, each.again_at)
    ended = {each.plan.notification_id for each in planned if each.is_empty_end}
    sent = finish_complete(ended)
    check_end_later(ended)
    _count_channels(planned, sent)


def _plan_again(plan: Plan, moment: datetime) -> None:
    """Its notification must be locked. Who was left out is judged, and counted, again."""
    deadline_at = moment + (plan.deadline_at - plan.release_at)
    Plan.objects.filter(pk=plan.pk).update(
        release_at=moment,
        due_at=moment,
        deadline_at=deadline_at,
        cursor=None,
        zone_at=0,
        opted_out_count=0,
        capped_count=0,
        repeated_count=0,
        sliced_at=None,
        lease_until=None,
    )
    own = Notification.objects.filter(pk=plan.notification_id)
    own.update(deadline_at=Least(Greatest("deadline_at", Value(deadline_at)), "expires_at"))


def _count_channels(planned: Sequence[_Planned], sent: Mapping[UUID, Counter[str]]) -> None:
    """Adds to the channels' totals, and to their hours except for tests. `sent`: of
    `finish_complete`."""
    hours: dict[tuple[UUID, Platform], Counter[str]] = defaultdict(Counter)
    totals: dict[UUID, Counter[str]] = defaultdict(Counter)
    for each in planned:
        channel_id, recipients = each.lease.channel_id, each.window.recipients
        if not each.plan.is_test:
            hours[channel_id, each.lease.platform]["recipients"] += recipients
        totals[channel_id]["recipients"] += recipients
    for channel_id, counts in sent.items():
        totals[channel_id].update(counts)
    counters_add(totals)
    hourly_add(hours)


def _end(write: Callable[[], object]) -> None:
    """Ends leases with `write`; tries again with a new connection if this one broke. If the
    database is away, the leases expire."""
    for _ in range(2):
        try:
            write()
            return
        except (OperationalError, InterfaceError):
            connection.close()


# In SQL, because the ORM cannot join an update with values. The plans are already locked.
COUNT_WINDOWS: Final = sql.with_constants(
    """
UPDATE notifications_app_plan plan
SET cursor = written.cursor,
    recipient_count = recipient_count + written.recipients,
    opted_out_count = opted_out_count + written.opted_out,
    capped_count = capped_count + written.capped,
    repeated_count = repeated_count + written.repeated,
    zone_at = written.zone_at,
    status = CASE WHEN written.is_last THEN %(plan_delivering)s ELSE status END,
    lease_until = CASE WHEN NOT written.is_last THEN clock_timestamp() + %(lease)s END
FROM unnest(%(ids)s::bigint[], %(cursors)s::uuid[], %(is_last)s::bool[], %(recipients)s::int[],
            %(opted_out)s::int[], %(capped)s::int[], %(repeated)s::int[], %(zones_at)s::smallint[])
  AS written (id, cursor, is_last, recipients, opted_out, capped, repeated, zone_at)
WHERE plan.id = written.id
""",
    STATES,
)

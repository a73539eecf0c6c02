"""A channel's schedules: creates and changes them, and skips occurrences.

`sends/firing.py` sends them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.values import SendRequest
from notifications_app.errors import (
    NeverHappens,
    NotCancellable,
    NotCombinable,
    TooManySchedules,
)
from notifications_app.models import (
    Occurrence,
    OccurrenceCode,
    Schedule,
)
from notifications_app.recurrence import (
    FIRST_WITHIN,
    NEXT_WITHIN,
    RECIPIENT,
    Recurrence,
    RuleError,
    are_apart,
    zone_of,
)
from notifications_app.sends.services import notification_cancel
from notifications_app.sends.stored_sends import check_name, check_stored, loaded, stored, unshown
from pushsvc.common.errors import Conflict, FieldError, Invalid, NotFound, Outdated
from pushsvc.common.store import sql

MAX_SCHEDULES: Final = 200  # of each channel
_FIRST_DAY: Final = date(2000, 1, 1)
_LABEL: Final = Schedule._meta.label_lower


def schedule_create(
    *,
    channel: Channel,
    name: str,
    send: SendRequest,
    recurrence: Mapping[str, Any],
    enabled: bool = True,
    once_per_days: int | None = None,
) -> Schedule:
    """Creates a schedule. `once_per_days`: nobody gets it twice within so many days. Raises what
    `send_check` raises for the send, Invalid, NeverHappens, and TooManySchedules."""
    check_name(name)
    recurs = recurrence_of(recurrence)
    with transaction.atomic():
        # Locks the channel, so that no other schedule is added before the transaction ends.
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        if _of(channel.pk).count() >= MAX_SCHEDULES:
            detail = gettext("The channel has %(most)s schedules. Delete one first.") % {
                "most": MAX_SCHEDULES
            }
            raise TooManySchedules(detail)
        schedule = Schedule(channel=channel, once_per_days=once_per_days)
        _fill(schedule, name=name, send=send, recurs=recurs, enabled=enabled)
        schedule.save(force_insert=True)
        schedule.refresh_from_db()
        audit.record(schedule, audit.Action.CREATE, after=_audited(schedule))
    return schedule


@transaction.atomic
def schedule_update(
    *,
    channel_id: UUID,
    schedule_id: UUID,
    name: str,
    send: SendRequest,
    recurrence: Mapping[str, Any],
    enabled: bool = True,
    once_per_days: int | None = None,
    seen: str | None = None,
) -> Schedule:
    """Replaces the schedule. Cancels a notification that it made and that is still pending. Safe to
    repeat.

    Raises NotFound, what `schedule_create` raises, and Outdated if `seen`, a version, is not the
    schedule's.
    """
    check_name(name)
    recurs = recurrence_of(recurrence)
    schedule = _locked(channel_id, schedule_id)
    _check_seen(schedule, seen)
    before, was = _audited(schedule), schedule.send
    _withdraw(schedule)
    schedule.once_per_days = once_per_days
    _fill(schedule, name=name, send=send, recurs=recurs, enabled=enabled)
    schedule.disabled_code = ""
    schedule.updated_at = Now()
    schedule.save()
    schedule.refresh_from_db()
    note = unshown(_LABEL, was, schedule.send)
    audit.record(schedule, audit.Action.UPDATE, before, _audited(schedule), note=note)
    return schedule


@transaction.atomic
def schedule_delete(*, channel_id: UUID, schedule_id: UUID) -> None:
    """Deletes the schedule and the list of its occurrences. Cancels a notification that it made and
    that is still pending; others stay. Raises NotFound."""
    schedule = _locked(channel_id, schedule_id)
    _withdraw(schedule)
    audit.record(schedule, audit.Action.DELETE, _audited(schedule))
    schedule.delete()


@transaction.atomic
def schedule_switch(
    *, channel_id: UUID, schedule_id: UUID, on: bool, seen: str | None = None
) -> Schedule:
    """Enables or disables the schedule. Safe to repeat. Raises NotFound, and to enable it also
    Outdated if `seen`, a version, is not the schedule's, NeverHappens, and what `send_check`
    raises."""
    schedule = _locked(channel_id, schedule_id)
    if on == schedule.is_enabled:
        return schedule
    if on:
        _check_seen(schedule, seen)
    before = _audited(schedule)
    _withdraw(schedule)
    schedule.is_enabled, schedule.disabled_code = on, ""
    if on:
        check_stored(schedule.channel, loaded(schedule.send))
        schedule.next_at = following(schedule, sql.now())
        if schedule.next_at is None:
            raise NeverHappens
    schedule.changed_by = audit.actor_name()
    schedule.updated_at = Now()
    schedule.save()
    schedule.refresh_from_db()
    audit.record(schedule, audit.Action.UPDATE, before, _audited(schedule))
    return schedule


@transaction.atomic
def occurrence_skip(*, channel_id: UUID, schedule_id: UUID, occurs_at: datetime) -> None:
    """Skips an occurrence that is to come. Safe to repeat. Raises NotFound, and Conflict if the
    schedule has no such occurrence or it is too late."""
    schedule = _locked(channel_id, schedule_id)
    now = sql.now()
    if occurs_at <= now or not _occurs(schedule, occurs_at):
        raise Conflict(gettext("The schedule has no such occurrence, or it has passed."))
    _withdraw(schedule)
    own = Occurrence.objects.filter(schedule=schedule, occurs_at=occurs_at)
    if own.exclude(code=OccurrenceCode.SKIPPED).exists():
        raise Conflict(gettext("The occurrence is being sent."))
    if not own.exists():
        Occurrence.objects.create(
            schedule=schedule, occurs_at=occurs_at, code=OccurrenceCode.SKIPPED
        )
        note = f"The occurrence of {_moment_words(schedule, occurs_at)} is skipped."
        audit.record(schedule, audit.Action.UPDATE, note=note)
    _move(schedule, now)


@transaction.atomic
def occurrence_unskip(
    *, channel_id: UUID, schedule_id: UUID, occurs_at: datetime, seen: str | None = None
) -> Schedule:
    """Sends a skipped occurrence after all, and returns the schedule. Safe to repeat. Raises
    NotFound, Conflict if it is too late, and Outdated if `seen`, a version, is not the
    schedule's."""
    schedule = _locked(channel_id, schedule_id)
    now = sql.now()
    if occurs_at <= now:
        raise Conflict(gettext("The occurrence has passed."))
    _check_seen(schedule, seen)
    own = Occurrence.objects.filter(schedule=schedule, occurs_at=occurs_at)
    if own.filter(code=OccurrenceCode.SKIPPED).delete()[0]:
        note = f"The occurrence of {_moment_words(schedule, occurs_at)} is not skipped."
        audit.record(schedule, audit.Action.UPDATE, note=note)
        _move(schedule, now)
    return schedule


def schedule_get(*, channel_id: UUID, schedule_id: UUID) -> Schedule:
    """Returns the schedule. Raises NotFound, also for a schedule of another channel."""
    return _one(_of(channel_id).filter(pk=schedule_id))


def schedule_page(*, channel_id: UUID, limit: int, offset: int) -> list[Schedule]:
    """A page of the schedules, newest first. Empty if the offset is past the end."""
    return list(_of(channel_id).order_by("-created_at", "-id")[offset : offset + limit])


def occurrence_page(
    *, channel_id: UUID, schedule_id: UUID, limit: int, offset: int
) -> list[Occurrence]:
    """A page of what became of occurrences, the latest first. Raises NotFound."""
    schedule = schedule_get(channel_id=channel_id, schedule_id=schedule_id)
    own = Occurrence.objects.filter(schedule=schedule)
    return list(own.order_by("-occurs_at")[offset : offset + limit])


def schedule_of(notification_id: UUID) -> Schedule | None:
    """The schedule that made the notification."""
    return Schedule.objects.filter(occurrences__notification_id=notification_id).first()


def open_after(schedule: Schedule, moment: datetime) -> Iterator[datetime]:
    """The schedule's occurrences after `moment` that were neither skipped nor sent."""
    known = Occurrence.objects.filter(schedule_id=schedule.pk, occurs_at__gt=moment)
    taken = set(known.values_list("occurs_at", flat=True))
    coming = schedule.recurs.after(moment, within=NEXT_WITHIN)
    return (each for each in coming if each not in taken)


def following(schedule: Schedule, moment: datetime) -> datetime | None:
    """The first of them."""
    return next(open_after(schedule, moment), None)


def coming_of(
    schedules: Sequence[Schedule], now: datetime, *, most: int
) -> dict[UUID, list[tuple[datetime, bool]]]:
    """The next occurrences of each schedule, and whether each is skipped. None of a schedule that
    is disabled. Costs one statement for any number of schedules."""
    enabled = [each for each in schedules if each.is_enabled]
    known = Occurrence.objects.filter(
        schedule_id__in=[each.pk for each in enabled],
        occurs_at__gt=now,
        code=OccurrenceCode.SKIPPED,
    )
    skipped = set(known.values_list("schedule_id", "occurs_at"))
    found: dict[UUID, list[tuple[datetime, bool]]] = {each.pk: [] for each in schedules}
    for each in enabled:
        coming = islice(each.recurs.after(now, within=NEXT_WITHIN), most)
        found[each.pk] = [(at, (each.pk, at) in skipped) for at in coming]
    return found


def _check_seen(schedule: Schedule, seen: str | None) -> None:
    if seen is not None and seen != schedule.version:
        raise Outdated(by=audit.last_actor(schedule))


def _moment_words(schedule: Schedule, occurs_at: datetime) -> str:
    """On the clock of the schedule."""
    zone = schedule.recurs.timezone
    whose = "each recipient's clock" if zone == RECIPIENT else zone
    return f"{occurs_at.astimezone(zone_of(zone)):%Y-%m-%d %H:%M} ({whose})"


def _move(schedule: Schedule, now: datetime) -> None:
    if not _is_overdue(schedule, now):
        schedule.next_at = following(schedule, now)
        schedule.save(update_fields=["next_at"])


def _occurs(schedule: Schedule, moment: datetime) -> bool:
    before = moment - timedelta(microseconds=1)
    return next(schedule.recurs.after(before, within=NEXT_WITHIN), None) == moment


def _is_overdue(schedule: Schedule, now: datetime) -> bool:
    """Whether an occurrence has passed and was not fired yet. Firing sends it, or notes that it was
    missed, so `next_at` must stay."""
    return schedule.is_enabled and schedule.next_at is not None and schedule.next_at <= now


def _withdraw(schedule: Schedule) -> None:
    """Cancels the notifications of coming occurrences, so that the schedule can be changed until
    the last moment. One that has begun stays."""
    coming = Occurrence.objects.filter(schedule=schedule, occurs_at__gt=Now())
    for each in coming:
        if each.notification_id is None:
            continue
        with suppress(NotCancellable):
            notification_cancel(
                channel_id=schedule.channel_id, notification_id=each.notification_id
            )
            each.delete()


def _fill(
    schedule: Schedule, *, name: str, send: SendRequest, recurs: Recurrence, enabled: bool
) -> None:
    """Sets what the owner chose. Raises what `send_check` raises, NeverHappens, and NotCombinable
    for a test by the clock of each recipient."""
    if send.test and recurs.timezone == RECIPIENT:
        raise NotCombinable("notification.test", gettext("A send by local time has no test."))
    check_stored(schedule.channel, send)
    now = sql.now()
    is_same = enabled and recurs.stored() == schedule.recurrence
    keeps_overdue = is_same and _is_overdue(schedule, now)
    schedule.name, schedule.is_enabled = name, enabled
    schedule.send_json, schedule.segment_id = stored(send), send.segment_id
    schedule.recurrence = recurs.stored()
    schedule.changed_by = audit.actor_name()
    if next(recurs.after(now, within=FIRST_WITHIN), None) is None and enabled:
        raise NeverHappens
    if not keeps_overdue:
        schedule.next_at = following(schedule, now)


def recurrence_of(given: Mapping[str, Any]) -> Recurrence:
    """The recurrence that RecurrenceInput checked. Raises Invalid."""
    today = sql.now().astimezone(zone_of(given["timezone"])).date()
    values = {**given, "starts_on": given["starts_on"] or today}
    try:
        recurs = Recurrence(**values)
    except RuleError as error:
        raise _invalid("rule", "malformed", str(error)) from error
    if not are_apart(recurs.at):
        detail = gettext("Times must be at least 15 minutes apart, also over midnight.")
        raise _invalid("at", "out_of_range", detail)
    if not _FIRST_DAY <= recurs.starts_on <= today + FIRST_WITHIN:
        raise _invalid(
            "starts_on",
            "out_of_range",
            gettext("Must be from %(first_day)s to in five years.") % {"first_day": _FIRST_DAY},
        )
    if recurs.ends_on and recurs.ends_on < recurs.starts_on:
        raise _invalid("ends_on", "out_of_range", gettext("Must not be before `starts_on`."))
    return recurs


def _invalid(name: str, code: str, detail: str) -> Invalid:
    return Invalid([FieldError(f"recurrence.{name}", code, detail)])


def _of(channel_id: UUID) -> QuerySet[Schedule]:
    return Schedule.objects.filter(channel_id=channel_id)


def _one(schedules: QuerySet[Schedule]) -> Schedule:
    found = schedules.first()
    if found is None:
        raise NotFound(gettext("There is no such schedule."))
    return found


def _locked(channel_id: UUID, schedule_id: UUID) -> Schedule:
    own = _of(channel_id).filter(pk=schedule_id).select_related("channel")
    return _one(own.select_for_update(of=("self",)))


def _audited(schedule: Schedule) -> dict[str, Any]:
    """The values that the audit log may show. Not `data`, which can contain personal data."""
    own = {
        name: getattr(schedule, name)
        for name in ("name", "is_enabled", "recurrence", "once_per_days", "disabled_code")
    }
    values = {**schedule.send, **own}
    return {name: value for name, value in values.items() if name in audit.SHOWN[_LABEL]}

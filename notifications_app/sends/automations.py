"""A channel's automations: creates and changes them. `sends/automation_firing.py` fires them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.values import SendRequest
from notifications_app.errors import NotCombinable, TooManyAutomations
from notifications_app.models import (
    Automation,
    AutomationDay,
    AutomationEntry,
    AutomationEvent,
    Plan,
)
from notifications_app.sends.stored_sends import check_name, check_stored, loaded, stored, unshown
from notifications_app.states import PlanStatus
from pushsvc.common.errors import FieldError, Invalid, NotFound, Outdated
from pushsvc.common.store import sql

MAX_AUTOMATIONS: Final = 20  # of each channel
EVENTS: Final = AutomationEvent.values
MAX_HOURS: Final = 7 * 24  # within which a notification may be clicked
MAX_COUNTED: Final = 100_000  # who wait, in the API and the console
_LABEL: Final = Automation._meta.label_lower
# The fields of each trigger, besides the event. Of those in _REQUIRED, all must be given.
_ABOUT: Final[Mapping[str, frozenset[str]]] = {
    AutomationEvent.CREATED: frozenset(),
    AutomationEvent.TAGGED: frozenset({"tag"}),
    AutomationEvent.CLICKED: frozenset({"name", "label", "action"}),
    AutomationEvent.UNCLICKED: frozenset({"name", "label", "hours"}),
}
_REQUIRED: Final = frozenset({"tag", "hours"})


def automation_create(*, channel: Channel, **given: Any) -> Automation:
    """Creates an automation; `given` as in `automation_update`. Raises what `send_check` raises for
    the send, Invalid, and TooManyAutomations."""
    with transaction.atomic():
        # Locks the channel, so that no other automation is added before the transaction ends.
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        if _of(channel.pk).count() >= MAX_AUTOMATIONS:
            detail = gettext("The channel has %(most)s automations. Delete one first.") % {
                "most": MAX_AUTOMATIONS
            }
            raise TooManyAutomations(detail)
        automation = Automation(channel=channel)
        _fill(automation, **given)
        automation.save(force_insert=True)
        automation.refresh_from_db()
        audit.record(automation, audit.Action.CREATE, after=_audited(automation))
    return automation


@transaction.atomic
def automation_update(
    *, channel_id: UUID, automation_id: UUID, seen: str | None = None, **given: Any
) -> Automation:
    """Replaces the automation. Who waits gets the new send. Safe to repeat.

    `given`: `name`, `send`, `trigger` (`event` and its other fields), `delay_minutes`, `recipient`,
    `enabled` and `once_per_days`. Raises NotFound, what `automation_create` raises, and Outdated if
    `seen`, a version, is not the automation's.
    """
    automation = _locked(channel_id, automation_id)
    _check_seen(automation, seen)
    before, was = _audited(automation), automation.send
    _fill(automation, **given)
    _changed(automation, before, unshown(_LABEL, was, automation.send))
    return automation


@transaction.atomic
def automation_switch(
    *, channel_id: UUID, automation_id: UUID, on: bool, seen: str | None = None
) -> Automation:
    """Enables or disables the automation. Safe to repeat. Raises NotFound, and to enable it also
    Outdated if `seen`, a version, is not the automation's, and what `send_check` raises."""
    automation = _locked(channel_id, automation_id)
    if on == automation.is_enabled:
        return automation
    if on:
        _check_seen(automation, seen)
        check_stored(automation.channel, loaded(automation.send))
        _read_from_now(automation)
    before = _audited(automation)
    automation.is_enabled = on
    automation.changed_by = audit.actor_name()
    _changed(automation, before, "")
    return automation


@transaction.atomic
def automation_delete(*, channel_id: UUID, automation_id: UUID) -> None:
    """Deletes the automation. Who waits gets nothing; housekeeping deletes their entries.
    Notifications that it made stay. Raises NotFound."""
    automation = _locked(channel_id, automation_id)
    day_end(automation)
    audit.record(automation, audit.Action.DELETE, _audited(automation))
    automation.delete()


def automation_get(*, channel_id: UUID, automation_id: UUID) -> Automation:
    """Returns the automation. Raises NotFound, also for one of another channel."""
    return _one(_of(channel_id).filter(pk=automation_id))


def automation_page(*, channel_id: UUID, limit: int, offset: int) -> list[Automation]:
    """A page of the automations, newest first. Empty if the offset is past the end."""
    return list(_of(channel_id).order_by("-created_at", "-id")[offset : offset + limit])


def day_page(
    *, channel_id: UUID, automation_id: UUID, limit: int, offset: int
) -> list[AutomationDay]:
    """A page of what the automation did on each day, the latest first. Raises NotFound."""
    automation = automation_get(channel_id=channel_id, automation_id=automation_id)
    own = AutomationDay.objects.filter(automation=automation)
    return list(own.order_by("-begins_at")[offset : offset + limit])


def waiting_count(automation: Automation) -> int:
    """How many wait; at most MAX_COUNTED are counted."""
    own = AutomationEntry.objects.filter(automation=automation).order_by()
    return own[:MAX_COUNTED].count()


def waiting_counts(automations: Sequence[Automation]) -> dict[UUID, int]:
    """How many wait for each; at most MAX_COUNTED are counted."""
    ids = sql.array(each.pk.hex for each in automations)
    return dict(sql.rows(_WAITING, {"ids": ids, "most": MAX_COUNTED}))


def fired_counts(automations: Sequence[Automation], since: datetime) -> dict[UUID, int]:
    """How many became recipients on days that began since then, of those with any."""
    days = AutomationDay.objects.filter(automation__in=automations, begins_at__gte=since)
    return dict(days.values("automation_id").values_list("automation_id", Sum("fired")))


def day_end(automation: Automation) -> None:
    """Ends the day of the locked automation: what it fires from now on is another notification.
    The current one ends when its recipients have their outcomes."""
    now = sql.now()
    day = automation.days.filter(ends_at__gt=now).order_by("-begins_at").first()
    if day is None:
        return
    automation.days.filter(begins_at=day.begins_at).update(ends_at=now)
    if day.notification_id is not None:
        keepers = Plan.objects.filter(
            notification=day.notification_id, part=0, status=PlanStatus.PLANNING
        )
        Plan.objects.filter(pk__in=keepers.lock_all()).update(release_at=Now(), due_at=Now())


def _fill(
    automation: Automation,
    *,
    name: str,
    send: SendRequest,
    trigger: Mapping[str, Any],
    delay_minutes: int,
    recipient: str,
    enabled: bool = True,
    once_per_days: int | None = None,
) -> None:
    """Sets what the owner chose. Raises what `send_check` raises, and Invalid."""
    check_name(name)
    if send.test:
        raise NotCombinable("notification.test", gettext("An automation has no test."))
    check_stored(automation.channel, send)
    was = automation.is_enabled and automation.trigger
    automation.event, automation.about = trigger["event"], about_of(trigger)
    if was != automation.trigger or automation.read_until is None:
        _read_from_now(automation)
    automation.name, automation.is_enabled = name, enabled
    automation.delay_minutes, automation.recipient = delay_minutes, recipient
    automation.once_per_days = once_per_days
    automation.send_json, automation.segment_id = stored(send), send.segment_id
    automation.changed_by = audit.actor_name()


def _read_from_now(automation: Automation) -> None:
    """What was not clicked in time before now does not count."""
    hours = automation.about.get("hours")
    automation.read_until = hours and sql.now() - timedelta(hours=hours)
    automation.read_notification_id = automation.read_after = None


def about_of(trigger: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the trigger that are given, besides the event. Raises Invalid."""
    given = {name: value for name, value in trigger.items() if name != "event"}
    given = {name: value for name, value in given.items() if value is not None}
    event = trigger["event"]
    allowed = _ABOUT[event]
    detail = gettext("Not with the event %(event)s.") % {"event": event}
    errors = [
        FieldError(f"trigger.{each}", "not_combinable", detail) for each in given.keys() - allowed
    ]
    missing = (allowed & _REQUIRED) - given.keys()
    errors += [
        FieldError(f"trigger.{each}", "required", gettext("Is missing.")) for each in missing
    ]
    if errors:
        raise Invalid(sorted(errors, key=lambda each: each.attr))
    return given


def _changed(automation: Automation, before: dict[str, Any], note: str) -> None:
    day_end(automation)
    automation.disabled_code, automation.updated_at = "", Now()
    automation.fire_at = Now()
    automation.save()
    automation.refresh_from_db()
    audit.record(automation, audit.Action.UPDATE, before, _audited(automation), note=note)


def _check_seen(automation: Automation, seen: str | None) -> None:
    if seen is not None and seen != automation.version:
        raise Outdated


def _of(channel_id: UUID) -> QuerySet[Automation]:
    return Automation.objects.filter(channel_id=channel_id)


def _one(automations: QuerySet[Automation]) -> Automation:
    found = automations.first()
    if found is None:
        raise NotFound(gettext("There is no such automation."))
    return found


def _locked(channel_id: UUID, automation_id: UUID) -> Automation:
    own = _of(channel_id).filter(pk=automation_id).select_related("channel")
    return _one(own.select_for_update(of=("self",)))


_WAITING: Final = """
SELECT own.id, (
  SELECT count(*) FROM (
    SELECT FROM notifications_app_automationentry WHERE automation_id = own.id LIMIT %(most)s
  ) AS counted)
FROM unnest(%(ids)s::uuid[]) AS own(id)"""

_OWN: Final = (
    *("name", "is_enabled", "trigger", "delay_minutes", "recipient"),
    *("once_per_days", "disabled_code"),
)


def _audited(automation: Automation) -> dict[str, Any]:
    """The values that the audit log may show. Not `data`, which can contain personal data."""
    values = {**automation.send, **{name: getattr(automation, name) for name in _OWN}}
    return {name: value for name, value in values.items() if name in audit.SHOWN[_LABEL]}

"""Changes a notification after it was accepted: its content, its audience and its times."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.values import (
    AUDIENCE_FIELDS,
    CONTENT,
    AudienceKind,
    SendRequest,
    TargetId,
)
from notifications_app.errors import NotCombinable, NotEditable, StillSending, in_state
from notifications_app.images.services import images_keep
from notifications_app.models import Batch, Notification, Target
from notifications_app.pipeline import halting
from notifications_app.pipeline.halting import time_to_live
from notifications_app.sends.bounds import check_pending, check_volume
from notifications_app.sends.checks import (
    Due,
    audience_check,
    caps_of,
    content_check,
    expiry_check,
    time_check,
    with_defaults,
)
from notifications_app.sends.corrections import check_order
from notifications_app.sends.schema import read_edit
from notifications_app.sends.services import targets_store
from notifications_app.sends.timed import starts_at, timing_of
from notifications_app.states import NotificationStatus
from notifications_app.tasks import wake_planner
from pushsvc.common.errors import FieldError, Invalid, NotFound, Outdated
from pushsvc.common.store import sql
from pushsvc.common.texts import later

# Fields that can be changed while a notification that is being sent is paused.
_WHILE_PAUSED: Final = frozenset({*CONTENT, "expires_at", "rate_per_minute", "name", "labels"})
# Fields on which the first release of a send by local time depends.
_TIMED_BY: Final = frozenset(
    {"scheduled_at", "local_at", "quiet_hours", "target_platforms", *AUDIENCE_FIELDS}
)


def notification_edit(
    *,
    channel: Channel,
    notification_id: UUID,
    changes: Mapping[str, Any],
    keeps_values: bool = False,
    seen: str | None = None,
) -> Notification:
    """Changes fields of a send and returns the notification. `changes` is parsed JSON: a missing
    field stays as it is, null sets its default. If all fields stay the same, nothing is written.
    Safe to repeat. `keeps_values`: targets that stay and get no values keep their values. `seen`:
    the `edit_version` for which the changes are meant.

    All fields of a pending notification can be changed, but not the kind of its audience. If the
    start comes first, NotEditable is raised. Of a notification that is processing and paused, the
    content, `expires_at` and the rate can be changed. Fields that are fixed then are not checked
    again, nor is an `expires_at` that stays.

    Raises NotFound, Outdated for another version, NotEditable, NotCombinable, StillSending, DRF's
    ValidationError, and what the checks of a send raise.
    """
    with sql.brief_transaction():
        own = Notification.objects.filter(id=notification_id, channel_id=channel.id)
        found = halting.locked(own)
        if found is None:
            raise NotFound(gettext("There is no such notification."))
        before = found.was
        if seen is not None and seen != before.edit_version:
            raise Outdated(is_started=True)
        request = _edited(channel, before, changes, keeps_values=keeps_values)
        values = _values(channel, before, request, changes)
        changed = _changed(before, request, values)
        if request.targets and _replace_targets(before, request):
            changed = sorted([*changed, "targets"])
        if not changed:
            return before
        found.row.update(**values, edited_at=Now())
        if before.status != NotificationStatus.PENDING:
            longer = time_to_live(request.content.ttl) - time_to_live(before.ttl)
            found.move_deadlines(longer)
            if "rate_per_minute" in changed:
                found.follow_rate(request.rate_per_minute)
        after = found.row.get()
        images_keep(channel.pk, values, after.scheduled_at)
        fields = audit.fields_of(before), audit.fields_of(after)
        audit.record(after, audit.Action.UPDATE, *fields, note=f"Edited: {', '.join(changed)}.")
        if after.edited_at and after.scheduled_at <= after.edited_at:
            transaction.on_commit(wake_planner)
    return after


@transaction.atomic
def notification_move(
    *, channel: Channel, notification_id: UUID, start: Mapping[str, Any], seen: str
) -> Notification:
    """As `notification_edit`, for only `start`: `scheduled_at`, or `local_at`. Sends nothing at
    once: raises Invalid for a time that has passed, or that has in a zone of the audience."""
    after = notification_edit(
        channel=channel, notification_id=notification_id, changes=start, seen=seen
    )
    if after.scheduled_at <= sql.now():
        detail = gettext("This time has passed.")
        if start.get("local_at"):
            detail = gettext("In some time zones of the audience, this time has passed.")
        raise Invalid([FieldError("scheduled_at", "out_of_range", detail)])
    return after


def _edited(
    channel: Channel, before: Notification, changes: Mapping[str, Any], *, keeps_values: bool
) -> SendRequest:
    """The send with the changes. Raises if it may not be changed like this."""
    _refuse(before, changes)
    is_started = before.status != NotificationStatus.PENDING
    request = with_defaults(channel, read_edit(before, changes), is_started=is_started)
    if is_started and "rate_per_minute" in changes and request.rate_per_minute is None:
        request = replace(request, rate_per_minute=channel.rate_per_minute)
    if keeps_values:
        request = _with_values(before, request)
    _check_actions(before, request)
    _check_variants(before, request)
    _check(channel, before, request, changes)
    return request


def _refuse(notification: Notification, changes: Mapping[str, Any]) -> None:
    """Raises for a change that may not be made now."""
    if notification.status == NotificationStatus.PENDING and not notification.is_test:
        _refuse_other_audience(notification.audience_kind, changes)
        return
    if notification.is_test or not notification.is_paused:
        state = "test" if notification.is_test else notification.status
        remedy = gettext("Pause it first.") if notification.status == "processing" else ""
        raise NotEditable(in_state(notification.id, state, remedy))
    if fixed := sorted(changes.keys() - _WHILE_PAUSED):
        raise NotEditable(
            gettext("It is being sent already, so these are fixed: %(fixed)s.")
            % {"fixed": ", ".join(fixed)}
        )
    # A batch that is claimed later is handed back, or its worker reads the changes.
    if Batch.objects.leased().filter(notification=notification).exists():
        raise StillSending


def _check_actions(before: Notification, request: SendRequest) -> None:
    """Raises if the ids of buttons change after the start, because clicks on buttons that were
    already sent would be counted wrongly."""
    ids = [[each["id"] for each in of.actions] for of in (before.content, request.content)]
    if before.status != NotificationStatus.PENDING and ids[0] != ids[1]:
        raise NotEditable(gettext("It is being sent already, so the ids of its buttons are fixed."))


def _check_variants(before: Notification, request: SendRequest) -> None:
    """Raises if the names or the weights of variants change after the start, because devices were
    already given to them."""
    fixed = [
        [(each["name"], each["weight"]) for each in of.variants]
        for of in (before.content, request.content)
    ]
    if before.status != NotificationStatus.PENDING and fixed[0] != fixed[1]:
        raise NotEditable(
            gettext("It is being sent already, so the names and weights of its variants are fixed.")
        )


def _refuse_other_audience(kind: AudienceKind, changes: Mapping[str, Any]) -> None:
    """Raises NotCombinable for an edit that would change the kind of the audience."""
    given = {name: changes[name] is not None for name in AUDIENCE_FIELDS if name in changes}
    keeps = any(is_given and AUDIENCE_FIELDS[name] == kind for name, is_given in given.items())
    for name, is_given in given.items():
        is_own = AUDIENCE_FIELDS[name] == kind
        if is_given != is_own and not (is_own and keeps):
            raise NotCombinable(name, str(_STAYS[kind]))


_STAYS: Final = {
    AudienceKind.CHANNEL: later("A send to the whole channel stays one."),
    AudienceKind.SEGMENT: later("A send to a segment stays one."),
    AudienceKind.RULE: later("A send to a rule stays one."),
    AudienceKind.TARGETS: later("A send to targets stays one."),
    AudienceKind.CORRECTION: later("A send to the devices of another notification stays one."),
}


def _with_values(before: Notification, request: SendRequest) -> SendRequest:
    own = {(each.external_id, each.subscription_id): each.vars for each in _stored_targets(before)}
    targets = tuple(
        each if each.vars else replace(each, vars=own.get((each.external_id, each.subscription_id)))
        for each in request.targets
    )
    return replace(request, targets=targets)


def _replace_targets(before: Notification, request: SendRequest) -> bool:
    """Replaces the targets of a pending, locked notification. Returns whether they changed."""
    if _stored_targets(before) == request.targets:
        return False
    Target.objects.filter(notification_id=before.pk).delete()
    targets_store(before, request)
    return True


def _stored_targets(notification: Notification) -> tuple[TargetId, ...]:
    stored = Target.objects.of(notification.pk)
    return tuple(
        TargetId(external_id=each.external_id, subscription_id=each.subscription_id, vars=each.vars)
        for each in stored
    )


def _check(
    channel: Channel, before: Notification, request: SendRequest, changes: Mapping[str, Any]
) -> None:
    """Raises for fields that may not be sent, if they can still be changed."""
    # Targets that stay are checked as well.
    targets = request.targets or (_stored_targets(before) if before.has_targets else ())
    if not request.content.personalize and any(each.vars for each in targets):
        raise NotCombinable("personalize", gettext("Its targets have values, which need it."))
    named = replace(request, targets=targets)
    if before.status == NotificationStatus.PENDING:
        audience_check(channel=channel, request=named)
    content_check(request)
    if changes.keys() & {"scheduled_at", "replaces"}:
        check_order(request, edited=before.pk)
    timed_by = _TIMED_BY if request.local_at else {"scheduled_at", "local_at"}
    if changes.keys() & {"expires_at", "test", *timed_by}:
        if before.status == NotificationStatus.PENDING:
            time_check(channel, named)
        else:
            _check_end(before, request)
    may_grow = changes.keys() & {"scheduled_at", "local_at"} or request.targets
    if before.status == NotificationStatus.PENDING and may_grow:
        check_pending(channel.pk, request, edited=before.pk)
    check_volume(channel.pk, request)


def _check_end(before: Notification, request: SendRequest) -> None:
    """Raises for an end of a paused, started notification that would come before that of its test.
    Its test goes on after the pause. One on hold has ended."""
    decides_at = None if before.decision else before.decides_at
    if decides_at and before.paused_at:
        decides_at += sql.now() - before.paused_at
    else:
        request = replace(request, test=None)
    expiry_check(request, Due(before.scheduled_at, None), decides_at=decides_at)


def _changed(before: Notification, request: SendRequest, values: Mapping[str, Any]) -> list[str]:
    """The names of the changed fields, without values, because `data` can contain personal data."""
    was, new = before.content, request.content
    names = {name for name in CONTENT if getattr(new, name) != getattr(was, name)}
    if list(new.data) != list(was.data):  # in the sender's order, which devices get
        names.add("data")
    columns = values.keys() - Notification.values_of(new).keys()
    return sorted(names | {name for name in columns if values[name] != getattr(before, name)})


def _values(
    channel: Channel, before: Notification, request: SendRequest, changes: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of the columns that an edit writes, without the deadline."""
    own = Notification.values_of(request.content) | {
        "expires_at": request.expires_at,
        "rate_per_minute": request.rate_per_minute,
        "name": request.name,
        "labels": list(request.labels) or None,
    }
    if before.status != NotificationStatus.PENDING:
        return own
    own["caps"], own["test"] = caps_of(channel, request), request.test
    return own | _audience(request) | _schedule(channel, before, request, changes)


def _audience(request: SendRequest) -> dict[str, Any]:
    return {
        "target_platforms": list(request.target_platforms),
        "segment_id": request.segment_id,
        "category": request.category,
        "rule": request.rule,
        "root_id": request.root_id,
    }


def _schedule(
    channel: Channel, before: Notification, request: SendRequest, changes: Mapping[str, Any]
) -> dict[str, Any]:
    """The first release stays, unless the time or the audience is changed. So do quiet hours, which
    are those of the channel at the send or at its last change."""
    if before.timed and before.timed.local_at and not changes.keys() & _TIMED_BY:
        return {"scheduled_at": before.scheduled_at, "timing": before.timing}
    named = request.targets or (_stored_targets(before) if before.has_targets else ())
    whole = replace(request, targets=named)
    timing = timing_of(channel, whole)
    return {
        "scheduled_at": starts_at(channel, whole, timing) or Now(),
        "timing": timing.stored() if timing else None,
    }

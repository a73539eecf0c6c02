"""The results of a notification's targets."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Q

from notifications_app.models import Notification, Plan, Target
from notifications_app.selectors import notification_get
from notifications_app.states import NotificationStatus, PlanStatus


class TargetState(StrEnum):
    """`reached`: a device of the target became a recipient. `unknown`: the channel did not have the
    target. `left_out`: it had no active device on a target platform, or all were left out, or the
    notification was stopped or cancelled before. `waiting`: its devices were not read yet."""

    REACHED = "reached"
    UNKNOWN = "unknown"
    LEFT_OUT = "left_out"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class TargetResult:
    """A target with its result. Without both ids if the person was erased."""

    external_id: str | None
    subscription_id: UUID | None
    state: TargetState
    devices: int


class _Row(Enum):
    """The kinds of rows of Target."""

    FOUND = Q(devices__gt=0)
    WITHOUT_DEVICES = Q(devices=0)
    UNFOUND = Q(devices__isnull=True)

    @classmethod
    def of(cls, target: Target) -> "_Row":
        if target.devices is None:
            return cls.UNFOUND
        return cls.FOUND if target.devices else cls.WITHOUT_DEVICES


def target_page(
    *,
    channel_id: UUID,
    notification_id: UUID,
    state: TargetState | None = None,
    limit: int,
    offset: int = 0,
) -> list[TargetResult]:
    """The results of all targets, or of those in one state, in the order of the send. Raises
    NotFound, also for a notification of another channel."""
    notification = notification_get(channel_id=channel_id, notification_id=notification_id)
    states = _states(notification)
    targets = Target.objects.of(notification.pk)
    if state is not None:
        rows = [row.value for row, meant in states.items() if meant == state]
        targets = targets.filter(reduce(or_, rows)) if rows else targets.none()
    return [_result(each, states) for each in targets[offset : offset + limit]]


def _result(target: Target, states: Mapping[_Row, TargetState]) -> TargetResult:
    state = states[_Row.of(target)]
    return TargetResult(target.external_id, target.subscription_id, state, target.devices or 0)


def _states(notification: Notification) -> dict[_Row, TargetState]:
    """The current state of each kind of row."""
    without_devices, unfound = TargetState.LEFT_OUT, TargetState.UNKNOWN
    if _is_waiting(notification):
        without_devices = unfound = TargetState.WAITING
    elif notification.is_stopped or notification.status == NotificationStatus.CANCELLED:
        unfound = TargetState.LEFT_OUT
    return {
        _Row.FOUND: TargetState.REACHED,
        _Row.WITHOUT_DEVICES: without_devices,
        _Row.UNFOUND: unfound,
    }


def _is_waiting(notification: Notification) -> bool:
    if notification.status != NotificationStatus.PROCESSING:
        return notification.status == NotificationStatus.PENDING
    own = Plan.objects.filter(notification=notification).without_keepers()
    return own.filter(status=PlanStatus.PLANNING).exists()

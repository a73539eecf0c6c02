"""The badge of a notification's state, the same in the list, on its page and on the dashboard."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from notifications_app.models import Notification
from notifications_app.reporting.activity import Sending, Stage
from notifications_app.states import NotificationStatus


class Shown(NamedTuple):
    """The text and the tone of the badge of a state."""

    words: str
    tone: str


_STATES: Final = {
    NotificationStatus.PENDING: Shown("scheduled", ""),
    NotificationStatus.PROCESSING: Shown("sending", "busy"),
    NotificationStatus.SENT: Shown("sent", "good"),
    NotificationStatus.FAILED: Shown("failed", "bad"),
    NotificationStatus.CANCELLED: Shown("cancelled", "warn"),
}
_PAUSED: Final = Shown("paused", "warn")
_STALLED: Final = Shown("no worker", "bad")
STAGES: Final[Mapping[Stage, Shown]] = {
    "planning": Shown("counting recipients", "busy"),
    "sending": _STATES[NotificationStatus.PROCESSING],
    "retrying": Shown("waiting for the next attempt", "warn"),
    "parked": Shown("waiting for credentials", "bad"),
    "waiting": Shown("waiting for the next release", ""),
    "stalled": _STALLED,
    "paused": _PAUSED,
    "stopping": Shown("stopping", "warn"),
}
_STALLED_AFTER: Final = timedelta(seconds=30)


def usual(status: NotificationStatus) -> Shown:
    """The badge of a notification of which nothing but its status is known."""
    return _STATES[status]


def state_of(notification: Notification, sending: Sending | None, now: datetime) -> Shown:
    """`sending`: of a notification that is being sent, if it is known."""
    if sending is not None:
        return STAGES[sending.stage]
    if notification.is_paused:
        return _PAUSED
    if notification.is_stopped:
        return STAGES["stopping"] if notification.is_unfinished else Shown("stopped", "warn")
    if notification.status == NotificationStatus.PENDING:
        if notification.scheduled_at <= now - _STALLED_AFTER:
            return _STALLED
        if notification.scheduled_at <= now:
            return Shown("about to start", "")
    return _STATES[NotificationStatus(notification.status)]

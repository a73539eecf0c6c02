"""The badge of a notification's state, the same in the list, on its page and on the dashboard."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.utils.translation import gettext

from notifications_app.models import Notification
from notifications_app.reporting.activity import Sending, Stage
from notifications_app.states import NotificationStatus
from pushsvc.common.texts import later


class Shown(NamedTuple):
    """The text and the tone of the badge of a state."""

    words: str
    tone: str


_STATES: Final = {
    NotificationStatus.PENDING: Shown(later("scheduled"), ""),
    NotificationStatus.PROCESSING: Shown(later("sending"), "busy"),
    NotificationStatus.SENT: Shown(later("sent"), "good"),
    NotificationStatus.FAILED: Shown(later("failed"), "bad"),
    NotificationStatus.CANCELLED: Shown(later("cancelled"), "warn"),
}
_PAUSED: Final = Shown(later("paused"), "warn")
_STALLED: Final = Shown(later("no worker"), "bad")
STAGES: Final[Mapping[Stage, Shown]] = {
    "planning": Shown(later("counting recipients"), "busy"),
    "sending": _STATES[NotificationStatus.PROCESSING],
    "retrying": Shown(later("waiting for the next attempt"), "warn"),
    "parked": Shown(later("waiting for credentials"), "bad"),
    "waiting": Shown(later("waiting for the next release"), ""),
    "stalled": _STALLED,
    "paused": _PAUSED,
    "stopping": Shown(later("stopping"), "warn"),
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
        return (
            STAGES["stopping"] if notification.is_unfinished else Shown(gettext("stopped"), "warn")
        )
    if notification.status == NotificationStatus.PENDING:
        if notification.scheduled_at <= now - _STALLED_AFTER:
            return _STALLED
        if notification.scheduled_at <= now:
            return Shown(gettext("about to start"), "")
    return _STATES[NotificationStatus(notification.status)]

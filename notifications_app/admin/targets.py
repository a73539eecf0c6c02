"""The targets of a notification, for its page."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from notifications_app.models import Notification
from notifications_app.reporting.targets import TargetResult, TargetState, target_page
from pushsvc.common.texts import later

_MOST: Final = 100
_SHOWN: Final = {
    TargetState.REACHED: ("reached", "good"),
    TargetState.UNKNOWN: ("unknown", "bad"),
    TargetState.LEFT_OUT: (later("left out"), "warn"),
    TargetState.WAITING: ("waiting", ""),
}


@dataclass(frozen=True, slots=True)
class ShownTarget:
    """`words` and `tone`: of the badge of the target's state."""

    external_id: str | None
    subscription_id: UUID | None
    devices: int
    words: str
    tone: str

    @classmethod
    def of(cls, found: TargetResult) -> "ShownTarget":
        named = found.external_id, found.subscription_id
        return cls(*named, found.devices, *_SHOWN[found.state])


def named_context(notification: Notification) -> dict[str, Any]:
    """The context with the first targets. Empty for a notification without targets."""
    if not notification.has_targets:
        return {}
    found = target_page(
        channel_id=notification.channel_id, notification_id=notification.pk, limit=_MOST + 1
    )
    return {
        "named": [ShownTarget.of(each) for each in found[:_MOST]],
        "has_more_named": len(found) > _MOST,
    }

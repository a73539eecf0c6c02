"""The funnel of a notification: recipients, delivered, shown, clicked."""

from collections.abc import Iterable
from dataclasses import dataclass

from notifications_app.models import Notification
from notifications_app.reporting.event_hours import EventCounts, Events
from notifications_app.reporting.progress import PlatformCounts
from pushsvc.common.platforms import Platform
from pushsvc.common.quantities import share


@dataclass(frozen=True, slots=True)
class Funnel:
    """`shown` counts recipients that reported any event, because each event implies it.

    A share of nothing is None. A share may exceed 1, because a bounced recipient may still click.
    """

    recipients: int
    delivered: int
    shown: int
    clicked: int
    dismissed: int

    @property
    def delivered_share(self) -> float | None:
        return share(self.delivered, self.recipients)

    @property
    def shown_share(self) -> float | None:
        """The share of the delivered, as for clicks."""
        return share(self.shown, self.delivered)

    @property
    def clicked_share(self) -> float | None:
        return share(self.clicked, self.delivered)

    @property
    def dismissed_share(self) -> float | None:
        """The share of the shown."""
        return share(self.dismissed, self.shown)


def funnel_of(notification: Notification) -> Funnel:
    return Funnel(
        recipients=notification.recipient_count,
        delivered=notification.delivered_count,
        shown=notification.received_count,
        clicked=notification.clicked_count,
        dismissed=notification.dismissed_count,
    )


def platform_funnels(platforms: Iterable[PlatformCounts], events: Events) -> dict[Platform, Funnel]:
    return {
        each.platform: _funnel(each, events.by_platform.get(each.platform, EventCounts()))
        for each in platforms
    }


def _funnel(counts: PlatformCounts, events: EventCounts) -> Funnel:
    return Funnel(
        recipients=counts.recipients,
        delivered=counts.delivered,
        shown=events.received,
        clicked=events.clicked,
        dismissed=events.dismissed,
    )

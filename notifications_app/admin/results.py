"""Results of notifications for pages: the funnel, clicks over time, a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from notifications_app.admin.charts import Chart, Charts, Line
from notifications_app.models import Notification
from notifications_app.reporting.bounce_reasons import APART_WORDS
from notifications_app.reporting.event_hours import HOUR, Clicks, Events
from notifications_app.reporting.funnel import Funnel, funnel_of, platform_funnels
from notifications_app.reporting.progress import Progress
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.quantities import share

_MOST_HOURS: Final = 72  # in the chart of a comparison; most clicks come early
_SHARES_OF: Final = {
    "Delivered": "recipients",
    "Shown": "delivered",
    "Clicked": "delivered",
    "Dismissed": "shown",
}
_TONES: Final = ("one", "two", "three", "four", "five")
_DASHES: Final = ((), (6, 4), (2, 3), (12, 4), (10, 4, 2, 4))


@dataclass(frozen=True, slots=True)
class FunnelCell:
    """`share`: of the stage that the row names in `of`. `width`: the share of the recipients, for
    a bar."""

    count: int
    share: float | None = None
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """A row of the funnel. `of`: the stage that counts as 100 %. `cells`: of all platforms
    together, then of each."""

    name: str
    of: str
    cells: Sequence[FunnelCell]


@dataclass(frozen=True, slots=True)
class Apart:
    """Recipients that a stop, an opt-out or the deadline ended; `share`: of the recipients."""

    code: str
    words: str
    count: int
    share: float | None


def apart_of(notification: Notification) -> list[Apart]:
    """One for each code of APART that ended recipients of the notification."""
    of = notification.recipient_count
    counts = {code: getattr(notification, f"{code}_count") for code in APART_WORDS}
    return [
        Apart(code, APART_WORDS[code][0], count, share(count, of))
        for code, count in counts.items()
        if count
    ]


def funnel_context(
    notification: Notification, progress: Progress, events: Events
) -> dict[str, Any]:
    """The context of the funnel. Shows platforms only if there are several."""
    by_platform = platform_funnels(progress.platforms, events)
    if len(by_platform) < 2:
        by_platform = {}
    return {
        "funnel_platforms": [(each, PLATFORM_NAMES[each]) for each in by_platform],
        "funnel": _stages([funnel_of(notification), *by_platform.values()]),
    }


def _stages(funnels: Sequence[Funnel]) -> list[Stage]:
    """`funnels`: of the notification, then of its platforms."""
    return [
        Stage("Recipients", "", [FunnelCell(each.recipients) for each in funnels]),
        *(
            Stage(name, of, [_cell(each, name.lower()) for each in funnels])
            for name, of in _SHARES_OF.items()
        ),
    ]


def _cell(funnel: Funnel, field: str) -> FunnelCell:
    count: int = getattr(funnel, field)
    return FunnelCell(count, getattr(funnel, f"{field}_share"), share(count, funnel.recipients))


def outcomes_chart(progress: Progress) -> Charts:
    """Outcomes over time, for their file. notification.js draws them."""
    chart = Chart(
        "outcomes",
        "Delivery over time",
        "",
        [
            Line("Delivered", "good", [each.delivered for each in progress.points]),
            Line("Bounced", "bad", [each.bounced for each in progress.points]),
            *(
                Line(words, tone, [getattr(each, code) for each in progress.points], is_rare=True)
                for code, (words, tone) in APART_WORDS.items()
            ),
        ],
        is_stacked=True,
    )
    return Charts("hour", [each.start for each in progress.points], [chart])


def clicks_chart(clicks: Clicks, files: str) -> Charts:
    """Clicks by platform, in bars."""
    each = "hour" if clicks.step == HOUR else f"{clicks.step // HOUR} hours"
    chart = Chart(
        "clicks",
        "Clicks over time",
        f"Recipients who clicked, by the {each} of their click.",
        [
            Line(PLATFORM_NAMES[platform], platform, counts)
            for platform, counts in clicks.by_platform.items()
        ],
        is_stacked=True,
    )
    return Charts("hour", clicks.starts, [chart], files)


@dataclass(frozen=True, slots=True)
class Compared:
    """`letter` names the notification in the chart."""

    letter: str
    tone: str
    notification: Notification
    funnel: Funnel
    is_best: bool

    @property
    def bounced_share(self) -> float | None:
        return share(self.notification.undeliverable_count, self.funnel.recipients)

    @property
    def apart(self) -> list[Apart]:
        return apart_of(self.notification)


def compared(notifications: Sequence[Notification]) -> list[Compared]:
    funnels = [funnel_of(each) for each in notifications]
    best = max((each.clicked_share or 0 for each in funnels), default=0)
    return [
        Compared(
            letter=chr(ord("A") + index),
            tone=_TONES[index],
            notification=notification,
            funnel=funnel,
            is_best=bool(best) and funnel.clicked_share == best,
        )
        for index, (notification, funnel) in enumerate(zip(notifications, funnels, strict=True))
    ]


def comparison_chart(
    rows: Sequence[Compared], clicks: Mapping[UUID, Sequence[int]], files: str
) -> Charts:
    """The shares of delivered recipients that had clicked, by hours since each start."""
    series = [clicks.get(row.notification.pk, ()) for row in rows]
    hours = min(_MOST_HOURS, max(map(len, series), default=0))
    chart = Chart(
        "since",
        "Clicked since the start",
        "Share of the delivered who had clicked by the end of each hour. Hour 1 is the hour of UTC "
        "in which the notification started.",
        [
            Line(
                f"{row.letter}: {str(row.notification)[:40]}",
                row.tone,
                _shares(counts, row.funnel.delivered, hours),
                "line",
                _DASHES[index],
            )
            for index, (row, counts) in enumerate(zip(rows, series, strict=True))
        ],
        unit="%",
    )
    return Charts("since", range(1, hours + 1), [chart], files)


def _shares(counts: Sequence[int], delivered: int, hours: int) -> list[float | None]:
    """The line of a notification: empty without clicks, level after the last click."""
    if not counts or not delivered:
        return [None] * hours
    shown = [*counts, *[counts[-1]] * (hours - len(counts))][:hours]
    return [round(100 * count / delivered, 2) for count in shown]

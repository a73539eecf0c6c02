"""Results of notifications for pages: the funnel, clicks over time, a comparison."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.utils.translation import gettext, ngettext

from notifications_app.admin.charts import Chart, Charts, Line
from notifications_app.models import Notification
from notifications_app.reporting.bounce_reasons import APART_WORDS
from notifications_app.reporting.comparing import Compared, Comparison, Verdict
from notifications_app.reporting.event_hours import HOUR, Clicks, Events
from notifications_app.reporting.funnel import Funnel, funnel_of, platform_funnels
from notifications_app.reporting.progress import Progress
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.quantities import share
from pushsvc.common.texts import later

_MOST_HOURS: Final = 72  # in the chart of a comparison; most clicks come early
_RECIPIENTS: Final = later("Recipients")
_SHARES_OF: Final = {  # by field: its name, and the name of the stage that counts as 100 %
    "delivered": (later("Delivered"), later("recipients")),
    "shown": (later("Shown"), later("delivered")),
    "clicked": (later("Clicked"), later("delivered")),
    "dismissed": (later("Dismissed"), later("shown")),
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
    together, then of each. `is_quiet`: its bars are grey."""

    name: str
    of: str
    cells: Sequence[FunnelCell]
    is_quiet: bool = False


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
        Stage(_RECIPIENTS, "", [FunnelCell(each.recipients) for each in funnels]),
        *(
            Stage(name, of, [_cell(each, field) for each in funnels], field == "dismissed")
            for field, (name, of) in _SHARES_OF.items()
        ),
    ]


def _cell(funnel: Funnel, field: str) -> FunnelCell:
    count: int = getattr(funnel, field)
    return FunnelCell(count, getattr(funnel, f"{field}_share"), share(count, funnel.recipients))


def outcomes_chart(progress: Progress) -> Charts:
    """Outcomes over time, for their file. notification.js draws them."""
    chart = Chart(
        "outcomes",
        gettext("Delivery over time"),
        "",
        [
            Line(gettext("Delivered"), "good", [each.delivered for each in progress.points]),
            Line(gettext("Bounced"), "bad", [each.bounced for each in progress.points]),
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
    hours = clicks.step // HOUR
    chart = Chart(
        "clicks",
        gettext("Clicks over time"),
        ngettext(
            "Recipients who clicked, by the hour of their click.",
            "Recipients who clicked, by the %(hours)s hours of their click.",
            hours,
        )
        % {"hours": hours},
        [
            Line(PLATFORM_NAMES[platform], platform, counts)
            for platform, counts in clicks.by_platform.items()
        ],
        is_stacked=True,
    )
    return Charts("hour", clicks.starts, [chart], files)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a comparison. `letter` names the notification in the chart."""

    letter: str
    tone: str
    compared: Compared

    @property
    def notification(self) -> Notification:
        return self.compared.notification

    @property
    def bounced_share(self) -> float | None:
        return share(self.notification.undeliverable_count, self.notification.recipient_count)

    @property
    def apart(self) -> list[Apart]:
        return apart_of(self.notification)

    @property
    def verdict(self) -> tuple[str, str] | None:
        """The badge beside the click rate: words and tone."""
        return _VERDICTS.get(self.compared.verdict)

    @property
    def has_more_clicks(self) -> bool:
        """Whether it was clicked after the age of the comparison."""
        return self.notification.clicked_count > self.compared.funnel.clicked


_VERDICTS: Final = {
    Verdict.HIGHEST: (later("highest"), "good"),
    Verdict.CHANCE: (later("difference may be chance"), ""),
    Verdict.TOO_FEW: (later("too few clicks to tell"), ""),
    Verdict.SLOW: (later("sent over a longer time: not compared"), ""),
}


def rows_of(comparison: Comparison) -> list[Row]:
    return [
        Row(chr(ord("A") + index), _TONES[index], each)
        for index, each in enumerate(comparison.rows)
    ]


def comparison_chart(comparison: Comparison, rows: Sequence[Row], files: str) -> Charts:
    """The shares of delivered recipients that had clicked, by age, up to the youngest's."""
    hours = _hours_of(comparison)
    chart = Chart(
        "since",
        gettext("Clicked since the start"),
        gettext(
            "Share of the delivered who had clicked, by hours since each start, up to "
            "the age of the youngest."
        ),
        [
            Line(
                f"{row.letter}: {str(row.notification)[:40]}",
                row.tone,
                _shares(row.compared, hours),
                "line",
                _DASHES[index],
            )
            for index, row in enumerate(rows)
        ],
        unit="%",
    )
    return Charts("since", hours, [chart], files)


def _hours_of(comparison: Comparison) -> Sequence[int]:
    """From 0 to the hour of the last click that counts; none for an age of less than an hour."""
    if comparison.age is None or comparison.age < HOUR:
        return ()
    clicked = [
        each.curve.ages[-1] for each in comparison.rows if each.curve and each.funnel.clicked
    ]
    last = math.ceil(max(clicked, default=timedelta()) / HOUR)
    return range(min(_MOST_HOURS, comparison.age // HOUR, last) + 1) if last else ()


def _shares(compared: Compared, hours: Sequence[int]) -> list[float | None]:
    """The line of a notification: empty without clicks."""
    delivered = compared.funnel.delivered
    if compared.curve is None or not compared.funnel.clicked or not delivered:
        return [None] * len(hours)
    counts = (compared.curve.at(hour * HOUR).clicked for hour in hours)
    return [round(100 * count / delivered, 2) for count in counts]

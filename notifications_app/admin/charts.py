"""The dashboard's figures and charts, made of a report. Knows no request."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from notifications_app.reporting.statistics import Outcomes, Report
from pushsvc.common.platforms import PLATFORM_NAMES


@dataclass(frozen=True)
class Line:
    """`tone` names the colour (console.css); a value is None where there is none to draw."""

    label: str
    tone: str
    values: Sequence[float | None]
    kind: Literal["bar", "line"] = "bar"


@dataclass(frozen=True)
class Chart:
    """`unit` "%": values are percentages. Stacked ones add up to a whole."""

    name: str
    title: str
    help: str
    lines: Sequence[Line]
    is_stacked: bool = False
    unit: str = ""

    @property
    def has_data(self) -> bool:
        """A rate of 0 is one, a sum of 0 is nothing that happened."""
        values = [value for line in self.lines for value in line.values]
        return any(value is not None for value in values) if self.unit else any(values)

    @property
    def rows(self) -> list[tuple[float | None, ...]]:
        """For each hour or day the value of every line, oldest first. What a chart shows below
        its axis is a number like any other here."""
        values = zip(*(line.values for line in self.lines), strict=True)
        return [tuple(None if each is None else abs(each) for each in row) for row in values]


def charts(report: Report) -> list[Chart]:
    return [
        _deliveries(report.outcomes.entries),
        _shares(report.outcomes.entries),
        _subscribers(report),
        _growth(report),
        _sent(report),
    ]


def for_script(report: Report, shown: Sequence[Chart]) -> dict[str, Any]:
    """What dashboard.js draws."""
    return {
        "unit": report.window.unit,
        "starts": [start.isoformat() for start in report.window.starts],
        "charts": [asdict(chart) for chart in shown],
    }


def _deliveries(entries: Sequence[Outcomes]) -> Chart:
    return Chart(
        "deliveries",
        "Deliveries",
        "Recipients by outcome in the hour that it was known, and clicks.",
        [
            Line("Clicked", "strong", [each.clicked for each in entries], "line"),
            Line("Delivered", "link", [each.delivered for each in entries]),
            Line("Bounced", "bad", [each.bounced for each in entries]),
        ],
        is_stacked=True,
    )


def _shares(entries: Sequence[Outcomes]) -> Chart:
    return Chart(
        "shares",
        "Rates",
        "Bounced of all outcomes; clicked of the delivered.",
        [
            Line("Bounced", "bad", [_percent(each.bounced_share) for each in entries], "line"),
            Line("Clicked", "strong", [_percent(each.clicked_share) for each in entries], "line"),
        ],
        unit="%",
    )


def _subscribers(report: Report) -> Chart:
    return Chart(
        "subscribers",
        "Subscribers",
        "Active subscriptions at the end of each hour or day.",
        [
            Line(PLATFORM_NAMES[platform], platform, values, "line")
            for platform, values in report.subscribers.items()
        ],
        is_stacked=True,
    )


def _growth(report: Report) -> Chart:
    entries = report.changes.entries
    return Chart(
        "growth",
        "Subscribers gained and lost",
        "Lost: unsubscribed, or called gone by the push service.",
        [
            Line("Gained", "good", [each.gained for each in entries]),
            Line("Lost", "bad", [-each.lost for each in entries]),
        ],
        is_stacked=True,
    )


def _sent(report: Report) -> Chart:
    entries = report.notifications_sent.entries
    help_ = "Notifications whose last recipient was done in that hour or day."
    return Chart("sent", "Notifications sent", help_, [Line("Sent", "link", entries)])


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 2)

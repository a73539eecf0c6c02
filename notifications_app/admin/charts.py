"""The data of charts, their files, and the charts of the dashboard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Literal

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from notifications_app.reporting.bounce_reasons import APART_WORDS
from notifications_app.reporting.hand_overs import HandOvers
from notifications_app.reporting.statistics import Outcomes, Statistics
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.http.csv_files import csv_response
from pushsvc.common.periods import Unit
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.texts import later

_UNITS: Final[Mapping[Unit, str]] = {"hour": later("hour"), "day": later("day")}


@dataclass(frozen=True)
class Line:
    """`tone`: the name of the colour (console.css). `dash`: the lengths of the line's dashes and
    gaps. Nothing is drawn for a value of None. `is_rare`: a line that is drawn only if it has a
    value; tables and files always have it."""

    label: str
    tone: str
    values: Sequence[float | None]
    kind: Literal["bar", "line"] = "bar"
    dash: Sequence[int] = ()
    is_rare: bool = False


@dataclass(frozen=True)
class Chart:
    """`unit` "%" or "s": the values are percentages or seconds. Stacked lines add up to a
    whole."""

    name: str
    title: str
    help: str
    lines: Sequence[Line]
    is_stacked: bool = False
    unit: str = ""

    @property
    def has_data(self) -> bool:
        """A rate of 0 is data, a sum of 0 is not."""
        values = [value for line in self.lines for value in line.values]
        return any(value is not None for value in values) if self.unit else any(values)

    @property
    def plain(self) -> dict[str, Any]:
        """As a value for JSON. Unlike `asdict`, this does not copy the numbers."""
        return {**vars(self), "lines": self.drawn}

    @property
    def drawn(self) -> list[dict[str, Any]]:
        """The lines to draw."""
        return [vars(line) for line in self.lines if not line.is_rare or any(line.values)]

    @property
    def rows(self) -> list[tuple[float | None, ...]]:
        """The values of all lines for each hour or day, oldest first. Values that the chart draws
        below its axis are positive here."""
        values = zip(*(line.values for line in self.lines), strict=True)
        return [tuple(None if each is None else abs(each) for each in row) for row in values]


@dataclass(frozen=True)
class Charts:
    """The charts of a page over the same time (console/parts/chart.html, charts.js).

    `starts`: the starts of the hours or days; for the unit `since`, the hours since a start.
    `files`: the address of a chart's file without the chart's name, with which it ends.
    """

    unit: Literal["hour", "day", "since"]
    starts: Sequence[datetime | int]
    charts: Sequence[Chart]
    files: str = ""

    @property
    def heading(self) -> str:
        """The heading of the first column of a chart's table."""
        zone = (
            gettext("Day (%(days_of)s)") % {"days_of": self.days_of}
            if self.days_of
            else gettext("Day")
        )
        return {"hour": gettext("From"), "day": zone, "since": gettext("Hour")}[self.unit]

    @property
    def days_of(self) -> str:
        """The name of the time zone whose days they are; "" for hours."""
        start = self.starts[0] if self.starts else 0
        if self.unit != "day" or isinstance(start, int):
            return ""
        return str(start.tzinfo)

    @property
    def labels(self) -> Sequence[datetime | date | int]:
        """The first column of a chart's table and file."""
        is_day = self.unit == "day"
        return [
            each.date() if is_day and isinstance(each, datetime) else each for each in self.starts
        ]

    @property
    def tables(self) -> list[tuple[Chart, list[tuple[Any, tuple[float | None, ...]]]]]:
        """Each chart with the rows of its table."""
        return [
            (chart, list(zip(self.labels, chart.rows, strict=True)) if chart.has_data else [])
            for chart in self.charts
        ]

    @property
    def for_script(self) -> dict[str, Any]:
        starts = [each if isinstance(each, int) else each.isoformat() for each in self.starts]
        return {"unit": self.unit, "starts": starts, "charts": [each.plain for each in self.charts]}


def chart_file(request: HttpRequest, charts: Charts) -> HttpResponse:
    """The values of the chart that the query names, or of the first, as CSV. Raises Http404."""
    name = request.GET.get("chart", charts.charts[0].name)
    chart = next((each for each in charts.charts if each.name == name), None)
    if chart is None:
        raise Http404
    zone = reader_zone(request)
    first = f"{charts.heading} ({zone.key})" if charts.unit == "hour" else charts.heading
    heading = [first, *(line.label for line in chart.lines)]
    rows = ([start, *values] for start, values in zip(charts.labels, chart.rows, strict=True))
    return csv_response(f"{chart.name}.csv", zone, [[heading, *rows]])


def charts_of(
    statistics: Statistics, hand_overs: Mapping[datetime, HandOvers], files: str
) -> Charts:
    unit = statistics.period.unit
    charts = [
        _deliveries(statistics.outcomes.entries, unit),
        _shares(statistics.outcomes.entries, unit),
        _subscribers(statistics),
        _growth(statistics),
        _sent(statistics),
        _hand_over([hand_overs.get(start) for start in statistics.period.starts], unit),
    ]
    return Charts(unit, statistics.period.starts, charts, files)


def _deliveries(entries: Sequence[Outcomes], unit: Unit) -> Chart:
    return Chart(
        "deliveries",
        gettext("Deliveries"),
        gettext(
            "Recipients by the %(unit)s of their outcome, and clicks by the %(unit)s of "
            "the click, on the scale on the right."
        )
        % {"unit": _UNITS[unit]},
        [
            Line(gettext("Clicked"), "strong", [each.clicked for each in entries], "line"),
            Line(gettext("Delivered"), "link", [each.delivered for each in entries]),
            Line(gettext("Bounced"), "bad", [each.undeliverable for each in entries]),
            *(
                Line(words, tone, [getattr(each, code) for each in entries], is_rare=True)
                for code, (words, tone) in APART_WORDS.items()
            ),
        ],
        is_stacked=True,
    )


def _shares(entries: Sequence[Outcomes], unit: Unit) -> Chart:
    return Chart(
        "shares",
        gettext("Rates"),
        gettext(
            "Of each %(unit)s: bounced as a share of all outcomes; clicked as a share of "
            "delivered. Nothing is drawn without outcomes."
        )
        % {"unit": _UNITS[unit]},
        [
            *(
                Line(words, tone, [_percent(each.share_of(name)) for each in entries], "line")
                for name, words, tone in (
                    ("undeliverable", gettext("Bounced"), "bad"),
                    ("clicked", gettext("Clicked"), "strong"),
                )
            ),
        ],
        unit="%",
    )


def _subscribers(statistics: Statistics) -> Chart:
    return Chart(
        "subscribers",
        gettext("Subscribers"),
        gettext("Active subscriptions at the end of each %(unit)s.")
        % {"unit": _UNITS[statistics.period.unit]},
        [
            Line(PLATFORM_NAMES[platform], platform, values, "line")
            for platform, values in statistics.subscribers.items()
        ],
        is_stacked=True,
    )


def _growth(statistics: Statistics) -> Chart:
    entries = statistics.changes.entries
    return Chart(
        "growth",
        gettext("Subscribers gained and lost"),
        gettext("By %(unit)s. Lost: unsubscribed, or expired by the push service.")
        % {"unit": _UNITS[statistics.period.unit]},
        [
            Line(gettext("Gained"), "good", [each.gained for each in entries]),
            Line(gettext("Lost"), "bad", [-each.lost for each in entries]),
        ],
        is_stacked=True,
    )


def _sent(statistics: Statistics) -> Chart:
    entries = statistics.notifications_sent.entries
    help_ = gettext("Notifications by the %(unit)s in which they ended.") % {
        "unit": _UNITS[statistics.period.unit]
    }
    return Chart(
        "sent", gettext("Notifications sent"), help_, [Line(gettext("Sent"), "link", entries)]
    )


def _hand_over(entries: Sequence[HandOvers | None], unit: Unit) -> Chart:
    return Chart(
        "hand-over",
        gettext("Time to hand-over"),
        gettext(
            "From a notification's time to its first delivery, and until every recipient "
            "had an outcome. Half of the notifications that ended in the %(unit)s took "
            "at most p50, and 95 %% at most p95."
        )
        % {"unit": _UNITS[unit]},
        [
            Line(
                f"{which.capitalize()}, {name}",
                tone,
                [_seconds(each, which, name) for each in entries],
                "line",
                dash,
            )
            for which, name, tone, dash in (
                ("first", "p50", "one", ()),
                ("first", "p95", "two", (6, 4)),
                ("last", "p50", "three", ()),
                ("last", "p95", "four", (6, 4)),
            )
        ],
        unit="s",
    )


def _seconds(of: HandOvers | None, which: str, name: str) -> float | None:
    return None if of is None else round(getattr(getattr(of, which), name), 3)


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 2)

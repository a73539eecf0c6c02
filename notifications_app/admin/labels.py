"""The results of labels over time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.access import channels_of, may_anywhere
from channels_app.console.lists import ChannelFilter, list_url
from channels_app.console.pages import ConsolePage
from channels_app.models import Role
from notifications_app.admin.charts import Chart, Charts, Line, chart_file
from notifications_app.admin.filters import chosen_channels
from notifications_app.reporting.campaigns import LABELS_AMONG, LabelResults, label_results
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.store import sql
from pushsvc.common.texts import later

WEEKS: Final = (4, 12, 52)
_MOST_SHOWN: Final = 100
_MOST_DRAWN: Final = 5
_MOST_OFFERED: Final = 500
_TONES: Final = ("one", "two", "three", "four", "five")
_DASHES: Final = ((), (6, 4), (2, 3), (12, 4), (10, 4, 2, 4))


class LabelsPage(ConsolePage):
    """`weeks` is a query parameter, and the channel as in the list of notifications."""

    title = later("Labels")
    http_method_names = ["get"]
    template_name = "console/notifications/labels.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        weeks, starts, found = _found(self.request)
        chosen = self.request.GET.get(ChannelFilter.parameter_name, "")
        query = {ChannelFilter.parameter_name: chosen} if chosen else {}
        files = (
            f"{reverse('admin:notification_labels_chart')}?{urlencode(query | {'weeks': weeks})}"
        )
        charts = _charts(starts, found, f"{files}&chart=")
        channels = channels_of(self.request.user).only("name").order_by("name", "pk")
        return super().get_context_data(
            tab="labels",
            may_write=may_anywhere(self.request.user, Role.WRITER),
            weeks=weeks,
            offered_weeks=WEEKS,
            channel_parameter=ChannelFilter.parameter_name,
            offered_channels=list(channels[:_MOST_OFFERED]),
            chosen_channel=chosen,
            rows=[(each, _list_url(each, query)) for each in found[:_MOST_SHOWN]],
            is_cut=len(found) > _MOST_SHOWN,
            most_drawn=_MOST_DRAWN,
            looked_at=LABELS_AMONG,
            charts=charts,
            **kwargs,
        )


class LabelsChart(ConsolePage):
    """A chart of the page as CSV. Raises Http404 if the page has none."""

    title = later("Chart")
    http_method_names = ["get"]

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        _, starts, found = _found(request)
        if not found:
            raise Http404
        return chart_file(request, _charts(starts, found, ""))


def _found(request: HttpRequest) -> tuple[int, list[datetime], list[LabelResults]]:
    """How many weeks, their starts, and the results."""
    weeks = next((each for each in WEEKS if str(each) == request.GET.get("weeks")), WEEKS[1])
    zone = reader_zone(request)
    today = sql.now().astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday())
    starts = [monday - timedelta(weeks=back) for back in reversed(range(weeks))]
    return weeks, starts, label_results(chosen_channels(request), starts[0], zone)


def _list_url(of: LabelResults, query: dict[str, str]) -> str:
    return list_url("notifications_app_notification", None, **query, label=of.label, kind="send")


def _charts(starts: Sequence[datetime], found: Sequence[LabelResults], files: str) -> Charts:
    """Of the labels with the most delivered."""
    drawn = found[:_MOST_DRAWN]
    return Charts(
        "day",
        starts,
        [
            Chart(
                "label-rates",
                gettext("Click rate by week"),
                gettext(
                    "Clicked as a share of the delivered, by the week in which notifications "
                    "were due. Nothing is drawn for a week without."
                ),
                [_line(each, starts, "clicked_share", place) for place, each in enumerate(drawn)],
                unit="%",
            ),
            Chart(
                "label-delivered",
                gettext("Delivered by week"),
                gettext("Recipients of the notifications that were due in the week."),
                [_line(each, starts, "delivered", place) for place, each in enumerate(drawn)],
            ),
        ],
        files,
    )


def _line(of: LabelResults, starts: Sequence[datetime], name: str, place: int) -> Line:
    values = [getattr(of.weeks[each], name) if each in of.weeks else None for each in starts]
    if name == "clicked_share":
        values = [None if value is None else round(100 * value, 2) for value in values]
    else:
        values = [value or 0 for value in values]
    return Line(of.label, _TONES[place], values, "line", _DASHES[place])

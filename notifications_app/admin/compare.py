"""Two to five notifications side by side."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from typing_extensions import override

from channels_app.console.access import may_anywhere
from channels_app.console.pages import ConsolePage, id_or_404, own_or_404
from channels_app.models import Role
from notifications_app.admin.charts import chart_file
from notifications_app.admin.results import comparison_chart, rows_of
from notifications_app.models import Notification
from notifications_app.reporting.comparing import compare
from pushsvc.common.store import sql
from pushsvc.common.texts import later

FEWEST: Final = 2
MOST: Final = 5


class ComparePage(ConsolePage):
    """Each query parameter `id` names a notification. Raises Http404 for one that does not exist or
    that the user may not see."""

    title = later("Compare")
    http_method_names = ["get"]
    template_name = "console/notifications/compare.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        may_write = may_anywhere(self.request.user, Role.WRITER)
        context = super().get_context_data(fewest=FEWEST, most=MOST, may_write=may_write, **kwargs)
        found = _named(self.request)
        return context | (_compared(found) if len(found) >= FEWEST else {})


class CompareChart(ConsolePage):
    """The chart of the page as CSV. Raises Http404 if the page would have none."""

    title = later("Chart")
    http_method_names = ["get"]

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        found = _named(request)
        if len(found) < FEWEST:
            raise Http404
        return chart_file(request, _compared(found)["charts"])


def _named(request: HttpRequest) -> list[Notification]:
    """The notifications that the query names. Empty if it names too many."""
    ids = dict.fromkeys(request.GET.getlist("id"))
    if len(ids) > MOST:
        return []
    return [own_or_404(Notification, request, id_or_404(each)) for each in ids]


def _compared(notifications: Sequence[Notification]) -> dict[str, Any]:
    comparison = compare(notifications, sql.now())
    rows = rows_of(comparison)
    query = urlencode([("id", each.pk) for each in notifications])
    files = f"{reverse('admin:notification_compare_chart')}?{query}&chart="
    charts = comparison_chart(comparison, rows, files)
    return {"rows": rows, "age": comparison.age, "charts": charts}

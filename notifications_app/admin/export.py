"""The list of notifications as CSV, with the list's filters and search."""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from typing_extensions import override

from channels_app.console.pages import ConsolePage
from notifications_app.models import Notification
from notifications_app.selectors import COUNTS
from pushsvc.common.console.admin import refuse_nul
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.http.csv_files import csv_response, zoned
from pushsvc.common.texts import later

_FIELDS: Final = (
    "channel",
    "name",
    "labels",
    "title",
    "body",
    "status",
    "target_platforms",
    "segment_id",
    "scheduled_at",
    "started_at",
    "finished_at",
    "is_test",
    *COUNTS,
)
COLUMNS: Final = ("notification_id", *_FIELDS)
_PAGE: Final = 1_000


class ListDownload(ConsolePage):
    """Allowed for every user who may see the list."""

    title = later("Export")
    http_method_names = ["get"]

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        refuse_nul(request)
        try:
            found = self.model_admin.get_changelist_instance(request).queryset
        except IncorrectLookupParameters as error:
            raise BadRequest("The address asks for what no filter offers.") from error
        zone = reader_zone(request)
        return csv_response("notifications.csv", zone, _pages(found.order_by("-id"), zone))


def _pages(
    notifications: QuerySet[Notification], zone: ZoneInfo
) -> Iterator[Sequence[Sequence[object]]]:
    yield [zoned(COLUMNS, zone)]
    rows = list(notifications[:_PAGE])
    while rows:
        yield [[row.id, *(_value(row, name) for name in _FIELDS)] for row in rows]
        rows = list(notifications.filter(id__lt=rows[-1].id)[:_PAGE])


def _value(row: Notification, name: str) -> object:
    # Labels have spaces, but no commas.
    return ", ".join(row.labels or ()) if name == "labels" else getattr(row, name)

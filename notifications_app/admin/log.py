"""The log of a notification's recipients as CSV."""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from typing_extensions import override

from channels_app import audit
from notifications_app.admin.page import OneNotification
from notifications_app.selectors import LogEntry, log_after
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.http.csv_files import csv_response, zoned
from pushsvc.common.texts import later

_PAGE: Final = 1_000


class LogDownload(OneNotification):
    """Allowed for every user who may see the notification. The audit log records each download."""

    title = later("Log of recipients")
    http_method_names = ["get"]

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        name = f"notification-{self.notification.pk}.csv"
        audit.record(self.notification, audit.Action.ACCESS, note="The log was downloaded.")
        zone = reader_zone(request)
        return csv_response(name, zone, _pages(self.notification.pk, zone))


def _pages(notification_id: UUID, zone: ZoneInfo) -> Iterator[Sequence[Sequence[object]]]:
    yield [zoned(LogEntry._fields, zone)]
    after = UUID(int=0)
    while rows := log_after(notification_id, after=after, limit=_PAGE):
        yield rows
        after = rows[-1].subscription_id

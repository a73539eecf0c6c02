"""The log of recipients as CSV, streamed in pages so that its size needs no memory."""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import Any, Final, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from typing_extensions import override

from channels_app import audit
from notifications_app.admin.page import OneNotification
from notifications_app.selectors import LogEntry, log_after
from pushsvc.common.timestamps import format_timestamp

COLUMNS: Final = (
    "subscription_id",
    "platform",
    "outcome",
    "code",
    "detail",
    "attempts",
    "finished_at",
    "clicked_at",
)
_PAGE: Final = 1_000
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


class LogDownload(OneNotification):
    """For everybody who may see the notification. Each download is recorded in the audit log."""

    title = "Log of recipients"
    http_method_names = ["get"]

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        name = f"notification-{self.notification.pk}.csv"
        audit.record(self.notification, audit.Action.ACCESS, note="The log was downloaded.")
        answer = StreamingHttpResponse(
            _pages(self.notification.pk),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
        return cast(HttpResponse, answer)  # Django serves it as one, but the types differ


def _pages(notification_id: UUID) -> Iterator[str]:
    yield _text([COLUMNS])
    after = UUID(int=0)
    while rows := log_after(notification_id, after=after, limit=_PAGE):
        yield _text([_cells(row) for row in rows])
        after = rows[-1].subscription_id


def _text(rows: list[tuple[str, ...]]) -> str:
    text = StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cells(row: LogEntry) -> tuple[str, ...]:
    return (
        str(row.subscription_id),
        row.platform,
        row.outcome,
        row.code,
        _harmless(row.detail),
        str(row.attempts),
        format_timestamp(row.finished_at) if row.finished_at else "",
        format_timestamp(row.clicked_at) if row.clicked_at else "",
    )


def _harmless(text: str) -> str:
    """Text of a push service that no spreadsheet reads as a formula (OWASP: CSV injection)."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text

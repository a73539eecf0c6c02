"""CSV files, streamed in pages, so that large files need no memory."""

import csv
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import StringIO
from typing import Final, cast
from zoneinfo import ZoneInfo

from django.http import HttpResponse, StreamingHttpResponse

from pushsvc.common.timestamps import format_timestamp

_LOCAL: Final = "%Y-%m-%d %H:%M:%S"
# Spreadsheets in Chinese, Japanese and Korean also read full-width signs as these.
_FULL_WIDTH: Final = "\uff1d\uff0b\uff0d\uff20"
_FORMULA_STARTS: Final = tuple(f"=+-@\t\r\n{_FULL_WIDTH}")
# Spreadsheets of many countries separate cells by semicolons, and do not see our quotes as such.
_LATER_CELL: Final = re.compile(rf"(?s)(?<=.)([;|\t\r\n][ \"']*)(?=[=+\-@{_FULL_WIDTH}])")


def csv_response(
    name: str, zone: ZoneInfo, pages: Iterable[Sequence[Sequence[object]]]
) -> HttpResponse:
    """A download with this file name and the rows of all pages. Times are on the clock of the zone,
    which headings name (`zoned`), in a format that spreadsheets take for times."""
    response = StreamingHttpResponse(
        (csv_text([_local(value, zone) for value in row] for row in page) for page in pages),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
    return cast(HttpResponse, response)  # Django serves it as one, but the types differ


def zoned(names: Sequence[str], zone: ZoneInfo) -> list[str]:
    """The headings of a download, with the zone of those whose values are times."""
    return [f"{name} ({zone.key})" if name.endswith("_at") else name for name in names]


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The lines of these rows. Cells are harmless to spreadsheets."""
    text = StringIO()
    csv.writer(text).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _local(value: object, zone: ZoneInfo) -> object:
    return f"{value.astimezone(zone):{_LOCAL}}" if isinstance(value, datetime) else value


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, list):
        return " ".join(value)
    return "" if value is None else _harmless(str(value))


def _harmless(text: str) -> str:
    """Escapes text that a spreadsheet would read as a formula (OWASP: CSV injection)."""
    text = _LATER_CELL.sub(r"\1'", text)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text

"""CSV files, streamed in pages, so that large files need no memory."""

import csv
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import StringIO
from typing import Final, cast

from django.http import HttpResponse, StreamingHttpResponse

from pushsvc.common.timestamps import format_timestamp

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
# Spreadsheets of many countries separate cells by semicolons, and do not see our quotes as such.
_LATER_CELL: Final = re.compile(r"(?s)(?<=.)([;|\t\r\n][ \"']*)(?=[=+\-@])")


def csv_response(name: str, pages: Iterable[Sequence[Sequence[object]]]) -> HttpResponse:
    """A download with this file name and the rows of all pages."""
    response = StreamingHttpResponse(
        map(csv_text, pages),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
    return cast(HttpResponse, response)  # Django serves it as one, but the types differ


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The lines of these rows. Cells are harmless to spreadsheets."""
    text = StringIO()
    csv.writer(text).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


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

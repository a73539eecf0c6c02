"""Reads files as people have them: CSV from spreadsheets, and JSON with one object a line.

A file is read line by line, so a large one needs no more memory than a small one.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple, cast

from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.strict_json import MalformedJSON, loads_strict
from subscriptions_app.importing.values import Result, refused

MOST_COLUMNS: Final = 200
_SEPARATORS: Final = ",;\t|"
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_POSITION: Final = re.compile(r"\(line [0-9]+, column ([0-9]+)\)")


class FileUnreadable(Invalid):
    """The file cannot be read further. `detail` names the line and the column."""

    def __init__(self, code: str, line: int, column: int | None, detail: str) -> None:
        where = f"Line {line}" if column is None else f"Line {line}, column {column}"
        super().__init__([FieldError("file", code, f"{where}: {detail}")])
        self.line, self.column = line, column


class Record(NamedTuple):
    """A record of a file and the line where it begins, or why it is refused."""

    line: int
    fields: Mapping[str, Any] | Result


def json_records(stream: BinaryIO) -> Iterator[Record]:
    """One object a line. A line that is no object is refused, and the next ones are read."""
    for line, raw in enumerate(_without_bom(stream), 1):
        if not raw.strip():
            continue
        if line == 1 and raw.lstrip().startswith(b"["):
            detail = "The file is one JSON array. Write one object a line: jq -c '.[]' FILE"
            raise FileUnreadable("not_json_lines", line, 1, detail)
        yield Record(line, _object(raw))


def _object(raw: bytes) -> Mapping[str, Any] | Result:
    try:
        value = loads_strict(raw)
    except MalformedJSON as error:
        return refused(error.code, "", _POSITION.sub(r"(column \1)", error.detail))
    if not isinstance(value, dict):
        return refused("not_an_object", "", "Must be a JSON object.")
    return value


def csv_records(stream: BinaryIO) -> Iterator[Record]:
    """One record for each row below the header, with its texts by column, without empty ones.

    The separator is that of the header: comma, semicolon, tab or bar. Excel's first line `sep=;` is
    read. Raises FileUnreadable.
    """
    lines = _Lines(stream)
    separator = lines.separator()
    rows = csv.reader(lines, delimiter=separator, strict=True)
    header: list[str] | None = None
    begin = lines.skipped + 1
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise FileUnreadable("malformed_csv", begin, None, _words(error)) from error
        if row is None:
            break
        if header is None:
            if any(name.strip() for name in row):
                header = _header(row, begin)
        elif any(row):
            yield Record(begin, _by_name(header, row))
        begin = lines.number + 1
    if header is None:
        raise FileUnreadable("empty", 1, 1, "The file is empty. Its first line names the columns.")


def _header(names: list[str], line: int) -> list[str]:
    header = [name.strip() for name in names]
    if len(header) > MOST_COLUMNS:
        detail = f"A file has at most {MOST_COLUMNS} columns."
        raise FileUnreadable("too_many", line, MOST_COLUMNS + 1, detail)
    for place, name in enumerate(header):
        if name and name in header[:place]:
            detail = f"Two columns have the name {name[:50]!r}."
            raise FileUnreadable("given_twice", line, place + 1, detail)
    return header


def _by_name(header: list[str], row: list[str]) -> Mapping[str, Any] | Result:
    """Programs leave out empty fields at the end of a row, and write separators after it."""
    if any(row[len(header) :]):
        detail = (
            f"The row has {len(row)} fields, but the header {len(header)}. A field that contains"
            " the separator must be in double quotes."
        )
        return refused("wrong_number_of_fields", "", detail)
    pairs = zip(header, row)  # noqa: B905 - the shorter one decides
    return {name: text.strip() for name, text in pairs if name and text.strip()}


def _words(error: csv.Error) -> str:
    if "unexpected end" in str(error) or "field larger" in str(error):
        return "A field that begins here with a double quote does not end."
    if "new-line" in str(error):
        return "Lines must end with a line feed. Save the file as CSV again."
    return "After a double quote that ends a field, the separator must follow."


class _Lines:
    """The lines of a text file with their number. Quoted fields contain line feeds, so a row may
    have several lines."""

    def __init__(self, stream: BinaryIO) -> None:
        self.number = 0
        self.skipped = 0
        self._lines = _decoded(stream)
        self._first: list[str] = []

    def separator(self) -> str:
        first = next(self._lines, "")
        if first.lower().startswith("sep=") and len(first.strip()) == len("sep=") + 1:
            self.number = self.skipped = 1
            return first[4]
        self._first = [first] if first else []
        plain = re.sub(r'"[^"]*"', "", first)
        return max(_SEPARATORS, key=plain.count)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._first.pop() if self._first else next(self._lines)
        self.number += 1
        return line


def _without_bom(stream: BinaryIO) -> Iterator[bytes]:
    """The lines as UTF-8, whatever the encoding of the file."""
    for line in _decoded(stream):
        yield line.encode("utf-8", "surrogatepass")


def _decoded(stream: BinaryIO) -> Iterator[str]:
    """The caller closes the stream, maybe before this generator ends."""
    source = io.BufferedReader(cast("io.RawIOBase", stream))
    try:
        encoding, size = _encoding(source.peek(4)[:4])
        source.read(size)
        yield from _utf_8(source) if encoding == "utf-8" else _utf_16(source, encoding)
    finally:
        if not stream.closed:
            source.detach()


def _utf_8(source: "io.BufferedReader[io.RawIOBase]") -> Iterator[str]:
    for number, raw in enumerate(source, 1):
        yield _text(raw, number)


def _utf_16(source: "io.BufferedReader[io.RawIOBase]", encoding: str) -> Iterator[str]:
    text, number = io.TextIOWrapper(source, encoding=encoding, newline="\n"), 0
    try:
        for line in text:
            number += 1
            yield line
    except UnicodeDecodeError as error:
        detail = "This is not UTF-16, as the file's first bytes say."
        raise FileUnreadable("not_utf_16", number + 1, None, detail) from error
    finally:
        if not source.closed:
            text.detach()


def _encoding(start: bytes) -> tuple[str, int]:
    """The encoding, and the length of its mark. UTF-16 without a mark has NULs beside ASCII."""
    for mark, encoding in _BOMS:
        if start.startswith(mark):
            return encoding, len(mark)
    if start[1::2] == b"\0\0":
        return "utf-16-le", 0
    if start[::2] == b"\0\0":
        return "utf-16-be", 0
    return "utf-8", 0


def _text(raw: bytes, number: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        column = len(raw[: error.start].decode()) + 1
        detail = "This is not UTF-8. Save the file as “CSV UTF-8”."
        raise FileUnreadable("not_utf_8", number, column, detail) from error

"""Reads files as people have them: CSV from spreadsheets, and JSON with one object a line.

A file is read line by line, so a large one needs no more memory than a small one.
"""

import codecs
import csv
import io
import re
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any, BinaryIO, Final, NamedTuple, cast

from django.utils.translation import gettext

from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.strict_json import MalformedJSON, is_storable, loads_strict
from subscriptions_app.importing.values import Result, refused

MOST_COLUMNS: Final = 200
# A spreadsheet takes such a text for a formula, in some languages with full-width signs too.
FORMULAS: Final = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*+"')
_MOST_HEADER_LINES: Final = 50
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
        where = gettext("Line %(line)s: %(detail)s")
        if column is not None:
            where = gettext("Line %(line)s, column %(column)s: %(detail)s")
        words = where % {"line": line, "column": column, "detail": detail}
        super().__init__([FieldError("file", code, words)])
        self.line, self.column = line, column


class Record(NamedTuple):
    """A record of a file and the line where it begins, or why it is refused."""

    line: int
    fields: Mapping[str, Any] | Result


def json_records(stream: BinaryIO, first_line: int | None = None) -> Iterator[Record]:
    """One object a line. A line that is no object is refused, and the next ones are read.
    `first_line`: if the stream is a later part of a file."""
    for line, raw in enumerate(_without_bom(stream), first_line or 1):
        if not raw.strip():
            continue
        if line == 1 and raw.lstrip().startswith(b"["):
            detail = gettext(
                "The file is one JSON array. Write one object a line: jq -c '.[]' FILE"
            )
            raise FileUnreadable("not_json_lines", line, 1, detail)
        yield Record(line, _object(raw))


def _object(raw: bytes) -> Mapping[str, Any] | Result:
    value = _value(raw, "")
    if isinstance(value, Result | dict):
        return value
    return refused("not_an_object", "", gettext("Must be a JSON object."))


def json_value(text: str, attr: str) -> Any | Result:
    """The value of JSON that is the text of a field, or why the row is refused."""
    return _value(text.encode("utf-8", "surrogatepass"), attr)


def _value(raw: bytes, attr: str) -> Any | Result:
    try:
        return loads_strict(raw)
    except MalformedJSON as error:
        return refused(error.code, attr, _POSITION.sub(r"(column \1)", error.detail))


class Table:
    """A CSV file whose header has been read. `first_line`: the line of the first record.

    The separator is that of the header: comma, semicolon, tab or bar. Excel's first line `sep=;` is
    read. Raises FileUnreadable.
    """

    def __init__(self, stream: BinaryIO, first_line: int | None = None) -> None:
        """`first_line`: if the stream is the header of a file and a later part of it."""
        self._lines = lines = _Lines(stream)
        self.separator = lines.separator()
        self._rows = csv.reader(lines, delimiter=self.separator, strict=True)
        self.header: list[str] = []
        while not self.header:
            begin = lines.begin_record()
            row = self._next()
            if row is None:
                detail = gettext("The file is empty. Its first line names the columns.")
                raise FileUnreadable("empty", 1, 1, detail)
            if any(name.strip() for name in row):
                self.header = _header(row, begin)
        if first_line is not None:
            lines.number = first_line - 1
        self.first_line = lines.number + 1

    def records(self) -> Iterator[Record]:
        """One record for each row, with its texts by column, without empty ones."""
        while True:
            begin = self._lines.begin_record()
            row = self._next()
            if row is None:
                return
            if any(row):
                yield Record(begin, _by_name(self.header, row))

    def _next(self) -> list[str] | None:
        try:
            return next(self._rows, None)
        except csv.Error as error:
            line, column = self._lines.place(self.separator)
            raise FileUnreadable("malformed_csv", line, column, _words(error)) from error


def csv_records(stream: BinaryIO, first_line: int | None = None) -> Iterator[Record]:
    """The records of a Table."""
    yield from Table(stream, first_line).records()


def _header(names: list[str], line: int) -> list[str]:
    header = [name.strip() for name in names]
    if len(header) > MOST_COLUMNS:
        detail = gettext("A file has at most %(most)s columns.") % {"most": MOST_COLUMNS}
        raise FileUnreadable("too_many", line, MOST_COLUMNS + 1, detail)
    for place, name in enumerate(header):
        if name and name in header[:place]:
            detail = gettext("Two columns have the name %(name)s.") % {"name": f"{name[:50]!r}"}
            raise FileUnreadable("given_twice", line, place + 1, detail)
        if not is_storable(name):
            detail = gettext("Must not contain NUL or half of a surrogate pair.")
            raise FileUnreadable("malformed", line, place + 1, detail)
    return header


def _by_name(header: list[str], row: list[str]) -> Mapping[str, Any] | Result:
    """Programs leave out empty fields at the end of a row, and write separators after it."""
    if any(row[len(header) :]):
        detail = gettext(
            "The row has %(fields)s fields, but the header %(header)s. A field that "
            "contains the separator must be in double quotes."
        ) % {"fields": len(row), "header": len(header)}
        return refused("wrong_number_of_fields", "", detail)
    pairs = zip(header, map(_typed, row))  # noqa: B905 - the shorter one decides
    return {name: text for name, text in pairs if name and text}


def _typed(text: str) -> str:
    """Without the apostrophe that our CSV files put before what a spreadsheet would take for a
    formula."""
    text = text.strip()
    return text[1:] if text[:1] == "'" and text[1:2] in FORMULAS else text


def _words(error: csv.Error) -> str:
    if "unexpected end" in str(error) or "field larger" in str(error):
        return gettext("A field that begins here with a double quote does not end.")
    if "new-line" in str(error):
        return gettext("Lines must end with a line feed. Save the file as CSV again.")
    return gettext("After a double quote that ends a field, the separator must follow.")


class _Lines:
    """The lines of a text file with their number. Quoted fields contain line feeds, so a row may
    have several lines."""

    def __init__(self, stream: BinaryIO) -> None:
        self.number = 0
        self._record: list[str] = []
        self._lines = _decoded(stream)
        self._first: list[str] = []

    def separator(self) -> str:
        first = next(self._lines, "")
        if first.lower().startswith("sep=") and len(first.strip()) == len("sep=") + 1:
            self.number = 1
            return first[4]
        first_lines = [first]
        while "".join(first_lines).count('"') % 2 and len(first_lines) < _MOST_HEADER_LINES:
            first_lines.append(next(self._lines, ""))
        self._first = [line for line in first_lines if line]
        plain = re.sub(r'"[^"]*"', "", "".join(first_lines))
        return max(_SEPARATORS, key=plain.count)

    def begin_record(self) -> int:
        """The line where the next record begins."""
        self._record.clear()
        return self.number + 1

    def place(self, separator: str) -> tuple[int, int]:
        """The line and column at which csv.reader stopped in the record."""
        text = "".join(self._record)
        at = _stop(text, separator)
        begun = self.number - len(self._record) + 1
        return begun + text.count("\n", 0, at), at - text.rfind("\n", 0, at)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._first.pop(0) if self._first else next(self._lines)
        self.number += 1
        self._record.append(line)
        return line


def _stop(text: str, separator: str) -> int:
    at, ends = 0, re.compile(f"[{re.escape(separator)}\r\n]")
    while at < len(text):
        if text[at] == '"':
            quoted = _QUOTED.match(text, at)
            if quoted is None:
                return at
            at = quoted.end()
            if text[at : at + 1] not in ("", separator, "\r", "\n"):
                return at
        end = ends.search(text, at)
        if end is None or (end[0] == "\r" and text[end.end() :] not in ("", "\n")):
            return end.start() if end else at
        at = end.end()
    return 0


def _without_bom(stream: BinaryIO) -> Iterator[bytes]:
    """The lines as UTF-8, whatever the encoding of the file."""
    for line in _decoded(stream):
        yield line.encode("utf-8", "surrogatepass")


def _decoded(stream: BinaryIO) -> Iterator[str]:
    """The caller closes the stream, maybe before this generator ends."""
    source, number = io.BufferedReader(cast("io.RawIOBase", stream)), 0
    try:
        encoding, size = _encoding(source.peek(4)[:4])
        source.read(size)
        with closing(_utf_8(source) if encoding == "utf-8" else _utf_16(source, encoding)) as lines:
            for line in lines:
                number += 1
                yield line
    except (EOFError, OSError, zlib.error) as error:
        # Not translated, because only commands read such files.
        detail = f"The file cannot be read from here, maybe because it is not complete: {error}."
        raise FileUnreadable("unreadable", number + 1, None, detail) from error
    finally:
        if not stream.closed:
            source.detach()


def _utf_8(source: "io.BufferedReader[io.RawIOBase]") -> Generator[str, None, None]:
    for number, raw in enumerate(source, 1):
        yield _text(raw, number)


def _utf_16(source: "io.BufferedReader[io.RawIOBase]", encoding: str) -> Generator[str, None, None]:
    text, number = io.TextIOWrapper(source, encoding=encoding, newline="\n"), 0
    try:
        for line in text:
            number += 1
            yield line
    except UnicodeDecodeError as error:
        detail = gettext("This is not UTF-16, as the file's first bytes say.")
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
        detail = gettext("This is not UTF-8. Save the file as “CSV UTF-8”.")
        raise FileUnreadable("not_utf_8", number, column, detail) from error

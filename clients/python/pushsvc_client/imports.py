"""Divides a file of subscribers into parts that the service takes, and sums up their results."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pushsvc_client.calls import Call, Patience, Steps, answered
from pushsvc_client.errors import Refused
from pushsvc_client.schemas import ImportOutput

Rows: TypeAlias = Iterable[str] | Iterable[Mapping[str, Any]]
Format: TypeAlias = Literal[
    "pushsvc_ndjson",
    "people_ndjson",
    "webpush_json",
    "tokens_csv",
    "onesignal_csv",
    "pinpoint_json",
]
MOST_BYTES: Final = 1024 * 1024
MOST_ROWS: Final = 5_000


@dataclass(frozen=True)
class Import(Call[ImportOutput]):
    """One call for each part."""

    rows: Rows = ()
    is_csv: bool = False


class Part(NamedTuple):
    """`before`: how many lines of the file come before the part, less those of its header."""

    body: bytes
    before: int


def imported(given: Import, patience: Patience) -> Steps[ImportOutput]:
    """Returns the sum of all parts. Lines are those of the whole file."""
    total = ImportOutput(
        created=0, updated=0, unchanged=0, refused=0, refusals=[], attributes_dropped=[]
    )
    kind = "text/csv" if given.is_csv else "application/x-ndjson"
    for part in parts(given.rows, is_csv=given.is_csv):
        call: Call[ImportOutput] = Call(
            given.method,
            given.path,
            body=part.body,
            params=given.params,
            headers={"Content-Type": kind},
        )
        try:
            found = yield from answered(call, patience)
        except Refused as error:
            if part.before:
                error.add_note(f"Add {part.before} to a line to get the line of the whole file.")
            raise
        _add(total, found, part.before)
    return total


def _add(total: ImportOutput, found: ImportOutput, before: int) -> None:
    for name in ("created", "updated", "unchanged", "refused"):
        total[name] += found[name]
    total["refusals"] += [{**each, "line": each["line"] + before} for each in found["refusals"]]
    dropped = {*total["attributes_dropped"], *found["attributes_dropped"]}
    total["attributes_dropped"] = sorted(dropped)


def parts(rows: Rows, *, is_csv: bool) -> Iterator[Part]:
    """Each part of a CSV file begins with its header."""
    records = _records(rows, is_csv=is_csv)
    header = _header(records) if is_csv else ""
    of_header = header.count("\n")
    first = number = of_header  # lines before the part, and before the next record
    texts: list[bytes] = []
    size = len(header.encode())
    for record in records:
        text = record.encode()
        if texts and (len(texts) == MOST_ROWS or size + len(text) > MOST_BYTES):
            yield Part(header.encode() + b"".join(texts), first - of_header)
            first, texts, size = number, [], len(header.encode())
        texts.append(text)
        size += len(text)
        number += record.count("\n")
    if texts or header:
        yield Part(header.encode() + b"".join(texts), first - of_header)


def _records(rows: Rows, *, is_csv: bool) -> Iterator[str]:
    """Rows of one or more lines, because a quoted field of a CSV file may have several."""
    record, quotes = "", 0
    for row in rows:
        if isinstance(row, bytes):
            raise TypeError('open the file as text: open(name, encoding="utf-8-sig", newline="")')
        text = row if isinstance(row, str) else json.dumps(row)
        record += text if text.endswith("\n") else text + "\n"
        quotes += text.count('"')
        if not is_csv or quotes % 2 == 0 or len(record) > MOST_BYTES:
            yield record
            record, quotes = "", 0
    if record:
        yield record


def _header(records: Iterator[str]) -> str:
    """The first line with names, with what comes before it, such as Excel's `sep=;`."""
    header = ""
    for record in records:
        header += record
        words = record.strip("\ufeff \t\r\n,;|")
        if words and not words.lower().startswith("sep="):
            break
    return header

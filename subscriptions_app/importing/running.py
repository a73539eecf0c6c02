"""Imports what a file says, slice by slice, and sums up the results."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from channels_app.models import Channel
from subscriptions_app.importing.files import FileUnreadable
from subscriptions_app.importing.formats import Read
from subscriptions_app.importing.people import PeopleImport
from subscriptions_app.importing.rehearsal import Rehearsal
from subscriptions_app.importing.services import SLICE, subscriptions_import
from subscriptions_app.importing.values import Options, Outcome, PersonRow, Result, Row


class Judged(NamedTuple):
    line: int
    result: Result

    def as_refusal(self) -> dict[str, object]:
        _, code, attr, detail = self.result
        return {"line": self.line, "code": code, "attr": attr, "detail": detail}


@dataclass(slots=True)
class Summary:
    """How many rows there are of each outcome, and how many were refused for each code."""

    outcomes: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(Outcome, 0)))
    codes: Counter[str] = field(default_factory=Counter)

    def add(self, judged: Iterable[Judged]) -> None:
        for _, result in judged:
            self.outcomes[result.outcome] += 1
            if result.outcome == Outcome.REFUSED:
                self.codes[result.code] += 1


def imported(
    *, channel: Channel, reads: Iterable[Read], options: Options
) -> Iterator[Sequence[Judged]]:
    """Imports the rows, SLICE in each step. What a step returns is stored. Raises what reading
    raises; then the rows that were read before are stored, and returned before."""
    source = _Source(reads)
    readable = source.rows()
    with Rehearsal() if options.dry_run else nullcontext() as rehearsal:
        people = PeopleImport(channel, rehearsal)
        while part := list(islice(readable, SLICE)):
            rows = [read.row for read in part if isinstance(read.row, Row)]
            results = subscriptions_import(
                channel=channel, rows=rows, options=options, rehearsal=rehearsal
            )
            persons = [read.row for read in part if isinstance(read.row, PersonRow)]
            stored, merged = iter(results), iter(people.store(persons))
            yield [Judged(read.line, _result(read.row, stored, merged)) for read in part]
    if source.error is not None:
        raise source.error


def _result(
    row: Row | PersonRow | Result, stored: Iterator[Result], merged: Iterator[Result]
) -> Result:
    if isinstance(row, Result):
        return row
    return next(stored if isinstance(row, Row) else merged)


class _Source:
    """The rows of a file up to an error, which is kept, so that the rows before it are stored."""

    def __init__(self, reads: Iterable[Read]) -> None:
        self._reads = iter(reads)
        self.error: FileUnreadable | None = None

    def rows(self) -> Iterator[Read]:
        try:
            yield from self._reads
        except FileUnreadable as error:
            self.error = error

"""A part of a sandbox that misbehaves on demand, and keeps a receipt of every request.

Any thread may call its methods while the server runs: each reads or writes one attribute or list.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from sandbox.behaviours import Behaviour, Repertoire
from sandbox.receipts import Receipt, ReceiptCounts

R = TypeVar("R", bound=Receipt)


@dataclass(slots=True, eq=False, kw_only=True)
class Behaving(Generic[R]):
    """`receipts`: of all requests, oldest first."""

    repertoire: ClassVar[Repertoire]

    receipts: list[R] = field(default_factory=list)
    behaviour: Behaviour = field(default_factory=Behaviour)

    def behave(self, mode: str, *, times: int | None = None, **options: object) -> None:
        """Answer the next `times` valid requests (None: all) with `mode`, then accept again.

        Replaces what was set before. Raises ValueError for options that the mode does not have.
        """
        self.behaviour = self.repertoire.behaviour(mode, times, options)

    def next_behaviour(self) -> Behaviour:
        """The behaviour for the current request. Uses up one of its times."""
        behaviour = self.behaviour
        if behaviour.remaining is None:
            return behaviour
        if behaviour.remaining <= 0:
            return Behaviour()
        behaviour.remaining -= 1
        return behaviour

    def totals(self) -> ReceiptCounts:
        return ReceiptCounts.of(self.receipts)

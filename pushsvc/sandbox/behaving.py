"""What can be told to misbehave, and notes every request that it was sent.

All methods are plain reads and writes, one attribute or list at a time, so that another thread
may call them while the server's own runs.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from pushsvc.sandbox.behaviours import Behaviour, Repertoire
from pushsvc.sandbox.receipts import Receipt, Totals

R = TypeVar("R", bound=Receipt)


@dataclass(slots=True, eq=False, kw_only=True)
class Behaving(Generic[R]):
    """`receipts`: every request, oldest first."""

    repertoire: ClassVar[Repertoire]

    receipts: list[R] = field(default_factory=list)
    behaviour: Behaviour = field(default_factory=Behaviour)

    def behave(self, mode: str, *, times: int | None = None, **options: object) -> None:
        """Meet the next `times` valid requests (None: all) with `mode`, then accept again.

        Replaces what was set before. Raises ValueError for options that the mode does not have.
        """
        self.behaviour = self.repertoire.behaviour(mode, times, options)

    def next_behaviour(self) -> Behaviour:
        """The behaviour of the request at hand; uses up one of its times."""
        behaviour = self.behaviour
        if behaviour.remaining is None:
            return behaviour
        if behaviour.remaining <= 0:
            return Behaviour()
        behaviour.remaining -= 1
        return behaviour

    def totals(self) -> Totals:
        return Totals.of(self.receipts)

"""The result of a figure, and its format."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from statistics import median

from typing_extensions import override

from bench.meter import Load

_HEAD = """\
| what | median | min | max | unit | ratio | aim | beside it |
|---|--:|--:|--:|---|--:|--:|---|"""


@dataclass(frozen=True)
class ResultRow:
    """One line of a table, with a value for each round. `ratio`: compared with the aim, if it is
    not the value itself. `note`: a remark."""

    what: str
    unit: str
    values: Sequence[float]
    ratio: float | None = None
    aim: str = ""
    note: str = ""

    @property
    def median(self) -> float:
        return median(self.values)

    @override
    def __str__(self) -> str:
        figures = (self.median, min(self.values), max(self.values))
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        cells = [self.what, *map(_shown, figures), self.unit, ratio, self.aim, self.note]
        return f"| {' | '.join(cells)} |"


@dataclass
class Result:
    """A table, the load during its rounds, and sentences that belong to it."""

    load: Load = field(default_factory=Load)
    rows: list[ResultRow] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @override
    def __str__(self) -> str:
        table = "\n".join([_HEAD, *map(str, self.rows)])
        return "\n\n".join([table, " ".join([*self.remarks, str(self.load)])])


@dataclass(frozen=True)
class Options:
    """How much is measured. bench/RESULTS.md names options that are not the default."""

    rounds: int = 3
    messages: int = 6_000
    in_flight: int = 100
    recipients: int = 1_000_000
    recorded: int = 100_000
    requests: int = 200
    sends: int = 50
    scheduled: int = 1_000
    limited: int = 3_000
    stopped: int = 100_000
    subscribers: int = 1_000_000
    deliveries: int = 3_000_000

    @property
    def changed(self) -> str:
        """Options that are not the default, as arguments of make."""
        words = [
            f"--{field.name.replace('_', '-')} {getattr(self, field.name)}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f' ARGS="{" ".join(words)}"' if words else ""


def ratio(mine: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The median ratio of the rounds. None if a value of `theirs` is 0, less than the clock can
    measure."""
    if 0 in theirs:
        return None
    return median(own / its for own, its in zip(mine, theirs, strict=True))


def _shown(value: float) -> str:
    """The value with three digits, without an exponent."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"

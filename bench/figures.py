"""The figures by name, in the order of bench/RESULTS.md."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench import sending
from bench.results import Options, Result


@dataclass(frozen=True)
class Figure:
    title: str
    measure: Callable[[Options], Result]


FIGURES: Final[dict[str, Figure]] = {
    "web": Figure("Web push, beside libraries that only send", sending.web),
    "ios": Figure("iOS, beside libraries that only send", sending.ios),
    "android": Figure("Android, beside libraries that only send", sending.android),
}

"""Skips tests whose programs are not installed. tests/plugin.py counts them at the end of a run."""

from collections.abc import Iterable, Iterator
from typing import NoReturn

import pytest

PROGRAMS = "make programs"
CHART = "make chart"
_RUN = {PROGRAMS: f"`{PROGRAMS}` (as root, on Debian)", CHART: f"`{CHART}`"}


def reason(name: str, command: str = PROGRAMS) -> str:
    return f"{name} is missing (`{command}` installs it)"


def skip_without(name: str, command: str = PROGRAMS) -> NoReturn:
    pytest.skip(reason(name, command))


def summary(skipped: Iterable[pytest.TestReport]) -> str:
    """A sentence for each command that installs what skipped tests need; empty if there are
    none."""
    return " ".join(_sentences([str(report.longrepr) for report in skipped]))


def _sentences(reasons: list[str]) -> Iterator[str]:
    for command, shown in _RUN.items():
        count = sum(f"`{command}` installs it" in each for each in reasons)
        if count:
            tests = "1 test was" if count == 1 else f"{count} tests were"
            yield f"{tests} skipped because programs are missing: run {shown}."

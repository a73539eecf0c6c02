"""Skips tests whose programs are not installed. tests/plugin.py counts them at the end of a run."""

from collections.abc import Iterable
from typing import NoReturn

import pytest

COMMAND = "make programs"


def reason(name: str) -> str:
    return f"{name} is missing (`{COMMAND}` installs it)"


def skip_without(name: str) -> NoReturn:
    pytest.skip(reason(name))


def summary(skipped: Iterable[pytest.TestReport]) -> str:
    """One sentence about the tests that were skipped for this reason; empty if there are none."""
    count = sum(COMMAND in str(report.longrepr) for report in skipped)
    if not count:
        return ""
    tests = "1 test was" if count == 1 else f"{count} tests were"
    return f"{tests} skipped because programs are missing: run `{COMMAND}` (as root, on Debian)."

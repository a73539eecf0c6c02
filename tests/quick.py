"""Chooses the tests of `make test-fast`: as many of the quickest as fit into a time.

Runs in parallel record how long each test took, in pytest's cache. `--within SECONDS` runs the
quickest of them, all that are not recorded, and all of files that git shows as changed.
"""

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

_KEY: Final = "pushsvc/seconds"
_START: Final = 48.0  # to start the servers, collect the tests, and go from one to the next
_taken: defaultdict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run the quickest tests that fit into this time, by the times of the runs before"
    parser.addoption("--within", type=float, metavar="SECONDS", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    within = config.getoption("--within")
    seconds = recorded(config)
    if within is None or not seconds:
        return
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ids = [item.nodeid for item in items]
    kept = chosen(ids, seconds, budget=(within - _START) * processes, changed=_changed())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def chosen(
    ids: Iterable[str], seconds: Mapping[str, float], *, budget: float, changed: Iterable[str] = ()
) -> set[str]:
    """Those of the tests that run: the quickest, whose times together are at most the budget, and
    those without a time or of changed files."""
    own = tuple(f"{path}::" for path in changed)
    kept = {each for each in ids if each not in seconds or each.startswith(own)}
    # Of tests that took as long, the same in each of pytest's processes.
    for each in sorted(set(ids) - kept, key=lambda id_: (seconds[id_], id_)):
        budget -= seconds[each]
        if budget < 0:
            break
        kept.add(each)
    return kept


def recorded(config: pytest.Config) -> dict[str, float]:
    """By test, the seconds of its last run in parallel."""
    return config.cache.get(_KEY, {}) if config.cache else {}


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _taken[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    # Pytest's workers run tests, and the process that started them has all their reports.
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        return
    if config.cache and _taken:
        config.cache.set(
            _KEY, recorded(config) | {id_: round(its, 4) for id_, its in _taken.items()}
        )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    within = config.getoption("--within")
    if within is None:
        return
    known = len(recorded(config))
    words = "No times are recorded yet, so all tests ran. The next run is limited."
    if known > len(_taken):
        words = f"{len(_taken):,} of {known:,} tests fit into {within:g} s. `make test` runs all."
    terminalreporter.write_line(words)


def _changed() -> Iterator[str]:
    """Files of tests that differ from the last commit."""
    command = ["git", "status", "--porcelain", "--untracked-files=all", "--", "tests"]
    folder = Path(__file__).parent.parent
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    for line in found.stdout.splitlines():
        yield line[3:].rpartition(" -> ")[2].strip('"')

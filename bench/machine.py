"""Describes the machine on which the figures were measured."""

import platform
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil

from bench.processes import CHECKOUT

_NOT_MEASURED = (":!bench", ":!docs", ":!tests", ":!*.md")
_TOOLS = {
    "Go": ("go", "version"),
    "Rust": ("rustc", "--version"),
    "Node": ("node", "--version"),
}


def described() -> str:
    """The head of bench/RESULTS.md."""
    memory = psutil.virtual_memory().total / 1e9
    return f"""# Results of the bench

`make bench` writes this file. [performance.md](../docs/performance.md) explains the figures. The
ratio of a peer is pushsvc's figure divided by the peer's, as the median of the rounds. A busy
machine makes every figure worse, a ratio less so. A peer connects anew in each round, so with
few messages it pays more for connections. Compare only runs of equal counts.

- {_processor()}, {psutil.cpu_count()} cores, {memory:.0f} GB, Linux {platform.release()}
- Python {platform.python_version()}; {"; ".join(_tools())}"""


def moment() -> str:
    """The current time, and the last commit that changed measured code."""
    now = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%d %H:%M UTC")
    commit = _said("git", "log", "-1", "--format=%h", "--", ".", *_NOT_MEASURED)
    return f"{now}, commit {commit}"


def _tools() -> list[str]:
    return [f"{name}: {_said(*command)}" for name, command in _TOOLS.items()]


def _said(program: str, *arguments: str) -> str:
    found = shutil.which(program)
    if found is None:
        return "not installed"
    said = subprocess.run(
        [found, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    return said.stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return platform.machine()

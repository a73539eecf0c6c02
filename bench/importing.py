"""Measures `manage.py import_subscribers` beside as many requests to `/subscribe`, and its memory.

The command imports tables of tokens. The smallest one is subtracted, because it takes little more
than the start of the process. Requests come one after the other on one connection.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import requests
from bench.database import own_database
from bench.processes import CHECKOUT
from bench.results import Options, Result, ResultRow, ratio
from bench.web import running_web

if TYPE_CHECKING:
    from channels_app.models import Channel

_SMALL: Final = 1_000  # rows
_FEWER: Final = 10  # times fewer rows than `subscribers` in each round
_HEADER: Final = "platform,token,external_id,language,timezone,plan,tags\n"


def measure(options: Options) -> Result:
    result = Result()
    with own_database(), tempfile.TemporaryDirectory() as folder:
        from channels_app.services import channel_create

        channel = channel_create(name="Bench")
        channel.android_enabled, channel.max_subscriptions = True, 10**8
        channel.save()
        requests.prepare()
        _measure(result, options, channel, Path(folder) / "tokens.csv")
    return result


def _measure(result: Result, options: Options, channel: "Channel", file: Path) -> None:
    many = options.subscribers // _FEWER
    single: list[float] = []
    imported: list[float] = []
    small: list[float] = []
    large: list[float] = []
    for number in range(options.rounds):
        before = _subscribe(channel, f"before-{number}", options.requests)
        start, memory = _import(channel, file, f"small-{number}", _SMALL)
        small.append(memory)
        seconds, memory = _import(channel, file, f"large-{number}", many)
        large.append(memory)
        after = _subscribe(channel, f"after-{number}", options.requests)
        single.append(2 * options.requests / (before + after))
        imported.append((many - _SMALL) / (seconds - start))
    result.rows += [
        ResultRow("single requests to /subscribe", "a second", single),
        ResultRow("rows of an import", "a second", imported, ratio(imported, single), "20"),
        ResultRow(f"memory of an import of {_SMALL:,} rows", "MiB", small),
        ResultRow(
            f"memory of an import of {many:,} rows", "MiB", large, ratio(large, small), "1.1"
        ),
    ]


def _subscribe(channel: "Channel", name: str, count: int) -> float:
    """Makes so many requests, and returns the seconds. With its own web process, because an import
    takes longer than a connection may be silent."""
    with running_web() as web:
        web.ask(requests.subscribe(channel, name))
        begin = time.perf_counter()
        for each in range(count):
            web.ask(requests.subscribe(channel, f"{name}-{each}"))
        return time.perf_counter() - begin


def _import(channel: "Channel", file: Path, name: str, count: int) -> tuple[float, float]:
    """Imports so many new phones. Returns the seconds, and the most memory of the process."""
    with file.open("w") as table:
        table.write(_HEADER)
        for each in range(count):
            token = f"cdEf_-0123456789abcdef:APA91b-{name}-{each}"
            table.write(f"android,{token},{name}-{each},de,Europe/Berlin,pro,news sport\n")
    command = [sys.executable, "manage.py", "import_subscribers", str(channel.pk), str(file)]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, "--format=tokens_csv", "--json"], cwd=CHECKOUT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError("the import failed")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024

"""Other processes of ours, in an environment that holds nothing of the test run's."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    version = os.environ.get("PGSERVER_POSTGRES_VERSION")
    if version:
        kept["PGSERVER_POSTGRES_VERSION"] = version
    return {**kept, "PUSHSVC_HOME": str(home), **more}


def spawn(arguments: list[str], home: Path, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=CHECKOUT,
        env=environment(home, **more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], *, seconds: float = 120) -> str:
    output, _ = process.communicate(timeout=seconds)
    return output


def read_until(process: subprocess.Popen[str], line: str) -> list[str]:
    """Reads the output up to this line; returns what came before it."""
    before: list[str] = []
    assert process.stdout is not None
    for said in process.stdout:
        if said.strip() == line:
            return before
        before.append(said.rstrip())
    raise AssertionError(f"ended without {line!r}: {before}")


def kill(pid: int) -> None:
    """SIGKILL, and waits until the process is gone or waits to be reaped."""
    process = psutil.Process(pid)
    process.kill()
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)


def running(home: Path) -> list[str]:
    """Command lines of the processes that name this home in theirs or in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            shown = [*process.cmdline(), process.environ().get("PUSHSVC_HOME", "")]
            if process.status() != psutil.STATUS_ZOMBIE and any(
                str(home) in word for word in shown
            ):
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def eventually(is_so: Callable[[], object], *, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def eventually_none_running(home: Path) -> list[str]:
    """The processes that still run after a while; a test expects none."""
    with contextlib.suppress(AssertionError):
        eventually(lambda: not running(home), seconds=30)
    return running(home)


def set_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """To psutil, the system's clock was set forward by an hour: the kernel reports another time of
    the boot, and always has."""
    booted = psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + 3600)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0

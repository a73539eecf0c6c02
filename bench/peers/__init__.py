"""Other libraries that send, for comparison. Each is built if its toolchain is installed.

A peer is a program: `PROGRAM LIBRARY WORK COUNT IN_FLIGHT`. WORK is the JSON file of
`bench.work`. The program prints `ready` and waits for a line. It sends COUNT messages with
IN_FLIGHT at once, prints `failed N`, and waits for a second line before it ends. So its start is
not measured, and its processor time can be read while it runs.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from bench.meter import Spent, spending
from bench.processes import CHECKOUT
from bench.sink import Sink
from bench.work import Work
from pushsvc.common.platforms import Platform

_FOLDER: Final = Path(__file__).resolve().parent
_PYTHON: Final = CHECKOUT / ".venv" / "peers" / "bin" / "python"
_Command = list[str]


class Missing(Exception):
    """The peer cannot be built or run on this machine; the text says why."""


@dataclass(frozen=True)
class Peer:
    """A library. `command` builds the program that calls it, or raises Missing. `package` is its
    name in the file that pins it. `aim` is the most that pushsvc should cost, as a ratio."""

    library: str
    shown: str
    command: Callable[[], _Command]
    pins: str
    package: str
    aim: str

    @property
    def version(self) -> str:
        text = (CHECKOUT / self.pins).read_text()
        found = re.search(rf"(?m)^\W*{re.escape(self.package)}[^\d\n]+([\d.]+)", text)
        return found[1] if found else ""

    def spend(self, work: Work, sink: Sink, count: int, in_flight: int) -> Spent:
        """Sends once. Raises Missing, or RuntimeError unless the sink got all messages."""
        arguments = [self.library, str(work.file), str(count), str(in_flight)]
        with _started([*self.command(), *arguments], sink.authority) as program:
            _expect(program, "ready")
            with sink.expecting(count), spending(program.pid) as spent:
                _order(program)
                _expect(program, "failed 0")
            _order(program)
        return spent


def _build(tool: str, *arguments: str, folder: Path) -> None:
    """Runs a build tool, once. The tool itself checks what is up to date, but this takes time."""
    program = shutil.which(tool)
    if program is None:
        raise Missing(f"{tool} is not installed")
    built = subprocess.run(
        [program, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise Missing(f"{tool} failed: {built.stderr.strip()[-200:]}")


def _built() -> Path:
    """The folder of built programs, which is kept for the next run."""
    folder = Path(os.environ.get("PUSHSVC_HOME", CHECKOUT / "var")).resolve() / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _go() -> _Command:
    program = str(_built() / "go-peers")
    _build("go", "build", "-mod=readonly", "-o", program, ".", folder=_FOLDER / "go")
    return [program]


@cache
def _rust() -> _Command:
    target = _built() / "rust"
    arguments = ("build", "--release", "--locked", "--target-dir", str(target))
    _build("cargo", *arguments, folder=_FOLDER / "rust")
    return [str(target / "release" / "peers")]


@cache
def _node() -> _Command:
    folder = _built() / "node"
    shutil.copytree(_FOLDER / "node", folder, dirs_exist_ok=True)
    if not (folder / "node_modules").exists():
        _build("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", folder=folder)
    return [shutil.which("node") or "node", str(folder / "main.js")]


def _python() -> _Command:
    if not _PYTHON.exists():
        raise Missing("requirements/peers.txt is not installed (make bench installs it)")
    return [str(_PYTHON), "-W", "ignore", str(_FOLDER / "main.py")]


_GO_PINS, _PYTHON_PINS = "bench/peers/go/go.mod", "requirements/peers.txt"
_RUST_PINS, _NODE_PINS = "bench/peers/rust/Cargo.toml", "bench/peers/node/package.json"
_WEBPUSH_GO = "github.com/SherClockHolmes/webpush-go"

PEERS: Final[dict[Platform, list[Peer]]] = {
    Platform.WEB: [
        Peer(
            "web-push-kept",
            "web-push (Rust), signature kept by the caller",
            _rust,
            _RUST_PINS,
            "web-push",
            "1.0",
        ),
        Peer("web-push", "web-push (Rust)", _rust, _RUST_PINS, "web-push", ""),
        Peer("webpush-go", "webpush-go", _go, _GO_PINS, _WEBPUSH_GO, "1.1"),
        Peer("web-push-node", "web-push (Node)", _node, _NODE_PINS, "web-push", "0.3"),
        Peer(
            "pywebpush-session",
            "pywebpush, requests session",
            _python,
            _PYTHON_PINS,
            "pywebpush",
            "0.3",
        ),
        Peer("pywebpush-async", "pywebpush, asyncio", _python, _PYTHON_PINS, "pywebpush", "0.3"),
    ],
    Platform.IOS: [
        Peer("aioapns", "aioapns", _python, _PYTHON_PINS, "aioapns", "0.35"),
        Peer("apns2", "apns2 (Go)", _go, _GO_PINS, "github.com/sideshow/apns2", "2.5"),
    ],
    Platform.ANDROID: [
        Peer(
            "firebase_admin",
            "firebase_admin send_each_async",
            _python,
            _PYTHON_PINS,
            "firebase-admin",
            "0.1",
        ),
        Peer(
            "firebase-admin-go",
            "firebase-admin-go",
            _go,
            _GO_PINS,
            "firebase.google.com/go/v4",
            "2.5",
        ),
    ],
}


@contextmanager
def _started(command: _Command, authority: Path) -> Iterator["subprocess.Popen[str]"]:
    """Starts a peer. GOMAXPROCS=1, so that it uses one core, like pushsvc's one process."""
    trusted = {
        name: str(authority)
        for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
    }
    program = subprocess.Popen(
        command,
        env={**os.environ, **trusted, "GOMAXPROCS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with program:
        try:
            yield program
        except BaseException:
            program.kill()
            raise


def _order(program: "subprocess.Popen[str]") -> None:
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()


def _expect(program: "subprocess.Popen[str]", line: str) -> None:
    assert program.stdout is not None
    printed = program.stdout.readline().strip()
    if printed != line:
        raise RuntimeError(f"{program.args!r} printed {printed!r} in place of {line!r}")

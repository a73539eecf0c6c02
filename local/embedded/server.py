"""The common part of the embedded PostgreSQL and Redis: using, starting and stopping a server."""

import errno
import os
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, ClassVar

from local.embedded.home import EmbeddedError, Home
from local.embedded.processes import ProcessRecord, wait_ended
from local.embedded.system_user import SystemUser, open_path, open_programs, server_user

_ATTEMPTS = 3  # the port may be taken meanwhile, or a killed PostgreSQL may still be ending


class EmbeddedServer(ABC):
    """One server program on a loopback port, with its data and its record under a home.

    Use it in one process at a time, inside `Home.locked()`.
    """

    name: ClassVar[str]
    stop_signals: ClassVar[tuple[signal.Signals, ...]]  # the gentle one first
    package: ClassVar[str]  # the wheel that contains the program
    ready_seconds: ClassVar[float] = 20.0

    def __init__(self, home: Home, *, durable: bool, say: Callable[[str], None]) -> None:
        self.home = home
        self.durable = durable
        self.data = home.root / self.name
        self.log = home.root / "log" / f"{self.name}.log"
        self.port = 0
        self._say = say
        self._user: SystemUser | None = None
        self._record: ProcessRecord | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL for clients. Contains the password."""

    @abstractmethod
    def _prepare(self) -> None:
        """Prepares the data folder. May run programs and wait for them."""

    @abstractmethod
    def _command(self) -> tuple[list[str], bytes]:
        """The program's arguments, and its standard input."""

    @abstractmethod
    def _is_ready(self) -> bool:
        """Whether the server responds on its port and accepts our password."""

    def is_alive(self) -> bool:
        return self._record is not None and self._record.is_alive()

    def start(self) -> None:
        """Uses the server that runs in this home, or starts it, on its last port if that is free.

        Raises EmbeddedError with the last line of the log if the server does not respond.
        """
        if self._join():
            return
        self.home.new_log(self.name)
        self._make_data_folder()
        self._prepare()
        for attempt in range(_ATTEMPTS):
            time.sleep(0.5 * attempt)
            self.port = free_port(self.port)
            self._spawn()
            if self._wait_ready():
                return
            self.stop(seconds=1.0)
        last = last_lines(self.log, 1)
        raise EmbeddedError(f"{self.name} did not start: {last} (see {self.log})")

    def request_stop(self) -> None:
        """Sends the gentle signal. Does not wait."""
        if self._record is not None:
            self._record.signal(self.stop_signals[0])

    def stop(self, *, seconds: float) -> None:
        """Stops the server, whoever started it. Kills it after `seconds`."""
        if self._record is None:
            return
        for number in (*self.stop_signals, signal.SIGKILL):
            self._record.signal(number)
            if not wait_ended([self._record], seconds=seconds):
                break
        if self._child is not None:
            self._child.wait()
        self._record = self._child = None

    def _join(self) -> bool:
        saved = self.home.read_json(f"run/{self.name}.json")
        if not isinstance(saved, dict):
            return False
        self.port = saved["port"]
        self._record = ProcessRecord(saved["pid"], saved["started"])
        if self._record.is_alive() and self._wait_ready():
            return True
        self.stop(seconds=2.0)
        return False

    def _make_data_folder(self) -> None:
        self._user = server_user(self.data, self._say)
        is_new = not self.data.exists()
        self.home.folder(self.name)
        if self._user is None:
            return
        if is_new:
            self._user.own(self.data)
        open_path(self._user, self.data, self._say)
        self._open_programs(self._user)

    def _open_programs(self, user: SystemUser) -> None:
        # the second folder has the libraries of the wheel
        for folder in (self.programs, self.programs.with_name(f"{self.package}.libs")):
            if folder.exists():
                open_path(user, folder, self._say)
                open_programs(folder, self._say)

    @property
    def programs(self) -> Path:
        """The folder of the wheel. Found without importing the wheel."""
        found = find_spec(self.package)
        if found is None or found.origin is None:
            raise EmbeddedError(
                f"{self.package} is not installed: set DATABASE_URL and REDIS_URL, "
                "or install requirements/run.txt"
            )
        return Path(found.origin).parent

    def run_options(self, log: IO[bytes]) -> dict[str, Any]:
        """Options for Popen: log the output, ignore the terminal's signals, do not pass our
        environment."""
        options: dict[str, Any] = {
            "stdout": log,
            "stderr": subprocess.STDOUT,
            "start_new_session": True,
            "cwd": self.data,
            "env": {"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        }
        if self._user is not None:
            options |= {"user": self._user.uid, "group": self._user.gid, "extra_groups": []}
        return options

    def _spawn(self) -> None:
        arguments, standard_input = self._command()
        with self.log.open("ab") as log, tempfile.TemporaryFile() as file:
            file.write(standard_input)
            file.seek(0)
            self._child = subprocess.Popen(arguments, stdin=file, **self.run_options(log))
        self._record = ProcessRecord.of(self._child.pid)
        self.home.write_json(
            f"run/{self.name}.json",
            {"pid": self._record.pid, "started": self._record.started, "port": self.port},
        )

    def _wait_ready(self) -> bool:
        deadline = time.monotonic() + self.ready_seconds
        while self.is_alive() and time.monotonic() < deadline:
            if self._is_ready():
                return True
            time.sleep(0.03)
        return False


def free_port(preferred: int = 0) -> int:
    """A free loopback port: the preferred one if it is free."""
    for port in (preferred, 0):
        try:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise EmbeddedError(
                    f"no port on 127.0.0.1 is available: {error.strerror}"
                ) from error
    raise EmbeddedError("no port on 127.0.0.1 is free")


def last_lines(log: Path, count: int) -> str:
    """The last lines of a log, without blank ones, within its last 8 KiB."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join([line for line in text.splitlines() if line.strip()][-count:])

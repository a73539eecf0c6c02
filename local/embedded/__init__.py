"""Starts PostgreSQL and Redis if the environment names none: for `make run`, tests and commands.

The servers belong to a home (`local.embedded.home`). A process that needs them uses those
that already run in the home, or starts them. The last process that uses them stops them. If
DATABASE_URL and REDIS_URL are set, as in production, only `home` of this package is imported, and
the wheels are not needed.
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

from local.embedded.home import EmbeddedError, Home

if TYPE_CHECKING:
    from local.embedded.server import EmbeddedServer

__all__ = [
    "SECRETS",
    "EmbeddedError",
    "Home",
    "Servers",
    "is_given",
    "prepare_environment",
    "start",
    "start_all",
]

# The settings that docs/configuration.md calls secret.
SECRETS = (
    "SECRET_KEY",
    "SECRET_KEY_FALLBACKS",
    "CREDENTIAL_KEYS",
    "DATABASE_URL",
    "REDIS_URL",
    "CELERY_BROKER_URL",
    "METRICS_TOKEN",
    "EMAIL_URL",
    "IMAGES_BUCKET_SECRET_KEY",
    "OIDC_CLIENT_SECRET",
    "SENTRY_DSN",
)

_MADE_SECRETS = ("SECRET_KEY", "CREDENTIAL_KEYS")
_STOP_SECONDS = 5.0
_SERVERLESS_COMMANDS = frozenset({"", "collectstatic", "help", "spectacular", "version"})


@dataclass
class Servers:
    """Running servers of one home, used by this process."""

    home: Home
    servers: "dict[str, EmbeddedServer]"  # by the environment variable with the URL
    _use: IO[str]

    @property
    def environment(self) -> dict[str, str]:
        """DATABASE_URL and REDIS_URL of the embedded servers."""
        return {variable: server.url for variable, server in self.servers.items()}

    def put_into_environment(self) -> None:
        """Sets the variables for this process and its children. They name files, because the URLs
        contain passwords."""
        for variable, url in self.environment.items():
            _read_from_file(variable, self.home.save_secret(variable, url))

    def revive(self) -> list[str]:
        """Restarts servers that ended, on the same port. Returns their names."""
        dead = [server for server in self.servers.values() if not server.is_alive()]
        if not dead:
            return []
        with self.home.locked():
            for server in dead:
                server.start()
        return [server.name for server in dead]

    def stop(self, *, seconds: float = _STOP_SECONDS) -> None:
        """Stops the servers, even if other processes use them. Kills each after `seconds`."""
        with self.home.locked():
            self._stop(seconds)

    def leave(self) -> None:
        """Stops the servers unless another process uses them."""
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
    """Uses the servers that run in `home`, or starts them.

    `durable=False` is faster, but loses data if the machine crashes. Use it for temporary homes.
    `say` is called with a line for each change outside the home. Raises EmbeddedError.
    """
    from local.embedded.postgres import Postgres
    from local.embedded.redis import Redis

    place = Home(home)
    wanted: dict[str, EmbeddedServer] = {}
    if postgres:
        wanted["DATABASE_URL"] = Postgres(place, durable=durable, say=say)
    if redis:
        wanted["REDIS_URL"] = Redis(place, durable=durable, say=say)
    return start_all(place, wanted)


def start_all(home: Home, wanted: "dict[str, EmbeddedServer]") -> Servers:
    """Uses these servers of the home, or starts them, in this order. Raises EmbeddedError."""
    use = home.open_lock("use")
    fcntl.flock(use, fcntl.LOCK_SH)
    servers = Servers(home, wanted, use)
    try:
        with home.locked():
            for server in wanted.values():
                server.start()
    except BaseException:
        servers.leave()
        raise
    return servers


def is_given(variable: str) -> bool:
    """Whether the environment sets the variable or NAME_FILE. An empty value counts as unset."""
    return bool(os.environ.get(variable) or os.environ.get(f"{variable}_FILE"))


def fill_environment(home: Home) -> None:
    """Sets the saved settings that are not given. Secrets are set as names of files."""
    for variable, value in home.saved_settings().items():
        if not is_given(variable):
            os.environ[variable] = value
    for variable in _MADE_SECRETS:
        file = home.secret_file(variable)
        if not is_given(variable) and file.exists():
            _read_from_file(variable, file)


def _read_from_file(variable: str, file: Path) -> None:
    """Sets NAME_FILE instead of NAME, because child processes and crash reports show the
    environment. Only processes that need the secret read the file."""
    os.environ.pop(variable, None)  # because an empty value would take precedence
    os.environ[f"{variable}_FILE"] = str(file)


def make_secrets(home: Home) -> None:
    """Creates the secrets of Django that are neither given nor saved."""
    from cryptography.fernet import Fernet

    with home.locked():
        if not is_given("SECRET_KEY"):
            home.secret("SECRET_KEY", lambda: secrets.token_urlsafe(48))
        if not is_given("CREDENTIAL_KEYS"):
            home.secret("CREDENTIAL_KEYS", lambda: Fernet.generate_key().decode())


def prepare_environment(arguments: list[str]) -> None:
    """Completes the environment of a `manage.py` command. Given variables stay as they are.

    Reads saved settings and secrets. Uses or starts servers that are not given, and stops them when
    the command ends, unless another process uses them. If this fails, exits with one line.
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

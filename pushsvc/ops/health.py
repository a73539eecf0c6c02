"""Checks whether the process is up, and whether it can do its work.

For load balancers, orchestrators and `make run`.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from threading import Lock
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from drf_spectacular.utils import extend_schema
from kombu import Connection, Queue
from kombu.exceptions import OperationalError
from redis.exceptions import NoPermissionError
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from pushsvc.common.errors import Unavailable
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.http.ratelimit import Limit
from pushsvc.common.store.redis_client import try_to_write

_BROKER_SECONDS: Final = 1.0
# Redis's names, then AMQP's. Each transport ignores the other's.
_TIMEOUTS: Final = ("socket_timeout", "socket_connect_timeout", "read_timeout", "write_timeout")
_FRESH_SECONDS: Final = 1.0
_WHILE_CHECKING_SECONDS: Final = 3.0
_WAIT_SECONDS: Final = 2.0
_CHECK_HANGS: Final = "an answer to the check that is running"


class NotReady(Unavailable):
    code = "not_ready"
    title = "Not ready"

    def __init__(self, missing: list[str]) -> None:
        super().__init__(f"Missing: {', '.join(missing)}.")


@extend_schema(exclude=True)
class HealthView(ApiView):
    def get(self, request: Request) -> Response:
        return Response({"status": "ok"})


@extend_schema(exclude=True)
class ReadyView(ApiView):
    @override
    def limit(self, request: Request) -> Limit | None:
        address = counted_address(django_request(request))
        return Limit("ready", address, settings.READY_PER_MINUTE, 60)

    def get(self, request: Request) -> Response:
        missing = missing_now()
        if missing:
            raise NotReady(missing)
        return Response({"status": "ready"})


class Kept:
    """Caches the answer of `check` for a second. Only one caller at a time checks.

    During a check, other callers get the last answer while it is younger than
    _WHILE_CHECKING_SECONDS. After that they wait at most _WAIT_SECONDS, then get the answer that
    the check hangs. Once one caller has got this answer, all others get it at once. So a broker or
    a database that hangs blocks only one thread of the process for long.
    """

    def __init__(self, check: Callable[[], list[str]]) -> None:
        self._check = check
        self._lock = Lock()
        self._hangs = False
        self._last: tuple[float, list[str]] = (-math.inf, [])

    def __call__(self) -> list[str]:
        checked_at, answer = self._last
        age = time.monotonic() - checked_at
        if age < _FRESH_SECONDS:
            return answer
        is_usable = age < _WHILE_CHECKING_SECONDS
        if not self._lock.acquire(timeout=0 if is_usable or self._hangs else _WAIT_SECONDS):
            self._hangs = not is_usable
            return answer if is_usable else [*answer, _CHECK_HANGS]
        try:
            return self._checked(checked_at)
        finally:
            self._hangs = False
            self._lock.release()

    def _checked(self, known_at: float) -> list[str]:
        """Checks, unless another caller did so since `known_at`. Call it with the lock."""
        if self._last[0] == known_at:
            answer = self._check()
            self._last = (time.monotonic(), answer)
        return self._last[1]


def _missing() -> list[str]:
    missing = _missing_of_database()
    if not _broker(settings.CELERY_BROKER_URL).is_there():
        missing.append("broker")
    return missing


missing_now = Kept(_missing)


def _missing_of_database() -> list[str]:
    try:
        applied = MigrationRecorder(connection).applied_migrations().keys()
    except DatabaseError:
        return ["database"]
    return ["migrations"] if _migrations() - applied else []


@cache
def _migrations() -> frozenset[Any]:
    """The migrations of this code. Cached, because reading them takes longer than the query."""
    return frozenset(MigrationLoader(None).graph.nodes)


class _Broker:
    """Asks the broker over one kept connection. Use it from one caller at a time.

    A Redis that only answers is not enough: a replica, a full one, or one that cannot save refuses
    all tasks.

    It does not use the connection that sends tasks, which waits and retries for too long."""

    def __init__(self, url: str) -> None:
        timeouts = dict.fromkeys(_TIMEOUTS, _BROKER_SECONDS)
        self._connection = Connection(
            url, connect_timeout=_BROKER_SECONDS, transport_options=timeouts
        )
        self._queue: Queue | None = None

    def is_there(self) -> bool:
        """Whether the broker answers. Connects again, once, if the kept connection is closed."""
        was_kept = self._queue is not None
        return self._answers() or (was_kept and self._answers())

    def _answers(self) -> bool:
        """Declares a queue as senders do, because every broker answers this."""
        try:
            if self._queue is None:
                self._connection.ensure_connection(max_retries=0)
                self._queue = settings.CELERY_TASK_QUEUES[0](self._connection.channel())
            self._queue.queue_declare()
            self._try_to_write(self._queue.channel)
        except self._errors:
            self._queue = None
            self._connection.release()
            return False
        return True

    def _try_to_write(self, channel: Any) -> None:
        """Raises a channel error if Redis refuses writes. A user may have rights on the queues'
        keys only."""
        if self._connection.transport.driver_type == "redis":
            with suppress(NoPermissionError):
                try_to_write(channel.client)

    @property
    def _errors(self) -> tuple[type[BaseException], ...]:
        of_transport = (*self._connection.connection_errors, *self._connection.channel_errors)
        return (OperationalError, *of_transport)


@lru_cache(maxsize=4)
def _broker(url: str) -> _Broker:
    return _Broker(url)

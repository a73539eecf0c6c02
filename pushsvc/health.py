"""Is the process up, and can it do its work. For load balancers, orchestrators and `make run`."""

import time
from collections.abc import Callable
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
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from pushsvc.common.errors import Unavailable
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView
from pushsvc.common.http.ratelimit import Limit

_BROKER_SECONDS: Final = 1.0
# Redis's, then AMQP's; each transport overlooks the other's.
_TIMEOUTS: Final = ("socket_timeout", "socket_connect_timeout", "read_timeout", "write_timeout")
_FRESH_SECONDS: Final = 1.0
_WHILE_ASKED_SECONDS: Final = 3.0


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
        address = counted_address(request._request)
        return Limit("ready", address, settings.READY_PER_MINUTE, 60)

    def get(self, request: Request) -> Response:
        missing = missing_now()
        if missing:
            raise NotReady(missing)
        return Response({"status": "ready"})


class Kept:
    """What `ask` answers, at most a second ago; asked by one caller at a time.

    While one asks, the others get the last answer for a little longer: else whoever asks often
    could make all threads of the process wait for a broker that hangs.
    """

    def __init__(self, ask: Callable[[], list[str]]) -> None:
        self._ask = ask
        self._lock = Lock()
        self._last: tuple[float, list[str]] = (-_WHILE_ASKED_SECONDS, [])

    def __call__(self) -> list[str]:
        asked_at, answer = self._last
        age = time.monotonic() - asked_at
        if age < _FRESH_SECONDS:
            return answer
        if not self._lock.acquire(blocking=age >= _WHILE_ASKED_SECONDS):
            return answer
        try:
            return self._asked_anew(asked_at)
        finally:
            self._lock.release()

    def _asked_anew(self, known_at: float) -> list[str]:
        """Unless another did so since `known_at`. To be called with the lock."""
        if self._last[0] == known_at:
            answer = self._ask()
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
    """Those of this code. Reading them takes far longer than asking which are applied."""
    return frozenset(MigrationLoader(None).graph.nodes)


class _Broker:
    """Asks the broker over one connection that it keeps; for one caller at a time. The workers' own
    connections would wait and try again for long."""

    def __init__(self, url: str) -> None:
        timeouts = dict.fromkeys(_TIMEOUTS, _BROKER_SECONDS)
        self._connection = Connection(
            url, connect_timeout=_BROKER_SECONDS, transport_options=timeouts
        )
        self._queue: Queue | None = None

    def is_there(self) -> bool:
        """Dials anew, once, where the kept connection is gone."""
        was_kept = self._queue is not None
        return self._answers() or (was_kept and self._answers())

    def _answers(self) -> bool:
        """Declares a queue as senders do, which every broker answers."""
        try:
            if self._queue is None:
                self._connection.ensure_connection(max_retries=0)
                self._queue = settings.CELERY_TASK_QUEUES[0](self._connection.channel())
            self._queue.queue_declare()
        except self._errors:
            self._queue = None
            self._connection.release()
            return False
        return True

    @property
    def _errors(self) -> tuple[type[BaseException], ...]:
        of_transport = (*self._connection.connection_errors, *self._connection.channel_errors)
        return (OperationalError, *of_transport)


@lru_cache(maxsize=4)
def _broker(url: str) -> _Broker:
    return _Broker(url)

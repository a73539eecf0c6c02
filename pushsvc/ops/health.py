"""Checks whether the process is up, and whether it can do its work.

For load balancers, orchestrators and `make run`.
"""

import math
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
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from pushsvc.common.errors import Unavailable
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.http.ratelimit import Limit
from pushsvc.ops.broker import Broker

_FRESH_SECONDS: Final = 1.0
_WHILE_CHECKING_SECONDS: Final = 3.0
_WAIT_SECONDS: Final = 2.0
_CHECK_HANGS: Final = "a response to the check that is running"


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
    """Caches the result of `check` for a second. Only one caller at a time checks.

    During a check, other callers get the last result while it is younger than
    _WHILE_CHECKING_SECONDS. After that they wait at most _WAIT_SECONDS, then get the result that
    the check hangs. Once one caller has got this result, all others get it at once. So a broker or
    a database that hangs blocks only one thread of the process for long.
    """

    def __init__(self, check: Callable[[], list[str]]) -> None:
        self._check = check
        self._lock = Lock()
        self._hangs = False
        self._last: tuple[float, list[str]] = (-math.inf, [])

    def __call__(self) -> list[str]:
        checked_at, missing = self._last
        age = time.monotonic() - checked_at
        if age < _FRESH_SECONDS:
            return missing
        is_usable = age < _WHILE_CHECKING_SECONDS
        if not self._lock.acquire(timeout=0 if is_usable or self._hangs else _WAIT_SECONDS):
            self._hangs = not is_usable
            return missing if is_usable else [*missing, _CHECK_HANGS]
        try:
            if self._last[0] == checked_at:  # no other caller checked meanwhile
                missing = self._check()
                self._last = (time.monotonic(), missing)
            return self._last[1]
        finally:
            self._hangs = False
            self._lock.release()


def _missing() -> list[str]:
    missing = _missing_of_database()
    if _broker(settings.CELERY_BROKER_URL).error():
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


@lru_cache(maxsize=4)
def _broker(url: str) -> Broker:
    return Broker(url)

"""Counts what devices report with `POST /events`, without a thread for each request.

After a send, most requests are reports of one event with a valid token. The event loop reads them,
and one thread counts in one statement what has arrived meanwhile, up to a bound. Django responds to
any other request, and to one whose events could not be counted, so errors and limits are the same.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any, Final, NamedTuple

from corsheaders.middleware import CorsMiddleware
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch, resolve

from notifications_app.events import (
    AT_ONCE,
    MAX_BODY,
    MAX_EVENTS,
    Event,
    EventKind,
    events_record,
    read_events,
)
from pushsvc.common.errors import Busy
from pushsvc.common.http.strict_json import MalformedJSON, loads_strict
from pushsvc.common.store.group_commit import group_size
from pushsvc.common.telemetry import spans
from pushsvc.web.bulkhead import ALL
from pushsvc.web.correlation import CorrelationMiddleware
from pushsvc.web.csp import PolicyMiddleware
from pushsvc.web.measuring import MeasuringMiddleware

_PATH: Final = "/events"
_TYPES: Final = {"application/json", "text/plain"}
_KINDS: Final = frozenset(EventKind.values)
_FIELDS: Final = {"token", "event", "action"}
_UNUSUAL: Final = {"HTTP_CONTENT_ENCODING", "HTTP_COOKIE"}

_Run = Callable[..., Awaitable[Any]]


class _Report(NamedTuple):
    events: list[Event]
    counted: "asyncio.Future[None]"


class Beacons:
    """Use it in one event loop. `run`: does work in a thread, as `Queue.run`."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._waiting: list[_Report] = []
        self._writing: asyncio.Task[None] | None = None

    async def counted(self, request: WSGIRequest, body: bytes) -> HttpResponse | None:
        """Counts the events of a usual report, and returns the response. None if Django is to
        respond. Raises Busy if counting takes too long."""
        if spans.is_on():  # the span of a request contains its work
            return None
        try:
            events = _read(request, body)
            if events is None:
                return None
            await self._count(events)
        except Busy:
            raise
        except Exception:  # noqa: BLE001 (Django tries again, and responds to the error)
            return None
        request.resolver_match = _match()
        found: HttpResponse = _RESPOND(request)
        return found

    async def _count(self, events: list[Event]) -> None:
        if len(self._waiting) >= ALL.waiting:
            raise Busy
        report = _Report(events, asyncio.get_running_loop().create_future())
        self._waiting.append(report)
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write())
        try:
            async with asyncio.timeout(settings.WEB_WAIT_SECONDS):
                await report.counted
        except TimeoutError:
            raise Busy from None

    async def _write(self) -> None:
        try:
            while self._waiting:
                number = group_size((len(each.events) for each in self._waiting), AT_ONCE)
                reports, self._waiting = self._waiting[:number], self._waiting[number:]
                error = await self._written([each for report in reports for each in report.events])
                for report in reports:
                    if report.counted.done():  # its request has ended
                        continue
                    if error is None:
                        report.counted.set_result(None)
                    else:
                        report.counted.set_exception(error)
        finally:
            self._writing = None

    async def _written(self, events: list[Event]) -> Exception | None:
        try:
            await self._run(partial(_record, events), _PATH, within=settings.WEB_WAIT_SECONDS)
        except Exception as error:  # noqa: BLE001 (it belongs to the requests)
            return error
        return None


def _record(events: list[Event]) -> None:
    close_old_connections()
    events_record(events)


def _read(request: WSGIRequest, body: bytes) -> list[Event] | None:
    """The events of a usual report with a valid token; None for any other request."""
    if request.method != "POST" or request.content_type not in _TYPES:
        return None
    if not _UNUSUAL.isdisjoint(request.META):
        return None
    if len(body) > MAX_BODY or b"\\" in body:  # with escapes, tokens are not found
        return None
    try:
        request.get_host()
        given = loads_strict(body)
    except (DisallowedHost, MalformedJSON):
        return None
    reported = given.get("events") if isinstance(given, dict) and len(given) == 1 else None
    if not isinstance(reported, list) or len(reported) > MAX_EVENTS:
        return None
    if not all(map(_is_event, reported)):
        return None
    found = read_events((each["token"], each["event"], each.get("action", "")) for each in reported)
    return found or None


def _is_event(given: object) -> bool:
    return (
        isinstance(given, dict)
        and given.keys() <= _FIELDS
        and isinstance(given.get("event"), str)
        and given["event"] in _KINDS
        and isinstance(given.get("token"), str)
        and isinstance(given.get("action", ""), str)
    )


@cache
def _match() -> ResolverMatch:
    return resolve(_PATH)


def _no_content(_request: HttpRequest) -> HttpResponse:
    """As the view responds."""
    headers = {"Allow": "POST", "Cache-Control": "no-store", "Content-Length": "0"}
    found = HttpResponse(status=204, headers=headers)
    del found.headers["Content-Type"]
    return found


def _with_headers() -> Any:
    """The middleware that sets headers, and the one that counts requests."""
    inner: Any = XFrameOptionsMiddleware(_no_content)
    for middleware in (
        CorsMiddleware,
        MeasuringMiddleware,
        PolicyMiddleware,
        SecurityMiddleware,
        CorrelationMiddleware,
    ):
        inner = middleware(inner)
    return inner


_RESPOND: Final = _with_headers()

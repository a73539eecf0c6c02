"""How the web process responds: the event loop communicates with clients, and threads do the work.

If threads waited for clients, any client could occupy them. So the event loop first reads the whole
request (request_body.py). Then threads produce the response part by part, and the event loop sends
each part. Between two parts a response occupies no thread. Django's WSGI application runs in the
threads, which keep their database connections.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from typing import Any

from asgiref.wsgi import WsgiToAsgiInstance
from corsheaders.middleware import CorsMiddleware
from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.db import DatabaseError, close_old_connections
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware

from pushsvc.common import errors, metrics
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.handlers import refusal
from pushsvc.common.store.estimates import Client
from pushsvc.web.bulkhead import OF_KEYS, Bulkhead, Queue, TooManyInFlight
from pushsvc.web.content_type import plain_content_type
from pushsvc.web.correlation import CorrelationMiddleware
from pushsvc.web.csp import PolicyMiddleware
from pushsvc.web.measuring import ARRIVED
from pushsvc.web.request_body import RequestBody
from pushsvc.web.sockets import UNREAD_SECONDS, end_unread_connections

PART_BYTES = 64 * 1024
PART_SECONDS = float(UNREAD_SECONDS)  # for a client to read one part of a long response

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Run = Callable[..., Awaitable[Any]]
_Count = Callable[[WSGIRequest, bytes], Awaitable[HttpResponse | None]]
_Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class BufferedApplication:
    """A WSGI application for an ASGI server (no lifespan, no websockets)."""

    def __init__(self, application: _Application, threads: ThreadPoolExecutor) -> None:
        self._application = application
        self._bulkhead = Bulkhead(threads)
        self._count: _Count | None = None

    def count_beacons(self) -> None:
        """Counts usual reports of devices without Django (beacons.py). Call it when the routes are
        loaded."""
        # Here, because the server imports this module before Django's set-up.
        from pushsvc.web.beacons import Beacons

        self._count = Beacons(self._bulkhead.others.run).counted

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        end_unread_connections()
        environ = _environ(scope)
        request = WSGIRequest(environ.copy())  # a copy, because Django writes into it
        address = counted_address(request)
        body = RequestBody(scope, receive)
        try:
            with (
                self._bulkhead.in_flight(address),
                self._bulkhead.importing(scope["method"], scope["path"], address),
            ):
                data = await body.read()
                complete = _complete(environ, data)
                metrics.WEB_BYTES.add(len(data), "received")
                if self._count and scope["path"] == "/events":
                    request.META[ARRIVED] = complete[ARRIVED]
                    if counted := await self._count(request, data):
                        await _send_whole(send, counted)
                        return
                queue = self._bulkhead.queue(scope["method"], scope["path"], data)
                sender = address
                if queue.kind in OF_KEYS:
                    queue, sender = await self._of_key(queue, environ, address)
                queue.require_room(sender)
                response = _Response(self._application, complete)
                run = partial(queue.run, sender=sender)
                await _respond(
                    response, run, receive, send, ends_with_client=queue.ends_with_client
                )
        except TooManyInFlight as error:
            await body.discard()
            await _refuse(send, request, error)
        except errors.PushsvcError as error:
            await _refuse(send, request, error)

    async def _of_key(
        self, queue: Queue, environ: Mapping[str, Any], address: str
    ) -> tuple[Queue, str]:
        """The queue of a request of a kind in OF_KEYS, and its sender: an accepted key. A request
        whose key is refused waits with all others, so invented keys have no share of the queue."""
        look_up = partial(_accepted_key, environ.get("HTTP_AUTHORIZATION", ""))
        others = self._bulkhead.others
        others.require_room(address)
        key = await others.run(look_up, address, within=settings.WEB_WAIT_SECONDS)
        return (others, address) if key is None else (queue, key)


def _accepted_key(header: str) -> str | None:
    """As `accepted_key`. None also if the database is away, as the request will then respond."""
    # Here, because the server imports this module before Django's set-up.
    from channels_app.http import accepted_key

    close_old_connections()
    try:
        return accepted_key(header)
    except DatabaseError:
        return None


class _Response:
    """The application's response to one request, in parts. Each part may be produced in another
    thread, but only one at a time."""

    def __init__(self, application: _Application, environ: dict[str, Any]) -> None:
        self._application = application
        self._environ = environ
        self._head: list[_Message] = []
        self._body: Iterable[bytes] | None = None
        self._chunks: Iterator[bytes] = iter(())
        self.client = Client()

    def part(self) -> list[_Message]:
        """The next messages. Closes the response after the last part, or if the application fails.
        Raises ClientLeft."""
        is_last = True
        try:
            with self.client.served():
                if self._body is None:
                    self._body = self._application(self._environ, self._start)
                    self._chunks = iter(self._body)
                body, is_last = self._next_bytes()
            metrics.WEB_BYTES.add(len(body), "sent")
        finally:
            if is_last:
                self.close()
        messages = [
            *self._head,
            {"type": "http.response.body", "body": body, "more_body": not is_last},
        ]
        self._head = []
        return messages

    def close(self) -> None:
        """Closes the response. Call it in a thread, because Django closes old database connections
        here."""
        close = getattr(self._body, "close", None)
        self._body = ()
        if close is not None:
            close()

    def _next_bytes(self) -> tuple[bytes, bool]:
        """A part of about PART_BYTES, and whether it is the last."""
        chunks, size = [], 0
        for chunk in self._chunks:
            chunks.append(chunk)
            size += len(chunk)
            if size >= PART_BYTES:
                return b"".join(chunks), False
        return b"".join(chunks), True

    def _start(self, status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> None:
        raw = [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in headers]
        code = int(status.split(" ", 1)[0])
        self._head = [{"type": "http.response.start", "status": code, "headers": raw}]


class _ClientLeft(Exception):
    """The client left before the end of the response, or read nothing for PART_SECONDS."""


async def _respond(
    response: _Response, run: _Run, receive: _Receive, send: _Send, *, ends_with_client: bool
) -> None:
    """Produces the response and sends it, part by part. `ends_with_client`: whether the statement
    of an estimate ends when the client leaves."""
    # The request's body has been read, so the next message can only be that the client has left.
    leaving = asyncio.ensure_future(receive()) if ends_with_client else None
    try:
        if leaving is not None:
            leaving.add_done_callback(partial(_end_estimate, response))
        messages = await run(response.part, within=settings.WEB_WAIT_SECONDS)
        if messages[-1]["more_body"]:
            leaving = leaving or asyncio.ensure_future(receive())
            await _send_parts(response, messages, run, leaving, send)
        else:
            await _send_all(send, messages)
    finally:
        if leaving is not None:
            leaving.cancel()


def _end_estimate(response: _Response, leaving: "asyncio.Future[_Message]") -> None:
    if not leaving.cancelled():
        response.client.leave()


async def _send_parts(
    response: _Response,
    messages: list[_Message],
    run: _Run,
    leaving: "asyncio.Future[_Message]",
    send: _Send,
) -> None:
    """Sends the first messages of a long response, then produces and sends the others."""
    try:
        await _send_in_time(send, messages, leaving)
        while messages[-1]["more_body"]:
            messages = await run(response.part)
            await _send_in_time(send, messages, leaving)
    except _ClientLeft:
        await run(response.close)


async def _send_in_time(
    send: _Send, messages: list[_Message], leaving: "asyncio.Future[_Message]"
) -> None:
    """Sends the messages. Raises _ClientLeft if the client left, or reads too slowly."""
    sending = asyncio.ensure_future(_send_all(send, messages))
    await asyncio.wait(
        (sending, leaving), timeout=PART_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
    if not sending.done() or leaving.done():
        sending.cancel()
        raise _ClientLeft
    sending.result()


async def _send_all(send: _Send, messages: list[_Message]) -> None:
    for message in messages:
        await send(message)


def _environ(scope: _Message) -> dict[str, Any]:
    """The request for WSGI, without the body.

    WSGI uses the same name for X-Forwarded-For and X_Forwarded_For. A proxy sets the first, and may
    pass on a second one of the client. So headers with an underscore are omitted.
    """
    headers = [(name, value) for name, value in scope["headers"] if b"_" not in name]
    instance = WsgiToAsgiInstance(None, duplicate_header_limit=None)  # type: ignore[no-untyped-call]
    instance.scope = plain = {**scope, "headers": headers, "query_string": b""}
    environ: dict[str, Any] = instance.build_environ(plain, BytesIO())  # type: ignore[no-untyped-call]
    # As PEP 3333 represents bytes, because not all clients escape characters outside ASCII.
    environ["QUERY_STRING"] = scope["query_string"].decode("latin1")
    environ["CONTENT_TYPE"] = plain_content_type(environ.get("CONTENT_TYPE", ""))
    return environ


def _complete(environ: dict[str, Any], body: bytes) -> dict[str, Any]:
    """The request with the body and its real length, because a chunked body announces none."""
    return {
        **environ,
        "wsgi.input": BytesIO(body),
        "CONTENT_LENGTH": str(len(body)),
        ARRIVED: time.monotonic(),
    }


async def _refuse(send: _Send, request: HttpRequest, error: errors.PushsvcError) -> None:
    """Responds with an error, without a thread. The response has the same headers as Django's."""
    metrics.REQUESTS_REFUSED.add(1, error.code)
    refuse = CorsMiddleware(partial(refusal, error=error))
    guarded: Any = SecurityMiddleware(PolicyMiddleware(refuse))
    response: Any = CorrelationMiddleware(guarded)(request)
    await _send_whole(send, response)


async def _send_whole(send: _Send, response: HttpResponse) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})

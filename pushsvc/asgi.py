"""The web process: the event loop talks with clients, threads do the work.

A thread that waited for a client would be a thread that anybody could hold. So a request is read
here first, at most 64 KiB within ten seconds, and an answer is made and sent part by part: between
two parts it has no thread. Django's WSGI application runs in the threads, which keep their database
connections.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

from asgiref.wsgi import WsgiToAsgiInstance
from corsheaders.middleware import CorsMiddleware
from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest
from django.middleware.security import SecurityMiddleware

# Before our own modules, which read settings while they load.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")

from channels_app.checks import require_working_settings
from pushsvc.bulkhead import THREADS, Bulkhead, Places, TooManyInFlight
from pushsvc.common import errors
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.content_type import plain_content_type
from pushsvc.common.http.csp import PolicyMiddleware
from pushsvc.common.http.handlers import refusal
from pushsvc.request_body import RequestBody
from pushsvc.sockets import UNREAD_SECONDS, end_unread_connections, require_files

PART_BYTES = 64 * 1024
PART_SECONDS = float(UNREAD_SECONDS)  # that a client may take for a part of a long answer

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class BufferedApplication:
    """A WSGI application for an ASGI server (no lifespan, no websockets)."""

    def __init__(self, application: _Application, threads: ThreadPoolExecutor) -> None:
        self._application = application
        self._bulkhead = Bulkhead(threads)

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        end_unread_connections()
        environ = _environ(scope)
        request = WSGIRequest(environ.copy())  # it writes into it
        places = self._bulkhead.places(scope["method"], scope["path"])
        body = RequestBody(scope, receive)
        try:
            with self._bulkhead.in_flight(counted_address(request)):
                complete = _complete(environ, await body.read())
                places.require_room()
                answer = _Answer(self._application, complete)
                await _send_parts(answer, places, receive, send)
        except TooManyInFlight as error:
            await body.discard()
            await _refuse(send, request, error)
        except errors.PushsvcError as error:
            await _refuse(send, request, error)


class _Answer:
    """What the application answers to one request: made in parts, each in whichever thread is free,
    never two at once."""

    def __init__(self, application: _Application, environ: dict[str, Any]) -> None:
        self._application = application
        self._environ = environ
        self._head: list[_Message] = []
        self._body: Iterable[bytes] | None = None
        self._chunks: Iterator[bytes] = iter(())

    def part(self) -> list[_Message]:
        """The next messages. After the last, or a fault, the answer is closed."""
        is_last = True
        try:
            if self._body is None:
                self._body = self._application(self._environ, self._start)
                self._chunks = iter(self._body)
            body, is_last = self._next_bytes()
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
        """In a thread, too: Django gives a database connection back."""
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
    """In the midst of an answer, or it took no part of it for PART_SECONDS."""


async def _send_parts(answer: _Answer, places: Places, receive: _Receive, send: _Send) -> None:
    messages = await places.run(answer.part)
    if not messages[-1]["more_body"]:
        await _send_all(send, messages)
        return
    # The body of the request is read: what else is received is that the client leaves.
    leaving = asyncio.ensure_future(receive())
    try:
        await _send_in_time(send, messages, leaving)
        while messages[-1]["more_body"]:
            messages = await places.run(answer.part)
            await _send_in_time(send, messages, leaving)
    except _ClientLeft:
        await places.run(answer.close)
    finally:
        leaving.cancel()


async def _send_in_time(
    send: _Send, messages: list[_Message], leaving: "asyncio.Future[_Message]"
) -> None:
    """Raises _ClientLeft where nobody reads any more."""
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
    """For WSGI, without the body.

    CGI has one name for X-Forwarded-For and X_Forwarded_For. A proxy writes the one and may let the
    other through, so headers with an underscore are left out: they are their sender's own words.
    """
    headers = [(name, value) for name, value in scope["headers"] if b"_" not in name]
    instance = WsgiToAsgiInstance(None, duplicate_header_limit=None)  # type: ignore[no-untyped-call]
    instance.scope = plain = {**scope, "headers": headers, "query_string": b""}
    environ: dict[str, Any] = instance.build_environ(plain, BytesIO())  # type: ignore[no-untyped-call]
    # Bytes as PEP 3333 carries them: not all clients escape what is not ASCII.
    environ["QUERY_STRING"] = scope["query_string"].decode("latin1")
    environ["CONTENT_TYPE"] = plain_content_type(environ.get("CONTENT_TYPE", ""))
    return environ


def _complete(environ: dict[str, Any], body: bytes) -> dict[str, Any]:
    """RFC 9112 section 6: however the length was announced, this is what came."""
    return {**environ, "wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body))}


async def _refuse(send: _Send, request: HttpRequest, error: errors.PushsvcError) -> None:
    """Without a thread, and with the headers that every answer has."""

    response = refusal(request, error)
    SecurityMiddleware(PolicyMiddleware(CorsMiddleware(lambda _: response)))(request)
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


application = BufferedApplication(
    get_wsgi_application(), ThreadPoolExecutor(THREADS, thread_name_prefix="web")
)
require_working_settings()
require_files(settings.WEB_CONNECTIONS)

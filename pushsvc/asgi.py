"""The web process: the event loop reads a request whole, then Django answers it in a thread.

A thread that waited for a body would be a thread that anybody could hold, by sending slowly. So
bodies are read here, at most 64 KiB within ten seconds, and Django's WSGI application, whose
threads keep their database connections, gets what is complete.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

from asgiref.wsgi import WsgiToAsgiInstance
from django.conf import settings
from django.core.wsgi import get_wsgi_application

# Before our own modules, which read settings while they load.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")

from channels_app.checks import require_working_settings
from pushsvc.common import errors
from pushsvc.common.handlers import problem_json
from pushsvc.common.strict_json import MAX_BODY_BYTES
from pushsvc.sockets import end_unread_connections, require_files

THREADS = 16
BODY_SECONDS = 10.0
PART_SECONDS = 30.0  # that a client may take for a part of a long answer
_ENDED_EARLY = "The body ended before its announced length."

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class BodyTooSlow(errors.PushsvcError):
    status = 408
    code = "body_too_slow"
    title = "The body took too long"
    detail = f"A request must be complete within {BODY_SECONDS:.0f} seconds."


class BufferedApplication:
    """A WSGI application for an ASGI server (no lifespan, no websockets)."""

    def __init__(self, application: _Application) -> None:
        self._application = application
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="web")

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        end_unread_connections()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(scope, receive)
        except TimeoutError:
            await _refuse(send, BodyTooSlow())
        except errors.PushsvcError as error:
            await _refuse(send, error)
        else:
            loop = asyncio.get_running_loop()
            reply = _Reply(loop, receive, send)
            with contextlib.suppress(_ClientLeft):
                await loop.run_in_executor(self._threads, self._answer, scope, body, reply)

    def _answer(self, scope: _Message, body: bytes, reply: "_Reply") -> None:
        chunks = self._application(_environ(scope, body), reply.start)
        try:
            for chunk in chunks:
                reply.write(chunk)
            reply.end()
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()


class _ClientLeft(Exception):
    """In the midst of an answer, or it took no part of it for PART_SECONDS."""


class _Reply:
    """What the application answers, carried from its thread to the loop; the last part together
    with the end, so that a short answer takes one turn. A long one ends with its reader."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: _Receive, send: _Send) -> None:
        self._loop = loop
        self._receive = receive
        self._send = send
        self._waiting: list[_Message] = []
        self._leaving: asyncio.Task[_Message] | None = None

    def start(self, status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> None:
        raw = [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in headers]
        code = int(status.split(" ", 1)[0])
        self._waiting = [{"type": "http.response.start", "status": code, "headers": raw}]

    def write(self, chunk: bytes) -> None:
        """Raises _ClientLeft where nobody reads any more."""
        if len(self._waiting) > 1:
            self._flush(self._send_part)
        self._waiting.append({"type": "http.response.body", "body": chunk, "more_body": True})

    def end(self) -> None:
        self._waiting.append({"type": "http.response.body", "body": b"", "more_body": False})
        self._flush(self._send_end)

    def _flush(self, send: Callable[[list[_Message]], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(send(self._waiting), self._loop).result()
        self._waiting = []

    async def _send_part(self, messages: list[_Message]) -> None:
        if self._leaving is None:  # the body is read: what else is received is that it leaves
            self._leaving = asyncio.ensure_future(self._receive())
        sending = asyncio.ensure_future(self._send_all(messages))
        await asyncio.wait(
            (sending, self._leaving), timeout=PART_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if not sending.done() or self._leaving.done():
            sending.cancel()
            self._leaving.cancel()
            raise _ClientLeft
        sending.result()

    async def _send_end(self, messages: list[_Message]) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
        await self._send_all(messages)

    async def _send_all(self, messages: list[_Message]) -> None:
        for message in messages:
            await self._send(message)


async def _body(scope: _Message, receive: _Receive) -> bytes:
    """The whole body; BodyTooLarge as soon as that is known, BadRequest if it ends early."""
    announced = dict(scope["headers"]).get(b"content-length", b"")
    if announced.isdigit() and int(announced) > MAX_BODY_BYTES:
        raise errors.BodyTooLarge
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise errors.BadRequest(_ENDED_EARLY)
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise errors.BodyTooLarge
        if not message.get("more_body"):
            break
    if announced.isdigit() and len(body) < int(announced):
        raise errors.BadRequest(_ENDED_EARLY)
    return bytes(body)


def _environ(scope: _Message, body: bytes) -> dict[str, Any]:
    """RFC 9112 section 6: however the length was announced, this is what came.

    CGI has one name for X-Forwarded-For and X_Forwarded_For. A proxy writes the one and may let the
    other through, so headers with an underscore are left out: they are their sender's own words.
    """
    headers = [(name, value) for name, value in scope["headers"] if b"_" not in name]
    instance = WsgiToAsgiInstance(None, duplicate_header_limit=None)  # type: ignore[no-untyped-call]
    instance.scope = plain = {**scope, "headers": headers, "query_string": b""}
    environ: dict[str, Any] = instance.build_environ(plain, BytesIO(body))  # type: ignore[no-untyped-call]
    # Bytes as PEP 3333 carries them: not all clients escape what is not ASCII.
    environ["QUERY_STRING"] = scope["query_string"].decode("latin1")
    environ["CONTENT_LENGTH"] = str(len(body))
    return environ


async def _refuse(send: _Send, error: errors.PushsvcError) -> None:
    response = problem_json(error)
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


application = BufferedApplication(get_wsgi_application())
require_working_settings()
require_files(settings.WEB_CONNECTIONS)

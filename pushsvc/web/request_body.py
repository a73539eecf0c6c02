"""Reads the body of a request in the event loop, within bounds of size and time.

The server closes a connection if its request is not read to the end. If the client is still
sending, the kernel resets the connection, and the client (or the proxy in front of us) may see the
reset instead of the response. So the rest of a refused body is read and dropped, up to
DISCARDED_BYTES.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final

from pushsvc.common import errors
from pushsvc.common.http.strict_json import MAX_BODY_BYTES

MAX_IMPORT_BYTES: Final = 1024 * 1024
MAX_IMAGE_BYTES: Final = 5 * 1024 * 1024 + 16 * 1024  # the file, and the form around it
BODY_SECONDS: Final = 10.0
DISCARDED_BYTES: Final = 1024 * 1024
UNREAD_BODY_SECONDS: Final = 5.0  # as long as a connection may be open without a request
_CONSOLE: Final = ["admin", "subscriptions_app", "subscription", "import"]
_IMAGES: Final = ["admin", "notifications_app", "notification", "images"]
_ENDED_EARLY: Final = "The body ended before its announced length."

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class BodyTooSlow(errors.PushsvcError):
    status = 408
    code = "body_too_slow"
    title = "The body took too long"
    detail = f"A request must be complete within {BODY_SECONDS:.0f} seconds."


def is_import(method: str, path: str) -> bool:
    """Whether the request brings a part of a file, or an image, which may be larger than other
    bodies: through the API, or from the console. Takes a time that is linear in the path, because
    it is called before authentication."""
    return _most_bytes(method, path) > MAX_BODY_BYTES


def _most_bytes(method: str, path: str) -> int:
    parts = path.strip("/").split("/", 6)
    is_keyed = parts[:1] == ["channel"] and parts[2:] == ["subscriptions", "import"]
    if method == "POST" and (is_keyed or (parts[:4] == _CONSOLE and parts[5:] == ["part"])):
        return MAX_IMPORT_BYTES
    if method == "POST" and parts[:4] == _IMAGES and parts[5:] in ([], ["choose"]):
        return MAX_IMAGE_BYTES
    return MAX_BODY_BYTES


class RequestBody:
    """The body of a request. Call `read` or `discard`, once."""

    def __init__(self, scope: Message, receive: Receive) -> None:
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"")
        self._announced = int(announced) if announced.isdigit() else 0
        # Such a client sends its body only when we begin to read it.
        self._awaits_consent = headers.get(b"expect", b"").lower() == b"100-continue"
        self._most = _most_bytes(scope["method"], scope["path"])
        self._receive = receive
        self._size = 0
        self._is_complete = False

    async def read(self) -> bytes:
        """Reads the whole body. Raises BodyTooLarge, BodyTooSlow after BODY_SECONDS, or BadRequest
        if the body ends early."""
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while not self._is_complete and not self._is_too_large():
                    body += await self._part()
                await self._drop_rest()
        except TimeoutError:
            if not self._is_too_large():
                raise BodyTooSlow from None
        if self._is_too_large():
            raise errors.BodyTooLarge
        if len(body) < self._announced:
            raise errors.BadRequest(_ENDED_EARLY)
        return bytes(body)

    async def discard(self) -> None:
        """Drops the body of a request that is not counted for its address. Takes
        UNREAD_BODY_SECONDS at most."""
        with suppress(TimeoutError, errors.BadRequest):
            async with asyncio.timeout(UNREAD_BODY_SECONDS):
                await self._drop_rest()

    def _is_too_large(self) -> bool:
        return max(self._announced, self._size) > self._most

    async def _drop_rest(self) -> None:
        if self._announced > DISCARDED_BYTES or (self._awaits_consent and not self._size):
            return
        while not self._is_complete and self._size <= DISCARDED_BYTES:
            await self._part()

    async def _part(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            raise errors.BadRequest(_ENDED_EARLY)
        part: bytes = message.get("body", b"")
        self._size += len(part)
        self._is_complete = not message.get("more_body")
        return part

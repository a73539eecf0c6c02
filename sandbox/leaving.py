"""Notices senders that leave before they have read the response, over HTTP/1.1.

TCP shows this: if a program closes a connection with unread data, or data arrives later, its system
resets the connection (RFC 9293 section 3.6.1). If the program has read everything, its system sends
only FIN.
"""

import asyncio
import socket
from typing import cast

from aiohttp import web
from typing_extensions import override

from sandbox.receipts import Receipt


def watch_sender(request: web.Request, receipt: Receipt) -> None:
    """Notes in the receipt if the sender leaves before the next request on the connection."""
    transport = request.transport
    if transport is None:
        return
    watch = transport.get_protocol()
    if not isinstance(watch, _Watch):
        watch = _Watch(cast(asyncio.Protocol, watch), transport)
        transport.set_protocol(watch)
    watch.receipt = receipt


class _Watch(asyncio.Protocol):
    """Wraps aiohttp's protocol of the connection. `receipt`: of the last response, if no request
    followed."""

    def __init__(self, protocol: asyncio.Protocol, transport: asyncio.Transport) -> None:
        self._protocol = protocol
        self._socket = transport.get_extra_info("socket")
        self.receipt: Receipt | None = None

    @override
    def data_received(self, data: bytes) -> None:
        self.receipt = None
        self._protocol.data_received(data)

    @override
    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    @override
    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    @override
    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self.receipt is not None:
            self.receipt.unread = exc is not None or self._is_reset()
        self._protocol.connection_lost(exc)

    def _is_reset(self) -> bool:
        """Whether a reset followed the sender's FIN. With TLS the socket is already closed, so this
        is not noticed."""
        if self._socket.fileno() < 0:
            return False
        return bool(self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

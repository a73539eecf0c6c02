"""The address of APNs, and how to connect to it."""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from aiohappyeyeballs import AddrInfoType, start_connection
from typing_extensions import Buffer, override

from notifications_app.delivery.apns.connection import Connection
from notifications_app.delivery.client import CONNECT_TIMEOUT
from pushsvc.common.egress import tls_context

# How long to wait for one address before the next one is tried too (RFC 8305 section 5).
NEXT_ADDRESS_SECONDS: Final = 0.25

_HOST_AND_PORT: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Server":
        """From "host:port" or "[IPv6]:port". Raises ValueError."""
        found = _HOST_AND_PORT.fullmatch(text)
        if not found or not 1 <= int(found[3]) <= 65_535:
            raise ValueError("must be host:port")
        return cls(found[1] or found[2], int(found[3]))

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 443 else f"{host}:{self.port}"

    async def connect(self, tls: ssl.SSLContext, on_change: Callable[[], None]) -> Connection:
        """A new connection. The name is resolved each time. Raises OSError or TimeoutError."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_TIMEOUT):
            dialled = await start_connection(
                await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM),
                happy_eyeballs_delay=NEXT_ADDRESS_SECONDS,
                socket_factory=_socket,
            )
            _, connection = await loop.create_connection(
                lambda: Connection(on_change), sock=dialled, ssl=tls, server_hostname=self.host
            )
        return connection


class SocketReadToItsEnd(socket.socket):
    """Ignores that a send fails because the server has closed or reset the connection.

    The server may have answered before it closed, and those answers wait to be read. asyncio would
    end the connection at the failed send, without reading them, and their notifications would be
    sent again. So only reading finds the end, after all answers.
    """

    @override
    def send(self, data: Buffer, flags: int = 0, /) -> int:
        try:
            return super().send(data, flags)
        except ConnectionError:
            return memoryview(data).nbytes

    @override
    def sendmsg(self, buffers: Iterable[Buffer], /, *others: Any) -> int:
        """Used by asyncio from Python 3.12 on."""
        whole = list(buffers)
        try:
            return super().sendmsg(whole, *others)
        except ConnectionError:
            return sum(memoryview(part).nbytes for part in whole)


def _socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    return SocketReadToItsEnd(family, kind, protocol)


def tls_for_http2(ca_file: str = "") -> ssl.SSLContext:
    """A `tls_context` that offers only HTTP/2. Raises OSError."""
    context = tls_context(ca_file)
    context.set_alpn_protocols(["h2"])
    return context

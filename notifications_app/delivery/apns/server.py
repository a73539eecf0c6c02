"""Where APNs is, and how a connection to it is made."""

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
from pushsvc.common.egress import tls_context

CONNECT_TIMEOUT: Final = 5.0
# RFC 8305 section 5: how long one address may keep the next one waiting.
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
        """A new connection, its name resolved anew. Raises OSError or TimeoutError."""
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
    """Sends into nothing once the server has closed or reset the connection.

    What it wrote before is still there: answers, whose notifications would go out again. asyncio
    ends a connection at the first send that fails, and leaves them unread; so here the end is
    learned by reading only, which comes to it after them.
    """

    @override
    def send(self, data: Buffer, flags: int = 0, /) -> int:
        try:
            return super().send(data, flags)
        except ConnectionError:
            return memoryview(data).nbytes

    @override
    def sendmsg(self, buffers: Iterable[Buffer], /, *others: Any) -> int:
        """What asyncio sends the rest with, from Python 3.12 on."""
        whole = list(buffers)
        try:
            return super().sendmsg(whole, *others)
        except ConnectionError:
            return sum(memoryview(part).nbytes for part in whole)


def _socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    return SocketReadToItsEnd(family, kind, protocol)


def tls_for_http2(ca_file: str = "") -> ssl.SSLContext:
    """`tls_context`, offering HTTP/2 and nothing else. Raises OSError."""
    context = tls_context(ca_file)
    context.set_alpn_protocols(["h2"])
    return context

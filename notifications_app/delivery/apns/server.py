"""The address of APNs, and how to connect to it."""

import asyncio
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from notifications_app.delivery.apns.connection import Connection
from pushsvc.common.egress import CONNECT_TIMEOUT, connect, look_up, tls_context

_HOST_AND_PORT: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Server":
        """Parses "host:port" or "[IPv6]:port". Raises ValueError."""
        found = _HOST_AND_PORT.fullmatch(text)
        if not found or not 1 <= int(found[3]) <= 65_535:
            raise ValueError("must be host:port")
        return cls(found[1] or found[2], int(found[3]))

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 443 else f"{host}:{self.port}"

    async def connect(self, tls: ssl.SSLContext, on_change: Callable[[], None]) -> Connection:
        """Opens a connection; resolves the name each time. Raises OSError or TimeoutError."""
        async with asyncio.timeout(CONNECT_TIMEOUT):
            return await connect(
                lambda: Connection(on_change),
                await look_up(self.host, self.port),
                host=self.host,
                tls=tls,
            )


def tls_for_http2(ca_file: str = "") -> ssl.SSLContext:
    """A `tls_context` that offers only HTTP/2. Raises OSError."""
    context = tls_context(ca_file)
    context.set_alpn_protocols(["h2"])
    return context

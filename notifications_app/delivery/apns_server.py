"""Where APNs is, and how a connection to it is made."""

import asyncio
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from notifications_app.delivery.apns_connection import Connection
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
        async with asyncio.timeout(CONNECT_TIMEOUT):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(on_change),
                self.host,
                self.port,
                ssl=tls,
                happy_eyeballs_delay=NEXT_ADDRESS_SECONDS,
            )
        return connection


def tls_for_http2(ca_file: str = "") -> ssl.SSLContext:
    """`tls_context`, offering HTTP/2 and nothing else. Raises OSError."""
    context = tls_context(ca_file)
    context.set_alpn_protocols(["h2"])
    return context

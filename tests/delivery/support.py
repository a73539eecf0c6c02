"""A browser that can decrypt, and a push service on loopback that answers as it is told."""

import asyncio
import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from notifications_app.content.values import CONTENT, Content
from notifications_app.delivery.client import ConnectionSettings
from notifications_app.delivery.http_client import HttpClient
from notifications_app.delivery.types import BrowserDestination, Message
from notifications_app.delivery.webpush.transport import Client, VapidKey
from pushsvc.common import base64url
from pushsvc.common.egress import tls_context

KEY_ID = UUID("01936c5e-0000-7000-8000-000000000001")
VAPID_KEY = VapidKey("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94", "mailto:push@example.com")
CREDENTIALS = {KEY_ID: VAPID_KEY}


def make_message(**over):
    content: dict[str, Any] = {"title": "Rain", "body": "It rains.", "ttl": 3_600}
    content |= {name: over.pop(name) for name in CONTENT if name in over}
    message = Message(
        notification_id=UUID("01936c5e-0000-7000-8000-0000000000aa"),
        content=Content(**content),
        expires_at=time.monotonic() + 3_600,
    )
    return replace(message, **over)


def connection_settings(**over):
    """As production has them, with the given ones."""
    usual = {
        "trusted_origins": frozenset(),
        "allowed_hosts": (),
        "ca_file": "",
        "fcm_api_base": "https://fcm.googleapis.com",
        "google_token_uri": "https://oauth2.googleapis.com/token",
        "apns_server": "",
        "call_seconds": 10.0,
        "unknown_host_call_seconds": 5.0,
        "calls_in_flight": 100,
    }
    return ConnectionSettings(**usual | over)


def make_client(*trusted_origins, **settings):
    return Client(connection_settings(trusted_origins=frozenset(trusted_origins), **settings))


@contextlib.asynccontextmanager
async def http_client(**options):
    tls = options.pop("tls", None) or tls_context()
    made = HttpClient(tls, **{"connections_per_origin": 5, "keepalive": 5.0} | options)
    try:
        yield made
    finally:
        await made.close()


async def send(destination, *, message=None, credentials=CREDENTIALS, trusted=(), **settings):
    """The outcome of one message over a client of its own."""
    client = make_client(*trusted, **settings)
    try:
        return await client.send(message or make_message(), destination, credentials)
    finally:
        await client.close()


class Browser:
    def __init__(self):
        self.private_key = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)
        self.p256dh = self.private_key.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )

    def destination(self, endpoint, **over):
        destination = BrowserDestination(
            subscription_id=UUID("01936c5e-0000-7000-8000-0000000000bb"),
            address=endpoint,
            p256dh=base64url.encode(self.p256dh),
            auth=base64url.encode(self.auth),
            vapid_key_id=KEY_ID,
            token="tracking-token",
        )
        return replace(destination, **over)

    def decrypt(self, body):
        return http_ece.decrypt(
            body, private_key=self.private_key, auth_secret=self.auth, version="aes128gcm"
        )

    def read(self, body):
        return json.loads(self.decrypt(body))


@dataclass
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def seconds_for(code):
    """The time limit of a call that ends with this code: short if the call is to time out,
    otherwise as long as a busy machine needs."""
    return 2.0 if code == "timeout" else 20.0


@dataclass
class PushService:
    """An HTTP/1.1 server of one `behave(reader, writer)` for each request it has read."""

    behave: Callable[..., Awaitable[None]]
    tls: object = None
    connections: int = 0
    received: list[Received] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self):
        self._tasks = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        scheme = "https" if self.tls else "http"
        self.origin = f"{scheme}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader, writer):
        self.connections += 1
        self._tasks.add(asyncio.current_task())
        with contextlib.suppress(
            ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError
        ):
            while not reader.at_eof() and not writer.is_closing():
                self.received.append(await _read_request(reader))
                self.asked.set()
                await self.behave(reader, writer)
        self.ended.set()
        writer.transport.abort()


async def _read_request(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("Content-Length", "0")))
    return Received(method, path, headers, body)


def answer(status=201, headers=(), body=b""):
    async def behave(_, writer):
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return behave


def raw(first, forever=b"", pause=0.0):
    """Writes the first bytes unchanged, then `more` until the client closes."""

    async def behave(_, writer):
        writer.write(first)
        await writer.drain()
        while forever:
            writer.write(forever)
            await writer.drain()
            await asyncio.sleep(pause)

    return behave


async def hang(reader, _):
    await reader.read()


async def hang_up(_, writer):
    writer.close()


async def reset(_, writer):
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()

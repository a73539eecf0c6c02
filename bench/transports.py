"""Processor time of the transports alone, for each message.

Each transport sends to a sink on loopback, over TLS, from one event loop with 100 calls in flight.
The sink runs in another process, so only the sender's processor time counts. For comparison, bare
aiohttp POSTs the same number of bodies to the same sink in the same round. The ratio to those is
what to compare between machines and versions.
"""

import argparse
import asyncio
import json
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from statistics import median
from typing import Any
from uuid import UUID, uuid4

import aiohttp
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from typing_extensions import override

from notifications_app.content import Content
from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.client import Client
from notifications_app.delivery.engine import PatientLoop
from notifications_app.delivery.fcm import transport as fcm
from notifications_app.delivery.types import Accepted, BrowserTarget, Message, Target
from notifications_app.delivery.webpush import transport as webpush
from pushsvc.common import base64url
from pushsvc.sandbox.apns.server import ApnsSandbox
from pushsvc.sandbox.certificate import server_tls

_IN_FLIGHT = 100
_BODY = bytes(430)
_KEY_ID = UUID(int=1)
_GRANT = json.dumps({"access_token": "t" * 200, "expires_in": 3600}).encode()
_NAME = json.dumps({"name": "projects/p/messages/1"}).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with running_sink() as sink, asyncio.Runner(loop_factory=PatientLoop) as runner:
        runner.run(_measure(sink, arguments.messages, arguments.rounds))


async def _measure(sink: "Sink", messages: int, rounds: int) -> None:
    used: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, make in _SENDERS.items():
            async with make(sink) as send:
                await _all(send, _IN_FLIGHT)  # connects
                before = time.process_time()
                await _all(send, messages)
                used.setdefault(name, []).append((time.process_time() - before) / messages * 1e6)
    bare = used["bare aiohttp"]
    for name, each in used.items():
        ratios = [mine / theirs for mine, theirs in zip(each, bare, strict=True)]
        print(
            f"{name:14} {median(each):6.0f} us a message, {median(ratios):.2f} times bare aiohttp"
        )


async def _all(send: Callable[[], Awaitable[None]], count: int) -> None:
    left = iter(range(count))

    async def line() -> None:
        for _ in left:
            await send()

    await asyncio.gather(*(line() for _ in range(_IN_FLIGHT)))


# Senders


@asynccontextmanager
async def _bare(sink: "Sink") -> AsyncIterator[Callable[[], Awaitable[None]]]:
    tls = ssl.create_default_context(cafile=sink.ca_file)
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send() -> None:
            async with session.post(f"{sink.origin}/push/1", data=_BODY) as response:
                await response.read()

        yield send


@asynccontextmanager
async def _through(
    client: Client[Any, Any], target: Target, keys: object
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    content = Content(
        title="A title of some length", body="b" * 120, url="https://example.org/news/1", ttl=3_600
    )
    message = Message(uuid4(), content, expires_at=time.monotonic() + 3_600)

    async def send() -> None:
        outcome = await client.send(message, target, keys)
        if not isinstance(outcome, Accepted):
            raise TypeError(f"not accepted: {outcome}")

    try:
        yield send
    finally:
        await client.close()


def _web(sink: "Sink") -> Any:
    client = webpush.Client(
        trusted_origins=frozenset({sink.origin}), allowed_hosts=(), ca_file=sink.ca_file
    )
    keys = {_KEY_ID: webpush.VapidKey(base64url.encode(bytes(31) + b"\1"), "mailto:a@example.org")}
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    target = BrowserTarget(
        subscription_id=uuid4(),
        address=f"{sink.origin}/push/{'x' * 140}",
        token="t" * 80,
        p256dh=base64url.encode(public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)),
        auth=base64url.encode(bytes(16)),
        vapid_key_id=_KEY_ID,
    )
    return _through(client, target, keys)


def _android(sink: "Sink") -> Any:
    client = fcm.Client(
        api_base=sink.origin, token_uri=f"{sink.origin}/token", ca_file=sink.ca_file
    )
    key = rsa.generate_private_key(65_537, 2_048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = fcm.ServiceAccount("a-project", "a@example.org", pem, "1", 1)
    return _through(client, Target(uuid4(), "d" * 160, "t" * 80), account)


def _ios(sink: "Sink") -> Any:
    client = apns.Client(server=sink.apns_server, ca_file=sink.apns_ca_file)
    key = apns.AppKey.parse(json.dumps(sink.apns_credential), 1)
    return _through(client, Target(uuid4(), sink.apns_device, "t" * 80), key)


_SENDERS: dict[str, Callable[["Sink"], Any]] = {
    "bare aiohttp": _bare,
    "web": _web,
    "Android": _android,
    "iOS": _ios,
}


# The sink


@dataclass(frozen=True)
class Sink:
    """A server that accepts every message. `apns_server` is the sandbox's."""

    origin: str
    ca_pem: str
    apns_server: str
    apns_ca_file: str
    apns_credential: dict[str, str]
    apns_device: str
    ca_file: str = ""


@contextmanager
def running_sink() -> Iterator[Sink]:
    ours, theirs = Pipe()
    process = get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as ca_file:
        try:
            sink = ours.recv()
            ca_file.write(sink.ca_pem)
            ca_file.flush()
            yield replace(sink, ca_file=ca_file.name)
        finally:
            process.terminate()
            process.join()


def _serve(pipe: Connection) -> None:
    asyncio.run(_serve_until_killed(pipe))


async def _serve_until_killed(pipe: Connection) -> None:
    tls, pem = server_tls("127.0.0.1", None)
    tls.set_alpn_protocols(["http/1.1"])
    server = await asyncio.get_running_loop().create_server(_Answers, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    sandbox = ApnsSandbox(keep_content=False)
    await sandbox.start()
    sink = Sink(
        origin=f"https://127.0.0.1:{port}",
        ca_pem=pem,
        apns_server=sandbox.server,
        apns_ca_file=str(sandbox.ca_file),
        apns_credential=sandbox.key().credential,
        apns_device=sandbox.register().token,
    )
    pipe.send(sink)
    await server.serve_forever()


class _Answers(asyncio.Protocol):
    """Reads requests to their end, and answers each as its path needs."""

    def __init__(self) -> None:
        self._held = b""

    @override
    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._end_of_request()) is not None:
            self._transport.write(_answer(self._held[:end]))
            self._held = self._held[end:]

    def _end_of_request(self) -> int | None:
        head, found, _ = self._held.partition(b"\r\n\r\n")
        if not found:
            return None
        lengths = [
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ]
        end = len(head) + 4 + sum(lengths)
        return end if len(self._held) >= end else None


def _answer(request: bytes) -> bytes:
    if request.startswith(b"POST /push/"):
        return b"HTTP/1.1 201 Created\r\nLocation: /m/1\r\nContent-Length: 0\r\n\r\n"
    body = _GRANT if request.startswith(b"POST /token") else _NAME
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


if __name__ == "__main__":
    main()

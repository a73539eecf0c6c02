"""Two clients for the APNs sandbox: our transport, and aioapns as it is published."""

import asyncio
import json
import ssl
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from uuid import uuid4

from aioapns import APNs, NotificationRequest
from aioapns.connection import APNsTLSClientProtocol
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from notifications_app.delivery.apns.transport import ApnsKey, AppKey, Client
from notifications_app.delivery.types import Accepted, Destination
from sandbox.certificate import server_tls
from tests.delivery.support import make_message

# Credentials of nobody, for tests without a sandbox.
DEVICE = SimpleNamespace(token="a1" * 32)
CREDENTIALS = AppKey(
    ApnsKey(
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        .decode(),
        "KEY1234567",
        "TEAM123456",
    ),
    "com.example.app",
    "production",
)


def credentials_of(key, version=1, **over):
    return AppKey.parse(json.dumps(key.credential | over), version)


def destination_of(device, **over):
    values = {"subscription_id": uuid4(), "address": device.token, "token": "tracking"}
    return Destination(**values | over)


def make_client(sandbox, **settings):
    return Client(server=sandbox.server, ca_file=str(sandbox.ca_file), **settings)


class Ours:
    """`send` answers with "accepted", or with the code of the outcome."""

    def __init__(self, sandbox, **settings):
        self.credentials = credentials_of(sandbox.key())
        self.client = make_client(sandbox, **settings)

    async def send(self, device):
        outcome = await self.client.send(make_message(), destination_of(device), self.credentials)
        return "accepted" if isinstance(outcome, Accepted) else outcome.code

    async def close(self):
        await self.client.close()


class Plain:
    """aioapns 4.0, directed at the sandbox. `send` answers with the status, or raises."""

    def __init__(self, sandbox, *, inactivity=10, attempts=5, **settings):
        host, port = sandbox.server.split(":")

        class Protocol(APNsTLSClientProtocol):
            APNS_SERVER = host
            APNS_PORT = int(port)
            INACTIVITY_TIME = inactivity

        tls = ssl.create_default_context(cafile=str(sandbox.ca_file))
        tls.set_alpn_protocols(["h2"])
        credential = sandbox.key().credential
        del credential["environment"]
        self.apns = APNs(
            **credential, ssl_context=tls, max_connection_attempts=attempts, **settings
        )
        self.apns.pool.protocol_class = Protocol

    async def send(self, device):
        request = NotificationRequest(device.token, {"aps": {"alert": "It rains."}})
        result = await self.apns.send_notification(request)
        return "accepted" if result.is_successful else result.description

    async def close(self):
        for connection in self.apns.pool.connections:
            if connection.inactivity_timer:
                connection.inactivity_timer.cancel()
            connection.transport.abort()
        await asyncio.sleep(0)


@asynccontextmanager
async def sending(kind, sandbox, **settings):
    """A sender whose only connection has already sent a notification."""
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    sender = kind(sandbox, **settings)
    try:
        await sender.send(sandbox.register())
        yield sender
    finally:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        with suppress(Exception):
            await asyncio.gather(*tasks, return_exceptions=True)
        await sender.close()


async def ended(awaitable, seconds=10.0):
    """How the awaitable ends, as text: its result, the name of its exception, or "hangs"."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait([task], timeout=seconds)
    if not done:
        return "hangs"
    return type(task.exception()).__name__ if task.exception() else task.result()


async def received(*devices, count=1):
    """Waits until each device has been sent so many requests."""
    await until(lambda: all(len(device.receipts) >= count for device in devices))


async def until(condition):
    """Waits for what the sandbox does, or what follows from it."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)  # the sandbox is in another thread


@asynccontextmanager
async def client_of(sandbox, **settings):
    client = make_client(sandbox, **settings)
    try:
        yield client
    finally:
        await client.close()


def deliver(sandbox, key, *devices, hanging=(), proven=True, message=None, **settings):
    """The outcomes of the devices, sent to simultaneously over one client. It is closed when all
    devices but the hanging ones have theirs."""

    async def whole():
        async with client_of(sandbox, **settings) as client:
            credentials = credentials_of(key)
            if proven:
                await client.send(make_message(), destination_of(sandbox.register()), credentials)
            sends = {
                each: asyncio.ensure_future(
                    client.send(message or make_message(), destination_of(each), credentials)
                )
                for each in devices
            }
            await received(*hanging)
            await asyncio.wait([send for each, send in sends.items() if each not in hanging])
        return await asyncio.gather(*sends.values())

    return asyncio.run(whole())


def behaving(sandbox, mode, **options):
    device = sandbox.register()
    device.behave(mode, **options)
    return device


@asynccontextmanager
async def one_who_says(says, tmp_path):
    """A server with TLS that reads everything and answers a notification with these bytes.

    Yields its address, the file of its authority, and what it has read on each connection.
    """
    heard = []

    async def listen(reader, writer):
        heard.append(bytearray())
        own = heard[-1]
        while data := await reader.read(65_536):
            own += data
            if b'"aps"' in data:
                writer.write(says)
        writer.close()

    tls, pem = server_tls("127.0.0.1")
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text(pem)
    server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", str(ca_file), heard

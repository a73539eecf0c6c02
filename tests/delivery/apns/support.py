"""The iOS transport as a client of the APNs sandbox, and a server that sends given bytes."""

import asyncio
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from notifications_app.delivery.apns.transport import ApnsKey, AppKey, Client
from notifications_app.delivery.types import Destination
from sandbox.certificate import server_tls
from tests.delivery.support import connection_settings, make_message

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
    own = {"apns_server": sandbox.server, "ca_file": str(sandbox.ca_file)}
    return Client(connection_settings(**own, **settings))


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

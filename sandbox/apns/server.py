"""The APNs sandbox: Apple's push service and its iPhones at once, over TLS and HTTP/2."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from aiohttp import web

from sandbox.apns.control import ApnsControlApi
from sandbox.apns.devices import (
    DEFAULT_TEAM,
    DEFAULT_TOPIC,
    ApnsDevice,
    ApnsKey,
    ApnsReceipt,
    ApnsRegistry,
)
from sandbox.apns.send import ApnsResource
from sandbox.apns.wire import STREAMS, ApnsConnection
from sandbox.certificate import server_tls
from sandbox.devices import Inbox
from sandbox.serving import listen, running


class ApnsSandbox(Inbox[ApnsDevice, ApnsReceipt]):
    """An APNs server on one address: `server`, which is the value for `APNS_SERVER`.

    It binds the address at once and raises OSError if that is in use; port 0 is any free one. Its
    certificate comes from its own authority: `ca_pem`, and the file `ca_file` for
    `PROVIDER_CA_FILE`. It serves from `start` to `stop`; any thread may call the other methods. A
    connection accepts one request at once until it has seen a valid provider token, then
    `streams`. `keep_content=False` keeps counts and statuses, but neither headers nor payloads.
    `state_file` keeps keys and devices over restarts; another file next to it keeps the authority.
    """

    registry: ApnsRegistry

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ca_file: Path | None = None,
        streams: int = STREAMS,
        keep_content: bool = True,
        state_file: Path | None = None,
    ) -> None:
        self._socket = listen(host, port)
        self.server = f"{f'[{host}]' if ':' in host else host}:{self._socket.getsockname()[1]}"
        authority = state_file.with_suffix(".authority.pem") if state_file else None
        self._tls, self.ca_pem = server_tls(host, authority)
        self._has_own_file = ca_file is None
        self.ca_file = _write(self.ca_pem, ca_file)
        self.registry = ApnsRegistry(state_file)
        self._streams = streams
        self._resource = ApnsResource(self.registry, keep_content=keep_content)
        self._connections: set[ApnsConnection] = set()
        self._server: asyncio.Server | None = None
        self.connection_count = 0

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, sock=self._socket, ssl=self._tls)

    async def stop(self) -> None:
        """Cuts every connection and frees the address."""
        if self._server:
            self._server.close()
        await asyncio.gather(*(connection.cut() for connection in self._connections))
        self._socket.close()
        if self._has_own_file:
            self.ca_file.unlink(missing_ok=True)

    def key(self, team_id: str = DEFAULT_TEAM, topic: str = DEFAULT_TOPIC) -> ApnsKey:
        """Creates a key of a team for the app `topic`. Its `credential` is for `apns_key`."""
        return self.registry.add_key(team_id, topic)

    def register(self, topic: str = DEFAULT_TOPIC) -> ApnsDevice:
        """Creates an iPhone with the app `topic`."""
        return self.registry.add_device(topic)

    @property
    def open_connection_count(self) -> int:
        return len(self._connections)

    def devices(self) -> list[ApnsDevice]:
        return list(self.registry.devices.values())

    def delete(self, device: ApnsDevice) -> None:
        """Deletes the app from the device: further requests get 410 Unregistered."""
        self.registry.delete(device, time.time())

    def reset(self) -> None:
        """Deletes every key, device and message."""
        self.registry.clear()

    def control_routes(self) -> list[web.RouteDef]:
        """The routes of `sandbox.apns.control`, for an HTTP server in the same loop."""
        facts = {"server": self.server, "ca_file": str(self.ca_file), "ca_pem": self.ca_pem}
        return ApnsControlApi(self.registry, facts).routes()

    def _connection(self) -> ApnsConnection:
        self.connection_count += 1
        return ApnsConnection(
            self._resource, self.connection_count, self._connections, self._streams
        )


def _write(pem: str, path: Path | None) -> Path:
    if path is not None:
        path.write_text(pem, encoding="ascii")
        return path
    descriptor, name = tempfile.mkstemp(prefix="apns-sandbox-", suffix=".pem")
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(pem)
    return Path(name)


running_apns_sandbox = running(ApnsSandbox)

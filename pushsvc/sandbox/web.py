"""The web push sandbox: an HTTP server that is a push service and its browsers at once."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from pushsvc.sandbox.control import ControlApi
from pushsvc.sandbox.devices import Device, MismatchAnswer, WebReceipt
from pushsvc.sandbox.journal import Journal
from pushsvc.sandbox.push import PushResource
from pushsvc.sandbox.registry import Devices
from pushsvc.sandbox.serving import STOP_SECONDS, listen, origin_of, served


class WebSandbox:
    """A push service on one address.

    The address is taken at once (OSError if it is in use; port 0 is any free one), so that
    `origin` is known; requests are answered from `start` to `stop`. Everything but `start` and
    `stop` may be called from any thread. `keep_content=False` keeps counts and statuses but
    neither headers nor plaintexts; `state_file` keeps the devices over restarts.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ssl_context: ssl.SSLContext | None = None,
        keep_content: bool = True,
        state_file: Path | None = None,
    ) -> None:
        self._socket = listen(host, port)
        self._ssl_context = ssl_context
        self.origin = origin_of(host, self._socket.getsockname()[1], is_tls=ssl_context is not None)
        self._devices = Devices(self.origin, Journal(state_file) if state_file else None)
        application = web.Application()
        push = PushResource(self._devices, self.origin, keep_content=keep_content)
        application.add_routes([*push.routes(), *ControlApi(self._devices).routes()])
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=STOP_SECONDS,
        )

    async def start(self) -> None:
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket, ssl_context=self._ssl_context).start()

    async def stop(self) -> None:
        """Answer what is at hand, cut what hangs, and free the address."""
        await self._runner.cleanup()
        self._socket.close()

    def subscribe(
        self,
        application_server_key: str | None = None,
        mismatch_answer: MismatchAnswer = MismatchAnswer.FORBIDDEN,
    ) -> Device:
        """A new device; with a key (base64url) it takes messages of that VAPID key only.

        Raises ValueError if the key is not a P-256 point.
        """
        return self._devices.add(application_server_key, mismatch_answer)

    def devices(self) -> list[Device]:
        return self._devices.all()

    def delete(self, device: Device) -> None:
        """End the device's subscription: its endpoint answers 410 from now on."""
        self._devices.delete(device)

    def reset(self) -> None:
        """Forget every device and every message; the old endpoints answer 404."""
        self._devices.clear()

    def messages(self, device_id: str) -> list[WebReceipt]:
        """Every request to the device, oldest first; raises KeyError for an unknown one."""
        return list(self._device(device_id).receipts)

    def accepted_count(self, device_id: str | None = None) -> int:
        """How many messages the device, or all devices together, accepted."""
        devices = self.devices() if device_id is None else [self._device(device_id)]
        return sum(device.totals().accepted for device in devices)

    def _device(self, device_id: str) -> Device:
        device = self._devices.find(device_id)
        if device is None:
            raise KeyError(device_id)
        return device


@contextmanager
def running_sandbox(
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ssl_context: ssl.SSLContext | None = None,
    keep_content: bool = True,
    state_file: Path | None = None,
) -> Iterator[WebSandbox]:
    """A sandbox that serves in a thread of its own until the block ends."""
    sandbox = WebSandbox(
        host=host,
        port=port,
        ssl_context=ssl_context,
        keep_content=keep_content,
        state_file=state_file,
    )
    with served(sandbox):
        yield sandbox

"""The web push sandbox: an HTTP server that is a push service and its browsers at once."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from pushsvc.sandbox.journal import Journal
from pushsvc.sandbox.serving import STOP_SECONDS, listen, origin_of, served
from pushsvc.sandbox.webpush.autopush import AutopushResource
from pushsvc.sandbox.webpush.browsers import BrowserDevice, Browsers
from pushsvc.sandbox.webpush.control import ControlApi
from pushsvc.sandbox.webpush.devices import Device, MismatchAnswer, Subscriber, WebReceipt
from pushsvc.sandbox.webpush.registry import Devices
from pushsvc.sandbox.webpush.send import PushResource


class WebSandbox:
    """A push service on one address.

    The address is taken at once (OSError if it is in use; port 0 is any free one), so that
    `origin` is known; requests are answered from `start` to `stop`. Everything but `start` and
    `stop` may be called from any thread. `keep_content=False` keeps counts and statuses but
    neither headers nor plaintexts; `state_file` keeps the devices over restarts.

    Firefox can have it as its push service (`browser_url`): its subscriptions are beside those
    that `subscribe` makes, and misbehave and are read in the same ways.
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
        self._browsers = Browsers()
        application = web.Application()
        push = PushResource(self._devices, self.origin, keep_content=keep_content)
        control = ControlApi(self._devices, self._browsers)
        autopush = AutopushResource(self._devices, self._browsers)
        application.add_routes([*push.routes(), *control.routes(), *autopush.routes()])
        application.on_shutdown.append(autopush.close)
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

    @property
    def browser_url(self) -> str:
        """For Firefox's preference `dom.push.serverURL` (`pushsvc.sandbox.webpush.autopush`)."""
        return f"ws{self.origin.removeprefix('http')}/ws"

    def devices(self) -> list[Device]:
        """Those that `subscribe` made."""
        return [device for device in self._devices.all() if isinstance(device, Device)]

    def browser_devices(self) -> list[BrowserDevice]:
        """Those that real browsers subscribed."""
        return [device for device in self._devices.all() if isinstance(device, BrowserDevice)]

    def delete(self, device: Subscriber) -> None:
        """End the subscription: its endpoint answers 410 from now on. No browser is told."""
        self._devices.delete(device)

    def renew(self, device: BrowserDevice) -> None:
        """Make its browser drop all its subscriptions and fire `pushsubscriptionchange`."""
        self._browsers.forget(device.browser)

    def reset(self) -> None:
        """Forget every device, browser and message; the old endpoints answer 404."""
        self._devices.clear()
        self._browsers.clear()

    def messages(self, device_id: str) -> list[WebReceipt]:
        """Every request to the device, oldest first; raises KeyError for an unknown one."""
        return list(self._device(device_id).receipts)

    def accepted_count(self, device_id: str | None = None) -> int:
        """How many messages the device, or all devices together, accepted."""
        devices = self._devices.all() if device_id is None else [self._device(device_id)]
        return sum(device.totals().accepted for device in devices)

    def _device(self, device_id: str) -> Subscriber:
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

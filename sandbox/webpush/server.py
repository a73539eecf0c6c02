"""The web push sandbox: an HTTP server that simulates a push service and its browsers."""

import ssl
from pathlib import Path

from sandbox.devices import Inbox
from sandbox.serving import HttpServer, running
from sandbox.webpush.autopush import AutopushResource
from sandbox.webpush.browsers import BrowserDevice, Browsers
from sandbox.webpush.control import ControlApi
from sandbox.webpush.devices import Device, MismatchAnswer, Subscriber, WebReceipt
from sandbox.webpush.journal import Journal
from sandbox.webpush.rate import RateLimit
from sandbox.webpush.registry import Devices
from sandbox.webpush.send import PushResource


class WebSandbox(HttpServer, Inbox[Subscriber, WebReceipt]):
    """A push service on one address.

    Any thread may call the methods other than `start` and `stop`. `keep_content=False` keeps counts
    and statuses, but neither headers nor plaintexts. `state_file` keeps the devices over restarts.

    Firefox can use it as its push service (`browser_url`). Its subscriptions can be used like those
    of `subscribe`.
    """

    registry: Devices

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ssl_context: ssl.SSLContext | None = None,
        keep_content: bool = True,
        state_file: Path | None = None,
    ) -> None:
        super().__init__(host, port, ssl_context)
        self.registry = Devices(self.origin, Journal(state_file))
        self._browsers = Browsers()
        self._push = PushResource(self.registry, self.origin, keep_content=keep_content)
        control = ControlApi(self.registry, self._browsers, self._push)
        autopush = AutopushResource(self.registry, self._browsers)
        self.application.add_routes([*self._push.routes(), *control.routes(), *autopush.routes()])
        self.application.on_shutdown.append(autopush.close)

    def subscribe(
        self,
        application_server_key: str | None = None,
        mismatch_response: MismatchAnswer = MismatchAnswer.FORBIDDEN,
        *,
        is_bridged: bool = False,
    ) -> Device:
        """Creates a device. With a key (base64url) it accepts only messages with that VAPID key.
        One that `is_bridged` takes only what fits into a message of FCM, as Firefox for Android.

        Raises ValueError if the key is not a P-256 point.
        """
        return self.registry.add(application_server_key, mismatch_response, is_bridged=is_bridged)

    @property
    def browser_url(self) -> str:
        """For Firefox's preference `dom.push.serverURL` (`sandbox.webpush.autopush`)."""
        return f"ws{self.origin.removeprefix('http')}/ws"

    def devices(self) -> list[Device]:
        """The devices that `subscribe` created."""
        return [device for device in self.registry.all() if isinstance(device, Device)]

    def browser_devices(self) -> list[BrowserDevice]:
        """The devices of real browsers."""
        return [device for device in self.registry.all() if isinstance(device, BrowserDevice)]

    def limit(self, messages: int, *, retry_after: bool = False, seconds: float = 60.0) -> None:
        """Accepts so many messages of each VAPID key in `seconds`, and responds with 429 to the
        others (`sandbox.webpush.rate`)."""
        self._push.limit = RateLimit(messages, retry_after, seconds)

    def delete(self, device: Subscriber) -> None:
        """Ends the subscription: its endpoint responds with 410. Browsers are not notified."""
        self.registry.delete(device)

    def renew(self, device: BrowserDevice) -> None:
        """Makes the browser drop all its subscriptions and fire `pushsubscriptionchange`."""
        self._browsers.forget(device.browser)

    def reset(self) -> None:
        """Deletes devices, browsers, messages and the limit. The endpoints respond with 404."""
        self._push.limit = None
        self.registry.clear()
        self._browsers.clear()


running_sandbox = running(WebSandbox)

"""The FCM sandbox: an HTTP server that is Google's token endpoint, FCM v1 and its Androids at once.

Senders need two settings: FCM's base (`origin`) and the token endpoint (`token_uri`).
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from pushsvc.sandbox.fcm.control import FcmControlApi
from pushsvc.sandbox.fcm.devices import QUOTA_PER_MINUTE, FcmDevice, FcmReceipt, Project, Registry
from pushsvc.sandbox.fcm.oauth import TokenResource
from pushsvc.sandbox.fcm.send import SendResource
from pushsvc.sandbox.lines import LineFile
from pushsvc.sandbox.serving import STOP_SECONDS, listen, origin_of, served


class FcmSandbox:
    """FCM on one address, for any number of projects.

    The address is taken at once (OSError if it is in use; port 0 is any free one), so that
    `origin` is known; requests are answered from `start` to `stop`. Everything but `start` and
    `stop` may be called from any thread. `keep_content=False` keeps counts and statuses but
    neither headers nor messages; `state_file` keeps devices and service accounts over restarts.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ssl_context: ssl.SSLContext | None = None,
        keep_content: bool = True,
        state_file: Path | None = None,
        quota_per_minute: int = QUOTA_PER_MINUTE,
    ) -> None:
        self._socket = listen(host, port)
        self._ssl_context = ssl_context
        port = self._socket.getsockname()[1]
        self.origin = origin_of(host, port, is_tls=ssl_context is not None)
        self.token_uri = f"{self.origin}/token"
        file = LineFile(state_file) if state_file else None
        self._registry = Registry(self.token_uri, file, quota_per_minute)
        application = web.Application()
        oauth = TokenResource(self._registry, self.token_uri)
        send = SendResource(self._registry, keep_content=keep_content)
        control = FcmControlApi(self._registry)
        application.add_routes([*oauth.routes(), *send.routes(), *control.routes()])
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

    def service_account(self, project: str) -> dict[str, str]:
        """A new account that may send in the project: the key file that Google's console
        downloads, as an object."""
        return dict(self._registry.new_account(project).key_file)

    def revoke(self, service_account: dict[str, str]) -> None:
        """Its access tokens are 401 and requests for others invalid_grant from now on.

        Raises KeyError for an unknown account.
        """
        self._registry.revoke(service_account["client_email"])

    def expire_tokens(self, project: str) -> None:
        """The access tokens given so far are 401 from now on; new ones are given."""
        self._registry.expire_tokens(project)

    def project(self, project: str) -> Project:
        """Its quota, and how its token endpoint and its messages are told to misbehave."""
        return self._registry.project(project)

    def register(self, project: str) -> FcmDevice:
        """A new device with a registration token of the project."""
        return self._registry.add(project)

    def devices(self) -> list[FcmDevice]:
        return self._registry.all()

    def unregister(self, device: FcmDevice) -> None:
        """The app was removed: its token is UNREGISTERED from now on."""
        self._registry.unregister(device)

    def reset(self) -> None:
        """Forget devices, messages and behaviours, but not the service accounts."""
        self._registry.clear()

    def messages(self, device_id: str) -> list[FcmReceipt]:
        """Every request to the device, oldest first; raises KeyError for an unknown one."""
        return list(self._device(device_id).receipts)

    def accepted_count(self, device_id: str | None = None) -> int:
        """How many messages the device, or all devices together, accepted."""
        devices = self.devices() if device_id is None else [self._device(device_id)]
        return sum(device.totals().accepted for device in devices)

    def _device(self, device_id: str) -> FcmDevice:
        device = self._registry.by_id(device_id)
        if device is None:
            raise KeyError(device_id)
        return device


@contextmanager
def running_fcm_sandbox(
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ssl_context: ssl.SSLContext | None = None,
    keep_content: bool = True,
    state_file: Path | None = None,
    quota_per_minute: int = QUOTA_PER_MINUTE,
) -> Iterator[FcmSandbox]:
    """A sandbox that serves in a thread of its own until the block ends."""
    sandbox = FcmSandbox(
        host=host,
        port=port,
        ssl_context=ssl_context,
        keep_content=keep_content,
        state_file=state_file,
        quota_per_minute=quota_per_minute,
    )
    with served(sandbox):
        yield sandbox

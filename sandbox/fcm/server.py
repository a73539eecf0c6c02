"""The FCM sandbox: an HTTP server for Google's token endpoint, FCM v1 and Android devices.

Senders need two settings: FCM's base (`origin`) and the token endpoint (`token_uri`).
"""

import ssl
from pathlib import Path

from sandbox.devices import Inbox
from sandbox.fcm.control import FcmControlApi
from sandbox.fcm.devices import QUOTA_PER_MINUTE, FcmDevice, FcmReceipt, Project, Registry
from sandbox.fcm.oauth import TokenResource
from sandbox.fcm.send import SendResource
from sandbox.lines import LineFile
from sandbox.serving import HttpServer, running


class FcmSandbox(HttpServer, Inbox[FcmDevice, FcmReceipt]):
    """FCM on one address, for any number of projects.

    Any thread may call the methods other than `start` and `stop`. `keep_content=False` keeps counts
    and statuses, but neither headers nor messages. `state_file` keeps devices and service accounts
    over restarts.
    """

    registry: Registry

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
        super().__init__(host, port, ssl_context)
        self.token_uri = f"{self.origin}/token"
        self.registry = Registry(self.token_uri, LineFile(state_file), quota_per_minute)
        oauth = TokenResource(self.registry, self.token_uri)
        send = SendResource(self.registry, keep_content=keep_content)
        control = FcmControlApi(self.registry)
        self.application.add_routes([*oauth.routes(), *send.routes(), *control.routes()])

    def service_account(self, project: str) -> dict[str, str]:
        """Creates an account that may send in the project. Returns its key file as an object."""
        return dict(self.registry.new_account(project).key_file)

    def revoke(self, service_account: dict[str, str]) -> None:
        """Revokes the account: its access tokens get 401, and requests for new ones invalid_grant.

        Raises KeyError for an unknown account.
        """
        self.registry.revoke(service_account["client_email"])

    def expire_tokens(self, project: str) -> None:
        """Expires the access tokens granted so far: they get 401. New ones can be requested."""
        self.registry.expire_tokens(project)

    def project(self, project: str) -> Project:
        """The project, with its quota, and the behaviours of its token endpoint and messages."""
        return self.registry.project(project)

    def register(self, project: str, *, by_fid: bool = False) -> FcmDevice:
        """Creates a device that is registered with the project, by its token or by its FID."""
        return self.registry.add(project, by_fid=by_fid)

    def register_by_fid(self, device: FcmDevice) -> None:
        """Updates the app to registration by FID. Its token becomes UNREGISTERED."""
        self.registry.register_by_fid(device)

    def devices(self) -> list[FcmDevice]:
        return self.registry.all()

    def unregister(self, device: FcmDevice) -> None:
        """Removes the app: its token and its FID become UNREGISTERED."""
        self.registry.unregister(device)

    def reset(self) -> None:
        """Deletes devices, messages and behaviours. Keeps service accounts."""
        self.registry.clear()


running_fcm_sandbox = running(FcmSandbox)

"""The projects of the FCM sandbox and the devices that are registered with them."""

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.behaviours import Behaving
from sandbox.fcm import behaviours
from sandbox.fcm.accounts import TOKEN_LIFETIME, AccessTokens, ServiceAccount, new_key_file
from sandbox.lines import LineFile
from sandbox.receipts import Receipt

# https://firebase.google.com/docs/cloud-messaging/scale-fcm
QUOTA_PER_MINUTE = 600_000
_MINUTE = 60.0


@dataclass(slots=True)
class FcmReceipt(Receipt):
    """`message` is None if it could not be read or if content is not kept."""

    message: Mapping[str, Any] | None = None


@dataclass(slots=True, eq=False)
class FcmDevice(Behaving[FcmReceipt]):
    """An installation of an app, which is registered by its token or, `by_fid`, by its FID. FCM
    delivers to one of the two, because an app that registers by FID gets no token
    (https://firebase.google.com/docs/cloud-messaging/android/get-started)."""

    repertoire = behaviours.DEVICE

    id: str
    project: str
    token: str
    by_fid: bool = False
    is_unregistered: bool = False

    @property
    def fid(self) -> str:
        """The installation id, with which the token begins."""
        return self.token.partition(":")[0]

    @property
    def address(self) -> str:
        """What the app sends to its backend."""
        return self.fid if self.by_fid else self.token


@dataclass(slots=True, eq=False)
class TokenEndpoint(Behaving[Receipt]):
    """The token endpoint for a project's service accounts. `lifetime`: of an access token, in
    seconds."""

    repertoire = behaviours.TOKEN

    lifetime: int = TOKEN_LIFETIME


@dataclass(slots=True, eq=False)
class Messaging(Behaving[FcmReceipt]):
    """The behaviour for all messages of a project, before FCM checks them. `receipts` has all
    messages, even those without a device."""

    repertoire = behaviours.PROJECT


@dataclass(slots=True, eq=False)
class Project:
    """A project. The minute of `quota_per_minute` starts with the first message."""

    id: str
    quota_per_minute: int = QUOTA_PER_MINUTE
    tokens: TokenEndpoint = field(default_factory=TokenEndpoint)
    messaging: Messaging = field(default_factory=Messaging)
    _minute_began: float = -math.inf
    _sent: int = 0

    def seconds_over_quota(self, now: float) -> float:
        """Counts one message. Returns 0 within the quota, otherwise the seconds to wait."""
        if now >= self._minute_began + _MINUTE:
            self._minute_began, self._sent = now, 0
        self._sent += 1
        return self._minute_began + _MINUTE - now if self._sent > self.quota_per_minute else 0.0


class Registry:
    """All projects, devices and accounts. `file` keeps devices and accounts over restarts."""

    def __init__(self, token_uri: str, file: LineFile, quota_per_minute: int) -> None:
        self._token_uri = token_uri
        self._file = file
        self._quota_per_minute = quota_per_minute
        self._projects: dict[str, Project] = {}
        self._by_id: dict[str, FcmDevice] = {}
        self._by_address: dict[str, FcmDevice] = {}
        self.accounts: dict[str, ServiceAccount] = {}
        self.tokens = AccessTokens()
        for entry in file.entries():
            self._restore(entry)

    def project(self, project_id: str) -> Project:
        """The project, created when it is first named."""
        project = self._projects.get(project_id)
        if project is None:
            project = Project(project_id, self._quota_per_minute)
            self._projects[project_id] = project
        return project

    def new_account(self, project_id: str) -> ServiceAccount:
        account = ServiceAccount.of(new_key_file(project_id, self._token_uri))
        self.accounts[account.email] = account
        self._file.append({"account": account.key_file})
        return account

    def revoke(self, email: str) -> None:
        """Revokes the account and its access tokens. Raises KeyError for an unknown account."""
        del self.accounts[email]
        self.tokens.forget(lambda token: token.email == email)
        self._file.append({"revoked": email})

    def expire_tokens(self, project_id: str) -> None:
        self.tokens.forget(lambda token: token.project == project_id)

    def add(self, project_id: str, *, by_fid: bool = False) -> FcmDevice:
        device = self._keep(FcmDevice(secrets.token_hex(16), project_id, _new_token()))
        self._file.append({"device": device.id, "project": project_id, "token": device.token})
        if by_fid:
            self.register_by_fid(device)
        return device

    def register_by_fid(self, device: FcmDevice) -> None:
        """From now on, the device is reached by its FID, and its token is UNREGISTERED."""
        device.by_fid = True
        self._file.append({"by_fid": device.token})

    def by_address(self, address: str) -> FcmDevice | None:
        """The device that has this token or FID, even if it is not registered by it."""
        return self._by_address.get(address)

    def find(self, device_id: str) -> FcmDevice | None:
        return self._by_id.get(device_id)

    def ids(self) -> list[str]:
        return list(self._by_id)

    def all(self) -> list[FcmDevice]:
        return list(self._by_id.values())

    def unregister(self, device: FcmDevice) -> None:
        """Removes the app: its token becomes UNREGISTERED. Safe to repeat."""
        device.is_unregistered = True
        self._file.append({"unregistered": device.token})

    def clear(self) -> None:
        """Deletes devices, receipts and behaviours. Keeps accounts."""
        self._by_id.clear()
        self._by_address.clear()
        self._projects.clear()
        self._file.clear()
        for account in self.accounts.values():
            self._file.append({"account": account.key_file})

    def _keep(self, device: FcmDevice) -> FcmDevice:
        self._by_id[device.id] = device
        self._by_address[device.token] = self._by_address[device.fid] = device
        return device

    def _restore(self, entry: Mapping[str, Any]) -> None:
        match entry:
            case {"account": key_file}:
                account = ServiceAccount.of(key_file)
                self.accounts[account.email] = account
            case {"revoked": email}:
                del self.accounts[email]
            case {"device": device_id, "project": project_id, "token": token}:
                self._keep(FcmDevice(device_id, project_id, token))
            case {"by_fid": token}:
                self._by_address[token].by_fid = True
            case {"unregistered": token}:
                self._by_address[token].is_unregistered = True


def _new_token() -> str:
    """A token in the format of FCM's: a FID, a colon and more."""
    fid = secrets.choice("cdef") + secrets.token_urlsafe(16)[:21]
    return f"{fid}:APA91b{secrets.token_urlsafe(101)[:134]}"

"""The three push services with one shape, for the tests that hold for all of them."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from multidict import CIMultiDict

from sandbox import running_apns_sandbox, running_fcm_sandbox, running_sandbox
from sandbox.serving import HttpServer, running
from tests.sandbox.apns.sender import Provider, headers_of, token_of
from tests.sandbox.fcm.sender import PROJECT, FcmSender
from tests.sandbox.webpush.sender import Sender, request


def call(server, method, path, body=None):
    """(status, JSON) of a request to the control interface."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    answered = request(method, server.origin + path, raw)
    return answered.status, json.loads(answered.body or b"null")


@dataclass(kw_only=True)
class Service:
    """A running sandbox, and a sender that it accepts. `invalid`: what makes a request invalid.
    `accepted` and `deleted` are the statuses for a device and for a deleted one."""

    sandbox: Any
    sender: Any
    control: Any
    register: Any
    accepted: int = 200
    deleted: int
    invalid: dict
    base: str = ""
    devices: str = "/devices"
    added_at: str = devices
    id_name: str = "id"

    def call(self, method, path, body=None):
        return call(self.control, method, self.base + path, body)

    def id_of(self, device):
        return getattr(device, self.id_name)

    def path_of(self, device):
        return f"{self.devices}/{self.id_of(device)}"

    def delete(self, device):
        assert self.call("DELETE", self.path_of(device)) == (204, None)

    def statuses(self, device, times):
        return [self.sender.send(device).status for _ in range(times)]


@contextmanager
def web(sender=None, **options):
    with running_sandbox(**options) as sandbox:
        yield Service(
            sandbox=sandbox,
            sender=sender or Sender(),
            control=sandbox,
            register=sandbox.subscribe,
            accepted=201,
            deleted=410,
            invalid={"TTL": None},
            devices="/subscriptions",
            added_at="/subscriptions",
        )


@contextmanager
def android(sender=None, **options):
    with running_fcm_sandbox(**options) as sandbox:
        yield Service(
            sandbox=sandbox,
            sender=sender.moved_to(sandbox) if sender else FcmSender(sandbox),
            control=sandbox,
            register=partial(sandbox.register, PROJECT),
            deleted=404,
            invalid={"data": {"from": "x"}},
            added_at=f"/projects/{PROJECT}/devices",
        )


@contextmanager
def ios(sender=None, **options):
    with running_apns_sandbox(**options) as sandbox, running(_control_of)(sandbox) as control:
        yield Service(
            sandbox=sandbox,
            sender=sender.moved_to(sandbox) if sender else _Provider(sandbox, sandbox.key()),
            control=control,
            register=sandbox.register,
            deleted=410,
            invalid={"apns_priority": "7"},
            base="/apns",
            id_name="token",
        )


def _control_of(sandbox):
    server = HttpServer("127.0.0.1", 0, None)
    server.application.add_routes(sandbox.control_routes())
    return server


class _Provider:
    """Sends each message on a connection of its own."""

    def __init__(self, sandbox, key):
        self._sandbox = sandbox
        self._key = key

    def moved_to(self, sandbox):
        return _Provider(sandbox, self._key)

    def send(self, device, **over):
        with Provider(self._sandbox) as provider:
            answered = provider.send(headers_of(device, token_of(self._key), **over))
        answered.headers = CIMultiDict(answered.headers)
        return answered


SERVICES = {"web": web, "android": android, "ios": ios}

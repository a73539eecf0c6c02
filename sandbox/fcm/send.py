"""FCM's send method: `POST /v1/projects/{project}/messages:send`.

The order of the checks: the access token (401); the JSON and its type (400); the account's project
and the project's behaviour (403, or as told); FCM's checks of the message (400); the format of the
registration token or FID (400), whether a device is registered by it (404) and with this project
(403); the quota (429). The device's behaviour applies only to a message that passes all checks, and
uses up one of its `times`.
"""

import json
import math
import re
import secrets
import time
from typing import Any

from aiohttp import web

from sandbox.fcm import message, responses, schema
from sandbox.fcm.accounts import AccessToken
from sandbox.fcm.behaviours import device_response, project_response
from sandbox.fcm.devices import FcmDevice, FcmReceipt, Project, Registry
from sandbox.fcm.message import ReceivedSend
from sandbox.responses import RejectedError, Response, write_response
from sandbox.wire import act

SCOPES = frozenset(
    {
        "https://www.googleapis.com/auth/firebase.messaging",
        "https://www.googleapis.com/auth/cloud-platform",
    }
)
_FORMATS = {
    "token": re.compile(r"[A-Za-z0-9_-]{11,}:APA91b[A-Za-z0-9_-]{100,}"),
    "fid": re.compile(r"[cdef][A-Za-z0-9_-]{21}"),
}


class SendResource:
    """Checks each message, keeps a receipt of it, and responds as set for project and device.

    Without `keep_content` receipts have neither headers nor messages.
    """

    def __init__(self, registry: Registry, *, keep_content: bool) -> None:
        self._registry = registry
        self._keep_content = keep_content

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/projects/{project}/messages:send", self.post)]

    async def post(self, request: web.Request) -> web.StreamResponse:
        project = self._registry.project(request.match_info["project"])
        receipt = FcmReceipt(time.time(), dict(request.headers) if self._keep_content else {})
        project.messaging.receipts.append(receipt)
        try:
            sent = await self._checked(request, project, receipt)
            device = self._device(sent, project, receipt)
            _check_quota(project)
        except RejectedError as error:
            return await write_response(request, receipt, error.response)
        return await self._behave(request, device, sent, receipt)

    async def _checked(
        self, request: web.Request, project: Project, receipt: FcmReceipt
    ) -> ReceivedSend:
        token = self._bearer(request)
        value = _json(await request.read())
        schema.check_request(value)
        if self._keep_content:
            receipt.message = value.get("message")
        _check_permission(token, project)
        return message.checked(value)

    def _bearer(self, request: web.Request) -> AccessToken:
        scheme, _, value = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise RejectedError(responses.unauthenticated("CREDENTIALS_MISSING"))
        token = self._registry.tokens.find(value, time.time())
        if token is None:
            raise RejectedError(responses.unauthenticated("ACCESS_TOKEN_EXPIRED"))
        return token

    def _device(self, sent: ReceivedSend, project: Project, receipt: FcmReceipt) -> FcmDevice:
        if not _FORMATS[sent.field].fullmatch(sent.address):
            raise RejectedError(responses.bad_address(sent.field))
        device = self._registry.by_address(sent.address)
        if device is None:
            raise RejectedError(responses.unregistered())
        device.receipts.append(receipt)
        if device.project != project.id:
            raise RejectedError(responses.sender_id_mismatch())
        if device.is_unregistered or device.address != sent.address:
            raise RejectedError(responses.unregistered())
        return device

    async def _behave(
        self, request: web.Request, device: FcmDevice, sent: ReceivedSend, receipt: FcmReceipt
    ) -> web.StreamResponse:
        behaviour = device.next_behaviour()
        await act(request, behaviour, receipt)
        accepted = _accepted(device.project, is_dry_run=sent.is_dry_run)
        response = device_response(behaviour, field=sent.field, accepted=accepted, now=time.time())
        return await write_response(request, receipt, response)


def _accepted(project: str, *, is_dry_run: bool) -> Response:
    message_id = "fake_message_id" if is_dry_run else f"0:{secrets.token_hex(16)}"
    name = f"projects/{project}/messages/{message_id}"
    return responses.ok({"name": name}, taken=not is_dry_run)


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        text = "Invalid JSON payload received. Unexpected token."
        raise RejectedError(responses.unreadable(text)) from None
    if not isinstance(value, dict):
        text = "Invalid JSON payload received. Root element must be a message."
        raise RejectedError(responses.unreadable(text))
    return value


def _check_permission(token: AccessToken, project: Project) -> None:
    if not token.scopes & SCOPES:
        raise RejectedError(responses.insufficient_scope())
    if token.project != project.id:
        raise RejectedError(responses.permission_denied(project.id))
    behaviour = project.messaging.next_behaviour()
    response = project_response(behaviour, project.id, now=time.time())
    if response is not None:
        raise RejectedError(response)


def _check_quota(project: Project) -> None:
    wait = project.seconds_over_quota(time.time())
    if wait:
        raise RejectedError(responses.quota_exceeded({"Retry-After": str(math.ceil(wait))}))

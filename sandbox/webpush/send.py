"""The push resource of RFC 8030: `POST /push/{id}`.

The order of the checks: the device is known (404) and not deleted (410); the headers (400); the
size (413); VAPID (401, 403); the encryption (400); the sender's key is new (400); if the device is
reached over FCM, the size of that message (413); a declarative message (400); the sender's rate
(429), if it has a limit. The device's behaviour applies only to a request that passes all checks,
and uses up one of its `times`.
"""

import json
import logging
import secrets
import time
from uuid import UUID

from aiohttp import StreamReader, web

from pushsvc.common import base64url
from sandbox.responses import RejectedError, Response, http_response, write_response
from sandbox.webpush import responses
from sandbox.webpush.behaviours import MAX_BODY, response_of
from sandbox.webpush.declarative import declared
from sandbox.webpush.devices import MismatchAnswer, PushMessage, Subscriber, WebReceipt
from sandbox.webpush.encryption import parse_record
from sandbox.webpush.headers import check_headers
from sandbox.webpush.rate import RateLimit
from sandbox.webpush.registry import Devices
from sandbox.webpush.responses import rejected
from sandbox.webpush.vapid import check_restriction, check_vapid
from sandbox.wire import act

# autopush-rs, routers/fcm/settings.rs.
_MAX_BRIDGED = 4096

logger = logging.getLogger(__name__)


class PushResource:
    """Checks each message, keeps a receipt of it, and responds as set for the device.

    Without `keep_content` receipts have neither headers nor plaintext. `limit`: of each VAPID key;
    any thread may set it.
    """

    limit: RateLimit | None = None

    def __init__(self, devices: Devices, origin: str, *, keep_content: bool) -> None:
        self._devices = devices
        self._origin = origin
        self._keep_content = keep_content

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/push/{id}", self.post)]

    async def post(self, request: web.Request) -> web.StreamResponse:
        device = self._devices.find(request.match_info["id"])
        if device is None:
            return http_response(responses.not_found())
        receipt = WebReceipt(time.time(), dict(request.headers) if self._keep_content else {})
        device.receipts.append(receipt)
        try:
            message = await self._check(request, device, receipt)
        except RejectedError as error:
            return await write_response(request, receipt, error.response)
        try:
            return await self._behave(request, device, message)
        finally:
            # An accepted message reaches the browser, even if the response was lost.
            if receipt.taken:
                device.take(message)

    async def _check(
        self, request: web.Request, device: Subscriber, receipt: WebReceipt
    ) -> PushMessage:
        """Checks the message and notes its plaintext if readable. Raises RejectedError at the first
        error."""
        if device.is_deleted:
            raise RejectedError(responses.gone())
        ttl = check_headers(request.headers)
        body = await _read(request.content)
        sender = self._check_sender(request, device)
        plaintext = self._read_record(body, device)
        if device.is_bridged:
            _check_bridge(body)
        notification = declared(plaintext) if plaintext else None
        if self._keep_content:
            receipt.plaintext, receipt.declared = plaintext, notification
        self._check_rate(sender)
        topic = request.headers.get("Topic")
        return PushMessage(secrets.token_hex(16), body, topic, ttl, receipt)

    def _check_sender(self, request: web.Request, device: Subscriber) -> str:
        """Returns the sender's VAPID key, or an empty text."""
        authorization = request.headers.getall("Authorization", [])
        key = check_vapid(authorization, origin=self._origin, now=time.time())
        required = device.application_server_key
        if required is None:
            return key or ""
        if key not in {None, required} and device.mismatch_response is not MismatchAnswer.FORBIDDEN:
            raise RejectedError(responses.KEY_MISMATCHES[device.mismatch_response])
        check_restriction(key, required)
        return key or ""

    def _check_rate(self, sender: str) -> None:
        rejection = self.limit.rejects(sender, time.time()) if self.limit else None
        if rejection is not None:
            raise rejected(429, None, "Too many messages of this sender", rejection)

    def _read_record(self, body: bytes, device: Subscriber) -> bytes | None:
        """Decrypts the message. Every message and every retry needs a new key pair (RFC 8291 §2 and
        §3.1), because the same key with the same salt would repeat an AES-GCM nonce.
        """
        record = parse_record(body)
        plaintext = device.read(record)
        if not self._devices.is_first_use(record.sender_key):
            logger.warning("sandbox.sender_key_reused", extra={"device": device.id})
            raise rejected(400, 110, "Invalid encryption: the sender's key was used before")
        return plaintext

    async def _behave(
        self, request: web.Request, device: Subscriber, message: PushMessage
    ) -> web.StreamResponse:
        behaviour = device.next_behaviour()
        await act(request, behaviour, message.receipt)
        response = response_of(behaviour, accepted=self._accepted(message), now=time.time())
        return await write_response(request, message.receipt, response)

    def _accepted(self, message: PushMessage) -> Response:
        location = f"{self._origin}/message/{message.id}"
        return Response(201, headers={"Location": location, "TTL": str(message.ttl)}, taken=True)


def _check_bridge(body: bytes) -> None:
    """Raises RejectedError (413) if the body does not fit into the data of a message of FCM
    (autopush-rs: routers/common.rs, build_message_data)."""
    data = {"chid": str(UUID(int=0)), "body": base64url.encode(body), "con": "aes128gcm"}
    excess = len(json.dumps(data, separators=(",", ":"))) - _MAX_BRIDGED
    if excess > 0:
        raise RejectedError(responses.too_large_for_bridge(excess))


async def _read(content: StreamReader) -> bytes:
    """Reads the body. Raises RejectedError (413) as soon as it is too large (RFC 8030 §7.2)."""
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > MAX_BODY:
            raise RejectedError(responses.too_large(MAX_BODY))
    return bytes(body)

"""`POST /3/device/{token}`: checks a request and decides on its response.

The order of the checks: path, method, topic, push type and priority, expiration, collapse id,
apns-id, provider token, payload; then whether the device is known, has the app, and still has it.
The device's behaviour applies only to a request that passes all checks, and uses up one of its
`times`.
"""

import time
import uuid
from dataclasses import dataclass

from sandbox.apns.behaviours import ApnsMode, response_of
from sandbox.apns.checks import ApnsRequest, check_headers, check_payload, device_token
from sandbox.apns.devices import ApnsDevice, ApnsReceipt, ApnsRegistry
from sandbox.apns.responses import error_response, rejected
from sandbox.apns.tokens import Identity
from sandbox.behaviours import Behaviour
from sandbox.responses import RejectedError, Response


@dataclass(frozen=True, slots=True)
class PreparedResponse:
    """The response to send, and the behaviour to apply.

    `receipt` is None if the request names no device. A rejection has the default behaviour.
    """

    response: Response
    receipt: ApnsReceipt | None
    behaviour: Behaviour


class ApnsResource:
    """Checks requests and decides on the responses. Without `keep_content` receipts have no headers
    and payloads."""

    def __init__(self, registry: ApnsRegistry, *, keep_content: bool) -> None:
        self.registry = registry
        self._keep_content = keep_content

    def prepare(
        self, request: ApnsRequest, identity: Identity, *, connection: int, open_streams: int
    ) -> PreparedResponse:
        now = time.time()
        receipt: ApnsReceipt | None = None
        try:
            token = device_token(request)
            device = self.registry.devices.get(token)
            if device:
                receipt = self._receipt(request, now, connection, open_streams)
                device.receipts.append(receipt)
            behaviour = self._checked(request, identity, device, now)
            return PreparedResponse(
                _with_id(request, response_of(behaviour, now), behaviour), receipt, behaviour
            )
        except RejectedError as error:
            return PreparedResponse(_with_id(request, error.response), receipt, Behaviour())

    def _checked(
        self, request: ApnsRequest, identity: Identity, device: ApnsDevice | None, now: float
    ) -> Behaviour:
        topic = check_headers(request)
        identity.check(request.get("authorization"), topic, now)
        check_payload(request.body)
        if device is None:
            raise rejected("BadDeviceToken")
        if device.topic != topic:
            raise rejected("DeviceTokenNotForTopic")
        if device.deleted_at is not None:
            raise RejectedError(error_response("Unregistered", int(device.deleted_at * 1_000)))
        return device.next_behaviour()

    def _receipt(
        self, request: ApnsRequest, now: float, connection: int, open_streams: int
    ) -> ApnsReceipt:
        receipt = ApnsReceipt(now, {}, connection=connection, open_streams=open_streams)
        if self._keep_content:
            receipt.headers = dict(request.headers)
            receipt.payload = request.body
        return receipt


def _with_id(
    request: ApnsRequest, response: Response, behaviour: Behaviour | None = None
) -> Response:
    """The response with the request's own id, or a new one."""
    if behaviour and behaviour.mode == ApnsMode.NO_APNS_ID:
        return response
    given = next((value for name, value in request.headers if name == "apns-id"), None)
    own_id = {"apns-id": given or str(uuid.uuid4())}
    return Response(response.status, response.body, {**own_id, **response.headers}, response.taken)

"""`POST /3/device/{token}`: checks a request and decides on its answer.

The order of the checks: path, method, topic, push type and priority, expiration, collapse id,
apns-id, provider token, payload; then whether the device is known, has the app, and still has it.
The device's behaviour applies only to a request that passes all checks, and uses up one of its
`times`.
"""

import time
import uuid
from dataclasses import dataclass

from sandbox.answering import Answer, RefusedError
from sandbox.apns.answers import error_answer, refused
from sandbox.apns.behaviours import ApnsMode, answer_of
from sandbox.apns.checks import ApnsRequest, check_headers, check_payload, device_token
from sandbox.apns.devices import ApnsDevice, ApnsReceipt, ApnsRegistry
from sandbox.apns.tokens import Identity
from sandbox.behaviours import Behaviour


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """The answer to send, and the behaviour to apply.

    `receipt` is None if the request names no device. A refusal has the default behaviour.
    """

    answer: Answer
    receipt: ApnsReceipt | None
    behaviour: Behaviour


class ApnsResource:
    """Checks and answers requests. Without `keep_content` receipts have no headers and payloads."""

    def __init__(self, registry: ApnsRegistry, *, keep_content: bool) -> None:
        self.registry = registry
        self._keep_content = keep_content

    def prepare(
        self, request: ApnsRequest, identity: Identity, *, connection: int, open_streams: int
    ) -> PreparedAnswer:
        now = time.time()
        receipt: ApnsReceipt | None = None
        try:
            token = device_token(request)
            device = self.registry.devices.get(token)
            if device:
                receipt = self._receipt(request, now, connection, open_streams)
                device.receipts.append(receipt)
            behaviour = self._checked(request, identity, device, now)
            return PreparedAnswer(
                _with_id(request, answer_of(behaviour, now), behaviour), receipt, behaviour
            )
        except RefusedError as error:
            return PreparedAnswer(_with_id(request, error.answer), receipt, Behaviour())

    def _checked(
        self, request: ApnsRequest, identity: Identity, device: ApnsDevice | None, now: float
    ) -> Behaviour:
        topic = check_headers(request)
        identity.check(request.get("authorization"), topic, now)
        check_payload(request.body)
        if device is None:
            raise refused("BadDeviceToken")
        if device.topic != topic:
            raise refused("DeviceTokenNotForTopic")
        if device.deleted_at is not None:
            raise RefusedError(error_answer("Unregistered", int(device.deleted_at * 1_000)))
        return device.next_behaviour()

    def _receipt(
        self, request: ApnsRequest, now: float, connection: int, open_streams: int
    ) -> ApnsReceipt:
        receipt = ApnsReceipt(now, {}, connection=connection, open_streams=open_streams)
        if self._keep_content:
            receipt.headers = dict(request.headers)
            receipt.payload = request.body
        return receipt


def _with_id(request: ApnsRequest, answer: Answer, behaviour: Behaviour | None = None) -> Answer:
    """The answer with the request's own id, or a new one."""
    if behaviour and behaviour.mode == ApnsMode.NO_APNS_ID:
        return answer
    given = next((value for name, value in request.headers if name == "apns-id"), None)
    own_id = {"apns-id": given or str(uuid.uuid4())}
    return Answer(answer.status, answer.body, {**own_id, **answer.headers}, answer.taken)

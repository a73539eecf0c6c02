"""The HTTP interface with which tests and client teams create devices and read their messages.

| request | answer |
|---|---|
| `POST /subscriptions` `{}`, with options | 201, the subscription |
| `POST /subscriptions` `{"count": N, …}` | 201, `{"subscriptions": […]}` |
| `PUT /subscriptions/{id}/behaviour` `{"mode", "times"?, options}` | 204 |
| `GET /subscriptions/{id}/messages` | `{"messages": […]}`, oldest first |
| `DELETE /subscriptions/{id}` | 204; from then on its endpoint answers 410 |
| `POST /subscriptions/{id}/renew`, of a real browser | 204; it gets new endpoints |
| `GET /messages`, also `?id=…&id=…` | totals of each device and of all |
| `PUT /limit` `{"messages", "retry_after"?, "seconds"?}` | 204; 429 to more of a VAPID key |
| `POST /reset` | 204; every device, every message and the limit are forgotten |

The options are `application_server_key`, `mismatch_answer` and `is_bridged`, those of
`WebSandbox.subscribe`. An error of the caller is 400 or 404 with `{"error": …}`.
"""

from dataclasses import asdict
from typing import Any

from aiohttp import web
from typing_extensions import override

from sandbox.control import DeviceControl
from sandbox.control_json import (
    bad_request,
    checked_count,
    read_object,
    receipt_json,
    refuse_unknown,
)
from sandbox.webpush.browsers import BrowserDevice, Browsers
from sandbox.webpush.devices import Device, MismatchAnswer, Subscriber, WebReceipt
from sandbox.webpush.rate import RateLimit
from sandbox.webpush.registry import Devices
from sandbox.webpush.send import PushResource

_LIMIT_FIELDS = frozenset({"messages", "retry_after", "seconds"})
_SUBSCRIPTION_FIELDS = frozenset(
    {"application_server_key", "mismatch_answer", "is_bridged", "count"}
)


class ControlApi(DeviceControl[Subscriber]):
    device_name = "subscription"

    def __init__(self, devices: Devices, browsers: Browsers, push: PushResource) -> None:
        super().__init__(devices)
        self._push = push
        self._subscriptions = devices
        self._browsers = browsers

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/subscriptions", self.subscribe),
            web.delete("/subscriptions/{id}", self.delete),
            web.post("/subscriptions/{id}/renew", self.renew),
            *self.device_routes("/subscriptions", "/messages"),
            web.put("/limit", self.limit),
            web.post("/reset", self.reset),
        ]

    async def subscribe(self, request: web.Request) -> web.Response:
        fields = await read_object(request)
        refuse_unknown(fields, _SUBSCRIPTION_FIELDS)
        count = fields.pop("count", None)
        if count is None:
            return web.json_response(_subscription_json(self._add(fields)), status=201)
        devices = [self._add(fields) for _ in range(checked_count(count))]
        listed = [_subscription_json(device) for device in devices]
        return web.json_response({"subscriptions": listed}, status=201)

    def _add(self, fields: dict[str, Any]) -> Device:
        key = fields.get("application_server_key")
        if key is not None and not isinstance(key, str):
            raise bad_request("application_server_key must be a text")
        is_bridged = fields.get("is_bridged", False)
        if not isinstance(is_bridged, bool):
            raise bad_request("is_bridged must be true or false")
        try:
            mismatch = MismatchAnswer(fields.get("mismatch_answer", MismatchAnswer.FORBIDDEN))
            return self._subscriptions.add(key, mismatch, is_bridged=is_bridged)
        except ValueError as error:
            raise bad_request(str(error)) from None

    async def delete(self, request: web.Request) -> web.Response:
        self._subscriptions.delete(self.device_of(request))
        return web.Response(status=204)

    async def renew(self, request: web.Request) -> web.Response:
        device = self.device_of(request)
        if not isinstance(device, BrowserDevice):
            raise bad_request("no real browser has this subscription")
        self._browsers.forget(device.browser)
        return web.Response(status=204)

    async def limit(self, request: web.Request) -> web.Response:
        fields = await read_object(request)
        refuse_unknown(fields, _LIMIT_FIELDS)
        self._push.limit = RateLimit(
            checked_count(fields.get("messages"), "messages"),
            fields.get("retry_after") is True,
            checked_count(fields.get("seconds", 60), "seconds"),
        )
        return web.Response(status=204)

    async def reset(self, _request: web.Request) -> web.Response:
        self._push.limit = None
        self._subscriptions.clear()
        self._browsers.clear()
        return web.Response(status=204)

    @override
    def receipt_json(self, receipt: WebReceipt) -> dict[str, object]:
        plaintext = receipt.plaintext
        payload = None if plaintext is None else plaintext.decode("utf-8", "backslashreplace")
        own = asdict(receipt.declared) if receipt.declared else None
        more = {"payload": payload, "declared": own, "ack_code": receipt.ack_code}
        return receipt_json(receipt) | more


def _subscription_json(device: Device) -> dict[str, object]:
    return {"id": device.id, **device.subscription}

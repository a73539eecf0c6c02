"""The HTTP interface with which tests and client teams create devices and read their messages.

| request | response |
|---|---|
| `POST /subscriptions` `{}`, with options | 201, the subscription |
| `POST /subscriptions` `{"count": N, …}` | 201, `{"subscriptions": […]}` |
| `PUT /subscriptions/{id}/behaviour` `{"mode", "times"?, options}` | 204 |
| `GET /subscriptions/{id}/messages` | `{"messages": […]}`, oldest first |
| `DELETE /subscriptions/{id}` | 204; from then on its endpoint responds with 410 |
| `POST /subscriptions/{id}/renew`, of a real browser | 204; it gets new endpoints |
| `GET /messages`, also `?id=…&id=…` | totals of each device and of all |
| `PUT /limit` `{"messages", "retry_after"?, "seconds"?}` | 204; 429 to more of a VAPID key |
| `POST /reset` | 204; every device, every message and the limit are forgotten |

The options are `application_server_key`, `mismatch_response` and `is_bridged`, those of
`WebSandbox.subscribe`. An error of the caller is 400 or 404 with `{"error": …}`.
"""

from dataclasses import asdict
from typing import Any

from aiohttp import web
from typing_extensions import override

from sandbox.control import (
    DeviceControl,
    bad_request,
    checked_count,
    read_object,
    readable,
    reject_unknown,
)
from sandbox.webpush.browsers import BrowserDevice, Browsers
from sandbox.webpush.devices import MismatchAnswer, Subscriber, WebReceipt
from sandbox.webpush.rate import RateLimit
from sandbox.webpush.registry import Devices
from sandbox.webpush.send import PushResource

_LIMIT_FIELDS = frozenset({"messages", "retry_after", "seconds"})


class ControlApi(DeviceControl[Subscriber]):
    devices = added_at = "/subscriptions"
    device_name = "subscription"
    device_fields = frozenset({"application_server_key", "mismatch_response", "is_bridged"})

    def __init__(self, devices: Devices, browsers: Browsers, push: PushResource) -> None:
        super().__init__(devices)
        self._push = push
        self._subscriptions = devices
        self._browsers = browsers

    @override
    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/subscriptions/{id}/renew", self.renew),
            web.put("/limit", self.limit),
            *super().routes(),
        ]

    async def renew(self, request: web.Request) -> web.Response:
        device = self.device_of(request)
        if not isinstance(device, BrowserDevice):
            raise bad_request("no real browser has this subscription")
        self._browsers.forget(device.browser)
        return web.Response(status=204)

    async def limit(self, request: web.Request) -> web.Response:
        fields = await read_object(request)
        reject_unknown(fields, _LIMIT_FIELDS)
        self._push.limit = RateLimit(
            checked_count(fields.get("messages"), "messages"),
            fields.get("retry_after") is True,
            checked_count(fields.get("seconds", 60), "seconds"),
        )
        return web.Response(status=204)

    @override
    def new_devices(
        self, request: web.Request, fields: dict[str, Any], count: int
    ) -> list[dict[str, Any]]:
        key = fields.get("application_server_key")
        if key is not None and not isinstance(key, str):
            raise bad_request("application_server_key must be a text")
        is_bridged = fields.get("is_bridged", False)
        if not isinstance(is_bridged, bool):
            raise bad_request("is_bridged must be true or false")
        try:
            mismatch = MismatchAnswer(fields.get("mismatch_response", MismatchAnswer.FORBIDDEN))
            devices = [
                self._subscriptions.add(key, mismatch, is_bridged=is_bridged) for _ in range(count)
            ]
        except ValueError as error:
            raise bad_request(str(error)) from None
        return [{"id": device.id, **device.subscription} for device in devices]

    @override
    def delete(self, device: Subscriber) -> None:
        self._subscriptions.delete(device)

    @override
    def reset(self) -> None:
        self._push.limit = None
        self._subscriptions.clear()
        self._browsers.clear()

    @override
    def content_of(self, receipt: WebReceipt) -> dict[str, object]:
        return {
            "payload": readable(receipt.plaintext),
            "declared": asdict(receipt.declared) if receipt.declared else None,
            "ack_code": receipt.ack_code,
        }

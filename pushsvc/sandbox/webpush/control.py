"""The HTTP interface by which tests and client teams make devices and read what they received.

| request | answer |
|---|---|
| `POST /subscriptions` `{application_server_key?, mismatch_answer?}` | 201, the subscription |
| `POST /subscriptions` `{"count": N, …}` | 201, `{"subscriptions": […]}` |
| `PUT /subscriptions/{id}/behaviour` `{"mode", "times"?, options}` | 204 |
| `GET /subscriptions/{id}/messages` | `{"messages": […]}`, oldest first |
| `DELETE /subscriptions/{id}` | 204; from then on its endpoint answers 410 |
| `POST /subscriptions/{id}/renew`, of a real browser | 204; it gets new endpoints |
| `GET /messages`, also `?id=…&id=…` | totals of each device and of all |
| `POST /reset` | 204; every device and message is forgotten |

A fault of the caller is 400 or 404 with `{"error": …}`.
"""

from typing import Any

from aiohttp import web

from pushsvc.sandbox.control_json import (
    all_totals_json,
    bad_request,
    checked_count,
    not_found,
    read_object,
    receipt_json,
    refuse_unknown,
    set_behaviour,
)
from pushsvc.sandbox.webpush.browsers import BrowserDevice, Browsers
from pushsvc.sandbox.webpush.devices import Device, MismatchAnswer, Subscriber, WebReceipt
from pushsvc.sandbox.webpush.registry import Devices

_SUBSCRIPTION_FIELDS = frozenset({"application_server_key", "mismatch_answer", "count"})


class ControlApi:
    def __init__(self, devices: Devices, browsers: Browsers) -> None:
        self._devices = devices
        self._browsers = browsers

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/subscriptions", self.subscribe),
            web.put("/subscriptions/{id}/behaviour", self.behave),
            web.get("/subscriptions/{id}/messages", self.messages),
            web.delete("/subscriptions/{id}", self.delete),
            web.post("/subscriptions/{id}/renew", self.renew),
            web.get("/messages", self.totals),
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
        try:
            mismatch = MismatchAnswer(fields.get("mismatch_answer", MismatchAnswer.FORBIDDEN))
            return self._devices.add(key, mismatch)
        except ValueError as error:
            raise bad_request(str(error)) from None

    async def behave(self, request: web.Request) -> web.Response:
        device = self._device(request.match_info["id"])
        set_behaviour(device, await read_object(request))
        return web.Response(status=204)

    async def messages(self, request: web.Request) -> web.Response:
        device = self._device(request.match_info["id"])
        return web.json_response({"messages": [_receipt_json(each) for each in device.receipts]})

    async def delete(self, request: web.Request) -> web.Response:
        self._devices.delete(self._device(request.match_info["id"]))
        return web.Response(status=204)

    async def renew(self, request: web.Request) -> web.Response:
        device = self._device(request.match_info["id"])
        if not isinstance(device, BrowserDevice):
            raise bad_request("no real browser has this subscription")
        self._browsers.forget(device.browser)
        return web.Response(status=204)

    async def totals(self, request: web.Request) -> web.Response:
        wanted = request.query.getall("id", [])
        devices = [self._device(each) for each in wanted] if wanted else self._devices.all()
        of_each = {device.id: device.totals() for device in devices}
        return web.json_response(all_totals_json(of_each))

    async def reset(self, _request: web.Request) -> web.Response:
        self._devices.clear()
        self._browsers.clear()
        return web.Response(status=204)

    def _device(self, device_id: str) -> Subscriber:
        device = self._devices.find(device_id)
        if device is None:
            raise not_found("no such subscription")
        return device


def _subscription_json(device: Device) -> dict[str, object]:
    return {"id": device.id, **device.subscription}


def _receipt_json(receipt: WebReceipt) -> dict[str, object]:
    plaintext = receipt.plaintext
    payload = None if plaintext is None else plaintext.decode("utf-8", "backslashreplace")
    return receipt_json(receipt) | {"payload": payload, "ack_code": receipt.ack_code}

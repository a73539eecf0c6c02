"""The HTTP interface by which tests and client teams make devices and read what they received.

| request | answer |
|---|---|
| `POST /subscriptions` `{application_server_key?, mismatch_answer?}` | 201, the subscription |
| `POST /subscriptions` `{"count": N, …}` | 201, `{"subscriptions": […]}` |
| `PUT /subscriptions/{id}/behaviour` `{"mode", "times"?, options}` | 204 |
| `GET /subscriptions/{id}/messages` | `{"messages": […]}`, oldest first |
| `DELETE /subscriptions/{id}` | 204; from then on its endpoint answers 410 |
| `GET /messages`, also `?id=…&id=…` | totals of each device and of all |
| `POST /reset` | 204; every device and message is forgotten |

A fault of the caller is 400 or 404 with `{"error": …}`.
"""

import json
from datetime import UTC, datetime
from typing import Any, TypedDict

from aiohttp import web

from pushsvc.sandbox.behaviours import behaviour_from
from pushsvc.sandbox.devices import Device, MismatchAnswer, Receipt, Totals
from pushsvc.sandbox.registry import Devices

MAX_COUNT = 100_000

_SUBSCRIPTION_FIELDS = frozenset({"application_server_key", "mismatch_answer", "count"})


class ControlApi:
    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/subscriptions", self.subscribe),
            web.put("/subscriptions/{id}/behaviour", self.behave),
            web.get("/subscriptions/{id}/messages", self.messages),
            web.delete("/subscriptions/{id}", self.delete),
            web.get("/messages", self.totals),
            web.post("/reset", self.reset),
        ]

    async def subscribe(self, request: web.Request) -> web.Response:
        fields = await _read_object(request)
        unknown = fields.keys() - _SUBSCRIPTION_FIELDS
        if unknown:
            raise _bad_request(f"unknown fields: {', '.join(sorted(unknown))}")
        count = fields.pop("count", None)
        if count is None:
            return web.json_response(_subscription_json(self._add(fields)), status=201)
        devices = [self._add(fields) for _ in range(_checked_count(count))]
        listed = [_subscription_json(device) for device in devices]
        return web.json_response({"subscriptions": listed}, status=201)

    def _add(self, fields: dict[str, Any]) -> Device:
        key = fields.get("application_server_key")
        if key is not None and not isinstance(key, str):
            raise _bad_request("application_server_key must be a text")
        try:
            mismatch = MismatchAnswer(fields.get("mismatch_answer", MismatchAnswer.FORBIDDEN))
            return self._devices.add(key, mismatch)
        except ValueError as error:
            raise _bad_request(str(error)) from None

    async def behave(self, request: web.Request) -> web.Response:
        device = self._device(request.match_info["id"])
        options = await _read_object(request)
        mode, times = options.pop("mode", ""), options.pop("times", None)
        try:
            device.behaviour = behaviour_from(mode, times, options)
        except ValueError as error:
            raise _bad_request(str(error)) from None
        return web.Response(status=204)

    async def messages(self, request: web.Request) -> web.Response:
        device = self._device(request.match_info["id"])
        return web.json_response({"messages": [_receipt_json(each) for each in device.receipts]})

    async def delete(self, request: web.Request) -> web.Response:
        self._devices.delete(self._device(request.match_info["id"]))
        return web.Response(status=204)

    async def totals(self, request: web.Request) -> web.Response:
        wanted = request.query.getall("id", [])
        devices = [self._device(each) for each in wanted] if wanted else self._devices.all()
        of_each = {device.id: device.totals() for device in devices}
        return web.json_response(
            {
                "requests": sum(totals.requests for totals in of_each.values()),
                "taken": sum(totals.taken for totals in of_each.values()),
                "accepted": sum(totals.accepted for totals in of_each.values()),
                "devices": {each: _totals_json(totals) for each, totals in of_each.items()},
            }
        )

    async def reset(self, _request: web.Request) -> web.Response:
        self._devices.clear()
        return web.Response(status=204)

    def _device(self, device_id: str) -> Device:
        device = self._devices.find(device_id)
        if device is None:
            raise web.HTTPNotFound(**_error("no such subscription"))
        return device


def _checked_count(count: object) -> int:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_COUNT:
        raise _bad_request(f"count must be a whole number, 1 to {MAX_COUNT}")
    return count


async def _read_object(request: web.Request) -> dict[str, Any]:
    """The body as a JSON object; an empty body is an empty one."""
    body = await request.read()
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise _bad_request("the body is not JSON") from None
    if not isinstance(value, dict):
        raise _bad_request("the body is not a JSON object")
    return value


def _subscription_json(device: Device) -> dict[str, object]:
    return {"id": device.id, **device.subscription}


def _receipt_json(receipt: Receipt) -> dict[str, object]:
    plaintext = receipt.plaintext
    return {
        "at": datetime.fromtimestamp(receipt.at, UTC).isoformat(timespec="microseconds"),
        "headers": dict(receipt.headers),
        "payload": None if plaintext is None else plaintext.decode("utf-8", "backslashreplace"),
        "status": receipt.status,
        "taken": receipt.taken,
        "complete": receipt.complete,
        "accepted": receipt.accepted,
    }


def _totals_json(totals: Totals) -> dict[str, object]:
    statuses = {str(status or "none"): count for status, count in totals.statuses.items()}
    return {
        "requests": totals.requests,
        "taken": totals.taken,
        "accepted": totals.accepted,
        "statuses": statuses,
    }


def _bad_request(message: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(**_error(message))


class _ErrorBody(TypedDict):
    text: str
    content_type: str


def _error(message: str) -> _ErrorBody:
    return {"text": json.dumps({"error": message}), "content_type": "application/json"}

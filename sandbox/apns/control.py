"""The HTTP interface to the APNs sandbox's keys and devices.

| request | answer |
|---|---|
| `GET /apns` | `{"server", "ca_file", "ca_pem"}` |
| `POST /apns/keys` `{team_id?, topic?}` | 201, the JSON that `apns_key` takes |
| `PUT /apns/keys/{key_id}/behaviour` `{"mode", "times"?}` | 204 |
| `POST /apns/devices` `{topic?}` | 201, `{"token", "topic"}` |
| `POST /apns/devices` `{"count": N, topic?}` | 201, `{"devices": […]}` |
| `PUT /apns/devices/{token}/behaviour` `{"mode", "times"?, options}` | 204 |
| `GET /apns/devices/{token}/messages` | `{"messages": […]}`, oldest first |
| `DELETE /apns/devices/{token}` | 204; from then on 410 Unregistered |
| `GET /apns/messages`, also `?token=…&token=…` | totals of each device and of all |
| `POST /apns/reset` | 204; every key, device and message is forgotten |

An error of the caller is 400 or 404 with `{"error": …}`.
"""

import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from typing_extensions import override

from sandbox.apns.devices import (
    DEFAULT_TEAM,
    DEFAULT_TOPIC,
    ApnsDevice,
    ApnsReceipt,
    ApnsRegistry,
)
from sandbox.control import DeviceControl
from sandbox.control_json import (
    bad_request,
    checked_count,
    not_found,
    read_object,
    receipt_json,
    refuse_unknown,
    set_behaviour,
)


class ApnsControlApi(DeviceControl[ApnsDevice]):
    """`facts` is the answer to `GET /apns`."""

    id_name = "token"

    def __init__(self, registry: ApnsRegistry, facts: Mapping[str, str]) -> None:
        super().__init__(registry)
        self._registry = registry
        self._facts = facts

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/apns", self.facts),
            web.post("/apns/keys", self.add_key),
            web.put("/apns/keys/{key_id}/behaviour", self.behave_key),
            web.post("/apns/devices", self.add_devices),
            web.delete("/apns/devices/{token}", self.delete),
            *self.device_routes("/apns/devices", "/apns/messages"),
            web.post("/apns/reset", self.reset),
        ]

    async def facts(self, _request: web.Request) -> web.Response:
        return web.json_response(dict(self._facts))

    async def add_key(self, request: web.Request) -> web.Response:
        fields = await read_object(request)
        refuse_unknown(fields, frozenset({"team_id", "topic"}))
        team_id = _text(fields, "team_id", DEFAULT_TEAM)
        key = self._registry.add_key(team_id, _text(fields, "topic", DEFAULT_TOPIC))
        return web.json_response(key.credential, status=201)

    async def behave_key(self, request: web.Request) -> web.Response:
        key = self._registry.keys.get(request.match_info["key_id"])
        if key is None:
            raise not_found("no such key")
        set_behaviour(key, await read_object(request))
        return web.Response(status=204)

    async def add_devices(self, request: web.Request) -> web.Response:
        fields = await read_object(request)
        refuse_unknown(fields, frozenset({"topic", "count"}))
        topic = _text(fields, "topic", DEFAULT_TOPIC)
        count = fields.get("count")
        if count is None:
            return web.json_response(_device_json(self._registry.add_device(topic)), status=201)
        devices = [self._registry.add_device(topic) for _ in range(checked_count(count))]
        return web.json_response({"devices": [_device_json(each) for each in devices]}, status=201)

    async def delete(self, request: web.Request) -> web.Response:
        self._registry.delete(self.device_of(request), time.time())
        return web.Response(status=204)

    async def reset(self, _request: web.Request) -> web.Response:
        self._registry.clear()
        return web.Response(status=204)

    @override
    def receipt_json(self, receipt: ApnsReceipt) -> dict[str, object]:
        payload = receipt.payload
        text = None if payload is None else payload.decode("utf-8", "backslashreplace")
        return receipt_json(receipt) | {"payload": text, "connection": receipt.connection}


def _text(fields: Mapping[str, Any], name: str, default: str) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or not value:
        raise bad_request(f"{name} must be a text")
    return value


def _device_json(device: ApnsDevice) -> dict[str, str]:
    return {"token": device.token, "topic": device.topic}

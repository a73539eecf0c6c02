"""The HTTP interface to the APNs sandbox's keys and devices.

| request | response |
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
    ApnsKey,
    ApnsReceipt,
    ApnsRegistry,
)
from sandbox.control import (
    DeviceControl,
    bad_request,
    behave,
    not_found,
    read_object,
    readable,
    reject_unknown,
)


class ApnsControlApi(DeviceControl[ApnsDevice]):
    """`facts` is the response to `GET /apns`."""

    base = "/apns"
    id_name = "token"
    device_fields = frozenset({"topic"})

    def __init__(self, registry: ApnsRegistry, facts: Mapping[str, str]) -> None:
        super().__init__(registry)
        self._registry = registry
        self._facts = facts

    @override
    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/apns", self.facts),
            web.post("/apns/keys", self.add_key),
            web.put("/apns/keys/{key_id}/behaviour", behave(self._key_of)),
            *super().routes(),
        ]

    async def facts(self, _request: web.Request) -> web.Response:
        return web.json_response(dict(self._facts))

    async def add_key(self, request: web.Request) -> web.Response:
        fields = await read_object(request)
        reject_unknown(fields, frozenset({"team_id", "topic"}))
        team_id = _text(fields, "team_id", DEFAULT_TEAM)
        key = self._registry.add_key(team_id, _text(fields, "topic", DEFAULT_TOPIC))
        return web.json_response(key.credential, status=201)

    def _key_of(self, request: web.Request) -> ApnsKey:
        key = self._registry.keys.get(request.match_info["key_id"])
        if key is None:
            raise not_found("no such key")
        return key

    @override
    def new_devices(
        self, request: web.Request, fields: dict[str, Any], count: int
    ) -> list[dict[str, Any]]:
        topic = _text(fields, "topic", DEFAULT_TOPIC)
        devices = [self._registry.add_device(topic) for _ in range(count)]
        return [{"token": device.token, "topic": device.topic} for device in devices]

    @override
    def delete(self, device: ApnsDevice) -> None:
        self._registry.delete(device, time.time())

    @override
    def reset(self) -> None:
        self._registry.clear()

    @override
    def content_of(self, receipt: ApnsReceipt) -> dict[str, object]:
        return {"payload": readable(receipt.payload), "connection": receipt.connection}


def _text(fields: Mapping[str, Any], name: str, default: str) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or not value:
        raise bad_request(f"{name} must be a text")
    return value

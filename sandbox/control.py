"""The requests that are the same in the control interfaces of all sandboxes."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic

from aiohttp import web

from sandbox.control_json import (
    all_totals_json,
    not_found,
    read_object,
    set_behaviour,
)
from sandbox.devices import D, Registry


class DeviceControl(ABC, Generic[D]):
    """`id_name` is the name of the device's id in routes and queries."""

    id_name: ClassVar[str] = "id"
    device_name: ClassVar[str] = "device"

    def __init__(self, registry: Registry[D]) -> None:
        self._devices = registry

    def device_routes(self, devices: str, messages: str) -> list[web.RouteDef]:
        """`devices` and `messages` are the paths of these collections."""
        device = f"{devices}/{{{self.id_name}}}"
        return [
            web.put(f"{device}/behaviour", self._behave),
            web.get(f"{device}/messages", self._messages),
            web.get(messages, self._totals),
        ]

    @abstractmethod
    def receipt_json(self, receipt: Any) -> dict[str, object]: ...

    async def _behave(self, request: web.Request) -> web.Response:
        device = self.device_of(request)
        set_behaviour(device, await read_object(request))
        return web.Response(status=204)

    async def _messages(self, request: web.Request) -> web.Response:
        device = self.device_of(request)
        listed = [self.receipt_json(receipt) for receipt in device.receipts]
        return web.json_response({"messages": listed})

    async def _totals(self, request: web.Request) -> web.Response:
        wanted = request.query.getall(self.id_name, []) or self._devices.ids()
        of_each = {device_id: self._found(device_id).totals() for device_id in wanted}
        return web.json_response(all_totals_json(of_each))

    def device_of(self, request: web.Request) -> D:
        return self._found(request.match_info[self.id_name])

    def _found(self, device_id: str) -> D:
        device = self._devices.find(device_id)
        if device is None:
            raise not_found(f"no such {self.device_name}")
        return device

"""The HTTP interface that all sandboxes share, with which other processes control devices."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypedDict

from aiohttp import web

from sandbox.behaviours import Behaving
from sandbox.devices import D, Registry
from sandbox.receipts import Receipt, ReceiptCounts
from sandbox.serving import Handler

MAX_COUNT = 100_000


class DeviceControl(ABC, Generic[D]):
    """The requests that every sandbox has, for the devices at `devices`.

    `added_at` is the path at which they are created, `device_name` their name in errors, and
    `id_name` the name of their id in routes and queries. `device_fields` are the options of a new
    device.
    """

    base: ClassVar[str] = ""
    devices: ClassVar[str] = "/devices"
    added_at: ClassVar[str] = devices
    id_name: ClassVar[str] = "id"
    device_name: ClassVar[str] = "device"
    device_fields: ClassVar[frozenset[str]]

    def __init__(self, registry: Registry[D]) -> None:
        self._devices = registry

    def routes(self) -> list[web.RouteDef]:
        device = f"{self.base}{self.devices}/{{{self.id_name}}}"
        return [
            web.post(f"{self.base}{self.added_at}", self._add),
            web.put(f"{device}/behaviour", behave(self.device_of)),
            web.get(f"{device}/messages", self._messages),
            web.delete(device, self._delete),
            web.get(f"{self.base}/messages", self._totals),
            web.post(f"{self.base}/reset", self._reset),
        ]

    @abstractmethod
    def new_devices(
        self, request: web.Request, fields: dict[str, Any], count: int
    ) -> list[dict[str, Any]]:
        """Creates devices with these options, and returns their JSON."""

    @abstractmethod
    def delete(self, device: D) -> None: ...

    @abstractmethod
    def reset(self) -> None: ...

    @abstractmethod
    def content_of(self, receipt: Any) -> dict[str, object]:
        """What the JSON of a message has in this sandbox alone."""

    async def _add(self, request: web.Request) -> web.Response:
        fields = await read_object(request)
        reject_unknown(fields, self.device_fields | {"count"})
        count = fields.pop("count", None)
        if count is None:
            [device] = self.new_devices(request, fields, 1)
            return web.json_response(device, status=201)
        listed = self.new_devices(request, fields, checked_count(count))
        return web.json_response({self.devices.strip("/"): listed}, status=201)

    async def _messages(self, request: web.Request) -> web.Response:
        device = self.device_of(request)
        listed = [_receipt_json(each) | self.content_of(each) for each in device.receipts]
        return web.json_response({"messages": listed})

    async def _totals(self, request: web.Request) -> web.Response:
        wanted = request.query.getall(self.id_name, []) or self._devices.ids()
        of_each = {device_id: self._found(device_id).totals() for device_id in wanted}
        return web.json_response(_all_totals_json(of_each))

    async def _delete(self, request: web.Request) -> web.Response:
        self.delete(self.device_of(request))
        return web.Response(status=204)

    async def _reset(self, _request: web.Request) -> web.Response:
        self.reset()
        return web.Response(status=204)

    def device_of(self, request: web.Request) -> D:
        return self._found(request.match_info[self.id_name])

    def _found(self, device_id: str) -> D:
        device = self._devices.find(device_id)
        if device is None:
            raise not_found(f"no such {self.device_name}")
        return device


def behave(part_of: Callable[[web.Request], Behaving[Any]]) -> Handler:
    """A handler that sets a part's behaviour from `{"mode", "times"?, options}`."""

    async def handle(request: web.Request) -> web.Response:
        part, options = part_of(request), await read_object(request)
        mode, times = options.pop("mode", ""), options.pop("times", None)
        try:
            part.behaviour = part.repertoire.behaviour(mode, times, options)
        except ValueError as error:
            raise bad_request(str(error)) from None
        return web.Response(status=204)

    return handle


async def read_object(request: web.Request) -> dict[str, Any]:
    """Reads the body as a JSON object. An empty body is an empty object."""
    body = await request.read()
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise bad_request("the body is not JSON") from None
    if not isinstance(value, dict):
        raise bad_request("the body is not a JSON object")
    return value


def checked_count(count: object, name: str = "count") -> int:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_COUNT:
        raise bad_request(f"{name} must be a whole number, 1 to {MAX_COUNT}")
    return count


def reject_unknown(fields: Mapping[str, object], known: frozenset[str]) -> None:
    unknown = fields.keys() - known
    if unknown:
        raise bad_request(f"unknown fields: {', '.join(sorted(unknown))}")


def readable(payload: bytes | None) -> str | None:
    return None if payload is None else payload.decode("utf-8", "backslashreplace")


def _receipt_json(receipt: Receipt) -> dict[str, object]:
    return {
        "at": datetime.fromtimestamp(receipt.at, UTC).isoformat(timespec="microseconds"),
        "headers": dict(receipt.headers),
        "status": receipt.status,
        "taken": receipt.taken,
        "complete": receipt.complete,
        "unread": receipt.unread,
        "accepted": receipt.accepted,
    }


def _all_totals_json(of_each: Mapping[str, ReceiptCounts]) -> dict[str, object]:
    """The totals of each device by its id, and of all devices."""
    return {
        "requests": sum(totals.requests for totals in of_each.values()),
        "taken": sum(totals.taken for totals in of_each.values()),
        "accepted": sum(totals.accepted for totals in of_each.values()),
        "devices": {each: _totals_json(totals) for each, totals in of_each.items()},
    }


def _totals_json(totals: ReceiptCounts) -> dict[str, object]:
    statuses = {str(status or "none"): count for status, count in totals.statuses.items()}
    return {
        "requests": totals.requests,
        "taken": totals.taken,
        "accepted": totals.accepted,
        "statuses": statuses,
    }


def bad_request(message: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(**_error(message))


def not_found(message: str) -> web.HTTPNotFound:
    return web.HTTPNotFound(**_error(message))


class _ErrorBody(TypedDict):
    text: str
    content_type: str


def _error(message: str) -> _ErrorBody:
    return {"text": json.dumps({"error": message}), "content_type": "application/json"}

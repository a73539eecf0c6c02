"""The JSON of the control interfaces of all sandboxes."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict

from aiohttp import web

from sandbox.behaving import Behaving
from sandbox.receipts import Receipt, ReceiptCounts

MAX_COUNT = 100_000


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


def refuse_unknown(fields: Mapping[str, object], known: frozenset[str]) -> None:
    unknown = fields.keys() - known
    if unknown:
        raise bad_request(f"unknown fields: {', '.join(sorted(unknown))}")


def set_behaviour(target: Behaving[Any], fields: dict[str, Any]) -> None:
    """Sets the behaviour from `{"mode", "times"?, options}`."""
    mode, times = fields.pop("mode", ""), fields.pop("times", None)
    try:
        target.behaviour = target.repertoire.behaviour(mode, times, fields)
    except ValueError as error:
        raise bad_request(str(error)) from None


def receipt_json(receipt: Receipt) -> dict[str, object]:
    return {
        "at": datetime.fromtimestamp(receipt.at, UTC).isoformat(timespec="microseconds"),
        "headers": dict(receipt.headers),
        "status": receipt.status,
        "taken": receipt.taken,
        "complete": receipt.complete,
        "unread": receipt.unread,
        "accepted": receipt.accepted,
    }


def all_totals_json(of_each: Mapping[str, ReceiptCounts]) -> dict[str, object]:
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

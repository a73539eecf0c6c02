"""Writes responses, and notes in receipts whether a response was written."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from sandbox.leaving import watch_sender
from sandbox.receipts import Receipt


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response. `taken`: the service accepts the message for the device."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    taken: bool = False


# The response of a proxy in front of a push service.
BLOCKED = Response(
    403,
    "<html><head><title>403 Forbidden</title></head><body>Blocked by your proxy</body></html>",
    {"Content-Type": "text/html; charset=UTF-8"},
)


class RejectedError(Exception):
    """The request breaks a rule of the protocol. The sender gets `response`."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.body)
        self.response = response


async def write_response(
    request: web.Request, receipt: Receipt, response: Response
) -> web.Response:
    """Writes the response and notes it in the receipt.

    The receipt is marked complete before the last byte is written, so that it is complete when a
    sender has read the response. The mark is removed if the write fails.
    """
    written = http_response(response)
    receipt.status = response.status
    try:
        await written.prepare(request)
        receipt.taken = response.taken
        receipt.complete = True
        watch_sender(request, receipt)
        await written.write_eof()
    except asyncio.CancelledError:
        receipt.complete = False
        raise
    except ConnectionError:
        receipt.complete = False
        receipt.unread = True
    return written


def http_response(response: Response) -> web.Response:
    return web.Response(status=response.status, text=response.body, headers=response.headers)

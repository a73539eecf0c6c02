"""Writes answers, and notes in receipts whether an answer was written."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from sandbox.leaving import watch_sender
from sandbox.receipts import Receipt


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. `taken`: the service accepts the message for the device."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    taken: bool = False


# How a proxy in front of a push service answers.
BLOCKED = Answer(
    403,
    "<html><head><title>403 Forbidden</title></head><body>Blocked by your proxy</body></html>",
    {"Content-Type": "text/html; charset=UTF-8"},
)


class RefusedError(Exception):
    """The request breaks a rule of the protocol. The sender gets `answer`."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body)
        self.answer = answer


async def write_answer(request: web.Request, receipt: Receipt, answer: Answer) -> web.Response:
    """Writes the answer and notes it in the receipt.

    The receipt is marked complete before the last byte is written, so that it is complete when a
    sender has read the answer. The mark is removed if the write fails.
    """
    response = response_of(answer)
    receipt.status = answer.status
    try:
        await response.prepare(request)
        receipt.taken = answer.taken
        receipt.complete = True
        watch_sender(request, receipt)
        await response.write_eof()
    except asyncio.CancelledError:
        receipt.complete = False
        raise
    except ConnectionError:
        receipt.complete = False
        receipt.unread = True
    return response


def response_of(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, text=answer.body, headers=answer.headers)

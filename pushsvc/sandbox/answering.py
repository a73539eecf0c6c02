"""Answers, and the receipt that says whether one was written."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from pushsvc.sandbox.receipts import Receipt


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. `taken`: with it the service takes the message over for the device."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    taken: bool = False


class RefusedError(Exception):
    """The request breaks a rule of the protocol; `answer` is what the sender gets."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body)
        self.answer = answer


async def write_answer(request: web.Request, receipt: Receipt, answer: Answer) -> web.Response:
    """Write the answer and note it in the receipt.

    The receipt is completed before the last byte leaves, and taken back if it could not: whoever
    has read the answer finds the receipt complete.
    """
    response = response_of(answer)
    receipt.status = answer.status
    try:
        await response.prepare(request)
        receipt.taken = answer.taken
        receipt.complete = True
        await response.write_eof()
    except asyncio.CancelledError:
        receipt.complete = False
        raise
    except ConnectionError:
        receipt.complete = False
    return response


def response_of(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, text=answer.body, headers=answer.headers)

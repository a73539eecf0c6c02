"""Writing an answer, and noting in the receipt whether it went out."""

import asyncio

from aiohttp import web

from pushsvc.sandbox.receipts import Receipt
from pushsvc.sandbox.webpush.answers import Answer


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

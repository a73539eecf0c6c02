"""Modes that act on the connection instead of responding.

Each of these acts ends only by cancellation: aiohttp cancels a handler whose connection is lost.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn

from aiohttp import web

from sandbox.behaviours import Behaviour, is_success
from sandbox.receipts import Receipt

Act = Callable[[web.Request, Behaviour, Receipt], Awaitable[NoReturn]]

SLOW = "slow"

_CHUNK = b"x" * 16_384
_GARBAGE = b"\x16\x03\x01\x00\xff these bytes are no HTTP \x00\r\n\r\n"
# struct linger: on, for zero seconds, which makes close() send RST
_LINGER_NOT = struct.pack("ii", 1, 0)


async def _hang(_request: web.Request, _behaviour: Behaviour, _receipt: Receipt) -> NoReturn:
    await _until_cancelled()


async def _reset(request: web.Request, _behaviour: Behaviour, _receipt: Receipt) -> NoReturn:
    transport = _transport(request)
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    transport.abort()
    await _until_cancelled()


async def _close_after_accept(
    request: web.Request, _behaviour: Behaviour, receipt: Receipt
) -> NoReturn:
    receipt.taken = True
    _transport(request).close()
    await _until_cancelled()


async def _garbage(request: web.Request, _behaviour: Behaviour, _receipt: Receipt) -> NoReturn:
    transport = _transport(request)
    transport.write(_GARBAGE)
    transport.close()
    await _until_cancelled()


async def _endless_body(request: web.Request, behaviour: Behaviour, receipt: Receipt) -> NoReturn:
    receipt.status = behaviour.status
    receipt.taken = is_success(behaviour.status)
    response = web.StreamResponse(status=behaviour.status)
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        while True:
            await response.write(_CHUNK)
            await asyncio.sleep(0)
    await _until_cancelled()


async def _until_cancelled() -> NoReturn:
    never = asyncio.Event()
    while True:
        await never.wait()


def _transport(request: web.Request) -> asyncio.Transport:
    if not isinstance(request.transport, asyncio.Transport):
        raise ConnectionResetError("the client has gone")
    return request.transport


# By mode. A mode has the same name in every sandbox that has it.
_ACTS: Mapping[str, Act] = {
    "hang": _hang,
    "reset": _reset,
    "close_after_accept": _close_after_accept,
    "garbage": _garbage,
    "endless_body": _endless_body,
}


async def act(request: web.Request, behaviour: Behaviour, receipt: Receipt) -> None:
    """Returns when the request should get a response. Never returns if the mode sends none."""
    misbehave = _ACTS.get(behaviour.mode)
    if misbehave is not None:
        await misbehave(request, behaviour, receipt)
    if behaviour.mode == SLOW:
        await asyncio.sleep(behaviour.seconds)

"""Finds out whether the client of an HTTP/2 connection has read the responses.

A client that cancels a request resets its stream. A client that acknowledges a PING has read
everything before it. A client that ends the connection sends GOAWAY first, unless it is killed or
times out.
"""

import asyncio
from collections.abc import Callable, Iterator, Set
from typing import Final

from sandbox.receipts import Receipt

_ASK_SECONDS: Final = 0.1
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = 9  # bytes before a frame's payload (RFC 9113 section 4.1)
_RST_STREAM: Final = 3
_STREAM_ID: Final = 2**31 - 1


class Unconfirmed:
    """The responses that the client may not have read. `ask` sends a PING: one for many responses,
    because each costs the client a little."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._receipts: dict[int, Receipt] = {}
        self._asked: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, stream_id: int, receipt: Receipt) -> None:
        self._receipts[stream_id] = receipt
        self._ask_soon()

    def _ask_soon(self) -> None:
        if self._timer is None and self._receipts:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_ASK_SECONDS, self._ask_now)

    def _ask_now(self) -> None:
        self._asked = list(self._receipts)
        self._ask()

    def confirm(self) -> None:
        """To be called when the PING was acknowledged."""
        for stream_id in self._asked:
            self._receipts.pop(stream_id, None)
        self._asked, self._timer = [], None
        self._ask_soon()

    def give_up(self, stream_ids: Set[int]) -> None:
        """To be called when the client has reset these streams."""
        for stream_id in stream_ids & self._receipts.keys():
            self._receipts.pop(stream_id).unread = True

    def forget(self) -> None:
        """To be called when the connection ends such that the client can read all responses."""
        self._receipts.clear()
        if self._timer is not None:
            self._timer.cancel()

    def lose(self) -> None:
        """To be called when the connection has ended without a GOAWAY from the client."""
        for receipt in self._receipts.values():
            receipt.unread = True
        self.forget()


class Resets:
    """Reads which streams the client resets. h2 does not report it after the response."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._skipped = len(_PREFACE)

    def feed(self, data: bytes) -> Iterator[int]:
        skipped = data[: self._skipped]
        self._skipped -= len(skipped)
        self._data += data[len(skipped) :]
        while len(self._data) >= _HEAD:
            end = _HEAD + int.from_bytes(self._data[:3])
            if len(self._data) < end:
                return
            kind, stream_id = self._data[3], int.from_bytes(self._data[5:_HEAD]) & _STREAM_ID
            del self._data[:end]
            if kind == _RST_STREAM:
                yield stream_id

"""How many threads of a web process each kind of request may hold at once, and how many may wait.

Exports, the console and reads hold at most a quarter of the threads each: a quarter is always left
for what devices and senders ask. What waits for a place waits in the event loop.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

from pushsvc.common.errors import Unavailable

THREADS: Final = 16
QUARTER: Final = THREADS // 4
# Each of these kinds has its own, by method and path: the first that fits. The rest may have all.
QUARTERS: Final = (
    re.compile(r"GET /admin/.+/(log\.csv|export/.+)"),
    re.compile(r"\S+ /admin(/.*)?", re.DOTALL),
    re.compile(r"(GET|HEAD) /(channel|notifications?|metrics)(/.*)?"),
)
WAITING_IN_QUARTER: Final = 64
WAITING: Final = 2_048
IN_FLIGHT: Final = 1_024  # of an address: being read, waiting or being answered

_T = TypeVar("_T")


class Busy(Unavailable):
    code = "busy"
    title = "Too many requests at once"
    detail = "Too many requests of this kind, or from this address, are waiting. Nothing was done."
    retry_after = 1


class Places:
    """The threads that one kind of request may hold, and the queue for them."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int, waiting: int) -> None:
        self._pool = pool
        self._free = asyncio.Semaphore(threads)
        self._room = waiting

    def require_room(self) -> None:
        """Raises Busy where the queue is full."""
        if self._room <= 0:
            raise Busy

    async def run(self, work: Callable[[], _T]) -> _T:
        """Does the work in a thread as soon as there is a place, in the order of the calls."""
        self._room -= 1
        try:
            await self._free.acquire()
        finally:
            self._room += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._free.release()


class Bulkhead:
    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._quarters = [(kind, Places(pool, QUARTER, WAITING_IN_QUARTER)) for kind in QUARTERS]
        self._all = Places(pool, THREADS, WAITING)
        self._in_flight: Counter[str] = Counter()

    def places(self, method: str, path: str) -> Places:
        asked = f"{method} {path}"
        return next((places for kind, places in self._quarters if kind.fullmatch(asked)), self._all)

    @contextmanager
    def in_flight(self, address: str) -> Iterator[None]:
        """Raises Busy where IN_FLIGHT requests of the address are in flight already."""
        if self._in_flight[address] >= IN_FLIGHT:
            raise Busy
        self._in_flight[address] += 1
        try:
            yield
        finally:
            self._in_flight[address] -= 1
            if not self._in_flight[address]:
                del self._in_flight[address]

"""How many threads of a web process each kind of request may hold at once, and how many may wait.

Exports, the console and reads hold at most a quarter of the threads each: a quarter is always left
for what devices and senders ask. What waits for a place waits in the event loop.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

from pushsvc.common.errors import Unavailable

THREADS: Final = 16
QUARTER: Final = THREADS // 4
WAITING_IN_QUARTER: Final = 64
WAITING: Final = 2_048
IN_FLIGHT: Final = 1_024  # of an address: being read, waiting or being answered

_T = TypeVar("_T")
_READ: Final = frozenset({"channel", "notification", "notifications", "metrics"})

# The event loop asks these of every request, before anybody is known: none takes more time than in
# proportion to the path, as a regular expression with two unbounded parts would.


def _is_export(method: str, path: str) -> bool:
    is_long = path.endswith("/log.csv") or "/export/" in path
    return method == "GET" and path.startswith("/admin/") and is_long


def _is_console(_method: str, path: str) -> bool:
    return path == "/admin" or path.startswith("/admin/")


def _is_read(method: str, path: str) -> bool:
    return method in {"GET", "HEAD"} and "".join(path.split("/", 2)[1:2]) in _READ


# Each of these kinds has a quarter of its own: the first that fits. The rest may have all threads.
QUARTERS: Final = (_is_export, _is_console, _is_read)


class Busy(Unavailable):
    code = "busy"
    title = "Too many requests at once"
    detail = "Too many requests of this kind, or from this address, are waiting. Nothing was done."
    retry_after = 1


class TooManyInFlight(Busy):
    """Of one address. The body of the request is not read yet."""


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
        self._quarters = [(fits, Places(pool, QUARTER, WAITING_IN_QUARTER)) for fits in QUARTERS]
        self._all = Places(pool, THREADS, WAITING)
        self._in_flight: Counter[str] = Counter()

    def places(self, method: str, path: str) -> Places:
        found = (places for fits, places in self._quarters if fits(method, path))
        return next(found, self._all)

    @contextmanager
    def in_flight(self, address: str) -> Iterator[None]:
        """Raises TooManyInFlight if the address has IN_FLIGHT requests in flight already."""
        if self._in_flight[address] >= IN_FLIGHT:
            raise TooManyInFlight
        self._in_flight[address] += 1
        try:
            yield
        finally:
            self._in_flight[address] -= 1
            if not self._in_flight[address]:
                del self._in_flight[address]

"""Limits how many threads of a web process each kind of request occupies, and how many wait.

Exports, the console and reads each occupy at most a quarter of the threads. So a quarter is always
left for requests of devices and senders. Requests wait for a thread in the event loop, and are
refused if they wait too long, because their clients would not wait for the answer. Health checks
have their own threads, because otherwise an overloaded process would be restarted.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from pushsvc.common import metrics
from pushsvc.common.errors import Unavailable


class Capacity(NamedTuple):
    """How many requests run at once, and how many more may wait."""

    threads: int
    waiting: int


THREADS: Final = 16
ALL: Final = Capacity(THREADS, 2_048)
QUARTER: Final = Capacity(THREADS // 4, 64)
HEALTH: Final = Capacity(2, 64)  # one thread may wait for a database that hangs
# One address cannot take all places. Its requests may occupy both threads.
ADDRESS_IN_HEALTH: Final = Capacity(HEALTH.threads, 16)
ADDRESS_IN_QUARTER: Final = Capacity(QUARTER.threads - 1, 16)  # so one address leaves a thread free
IN_FLIGHT: Final = 1_024  # requests of an address: being read, waiting or being answered

_T = TypeVar("_T")
_HEALTH: Final = frozenset({"healthz", "readyz"})
_READ: Final = frozenset({"channel", "notification", "notifications", "metrics"})

# The event loop calls these for every request, before authentication. So their time must be linear
# in the path. A regular expression with two unbounded parts is not.


def _is_export(method: str, path: str) -> bool:
    is_long = path.endswith("/log.csv") or "/export/" in path
    return method == "GET" and path.startswith("/admin/") and is_long


def _is_console(_method: str, path: str) -> bool:
    return path == "/admin" or path.startswith("/admin/")


def _is_read(method: str, path: str) -> bool:
    return method in {"GET", "HEAD"} and "".join(path.split("/", 2)[1:2]) in _READ


def _is_health(_method: str, path: str) -> bool:
    return path.strip("/") in _HEALTH


# Each kind has its own quarter. The first that matches decides. Other requests may use all threads.
QUARTERS: Final = {"export": _is_export, "console": _is_console, "read": _is_read}
_OTHERS: Final = "other"


class Busy(Unavailable):
    code = "busy"
    title = "Too many requests at once"
    detail = "Too many requests of this kind, or from this address, are waiting. Nothing was done."
    retry_after = 1


class TooManyInFlight(Busy):
    """An address has too many requests in flight. The body of this request was not read yet."""


class _Places:
    def __init__(self, size: Capacity) -> None:
        self.free = asyncio.Semaphore(size.threads)
        self.room = size.waiting


class Queue:
    """The threads that one kind of request may occupy, and the requests that wait for them.

    Each address has a share of both. Use it in one event loop. `kind`: its name in /metrics.
    """

    def __init__(
        self, pool: ThreadPoolExecutor, kind: str, size: Capacity, of_address: Capacity
    ) -> None:
        self._pool = pool
        self._kind = kind
        self._all = _Places(size)
        self._of_address = of_address
        self._shares: WeakValueDictionary[str, _Places] = WeakValueDictionary()  # of those in use

    def require_room(self, address: str) -> None:
        """Raises Busy if the queue, or the address's share of it, is full."""
        if min(self._all.room, self._share(address).room) <= 0:
            raise Busy

    async def run(self, work: Callable[[], _T], address: str, *, within: float | None = None) -> _T:
        """Does the work in a thread as soon as one is free and the address has a share left. Calls
        wait in their order. Raises Busy after waiting for `within` seconds."""
        share = self._share(address)
        try:
            with self._waiting(share):
                async with asyncio.timeout(within):
                    await self._take_place(share)
        except TimeoutError:
            raise Busy from None
        began = time.monotonic()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            metrics.THREAD_SECONDS.add(time.monotonic() - began, self._kind)
            self._all.free.release()
            share.free.release()

    async def _take_place(self, share: _Places) -> None:
        await share.free.acquire()
        try:
            await self._all.free.acquire()
        except BaseException:
            share.free.release()
            raise

    def _share(self, address: str) -> _Places:
        found = self._shares.get(address)
        if found is None:
            found = self._shares[address] = _Places(self._of_address)
        return found

    @contextmanager
    def _waiting(self, share: _Places) -> Iterator[None]:
        for places in (self._all, share):
            places.room -= 1
        try:
            yield
        finally:
            for places in (self._all, share):
                places.room += 1


class Bulkhead:
    def __init__(self, pool: ThreadPoolExecutor) -> None:
        of_health = ThreadPoolExecutor(HEALTH.threads, thread_name_prefix="health")
        self._special = [
            (_is_health, Queue(of_health, "health", HEALTH, ADDRESS_IN_HEALTH)),
            *(
                (fits, Queue(pool, kind, QUARTER, ADDRESS_IN_QUARTER))
                for kind, fits in QUARTERS.items()
            ),
        ]
        self._all = Queue(pool, _OTHERS, ALL, ALL)
        self._in_flight: Counter[str] = Counter()

    def queue(self, method: str, path: str) -> Queue:
        found = (queue for fits, queue in self._special if fits(method, path))
        return next(found, self._all)

    @contextmanager
    def in_flight(self, address: str) -> Iterator[None]:
        """Counts a request of the address in this context. Raises TooManyInFlight if the address
        already has IN_FLIGHT requests in flight."""
        if self._in_flight[address] >= IN_FLIGHT:
            raise TooManyInFlight
        self._in_flight[address] += 1
        try:
            yield
        finally:
            self._in_flight[address] -= 1
            if not self._in_flight[address]:
                del self._in_flight[address]

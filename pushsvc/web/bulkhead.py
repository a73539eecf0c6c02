"""Limits how many threads of a web process each kind of request occupies, and how many wait.

Exports, the console and reads each occupy at most a quarter of the threads. So a quarter is always
left for requests of devices and senders. Requests wait for a thread in the event loop, and are
refused if they wait too long, because their clients would not wait for the response. Health checks
have their own threads, because otherwise an overloaded process would be restarted. Estimates of
audiences have their own threads, because their cost depends on the tenant's request. So have
imports, whose bodies are also larger: only a few are read at a time. So have exports by programs,
each of which makes hundreds of long requests.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from pushsvc.common import metrics
from pushsvc.common.errors import Busy
from pushsvc.web.request_body import is_import


class Capacity(NamedTuple):
    """How many requests run at once, and how many more may wait."""

    threads: int
    waiting: int


THREADS: Final = 16
ALL: Final = Capacity(THREADS, 2_048)
QUARTER: Final = Capacity(THREADS // 4, 64)
HEALTH: Final = Capacity(2, 64)  # one thread may wait for a database that hangs
ESTIMATES: Final = Capacity(2, 64)
OF_KEY_IN_ESTIMATES: Final = Capacity(ESTIMATES.threads - 1, 16)  # so one key leaves a thread free
IMPORTS: Final = Capacity(2, 6)
ADDRESS_IN_IMPORTS: Final = Capacity(IMPORTS.threads - 1, 2)  # so one address leaves a thread free
DOWNLOADS: Final = Capacity(2, 16)
OF_KEY_IN_DOWNLOADS: Final = Capacity(DOWNLOADS.threads - 1, 4)  # so one key leaves a thread free
# One address cannot take all places. Its requests may occupy both threads.
ADDRESS_IN_HEALTH: Final = Capacity(HEALTH.threads, 16)
ADDRESS_IN_QUARTER: Final = Capacity(QUARTER.threads - 1, 16)  # so one address leaves a thread free
IN_FLIGHT: Final = 1_024  # requests of an address: being read, waiting or being served

_T = TypeVar("_T")
_HEALTH: Final = frozenset({"healthz", "readyz"})
_READ: Final = frozenset({"channel", "notification", "notifications", "metrics"})

# The event loop calls these for every request, before authentication. So their time must be linear
# in the path. A regular expression with two unbounded parts is not.


def _is_export(method: str, path: str) -> bool:
    """Exports of the console; also images, so that neither a crowd of devices after a send nor a
    bucket that hangs delays programs that read."""
    if path.startswith("/images/"):
        return True
    is_long = path.endswith("/log.csv") or "/export/" in path
    return method == "GET" and path.startswith("/admin/") and is_long


def _is_console(_method: str, path: str) -> bool:
    return path == "/admin" or path.startswith("/admin/")


def _is_read(method: str, path: str) -> bool:
    return method in {"GET", "HEAD"} and "".join(path.split("/", 2)[1:2]) in _READ


def _is_health(_method: str, path: str) -> bool:
    return path.strip("/") in _HEALTH


def _is_download(method: str, path: str) -> bool:
    """Exports by programs, with an API key."""
    trimmed = path.rstrip("/")
    return method in {"GET", "HEAD"} and (
        (trimmed.startswith("/channel/") and trimmed.endswith("/subscriptions"))
        or (trimmed.startswith("/notification/") and trimmed.endswith("/deliveries"))
    )


def _is_estimate(method: str, path: str, body: bytes) -> bool:
    """Dry runs and sizes of segments. A JSON string can contain escaped ASCII letters, which no
    usual client writes; such a body may name a dry run."""
    if method == "GET":
        return path.startswith("/channel/") and path.rstrip("/").endswith("/size")
    is_send = method == "POST" and path.rstrip("/") == "/send-notification"
    return is_send and (b"dry_run" in body or _ESCAPED_ASCII.search(body) is not None)


# Each kind has its own quarter. The first that matches decides. Other requests may use all threads.
QUARTERS: Final = {"export": _is_export, "console": _is_console, "read": _is_read}
_OTHERS: Final = "other"
_ESTIMATE: Final = "estimate"
_DOWNLOAD: Final = "download"
OF_KEYS: Final = frozenset(
    {_ESTIMATE, _DOWNLOAD}
)  # whose senders are accepted keys, wherever they are
_ESCAPED_ASCII: Final = re.compile(rb"\\u00[2-7]")


class TooManyInFlight(Busy):
    """An address has too many requests in flight. The body of this request was not read yet."""


class _Places:
    def __init__(self, size: Capacity) -> None:
        self.free = asyncio.Semaphore(size.threads)
        self.room = size.waiting


class Queue:
    """The threads that one kind of request may occupy, and the requests that wait for them.

    Each sender has a share of both: an address, or a key. Use it in one event loop. `kind`: its
    name in /metrics. `ends_with_client`: the work of a request may end when its client leaves.
    """

    def __init__(
        self, pool: ThreadPoolExecutor, kind: str, size: Capacity, of_sender: Capacity
    ) -> None:
        self.kind = kind
        self.ends_with_client = kind != _OTHERS
        self._pool = pool
        self._all = _Places(size)
        self._of_sender = of_sender
        self._shares: WeakValueDictionary[str, _Places] = WeakValueDictionary()  # of those in use

    def require_room(self, sender: str) -> None:
        """Raises Busy if the queue, or the sender's share of it, is full."""
        if min(self._all.room, self._share(sender).room) <= 0:
            raise Busy

    async def run(self, work: Callable[[], _T], sender: str, *, within: float | None = None) -> _T:
        """Does the work in a thread as soon as one is free and the sender has a share left. Calls
        wait in their order. Raises Busy after waiting for `within` seconds."""
        share = self._share(sender)
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
            metrics.THREAD_SECONDS.add(time.monotonic() - began, self.kind)
            self._all.free.release()
            share.free.release()

    async def _take_place(self, share: _Places) -> None:
        await share.free.acquire()
        try:
            await self._all.free.acquire()
        except BaseException:
            share.free.release()
            raise

    def _share(self, sender: str) -> _Places:
        found = self._shares.get(sender)
        if found is None:
            found = self._shares[sender] = _Places(self._of_sender)
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
        of_estimates = ThreadPoolExecutor(ESTIMATES.threads, thread_name_prefix=_ESTIMATE)
        self._estimates = Queue(of_estimates, _ESTIMATE, ESTIMATES, OF_KEY_IN_ESTIMATES)
        of_imports = ThreadPoolExecutor(IMPORTS.threads, thread_name_prefix="import")
        self._special.insert(
            0, (is_import, Queue(of_imports, "import", IMPORTS, ADDRESS_IN_IMPORTS))
        )
        of_downloads = ThreadPoolExecutor(DOWNLOADS.threads, thread_name_prefix=_DOWNLOAD)
        self._special.insert(
            0, (_is_download, Queue(of_downloads, _DOWNLOAD, DOWNLOADS, OF_KEY_IN_DOWNLOADS))
        )
        self.others = Queue(pool, _OTHERS, ALL, ALL)
        self._in_flight: Counter[str] = Counter()
        self._importing: Counter[str] = Counter()

    def queue(self, method: str, path: str, body: bytes = b"") -> Queue:
        if _is_estimate(method, path, body):
            return self._estimates
        found = (queue for fits, queue in self._special if fits(method, path))
        return next(found, self.others)

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

    @contextmanager
    def importing(self, method: str, path: str, address: str) -> Iterator[None]:
        """Counts an import from before its body is read, so that the bodies in memory are bounded.
        Raises TooManyInFlight. Does nothing for other requests."""
        if not is_import(method, path):
            yield
            return
        places = self._importing
        if places.total() >= sum(IMPORTS) or places[address] >= sum(ADDRESS_IN_IMPORTS):
            raise TooManyInFlight
        places[address] += 1
        try:
            yield
        finally:
            places[address] -= 1
            if not places[address]:
                del places[address]

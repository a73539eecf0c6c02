"""Processes report their counts to Redis, and /metrics reads the sums.

Each process reports every few seconds, in one round trip, from a separate thread. While Redis is
away, a process continues to count; its memory has one number for each field. A killed process loses
its unreported counts. If Redis loses its memory, all sums begin at 0 again, which Prometheus treats
as a restart.
"""

import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from threading import Lock, Thread
from typing import Final, NamedTuple
from uuid import uuid4

import redis

from pushsvc.common import fingerprints, metrics
from pushsvc.common.store.redis_client import redis_client

REPORT_SECONDS: Final = 5.0
_ALIVE_SECONDS: Final = 3 * REPORT_SECONDS
_REMEMBERED_SECONDS: Final = 3600
_PARTS: Final = 3 + len(fingerprints.Fingerprints._fields)  # of a process's name
_SUMS: Final = "pushsvc:metrics:sums"
_PROCESSES: Final = "pushsvc:metrics:processes"

# Adds each report once, so that a report whose response was lost may be sent again. Its number is
# written first: if the rest fails, the report is lost and not counted twice.
_TAKE: Final = """
local sums, processes, numbers = unpack(KEYS)
local process, number, remembered = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', processes, '-inf', now - remembered)
redis.call('ZADD', processes, now, process)
if tonumber(redis.call('GET', numbers) or 0) >= number then return 0 end
redis.call('SET', numbers, number, 'EX', remembered)
for i = 4, #ARGV, 2 do redis.call('HINCRBY', sums, ARGV[i], ARGV[i + 1]) end
return 1
"""
_READ: Final = """
local oldest = tonumber(redis.call('TIME')[1]) - tonumber(ARGV[1])
return {redis.call('HGETALL', KEYS[1]), redis.call('ZRANGEBYSCORE', KEYS[2], oldest, '+inf')}
"""


class Reported(NamedTuple):
    """`sums`: what all processes counted, by field. `processes`: how many of each kind reported in
    the last 15 s."""

    sums: Mapping[str, int]
    processes: Mapping[str, int]


class Reporting(NamedTuple):
    """A process that reports: its kind, its machine, and what must be the same in all of them."""

    kind: str
    host: str
    fingerprints: fingerprints.Fingerprints


class Reporter:
    """Sends the reports of one process. The name contains the kind, the machine, and hashes of code
    and keys."""

    def __init__(self, kind: str, *, take: Callable[[], Mapping[str, int]] = metrics.take) -> None:
        own = (kind, uuid4().hex, socket.gethostname(), *fingerprints.own())
        self._process = ":".join(own)
        self._take = take
        self._lock = Lock()
        self._number = 0
        self._unreported: Mapping[str, int] | None = None

    def report(self) -> bool:
        """Sends a report. Returns whether Redis accepted it; if not, the next call sends it
        again."""
        with self._lock:
            if self._unreported is None:
                self._unreported = self._take()
                self._number += 1
            try:
                self._send(self._unreported)
            except redis.RedisError as error:
                redis_client().leave_if_replica(error)
                return False
            self._unreported = None
            return True

    def report_rest(self) -> None:
        """Sends the last reports of a process: the unaccepted one, and the counts since."""
        if self.report():
            self.report()

    def _send(self, amounts: Mapping[str, int]) -> None:
        keys = (_SUMS, _PROCESSES, f"pushsvc:metrics:number:{self._process}")
        arguments = [part for pair in amounts.items() for part in pair]
        head = (self._process, self._number, _REMEMBERED_SECONDS)
        _client().eval(_TAKE, len(keys), *keys, *map(str, head), *map(str, arguments))


def start(kind: str) -> Reporter:
    """Starts reporting. Call it once in a process, after the fork."""
    reporter = Reporter(kind)
    Thread(target=_report_for_ever, args=(reporter,), name="metrics", daemon=True).start()
    return reporter


def read() -> Reported | None:
    """Reads the sums. None while Redis is away."""
    try:
        sums, processes = _read()
    except redis.RedisError:
        return None
    amounts = dict(zip(sums[::2], map(int, sums[1::2]), strict=True))
    return Reported(amounts, Counter(name.partition(":")[0] for name in processes))


def reporting() -> list[Reporting]:
    """The processes that reported in the last 15 s, except those of versions that do not report
    these facts. Empty while Redis is away."""
    try:
        _, processes = _read()
    except redis.RedisError:
        return []
    parts = [name.split(":") for name in processes]
    return [
        Reporting(each[0], each[2], fingerprints.Fingerprints(*each[3:]))
        for each in parts
        if len(each) == _PARTS
    ]


def _read() -> tuple[list[str], list[str]]:
    sums, processes = _client().eval(_READ, 2, _SUMS, _PROCESSES, str(_ALIVE_SECONDS))
    return sums, processes


def _report_for_ever(reporter: Reporter) -> None:
    """Begins at once, so that a new process is not thought to hang."""
    while True:
        reporter.report()
        time.sleep(REPORT_SECONDS)


def _client() -> redis.Redis:
    """A client without the back-off of `redis_client`, so that a failed report does not affect
    limits and breakers."""
    return redis.Redis(connection_pool=redis_client().connection_pool)

"""Processes report to Redis what they counted, and /metrics reads the sums.

Each process reports every few seconds, in one round trip, from a thread that does nothing else.
While Redis is away, a process goes on counting: its memory has one number for each field. A process
that is killed loses what it has not reported. If Redis loses its memory, all sums begin at 0 again,
which Prometheus takes for a restart.
"""

import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from threading import Lock, Thread
from typing import Final, NamedTuple
from uuid import uuid4

import redis

from pushsvc.common import metrics, sameness
from pushsvc.common.store.redis_client import redis_client

REPORT_SECONDS: Final = 5.0
_ALIVE_SECONDS: Final = 3 * REPORT_SECONDS
_REMEMBERED_SECONDS: Final = 3600
_PARTS: Final = 3 + len(sameness.Sameness._fields)  # of a process's name
_SUMS: Final = "pushsvc:metrics:sums"
_PROCESSES: Final = "pushsvc:metrics:processes"

# Takes each report once, so that one whose answer was lost may be sent again. The number is written
# first: if the rest fails, it is lost and not doubled.
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
    same: sameness.Sameness


class Reporter:
    """Reports for one process of a kind. Its name says what kind, where, and of which code and
    keys."""

    def __init__(self, kind: str, *, take: Callable[[], Mapping[str, int]] = metrics.take) -> None:
        own = (kind, uuid4().hex, socket.gethostname(), *sameness.own())
        self._process = ":".join(own)
        self._take = take
        self._lock = Lock()
        self._number = 0
        self._unreported: Mapping[str, int] | None = None

    def report(self) -> bool:
        """Whether Redis took it. If not, the next call sends the same again."""
        with self._lock:
            if self._unreported is None:
                self._unreported = self._take()
                self._number += 1
            try:
                self._send(self._unreported)
            except redis.RedisError:
                return False
            self._unreported = None
            return True

    def report_rest(self) -> None:
        """The last reports of a process that ends: what was not taken, and what came since."""
        if self.report():
            self.report()

    def _send(self, amounts: Mapping[str, int]) -> None:
        keys = (_SUMS, _PROCESSES, f"pushsvc:metrics:number:{self._process}")
        arguments = [part for pair in amounts.items() for part in pair]
        head = (self._process, self._number, _REMEMBERED_SECONDS)
        _client().eval(_TAKE, len(keys), *keys, *map(str, head), *map(str, arguments))


def start(kind: str) -> Reporter:
    """Reports from now on. Call it once in a process, after the fork."""
    reporter = Reporter(kind)
    Thread(target=_report_for_ever, args=(reporter,), name="metrics", daemon=True).start()
    return reporter


def read() -> Reported | None:
    """None while Redis is away."""
    try:
        sums, processes = _read()
    except redis.RedisError:
        return None
    amounts = dict(zip(sums[::2], map(int, sums[1::2]), strict=True))
    return Reported(amounts, Counter(name.partition(":")[0] for name in processes))


def reporting() -> list[Reporting]:
    """The processes that reported in the last 15 s, but for those of a version that does not say
    what it is; none while Redis is away."""
    try:
        _, processes = _read()
    except redis.RedisError:
        return []
    parts = [name.split(":") for name in processes]
    return [
        Reporting(each[0], each[2], sameness.Sameness(*each[3:]))
        for each in parts
        if len(each) == _PARTS
    ]


def _read() -> tuple[list[str], list[str]]:
    sums, processes = _client().eval(_READ, 2, _SUMS, _PROCESSES, str(_ALIVE_SECONDS))
    return sums, processes


def _report_for_ever(reporter: Reporter) -> None:
    while True:
        time.sleep(REPORT_SECONDS)
        reporter.report()


def _client() -> redis.Redis:
    """Without the back-off of `redis_client`: what a report learns does not stop limits and
    breakers."""
    return redis.Redis(connection_pool=redis_client().connection_pool)

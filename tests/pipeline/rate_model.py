"""A channel with one worker at a push service that limits it, on a clock of its own. Also makes
a limit known, as calls would.

Redis and the scripts are real. Calls, passes and time are simulated: a call takes two milliseconds,
a hundred are in flight, and a worker looks for work each second, as ticks wake it.
"""

from collections import deque
from dataclasses import dataclass, field

from notifications_app.pipeline import breakers, web_rate
from notifications_app.pipeline.evidence import LEAST_RECENT, MOST_RECENT, Evidence, Throttling
from pushsvc.common.ids import uuid7
from pushsvc.common.store.redis_client import redis_client

CALL_SECONDS = 0.002
IN_FLIGHT = 100
FLUSH = 300
BATCH = 1000
DEFERRED_SECONDS = 15.0
SERVICE = "fcm"


def make_known(service, channel_id, per_minute):
    """The push service limits the channel, and accepts calls again."""

    def tell(accepted, throttled, *, is_trial):
        calls = accepted + throttled
        recent = min(calls, MOST_RECENT)
        said = Throttling(accepted, calls, throttled, recent, min(recent, throttled), 0.0)
        web_rate.record(service, channel_id, Evidence(calls, 0), said, is_trial=is_trial)

    tell(per_minute, 40, is_trial=False)
    assert web_rate.begin(service, channel_id, 100).is_trial
    tell(0, 20, is_trial=True)
    redis_client().delete(web_rate.HELD)
    assert web_rate.begin(service, channel_id, 100).is_trial
    tell(1, 0, is_trial=True)
    assert [each.per_minute for each in web_rate.limits_of(channel_id)] == [per_minute]


class Clock:
    """Sets the time that the scripts read."""

    KEY = "tests:clock"
    SCRIPT = f"local now = tonumber(redis.call('GET', '{KEY}'))\n"

    def __init__(self):
        self.now = 1_800_000_000.0
        self.wait(0)

    def wait(self, seconds):
        self.now += seconds
        redis_client().set(self.KEY, int(1000 * self.now))


@dataclass
class Window:
    """Accepts `messages` in a minute, which begins with the first message after the last one."""

    messages: int
    retry_after: bool = False
    began: float = -100.0
    used: int = 0

    def accepts(self, now):
        if now >= self.began + 60:
            self.began, self.used = now, 0
        self.used += 1
        return self.used <= self.messages

    def wait(self, now):
        return self.began + 60 - now if self.retry_after else 0.0


@dataclass
class Bucket:
    """Fills with `messages` a minute, and holds at most those of `holds` seconds."""

    messages: int
    retry_after: bool = False
    holds: float = 60.0
    at: float = 0.0
    tokens: float = float("inf")

    def accepts(self, now):
        rate = self.messages / 60
        self.tokens = min(rate * self.holds, self.tokens + (now - self.at) * rate)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def wait(self, now):
        return 1.0 if self.retry_after else 0.0


@dataclass
class Sending:
    """A send to `left` recipients; `calls`, `accepted` and `seconds` are what it took."""

    clock: Clock
    service: Window | Bucket
    left: int
    channel: object = field(default_factory=uuid7)
    deferred: deque = field(default_factory=deque)
    calls: int = 0
    accepted: int = 0

    def run(self, seconds):
        """Until all are accepted, at most `seconds`. Returns how many it took."""
        began = self.clock.now
        while (self.left or self.deferred) and self.clock.now < began + seconds:
            name = breakers.of_channel(SERVICE, self.channel)
            if name in breakers.held(web_rate.HELD) or not self.work():
                self.clock.wait(1.0)
        return self.clock.now - began

    def work(self):
        """One pass. Returns whether it made calls."""
        while self.deferred and self.deferred[0] <= self.clock.now:
            self.deferred.popleft()
            self.left += 1
        wanted = min(self.left, BATCH)
        if not wanted:
            return False
        standing = web_rate.begin(SERVICE, self.channel, wanted)
        most = wanted if standing.most is None else standing.most
        recent, flush, stops_after, made = deque(maxlen=MOST_RECENT), [], None, 0
        while made < most and stops_after != 0:
            made += 1
            self.clock.now += CALL_SECONDS
            is_accepted = self.service.accepts(self.clock.now)
            recent.append(not is_accepted)
            wait = None if is_accepted else self.service.wait(self.clock.now)
            flush.append(wait)
            self.note(wait)
            if stops_after is not None:
                stops_after -= 1
            elif len(recent) >= LEAST_RECENT and 2 * sum(recent) >= len(recent):
                stops_after = IN_FLIGHT
            if len(flush) == FLUSH:
                self.record(flush, standing)
                flush = []
        if flush:
            self.record(flush, standing)
        return made > 0

    def note(self, wait):
        self.calls += 1
        self.left -= 1
        if wait is None:
            self.accepted += 1
        else:
            self.deferred.append(self.clock.now + max(DEFERRED_SECONDS, wait))

    def record(self, flush, standing):
        """`flush`: of each call None, or the Retry-After of its 429."""
        self.clock.wait(0)
        recent = flush[-MOST_RECENT:]
        waits = [wait for wait in recent if wait is not None]
        web_rate.record(
            SERVICE,
            self.channel,
            Evidence(len(flush), 0),
            Throttling(
                accepted=flush.count(None),
                calls=len(flush),
                throttled=len(flush) - flush.count(None),
                recent=len(recent),
                recent_throttled=len(waits),
                retry_after=min(waits, default=0.0),
            ),
            is_trial=standing.is_trial,
        )

    @property
    def limit(self):
        return next(
            (each.per_minute for each in web_rate.limits() if each.channel_id == self.channel), None
        )

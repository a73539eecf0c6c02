"""Learns how many messages a minute a web push service accepts of a channel, and keeps to it.

Chrome's push service returns 429 to more than about 1,000 messages a minute of a site with little
engagement, for days (https://developer.chrome.com/blog/web-push-rate-limits). Nothing announces the
limit, so it is learned from responses, for each channel at each known web push service:

- Half of the last 20 to 40 first calls were throttled: the channel is *suspected*. Its calls stop,
  and the next pass makes a trial of 20 calls, first to devices that a push service accepted
  messages for before. So a group of devices that return 429 does not limit the others.
- Half of the trial was throttled: the limit is what was accepted in the last minute, at least
  FLOOR. Calls are granted from a bucket. Before that, single probes find out when calls are
  accepted again, not before the service's Retry-After.
- A minute without a throttled call raises the limit by a tenth. The first estimate may be far too
  low, so until calls are throttled again it is doubled: each minute, or every ten seconds if the
  first probe was accepted. A minute with more than a tenth throttled, or half of the last calls,
  lowers it to what was accepted, at most by half.
- After an hour without a throttled call it is forgotten.

All of it is in Redis. If Redis loses it, it is learned again; while Redis is away, nothing is
limited.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

import redis
import structlog
from django.conf import settings

from notifications_app.delivery.registry import services_with_breaker
from notifications_app.pipeline import breakers
from notifications_app.pipeline import web_rate_scripts as scripts
from notifications_app.pipeline.evidence import (
    LEAST_RECENT,
    MOST_RECENT,
    Evidence,
    Throttling,
    trial_sample,
)
from notifications_app.pipeline.reading import Recipient
from pushsvc.common.platforms import Platform
from pushsvc.common.store.redis_client import redis_client

logger = structlog.stdlib.get_logger(__name__)

FLOOR: Final = 60
TRIAL_CALLS: Final = LEAST_RECENT
PROBE_CALLS: Final = 4
MOST_LIMITED: Final = 1_000  # channels at push services; no further limit is learned
MINUTE_SECONDS = 60.0
WINDOW_SECONDS = 10.0
PROBE_SECONDS = 5.0
TURN_SECONDS = 2.0  # between two passes of a channel with an empty bucket
BUCKET_SECONDS = 5.0  # how long a bucket fills
_BUCKET_MEMORY_SECONDS = 600
FAST_SECONDS = 10.0
SUSPICION_SECONDS = 30.0
MEMORY_SECONDS = 3_600.0
HELD: Final = "pushsvc:web_rate:held"
_LIMITED: Final = "pushsvc:web_rate:limited"
_LEARNED: Final = 1
_CLEARED: Final = 2
_STATE: Final = "pushsvc:web_rate:of:"


class Standing(NamedTuple):
    """What a pass may do. `most`: how many calls; None without a bound. `wait_seconds`: how long
    the others wait. `is_limited`: a limit is known. `is_trial`: the calls find out whether the push
    service accepts any."""

    is_half_open: bool = False
    most: int | None = None
    wait_seconds: float = 0.0
    is_limited: bool = False
    is_trial: bool = False

    def chosen(self, recipients: Sequence[Recipient]) -> Sequence[Recipient]:
        """The recipients that may be called now."""
        if self.most is None or len(recipients) <= self.most:
            return recipients
        if self.is_trial and not self.is_limited:
            return trial_sample(recipients, self.most)
        return recipients[: self.most]


class Verdict(NamedTuple):
    """`wait_seconds`: for how long the channel must not call. `is_cleared`: a trial found that it
    is not limited. `learned`: messages per minute, if the limit was learned now."""

    wait_seconds: float
    is_limited: bool = False
    is_cleared: bool = False
    learned: int | None = None


class Limit(NamedTuple):
    """A limit that is known now."""

    service: str
    channel_id: UUID
    per_minute: int
    since: datetime


def is_rated(platform: Platform, service: str) -> bool:
    """Whether limits of the push service are learned: known web push services only."""
    return platform == Platform.WEB and service in services_with_breaker(
        platform, settings.WEBPUSH_TRUSTED_ORIGINS
    )


def begin(service: str, channel_id: UUID, wanted: int) -> Standing:
    """Asks for `wanted` calls, and in the same round trip whether a breaker is half-open."""
    name = breakers.of_channel(service, channel_id)
    own = scripts.BEGIN(
        state=_STATE + name,
        held=HELD,
        bucket=f"pushsvc:web_rate:bucket:{name}",
        name=name,
        wanted=wanted,
        trial=TRIAL_CALLS,
        probe=PROBE_CALLS,
        probe_wait=_ms(PROBE_SECONDS),
        turn=_ms(TURN_SECONDS),
        minute=_ms(MINUTE_SECONDS),
        fill=_ms(BUCKET_SECONDS),
        memory=_BUCKET_MEMORY_SECONDS,
    )
    try:
        half_open, found = redis_client().run(breakers.half_open_call(service, channel_id), own)
    except redis.RedisError:
        return Standing()
    if not found:
        return Standing(bool(half_open))
    most, wait, limit, is_trial = found
    return Standing(bool(half_open), most, wait / 1000, bool(limit), bool(is_trial))


def record(
    service: str, channel_id: UUID, seen: Evidence, throttling: Throttling, *, is_trial: bool
) -> Verdict:
    """Records calls, for the breakers too, in one round trip."""
    if not seen.responded + seen.outages:
        return Verdict(0.0)
    name = breakers.of_channel(service, channel_id)
    own = scripts.RECORD(
        state=_STATE + name,
        held=HELD,
        limited=_LIMITED,
        name=name,
        accepted=throttling.accepted,
        calls=throttling.calls,
        hits=throttling.throttled,
        recent=throttling.recent,
        recent_hits=throttling.recent_throttled,
        retry=_ms(throttling.retry_after),
        is_trial=int(is_trial),
        minute=_ms(MINUTE_SECONDS),
        window=_ms(WINDOW_SECONDS),
        probe_wait=_ms(PROBE_SECONDS),
        turn=_ms(TURN_SECONDS),
        fast_wait=_ms(FAST_SECONDS),
        suspicion=_ms(SUSPICION_SECONDS),
        memory=_ms(MEMORY_SECONDS),
        most_recent=MOST_RECENT,
        least=LEAST_RECENT,
        floor=FLOOR,
        most_limited=MOST_LIMITED,
    )
    of_breaker_call = breakers.record_call(service, channel_id, **seen._asdict())
    try:
        of_breaker, (wait, limit, event) = redis_client().run(of_breaker_call, own)
    except redis.RedisError:
        logger.debug("web_rate.unrecorded", service=service)
        return Verdict(0.0)
    learned = int(float(limit)) if event == _LEARNED else None
    if learned is not None:
        logger.warning("web_rate.learned", service=service, channel=channel_id, per_minute=learned)
    breaker_wait = breakers.recorded(service, channel_id, of_breaker)
    waits = max(wait / 1000, breaker_wait if seen.outages else 0.0)
    return Verdict(waits, bool(limit), event == _CLEARED, learned)


def limits() -> list[Limit]:
    """All limits that are known now, at most MOST_LIMITED; none while Redis is away."""
    try:
        (found,) = redis_client().run(scripts.LIMITS(limited=_LIMITED, state_prefix=_STATE))
    except redis.RedisError:
        return []
    return [_limit(*found[at : at + 3]) for at in range(0, len(found), 3)]


def limits_of(channel_id: UUID) -> list[Limit]:
    """The limits of the channel that are known now, the lowest first."""
    own = (each for each in limits() if each.channel_id == channel_id)
    return sorted(own, key=lambda limit: limit.per_minute)


def _limit(name: str, per_minute: str, since: str) -> Limit:
    service, channel_id = name.split(" ")
    moment = datetime.fromtimestamp(int(since) / 1000, UTC)
    return Limit(service, UUID(channel_id), int(float(per_minute)), moment)


def _ms(seconds: float) -> int:
    return int(1000 * seconds)

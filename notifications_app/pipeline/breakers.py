"""Circuit breakers of push services and channels, shared by all workers through Redis.

A channel's breaker opens when half of at least 20 of its calls within ten seconds met an outage.
After its wait it is half-open: one batch makes a probe. Then the breaker closes, or opens again for
twice as long.

A service's breaker holds all channels, so it needs evidence from several. It opens when most of the
channels that called within a minute met outages, and these are at least 20, counting at most ten
for one channel. After its wait each channel may probe, and the first probe that gets a response
closes it. So no channel can hold up another. If only one channel uses a service, its own breaker
holds it.

While Redis is away, every breaker counts as closed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple
from uuid import UUID

import redis
import structlog

from notifications_app.pipeline import breaker_scripts as scripts
from pushsvc.common.endpoints import OTHER
from pushsvc.common.store.redis_client import ScriptCall, redis_client

logger = structlog.stdlib.get_logger(__name__)

UNKNOWN_HOSTS = OTHER  # without a breaker: these are many services, which fail independently
WINDOW_SECONDS = 10
SERVICE_WINDOW_SECONDS = 60
LEAST_CALLS = 20
MOST_OF_ONE_CHANNEL = 10
WAIT_SECONDS = 15
LONGEST_WAIT_SECONDS = 120
PROBE_CALLS = 20
_PROBE_SECONDS = 30
_MEMORY_SECONDS = 600
_OPEN = "pushsvc:breaker:open"
_PROBES = "pushsvc:breaker:probes"


class States(NamedTuple):
    """Push services whose breaker is open or half-open, and how many channels' breakers are open
    or half-open at each."""

    open: Set[str]
    half_open: Set[str]
    channels_open: Mapping[str, int]
    channels_half_open: Mapping[str, int]

    def of(self, service: str) -> Mapping[str, bool]:
        """The state of the service's own breaker: True for one of the three."""
        is_open, is_half_open = service in self.open, service in self.half_open
        return {
            "open": is_open,
            "half_open": is_half_open,
            "closed": not (is_open or is_half_open),
        }


def of_channel(service: str, channel_id: UUID) -> str:
    """The name of the channel's breaker at the service. The service's own breaker has the name of
    the service."""
    return f"{service} {channel_id}"


def parts_of(name: str) -> tuple[str, UUID | None]:
    """The push service of a breaker, and the channel if it is a channel's breaker."""
    service, _, channel_id = name.partition(" ")
    return service, UUID(channel_id) if channel_id else None


def held(*others: str) -> list[str]:
    """Names of breakers whose batches may not be claimed now: open, or half-open with a probe in
    progress. `others`: keys of further sorted sets of such names, scored as those of breakers."""
    try:
        return list(redis_client().run(held_call(*others))[0])
    except redis.RedisError:
        return []


def held_call(*others: str) -> ScriptCall:
    """The call of `held`."""
    return ScriptCall(scripts.HELD, (_OPEN, _PROBES, *others), (1000 * LONGEST_WAIT_SECONDS,))


def states() -> States | None:
    """The states of all breakers. None while Redis is away."""
    try:
        call = scripts.STATES(opened=_OPEN, level_prefix=_level(""), longest=LONGEST_WAIT_SECONDS)
        ((open_, half_open),) = redis_client().run(call)
    except redis.RedisError:
        return None
    return States(
        open=_services(open_),
        half_open=_services(half_open),
        channels_open=_channels(open_),
        channels_half_open=_channels(half_open),
    )


def _services(names: Sequence[str]) -> set[str]:
    return {service for service, channel_id in map(parts_of, names) if channel_id is None}


def _channels(names: Sequence[str]) -> Counter[str]:
    return Counter(service for service, channel_id in map(parts_of, names) if channel_id)


def is_half_open(service: str, channel_id: UUID) -> bool:
    """Whether the channel may only probe, because its breaker or the service's is half-open."""
    if service == UNKNOWN_HOSTS:
        return False
    try:
        return bool(redis_client().run(half_open_call(service, channel_id))[0])
    except redis.RedisError:
        return False


def half_open_call(service: str, channel_id: UUID) -> ScriptCall:
    """The call of `is_half_open`."""
    own = of_channel(service, channel_id)
    return scripts.IS_HALF_OPEN(
        opened=_OPEN,
        own=own,
        own_level=_level(own),
        service=service,
        service_level=_level(service),
        longest=LONGEST_WAIT_SECONDS,
    )


def take_probe(service: str, channel_id: UUID) -> bool:
    """Whether this worker may probe for the channel. True for one worker at a time, and for all
    while Redis is away."""
    own = of_channel(service, channel_id)
    try:
        call = scripts.TAKE_PROBE(probes=_PROBES, own=own, seconds=_PROBE_SECONDS)
        return bool(redis_client().run(call)[0])
    except redis.RedisError:
        return True


def record(service: str, channel_id: UUID, *, responded: int, outages: int) -> float:
    """Counts calls and opens breakers. Returns for how many seconds the channel must not call; 0
    without outages. A record may be lost without harm."""
    if not responded + outages:
        return 0.0
    wait = _record(service, channel_id, responded, outages, is_probe=False)
    return wait if outages else 0.0


def end_probe(service: str, channel_id: UUID, *, responded: int, outages: int) -> float:
    """Records a probe: closes the breakers or opens them again. Returns the seconds to wait, as
    `record` does. A probe without evidence leaves the breakers as they are, and its batch waits, so
    that others may probe."""
    wait = _record(service, channel_id, responded, outages, is_probe=True)
    return wait if responded + outages else float(WAIT_SECONDS)


def _record(
    service: str, channel_id: UUID, responded: int, outages: int, *, is_probe: bool
) -> float:
    if service == UNKNOWN_HOSTS:
        return 0.0
    call = record_call(service, channel_id, responded, outages, is_probe=is_probe)
    try:
        return recorded(service, channel_id, redis_client().run(call)[0])
    except redis.RedisError:
        logger.debug("breaker.unrecorded", service=service)
        return 0.0


def record_call(
    service: str, channel_id: UUID, responded: int, outages: int, *, is_probe: bool = False
) -> ScriptCall:
    """The call of `record` and `end_probe`."""
    own = of_channel(service, channel_id)
    return scripts.RECORD(
        opened=_OPEN,
        probes=_PROBES,
        own=own,
        own_level=_level(own),
        service=service,
        service_level=_level(service),
        channel=channel_id.hex,
        calls=_key("calls", own),
        votes=_key("votes", service),
        responded=responded,
        outages=outages,
        is_probe=int(is_probe),
        least=LEAST_CALLS,
        most_of_one=MOST_OF_ONE_CHANNEL,
        window=WINDOW_SECONDS,
        service_window=SERVICE_WINDOW_SECONDS,
        shortest=WAIT_SECONDS,
        longest=LONGEST_WAIT_SECONDS,
        memory=_MEMORY_SECONDS,
    )


def recorded(service: str, channel_id: UUID, result: Sequence[int]) -> float:
    """Logs what `record_call` changed. Returns for how many seconds the channel must not call."""
    wait, *events = result
    _log(service, channel_id, events)
    return int(wait) / 1000


def _log(service: str, channel_id: UUID, events: Sequence[int]) -> None:
    """`events`: one of the channel's breaker and one of the service's, as RECORD returns them."""
    for event, whose in zip(events, [{"channel": channel_id}, {}], strict=True):
        if event > 0:
            logger.warning("breaker.opened", service=service, **whose, seconds=event)
        elif event < 0:
            logger.info("breaker.closed", service=service, **whose)


def _level(name: str) -> str:
    return _key("level", name)


def _key(part: str, name: str) -> str:
    return f"pushsvc:breaker:{part}:{name}"

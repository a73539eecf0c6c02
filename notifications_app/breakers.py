"""A circuit breaker for each push service, shared by all workers through Redis.

closed → open when half of at least twenty calls in ten seconds met an outage → half-open when the
wait is over: one small batch tries → closed, or open again for twice as long. When Redis is away
every breaker counts as closed.
"""

import logging
import time
from collections.abc import Iterable

import redis

from pushsvc.common.redis_client import redis_client

logger = logging.getLogger(__name__)

STRANGERS = "other"  # hosts that nobody knows share no fate
WINDOW_SECONDS = 10
LEAST_CALLS = 20
WAIT_SECONDS = 15
LONGEST_WAIT_SECONDS = 120
PROBE_CALLS = 20
_PROBE_SECONDS = 30
_MEMORY_SECONDS = 600


def record(service: str, *, answered: int, outages: int) -> None:
    """Counts calls; opens or closes the breaker. Safe to lose."""
    if service == STRANGERS or not answered + outages:
        return
    try:
        _record(service, answered, outages)
    except redis.RedisError:
        logger.debug("breaker.unrecorded", extra={"service": service})


def services_to_skip(services: Iterable[str]) -> list[str]:
    """Those of the services whose batches nobody should claim now: their breaker is open, or
    half-open with the one batch that tries under way."""
    names = list(services)
    keys = [_key(name, part) for name in names for part in ("open", "probe")]
    if not keys:
        return []
    try:
        states = redis_client().mget(keys)
    except redis.RedisError:
        return []
    return [
        name for name, *state in zip(names, states[::2], states[1::2], strict=True) if any(state)
    ]


def seconds_open(service: str) -> float:
    """How long nobody should call the service; 0 when it may be called."""
    try:
        return max(0.0, redis_client().pttl(_key(service, "open")) / 1000)
    except redis.RedisError:
        return 0.0


def is_half_open(service: str) -> bool:
    try:
        level, opened = redis_client().mget([_key(service, "level"), _key(service, "open")])
    except redis.RedisError:
        return False
    return level is not None and opened is None


def take_probe(service: str) -> bool:
    """True for the one worker that may try a half-open service now."""
    try:
        taken = redis_client().set(_key(service, "probe"), 1, nx=True, ex=_PROBE_SECONDS)
    except redis.RedisError:
        return True
    return bool(taken)


def _record(service: str, answered: int, outages: int) -> None:
    client = redis_client()
    if is_half_open(service):
        client.delete(_key(service, "probe"))
        if outages >= max(answered, 1):
            _open(service)
        elif answered:
            _close(service)
        return
    calls = _calls(service)
    pipe = client.pipeline()
    pipe.hincrby(calls, "answered", answered)
    pipe.hincrby(calls, "outages", outages)
    pipe.expire(calls, 2 * WINDOW_SECONDS)
    total_answered, total_outages, _ = pipe.execute()
    if total_answered + total_outages >= LEAST_CALLS and total_outages >= total_answered:
        _open(service)


def _open(service: str) -> None:
    client = redis_client()
    if not client.set(_key(service, "open"), 1, nx=True, ex=WAIT_SECONDS):
        return
    level = int(client.incr(_key(service, "level")))
    client.expire(_key(service, "level"), _MEMORY_SECONDS)
    wait = min(WAIT_SECONDS * 2 ** (level - 1), LONGEST_WAIT_SECONDS)
    client.expire(_key(service, "open"), wait)
    logger.warning("breaker.opened", extra={"service": service, "seconds": wait})


def _close(service: str) -> None:
    """Calls that were under way when it opened, and failed since, say nothing of it now."""
    redis_client().delete(_key(service, "level"), _calls(service))
    logger.info("breaker.closed", extra={"service": service})


def _calls(service: str) -> str:
    """Of the current window."""
    return _key(service, f"calls:{int(time.time()) // WINDOW_SECONDS}")


def _key(service: str, part: str) -> str:
    return f"pushsvc:breaker:{service}:{part}"

"""Redis and the broker."""

from collections.abc import Iterator
from typing import Any, Final

import redis
from django.conf import settings
from kombu import Connection
from kombu.exceptions import OperationalError

from pushsvc.common.store.redis_client import redis_client
from pushsvc.doctor.finding import Finding, Tone

_OLDEST_REDIS: Final = (6, 2)
_FULL: Final = 0.9
_BROKER_SECONDS: Final = 2
# Redis's, then AMQP's; each transport ignores the other's.
_TIMEOUTS: Final = ("socket_timeout", "socket_connect_timeout", "read_timeout", "write_timeout")


def examine() -> Iterator[Finding]:
    yield from _redis()
    yield from _broker()


def _redis() -> Iterator[Finding]:
    try:
        facts: dict[str, Any] = redis_client().info()
    except redis.RedisError as error:
        remedy = (
            f"{error}. Limits let everything through until it is back. Check REDIS_URL, and that "
            "the server is running."
        )
        yield Finding("redis", Tone.BAD, "Redis cannot be reached", remedy)
        return
    yield _redis_version(str(facts["redis_version"]))
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        remedy = "Redis may drop wakeups and limits. Set maxmemory-policy to noeviction."
        yield Finding("redis", Tone.BAD, f"maxmemory-policy is {policy}", remedy)
    if facts.get("maxmemory") and facts["used_memory"] > _FULL * facts["maxmemory"]:
        remedy = "If it is full, writes fail. Raise maxmemory, or look at who else uses it."
        yield Finding("redis", Tone.WARN, "Redis has used nine tenths of its memory", remedy)


def _redis_version(text: str) -> Finding:
    if tuple(map(int, text.split(".")[:2])) >= _OLDEST_REDIS:
        return Finding("redis", Tone.OK, f"Redis {text}")
    return Finding("redis", Tone.BAD, f"Redis {text} is not supported", "Use Redis 6.2 or newer.")


def _broker() -> Iterator[Finding]:
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS | dict.fromkeys(_TIMEOUTS, _BROKER_SECONDS)
    with Connection(
        settings.CELERY_BROKER_URL, connect_timeout=_BROKER_SECONDS, transport_options=options
    ) as broker:
        name = broker.as_uri()  # without its password
        try:
            broker.ensure_connection(max_retries=0, timeout=_BROKER_SECONDS)
        except OperationalError as error:
            remedy = (
                f"{error}. Sends are stored, and go out when it is back. Check CELERY_BROKER_URL, "
                "and that the server is running."
            )
            yield Finding("broker", Tone.BAD, f"The broker {name} cannot be reached", remedy)
        else:
            yield Finding("broker", Tone.OK, f"The broker {name} answers")

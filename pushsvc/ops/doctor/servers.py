"""Redis and the broker."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import redis
from django.conf import settings
from kombu import Connection
from kombu.exceptions import OperationalError
from redis.exceptions import NoPermissionError

from pushsvc.common.console.figures import grouped
from pushsvc.common.store import metric_reports, presence
from pushsvc.common.store.redis_client import redis_client, try_to_write
from pushsvc.common.worker import QUEUES
from pushsvc.ops.doctor.finding import Finding, Tone

_OLDEST_REDIS: Final = (6, 2)
_FULL: Final = 0.9
# Ticks expire after two minutes, and every other queue has about 16 wakeups at most.
_MANY_MESSAGES: Final = 200
_BROKER_SECONDS: Final = 2
_RIGHTS: Final = (
    "Give the ACL user its rights: ACL SETUSER … ~* &* +@all. Redis's log of refused commands is "
    "ACL LOG."
)
_LONG_KEEPALIVE: Final = 10  # seconds; three probes take as long again
# Redis's, then AMQP's; each transport ignores the other's.
_TIMEOUTS: Final = ("socket_timeout", "socket_connect_timeout", "read_timeout", "write_timeout")


def examine() -> Iterator[Finding]:
    yield from _redis()
    yield from _broker()


def _redis() -> Iterator[Finding]:
    try:
        facts: dict[str, Any] = redis_client().info()
    except NoPermissionError as error:  # many operators refuse INFO; pushsvc goes on without it
        remedy = f"{_sentence(error)}. Version, memory and policy are not examined. {_RIGHTS}"
        yield Finding("redis", Tone.WARN, "Redis refuses INFO to its user", remedy)
        yield from _refusal("redis", redis_client())
        return
    except redis.RedisError as error:
        title, way = _way_to_reach(error, "REDIS_URL", "Redis")
        remedy = f"{_sentence(error)}. Limits let everything through until it is back. {way}"
        yield Finding("redis", Tone.BAD, title, remedy)
        return
    yield _redis_version(str(facts["redis_version"]))
    yield from _refusal("redis", redis_client())
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        remedy = "Redis may drop wakeups and limits. Set maxmemory-policy to noeviction."
        yield Finding("redis", Tone.BAD, f"maxmemory-policy is {policy}", remedy)
    if facts.get("maxmemory") and facts["used_memory"] > _FULL * facts["maxmemory"]:
        remedy = "If it is full, writes fail. Raise maxmemory, or look at who else uses it."
        yield Finding("redis", Tone.WARN, "Redis has used nine tenths of its memory", remedy)
    yield from _lost_workers()


def _lost_workers() -> Iterator[Finding]:
    """Whether pushsvc learns from Redis that a worker was killed or its machine vanished. Yields
    nothing if Redis does not answer, or does not show its setting."""
    with suppress(redis.RedisError):
        if not presence.tells_connections():
            remedy = (
                "What a killed worker holds goes on after two minutes, not within 30 s. Allow "
                "CLIENT SETNAME and CLIENT LIST, and connect to Redis without a proxy."
            )
            yield Finding("redis", Tone.WARN, "Redis does not tell who is connected", remedy)
            return
        hosts = {each.host for each in metric_reports.reporting() if each.kind == "worker"}
        keepalive = redis_client().config_get("tcp-keepalive").get("tcp-keepalive")
        if len(hosts) > 1 and keepalive and not 0 < int(keepalive) <= _LONG_KEEPALIVE:
            remedy = (
                f"Workers run on {len(hosts)} machines or in as many containers. If a machine "
                "vanishes, what it held goes on after up to two minutes, not within 30 s. Set "
                "tcp-keepalive to 5."
            )
            yield Finding("redis", Tone.WARN, f"Redis's tcp-keepalive is {keepalive}", remedy)


def _way_to_reach(error: Exception, setting: str, name: str) -> tuple[str, str]:
    """What is wrong, and what to do about it. Kombu hands on only the text of most errors."""
    said = str(error)
    if isinstance(error, redis.AuthenticationError):
        return f"{name} refuses the password", f"Put user and password of Redis into {setting}."
    if said.startswith("DENIED"):
        return f"{name} serves only its own machine", (
            f"Give Redis a password (requirepass) and put it into {setting}. If only your "
            "processes reach Redis, turn its protected-mode off instead."
        )
    if "no permissions" in said:
        return f"{name} refuses a command to its user", _RIGHTS
    if "max number of clients" in said:
        return f"{name} has no connection left", (
            "Stop what holds them (CLIENT LIST on a connection that is still open), or raise "
            "maxclients, and the limit of open files with it."
        )
    return f"{name} cannot be reached", f"Check {setting}, and that the server is running."


def _sentence(error: Exception) -> str:
    """What the server said. Of Redis's protected mode only the first of twenty lines."""
    text = str(error)
    return (text.partition(". ")[0] if text.startswith("DENIED") else text).rstrip(".")


def _refusal(subject: str, client: redis.Redis) -> Iterator[Finding]:
    try:
        try_to_write(client)
    except redis.RedisError as error:
        remedy = f"{str(error).rstrip('.')}. {_way_to_write(error)}".strip()
        yield Finding(subject, Tone.BAD, "Redis accepts no writes", remedy)


def _way_to_write(error: redis.RedisError) -> str:
    lost = "No wakeup, limit or sign of life is stored."
    match error:
        case redis.exceptions.ReadOnlyError():
            return f"{lost} Name the primary in REDIS_URL or CELERY_BROKER_URL, not a replica."
        case NoPermissionError():
            return f"{lost} {_RIGHTS}"
        case redis.exceptions.OutOfMemoryError():
            return f"{lost} Raise maxmemory, or look at who else uses it."
        case _ if str(error).startswith("MISCONF"):
            return (
                f"{lost} Make room on its disk, or turn saving off (CONFIG SET save ''), because "
                "pushsvc needs none."
            )
    return lost


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
        except (OperationalError, redis.RedisError) as error:
            title, way = _way_to_reach(error, "CELERY_BROKER_URL", f"The broker {name}")
            remedy = f"{_sentence(error)}. Sends are stored, and go out when it is back. {way}"
            yield Finding("broker", Tone.BAD, title, remedy)
        else:
            yield Finding("broker", Tone.OK, f"The broker {name} answers")
            with suppress(
                OperationalError, *_connection_errors(broker)
            ):  # it may have gone away since
                yield from _of_broker(broker)


def _connection_errors(broker: Connection) -> tuple[type[BaseException], ...]:
    errors: tuple[type[BaseException], ...] = broker.connection_errors
    return errors


def _of_broker(broker: Connection) -> Iterator[Finding]:
    channel: Any = broker.default_channel
    is_redis = broker.transport.driver_type == "redis"
    if is_redis and settings.CELERY_BROKER_URL != settings.REDIS_URL:
        yield from _refusal("broker", channel.client)
    for queue in QUEUES:
        number = _length(broker, queue)
        if number > _MANY_MESSAGES:
            remedy = (
                "pushsvc puts a few into it. Either no worker takes them (see below), or another "
                "program puts them there: give each installation a broker, or a database of Redis, "
                "of its own."
            )
            title = f"The queue {queue} holds {grouped(number)} messages"
            yield Finding("broker", Tone.WARN, title, remedy)


def _length(broker: Connection, queue: str) -> int:
    channel: Any = broker.channel()  # RabbitMQ closes a channel that names a missing queue
    missing: tuple[type[BaseException], ...] = broker.channel_errors
    try:
        return int(channel.queue_declare(queue=queue, passive=True).message_count)
    except missing:
        return 0

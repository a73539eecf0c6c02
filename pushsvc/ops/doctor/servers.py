"""Redis and the broker."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import redis
from django.conf import settings
from redis.exceptions import NoPermissionError

from pushsvc.common.findings import Finding, Kind, good
from pushsvc.common.store import metric_reports, presence
from pushsvc.common.store.redis_client import redis_client, try_to_write
from pushsvc.common.worker import QUEUES
from pushsvc.ops.broker import Broker

_OLDEST_REDIS: Final = (6, 2)
_FULL: Final = 0.9
# Ticks expire after two minutes, and every other queue has about 16 wakeups at most.
_MANY_MESSAGES: Final = 200
_LONG_KEEPALIVE: Final = 10  # seconds; three probes take as long again
_RIGHTS: Final = (
    "Give the ACL user its rights: ACL SETUSER … ~* &* +@all. ACL LOG shows refused commands."
)
# By words of the error, because kombu passes only the text of most errors on.
_ADVICE: Final = {
    "username-password": "Put user and password of Redis into {setting}.",
    "Authentication required": "Put user and password of Redis into {setting}.",
    "DENIED": "Give Redis a password (requirepass) and put it into {setting}. If only your "
    "processes reach Redis, turn its protected-mode off instead.",
    "no permissions": _RIGHTS,
    "max number of clients": "Stop what holds connections (CLIENT LIST on a connection that is "
    "still open), or raise maxclients, and the limit of open files with it.",
    "read only replica": "Name the primary in {setting}, not a replica.",
    "used memory": "Raise maxmemory, or find out who else uses it.",
    "good replicas": "Start its replicas, or set min-replicas-to-write to 0, because pushsvc needs "
    "none.",
    "busy running a script": "End the script (SCRIPT KILL), and find out which program runs it.",
    "WRONGTYPE": "Another program uses this key: give each its own database of Redis ({setting}).",
    "Timeout reading": "It responds too late, or not at all: look for a stopped process, slow "
    "commands (SLOWLOG GET) and a slow network.",
    "MISCONF": "Free space on its disk, or turn saving off (CONFIG SET save ''), because pushsvc "
    "needs none.",
}


def examine() -> Iterator[Finding]:
    yield from _redis()
    yield from _broker()


def _redis() -> Iterator[Finding]:
    try:
        try_to_write(redis_client())
        yield from _server()
    except redis.RedisError as error:
        yield Kind.REDIS_UNAVAILABLE.found(reason=_reason(error, "REDIS_URL"))
    else:
        with suppress(redis.RedisError):  # a user may not read a setting
            yield from _lost_workers()


def _reason(error: BaseException, setting: str) -> str:
    """The error, and what to do about it. Of Redis's protected mode only the first of twenty
    lines."""
    text = str(error)
    advice = next(
        (advice for words, advice in _ADVICE.items() if words in text),
        "Check {setting}, and that the server is running.",
    )
    said = text.partition(". ")[0] if text.startswith("DENIED") else text
    return f"{said.rstrip('.')}. {advice.format(setting=setting)}"


def _server() -> Iterator[Finding]:
    try:
        facts = redis_client().info()
    except NoPermissionError as error:  # many operators refuse INFO; pushsvc continues without it
        what = "Version, memory and policy of Redis"
        yield Kind.UNEXAMINED.found(what=what, error=f"{error}. {_RIGHTS}")
        return
    version = str(facts["redis_version"])
    if tuple(map(int, version.split(".")[:2])) >= _OLDEST_REDIS:
        yield good("redis", f"Redis {version}")
    else:
        yield Kind.REDIS_VERSION.found(version=version)
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        yield Kind.REDIS_EVICTION.found(policy=policy)
    if facts.get("maxmemory") and facts["used_memory"] > _FULL * facts["maxmemory"]:
        yield Kind.REDIS_MEMORY.found()


def _lost_workers() -> Iterator[Finding]:
    """Whether pushsvc learns from Redis that a worker was killed or its machine vanished."""
    if not presence.tells_connections():
        advice = "Allow CLIENT SETNAME and CLIENT LIST, and connect to Redis without a proxy."
        yield Kind.REDIS_PRESENCE.found(advice=advice)
        return
    hosts = {each.host for each in metric_reports.reporting() if each.kind == "worker"}
    keepalive = redis_client().config_get("tcp-keepalive").get("tcp-keepalive")
    if len(hosts) > 1 and keepalive and not 0 < int(keepalive) <= _LONG_KEEPALIVE:
        advice = (
            f"Workers run on {len(hosts)} machines or in as many containers, and one may vanish. "
            f"tcp-keepalive is {keepalive}: set it to 5."
        )
        yield Kind.REDIS_PRESENCE.found(advice=advice)


def _broker() -> Iterator[Finding]:
    broker = Broker(settings.CELERY_BROKER_URL)
    if error := broker.error():
        reason = _reason(error, "CELERY_BROKER_URL")
        yield Kind.BROKER_UNAVAILABLE.found(name=broker.name, reason=reason)
        return
    yield good("broker", f"The broker {broker.name} responds")
    for queue in QUEUES:
        try:
            number = broker.length(queue)
        except redis.ResponseError as error:
            reason = _reason(error, "CELERY_BROKER_URL")
            yield Kind.BROKER_UNAVAILABLE.found(name=broker.name, reason=reason)
        except broker.errors:  # it has gone away since
            return
        else:
            if number > _MANY_MESSAGES:
                yield Kind.QUEUE_LONG.found(queue=queue, number=number)

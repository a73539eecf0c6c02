"""What a worker process knows of itself: that it is about to stop, and how many there are.

A prefork worker's parent hears SIGTERM; its children, who do the work, do not. The flag is a byte
of memory that they share, made before the fork.
"""

import logging
import mmap
import time
from typing import Any

import redis
from celery import bootsteps
from celery.signals import worker_shutting_down
from typing_extensions import override

from pushsvc.common.redis_client import redis_client

logger = logging.getLogger(__name__)

_STOPPING = mmap.mmap(-1, 1)
_ANNOUNCE_SECONDS = 5.0
_ALIVE_SECONDS = 15.0


def is_stopping() -> bool:
    """True once this worker was told to stop: begin nothing new."""
    return _STOPPING[0] != 0


@worker_shutting_down.connect(weak=False)
def _remember_stopping(**_: Any) -> None:
    _STOPPING[0] = 1


class Announce(bootsteps.StartStopStep):
    """Says in Redis, every five seconds, which queues this node serves with how many processes."""

    requires = ("celery.worker.components:Timer",)

    @override
    def start(self, parent: Any) -> None:
        self._announce(parent)
        parent.timer.call_repeatedly(_ANNOUNCE_SECONDS, self._announce, (parent,))

    def _announce(self, worker: Any) -> None:
        try:
            for queue in worker.app.amqp.queues.consume_from:
                value = f"{time.time()}:{worker.concurrency}"
                redis_client().hset(f"pushsvc:workers:{queue}", worker.hostname, value)
        except redis.RedisError:
            logger.debug("worker.unannounced")


def live_processes(queue: str) -> int:
    """How many worker processes served the queue in the last 15 s; 0 if Redis cannot tell."""
    try:
        nodes = redis_client().hgetall(f"pushsvc:workers:{queue}")
    except redis.RedisError:
        return 0
    oldest = time.time() - _ALIVE_SECONDS
    alive = (str(value).split(":") for value in nodes.values())
    return sum(int(processes) for at, processes in alive if float(at) >= oldest)

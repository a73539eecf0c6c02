"""Whether the broker accepts messages, for /readyz and the doctor."""

from contextlib import suppress
from typing import Any, Final

from kombu import Connection, Queue
from kombu.exceptions import OperationalError
from redis.exceptions import NoPermissionError, ResponseError

from pushsvc import celery_settings
from pushsvc.common.store.redis_client import try_to_write

_SECONDS: Final = 1.0
# Redis's names, then AMQP's. Each transport ignores the other's.
_TIMEOUTS: Final = ("socket_timeout", "socket_connect_timeout", "read_timeout", "write_timeout")


class Broker:
    """Examines the broker over one kept connection. Use it from one thread at a time.

    It does not use the connection that sends tasks, which waits and retries for too long."""

    def __init__(self, url: str) -> None:
        timeouts = dict.fromkeys(_TIMEOUTS, _SECONDS)
        options = celery_settings.broker_transport_options | timeouts
        self._connection = Connection(url, connect_timeout=_SECONDS, transport_options=options)
        self._queue: Queue | None = None
        self.name: str = self._connection.as_uri()  # without its password

    @property
    def errors(self) -> tuple[type[BaseException], ...]:
        of_transport = (*self._connection.connection_errors, *self._connection.channel_errors)
        return (OperationalError, *of_transport)

    def error(self) -> BaseException | None:
        """Why the broker accepts nothing; None if it does. Connects again, once, if the kept
        connection is closed."""
        was_kept = self._queue is not None
        error = self._tried()
        return self._tried() if error and was_kept else error

    def _tried(self) -> BaseException | None:
        """Declares a queue as senders do, because every broker responds to this."""
        try:
            if self._queue is None:
                self._connection.ensure_connection(max_retries=0)
                self._queue = celery_settings.task_queues[0](self._connection.channel())
            self._queue.queue_declare()
            self._try_to_write(self._queue.channel)
        except self.errors as error:
            self._queue = None
            self._connection.release()
            return error
        return None

    def _try_to_write(self, channel: Any) -> None:
        """Raises a channel error if Redis refuses writes: a replica, a full one, or one that cannot
        save responds, but refuses all tasks. A user may have rights on the queues' keys only."""
        if self._connection.transport.driver_type == "redis":
            with suppress(NoPermissionError):
                try_to_write(channel.client)

    def length(self, queue: str) -> int:
        """0 without such a queue. Raises ResponseError if Redis has something else there."""
        channel: Any = self._connection.channel()  # RabbitMQ closes it if there is no such queue
        try:
            return int(channel.queue_declare(queue=queue, passive=True).message_count)
        except ResponseError:
            raise
        except self._connection.channel_errors:
            return 0

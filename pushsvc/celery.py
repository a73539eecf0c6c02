"""The Celery application.

The database is the queue of record. A message is a wakeup: it only says that there may be work. So
messages may be lost, delivered twice or late, results are ignored, and unread messages expire.
"""

import os
import signal
from typing import Any, Self

import kombu
import structlog
from celery import Celery, Task
from celery.app.amqp import AMQP
from celery.signals import beat_init, import_modules, setup_logging, task_prerun
from django.db import close_old_connections
from kombu.transport import redis, virtual
from kombu.transport.redis import QoS
from typing_extensions import override

from pushsvc.common import correlation
from pushsvc.common.worker import Announce

logger = structlog.stdlib.get_logger(__name__)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")


class _Connection(kombu.Connection):
    @override
    def ensure_connection(self, *args: Any, **kwargs: Any) -> Self:
        """Tries every two seconds."""
        return super().ensure_connection(*args, **{"interval_max": 2, **kwargs})


class _Amqp(AMQP):
    Connection = _Connection


app = Celery("pushsvc", amqp=_Amqp)
app.set_default()  # in every thread of the web server too
app.config_from_object("pushsvc.celery_settings")
app.autodiscover_tasks(["notifications_app"])
app.steps["worker"].add(Announce)


class _Wakeups(QoS):
    """Counts the messages that a worker holds, but does not store them in Redis until they are
    done, which takes two round trips for each message. A lost message costs a second at most."""

    restore_at_shutdown = False  # a stopping worker puts none back, which would need a connection

    @override
    def append(self, message: Any, delivery_tag: str) -> None:
        virtual.QoS.append(self, message, delivery_tag)

    @override
    def ack(self, delivery_tag: str) -> None:
        virtual.QoS.ack(self, delivery_tag)

    @override
    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        virtual.QoS.ack(self, delivery_tag)

    @override
    def restore_visible(self, *_: Any, **__: Any) -> None:
        pass


class _Channel(redis.Channel):
    QoS = _Wakeups

    def _brpop_read(self, **options: Any) -> Any:
        """Discards a message that cannot be read, such as another program's. Otherwise it would end
        the worker."""
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # not in kombu's stubs
        except (ValueError, TypeError, RecursionError) as error:
            logger.error("wakeup.unreadable", error=type(error).__name__)
            return True


redis.Transport.Channel = _Channel


# Tasks share their process's connection to the database (CELERY_DB_REUSE_MAX). A broken connection
# is replaced before a task, as Django does before a request.
task_prerun.connect(close_old_connections, weak=False)


@task_prerun.connect(weak=False)
def _begin_turn(task: Task[Any, Any], **_: Any) -> None:
    correlation.begin_turn(task.request.headers or {})


@beat_init.connect(weak=False)
def _end_between_ticks(sender: Any, **_: Any) -> None:
    """Lets beat end between two ticks on SIGTERM. Celery's own handler uses the database at once:
    if the signal interrupts a query, the handler waits forever for the connection's lock, which the
    query holds."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sender.stop())


@setup_logging.connect(weak=False)
def _log_as_django_does(**_: Any) -> None:
    """Configures logging as Django does. Without this receiver, Celery raises the level of the root
    logger, which hides events of level info."""


@import_modules.connect(weak=False)
def _refuse_bad_settings(**_: Any) -> None:
    """Checks the settings when a worker or beat starts, before it connects to anything."""
    # Imported here, because settings must not be read when this module is imported.
    from channels_app.checks import require_working_settings

    require_working_settings()

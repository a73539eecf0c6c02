"""The Celery application.

The database is the queue of record. A message is a wakeup: it only says that there may be work. So
messages may be lost, delivered twice or late, results are ignored, and unread messages expire.
"""

import os
from functools import cached_property
from typing import Any, Self

import kombu
from celery import Celery, Task
from celery.app.amqp import AMQP
from celery.signals import import_modules, setup_logging, task_prerun
from django.db import close_old_connections
from kombu.transport.redis import QoS
from typing_extensions import override

from pushsvc.common import correlation
from pushsvc.common.worker import Announce

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")


class _Connection(kombu.Connection):
    @override
    def ensure_connection(self, *args: Any, **kwargs: Any) -> Self:
        """Tries every two seconds. kombu waits two seconds longer each time, up to 30, so workers
        would notice late that a broker is back. Celery has no setting for this."""
        return super().ensure_connection(*args, **{"interval_max": 2, **kwargs})


class _Amqp(AMQP):
    Connection = _Connection


class _Celery(Celery):
    amqp_cls = f"{__name__}:{_Amqp.__name__}"

    @override
    @cached_property
    def Beat(self) -> Any:
        """The class of beat, by its name, because only the beat process loads it."""
        return self.subclass_with_self("pushsvc.common.beat:Beat")  # type: ignore[arg-type]


app = _Celery("pushsvc")
app.set_default()  # in every thread of the web server too
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["notifications_app"])
app.steps["worker"].add(Announce)


def _put_no_messages_back() -> None:
    """Keeps a stopping worker from putting back its messages. This needs a connection, and a worker
    that has just lost its connection to Redis would fail. The messages are wakeups, and the next
    tick sends them again. kombu has no setting for this."""
    QoS.restore_at_shutdown = False


_put_no_messages_back()


# Tasks share their process's connection to the database (CELERY_DB_REUSE_MAX). A broken connection
# is replaced before a task, as Django does before a request.
task_prerun.connect(close_old_connections, weak=False)


@task_prerun.connect(weak=False)
def _begin_turn(task: Task[Any, Any], **_: Any) -> None:
    correlation.begin_turn(task.request.headers or {})


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

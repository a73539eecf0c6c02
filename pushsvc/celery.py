"""The Celery application.

The database is the queue of record. A message is a wakeup: it only says that there may be work. So
messages may be lost, doubled or late, results are ignored, and messages that nobody takes expire.
"""

import os
from typing import Any

from celery import Celery
from celery.signals import import_modules, setup_logging
from kombu.transport.redis import QoS

from pushsvc.common.worker import Announce

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")

app = Celery("pushsvc")
app.set_default()  # in every thread of the web server too
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["notifications_app"])
app.steps["worker"].add(Announce)


def _put_no_messages_back() -> None:
    """A worker that stops does not put back the messages that it holds. That needs a connection,
    and a worker that has just lost its connection to Redis would fail over it. The messages are
    wakeups, and the next tick sends them again. kombu has no setting for this."""
    QoS.restore_at_shutdown = False


_put_no_messages_back()


@setup_logging.connect(weak=False)
def _log_as_django_does(**_: Any) -> None:
    """Without a receiver Celery raises the level of the root logger, which hides events of level
    info."""


@import_modules.connect(weak=False)
def _refuse_bad_settings(**_: Any) -> None:
    """Runs when a worker or beat starts, before it connects to anything."""
    # Imported here, because settings must not be read when this module is imported.
    from channels_app.checks import require_working_settings

    require_working_settings()

"""The Celery application: queues, the beat schedule, how a worker stops.

The database is the queue of record; a message only says that there may be work. So a message that
is lost, doubled or late is harmless, results are ignored, and messages that nobody took expire.
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
# Putting back the messages that it holds takes a connection: a worker that has just lost its own to
# Redis would end over that (kombu 5.7). They are doorbells, which the tick rings again.
QoS.restore_at_shutdown = False


@setup_logging.connect(weak=False)
def _log_as_django_does(**_: Any) -> None:
    """Without a receiver Celery raises the root logger's level, and what went well goes unsaid."""


@import_modules.connect(weak=False)
def _refuse_bad_settings(**_: Any) -> None:
    """When a worker or beat starts, before it connects to anything."""
    # Not above: settings must not be read when this module is imported.
    from channels_app.checks import require_working_settings

    require_working_settings()

"""The beat process, which ends between two ticks when it is told to.

Celery's own handler of SIGTERM uses the database wherever the process is. In the middle of a query
it waits for ever, for the lock of the connection that this query holds.
"""

import signal
from typing import Any

from celery.apps import beat
from typing_extensions import override


class Beat(beat.Beat):
    @override
    def install_sync_handler(self, service: Any) -> None:
        def stop(*_: Any) -> None:
            service.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)

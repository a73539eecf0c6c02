"""The beat process, which ends between two ticks when it gets SIGTERM.

Celery's own handler of SIGTERM uses the database at once. If the signal interrupts a query, the
handler waits for ever for the connection's lock, which the query holds.
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

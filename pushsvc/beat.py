"""The scheduler of beat, which goes on when the system's clock is set back."""

from typing import Any

from django_celery_beat.schedulers import DatabaseScheduler
from typing_extensions import override


class Scheduler(DatabaseScheduler):  # type: ignore[misc]
    @override
    def tick(self, *arguments: Any, **named: Any) -> Any:
        """Runs due tasks. A task whose last run is in the future is due one period from now.
        Otherwise there would be no ticks until the clock reaches that time again."""
        now, entries = self.app.now(), self._schedule.values()
        if any(each.model.last_run_at > now for each in entries):
            for each in entries:
                each.last_run_at = each.model.last_run_at = min(each.model.last_run_at, now)
            self._heap = None  # it has the times of the next runs
        return super().tick(*arguments, **named)

"""Beat's schedule, to be seen: each start of beat writes it anew from the settings."""

from django.contrib import admin
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)

from channels_app.console.lists import SuperuserAdmin
from pushsvc.common.console.admin import site
from pushsvc.common.console.figures import moment

for model in (ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    site.unregister(model)  # their package's pages have another look, and run tasks


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(SuperuserAdmin):
    empty_help = "beat writes them whenever it starts."
    list_display = ("name", "task", "interval", "enabled", "last_run", "total_run_count")
    list_select_related = ("interval",)
    search_fields = ("name", "task")
    ordering = ("name",)
    fields = ("name", "task", "interval", "queue", "enabled", "last_run", "total_run_count")
    readonly_fields = ("last_run",)

    @admin.display(description="Last run", ordering="last_run_at")
    def last_run(self, task: PeriodicTask) -> str:
        return moment(task.last_run_at, "seconds")

"""Shows beat's schedule. It cannot be edited here: beat writes it from the settings at its
start."""

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
from pushsvc.common.texts import later

for model in (ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    site.unregister(model)  # the package's pages look different and can run tasks


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(SuperuserAdmin):
    empty_help = later("beat writes them when it starts.")
    list_display = ("name", "task", "interval", "enabled", "last_run", "total_run_count")
    list_select_related = ("interval",)
    search_fields = ("name", "task")
    ordering = ("name",)
    fields = ("name", "task", "interval", "queue", "enabled", "last_run", "total_run_count")
    readonly_fields = ("last_run",)

    @admin.display(description=later("Last run"), ordering="last_run_at")
    def last_run(self, task: PeriodicTask) -> str:
        return moment(task.last_run_at, "seconds")

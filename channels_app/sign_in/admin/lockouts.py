"""User names and addresses that failed to sign in. Superusers can clear a lock-out early."""

from typing import Any

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import BooleanField, Case, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.lists import SuperuserAdmin
from channels_app.sign_in.middleware import lockout_clear
from pushsvc.common.console.admin import badge
from pushsvc.common.console.figures import moment
from pushsvc.common.texts import later


@admin.register(AccessAttempt)
class LockOutAdmin(SuperuserAdmin):
    list_name = later("lock-outs")
    empty_help = later("Nobody failed to sign in recently.")
    list_display = ("username", "address", "failures_since_start", "last_try", "state")
    list_display_links = None
    search_fields = ("username", "=ip_address")
    ordering = ("-attempt_time",)
    actions = ("clear",)
    fields = readonly_fields = (
        "username",
        "address",
        "failures_since_start",
        "last_try",
        "state",
    )

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        since = Now() - settings.AXES_COOLOFF_TIME
        locked = Q(failures_since_start__gte=settings.AXES_FAILURE_LIMIT, attempt_time__gt=since)
        is_locked = Case(
            When(locked, then=Value(True)), default=Value(False), output_field=BooleanField()
        )
        rows: QuerySet[Any] = super().get_queryset(request).annotate(is_locked=is_locked)
        return rows.defer("get_data", "post_data")

    @admin.display(description=later("From"), ordering="ip_address")
    def address(self, attempt: AccessAttempt) -> str:
        """An IPv6 address stands for its /64 network (pushsvc/common/http/client_address.py)."""
        network = "/64" if ":" in (attempt.ip_address or "") else ""
        return f"{attempt.ip_address or 'unknown'}{network}"

    @admin.display(description=later("Last try"), ordering="attempt_time")
    def last_try(self, attempt: AccessAttempt) -> str:
        return moment(attempt.attempt_time, "seconds")

    @admin.display(description=later("State"))
    def state(self, attempt: Any) -> str:
        return (
            badge(gettext("locked out"), "bad")
            if attempt.is_locked
            else badge(gettext("may try again"), "good")
        )

    @admin.action(description=later("Clear the lock-out"))
    def clear(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        attempts = list(queryset[:500])
        for attempt in attempts:
            lockout_clear(attempt=attempt)
        messages.success(request, gettext("%(count)s cleared.") % {"count": len(attempts)})

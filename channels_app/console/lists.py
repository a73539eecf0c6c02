"""What the console's lists share. No list shows rows of another account."""

from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import QuerySet, Sum, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.access import channels_of, is_superuser, may, may_anywhere
from channels_app.console.pages import WithPages
from channels_app.models import Channel, Role
from pushsvc.common.console.admin import DropdownFilter, ReadOnlyAdmin
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.ids import parse_uuid
from pushsvc.common.periods import PERIOD_NAMES, parse_days, period
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.texts import later


class ScopedAdmin(WithPages, ReadOnlyAdmin):
    """Channels, or rows that belong to a channel, limited to the channels that the user may see.

    `add_role`: the required role. None: no rows can be added here, not even by superusers.
    `compose_role`: the role that adds rows on a separate page, without the admin's button.
    """

    view_role: ClassVar[Role] = Role.VIEWER
    add_role: ClassVar[Role | None] = None
    compose_role: ClassVar[Role | None] = None

    @override
    def missing_role(self, request: HttpRequest) -> str:
        role = self.compose_role or self.add_role
        return role.value if role and not may_anywhere(request.user, role) else ""

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        path = "pk" if self.model is Channel else "channel"
        return rows.filter(**{f"{path}__in": channels_of(request.user, self.view_role)})

    @override
    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_anywhere(request.user, self.view_role)

    @override
    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if obj is None:
            return may_anywhere(request.user, self.view_role)
        channel = obj if isinstance(obj, Channel) else obj.channel
        return may(request.user, channel.account_id, self.view_role)

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.add_role is not None and may_anywhere(request.user, self.add_role)


class ChannelFilter(DropdownFilter):
    """Offers the channels that the user may see. For models that have a `channel`."""

    title = later("channel")
    parameter_name = "channel__id__exact"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        channels = channels_of(request.user).order_by("name", "pk")
        return [(str(pk), name) for pk, name in channels.values_list("pk", "name")[:500]]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        try:
            return queryset.filter(channel_id=parse_uuid(self.value() or ""))
        except ValueError:
            return queryset.none()


class OneChannelAdmin(ScopedAdmin):
    """A list that always shows one channel: by default the user's with most subscribers."""

    list_always_of = ChannelFilter.parameter_name

    @override
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        is_chosen = self.list_always_of in request.GET
        first = None if is_chosen else _largest_channel(request)
        if first is None:
            own = {"channel": self.chosen_channel(request)}
            return super().changelist_view(request, {**(extra_context or {}), **own})
        query = request.GET.copy()
        query[self.list_always_of] = str(first.pk)
        return HttpResponseRedirect(f"?{query.urlencode()}")

    def chosen_channel(self, request: HttpRequest) -> Channel | None:
        try:
            chosen = parse_uuid(request.GET.get(self.list_always_of, ""))
        except ValueError:
            return None
        return channels_of(request.user).filter(pk=chosen).first()


def _largest_channel(request: HttpRequest) -> Channel | None:
    held = sum((Coalesce(Sum(f"counters__{name}_subscribers"), 0) for name in Platform), Value(0))
    return channels_of(request.user).annotate(held=held).order_by("-held", "name", "pk").first()


class WithinFilter(DropdownFilter):
    """Offers the same periods as the dashboard: the last 24 hours, 7, 30 or 90 days."""

    title = later("time")
    parameter_name = "within"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            (str(days), gettext("Last %(name)s") % {"name": name})
            for days, name in PERIOD_NAMES.items()
        ]

    @classmethod
    def since(cls, request: HttpRequest) -> datetime | None:
        """The start of the chosen period, the same for the whole page. None without a period."""
        days = parse_days(request.GET.get(cls.parameter_name, ""))
        if not days:
            return None
        kept: dict[int, datetime] = vars(request).setdefault("_since", {})
        if days not in kept:
            kept[days] = period(sql.now(), days, reader_zone(request)).starts[0]
        return kept[days]


class SuperuserAdmin(WithPages, ReadOnlyAdmin):
    """Rows that concern the installation as a whole."""

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Empty for other users, because the admin reads the row before it checks permission."""
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows if is_superuser(request.user) else rows.none()

    @override
    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request.user)

    @override
    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return is_superuser(request.user)


def list_url(model: str, channel_id: UUID | None = None, **filters: object) -> str:
    """The address of a model's list, such as `notifications_app_notification`, with filters."""
    of_channel = {ChannelFilter.parameter_name: channel_id} if channel_id else {}
    return f"{reverse(f'admin:{model}_changelist')}?{urlencode(of_channel | filters)}"

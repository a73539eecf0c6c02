"""What the console's lists and pages share: nobody sees or changes another account's channels."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import ForeignKey, Model, QuerySet
from django.forms import ModelChoiceField
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.views.generic import TemplateView
from typing_extensions import override

from channels_app.accounts.access import channels_of, is_superuser, may, may_anywhere
from channels_app.models import Channel, Role
from pushsvc.common.console.admin import DropdownFilter, ModelAdmin, ReadOnlyAdmin, site
from pushsvc.common.ids import parse_number, parse_uuid
from pushsvc.common.store import sql
from pushsvc.common.windows import WINDOW_NAMES, parse_days, window

Row = TypeVar("Row", bound=Model)
Act = TypeVar("Act")


class WithPages:
    """For a model's admin that has pages of its own."""

    def page(self, route: str, view: type["ConsolePage"], name: str) -> URLPattern:
        """A page of the console beside the model's; `admin:{name}` is its address."""
        return path(route, site.admin_view(view.as_view(model_admin=self)), name=name)

    def show(self, view: type["ConsolePage"], request: HttpRequest, **ids: str) -> HttpResponse:
        """The page in place of the admin's own form. Http404 for what is no id."""
        parsed = {name: id_or_404(text) for name, text in ids.items()}
        return view.as_view(model_admin=self)(request, **parsed)


class ScopedAdmin(WithPages, ModelAdmin):
    """A list and pages of rows that belong to a channel, limited to the channels of the user.

    `channel_path`: how a query leads from the model to its channel ("" for Channel itself).
    `*_role`: the role that may; None: nobody here, superusers included.
    """

    channel_path: ClassVar[str] = "channel"
    view_role: ClassVar[Role] = Role.VIEWER
    add_role: ClassVar[Role | None] = None
    change_role: ClassVar[Role | None] = None
    delete_role: ClassVar[Role | None] = None
    actions = None

    def channel_of(self, obj: Any) -> Channel:
        """The channel that the row belongs to."""
        found: Any = obj
        for name in filter(None, self.channel_path.split("__")):
            found = getattr(found, name)
        channel: Channel = found
        return channel

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        return rows.filter(**{f"{self.channel_path or 'pk'}__in": channels_of(request.user)})

    def _has(self, request: HttpRequest, role: Role | None, obj: Any) -> bool:
        if role is None:
            return False
        if obj is None:
            return may_anywhere(request.user, role)
        return may(request.user, self.channel_of(obj).account_id, role)

    @override
    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_anywhere(request.user, self.view_role)

    @override
    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has(request, self.view_role, obj)

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._has(request, self.add_role, None)

    @override
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has(request, self.change_role, obj)

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has(request, self.delete_role, obj)

    @override
    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> "ModelChoiceField[Any] | None":
        if db_field.related_model is Channel:
            kwargs["queryset"] = channels_of(request.user, self.change_role or self.view_role)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


class ChannelFilter(DropdownFilter):
    """One of the user's own channels; for models that have a `channel`."""

    title = "channel"
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


class WithinFilter(DropdownFilter):
    """The last 24 hours, 7, 30 or 90 days, as the dashboard's figures have them."""

    title = "time"
    parameter_name = "within"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(days), f"Last {name}") for days, name in WINDOW_NAMES.items()]

    @classmethod
    def since(cls, request: HttpRequest) -> datetime | None:
        """When the chosen time begins, the same for all of a page; None where none is chosen."""
        days = parse_days(request.GET.get(cls.parameter_name, ""))
        if not days:
            return None
        kept: dict[int, datetime] = vars(request).setdefault("_since", {})
        if days not in kept:
            kept[days] = window(sql.now(), days).starts[0]
        return kept[days]


class SuperuserAdmin(WithPages, ReadOnlyAdmin):
    """What concerns the installation as a whole."""

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Nothing for others: the admin's own pages look for the row before they refuse."""
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows if is_superuser(request.user) else rows.none()

    @override
    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request.user)

    @override
    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return is_superuser(request.user)


class ConsolePage(TemplateView):
    """A page that only those with `role` in some account may open."""

    title: ClassVar[str]
    role: ClassVar[Role] = Role.VIEWER
    model_admin: Any = None

    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.check_access(request, **kwargs)
        return super().dispatch(request, *args, **kwargs)

    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        """Raises PermissionDenied, or Http404 where even that would tell something."""
        require(may_anywhere(request.user, self.role), self.role)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = site.each_context(self.request) | {"title": self.title, "has_heading": True}
        if self.model_admin is not None:
            context["opts"] = self.model_admin.model._meta
            context["list_name"] = self.model_admin.list_name
        return context | super().get_context_data(**kwargs)


class SuperuserPage(ConsolePage):
    """A page about the installation as a whole."""

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        if not is_superuser(request.user):
            raise PermissionDenied("Only superusers may open this page.")


class ChannelPage(ConsolePage):
    """A page about a channel or something of a channel's, which it finds as `self.channel`.

    404 for a channel that the user may not see: whether there is such a one is not told. Who has
    `role` may look; a POST takes `post_role` where that is more.
    """

    post_role: ClassVar[Role | None] = None
    channel: Channel

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        self.channel = self.find_channel(request, **kwargs)
        role = (self.post_role if request.method == "POST" else None) or self.role
        require(self.may(role), role)

    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        """By the names of its address. Raises Http404."""
        return channel_or_404(request, kwargs["channel_id"])

    def may(self, role: Role) -> bool:
        """Whether the user may do on this channel what `role` may."""
        return may(self.request.user, self.channel.account_id, role)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(channel=self.channel, **kwargs)


def channel_or_404(request: HttpRequest, channel_id: UUID) -> Channel:
    """The channel, if the user may see it."""
    seen = channels_of(request.user).select_related("account")
    return get_object_or_404(seen, pk=channel_id)


def own_or_404(model: type[Row], request: HttpRequest, pk: UUID) -> Row:
    """The row of a model that has a `channel`, if the user may see that channel."""
    seen = model._default_manager.filter(channel__in=channels_of(request.user))
    return get_object_or_404(seen.select_related("channel"), pk=pk)


def id_or_404(text: str) -> UUID:
    try:
        return parse_uuid(text)
    except ValueError as error:
        raise Http404 from error


def number_or_404(text: str) -> int:
    """A key of the packages' tables."""
    try:
        return parse_number(text)
    except ValueError as error:
        raise Http404 from error


def list_url(model: str, channel_id: UUID | None = None, **filters: object) -> str:
    """The list of a model such as `notifications_app_notification`, with these filters chosen."""
    of_channel = {ChannelFilter.parameter_name: channel_id} if channel_id else {}
    return f"{reverse(f'admin:{model}_changelist')}?{urlencode(of_channel | filters)}"


def chosen_act(request: HttpRequest, acts: Mapping[str, Act]) -> Act:
    """Of what a page's forms can do the one that `do` names. Raises BadRequest."""
    act = acts.get(request.POST.get("do", ""))
    if act is None:
        raise BadRequest("The form does not say what to do.")
    return act


def require(is_allowed: bool, role: Role) -> None:
    """Raises PermissionDenied, saying which role it takes."""
    if not is_allowed:
        raise PermissionDenied(f"This takes the role “{role.value}” in the channel's account.")


def shows_accounts(request: HttpRequest) -> bool:
    """For the side bar, as the following: whether the link leads anywhere."""
    return may_anywhere(request.user, Role.OWNER)


def shows_channels(request: HttpRequest) -> bool:
    return may_anywhere(request.user, Role.VIEWER)


def shows_installation(request: HttpRequest) -> bool:
    return is_superuser(request.user)

"""Accounts, and who belongs to them with which role."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import BadRequest
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from typing_extensions import override

from channels_app.accounts.access import accounts_of, is_superuser, may
from channels_app.accounts.members import (
    account_create,
    account_rename,
    check_may_link,
    member_add,
    member_remove,
    member_role_set,
    set_password_path,
)
from channels_app.console.lists import (
    ConsolePage,
    SuperuserPage,
    WithPages,
    chosen_act,
    number_or_404,
    require,
)
from channels_app.models import Account, Membership, Role
from pushsvc.common.console.admin import ReadOnlyAdmin
from pushsvc.common.console.figures import moment
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.errors import Invalid
from pushsvc.common.http.origin import own_origin


class AccountForm(ConsoleForm):
    name = forms.CharField(max_length=200)


class MemberForm(ConsoleForm):
    username = forms.CharField(
        max_length=150,
        label="User name",
        help_text="Somebody new gets a link to choose a password, which you pass on.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(choices=Role.choices)


@admin.register(Account)
class AccountAdmin(WithPages, ReadOnlyAdmin):
    """The list; an account's page is its members'."""

    list_display = ("name", "member_count", "channel_count", "made")
    search_fields = ("name",)
    search_help_text = "A part of the name."
    ordering = ("name", "id")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        counts = {
            "member_count": Count("memberships", distinct=True),
            "channel_count": Count("channels", distinct=True),
        }
        own = accounts_of(request.user, Role.OWNER)
        return own.annotate(**counts).order_by(*self.ordering)

    @admin.display(description="Members", ordering="member_count")
    def member_count(self, account: Any) -> int:
        return int(account.member_count)

    @admin.display(description="Channels", ordering="channel_count")
    def channel_count(self, account: Any) -> int:
        return int(account.channel_count)

    @admin.display(description="Made", ordering="created_at")
    def made(self, account: Account) -> str:
        return moment(account.created_at)

    @override
    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    @override
    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if obj is None:
            return accounts_of(request.user, Role.OWNER).exists()
        return may(request.user, obj.pk, Role.OWNER)

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request.user)

    @override
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        return self.show(NewAccountPage, request)

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        return self.show(MembersPage, request, account_id=object_id)


class NewAccountPage(SuperuserPage):
    title = "New account"
    template_name = "console/accounts/new.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = AccountForm(request.POST)
        if form.is_valid():
            with form.showing_faults():
                account = account_create(name=form.cleaned_data["name"])
                messages.success(request, f"The account “{account}” was made. Add its owner next.")
                return _to_members(account)
        return self.render_to_response(self.get_context_data(form=form), status=400)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", AccountForm())
        return super().get_context_data(**kwargs)


class MembersPage(ConsolePage):
    """Owners and superusers; every change is a POST whose `do` names it."""

    title = "Members"
    template_name = "console/accounts/members.html"
    role = Role.OWNER
    account: Account

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        self.account = get_object_or_404(accounts_of(request.user), pk=kwargs["account_id"])
        require(may(request.user, self.account.pk, self.role), self.role)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        acts = {
            "add": self._add,
            "role": self._set_role,
            "remove": self._remove,
            "link": self._link,
            "rename": self._rename,
        }
        act = chosen_act(request, acts)
        try:
            return act(request.POST)
        except Invalid as error:
            messages.error(request, " ".join(fault.detail for fault in error.faults))
            return _to_members(self.account)

    def _add(self, data: QueryDict) -> HttpResponseBase:
        form = MemberForm(data)
        if form.is_valid():
            with form.showing_faults():
                name, role = form.cleaned_data["username"], Role(form.cleaned_data["role"])
                membership, is_new = member_add(
                    account=self.account,
                    username=name,
                    role=role,
                    by=self.request.user,  # type: ignore[arg-type] # staff
                )
                if is_new:
                    return self._with_link(membership)
                return self._back(f"{name} now belongs to the account.")
        return self.render_to_response(self.get_context_data(form=form), status=400)

    def _set_role(self, data: QueryDict) -> HttpResponseBase:
        membership = self._membership(data)
        role = next((role for role in Role if role.value == data.get("role")), None)
        if role is None:
            raise BadRequest("There is no such role.")
        member_role_set(membership=membership, role=role)
        return self._back(f"{membership.user} is {role.value} now.")

    def _remove(self, data: QueryDict) -> HttpResponseBase:
        membership = self._membership(data)
        member_remove(membership=membership)
        return self._back(f"{membership.user} no longer belongs to the account.")

    def _link(self, data: QueryDict) -> HttpResponseBase:
        return self._with_link(self._membership(data))

    def _rename(self, data: QueryDict) -> HttpResponseBase:
        require(is_superuser(self.request.user), Role.OWNER)
        account_rename(account=self.account, name=data.get("name", ""))
        return self._back("The account was renamed.")

    def _membership(self, data: QueryDict) -> Membership:
        number = number_or_404(data.get("membership", ""))
        own = Membership.objects.filter(account=self.account).select_related("user")
        return get_object_or_404(own, pk=number)

    def _with_link(self, membership: Membership) -> HttpResponseBase:
        """The link is in this answer and nowhere else. Raises Invalid."""
        user = membership.user
        check_may_link(by=self.request.user, user=user)  # type: ignore[arg-type] # staff
        path = set_password_path(user=user, account_id=self.account.pk)
        link = f"{own_origin(self.request)}{path}"
        context = self.get_context_data(link=link, linked=user)
        return self.render_to_response(context)

    def _back(self, message: str) -> HttpResponseBase:
        messages.success(self.request, message)
        return _to_members(self.account)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", MemberForm(initial={"role": Role.VIEWER}))
        members = self.account.memberships.select_related("user").order_by("user__username")
        return super().get_context_data(
            account=self.account,
            members=members[:500],
            roles=[(role.value, role.label.partition(":")[0]) for role in Role],
            explained=[role.label.partition(": ")[::2] for role in Role],
            may_rename=is_superuser(self.request.user),
            content_title=self.account.name,
            **kwargs,
        ) | {"title": f"{self.account.name}: members"}


def _to_members(account: Account) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:channels_app_account_change", args=[account.pk]))

"""The pages of accounts and their members."""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import BadRequest
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.accounts.admin.links import LinksPage
from channels_app.accounts.members import (
    account_create,
    account_rename,
    account_require_two_step,
    member_add,
    member_remove,
    member_role_set,
)
from channels_app.console.access import accounts_of, is_superuser, may
from channels_app.console.pages import (
    ActsPage,
    FormPage,
    SuperuserPage,
    WithPages,
    number_or_404,
    require,
)
from channels_app.models import Account, Membership, Role
from channels_app.sign_in import mails, two_step
from pushsvc.common.console.admin import ReadOnlyAdmin, badge
from pushsvc.common.console.figures import moment
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.texts import later


class AccountForm(ConsoleForm):
    name = forms.CharField(max_length=200)


class MemberForm(ConsoleForm):
    username = forms.CharField(
        max_length=150,
        label=later("User name"),
        help_text=later("For a new user, you get a link to choose a password, which you pass on."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    email = forms.EmailField(
        required=False,
        max_length=254,
        label=later("E-mail"),
        help_text=later("A new user gets the link by mail. Without an address, you pass it on."),
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(choices=Role.choices)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if mails.is_on():
            self.fields["username"].help_text = ""
        elif settings.OIDC_ISSUER:
            self.fields["email"].help_text = gettext("For signing in with %(oidc_label)s.") % {
                "oidc_label": settings.OIDC_LABEL
            }
        else:
            del self.fields["email"]


class NewAccountPage(SuperuserPage, FormPage):
    title = later("New account")
    submit = later("Create the account")
    form_class = AccountForm

    @override
    def accept(self, form: AccountForm) -> HttpResponseBase:
        account = account_create(name=form.cleaned_data["name"])
        messages.success(
            self.request,
            gettext("The account “%(account)s” was created. Add its owner next.")
            % {"account": account},
        )
        return HttpResponseRedirect(_members_url(account))


class MembersPage(ActsPage, LinksPage):
    """For owners and superusers."""

    title = later("Members")
    template_name = "console/accounts/members.html"
    role = Role.OWNER
    account: Account

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        self.account = get_object_or_404(accounts_of(request.user), pk=kwargs["account_id"])
        require(may(request.user, self.account.pk, self.role), self.role)

    @override
    def own_url(self) -> str:
        return _members_url(self.account)

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {
            "add": self._add,
            "role": self._set_role,
            "remove": self._remove,
            "link": self._link,
            "mail": self._mail,
            "two_step": self._require_two_step,
            "rename": self._rename,
        }

    def _add(self, data: QueryDict) -> HttpResponseBase:
        form = MemberForm(data)
        if form.is_valid():
            with form.showing_errors():
                name, role = form.cleaned_data["username"], Role(form.cleaned_data["role"])
                membership, is_new = member_add(
                    account=self.account,
                    username=name,
                    role=role,
                    by=self.staff,
                    email=form.cleaned_data.get("email", ""),
                )
                if not is_new:
                    return self.back(
                        gettext("%(name)s now belongs to the account.") % {"name": name}
                    )
                if membership.user.email and mails.is_on():
                    return self.back(self.mail_link(membership.user))
                return self.show_link(membership.user)
        return self.refused(form=form)

    def _set_role(self, data: QueryDict) -> HttpResponseBase:
        membership = self._membership(data)
        role = next((role for role in Role if role.value == data.get("role")), None)
        if role is None:
            raise BadRequest("This role does not exist.")
        member_role_set(membership=membership, role=role)
        return self._changed(
            membership,
            gettext("%(user)s now has the role “%(value)s”.")
            % {"user": membership.user, "value": role.value},
        )

    def _remove(self, data: QueryDict) -> HttpResponseBase:
        membership = self._membership(data)
        member_remove(membership=membership)
        return self._changed(
            membership,
            gettext("%(user)s no longer belongs to the account.") % {"user": membership.user},
        )

    def _changed(self, membership: Membership, message: str) -> HttpResponseBase:
        """Shows the message on this page; on the first one to users who changed their own role,
        because they may not open this page any more."""
        if membership.user_id != self.staff.pk:
            return self.back(message)
        messages.success(self.request, message)
        return HttpResponseRedirect(reverse("admin:index"))

    def _link(self, data: QueryDict) -> HttpResponseBase:
        return self.show_link(self._membership(data).user)

    def _mail(self, data: QueryDict) -> HttpResponseBase:
        return self.back(self.mail_link(self._membership(data).user))

    def _require_two_step(self, data: QueryDict) -> HttpResponseBase:
        is_required = data.get("required") == "yes"
        account_require_two_step(account=self.account, is_required=is_required, by=self.staff)
        return self.back(
            gettext("Two-step sign-in is now required for all members.")
            if is_required
            else gettext("Two-step sign-in is no longer required for all members.")
        )

    def _rename(self, data: QueryDict) -> HttpResponseBase:
        require(is_superuser(self.request.user), Role.OWNER)
        account_rename(account=self.account, name=data.get("name", ""))
        return self.back(gettext("The account was renamed."))

    def _membership(self, data: QueryDict) -> Membership:
        number = number_or_404(data.get("membership", ""))
        own = Membership.objects.filter(account=self.account).select_related("user")
        return get_object_or_404(own, pk=number)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", MemberForm(initial={"role": Role.VIEWER}))
        held = self.account.memberships.select_related("user").order_by("user__username")
        members = held.annotate(has_second_step=two_step.on_for("user_id"))[:500]
        return super().get_context_data(
            account=self.account,
            members=members,
            lacking=sum(not member.has_second_step for member in members),
            may_require=two_step.is_on(self.staff),
            roles=[(role.value, role.label.partition(":")[0]) for role in Role],
            explained=[role.label.partition(": ")[::2] for role in Role],
            may_rename=is_superuser(self.request.user),
            may_mail=mails.is_on(),
            shows_addresses=mails.is_on() or bool(settings.OIDC_ISSUER),
            content_title=self.account.name,
            **kwargs,
        ) | {"title": gettext("%(name)s: members") % {"name": self.account.name}}


@admin.register(Account)
class AccountAdmin(WithPages, ReadOnlyAdmin):
    """An account's page shows its members."""

    list_display = ("name", "member_count", "channel_count", "two_step", "created")
    search_fields = ("name",)
    search_help_text = later("Part of the name.")
    ordering = ("name", "id")
    new_page = NewAccountPage
    row_page = MembersPage
    row_name = "account_id"

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        counts = {
            "member_count": Count("memberships", distinct=True),
            "channel_count": Count("channels", distinct=True),
        }
        own = accounts_of(request.user, Role.OWNER)
        return own.annotate(**counts).order_by(*self.ordering)

    @admin.display(description=later("Members"), ordering="member_count")
    def member_count(self, account: Any) -> int:
        return int(account.member_count)

    @admin.display(description=later("Channels"), ordering="channel_count")
    def channel_count(self, account: Any) -> int:
        return int(account.channel_count)

    @admin.display(description=later("Two-step sign-in"), ordering="requires_two_step")
    def two_step(self, account: Account) -> str:
        return (
            badge(gettext("required"), "good")
            if account.requires_two_step
            else badge(gettext("optional"))
        )

    @admin.display(description=later("Created"), ordering="created_at")
    def created(self, account: Account) -> str:
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


def _members_url(account: Account) -> str:
    return reverse("admin:channels_app_account_change", args=[account.pk])

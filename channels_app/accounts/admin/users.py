"""Users of the console. Superusers create and deactivate users, but cannot delete them."""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.accounts.admin.alerts import OwnAlertsPage
from channels_app.accounts.admin.links import LinksPage
from channels_app.accounts.admin.zone import ZonePage
from channels_app.accounts.users import user_change, user_create, user_locked
from channels_app.console.access import is_superuser
from channels_app.console.lists import SuperuserAdmin
from channels_app.console.pages import ActsPage, FormPage, SuperuserPage, number_or_404
from channels_app.console.shared_forms import SharedForm, save_shared
from channels_app.sign_in import mails, two_step
from channels_app.sign_in.provider_links import is_linked, unlink
from pushsvc.common.console.admin import badge, site
from pushsvc.common.console.figures import moment
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.texts import later

_OWN_SECOND_STEP = later(
    "Turn off your own under “Two-step sign-in”, with your password and a code."
)

# Django's pages would offer permissions, which have no effect here.
for model in (User, Group):
    site.unregister(model)


class _UserFields(ConsoleForm):
    email = forms.EmailField(required=False, label=later("E-mail"))
    is_superuser = forms.BooleanField(
        required=False,
        label=later("Superuser"),
        help_text=later("Can do everything in all accounts. Other users get a role in an account."),
    )


class NewUserForm(_UserFields):
    username = forms.CharField(max_length=150, label=later("User name"))
    field_order = ("username",)


class UserForm(SharedForm, _UserFields):
    is_active = forms.BooleanField(
        required=False,
        label=later("Active"),
        help_text=later("If off, the user cannot sign in, and all their sessions end immediately."),
    )
    field_order = ("email", "is_active")


class NewUserPage(SuperuserPage, FormPage, LinksPage):
    title = later("New user")
    template_name = "console/users/new.html"
    form_class = NewUserForm

    @override
    def accept(self, form: NewUserForm) -> HttpResponseBase:
        user = user_create(**form.cleaned_data)
        if user.email and mails.is_on():
            messages.success(self.request, self.mail_link(user))
            return HttpResponseRedirect(reverse("admin:auth_user_change", args=[user.pk]))
        return self.show_link(user)


class UserPage(SuperuserPage, ActsPage, LinksPage):
    title = later("User")
    template_name = "console/users/user.html"
    shown: User

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        super().check_access(request, **kwargs)
        self.shown = get_object_or_404(User, pk=kwargs["user_id"])

    @override
    def own_url(self) -> str:
        return reverse("admin:auth_user_change", args=[self.shown.pk])

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {
            "change": self._change,
            "link": self._link,
            "mail": self._mail,
            "reset": self._reset,
            "unlink": self._unlink,
        }

    @transaction.atomic
    def _change(self, _: QueryDict) -> HttpResponseBase:
        self.shown = user_locked(self.shown)
        return save_shared(self, self.shown, self._form, self._accept)

    def _form(self, data: QueryDict | None = None) -> UserForm:
        fields = ("email", "is_active", "is_superuser")
        return UserForm(data, initial={name: getattr(self.shown, name) for name in fields})

    def _accept(self, form: UserForm) -> HttpResponseBase:
        user_change(user=self.shown, by=self.staff, **form.cleaned_data)
        return self.back(gettext("The user was changed."))

    def _link(self, data: QueryDict) -> HttpResponseBase:
        return self.show_link(self.shown)

    def _mail(self, data: QueryDict) -> HttpResponseBase:
        return self.back(self.mail_link(self.shown))

    def _reset(self, data: QueryDict) -> HttpResponseBase:
        if self.shown == self.request.user:
            raise Invalid([FieldError("", "not_a_choice", _OWN_SECOND_STEP)])
        note = "A superuser turned two-step sign-in off."
        two_step.turn_off(user=self.shown, note=note)
        return self.back(
            gettext("Two-step sign-in was turned off. The password alone is now enough.")
        )

    def _unlink(self, data: QueryDict) -> HttpResponseBase:
        unlink(user=self.shown)
        return self.back(
            gettext("The link was removed. The next sign-in is matched by e-mail address.")
        )

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", self._form())
        held = self.shown.memberships.select_related("account").order_by("account__name")
        return super().get_context_data(
            shown=self.shown,
            is_own=self.shown == self.request.user,
            may_mail=mails.is_on() and bool(self.shown.email),
            provider=settings.OIDC_LABEL if settings.OIDC_ISSUER else "",
            is_linked=bool(settings.OIDC_ISSUER) and is_linked(self.shown),
            memberships=held[:500],
            has_second_step=two_step.is_on(self.shown),
            content_title=self.shown.get_username(),
            **kwargs,
        ) | {"title": self.shown.get_username()}


@admin.register(User)
class UserAdmin(SuperuserAdmin):
    list_display = ("username", "email", "state", "rank", "second_step", "signed_in")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("username", "email")
    search_help_text = later("Part of the name or of the e-mail address.")
    ordering = ("username",)
    new_page = NewUserPage
    row_page = UserPage
    row_name = "user_id"

    @override
    def get_urls(self) -> list[URLPattern]:
        # Without this admin, whose list is for superusers.
        alerts, zone = (site.admin_view(each.as_view()) for each in (OwnAlertsPage, ZonePage))
        return [
            path("alerts/", alerts, name="own_alerts"),
            path("time-zone/", zone, name="time_zone"),
            *super().get_urls(),
        ]

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        users: QuerySet[Any] = super().get_queryset(request)
        annotated: QuerySet[Any] = users.annotate(has_second_step=two_step.on_for("pk"))
        return annotated

    @override
    def read_key(self, text: str) -> int:
        return number_or_404(text)

    @admin.display(description=later("State"), ordering="is_active")
    def state(self, user: User) -> str:
        return (
            badge(gettext("active"), "good")
            if user.is_active
            else badge(gettext("deactivated"), "bad")
        )

    @admin.display(description=later("Rank"), ordering="is_superuser")
    def rank(self, user: User) -> str:
        return badge(gettext("superuser"), "warn") if user.is_superuser else gettext("member")

    @admin.display(description=later("Two-step sign-in"))
    def second_step(self, user: Any) -> str:
        return badge(gettext("on"), "good") if user.has_second_step else badge(gettext("off"))

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request.user)

    @admin.display(description=later("Last sign-in"), ordering="last_login")
    def signed_in(self, user: User) -> str:
        return moment(user.last_login)

"""Users of the console. Superusers make and deactivate them; nobody deletes one."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice
from typing_extensions import override

from channels_app.accounts.access import is_superuser
from channels_app.accounts.members import (
    check_may_link,
    set_password_path,
    user_change,
    user_create,
)
from channels_app.admin.own_sign_in import SetPasswordView, TwoStepPage
from channels_app.console.lists import SuperuserAdmin, SuperuserPage, chosen_act, number_or_404
from channels_app.sign_in import two_step
from pushsvc.common.console.admin import badge, site
from pushsvc.common.console.figures import moment
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.errors import Fault, Invalid
from pushsvc.common.http.origin import own_origin

_OWN_SECOND_STEP = "Turn your own off with password and code, under “Two-step sign-in”."

for model in (User, Group, TOTPDevice, StaticDevice):
    site.unregister(
        model
    )  # pages of their packages: secrets in clear, rights that mean nothing here


class NewUserForm(ConsoleForm):
    username = forms.CharField(max_length=150, label="User name")
    email = forms.EmailField(required=False, label="E-mail")
    is_superuser = forms.BooleanField(
        required=False,
        label="Superuser",
        help_text="Sees and may do everything, in all accounts. Others get a role in an account.",
    )


class UserForm(ConsoleForm):
    email = forms.EmailField(required=False, label="E-mail")
    is_active = forms.BooleanField(
        required=False,
        label="Active",
        help_text="Off: may not sign in, and is signed out everywhere at once.",
    )
    is_superuser = forms.BooleanField(
        required=False, label="Superuser", help_text="Sees and may do everything, in all accounts."
    )


@admin.register(User)
class UserAdmin(SuperuserAdmin):
    list_display = ("username", "email", "state", "rank", "second_step", "signed_in")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("username", "email")
    search_help_text = "A part of the name or of the e-mail address."
    ordering = ("username",)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        phones = TOTPDevice.objects.filter(user=OuterRef("pk"), confirmed=True)
        users: QuerySet[Any] = super().get_queryset(request)
        annotated: QuerySet[Any] = users.annotate(has_second_step=Exists(phones))
        return annotated

    @admin.display(description="State", ordering="is_active")
    def state(self, user: User) -> str:
        return badge("active", "good") if user.is_active else badge("deactivated", "bad")

    @admin.display(description="Rank", ordering="is_superuser")
    def rank(self, user: User) -> str:
        return badge("superuser", "warn") if user.is_superuser else "member"

    @admin.display(description="Two-step sign-in")
    def second_step(self, user: Any) -> str:
        return badge("on", "good") if user.has_second_step else badge("off")

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request.user)

    @override
    def get_urls(self) -> list[URLPattern]:
        own = [
            self.page("two-step/", TwoStepPage, "two_step"),
            path(
                "set-password/<uidb64>/<token>/", SetPasswordView.as_view(), name="set_password"
            ),  # for people who cannot sign in yet
        ]
        return own + super().get_urls()

    @admin.display(description="Last sign-in", ordering="last_login")
    def signed_in(self, user: User) -> str:
        return moment(user.last_login)

    @override
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        return self.show(NewUserPage, request)

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        page = UserPage.as_view(model_admin=self)
        return page(request, user_id=number_or_404(object_id))


class NewUserPage(SuperuserPage):
    title = "New user"
    template_name = "console/users/new.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = NewUserForm(request.POST)
        if form.is_valid():
            with form.showing_faults():
                user = user_create(**form.cleaned_data)
                link = f"{own_origin(request)}{set_password_path(user=user)}"
                context = self.get_context_data(link=link, linked=user)
                return self.render_to_response(context)
        return self.render_to_response(self.get_context_data(form=form), status=400)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", NewUserForm())
        return super().get_context_data(**kwargs)


class UserPage(SuperuserPage):
    """Every change is a POST whose `do` names it."""

    title = "User"
    template_name = "console/users/user.html"
    shown: User

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        super().check_access(request, **kwargs)
        self.shown = get_object_or_404(User, pk=kwargs["user_id"])

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        acts = {"change": self._change, "link": self._link, "reset": self._reset}
        act = chosen_act(request, acts)
        try:
            return act(request)
        except Invalid as error:
            messages.error(request, " ".join(fault.detail for fault in error.faults))
            return self._to_user()

    def _change(self, request: HttpRequest) -> HttpResponseBase:
        form = UserForm(request.POST)
        if form.is_valid():
            with form.showing_faults():
                user_change(user=self.shown, by=request.user, **form.cleaned_data)  # type: ignore[arg-type] # staff
                return self._back("The user was changed.")
        return self.render_to_response(self.get_context_data(form=form), status=400)

    def _link(self, request: HttpRequest) -> HttpResponseBase:
        check_may_link(by=request.user, user=self.shown)  # type: ignore[arg-type] # staff
        link = f"{own_origin(request)}{set_password_path(user=self.shown)}"
        return self.render_to_response(self.get_context_data(link=link))

    def _reset(self, request: HttpRequest) -> HttpResponseBase:
        if self.shown == request.user:
            raise Invalid([Fault("", "not_a_choice", _OWN_SECOND_STEP)])
        note = "Two-step sign-in was turned off by a superuser."
        two_step.turn_off(user=self.shown, note=note)
        return self._back("Two-step sign-in is off: the password alone is enough again.")

    def _back(self, message: str) -> HttpResponseBase:
        messages.success(self.request, message)
        return self._to_user()

    def _to_user(self) -> HttpResponseBase:
        return HttpResponseRedirect(reverse("admin:auth_user_change", args=[self.shown.pk]))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        fields = ("email", "is_active", "is_superuser")
        kwargs.setdefault(
            "form", UserForm(initial={name: getattr(self.shown, name) for name in fields})
        )
        held = self.shown.memberships.select_related("account").order_by("account__name")
        return super().get_context_data(
            shown=self.shown,
            linked=self.shown,
            is_own=self.shown == self.request.user,
            memberships=held[:500],
            has_second_step=two_step.is_on(self.shown),
            content_title=self.shown.get_username(),
            **kwargs,
        ) | {"title": self.shown.get_username()}

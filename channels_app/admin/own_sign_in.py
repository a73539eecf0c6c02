"""A user's own sign-in: password, two-step sign-in, and the first password of a new user."""

from base64 import b32encode
from typing import Any, cast

import segno
from django import forms
from django.contrib import messages
from django.contrib.auth import authenticate, password_validation, update_session_auth_hash
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordResetConfirmView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse, reverse_lazy
from django.utils.safestring import SafeString, mark_safe
from django_otp import login as note_second_step
from django_otp.plugins.otp_totp.models import TOTPDevice
from typing_extensions import override

from channels_app.accounts.members import password_set, set_password_tokens
from channels_app.console.lists import ConsolePage, chosen_act
from channels_app.sign_in import two_step
from pushsvc.common.console.admin import site
from pushsvc.common.console.forms import ConsoleForm

_WRONG = "That did not fit. Too many wrong tries lock you out for 15 minutes."


def _secret(label: str, autocomplete: str, **more: Any) -> forms.CharField:
    field = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    return forms.CharField(label=label, widget=field, strip=False, **more)


def _code(**more: Any) -> forms.CharField:
    attributes = {"autocomplete": "one-time-code", "spellcheck": "false"}
    return forms.CharField(
        label="Code", max_length=32, widget=forms.TextInput(attrs=attributes), **more
    )


class PhoneForm(ConsoleForm):
    code = _code(help_text="The six digits that the phone shows now.")


class ProofForm(ConsoleForm):
    """That it is really the user, not somebody at an unlocked desk."""

    password = _secret("Password", "current-password")
    code = _code(help_text="From your phone, or a recovery code.")


class OwnPasswordForm(ConsoleForm):
    password = _secret("Present password", "current-password")
    code = _code(required=False, help_text="Only with two-step sign-in.")
    new_password = _secret(
        "New password",
        "new-password",
        help_text=password_validation.password_validators_help_texts,
    )
    repeated = _secret("New password again", "new-password")

    @override
    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if given.get("new_password") != given.get("repeated"):
            self.add_error("repeated", "The two are not the same.")
        return given


class OwnPage(ConsolePage):
    """For every member of staff, about nobody else."""

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        """The admin lets staff in; nothing more is asked."""

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        context.pop("opts", None)  # no way back to the list of users, which is for superusers
        return context

    @property
    def user(self) -> User:
        return cast(User, self.request.user)  # `admin_view` has made sure

    def is_proven(self, form: forms.Form) -> bool:
        """Whether password and code are the user's; wrong ones count towards the lock-out."""
        found = authenticate(
            self.request,
            username=self.request.user.get_username(),
            password=form.cleaned_data["password"],
            otp_token=form.cleaned_data["code"],
        )
        if found is None:
            form.add_error(None, _WRONG)
        return found is not None


class OwnPasswordPage(OwnPage):
    title = "Change password"
    template_name = "console/own/password.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = OwnPasswordForm(request.POST)
        if not (form.is_valid() and self.is_proven(form) and self._change(form)):
            return self.render_to_response(self.get_context_data(form=form), status=400)
        messages.success(request, "The password was changed. Your other sessions have ended.")
        return HttpResponseRedirect(reverse("admin:index"))

    def _change(self, form: forms.Form) -> bool:
        user = self.user
        try:
            password_set(
                user=user,
                password=form.cleaned_data["new_password"],
                note="The user changed the password.",
            )
        except ValidationError as error:
            form.add_error("new_password", error)
            return False
        update_session_auth_hash(self.request, user)
        return True

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", OwnPasswordForm())
        return super().get_context_data(**kwargs)


class TwoStepPage(OwnPage):
    """Every change is a POST whose `do` names it."""

    title = "Two-step sign-in"
    template_name = "console/own/two_step.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        acts = {
            "begin": self._begin,
            "confirm": self._confirm,
            "renew": self._renew,
            "off": self._turn_off,
        }
        return chosen_act(request, acts)(request)

    def _begin(self, request: HttpRequest) -> HttpResponseBase:
        if not two_step.is_on(self.user):
            two_step.begin(user=self.user)
        return self._back()

    def _confirm(self, request: HttpRequest) -> HttpResponseBase:
        form = PhoneForm(request.POST)
        if form.is_valid():
            confirmed = two_step.confirm(user=self.user, code=form.cleaned_data["code"])
            if confirmed is not None:
                phone, codes = confirmed
                note_second_step(request, phone)
                return self._with_codes(codes)
            form.add_error(
                "code",
                "That is not the code that the phone shows now. Wait for the "
                "next one, and check that the phone's clock is right.",
            )
        return self.render_to_response(self.get_context_data(phone_form=form), status=400)

    def _renew(self, request: HttpRequest) -> HttpResponseBase:
        form = ProofForm(request.POST, prefix="renew")
        if form.is_valid() and self.is_proven(form):
            return self._with_codes(two_step.recovery_codes_renew(user=self.user))
        return self.render_to_response(self.get_context_data(renew_form=form), status=400)

    def _turn_off(self, request: HttpRequest) -> HttpResponseBase:
        form = ProofForm(request.POST, prefix="off")
        if form.is_valid() and self.is_proven(form):
            two_step.turn_off(user=self.user)
            messages.success(request, "Two-step sign-in is off.")
            return self._back()
        return self.render_to_response(self.get_context_data(off_form=form), status=400)

    def _with_codes(self, codes: list[str]) -> HttpResponseBase:
        return self.render_to_response(self.get_context_data(codes=codes))

    def _back(self) -> HttpResponseBase:
        return HttpResponseRedirect(reverse("admin:two_step"))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        is_on = two_step.is_on(self.user)
        offered = None if is_on else two_step.pending(self.user)
        kwargs.setdefault("phone_form", PhoneForm())
        kwargs.setdefault("renew_form", ProofForm(prefix="renew"))
        kwargs.setdefault("off_form", ProofForm(prefix="off"))
        return super().get_context_data(
            is_on=is_on,
            picture=_picture(offered) if offered else "",
            typed_secret=_typed_secret(offered) if offered else "",
            codes_left=two_step.recovery_codes_left(self.user),
            **kwargs,
        )


class SetPasswordView(PasswordResetConfirmView):
    """Where a link to set a password leads; whoever follows it need not be signed in."""

    template_name = "console/own/set_password.html"
    token_generator = set_password_tokens
    reset_url_token = "chosen"  # noqa: S105 - takes the token's place in the address
    success_url = reverse_lazy("admin:login")

    @override
    def form_valid(self, form: "SetPasswordForm[User]") -> HttpResponse:
        note = "A password was set by a link."
        password_set(user=form.user, password=form.cleaned_data["new_password1"], note=note)
        del self.request.session["_password_reset_token"]
        messages.success(self.request, "The password is set. Sign in with it.")
        return HttpResponseRedirect(str(self.get_success_url()))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        title = {"title": "Choose a password"}
        return site.each_context(self.request) | super().get_context_data(**kwargs) | title


def _picture(phone: TOTPDevice) -> SafeString:
    """The secret as a QR code, dark on white in dark mode too: phones read nothing else."""
    code = segno.make(phone.config_url, error="m")
    drawn: str = code.svg_inline(scale=5, border=4, light="#fff", dark="#000", title="QR code")
    return mark_safe(drawn)  # noqa: S308 - drawn by segno from our own address, squares only


def _typed_secret(phone: TOTPDevice) -> str:
    """For phones that cannot scan: base32, in groups of four."""
    text = b32encode(phone.bin_key).decode().rstrip("=")
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))

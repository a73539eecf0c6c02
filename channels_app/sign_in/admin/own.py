"""Pages on which users change their own password and two-step sign-in, or follow a link."""

from base64 import b32encode
from collections.abc import Callable, Mapping
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth import authenticate, password_validation, update_session_auth_hash
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN, PasswordResetConfirmView
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse, reverse_lazy
from django.utils.safestring import SafeString
from django_otp import login as note_second_step
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice
from typing_extensions import override

from channels_app.console.pages import ActsPage, ConsolePage, FormPage
from channels_app.sign_in import mails, two_step
from channels_app.sign_in.passwords import password_set, set_password_tokens
from pushsvc.common.console.admin import site
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.console.qr import qr_svg

_LOCKED_OUT_BY = "Too many failed attempts lock you out for 15 minutes."
_WRONG_CODE = (
    "This is not the code that the phone shows now. Wait for the next one, and check that the "
    "phone's clock is right."
)

# The package's pages would show the secrets.
for model in (TOTPDevice, StaticDevice):
    site.unregister(model)


def _secret(label: str, autocomplete: str, **more: Any) -> forms.CharField:
    field = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    return forms.CharField(label=label, widget=field, strip=False, **more)


def _code(**more: Any) -> forms.CharField:
    attributes = {"autocomplete": "one-time-code", "spellcheck": "false"}
    return forms.CharField(
        label="Code", max_length=32, widget=forms.TextInput(attrs=attributes), **more
    )


def _password_rules() -> str:
    """The rules as a form's help text. A function, because the template calls it when needed."""
    return " ".join(password_validation.password_validators_help_texts())


class PhoneForm(ConsoleForm):
    code = _code(help_text="The six digits that the phone shows now.")


class ProvenCodeForm(ConsoleForm):
    code = _code(help_text="The code that your phone shows, or a recovery code.")


class ProofForm(ConsoleForm):
    """Asks for proof of the user, because another person may be at an unlocked computer."""

    password = _secret("Password", "current-password")
    code = _code(help_text="The code that your phone shows, or a recovery code.")


class OwnPasswordForm(ConsoleForm):
    password = _secret("Current password", "current-password")
    code = _code(required=False, help_text="Needed if you use two-step sign-in.")
    new_password = _secret(
        "New password",
        "new-password",
        help_text=_password_rules,
    )
    repeated = _secret("New password again", "new-password")

    @override
    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if given.get("new_password") != given.get("repeated"):
            self.add_error("repeated", "The two passwords differ.")
        return given


class ChosenPasswordForm(SetPasswordForm):  # type: ignore[type-arg] # generic in its stubs only
    """Django's form with its rules as plain text, because the console shows plain text."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password1"].help_text = _password_rules()


class OwnPage(ConsolePage):
    """A page of every member of staff about themselves."""

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        """Allows all staff; the admin lets only staff in."""

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        context.pop("opts", None)  # no link to the list of users, which only superusers may open
        return context

    @property
    def user(self) -> User:
        return cast(User, self.request.user)  # `admin_view` lets only users in

    def is_proven(self, form: forms.Form) -> bool:
        """Whether password and code are right. Wrong ones count towards the lock-out. A user who
        signs in only with the provider has no password, and proves themselves with the code."""
        given = form.cleaned_data
        proof: dict[str, Any] = (
            {"password": given["password"]} if "password" in given else {"in_session": self.user}
        )
        found = authenticate(
            self.request, username=self.user.get_username(), otp_token=given["code"], **proof
        )
        if found is None:
            wrong = "password or the code" if "password" in form.fields else "code"
            form.add_error(None, f"The {wrong} is wrong. {_LOCKED_OUT_BY}")
        return found is not None


class OwnPasswordPage(OwnPage, FormPage):
    title = "Change password"
    template_name = "console/own/password.html"
    submit = "Change the password"
    form_class = OwnPasswordForm

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(gets_mail=mails.is_on() and bool(self.user.email), **kwargs)

    @override
    def accept(self, form: OwnPasswordForm) -> HttpResponseBase:
        try:
            # One transaction, so that a code is used up only if the password is changed.
            with transaction.atomic():
                if not self.is_proven(form):
                    return self.refused(form=form)
                self._change(form.cleaned_data["new_password"])
        except ValidationError as error:
            form.add_error("new_password", error)
            return self.refused(form=form)
        messages.success(self.request, "The password was changed. Your other sessions have ended.")
        return HttpResponseRedirect(reverse("admin:index"))

    def _change(self, password: str) -> None:
        password_set(user=self.user, password=password, note="The user changed the password.")
        update_session_auth_hash(self.request, self.user)


class TwoStepPage(OwnPage, ActsPage):
    title = "Two-step sign-in"
    template_name = "console/own/two_step.html"

    @override
    def own_url(self) -> str:
        return reverse("admin:two_step")

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {
            "begin": self._begin,
            "confirm": self._confirm,
            "renew": self._renew,
            "off": self._turn_off,
        }

    def _begin(self, data: QueryDict) -> HttpResponseBase:
        if not two_step.is_on(self.user):
            two_step.begin(user=self.user)
        return HttpResponseRedirect(self.own_url())

    def _confirm(self, data: QueryDict) -> HttpResponseBase:
        form = PhoneForm(data)
        if form.is_valid():
            confirmed = two_step.confirm(user=self.user, code=form.cleaned_data["code"])
            if confirmed is not None:
                phone, codes = confirmed
                note_second_step(self.request, phone)
                return self._with_codes(codes)
            form.add_error("code", _WRONG_CODE)
        return self.refused(phone_form=form)

    def _renew(self, data: QueryDict) -> HttpResponseBase:
        form = self._proof_form("renew", data)
        if form.is_valid() and self.is_proven(form):
            return self._with_codes(two_step.recovery_codes_renew(user=self.user))
        return self.refused(renew_form=form)

    def _turn_off(self, data: QueryDict) -> HttpResponseBase:
        form = self._proof_form("off", data)
        if form.is_valid() and self.is_proven(form):
            two_step.turn_off(user=self.user)
            return self.back("Two-step sign-in is off.")
        return self.refused(off_form=form)

    def _proof_form(self, prefix: str, data: QueryDict | None = None) -> ConsoleForm:
        kind = ProofForm if self.user.has_usable_password() else ProvenCodeForm
        return kind(data, prefix=prefix)

    def _with_codes(self, codes: list[str]) -> HttpResponseBase:
        return self.render_to_response(self.get_context_data(codes=codes))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        is_on, is_required = two_step.need_of(self.user)
        offered = None if is_on else two_step.pending(self.user)
        kwargs.setdefault("phone_form", PhoneForm())
        kwargs.setdefault("renew_form", self._proof_form("renew"))
        kwargs.setdefault("off_form", self._proof_form("off"))
        return super().get_context_data(
            is_on=is_on,
            is_required=is_required,
            picture=_picture(offered) if offered else "",
            typed_secret=_typed_secret(offered) if offered else "",
            codes_left=two_step.recovery_codes_left(self.user),
            **kwargs,
        )


class SetPasswordView(PasswordResetConfirmView):
    """The page that a link to set a password opens. Its user need not be signed in."""

    template_name = "console/own/set_password.html"
    form_class = ChosenPasswordForm
    token_generator = set_password_tokens
    reset_url_token = "chosen"  # noqa: S105 - replaces the token in the address
    success_url = reverse_lazy("admin:login")

    @override
    def form_valid(self, form: "SetPasswordForm[User]") -> HttpResponse:
        note = "A password was set by a link."
        password_set(user=form.user, password=form.cleaned_data["new_password1"], note=note)
        del self.request.session[INTERNAL_RESET_SESSION_TOKEN]
        messages.success(self.request, "The password is set. Sign in with it.")
        return HttpResponseRedirect(str(self.get_success_url()))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        own = {"title": "Choose a password", "offers_links": mails.is_on()}
        return site.each_context(self.request) | super().get_context_data(**kwargs) | own


def _picture(phone: TOTPDevice) -> SafeString:
    """The secret as a QR code. It is dark on white in dark mode too, because phones need that."""
    return qr_svg(phone.config_url)


def _typed_secret(phone: TOTPDevice) -> str:
    """The secret in base32, in groups of four, for phones that cannot scan."""
    text = b32encode(phone.bin_key).decode().rstrip("=")
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))

"""The forms of django-allauth's pages, with the console's texts and its checks."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from allauth.account.forms import (
    ChangePasswordForm,
    LoginForm,
    ReauthenticateForm,
    ResetPasswordKeyForm,
)
from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm as SecondStepForm
from allauth.mfa.base.forms import ReauthenticateForm as OwnStepForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from django import forms
from django.contrib.auth import password_validation
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.sign_in import mails, two_step
from channels_app.sign_in.backend import proven
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.http.client_address import client_ip
from pushsvc.common.http.strict_json import MalformedJSON, loads_strict
from pushsvc.common.texts import later

_CODE_HELP: Final = later("The code that your authenticator app shows, or a recovery code.")
_NEW_PASSWORD: Final = {
    "password1": later("New password"),
    "password2": later("New password again"),
}
_LOCKED_OUT_BY: Final = later("Too many failed attempts lock you out for 15 minutes.")
# What fido2 raises for an answer of which a part is missing or malformed.
_MALFORMED: Final = (
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


def _code(**more: Any) -> forms.CharField:
    attributes = {"autocomplete": "one-time-code", "spellcheck": "false"}
    options: dict[str, Any] = {"help_text": _CODE_HELP, "max_length": 32, **more}
    return forms.CharField(label=later("Code"), widget=forms.TextInput(attrs=attributes), **options)


def _password_rules() -> str:
    """The rules as a form's help text. A function, because the template calls it when needed."""
    return " ".join(password_validation.password_validators_help_texts())


def _plain(form: forms.BaseForm, **labels: str) -> None:
    """Gives the fields the labels and help texts of the console."""
    for name, label in labels.items():
        form.fields[name].label = label
    for name, field in form.fields.items():
        field.widget.attrs.pop("placeholder", None)
        if name in {"password", "oldpassword"}:
            field.help_text = ""
        elif name == "password1":
            field.help_text = _password_rules  # type: ignore[assignment] # the template calls it


class SignInForm(LoginForm):
    """Asks for name, password and code together, so that no response reveals which was right."""

    code = _code(
        required=False,
        help_text=later(
            "If you use two-step sign-in: the code that your authenticator app shows, or a "
            "recovery code."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _plain(self, login=gettext("User name"))
        self.order_fields(["login", "password", "code"])

    @override
    def user_credentials(self) -> dict[str, str]:
        given = self.cleaned_data
        return {name: given[name] for name in ("password", "code")} | {"username": given["login"]}

    @override
    def login(self, request: HttpRequest, redirect_url: str | None = None) -> Any:
        if step := getattr(self.user, "passed_step", None):
            step.save()
        return super().login(request, redirect_url)


class _CountedCode(forms.Form):
    """Checks the code as the sign-in does, so that wrong ones count."""

    user: User  # of the form that this is mixed into
    code = _code()

    def clean_code(self) -> str:
        found = proven(context.request, self.user, self.cleaned_data["code"])
        if found is None:
            raise forms.ValidationError(
                gettext("The code is wrong, or was used. %(locked_out_by)s")
                % {"locked_out_by": _LOCKED_OUT_BY}
            )
        self.authenticator = found.passed_step.authenticator
        return str(self.cleaned_data["code"])


class CodeForm(_CountedCode, SecondStepForm):
    """The second step of a user for whom the sign-in provider vouched."""


class OwnCodeForm(_CountedCode, OwnStepForm):
    """Asks a signed-in user without a password for proof."""


class _ProofForm(forms.Form):
    """Asks for proof of the user, because another person may be at an unlocked computer."""

    user: User  # of the form that this is mixed into

    def ask_for_code(self, *, after: str) -> None:
        """Adds the field for the code if the user has a second step."""
        if two_step.is_on(self.user):
            self.fields["code"] = _code()
            self.order_fields([after, "code"])

    def prove(self, password: str) -> None:
        """Adds an error unless password and code are right. Call it only if the form has no other
        error, because a code is used up."""
        if proven(context.request, self.user, self.cleaned_data.get("code", ""), password) is None:
            self.add_error(
                None,
                gettext("The password or the code is wrong. %(locked_out_by)s")
                % {"locked_out_by": _LOCKED_OUT_BY},
            )


class OwnProofForm(_ProofForm, ReauthenticateForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _plain(self)
        self.ask_for_code(after="password")

    @override
    def clean_password(self) -> str:
        return str(self.cleaned_data["password"])

    @override
    def clean(self) -> Any:
        if not self.errors:
            self.prove(self.cleaned_data["password"])
        return super().clean()


class OwnPasswordForm(_ProofForm, ChangePasswordForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _plain(self, oldpassword=gettext("Current password"), **_NEW_PASSWORD)
        self.ask_for_code(after="oldpassword")

    @override
    def clean_oldpassword(self) -> str:
        return str(self.cleaned_data["oldpassword"])

    @override
    def clean(self) -> Any:
        cleaned = super().clean()
        if not self.errors:
            self.prove(self.cleaned_data["oldpassword"])
        return cleaned


class ChosenPasswordForm(ResetPasswordKeyForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _plain(self, **_NEW_PASSWORD)


class AddressForm(ConsoleForm):
    """Orders a mail with a link to set a new password."""

    email = forms.EmailField(
        label=later("E-mail"),
        max_length=254,
        help_text=later("The address to which your invitation came."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )

    def save(self, request: HttpRequest) -> None:
        address = self.cleaned_data["email"]
        mails.ask_for_link(address=address, asked_from=client_ip(request) or "unknown")


class AppForm(ActivateTOTPForm):
    code = _code(help_text=later("The six digits that the app shows now."))


class _Answer(forms.CharField):
    """A browser's response for a passkey, as JSON. Unlike Django's field, it refuses JSON that is
    nested too deeply, or that a page could not render again."""

    widget = forms.HiddenInput

    @override
    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        try:
            return loads_strict(text.encode()) if text else text
        except MalformedJSON as malformed:
            raise get_adapter().validation_error("incorrect_code") from malformed


@contextmanager
def _refusing_malformed() -> Iterator[None]:
    """A context that refuses a malformed answer, which allauth does only for some."""
    try:
        yield
    except _MALFORMED as malformed:
        raise get_adapter().validation_error("incorrect_code") from malformed


class _SignedForm(AuthenticateWebAuthnForm):
    credential = _Answer()

    @override
    def clean_credential(self) -> Authenticator:
        with _refusing_malformed():
            return super().clean_credential()


class PasskeySignInForm(_SignedForm, LoginWebAuthnForm):
    """Anybody can post it."""


class OwnPasskeyForm(_SignedForm, ReauthenticateWebAuthnForm):
    """Confirms the identity of a signed-in user."""


class PasskeyForm(AddWebAuthnForm):
    """Passkeys are stored by the authenticator and require a PIN or a fingerprint."""

    credential = _Answer()

    name = forms.CharField(required=False, max_length=50, help_text=later("Such as “my laptop”."))
    passwordless = forms.BooleanField()

    @override
    def clean(self) -> dict[str, Any]:
        with _refusing_malformed():
            cleaned: dict[str, Any] = super().clean()
        return cleaned

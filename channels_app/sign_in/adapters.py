"""How the console differs from django-allauth's defaults."""

from typing import Any, Final

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.stages import LoginStage
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import get_language, gettext
from typing_extensions import override

from channels_app import audit
from channels_app.sign_in import mails, provider_links, two_step
from channels_app.sign_in.backend import StaffBackend
from pushsvc.common.console.qr import qr_svg
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.store.crypto import SecretUnreadable, decrypt, encrypt
from pushsvc.common.texts import later

_FAILED: Final = later(
    "The sign-in failed. Check the name, the password and, if you use two-step "
    "sign-in, the code. A code changes every 30 seconds and works once."
)


class AccountAdapter(DefaultAccountAdapter):
    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": _FAILED,
        "rate_limited": later("Too many wrong codes. Try again later."),
    }

    @override
    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Counts nothing: the backends do."""

    @override
    def get_client_ip(self, request: HttpRequest) -> str:
        return counted_address(request)

    @override
    def get_login_stages(self) -> list[type[LoginStage]]:
        return [SecondStep, provider_links.LinkStage]

    @override
    def pre_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponse | None:
        if StaffBackend().user_can_authenticate(user):
            return None
        messages.error(request, gettext("The sign-in failed."))
        return HttpResponseRedirect(reverse("account_login"))

    @override
    def post_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponse:
        by = f"by {settings.OIDC_LABEL}" if provider_links.vouches(request) else ""
        note = f"Signed in {by}".strip() + "."
        audit.record(user, audit.Action.ACCESS, note=note, actor=user)
        mails.language_keep(user=user, language=get_language() or settings.LANGUAGE_CODE)
        return super().post_login(request, user, **options)

    @override
    @transaction.atomic
    def set_password(self, user: User, password: str) -> None:
        """Sets the password and ends all sessions of the user."""
        user.set_password(password)
        user.save(update_fields=["password"])
        is_own = self.request.user == user
        note = "The user changed the password." if is_own else "A password was set by a link."
        audit.record(user, audit.Action.UPDATE, note=note, actor=user)

    @override
    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("admin:index")

    @override
    def get_reauthentication_methods(self, user: Any) -> list[dict[str, str]]:
        """A password counts only with a code, and a code only if the user has no password. Who has
        neither signs in by the provider again."""
        offered = super().get_reauthentication_methods(user)
        needless = "mfa_reauthenticate" if user.has_usable_password() else "reauthenticate"
        methods = [method for method in offered if method["id"] != needless]
        if not methods and settings.OIDC_ISSUER:
            methods = [{"id": "provider", "url": reverse("provider_start")}]
        return methods

    @override
    def is_reauthentication_required(self, *, app: str, **options: Any) -> bool:
        """Not right after a user set up the first second step, because there was no code before."""
        if two_step.is_on(self.request.user):
            seconds = settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
            return not two_step.was_just_set_up(self.request, seconds)
        return provider_links.first_step_needs_proof(self.request)


class MfaAdapter(DefaultMFAAdapter):
    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": later(
            "This is not right. Wait for the next code, and check that the phone's clock is right."
        ),
    }

    @override
    def encrypt(self, text: str) -> str:
        return encrypt(text)

    @override
    def decrypt(self, encrypted_text: str) -> str:
        try:
            return decrypt(encrypted_text)
        except SecretUnreadable as error:  # CREDENTIAL_KEYS no longer has its key: no code is right
            raise self.validation_error("incorrect_code") from error

    @override
    def get_totp_label(self, user: Any) -> str:
        return f"{settings.MFA_TOTP_ISSUER}:{user.get_username()}"

    @override
    def build_totp_svg(self, url: str) -> str:
        return qr_svg(url)

    @override
    def get_public_key_credential_user_entity(self, user: Any) -> dict[str, Any]:
        entity: dict[str, Any] = super().get_public_key_credential_user_entity(user)
        return entity | {"name": user.get_username(), "display_name": user.get_username()}

    @override
    def generate_authenticator_name(self, user: Any, type: Authenticator.Type) -> str:
        return gettext("Passkey")


class SecondStep(AuthenticateStage):
    """Requires the second step unless the sign-in form or a passkey has passed it, or the provider
    is trusted to require one."""

    @override
    def handle(self) -> tuple[HttpResponse | None, bool]:
        is_trusted = settings.OIDC_TRUST_SECOND_STEP and bool(self.login.signal_kwargs)
        if is_trusted or two_step.need_of(self.login.user).is_met(self.request):
            return None, True
        return super().handle()

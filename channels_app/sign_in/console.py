"""Signing in to the console with a password and, if two-step sign-in is on, a code.

The answer does not say whether password or code was wrong. Before a password is hashed, the
attempts of the address are counted (SIGN_INS_PER_MINUTE), and the process limits how many passwords
it hashes at once (pushsvc/common/passwords.py). An attempt that is refused there was not checked.
django-axes counts failures by user name and address, whether or not the user exists, and locks out
for 15 minutes after five.
"""

from collections.abc import Callable
from datetime import timedelta
from math import ceil
from typing import Any, Final

from axes.models import AccessAttempt
from django import forms
from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, User
from django.core.validators import MaxLengthValidator
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from typing_extensions import override

from channels_app import audit
from channels_app.sign_in import mails, two_step
from channels_app.sign_in.provider import ProviderIdentity
from channels_app.sign_in.provider_links import link
from pushsvc.common.console.admin import SignInForm
from pushsvc.common.errors import TooManyRequests, Unavailable
from pushsvc.common.http.client_address import counted_address, counted_ip
from pushsvc.common.http.handlers import is_console
from pushsvc.common.http.ratelimit import Limit, enforce
from pushsvc.common.passwords import hashing_for


class AddressLimit:
    """The first backend. It refuses an address that made too many attempts.

    It also counts successful attempts, and proofs on users' own pages.
    """

    def authenticate(self, request: HttpRequest | None, **_credentials: Any) -> None:
        """Raises TooManyRequests."""
        if request is not None:
            quota = settings.SIGN_INS_PER_MINUTE
            enforce(Limit("sign-ins", counted_address(request), quota, 60))


_MAX_NAME: Final = 150  # as in User
_PROVIDER_VOUCHES: Final = "provider_vouches"


class StaffBackend(ModelBackend):
    """Users are staff. The answer does not say whether the password or the code was wrong."""

    @override
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        otp_token: str = "",
        provided: User | None = None,
        in_session: User | None = None,
        **kwargs: Any,
    ) -> User | None:
        """`provided`: the user for whom the sign-in provider vouches, instead of a password.
        `in_session`: a signed-in user without a password, for whom the code alone is enough."""
        if in_session is not None:
            return in_session if two_step.verify(user=in_session, code=otp_token) else None
        if provided is not None:
            user = provided if self.user_can_authenticate(provided) else None
        else:
            with hashing_for(counted_address(request) if request else ""):
                user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None or not needs_code(user, is_provided=provided is not None):
            return user
        device = two_step.verify(user=user, code=otp_token)
        if device is None:
            return None
        user.otp_device = device  # type: ignore[attr-defined] # django-otp notes it in the session
        return user

    @override
    def user_can_authenticate(self, user: User | AnonymousUser | None) -> bool:
        """Whether the user may sign in. Django also checks this at each request, so deactivating a
        user takes effect at once."""
        return super().user_can_authenticate(user) and bool(getattr(user, "is_staff", False))


def needs_code(user: User, *, is_provided: bool) -> bool:
    """Whether this service must ask the user for a code. False if the provider did so already."""
    return two_step.is_on(user) and not (is_provided and settings.OIDC_TRUST_SECOND_STEP)


def sign_in_provided(
    request: HttpRequest, user: User, identity: ProviderIdentity, code: str = ""
) -> bool:
    """Signs in a user for whom the provider vouches, and links user and identity. Returns False if
    the code is wrong, or the user is locked out or deactivated. Wrong codes count towards the
    lock-out. Raises NobodyFound."""
    name = user.get_username()
    found = authenticate(request, username=name, provided=user, otp_token=code)
    if found is None:
        return False
    _link(found, identity)
    request.session.set_expiry(None)  # it may have been a visitor's
    login(request, found)
    request.session[_PROVIDER_VOUCHES] = True
    note = f"Signed in by {settings.OIDC_LABEL}."
    audit.record(found, audit.Action.ACCESS, note=note, actor=user)
    return True


@transaction.atomic
def _link(user: User, identity: ProviderIdentity) -> None:
    """Links user and identity. The first time, removes the password of a member who gave no code of
    two-step sign-in now, because whoever created the user may know the password. Raises
    NobodyFound."""
    is_own = user.is_superuser or hasattr(user, "otp_device")
    if not link(user=user, identity=identity) or is_own:
        return
    if user.has_usable_password():
        user.set_unusable_password()
        user.save(update_fields=["password"])
        note = "The password was removed at the first sign-in by the provider."
        audit.record(user, audit.Action.UPDATE, note=note, actor=user)


class ConsoleSignInForm(SignInForm):
    """Asks for name, password and code together, so that no answer reveals which was right."""

    error_messages = {
        "invalid_login": "The sign-in failed. Check the name, the password and, if you use "
        "two-step sign-in, the code. A code changes every 30 seconds and works once.",
        "inactive": "The sign-in failed.",
    }
    otp_token = forms.CharField(
        label="Code",
        required=False,
        max_length=32,
        help_text="If you use two-step sign-in: the code on your phone, or a recovery code.",
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        look = self.fields["username"].widget.attrs.get("class", "")
        self.fields["otp_token"].widget.attrs["class"] = look
        self.fields["username"].label = "User name"
        # Django's form checks this only in the browser. django-axes cannot store a longer name.
        self.fields["username"].validators.append(MaxLengthValidator(_MAX_NAME))

    @property
    def provider(self) -> str:
        """The name of the sign-in provider; empty if there is none."""
        return settings.OIDC_LABEL if settings.OIDC_ISSUER else ""

    @property
    def offers_links(self) -> bool:
        """Whether users who forgot their password can request a link."""
        return mails.is_on()

    @override
    def clean(self) -> dict[str, Any]:
        """Checks name, password and code. The fault is the same for all of them."""
        given = {name: self.cleaned_data.get(name, "") for name in ("username", "password")}
        token = self.cleaned_data.get("otp_token", "")
        if all(given.values()):
            self.user_cache = authenticate(self.request, **given, otp_token=token)
            if self.user_cache is None:
                raise self.get_invalid_login_error()
            audit.record(
                self.user_cache, audit.Action.ACCESS, note="Signed in.", actor=self.user_cache
            )
        return self.cleaned_data


class SecondStepMiddleware:
    """Ends sessions that began without a code, if the user now needs one. Users without a second
    step in an account that requires one can only set it up or sign out."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if is_console(request) and _lacks_code(request):
            need = two_step.need_of(request.user)  # type: ignore[arg-type] # signed in
            if need.is_on:
                logout(request)
            elif need.is_required and not _is_open_without_code(request.path_info):
                return HttpResponseRedirect(reverse("admin:two_step"))
        return self._get_response(request)


class UncheckedMiddleware:
    """Shows users why their attempt was not checked, and when to try again."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not (is_console(request) and isinstance(exception, TooManyRequests | Unavailable)):
            return None
        is_limited = isinstance(exception, TooManyRequests)
        context = {"wait": exception.headers["Retry-After"], "is_limited": is_limited}
        answer = render(request, "console/unchecked.html", context, status=exception.status)
        for name, value in exception.headers.items():
            answer.headers[name] = value
        answer.headers["Cache-Control"] = "no-store"
        return answer


def _lacks_code(request: HttpRequest) -> bool:
    """Whether the session began without a code, and without a provider that is trusted to ask for
    a code."""
    user: Any = request.user
    if not user.is_authenticated or user.is_verified():
        return False
    return not (settings.OIDC_TRUST_SECOND_STEP and request.session.get(_PROVIDER_VOUCHES))


def _is_open_without_code(path: str) -> bool:
    return path in {reverse("admin:two_step"), reverse("admin:logout")}


@transaction.atomic
def lockout_clear(*, attempt: AccessAttempt) -> None:
    """Ends the lock-out of this name at this address. Safe to repeat."""
    before = audit.fields_of(attempt)
    audit.record(attempt, audit.Action.DELETE, before, note="A lock-out was cleared.")
    AccessAttempt.objects.filter(username=attempt.username, ip_address=attempt.ip_address).delete()


def locked_out(
    request: HttpRequest, _answer: HttpResponseBase | None, credentials: dict[str, Any] | None
) -> HttpResponse:
    """The answer of django-axes after too many failures of a name and address: 429 with a wait."""
    name = (credentials or {}).get("username") or request.POST.get("username", "")
    wait = _wait(name, counted_ip(request))
    answer = render(request, "console/locked.html", {"minutes": ceil(wait / 60)}, status=429)
    answer.headers["Retry-After"] = str(wait)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _wait(name: str, address: str | None) -> int:
    """Seconds until the lock-out ends."""
    attempts = AccessAttempt.objects.filter(username=name, ip_address=address)
    latest = attempts.annotate(now=Now()).order_by("-attempt_time").first()
    whole: timedelta = settings.AXES_COOLOFF_TIME
    left = latest.attempt_time + whole - latest.now if latest else whole
    return max(1, ceil(left.total_seconds()))

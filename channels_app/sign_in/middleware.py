"""Sign-in: sessions without the second step, refused attempts, and the reader's language."""

from collections.abc import Callable
from datetime import timedelta
from math import ceil
from typing import Any, Final

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth import logout
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation

from channels_app import audit
from channels_app.console import access
from channels_app.sign_in import provider_links, two_step
from pushsvc.common.console.languages import reader_language
from pushsvc.common.errors import TooManyRequests, Unavailable
from pushsvc.common.http.client_address import counted_ip
from pushsvc.common.http.handlers import is_console

_SETS_IT_UP: Final = ("mfa_index", "mfa_activate_totp", "mfa_add_webauthn", "admin:logout")
_PROVES: Final = (
    "account_reauthenticate",
    "provider_start",
    "provider_callback",
    "provider_choice",
)


class SecondStepMiddleware:
    """Ends sessions that did not pass a second step, if the user has one. Users without a second
    step in an account that requires one can only set it up or sign out."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if is_console(request) and request.user.is_authenticated and not _is_trusted(request):
            need = two_step.need_of(request.user)
            access.keep_roles(request.user, need.roles)
            if not need.is_met(request):
                logout(request)
            elif need.is_required and not (need.steps or _sets_it_up(request)):
                return HttpResponseRedirect(reverse("mfa_index"))
        return self._get_response(request)


class ReaderMiddleware:
    """Shows the console in the reader's language. Shows users why their attempt was not checked,
    and when to try again."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_console(request):
            return self._get_response(request)
        with translation.override(reader_language(request)):
            return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not (is_console(request) and isinstance(exception, TooManyRequests | Unavailable)):
            return None
        is_limited = isinstance(exception, TooManyRequests)
        context = {"wait": exception.headers["Retry-After"], "is_limited": is_limited}
        response = render(request, "console/unchecked.html", context, status=exception.status)
        for name, value in exception.headers.items():
            response.headers[name] = value
        response.headers["Cache-Control"] = "no-store"
        return response


def _is_trusted(request: HttpRequest) -> bool:
    """Whether the session began at a provider that is trusted to require a second step."""
    return settings.OIDC_TRUST_SECOND_STEP and provider_links.vouches(request)


def _sets_it_up(request: HttpRequest) -> bool:
    path = request.path_info
    if path in {reverse(name) for name in _PROVES}:
        return provider_links.first_step_needs_proof(request)
    return path in {reverse(name) for name in _SETS_IT_UP}


@transaction.atomic
def lockout_clear(*, attempt: AccessAttempt) -> None:
    """Ends the lock-out of this name at this address. Safe to repeat."""
    before = audit.fields_of(attempt)
    audit.record(attempt, audit.Action.DELETE, before, note="A lock-out was cleared.")
    AccessAttempt.objects.filter(username=attempt.username, ip_address=attempt.ip_address).delete()


def locked_out(
    request: HttpRequest, _response: HttpResponseBase | None, credentials: dict[str, Any] | None
) -> HttpResponse:
    """The response after too many failures of a name and address: 429 with a wait."""
    wait = _wait((credentials or {}).get("username", ""), counted_ip(request))
    response = render(request, "console/locked.html", {"minutes": ceil(wait / 60)}, status=429)
    response.headers["Retry-After"] = str(wait)
    response.headers["Cache-Control"] = "no-store"
    return response


def _wait(name: str, address: str | None) -> int:
    """Seconds until the lock-out ends."""
    attempts = AccessAttempt.objects.filter(username=name, ip_address=address)
    latest = attempts.annotate(now=Now()).order_by("-attempt_time").first()
    whole: timedelta = settings.AXES_COOLOFF_TIME
    left = latest.attempt_time + whole - latest.now if latest else whole
    return max(1, ceil(left.total_seconds()))

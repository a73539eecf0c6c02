"""Signing in by the provider: the way there, the way back, and this service's own second step."""

import time
from dataclasses import asdict
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView, View
from typing_extensions import override

from channels_app.sign_in import provider
from channels_app.sign_in.admin.own import ProvenCodeForm
from channels_app.sign_in.console import needs_code, sign_in_provided
from channels_app.sign_in.provider import ProviderIdentity
from channels_app.sign_in.provider_links import NobodyFound, user_of
from pushsvc.common.console.admin import site
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.ratelimit import Limit, enforce

_WAITING: Final = "provider_user"
_CODE_SECONDS: Final = 300
_AWAY: Final = "It does not answer as it should. Try again later, or sign in with your password."
_REFUSED: Final = "Its answer was not accepted. It may be old or used. Start again."
_FAILED: Final = "Your user may not sign in now."


class ProviderView(View):
    """404 without a provider. Answers are never cached."""

    @method_decorator(never_cache)
    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not provider.is_on():
            raise Http404
        return super().dispatch(request, *args, **kwargs)


class StartView(ProviderView):
    """Sends the browser to the provider. Starts of an address are limited as sign-ins are, because
    each stores a session."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        quota = settings.SIGN_INS_PER_MINUTE
        enforce(Limit("provider-sign-ins", counted_address(request), quota, 60))
        try:
            address = provider.begin(request, next=request.GET.get("next", "")[:2_000])
        except provider.ProviderAway:
            return _failed(request, _AWAY, status=503)
        if not request.user.is_authenticated:
            request.session.set_expiry(provider.SIGN_IN_SECONDS)
        return HttpResponseRedirect(address)


class CallbackView(ProviderView):
    """Where the provider sends the browser back to."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        try:
            return self._continue(request, *provider.finish(request))
        except provider.ProviderAway:
            return _failed(request, _AWAY, status=503)
        except provider.AnswerRefused:
            return _failed(request, _REFUSED)
        except NobodyFound as error:
            return _failed(request, error.reason)

    def _continue(
        self, request: HttpRequest, identity: ProviderIdentity, kept: dict[str, Any]
    ) -> HttpResponseBase:
        """Raises NobodyFound."""
        user = user_of(identity)
        if needs_code(user, is_provided=True):
            until = time.time() + _CODE_SECONDS
            waiting = {"user": user.pk, "identity": asdict(identity), "until": until}
            request.session[_WAITING] = waiting | {"next": kept["next"]}
            return HttpResponseRedirect(reverse("admin:provider_code"))
        if not sign_in_provided(request, user, identity):
            return _failed(request, _FAILED)
        return HttpResponseRedirect(_safe(request, kept["next"]))


class CodeView(ProviderView, TemplateView):
    """Asks a user for whom the provider vouched for the own second step."""

    template_name = "console/own/provider_code.html"

    def post(self, request: HttpRequest) -> HttpResponseBase:
        waiting = self._waiting()
        form = ProvenCodeForm(request.POST)
        if waiting is None or not form.is_valid():
            return self.render_to_response(self.get_context_data(form=form), status=400)
        user = User.objects.get(pk=waiting["user"])
        identity = ProviderIdentity(**waiting["identity"])
        try:
            is_right = sign_in_provided(request, user, identity, form.cleaned_data["code"])
        except NobodyFound as error:
            return _failed(request, error.reason)
        if not is_right:
            form.add_error("code", "The code is wrong, or was used. Wait for the next one.")
            return self.render_to_response(self.get_context_data(form=form), status=400)
        request.session.pop(_WAITING, None)
        return HttpResponseRedirect(_safe(request, waiting["next"]))

    def _waiting(self) -> dict[str, Any] | None:
        waiting: dict[str, Any] | None = self.request.session.get(_WAITING)
        return waiting if waiting and waiting["until"] > time.time() else None

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", ProvenCodeForm())
        own = {"title": "Enter your code", "is_waiting": self._waiting() is not None}
        return site.each_context(self.request) | super().get_context_data(**kwargs) | own


def _safe(request: HttpRequest, address: str) -> str:
    """The address, if it is one of this service."""
    is_own = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_own else reverse("admin:index")


def _failed(request: HttpRequest, reason: str, status: int = 403) -> HttpResponseBase:
    context = {"reason": reason, "label": settings.OIDC_LABEL}
    return render(request, "console/provider_failed.html", context, status=status)

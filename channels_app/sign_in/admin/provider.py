"""The pages of sign-in with a provider."""

import time
from dataclasses import asdict
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import prefetch_related_objects
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
from channels_app.sign_in.provider_links import NobodyFound, users_of
from pushsvc.common.console.admin import site
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.ratelimit import Limit, enforce

_WAITING: Final = "provider_user"
_CHOOSING: Final = "provider_users"
_STEP_SECONDS: Final = 300  # for the choice, and for the code
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
    """The page to which the provider sends the browser back."""

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
        users = users_of(identity)
        if len(users) == 1:
            return _entered(request, users[0], identity, kept["next"])
        request.session[_CHOOSING] = _step(identity, kept["next"])
        return HttpResponseRedirect(reverse("admin:provider_choice"))


class ChoiceView(ProviderView, TemplateView):
    """Asks a person whose verified address several users have which user to sign in as."""

    template_name = "console/own/provider_choice.html"

    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return super().dispatch(request, *args, **kwargs)
        except NobodyFound as error:
            return _failed(request, error.reason)

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Raises NobodyFound."""
        choosing, users = self._offered()
        chosen = [each for each in users if str(each.pk) == request.POST.get("user")]
        if choosing is None or not chosen:
            return self.render_to_response(self.get_context_data(), status=400)
        del request.session[_CHOOSING]
        identity = ProviderIdentity(**choosing["identity"])
        return _entered(request, chosen[0], identity, choosing["next"])

    def _offered(self) -> tuple[dict[str, Any] | None, list[User]]:
        """The sign-in that waits for the choice, and the current users. Raises NobodyFound."""
        choosing = _waiting(self.request, _CHOOSING)
        return choosing, users_of(ProviderIdentity(**choosing["identity"])) if choosing else []

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Raises NobodyFound."""
        _, users = self._offered()
        prefetch_related_objects(users, "memberships__account")
        own = {"title": "Choose your user", "users": users, "label": settings.OIDC_LABEL}
        return site.each_context(self.request) | super().get_context_data(**kwargs) | own


class CodeView(ProviderView, TemplateView):
    """Asks a user for whom the provider vouched for a code."""

    template_name = "console/own/provider_code.html"

    def post(self, request: HttpRequest) -> HttpResponseBase:
        waiting = _waiting(request, _WAITING)
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

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", ProvenCodeForm())
        is_waiting = _waiting(self.request, _WAITING) is not None
        own = {"title": "Enter your code", "is_waiting": is_waiting}
        return site.each_context(self.request) | super().get_context_data(**kwargs) | own


def _entered(
    request: HttpRequest, user: User, identity: ProviderIdentity, next_page: str
) -> HttpResponseBase:
    """Signs the user in, or asks for the code. Raises NobodyFound."""
    if needs_code(user, is_provided=True):
        request.session[_WAITING] = {"user": user.pk} | _step(identity, next_page)
        return HttpResponseRedirect(reverse("admin:provider_code"))
    if not sign_in_provided(request, user, identity):
        return _failed(request, _FAILED)
    return HttpResponseRedirect(_safe(request, next_page))


def _step(identity: ProviderIdentity, next_page: str) -> dict[str, Any]:
    """What the session stores about a person for whom the provider vouched."""
    until = time.time() + _STEP_SECONDS
    return {"identity": asdict(identity), "until": until, "next": next_page}


def _waiting(request: HttpRequest, name: str) -> dict[str, Any] | None:
    """What the session stores under the name; None if it has expired."""
    waiting: dict[str, Any] | None = request.session.get(name)
    return waiting if waiting and waiting["until"] > time.time() else None


def _safe(request: HttpRequest, address: str) -> str:
    """The address if it belongs to this service, otherwise a safe default."""
    is_own = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_own else reverse("admin:index")


def _failed(request: HttpRequest, reason: str, status: int = 403) -> HttpResponseBase:
    context = {"reason": reason, "label": settings.OIDC_LABEL}
    return render(request, "console/provider_failed.html", context, status=status)

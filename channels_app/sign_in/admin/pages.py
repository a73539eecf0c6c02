"""The pages on which staff sign in and manage their own password and second steps.

They are django-allauth's views with the console's look. allauth finds them by the names of their
routes. Its other pages are not served.
"""

from functools import partial
from typing import Any

from allauth.account.views import (
    LoginView,
    PasswordChangeView,
    PasswordResetDoneView,
    PasswordResetFromKeyView,
    PasswordResetView,
    ReauthenticateView,
)
from allauth.mfa.base.views import AuthenticateView, IndexView
from allauth.mfa.base.views import ReauthenticateView as CodeReauthenticateView
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView, ViewRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.views import (
    AddWebAuthnView,
    LoginWebAuthnView,
    ReauthenticateWebAuthnView,
    RemoveWebAuthnView,
)
from allauth.socialaccount.helpers import complete_social_login
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.conf import settings
from django.db import transaction
from django.db.models import prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, re_path, reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView, View
from django.views.generic.base import ContextMixin
from typing_extensions import override

from channels_app.sign_in import mails, provider_links, two_step
from channels_app.sign_in.backend import count_attempt
from channels_app.sign_in.provider import Provider, failed, refuse
from channels_app.sign_in.provider_http import Failed
from pushsvc.common.console.admin import site
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.ratelimit import Limit, enforce
from pushsvc.common.texts import later

_VISIT_SECONDS = 600  # how long the session of a visitor lasts who has begun to sign in


class Page(ContextMixin, View):
    """The context of the console's pages, for a view of allauth."""

    title: str

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        own = {
            "title": self.title,
            "has_heading": True,
            "offers_mails": mails.is_on(),
            "provider": settings.OIDC_LABEL if settings.OIDC_ISSUER else "",
        }
        return site.each_context(self.request) | context | own


class SignInView(LoginView):
    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated:
            return HttpResponseRedirect(self.get_authenticated_redirect_url())
        return super().dispatch(request, *args, **kwargs)


class PasskeySignIn(LoginWebAuthnView):
    """A sign-in by a passkey alone: GET is what the browser signs, as JSON, and POST the result."""

    @method_decorator(never_cache)
    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        count_attempt(request)
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        if request.user.is_authenticated:
            request.session.set_expiry(None)
        elif request.session.modified:
            request.session.set_expiry(_VISIT_SECONDS)
        return response


class ForgotView(PasswordResetView):
    """Neither the response nor its time reveals whether a user has the address. 404 unless mails
    are on."""

    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not mails.is_on():
            raise Http404
        if request.method == "POST":
            quota = settings.RESET_REQUESTS_PER_HOUR
            enforce(Limit("reset-requests", counted_address(request), quota, 3600))
        return super().dispatch(request, *args, **kwargs)


class SetPasswordView(PasswordResetFromKeyView):
    """The page that a link to set a password opens. Its user need not be signed in."""

    success_url = reverse_lazy("account_login")


@method_decorator(transaction.atomic, name="post")
class OwnPasswordView(PasswordChangeView):
    """In one transaction, so that a code is used up only if the password is changed."""


class StepsView(IndexView):
    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        need = two_step.need_of(self.request.user)
        return {**super().get_context_data(**kwargs), "is_required": need.is_required}


class RemovePasskeyView(RemoveWebAuthnView):
    success_url = reverse_lazy("mfa_index")


class ProviderView(View):
    """404 without a provider. Responses are never cached."""

    @method_decorator(never_cache)
    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.OIDC_ISSUER:
            raise Http404
        return super().dispatch(request, *args, **kwargs)


class StartView(ProviderView):
    """Sends the browser to the provider. Starts of an address are limited as sign-ins are, because
    each stores a session. Who is signed in must prove themselves there, even with a session of the
    provider."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        quota = settings.SIGN_INS_PER_MINUTE
        enforce(Limit("provider-sign-ins", counted_address(request), quota, 60))
        proof = {}
        if request.user.is_authenticated:
            most = str(settings.ACCOUNT_REAUTHENTICATION_TIMEOUT)
            asked = {"prompt": "login", "max_age": most}
            proof = {"auth_params": asked, "is_proof": True}
        else:
            request.session.set_expiry(_VISIT_SECONDS)
        provider = Provider(request)
        next_url = provider.get_redirect_from_request_kwargs(request).get("next_url")
        try:
            response: HttpResponseBase = provider.redirect(request, "login", next_url, **proof)
        except Failed as error:
            refuse(request, error)
        return response


class CallbackView(ProviderView):
    """The page to which the provider sends the browser back."""

    def get(self, request: HttpRequest) -> HttpResponse:
        adapter = Provider(request).get_oauth2_adapter(request)
        try:
            response: HttpResponse = OAuth2CallbackView.adapter_view(adapter)(request)
        except Failed as error:  # of the metadata, which allauth reads before it expects errors
            refuse(request, error)
        return response


class ChoiceView(ProviderView, TemplateView):
    """Asks a person whose verified address several users have which user to sign in as."""

    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return super().dispatch(request, *args, **kwargs)
        except provider_links.NobodyFound as error:
            return failed(request, error.reason)

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Raises NobodyFound."""
        sign_in, users = self._offered()
        chosen = request.POST.get("user", "")
        if chosen not in {str(user.pk) for user in users}:
            return self.render_to_response(self.get_context_data(), status=400)
        provider_links.forget_choice(request)
        sign_in.state["chosen"] = chosen
        response: HttpResponseBase = complete_social_login(request, sign_in)
        return response

    def _offered(self) -> tuple[Any, list[Any]]:
        """The sign-in that waits for the choice, and the current users. Raises NobodyFound."""
        waiting = provider_links.waiting_choice(self.request)
        if waiting is None:
            return None, []
        provider = Provider(self.request)
        response = {"id_token": waiting["identity"]}
        sign_in = provider.sociallogin_from_response(self.request, response)
        sign_in.state = {"process": "login", "next": waiting["next"]}
        return sign_in, provider_links.users_of(sign_in.account)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Raises NobodyFound."""
        _, users = self._offered()
        prefetch_related_objects(users, "memberships__account")
        return super().get_context_data(users=users, **kwargs)


def _page(
    route: str, name: str, view: type[View], title: str, *, is_own: bool = True
) -> URLPattern:
    """A view of allauth with the console's look. `is_own`: only for those who are signed in."""
    own = {"title": title, "template_name": f"sign_in/{name}.html"}
    shown = type(view.__name__, (Page, view), own).as_view()  # type: ignore[attr-defined] # a view
    guarded: Any = site.admin_view(shown) if is_own else never_cache(shown)
    pattern: URLPattern = re_path(f"^{route}$", guarded, name=name)
    return pattern


_visitors = partial(_page, is_own=False)
_LINK = "auth/user/set-password/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/"
_FORGOT = "auth/user/forgot-password/"
_STEPS = "auth/user/two-step/"
_PROVIDER = "auth/user/provider/"
_PASSKEY = rf"{_STEPS}passkey/(?P<pk>[0-9]{{1,18}})/"
_PROOF = f"{_STEPS}proof/passkey/"
_FORGOTTEN = later("Forgot your password?")
_CHANGE = later("Change password")
_PROVE = later("Confirm that it is you")
_CODES = later("Recovery codes")

urlpatterns = [
    _visitors("login/", "account_login", SignInView, later("Sign in")),
    path("login/passkey/", PasskeySignIn.as_view(), name="mfa_login_webauthn"),
    _visitors(
        "login/second-step/", "mfa_authenticate", AuthenticateView, later("Two-step sign-in")
    ),
    _visitors(_FORGOT, "account_reset_password", ForgotView, _FORGOTTEN),
    _visitors(f"{_FORGOT}sent/", "account_reset_password_done", PasswordResetDoneView, _FORGOTTEN),
    _visitors(
        _LINK, "account_reset_password_from_key", SetPasswordView, later("Choose a password")
    ),
    _page("password_change/", "account_change_password", OwnPasswordView, _CHANGE),
    _page("password_change/none/", "account_set_password", TemplateView, _CHANGE),
    _page(_STEPS, "mfa_index", StepsView, later("Two-step sign-in")),
    _page(
        f"{_STEPS}app/", "mfa_activate_totp", ActivateTOTPView, later("Set up an authenticator app")
    ),
    _page(
        f"{_STEPS}app/remove/", "mfa_deactivate_totp", DeactivateTOTPView, later("Remove the app")
    ),
    _page(f"{_STEPS}passkey/", "mfa_add_webauthn", AddWebAuthnView, later("Add a passkey")),
    _page(_PASSKEY, "mfa_remove_webauthn", RemovePasskeyView, later("Remove the passkey")),
    _page(f"{_STEPS}codes/", "mfa_view_recovery_codes", ViewRecoveryCodesView, _CODES),
    _page(f"{_STEPS}codes/new/", "mfa_generate_recovery_codes", GenerateRecoveryCodesView, _CODES),
    _page(f"{_STEPS}proof/", "account_reauthenticate", ReauthenticateView, _PROVE),
    _page(f"{_STEPS}proof/code/", "mfa_reauthenticate", CodeReauthenticateView, _PROVE),
    _page(_PROOF, "mfa_reauthenticate_webauthn", ReauthenticateWebAuthnView, _PROVE),
    path(_PROVIDER, StartView.as_view(), name="provider_start"),
    path(f"{_PROVIDER}callback/", CallbackView.as_view(), name="provider_callback"),
    _visitors(f"{_PROVIDER}choice/", "provider_choice", ChoiceView, later("Choose your user")),
]

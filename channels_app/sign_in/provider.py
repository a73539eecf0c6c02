"""Sign-in with a provider of OpenID Connect: the protocol, stricter than django-allauth's.

allauth keeps state and PKCE in the browser's session: each start has its own, for ten minutes and
one response. This module adds the nonce, and checks the issuer's metadata, the issuer in the
response (RFC 9207), the signature of the identity token with the issuer's public keys, and its
claims.
"""

from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import jwt
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Client, OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.sign_in.provider_http import Failed, ProviderSession

_LEEWAY_SECONDS: Final = 60
_SUBJECT_CHARACTERS: Final = 191  # as many as the table of allauth stores
# Signatures with the provider's private keys: neither "none" nor the client's secret.
_ALGORITHMS: Final = frozenset(
    f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)
) | {"EdDSA"}
_MALFORMED: Final = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    StopIteration,  # the provider does not list the token's key
    jwt.PyJWTError,
)


class ResponseRefused(OAuth2Error):
    """The provider's response, or the browser's, is forged, late, or malformed."""


class _Client(OAuth2Client):
    @override
    def get_redirect_url(self, url: str, scope: list[str], parameters: dict[str, str]) -> str:
        parameters = parameters | {"nonce": _nonce(self.state)}
        return str(super().get_redirect_url(url, scope, parameters))


class _Adapter(OpenIDConnectOAuth2Adapter):
    client_class = _Client

    @property
    @override
    def openid_config(self) -> dict[str, Any]:
        """The provider's metadata (OpenID Connect Discovery, section 4). Raises Failed."""
        if not hasattr(self, "_openid_config"):
            address = f"{settings.OIDC_ISSUER.rstrip('/')}/.well-known/openid-configuration"
            self._openid_config = _checked(_read(address))
        return self._openid_config

    @property
    @override
    def basic_auth(self) -> bool:
        methods = self.openid_config.get("token_endpoint_auth_methods_supported")
        return methods is None or "client_secret_basic" in methods

    @override
    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return f"{settings.PUBLIC_BASE_URL}{reverse('provider_callback')}"

    @override
    def get_access_token_data(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        """The provider's response to the code. Raises ResponseRefused or Failed."""
        named = request.GET.get("iss")
        if named is None and self.openid_config.get(
            "authorization_response_iss_parameter_supported"
        ):
            raise ResponseRefused
        if named not in {None, settings.OIDC_ISSUER}:
            raise ResponseRefused
        try:
            response = super().get_access_token_data(request, *args, **options)
            return {name: str(response[name]) for name in ("access_token", "id_token")}
        except _MALFORMED as error:
            _reraise(error)

    @override
    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **options: Any
    ) -> Any:
        """The person for whom the provider vouches. Raises ResponseRefused or Failed."""
        try:
            claims = self._claims(request, options["response"]["id_token"])
            entered_at = claims.get("auth_time")
            if "email" not in claims and self.openid_config.get("userinfo_endpoint"):
                claims = self._userinfo(claims["sub"], token.token)
            identity = _identity(claims)
            if isinstance(entered_at, int):
                identity["auth_time"] = entered_at
        except _MALFORMED as error:
            _reraise(error)
        return self.get_provider().sociallogin_from_response(request, {"id_token": identity})

    def _claims(self, request: HttpRequest, id_token: str) -> dict[str, Any]:
        offered = self.openid_config.get("id_token_signing_alg_values_supported") or ["RS256"]
        algorithms = sorted(_ALGORITHMS.intersection(map(str, offered)))
        keys = jwt.PyJWKSet.from_dict(_read(self.openid_config["jwks_uri"])).keys
        key_id = jwt.get_unverified_header(id_token).get("kid")
        key = next(key for key in keys if key_id in {None, key.key_id})
        claims: dict[str, Any] = jwt.decode(
            id_token,
            key.key,
            algorithms=algorithms,
            audience=settings.OIDC_CLIENT_ID,
            issuer=settings.OIDC_ISSUER,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["iss", "sub", "aud", "exp", "iat", "nonce"]},
        )
        if not constant_time_compare(claims["nonce"], _nonce(request.GET["state"])):
            raise ValueError("the token belongs to another start")
        if claims.get("azp", settings.OIDC_CLIENT_ID) != settings.OIDC_CLIENT_ID:
            raise ValueError("the token is for another client")
        return claims

    def _userinfo(self, subject: str, token: str) -> dict[str, Any]:
        """The claims of userinfo, because many providers give the e-mail address only there (OpenID
        Connect Core, section 5.4). The token's claims do not apply to this address."""
        claims = _read(self.openid_config["userinfo_endpoint"], Authorization=f"Bearer {token}")
        if claims["sub"] != subject:  # section 5.3.2
            raise ValueError("userinfo is about somebody else")
        return claims


class Provider(OpenIDConnectProvider):
    """The installation's one provider, of the settings."""

    oauth2_adapter_class = _Adapter
    pkce_enabled_default = True

    def __init__(self, request: HttpRequest) -> None:
        app = SocialApp(
            provider=self.id,
            provider_id=settings.OIDC_ISSUER,
            name=settings.OIDC_LABEL,
            client_id=settings.OIDC_CLIENT_ID,
            secret=settings.OIDC_CLIENT_SECRET,
            settings={"scope": ["openid", "email"]},
        )
        super().__init__(request, app=app)


def failed(request: HttpRequest, reason: str, status: int = 403) -> HttpResponseBase:
    """The page that says why a sign-in with the provider failed."""
    context = {"reason": reason, "label": settings.OIDC_LABEL}
    return render(request, "console/provider_failed.html", context, status=status)


def refuse(request: HttpRequest, error: Exception | None) -> NoReturn:
    """Ends the sign-in with a page. Raises ImmediateHttpResponse."""
    if isinstance(error, Failed):
        text = gettext(
            "It does not respond as it should. Try again later, or sign in with your password."
        )
        raise ImmediateHttpResponse(failed(request, text, status=503))
    text = gettext("Its response was not accepted. It may be old or used. Start again.")
    raise ImmediateHttpResponse(failed(request, text))


def _reraise(error: Exception) -> NoReturn:
    if isinstance(error, Failed):  # some are also a ValueError
        raise error
    raise ResponseRefused from error


def _nonce(state: str) -> str:
    """The nonce of the start with this state, which the browser's session stores."""
    return salted_hmac("channels_app.sign_in.provider.nonce", state, algorithm="sha256").hexdigest()


def _read(address: str, **headers: str) -> dict[str, Any]:
    """Reads a JSON object from the provider. Raises Failed."""
    with ProviderSession() as session:
        response = session.get(address, headers=headers)
    response.raise_for_status()
    try:
        document = response.json()
    except RecursionError as error:
        raise Failed("the document is nested too deeply") from error
    if not isinstance(document, dict):
        raise Failed("the document is not a JSON object")
    return document


def _checked(metadata: dict[str, Any]) -> dict[str, Any]:
    places = [metadata.get(name) for name in ("authorization_endpoint", "token_endpoint")]
    schemes = {urlsplit(str(place)).scheme for place in [*places, metadata.get("jwks_uri")]}
    if metadata.get("issuer") != settings.OIDC_ISSUER:
        raise Failed("the metadata is of another issuer")
    if schemes != {urlsplit(settings.OIDC_ISSUER).scheme}:
        raise Failed("the metadata has odd addresses")
    return metadata


def _identity(claims: dict[str, Any]) -> dict[str, Any]:
    """The claims that count. `email` is there only if the provider verified it."""
    subject, email = claims["sub"], claims.get("email")
    if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_CHARACTERS:
        raise ValueError("no subject that can be stored")
    if not subject.isprintable():
        raise ValueError("an odd subject")
    is_verified = claims.get("email_verified") is True and isinstance(email, str)
    return {"sub": subject} | ({"email": email, "email_verified": True} if is_verified else {})

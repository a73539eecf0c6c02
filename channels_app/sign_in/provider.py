"""Sign-in with a provider of OpenID Connect (authorization code flow with PKCE), using Authlib.

An installation has one provider. Authlib checks state, nonce, signature and times; this module also
checks the issuer, that the client is the audience, and that signatures use public keys. The
browser's session stores what an answer must match, once. Authlib is imported at the first sign-in.
"""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

if TYPE_CHECKING:
    from authlib.integrations.django_client import DjangoOAuth2App

SIGN_IN_SECONDS: Final = 600  # from the start of a sign-in to the provider's answer
_LEEWAY_SECONDS: Final = 60
_SUBJECT_CHARACTERS: Final = 255  # OpenID Connect Core, section 2
# Signatures with the provider's private keys: neither "none" nor the client's secret.
_ALGORITHMS: Final = frozenset(
    f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)
) | {"EdDSA", "Ed25519"}
_STATE: Final = "_state_provider_"


class ProviderAway(Exception):
    """The provider cannot be reached, or its answer is not valid."""


class AnswerRefused(Exception):
    """The browser's answer from the provider is forged, late, already used, or a denial."""


@dataclass(frozen=True, slots=True)
class ProviderIdentity:
    """The person for whom the provider vouches. `email` is empty unless the provider verified
    it."""

    issuer: str
    subject: str
    email: str


def is_on() -> bool:
    return bool(settings.OIDC_ISSUER)


def begin(request: HttpRequest, **kept: Any) -> str:
    """Begins a sign-in and returns the address of the provider for the browser. `finish` returns
    `kept`. Raises ProviderAway."""
    app = _app()
    here = f"{settings.PUBLIC_BASE_URL}{reverse('admin:provider_callback')}"
    begun = app.create_authorization_url(here)
    for name in [name for name in request.session.keys() if name.startswith(_STATE)]:  # noqa: SIM118
        del request.session[name]
    app.save_authorize_data(
        request, redirect_uri=here, kept=kept, until=time.time() + SIGN_IN_SECONDS, **begun
    )
    return str(begun["url"])


def finish(request: HttpRequest) -> tuple[ProviderIdentity, dict[str, Any]]:
    """Returns the person for whom the provider vouches, and what `begin` kept. Works once for each
    `begin`; without one, it does not call the provider. Raises ProviderAway or AnswerRefused."""
    state = f"{_STATE}{request.GET.get('state', '')}"
    if state not in request.session:
        raise AnswerRefused
    try:
        return _answered(request)
    finally:
        request.session.pop(state, None)
        request.session.save()  # Django saves no session with an answer of 5xx


def _answered(request: HttpRequest) -> tuple[ProviderIdentity, dict[str, Any]]:
    """Raises ProviderAway or AnswerRefused."""
    from authlib.integrations.base_client import OAuthError
    from joserfc.errors import JoseError

    from channels_app.sign_in.provider_http import Failed

    app = _app()
    kept = _checked_state(app, request)
    try:
        token = app.authorize_access_token(
            request, claims_options=_expected(), leeway=_LEEWAY_SECONDS
        )
        claims = token.get("userinfo") or {}
        if claims and "email" not in claims and app.server_metadata.get("userinfo_endpoint"):
            claims = _with_userinfo(app, token, claims)
    except Failed as error:
        raise ProviderAway from error
    except (OAuthError, JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        app.server_metadata.pop("jwks", None)  # the provider's keys may have changed
        raise AnswerRefused from error
    return _identity(claims), kept


def _checked_state(app: "DjangoOAuth2App", request: HttpRequest) -> dict[str, Any]:
    """What `begin` kept, if this answer belongs to it. Raises AnswerRefused."""
    data = app.framework.get_state_data(request.session, request.GET["state"])
    if data["until"] < time.time() or not _is_from_issuer(app, request):
        raise AnswerRefused
    kept: dict[str, Any] = data["kept"]
    return kept


def _is_from_issuer(app: "DjangoOAuth2App", request: HttpRequest) -> bool:
    """Whether the answer names the issuer. Required if the provider's metadata says that its
    answers name it (RFC 9207)."""
    named = request.GET.get("iss")
    if named is None:
        return not app.server_metadata["names_issuer"]
    return named == settings.OIDC_ISSUER


def _expected() -> dict[str, Any]:
    return {
        "iss": {"essential": True, "value": settings.OIDC_ISSUER},
        "aud": {"essential": True, "value": settings.OIDC_CLIENT_ID},
    }


def _with_userinfo(app: "DjangoOAuth2App", token: Any, claims: Any) -> dict[str, Any]:
    """The claims with those of userinfo, because many providers give the e-mail address only there
    (OpenID Connect Core, section 5.4)."""
    more = app.userinfo(token=token)
    if more.get("sub") != claims["sub"]:  # section 5.3.2
        raise ValueError("userinfo is about somebody else")
    return {**more, **claims}


def _identity(claims: Any) -> ProviderIdentity:
    """Raises AnswerRefused."""
    subject, email = claims.get("sub"), claims.get("email")
    if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_CHARACTERS:
        raise AnswerRefused
    if not subject.isprintable():
        raise AnswerRefused
    is_verified = claims.get("email_verified") is True and isinstance(email, str)
    return ProviderIdentity(settings.OIDC_ISSUER, subject, email if is_verified else "")


def _app() -> "DjangoOAuth2App":
    """Raises ProviderAway."""
    return _app_of(
        settings.OIDC_ISSUER,
        settings.OIDC_CLIENT_ID,
        settings.OIDC_CLIENT_SECRET,
        settings.PROVIDER_CA_FILE,
    )


@lru_cache(maxsize=1)
def _app_of(issuer: str, client_id: str, secret: str, _ca_file: str) -> "DjangoOAuth2App":
    """Cached until the process ends, with the provider's keys. Failures are not cached."""
    from authlib.integrations.django_client import DjangoIntegration, DjangoOAuth2App

    from channels_app.sign_in.provider_http import ProviderSession

    class App(DjangoOAuth2App):  # type: ignore[misc] # no types
        client_cls = ProviderSession

    metadata = _metadata(issuer)
    methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    is_basic = "client_secret_basic" in methods
    return App(
        DjangoIntegration("provider"),
        name="provider",
        client_id=client_id,
        client_secret=secret,
        authorize_url=metadata["authorization_endpoint"],
        access_token_url=metadata["token_endpoint"],
        client_kwargs={
            "scope": "openid email",
            "code_challenge_method": "S256",
            "token_endpoint_auth_method": "client_secret_basic"
            if is_basic
            else "client_secret_post",
        },
        issuer=issuer,
        jwks_uri=metadata["jwks_uri"],
        userinfo_endpoint=metadata.get("userinfo_endpoint"),
        names_issuer=metadata.get("authorization_response_iss_parameter_supported") is True,
        id_token_signing_alg_values_supported=_algorithms(metadata),
    )


def _metadata(issuer: str) -> dict[str, Any]:
    """Reads the provider's metadata (OpenID Connect Discovery, section 4). Raises ProviderAway."""
    from channels_app.sign_in.provider_http import Failed, ProviderSession

    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        with ProviderSession() as session:
            answer = session.request("GET", address, withhold_token=True)
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
        places = [found[f"{name}"] for name in ("authorization_endpoint", "token_endpoint")]
        schemes = {urlsplit(place).scheme for place in [*places, found["jwks_uri"]]}
        if found["issuer"] != issuer or schemes != {urlsplit(issuer).scheme}:
            raise ValueError("the document is about another issuer")
    except (Failed, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ProviderAway from error
    return found


def _algorithms(metadata: dict[str, Any]) -> list[str]:
    offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
    return sorted(_ALGORITHMS.intersection(map(str, offered)))

"""A channel's Identity tab: identity keys, and a test of identity tokens."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import jwt
from django.contrib import messages
from django.http import Http404, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ActsPage, id_or_404, require
from channels_app.identity_keys import MOST_KEYS, identity_key_create, identity_key_retire
from channels_app.models import Identity, Role
from channels_app.selectors import identity_keys
from pushsvc.common.console.figures import moment
from pushsvc.common.errors import Conflict, NotFound, PushsvcError, Unavailable
from pushsvc.common.texts import later
from subscriptions_app.people.proof import identity_token_check

_SHOWN = ("alg", "kid", "sub", "aud", "exp")


class IdentityPage(TabPage, ActsPage):
    """Every user who may see the channel may test a token. Managers change keys."""

    title = later("Identity")
    template_name = "console/channels/identity.html"
    tab = "channel_identity"

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {
            "secret": self._make_secret,
            "public": self._add_public_key,
            "retire": self._retire,
            "test": self._test,
        }

    @override
    def own_url(self) -> str:
        return reverse("admin:channel_identity", args=[self.channel.pk])

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            keys=identity_keys(self.channel.pk),
            most_keys=MOST_KEYS,
            setting=Identity(self.channel.identity),
            **kwargs,
        )

    def _make_secret(self, post: QueryDict) -> HttpResponseBase:
        """Creates a key. Shows its secret in this response, because a redirect would store it."""
        self._require_manager()
        try:
            key, secret = identity_key_create(channel=self.channel, public_key=None)
        except Conflict as error:
            return self._failed(error)
        return self.shown_once(made=key, secret=secret)

    def _add_public_key(self, post: QueryDict) -> HttpResponseBase:
        self._require_manager()
        try:
            identity_key_create(channel=self.channel, public_key=post.get("public_key", ""))
        except Conflict as error:
            return self._failed(error)
        return self.back(
            gettext("The public key was added. Tokens of its private key are accepted now.")
        )

    def _retire(self, post: QueryDict) -> HttpResponseBase:
        self._require_manager()
        key_id = id_or_404(post.get("key", ""))
        try:
            identity_key_retire(channel_id=self.channel.pk, identity_key_id=key_id)
        except NotFound as error:
            raise Http404 from error
        return self.back(gettext("The key was retired. Its tokens link no device any more."))

    def _test(self, post: QueryDict) -> HttpResponseBase:
        """Shows the token in this response only, because whoever has it can act as the user."""
        token = post.get("token", "").strip()
        try:
            judgement = identity_token_check(self.channel, token)
        except Unavailable as error:
            return self._failed(error)
        return self.shown_once(judgement=judgement, claims=_claims(token), tested=token)

    def _failed(self, error: PushsvcError) -> HttpResponseBase:
        messages.error(self.request, error.detail)
        return HttpResponseRedirect(self.own_url())

    def _require_manager(self) -> None:
        require(self.may(Role.MANAGER), Role.MANAGER)


def _claims(token: str) -> dict[str, str]:
    """The claims of the token, without a check of its signature."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
        found = jwt.get_unverified_header(token) | claims
    except (jwt.PyJWTError, ValueError):
        return {}
    return {name: _shown(name, found[name]) for name in _SHOWN if name in found}


def _shown(name: str, value: object) -> str:
    if name != "exp" or not isinstance(value, int):
        return str(value).encode(errors="replace").decode()  # half of a surrogate pair is no text
    try:
        return moment(datetime.fromtimestamp(value, UTC), "seconds")
    except (ValueError, OverflowError, OSError):
        return str(value)

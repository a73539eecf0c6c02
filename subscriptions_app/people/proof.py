"""Whether a channel believes that a device belongs to a person."""

from typing import Final, NamedTuple

import structlog
from rest_framework.exceptions import ValidationError

from channels_app.models import Channel, Identity, IdentityKey
from channels_app.selectors import recent_identity_keys
from pushsvc.common.errors import Unavailable
from pushsvc.common.store.crypto import SecretUnreadable, decrypt
from subscriptions_app.errors import IdentityOff, IdentityRefused
from subscriptions_app.people.fields import ExternalId
from subscriptions_app.people.identity_tokens import Broken, TokenCheck, VerifyingKey, token_check

logger = structlog.stdlib.get_logger(__name__)

# The result for a token whose own key was not tried.
_UNTRIED: Final = {Broken.NO_KEY, Broken.UNKNOWN_KEY, Broken.SIGNATURE}
_REMEDY: Final = "restore the key in CREDENTIAL_KEYS"
# Only the owner's staff may learn why a signature is invalid.
_FORGED: Final = {Broken.TOO_LONG, Broken.MALFORMED, Broken.UNKNOWN_KEY, Broken.SIGNATURE}


class Login(NamedTuple):
    """The person to whom a device claims to belong. `external_id` None: to no person. `token`: the
    proof."""

    external_id: str | None
    token: str | None = None


def check_login(channel: Channel, login: Login | None) -> None:
    """Raises IdentityOff for a sign-in if the channel links no devices."""
    if login and login.external_id is not None and channel.identity == Identity.OFF:
        raise IdentityOff


def login_refusal(channel: Channel, login: Login) -> str | None:
    """Why the login is not proven, as a text for the client. None: it is proven, or needs no
    proof."""
    if login.external_id is None or channel.identity == Identity.TRUST:
        return None
    broken = identity_token_check(channel, login.token, external_id=login.external_id).broken
    return None if broken is None else refusal_words(broken)


def proven_person(channel: Channel, token: str) -> str:
    """The external id that the token proves. Raises IdentityOff, IdentityRefused."""
    if channel.identity == Identity.OFF:
        raise IdentityOff
    broken, subject = identity_token_check(channel, token)
    if broken is not None:
        raise IdentityRefused(refusal_words(broken))
    try:
        return str(ExternalId().run_validation(subject))
    except ValidationError as error:
        raise IdentityRefused("`sub` is no external id.") from error


def identity_token_check(
    channel: Channel, token: str | None, *, external_id: str | None = None
) -> TokenCheck:
    """Checks the token with the channel's keys in use. `external_id` None: `sub` may be any person.

    Raises Unavailable if the token may belong to a key whose secret cannot be decrypted. It is not
    refused, because clients do not repeat a refused sign-in."""
    live = recent_identity_keys(channel.pk)
    keys = [key for key in map(_verifying_key, live) if key is not None]
    judgement = token_check(token, keys=keys, channel_id=channel.pk, external_id=external_id)
    if len(keys) < len(live) and judgement.broken in _UNTRIED:
        raise Unavailable("A secret of the channel's identity keys cannot be decrypted.")
    return judgement


def refusal_words(broken: Broken) -> str:
    """The text for clients."""
    return Broken.SIGNATURE.words if broken in _FORGED else broken.words


def _verifying_key(key: IdentityKey) -> VerifyingKey | None:
    """The key to verify with. None if CREDENTIAL_KEYS lacks the key of its secret."""
    try:
        material = decrypt(key.secret_encrypted) if key.secret_encrypted else key.public_key
    except SecretUnreadable:
        logger.error("credentials.unreadable", remedy=_REMEDY)
        return None
    return VerifyingKey(key.pk, key.algorithm, material)

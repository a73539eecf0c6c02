"""Creates and retires identity keys, with which an owner's backend signs identity tokens."""

import secrets
from typing import Final
from uuid import UUID

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel, IdentityKey
from channels_app.provider_credentials import clean_pem
from channels_app.selectors import identity_keys, recent_forget
from pushsvc.common import base64url
from pushsvc.common.errors import Conflict, FieldError, Invalid, NotFound
from pushsvc.common.store.crypto import encrypt
from pushsvc.common.texts import later

MOST_KEYS: Final = 4  # in use at once; enough for a rotation in two programs
MOST_RETIRED: Final = 100  # that are kept, without their secrets
MAX_PEM: Final = 1_000
_SECRET_BYTES: Final = 32
_NOT_A_KEY: Final = later("Must be the PEM of a public key on the curve P-256.")


class TooManyIdentityKeys(Conflict):
    """A channel has MOST_KEYS identity keys in use."""

    code = "too_many_identity_keys"
    title = "Too many identity keys"
    detail = later("The channel has %(most)s identity keys. Delete one first.", most=MOST_KEYS)


def identity_key_create(*, channel: Channel, public_key: str | None) -> tuple[IdentityKey, str]:
    """Creates a key. Returns it with its secret, which cannot be shown again. With a `public_key`
    (PEM) it is an ES256 key without a secret. Raises Invalid, TooManyIdentityKeys."""
    if public_key is None:
        secret = f"psi_{base64url.encode(secrets.token_bytes(_SECRET_BYTES))}"
        return _store(channel, algorithm="HS256", secret_encrypted=encrypt(secret)), secret
    return _store(channel, algorithm="ES256", public_key=_checked_pem(public_key)), ""


@transaction.atomic
def identity_key_retire(*, channel_id: UUID, identity_key_id: UUID) -> None:
    """Retires the key: its tokens are refused, and its secret is deleted. Raises NotFound."""
    live = IdentityKey.objects.filter(channel_id=channel_id, retired_at__isnull=True)
    key = live.select_for_update(no_key=True).filter(pk=identity_key_id).first()
    if key is None:
        raise NotFound(gettext("The channel has no such identity key."))
    before = audit.fields_of(key)
    IdentityKey.objects.filter(pk=key.pk).update(retired_at=Now(), secret_encrypted="")
    key.refresh_from_db()
    note = "The identity key was retired."
    audit.record(key, audit.Action.UPDATE, before, audit.fields_of(key), note=note)
    transaction.on_commit(recent_forget)


@transaction.atomic
def _store(channel: Channel, **values: str) -> IdentityKey:
    Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
    if len(identity_keys(channel.pk)) >= MOST_KEYS:
        raise TooManyIdentityKeys
    retired = IdentityKey.objects.filter(channel=channel, retired_at__isnull=False)
    newest_first = retired.order_by("-retired_at", "-pk").values_list("pk", flat=True)
    retired.filter(pk__in=list(newest_first[MOST_RETIRED:])).delete()
    key = IdentityKey.objects.create(channel=channel, **values)
    audit.record(key, audit.Action.CREATE, after=audit.fields_of(key))
    transaction.on_commit(recent_forget)
    return key


def _checked_pem(text: str) -> str:
    if "PRIVATE KEY" in text:
        detail = gettext("This is a private key. Keep it to yourself, and send its public key.")
        raise Invalid([FieldError("public_key", "malformed", detail)])
    try:
        key = load_pem_public_key(clean_pem(text).encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Invalid([FieldError("public_key", "malformed", str(_NOT_A_KEY))]) from error
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise Invalid([FieldError("public_key", "malformed", str(_NOT_A_KEY))])
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

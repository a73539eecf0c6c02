"""VAPID keys that another push service or library used, so that its browsers can be sent to."""

import binascii
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel, VapidKey
from channels_app.provider_credentials import clean_pem
from channels_app.services import MOST_VAPID_KEYS, TooManyVapidKeys
from pushsvc.common import base64url
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.strict_json import MalformedJSON, loads_strict
from pushsvc.common.store.crypto import encrypt
from pushsvc.common.texts import later

MAX_PRIVATE_KEY: Final = 4_000
_FORMS: Final = later(
    "Must be a private key on P-256: 32 bytes as base64url, as `web-push generate-vapid-keys`"
    " prints it, the text of an unencrypted PEM file, or a JWK as a string."
)


def vapid_keys(channel_id: UUID) -> QuerySet[VapidKey]:
    """The channel's VAPID keys without their secrets: the current one, then the retired ones, the
    last retired first."""
    keys = VapidKey.objects.filter(channel_id=channel_id)
    return keys.defer("private_key_encrypted").order_by("-retired_at", "-id")  # NULL comes first


@transaction.atomic
def vapid_key_store(*, channel: Channel, private_key: str) -> VapidKey:
    """Stores a key pair of another service as a retired one, which serves the subscriptions that
    were made with it. A pair that the channel has stays as it is. Raises Invalid and
    TooManyVapidKeys."""
    key = parse_vapid_key(private_key)
    public = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    private = key.private_numbers().private_value.to_bytes(32, "big")
    Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
    own = VapidKey.objects.filter(channel=channel)
    public_key = base64url.encode(public)
    if stored := own.filter(public_key=public_key).first():
        return stored
    if own.count() >= MOST_VAPID_KEYS:
        raise TooManyVapidKeys
    made = VapidKey.objects.create(
        channel=channel,
        public_key=public_key,
        private_key_encrypted=encrypt(base64url.encode(private)),
        retired_at=Now(),
    )
    made.refresh_from_db(fields=["retired_at"])
    note = "A VAPID key of another service was stored."
    audit.record(made, audit.Action.CREATE, after=audit.fields_of(made), note=note)
    return made


def parse_vapid_key(text: str) -> ec.EllipticCurvePrivateKey:
    """Reads the forms that libraries for web push keep. Raises Invalid, which has nothing of the
    text."""
    text = text.strip()
    if text.startswith("-----"):
        return _from_pem(text)
    if text.startswith("{"):
        return _from_jwk(text)
    return _from_number(text)


def _from_pem(text: str) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(clean_pem(text).encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        if "PUBLIC KEY" in text.partition("\n")[0]:
            raise _refused(
                gettext("This is a public key. The private key of the pair is needed.")
            ) from None
        raise _refused(_FORMS) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise _refused(gettext("This is a private key of another kind. VAPID needs one on P-256."))
    return key


def _from_jwk(text: str) -> ec.EllipticCurvePrivateKey:
    try:
        jwk = loads_strict(text.encode())
    except MalformedJSON as error:
        raise Invalid([FieldError("private_key", "malformed_json", error.detail)]) from None
    if not isinstance(jwk, Mapping) or (jwk.get("kty"), jwk.get("crv")) != ("EC", "P-256"):
        raise _refused(gettext("A JWK must have kty EC and crv P-256. VAPID needs a key on P-256."))
    if not isinstance(jwk.get("d"), str):
        raise _refused(
            gettext("The JWK has no `d`, so it is a public key. The private key is needed.")
        )
    return _from_number(jwk["d"])


def _from_number(text: str) -> ec.EllipticCurvePrivateKey:
    """From the private number, in either alphabet of base64, with padding or without."""
    try:
        number = base64url.decode(text.rstrip("=").replace("+", "-").replace("/", "_"))
    except (ValueError, binascii.Error):
        raise _refused(_FORMS) from None
    if len(number) == 65:
        raise _refused(gettext("This is a public key. The private key of the pair is needed."))
    if len(number) != 32:
        raise _refused(_FORMS)
    try:
        return ec.derive_private_key(int.from_bytes(number, "big"), ec.SECP256R1())
    except ValueError:
        raise _refused(_FORMS) from None


def _refused(detail: str) -> Invalid:
    return Invalid([FieldError("private_key", "not_a_private_key", str(detail))])

"""Two-step sign-in: a code of the user's phone (TOTP, RFC 6238) beside the password.

A user has at most one confirmed phone and ten recovery codes, each of which works once. django-otp
stores and checks both. It refuses a code that was used, and after each wrong code it makes the user
wait longer.
"""

import secrets
from base64 import b32encode
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.crypto import salted_hmac
from django_otp.models import Device
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from channels_app import audit
from channels_app.models import Membership

RECOVERY_CODES = 10
_RECOVERY_SALT = "channels_app.two_step.recovery"
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without letters that look like others


class Need(NamedTuple):
    """Whether a user needs a code to sign in, and whether an account of the user requires that."""

    is_on: bool
    is_required: bool


def on_for(user: str) -> Exists:
    """For a query: whether the user whose id is in this column needs a code to sign in."""
    return Exists(TOTPDevice.objects.filter(user=OuterRef(user), confirmed=True))


def need_of(user: User) -> Need:
    """In one query."""
    requiring = Membership.objects.filter(user=OuterRef("pk"), account__requires_two_step=True)
    found = User.objects.filter(pk=user.pk).values_list(on_for("pk"), Exists(requiring))
    return Need(*found.get())


def is_on(user: User) -> bool:
    """Whether this user needs a code to sign in."""
    confirmed: bool = TOTPDevice.objects.filter(user_id=user.pk, confirmed=True).exists()
    return confirmed


def recovery_codes_left(user: User) -> int:
    left: int = StaticToken.objects.filter(device__user_id=user.pk).count()
    return left


def pending(user: User) -> TOTPDevice | None:
    """The phone that was shown a secret and is not confirmed by a code yet."""
    return TOTPDevice.objects.filter(user_id=user.pk, confirmed=False).first()


@transaction.atomic
def begin(*, user: User) -> None:
    """Creates a secret for a phone. Sign-in does not change until the phone is confirmed."""
    TOTPDevice.objects.filter(user_id=user.pk, confirmed=False).delete()
    TOTPDevice.objects.create(user_id=user.pk, name="phone", confirmed=False)


@transaction.atomic
def confirm(*, user: User, code: str) -> tuple[TOTPDevice, list[str]] | None:
    """The phone, and recovery codes that are shown only now. None for a wrong code.

    From now on the user needs a code to sign in. The user's other sessions end.
    """
    offered = TOTPDevice.objects.select_for_update().filter(user_id=user.pk, confirmed=False)
    phone = offered.first()
    if phone is None or not phone.verify_token(_typed(code)):
        return None
    TOTPDevice.objects.filter(user_id=user.pk, confirmed=True).delete()
    phone.confirmed = True
    phone.save(update_fields=["confirmed"])
    audit.record(user, audit.Action.UPDATE, note="Two-step sign-in was turned on.")
    return phone, _recovery_codes(user)


@transaction.atomic
def verify(*, user: User, code: str) -> Device | None:
    """The device that accepted the code: the phone or the recovery codes. None for a wrong code.

    Uses the code up, as far as the caller's transaction is committed.
    """
    typed = _typed(code)
    if len(typed) == 6 and typed.isascii() and typed.isdigit():
        model, token = TOTPDevice, typed
    else:
        model, token = StaticDevice, _token_of(user, typed)
    held = model.objects.select_for_update().filter(user_id=user.pk, confirmed=True)
    return next((device for device in held if device.verify_token(token)), None)


@transaction.atomic
def recovery_codes_renew(*, user: User) -> list[str]:
    """Ten new codes, which are shown only now. The old ones become void."""
    audit.record(user, audit.Action.UPDATE, note="New recovery codes were created.")
    return _recovery_codes(user)


@transaction.atomic
def turn_off(*, user: User, note: str = "Two-step sign-in was turned off.") -> None:
    """From now on the password alone is enough. Safe to repeat."""
    TOTPDevice.objects.filter(user_id=user.pk).delete()
    StaticDevice.objects.filter(user_id=user.pk).delete()
    audit.record(user, audit.Action.UPDATE, note=note)


def _recovery_codes(user: User) -> list[str]:
    device, _ = StaticDevice.objects.get_or_create(user_id=user.pk, name="recovery codes")
    device.token_set.all().delete()
    codes = [_recovery_code() for _ in range(RECOVERY_CODES)]
    tokens = [_kept(_typed(code), settings.SECRET_KEY) for code in codes]
    StaticToken.objects.bulk_create(StaticToken(device=device, token=token) for token in tokens)
    return codes


def _recovery_code() -> str:
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(10))
    return f"{letters[:5]}-{letters[5:]}"


def _typed(code: str) -> str:
    """Without blanks and hyphens, which only make codes readable."""
    return code.replace(" ", "").replace("-", "").lower()


def _token_of(user: User, code: str) -> str:
    """The token to verify. A code from before SECRET_KEY was replaced has one of an older key. The
    right one is chosen beforehand, because each wrong one makes the user wait."""
    newest, *older = (
        _kept(code, secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    )
    stored = StaticToken.objects.filter(device__user_id=user.pk, token__in=older)
    return stored.values_list("token", flat=True).first() or newest


def _kept(code: str, secret: str) -> str:
    """What the database stores of a recovery code: a keyed hash, useless without SECRET_KEY."""
    digest = salted_hmac(_RECOVERY_SALT, code, secret, algorithm="sha256").digest()
    return b32encode(digest[:10]).decode()

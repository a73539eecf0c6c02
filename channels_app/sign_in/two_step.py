"""Two-step sign-in: a code of the user's phone (TOTP, RFC 6238) in addition to the password.

A user has at most one confirmed phone and ten recovery codes, each of which works once. django-otp
stores and checks both. It refuses used codes, and increases the wait after each wrong code.
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
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without characters that look alike


class Need(NamedTuple):
    """Whether a user needs a code to sign in, and whether an account of the user requires that."""

    is_on: bool
    is_required: bool


def on_for(user: str) -> Exists:
    """A condition for queries: the user whose id is in this column needs a code to sign in."""
    return Exists(TOTPDevice.objects.filter(user=OuterRef(user), confirmed=True))


def need_of(user: User) -> Need:
    """The user's need, read in one query."""
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
    """The phone for which a secret was shown, but which was not confirmed by a code yet."""
    return TOTPDevice.objects.filter(user_id=user.pk, confirmed=False).first()


@transaction.atomic
def begin(*, user: User) -> None:
    """Creates a secret for a phone. Sign-in does not change until the phone is confirmed."""
    TOTPDevice.objects.filter(user_id=user.pk, confirmed=False).delete()
    TOTPDevice.objects.create(user_id=user.pk, name="phone", confirmed=False)


@transaction.atomic
def confirm(*, user: User, code: str) -> tuple[TOTPDevice, list[str]] | None:
    """Confirms the phone. Returns it, and recovery codes that are shown only now. None for a wrong
    code. From now on the user needs a code to sign in. Ends the user's other sessions.
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

    The code is used up if the caller's transaction commits.
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
    """Creates ten new codes, which are shown only now. The old codes become invalid."""
    audit.record(user, audit.Action.UPDATE, note="New recovery codes were created.")
    return _recovery_codes(user)


@transaction.atomic
def turn_off(*, user: User, note: str = "Two-step sign-in was turned off.") -> None:
    """Turns two-step sign-in off for the user. Safe to repeat."""
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
    """The code without blanks and hyphens, which only make codes readable."""
    return code.replace(" ", "").replace("-", "").lower()


def _token_of(user: User, code: str) -> str:
    """The token to verify. A recovery code may be older than the current SECRET_KEY. Then its token
    belongs to an older key, which is chosen first, because each wrong token makes the user wait."""
    newest, *older = (
        _kept(code, secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    )
    stored = StaticToken.objects.filter(device__user_id=user.pk, token__in=older)
    return stored.values_list("token", flat=True).first() or newest


def _kept(code: str, secret: str) -> str:
    """The stored form of a recovery code: a keyed hash, useless without SECRET_KEY."""
    digest = salted_hmac(_RECOVERY_SALT, code, secret, algorithm="sha256").digest()
    return b32encode(digest[:10]).decode()

"""Who needs a second step to sign in, and which sessions have had one.

The second step is a code of an authenticator app (TOTP, RFC 6238), a recovery code, or a passkey.
django-allauth stores and checks them. A session stores which of the user's steps it was last
passed with.
"""

import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from uuid import UUID

from allauth.mfa import signals
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.dispatch import receiver
from django.http import HttpRequest

from channels_app import audit
from channels_app.models import Role
from pushsvc.common.store import sql
from pushsvc.common.store.crypto import decrypt, encrypt, is_current, is_readable

_STEP: Final = "second_step"
_SET_UP_AT: Final = "second_step_set_up_at"
_RECOVERY: Final = Authenticator.Type.RECOVERY_CODES
_STEPS: Final = ~Q(type=_RECOVERY)

# In SQL, because every page of the console reads it, and the ORM needs longer to compile it than
# the database to run it.
_READ_NEED: Final = """
SELECT id, NULL::uuid, NULL, NULL::bool FROM mfa_authenticator WHERE user_id = %(user)s
UNION ALL
SELECT NULL, membership.account_id, membership.role, account.requires_two_step
FROM channels_app_membership membership
JOIN channels_app_account account ON account.id = membership.account_id
WHERE membership.user_id = %(user)s
"""


class Need(NamedTuple):
    """Which steps a user has, with the recovery codes, whether an account requires one, and the
    user's roles by account."""

    steps: list[int]
    is_required: bool
    roles: dict[UUID, Role]

    def is_met(self, request: HttpRequest) -> bool:
        """Whether the session has passed one of the user's steps, or the user has none."""
        return not self.steps or request.session.get(_STEP) in self.steps


def on_for(user: str) -> Exists:
    """A condition for queries: the user whose id is in this column has a second step."""
    return Exists(Authenticator.objects.filter(_STEPS, user=OuterRef(user)))


def need_of(user: User) -> Need:
    """The user's need, read in one query."""
    rows = sql.rows(_READ_NEED, {"user": user.pk}, is_prepared=True)
    return Need(
        steps=[step for step, *_ in rows if step is not None],
        is_required=any(is_strict for *_, is_strict in rows),
        roles={account_id: Role(role) for _, account_id, role, _ in rows if role is not None},
    )


def is_on(user: User) -> bool:
    """Whether this user has a second step."""
    return bool(Authenticator.objects.filter(_STEPS, user_id=user.pk).exists())


def was_just_set_up(request: HttpRequest, seconds: float) -> bool:
    """Whether the session set up the user's first step in the last `seconds`."""
    return bool(request.session.get(_SET_UP_AT, 0.0) > time.time() - seconds)


@transaction.atomic
def turn_off(*, user: User, note: str = "Two-step sign-in was turned off.") -> None:
    """Deletes all second steps of the user. Safe to repeat."""
    Authenticator.objects.filter(user_id=user.pk).delete()
    audit.record(user, audit.Action.UPDATE, note=note)


def secrets_reencrypt() -> int:
    """As `channels_app.services.secrets_reencrypt`, for apps and recovery codes."""
    changed = 0
    for step, name in _secrets():
        token = step.data[name]
        if not is_current(token) and is_readable(token):
            unchanged = Authenticator.objects.filter(pk=step.pk, data=step.data)
            changed += unchanged.update(data=step.data | {name: encrypt(decrypt(token))})
    return changed


def secrets_unreadable() -> list[str]:
    """As `channels_app.services.secrets_unreadable`, for apps and recovery codes."""
    return [
        f"two-step sign-in of {step.user}"
        for step, name in _secrets()
        if not is_readable(step.data[name])
    ]


def _secrets() -> Iterator[tuple[Authenticator, str]]:
    """The rows with a secret, and its name in their data. That of a passkey is not known here."""
    steps = Authenticator.objects.select_related("user").order_by("pk")
    for step in steps.exclude(type=Authenticator.Type.WEBAUTHN).iterator(1000):
        yield step, "seed" if step.type == _RECOVERY else "secret"


@receiver(signals.authenticator_used)
def _note_use(request: HttpRequest, authenticator: Authenticator, **_: Any) -> None:
    request.session[_STEP] = authenticator.pk


@receiver(signals.authenticator_added)
def _note_addition(
    request: HttpRequest, user: User, authenticator: Authenticator, **_: Any
) -> None:
    """The other sessions of a user who had no step end, because they have not passed this one."""
    if authenticator.type == _RECOVERY:
        return
    if Authenticator.objects.filter(_STEPS, user=user).count() == 1:
        request.session[_SET_UP_AT] = time.time()
    request.session[_STEP] = authenticator.pk
    audit.record(user, audit.Action.UPDATE, note=f"{_named(authenticator)} was added.")


@receiver(signals.authenticator_reset)
def _note_reset(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    request.session[_STEP] = authenticator.pk
    audit.record(user, audit.Action.UPDATE, note="New recovery codes were created.")


@receiver(signals.authenticator_removed)
def _note_removal(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    if authenticator.type == _RECOVERY:
        return
    left = Authenticator.objects.filter(user=user).order_by("pk").first()
    request.session[_STEP] = left.pk if left else None  # the user has just proved who they are
    note = f"{_named(authenticator)} was removed."
    if left is None:
        note += " Two-step sign-in is off."
    audit.record(user, audit.Action.UPDATE, note=note)


def _named(authenticator: Authenticator) -> str:
    if authenticator.type == Authenticator.Type.TOTP:
        return "An authenticator app for two-step sign-in"
    return f"The passkey “{authenticator}”"

"""Accounts, who belongs to them, and the users of the console.

Users are deactivated, never deleted: the audit log names them. Nobody is given a password; a new
user chooses one through a link that works once, for a day.
"""

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from typing_extensions import override

from channels_app import audit
from channels_app.models import Account, Membership, Role
from pushsvc.common.errors import Fault, Invalid

_KNOWN_ELSEWHERE = "There is a user of this name: a superuser must add them."
_OWN_PASSWORD = "Change your own with the present one, under “Change password”."  # noqa: S105 - prose
_LAST_OWNER = "An account needs an owner: make somebody else one first."


class SetPasswordTokens(PasswordResetTokenGenerator):
    """Void once used, after a sign-in, and when the user's accounts change: what an owner could
    still give away must not open an account that the user joined since."""

    key_salt = "channels_app.members.SetPasswordTokens"

    @override
    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        held = user.memberships.order_by("account_id").values_list("account_id", flat=True)
        accounts = ",".join(str(account_id) for account_id in held)
        return f"{super()._make_hash_value(user, timestamp)}{user.is_superuser}{accounts}"


set_password_tokens = SetPasswordTokens()


@transaction.atomic
def account_create(*, name: str) -> Account:
    """Invalid for a name that is empty, too long or taken."""
    _check_account_name(name)
    account = Account.objects.create(name=name)
    audit.record(account, audit.Action.CREATE, after=audit.fields_of(account))
    return account


@transaction.atomic
def account_rename(*, account: Account, name: str) -> None:
    """Invalid for a name that is empty, too long or taken."""
    _check_account_name(name, except_for=account.pk)
    account = Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    before = audit.fields_of(account)
    account.name = name
    account.save(update_fields=["name"])
    audit.record(account, audit.Action.UPDATE, before, audit.fields_of(account))


def _check_account_name(name: str, except_for: UUID | None = None) -> None:
    if not name.strip() or len(name) > 200 or "\x00" in name:
        raise Invalid([Fault("name", "malformed", "Must have 1 to 200 characters.")])
    others = Account.objects.exclude(pk=except_for) if except_for else Account.objects.all()
    if others.filter(name=name).exists():
        raise Invalid([Fault("name", "not_a_choice", "There is an account of this name.")])


@transaction.atomic
def member_add(*, account: Account, username: str, role: Role, by: User) -> tuple[Membership, bool]:
    """The membership, and whether its user was made for it (and needs a link to set a password).

    Invalid for a name that no user can have, a deactivated user, or one who is a member already.
    Who is a user already is added by superusers only: an owner of another account may have made
    the name up, or know the password.
    """
    user = User.objects.filter(username=username).first()
    is_new = user is None
    if user is None:
        user = user_create(username=username, account_id=account.pk)
    if not user.is_active:
        raise Invalid([Fault("username", "not_a_choice", "This user is deactivated.")])
    membership, was_added = Membership.objects.get_or_create(
        account=account, user=user, defaults={"role": role}
    )
    if not was_added:
        raise Invalid([Fault("username", "not_a_choice", "This user is a member already.")])
    if not (is_new or by.is_superuser):
        raise Invalid([Fault("username", "not_a_choice", _KNOWN_ELSEWHERE)])
    audit.record(membership, audit.Action.CREATE, after=audit.fields_of(membership))
    return membership, is_new


@transaction.atomic
def member_role_set(*, membership: Membership, role: Role) -> None:
    """In force from the member's next request on. Invalid for the last owner. Safe to repeat."""
    membership = _locked(membership)
    if role != Role.OWNER:
        _keep_an_owner(membership)
    before = audit.fields_of(membership)
    membership.role = role
    membership.save(update_fields=["role"])
    audit.record(membership, audit.Action.UPDATE, before, audit.fields_of(membership))


@transaction.atomic
def member_remove(*, membership: Membership) -> None:
    """The user stays, without this account. Invalid for the last owner."""
    membership = _locked(membership)
    _keep_an_owner(membership)
    audit.record(membership, audit.Action.DELETE, before=audit.fields_of(membership))
    membership.delete()


def _locked(membership: Membership) -> Membership:
    """Read anew under the account's lock, so that two owners cannot remove each other at once."""
    Account.objects.select_for_update(no_key=True).get(pk=membership.account_id)
    return Membership.objects.select_related("account", "user").get(pk=membership.pk)


def _keep_an_owner(leaving: Membership) -> None:
    others = Membership.objects.filter(
        account_id=leaving.account_id, role=Role.OWNER, user__is_active=True
    ).exclude(pk=leaving.pk)
    if leaving.role == Role.OWNER and not others.exists():
        raise Invalid([Fault("role", "not_a_choice", _LAST_OWNER)])


@transaction.atomic
def user_create(
    *,
    username: str,
    email: str = "",
    is_superuser: bool = False,
    account_id: UUID | None = None,
) -> User:
    """A member of staff without a password. Invalid for a name that is taken or cannot be one."""
    if User.objects.filter(username__iexact=username).exists():
        raise Invalid([Fault("username", "not_a_choice", "There is a user of this name.")])
    user = User(username=username, email=email, is_staff=True, is_superuser=is_superuser)
    user.set_unusable_password()
    try:
        user.full_clean()
    except ValidationError as error:
        faults = [
            Fault(field, "malformed", detail)
            for field, details in error.message_dict.items()
            for detail in details
        ]
        raise Invalid(faults) from error
    user.save()
    audit.record(user, audit.Action.CREATE, after=audit.fields_of(user), account_id=account_id)
    return user


@transaction.atomic
def user_change(*, user: User, by: User, email: str, is_active: bool, is_superuser: bool) -> None:
    """In force from the user's next request on. Invalid where a superuser would lock themselves
    out, and where `by` is no superuser any more, so that one always remains."""
    either = Q(pk=user.pk) | Q(is_superuser=True, is_active=True)
    locked = User.objects.select_for_update(no_key=True).filter(either).order_by("pk").in_bulk()
    user = locked[user.pk]
    if by.pk not in locked:
        raise Invalid([Fault("", "not_a_choice", "You are no superuser any more.")])
    if user.pk == by.pk and not (is_active and is_superuser):
        field = "is_superuser" if is_active else "is_active"
        raise Invalid([Fault(field, "not_a_choice", "Somebody else must take this from you.")])
    before = audit.fields_of(user)
    user.email, user.is_active, user.is_superuser = email, is_active, is_superuser
    user.save(update_fields=["email", "is_active", "is_superuser"])
    audit.record(user, audit.Action.UPDATE, before, audit.fields_of(user))


def check_may_link(*, by: User, user: User) -> None:
    """Whether `by` may make a link for `user` to set a password; Invalid, with what to do, if not.

    Superusers for anybody else, an owner for a user who belongs to the owner's accounts only.
    Nobody for themselves: who finds an unlocked desk would have the account for good.
    """
    if user.pk == by.pk:
        raise Invalid([Fault("", "not_a_choice", _OWN_PASSWORD)])
    if not (by.is_superuser or _belongs_to_owner(by, user)):
        detail = f"{user} also belongs elsewhere: a superuser must make the link."
        raise Invalid([Fault("", "not_a_choice", detail)])


def _belongs_to_owner(owner: User, user: User) -> bool:
    """Whether all accounts of the user are the owner's."""
    held = set(user.memberships.values_list("account_id", flat=True))
    owned = owner.memberships.filter(role=Role.OWNER, account_id__in=held)
    owned_ids = set(owned.values_list("account_id", flat=True))
    return not user.is_superuser and user.is_active and bool(held) and held <= owned_ids


@transaction.atomic
def set_password_path(*, user: User, account_id: UUID | None = None) -> str:
    """The path of a page on which the user chooses a password: once, within a day."""
    note = "A link to set a password was made."
    audit.record(user, audit.Action.UPDATE, note=note, account_id=account_id)
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = set_password_tokens.make_token(user)
    return reverse("admin:set_password", args=[uid, token])


@transaction.atomic
def password_set(*, user: User, password: str, note: str) -> None:
    """All of the user's sessions end. ValidationError for a password that is easily guessed."""
    validate_password(password, user)
    user.set_password(password)
    user.save(update_fields=["password"])
    audit.record(user, audit.Action.UPDATE, note=note, actor=user)


def sessions_purge(limit: int) -> int:
    """Deletes at most so many sessions whose time is over; how many they were."""
    ended = Session.objects.filter(expire_date__lt=Now()).values("pk")[:limit]
    deleted, _ = Session.objects.filter(pk__in=ended).delete()
    return deleted

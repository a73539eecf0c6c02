"""Which accounts and channels a member of staff may see and change.

Every read and every action of the console uses this module. Superusers may do everything. A user
who is not active staff may do nothing.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet

from channels_app.models import Account, Channel, Membership, Role

AnyUser = User | AnonymousUser

_KEPT: Final = "_roles_by_account"


def accounts_of(user: AnyUser, role: Role = Role.VIEWER) -> QuerySet[Account]:
    """The accounts in which the user has `role` or more."""
    if is_superuser(user):
        return Account.objects.all()
    return Account.objects.filter(id__in=_account_ids(user, role))


def channels_of(user: AnyUser, role: Role = Role.VIEWER) -> QuerySet[Channel]:
    """The channels of the accounts in which the user has `role` or more. Channels that are being
    deleted can only be seen."""
    channels = Channel.objects.all()
    if role != Role.VIEWER:
        channels = channels.filter(deletion_asked_at__isnull=True)
    if is_superuser(user):
        return channels
    return channels.filter(account_id__in=_account_ids(user, role))


def may(user: AnyUser, account_id: UUID, role: Role) -> bool:
    """Whether the user has `role` or more in this account."""
    return is_superuser(user) or account_id in _account_ids(user, role)


def may_anywhere(user: AnyUser, role: Role) -> bool:
    """Whether the user has `role` or more in any account."""
    return is_superuser(user) or bool(_account_ids(user, role))


def keep_roles(user: User, roles: Mapping[UUID, Role]) -> None:
    """Stores the user's roles by account, which the caller has just read, with the user object."""
    user.__dict__[_KEPT] = roles


def is_superuser(user: AnyUser) -> bool:
    """Whether the user may do everything, in all accounts."""
    return user.is_active and user.is_staff and user.is_superuser


def _account_ids(user: AnyUser, role: Role) -> list[UUID]:
    return [account_id for account_id, held in _roles(user).items() if held.includes(role)]


def _roles(user: AnyUser) -> Mapping[UUID, Role]:
    """The user's roles by account. Read once for each user object, which lasts for one request."""
    if not isinstance(user, User) or not (user.is_active and user.is_staff):
        return {}
    roles: Mapping[UUID, Role] | None = user.__dict__.get(_KEPT)
    if roles is None:
        rows = Membership.objects.filter(user=user).values_list("account_id", "role")
        roles = {account_id: Role(role) for account_id, role in rows}
        keep_roles(user, roles)
    return roles

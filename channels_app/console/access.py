"""Which accounts and channels a member of staff may see and change.

Every read and every action of the console uses this module. Superusers may do everything. A user
who is not active staff may do nothing.
"""

from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet

from channels_app.models import Account, Channel, Membership, Role

Person = User | AnonymousUser


def accounts_of(user: Person, role: Role = Role.VIEWER) -> QuerySet[Account]:
    """The accounts in which the user has `role` or more."""
    if is_superuser(user):
        return Account.objects.all()
    return Account.objects.filter(id__in=_account_ids(user, role))


def channels_of(user: Person, role: Role = Role.VIEWER) -> QuerySet[Channel]:
    """The channels of the accounts in which the user has `role` or more."""
    if is_superuser(user):
        return Channel.objects.all()
    return Channel.objects.filter(account_id__in=_account_ids(user, role))


def may(user: Person, account_id: UUID, role: Role) -> bool:
    """Whether the user has `role` or more in this account."""
    return is_superuser(user) or account_id in _account_ids(user, role)


def may_anywhere(user: Person, role: Role) -> bool:
    """Whether the user has `role` or more in any account."""
    return is_superuser(user) or bool(_account_ids(user, role))


def is_superuser(user: Person) -> bool:
    """Whether the user may do everything, in all accounts."""
    return user.is_active and user.is_staff and user.is_superuser


def _account_ids(user: Person, role: Role) -> list[UUID]:
    return [account_id for account_id, held in _roles(user).items() if held.includes(role)]


def _roles(user: Person) -> dict[UUID, Role]:
    """The user's roles by account. Read once for each user object, which lasts for one request."""
    if not isinstance(user, User) or not (user.is_active and user.is_staff):
        return {}
    known: dict[UUID, Role] | None = user.__dict__.get("_roles_by_account")
    if known is None:
        rows = Membership.objects.filter(user=user).values_list("account_id", "role")
        known = {account_id: Role(role) for account_id, role in rows}
        user.__dict__["_roles_by_account"] = known
    return known

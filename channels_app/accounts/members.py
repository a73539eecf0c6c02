"""Changes accounts and their members."""

from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext

from channels_app import audit
from channels_app.accounts.users import user_create
from channels_app.models import Account, Membership, Role
from channels_app.sign_in import two_step
from pushsvc.common.errors import Conflict, FieldError, Invalid, NotFound
from pushsvc.common.http.ratelimit import Limit, take
from pushsvc.common.store import sql
from pushsvc.common.texts import later

MOST_MEMBERS: Final = 500  # of an account; its page shows all of them


class TooManyMembers(Conflict):
    """The account has MOST_MEMBERS members."""

    code = "too_many_members"
    title = "Too many members"
    detail = later("The account has %(most)s members. Remove one first.", most=MOST_MEMBERS)


class AccountNameTaken(Invalid):
    """Another account has the name."""

    def __init__(self) -> None:
        detail = gettext("An account with this name exists.")
        super().__init__([FieldError("name", "not_a_choice", detail)])


def account_create(*, name: str) -> Account:
    """Creates an account. Raises Invalid for a name that is empty, too long or taken."""
    _check_account_name(name)
    with sql.unless_taken(AccountNameTaken):
        account = Account.objects.create(name=name)
        audit.record(account, audit.Action.CREATE, after=audit.fields_of(account))
    return account


def account_rename(*, account: Account, name: str) -> None:
    """Renames the account. Raises Invalid for a name that is empty, too long or taken."""
    _check_account_name(name)
    with sql.unless_taken(AccountNameTaken):
        account = Account.objects.select_for_update(no_key=True).get(pk=account.pk)
        before = audit.fields_of(account)
        account.name = name
        account.save(update_fields=["name"])
        audit.record(account, audit.Action.UPDATE, before, audit.fields_of(account))


@transaction.atomic
def account_require_two_step(*, account: Account, is_required: bool, by: User) -> None:
    """Sets whether members need two-step sign-in, from their next request on. Safe to repeat.
    Raises Invalid if `by` has no second step."""
    if is_required and not two_step.is_on(by):
        raise Invalid(
            [FieldError("", "not_a_choice", gettext("Set up your own two-step sign-in first."))]
        )
    account = Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    before = audit.fields_of(account)
    account.requires_two_step = is_required
    account.save(update_fields=["requires_two_step"])
    audit.record(account, audit.Action.UPDATE, before, audit.fields_of(account))


def _check_account_name(name: str) -> None:
    if not name.strip() or len(name) > 200 or "\x00" in name:
        raise Invalid(
            [
                FieldError(
                    "name",
                    "malformed",
                    gettext("Must have 1 to %(most)s characters.") % {"most": 200},
                )
            ]
        )


@transaction.atomic
def member_add(
    *, account: Account, username: str, role: Role, by: User, email: str = ""
) -> tuple[Membership, bool]:
    """Returns the membership, and whether a user was created, who needs a link to set a password.

    An existing user keeps their e-mail address. Raises Invalid for a malformed name, a deactivated
    user, a user who is already a member, and the account's owners if they created
    NEW_USERS_PER_HOUR, because users are never deleted. Raises TooManyMembers. Only superusers may
    add existing users, because the owner of another account may have created the user, or have its
    password.
    """
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    if account.memberships.count() >= MOST_MEMBERS:
        raise TooManyMembers
    user = User.objects.filter(username=username).first()
    is_new = user is None
    if user is None:
        if not by.is_superuser:
            _count_new_user(account)
        user = user_create(username=username, email=email, account_id=account.pk)
    membership, was_added = Membership.objects.get_or_create(
        account=account, user=user, defaults={"role": role}
    )
    if not was_added:
        raise Invalid(
            [FieldError("username", "not_a_choice", gettext("This user is already a member."))]
        )
    if not (is_new or by.is_superuser):
        raise Invalid(
            [
                FieldError(
                    "username",
                    "not_a_choice",
                    gettext("A user with this name exists. A superuser must add them."),
                )
            ]
        )
    if not user.is_active:
        raise Invalid(
            [FieldError("username", "not_a_choice", gettext("This user is deactivated."))]
        )
    audit.record(membership, audit.Action.CREATE, after=audit.fields_of(membership))
    return membership, is_new


@transaction.atomic
def member_role_set(*, membership: Membership, role: Role) -> None:
    """Changes the member's role, from the next request on. Raises Invalid for the last owner. Safe
    to repeat."""
    membership = _locked(membership)
    if role != Role.OWNER:
        _keep_an_owner(membership)
    before = audit.fields_of(membership)
    membership.role = role
    membership.save(update_fields=["role"])
    audit.record(membership, audit.Action.UPDATE, before, audit.fields_of(membership))


@transaction.atomic
def member_remove(*, membership: Membership) -> None:
    """Removes the user from the account. The user is kept. Raises Invalid for the last owner."""
    membership = _locked(membership)
    _keep_an_owner(membership)
    audit.record(membership, audit.Action.DELETE, before=audit.fields_of(membership))
    membership.delete()


@transaction.atomic
def member_alerts_set(*, membership: Membership, gets_alerts: bool) -> None:
    """Sets whether the member gets alerts and requests for approval by mail. Safe to repeat."""
    membership = _locked(membership)
    before = audit.fields_of(membership)
    membership.gets_alerts = gets_alerts
    membership.save(update_fields=["gets_alerts"])
    audit.record(membership, audit.Action.UPDATE, before, audit.fields_of(membership))


def _count_new_user(account: Account) -> None:
    """Raises Invalid if the account has created too many."""
    standing = take(Limit("new-users", str(account.pk), settings.NEW_USERS_PER_HOUR, 3600))
    if standing is not None and standing.is_refused:
        detail = gettext("Too many users were created. Try again in an hour.")
        raise Invalid([FieldError("", "too_many", detail)])


def _locked(membership: Membership) -> Membership:
    """Locks the account and reads the membership again, so that two owners cannot remove each other
    at once. Raises NotFound if it was removed meanwhile."""
    Account.objects.select_for_update(no_key=True).get(pk=membership.account_id)
    own = Membership.objects.select_related("account", "user").filter(pk=membership.pk).first()
    if own is None:
        raise NotFound
    return own


def _keep_an_owner(leaving: Membership) -> None:
    others = Membership.objects.filter(
        account_id=leaving.account_id, role=Role.OWNER, user__is_active=True
    ).exclude(pk=leaving.pk)
    if leaving.role == Role.OWNER and not others.exists():
        raise Invalid(
            [
                FieldError(
                    "role",
                    "not_a_choice",
                    gettext("An account needs an owner. Make another member an owner first."),
                )
            ]
        )

"""Users of the console. They are deactivated, never deleted, because the audit log names them."""

from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Role
from channels_app.sign_in.provider_links import is_linked
from channels_app.sign_in.sessions import sessions_end
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.store import sql


class UserNameTaken(Invalid):
    """Another user has the name."""

    def __init__(self) -> None:
        detail = gettext("A user with this name exists.")
        super().__init__([FieldError("username", "not_a_choice", detail)])


def user_create(
    *,
    username: str,
    email: str = "",
    is_superuser: bool = False,
    account_id: UUID | None = None,
) -> User:
    """Creates a member of staff without a password. Raises Invalid for a name that is taken or
    malformed."""
    username = User.normalize_username(username)  # as `full_clean` would, later
    if User.objects.filter(username__iexact=username).exists():
        raise UserNameTaken
    user = User(username=username, email=email, is_staff=True, is_superuser=is_superuser)
    user.set_unusable_password()
    try:
        user.full_clean()
    except ValidationError as error:
        errors = [
            FieldError(field, "malformed", detail)
            for field, details in error.message_dict.items()
            for detail in details
        ]
        raise Invalid(errors) from error
    with sql.unless_taken(UserNameTaken):
        user.save()
        audit.record(user, audit.Action.CREATE, after=audit.fields_of(user), account_id=account_id)
    return user


@transaction.atomic
def user_change(*, user: User, by: User, email: str, is_active: bool, is_superuser: bool) -> None:
    """Changes the user, from the next request on. If the user is activated again, ends old
    sessions.

    Raises Invalid if superusers would lock themselves out, and if `by` is no longer a superuser. So
    one superuser always remains.
    """
    locked = _locked(user)
    user = locked[user.pk]
    actor = locked.get(by.pk)
    if actor is None or not (actor.is_active and actor.is_superuser):
        raise Invalid([FieldError("", "not_a_choice", gettext("You are no longer a superuser."))])
    if user.pk == by.pk and not (is_active and is_superuser):
        field = "is_superuser" if is_active else "is_active"
        raise Invalid(
            [FieldError(field, "not_a_choice", gettext("Another superuser must remove this."))]
        )
    before = audit.fields_of(user)
    if is_active and not user.is_active:
        sessions_end(user)
    user.email, user.is_active, user.is_superuser = email, is_active, is_superuser
    user.save(update_fields=["email", "is_active", "is_superuser"])
    audit.record(user, audit.Action.UPDATE, before, audit.fields_of(user))


def user_locked(user: User) -> User:
    """Locks the user for `user_change`, and reads it again."""
    return _locked(user)[user.pk]


def _locked(user: User) -> dict[int, User]:
    """The user and all superusers, in the order that excludes deadlocks."""
    either = Q(pk=user.pk) | Q(is_superuser=True, is_active=True)
    return User.objects.select_for_update(no_key=True).filter(either).order_by("pk").in_bulk()


def check_may_link(*, by: User, user: User) -> None:
    """Raises Invalid unless `by` may create a link with which `user` sets a password.

    Superusers may do so for all other users, and owners for users who belong only to accounts of
    the owner. No user may do so for themselves, because another person at an unlocked computer
    could take over the user permanently.
    """
    if user.pk == by.pk:
        raise Invalid(
            [
                FieldError(
                    "", "not_a_choice", gettext("Change your own password under “Change password”.")
                )
            ]
        )
    if not (by.is_superuser or _belongs_to_owner(by, user)):
        detail = gettext(
            "%(user)s also belongs to another account. A superuser must create the link."
        ) % {"user": user}
        raise Invalid([FieldError("", "not_a_choice", detail)])


def check_may_see_link(*, by: User, user: User) -> None:
    """As `check_may_link`, for a link that `by` gets to see, and not only the user by mail.

    Raises Invalid for an owner if the user signs in by the provider: the person may be a stranger
    to the owner, who could then sign in as the same user.
    """
    check_may_link(by=by, user=user)
    if not by.is_superuser and is_linked(user):
        detail = gettext(
            "%(user)s signs in with %(provider)s. Mail the link, or ask a superuser."
        ) % {"user": user, "provider": settings.OIDC_LABEL}
        raise Invalid([FieldError("", "not_a_choice", detail)])


def _belongs_to_owner(owner: User, user: User) -> bool:
    """Whether the owner owns all accounts of the user."""
    held = set(user.memberships.values_list("account_id", flat=True))
    owned = owner.memberships.filter(role=Role.OWNER, account_id__in=held)
    owned_ids = set(owned.values_list("account_id", flat=True))
    return not user.is_superuser and user.is_active and bool(held) and held <= owned_ids

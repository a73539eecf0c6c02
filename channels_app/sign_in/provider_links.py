"""Links users of the sign-in provider to users of this service.

The first sign-in finds the users by the e-mail address that the provider verified. If there are
several, the person chooses one. Otherwise an owner, who chooses the addresses of new users, could
keep a person out of another owner's account. The complete sign-in, with the second step here,
stores the link. From then on only the link counts, so that another person who later gets the
address from the provider cannot sign in with it. No user is created: members must be invited.

A user with somebody's address may have been made by an owner to whom this person is a stranger. So
when a user with the address was made after the link, the person chooses again, and the link moves.
"""

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from channels_app import audit
from channels_app.models import ProviderLink
from channels_app.sign_in.addresses import users_with
from channels_app.sign_in.provider import ProviderIdentity
from channels_app.sign_in.sessions import sessions_end


class NobodyFound(Exception):
    """No user for the identity. `reason`: a text for the person who wanted to sign in."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


_DEACTIVATED = "Your user of this service is deactivated."
_NO_ADDRESS = "It did not confirm an e-mail address of yours."
_UNKNOWN = "No user of this service has your e-mail address. Ask an owner to invite you with it."
_TAKEN = "The user who has your e-mail address signs in as somebody else there. Ask a superuser."


def users_of(identity: ProviderIdentity) -> list[User]:
    """The user to whom the identity is linked, with the users with its address who were made since,
    or else all users with its address; at least one. The person may sign in as any of them. Raises
    NobodyFound."""
    links = ProviderLink.objects.filter(issuer=identity.issuer, subject=identity.subject)
    link = links.select_related("user").first()
    if link is None:
        return _users_with(identity.email)
    own = [link.user] if link.user.is_active and link.user.is_staff else []
    users = own + _made_since(link, identity)
    if not users:
        raise NobodyFound(_DEACTIVATED)
    return users


def link(*, user: User, identity: ProviderIdentity) -> bool:
    """Links the identity to one of the `users_of` it, and to no other. Returns whether it was not
    linked to this user before. Safe to repeat. Raises NobodyFound if the user is linked to
    another."""
    links = ProviderLink.objects.filter(issuer=identity.issuer, subject=identity.subject)
    before = links.select_related("user").first()
    if before is not None and before.user_id == user.pk:
        if _made_since(before, identity):
            links.update(created_at=Now())  # the person has chosen among them
        return False
    try:
        _link(user, identity, before)
    except IntegrityError as error:
        raise NobodyFound(_TAKEN) from error
    return True


def _made_since(link: ProviderLink, identity: ProviderIdentity) -> list[User]:
    users = users_with(identity.email) if identity.email else []
    return [each for each in users if each.date_joined > link.created_at]


@transaction.atomic
def _link(user: User, identity: ProviderIdentity, before: ProviderLink | None) -> None:
    if before is not None:
        before.delete()
        note = f"The user no longer signs in by {identity.issuer}: the person chose {user}."
        audit.record(before.user, audit.Action.UPDATE, note=note, actor=user)
    ProviderLink.objects.create(user=user, issuer=identity.issuer, subject=identity.subject)
    note = f"The user signs in by {identity.issuer} from now on, too."
    audit.record(user, audit.Action.UPDATE, note=note, actor=user)


@transaction.atomic
def unlink(*, user: User) -> None:
    """Removes the link, so that the next sign-in with the provider finds the user by the e-mail
    address again. Ends the user's sessions, because the linked person may be another one. Safe to
    repeat."""
    deleted, _ = ProviderLink.objects.filter(user=user).delete()
    if deleted:
        sessions_end(user)
        note = "The link to the sign-in provider was removed."
        audit.record(user, audit.Action.UPDATE, note=note)


def _users_with(address: str) -> list[User]:
    if not (address and address.isprintable()):
        raise NobodyFound(_NO_ADDRESS)
    users = users_with(address)
    if not users:
        raise NobodyFound(_UNKNOWN)
    return users

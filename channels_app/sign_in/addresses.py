"""Which users have an e-mail address, in any case of its letters."""

from typing import Final

from django.contrib.auth.models import User

_MOST_USERS: Final = 10


def folded(address: str) -> str:
    """The same for all spellings of an address."""
    return address.strip().lower()


def users_with(address: str) -> list[User]:
    """Active members of staff, the oldest first.

    The database compares in upper case, in which a long s is an S and an i without a dot an I. For
    mail servers they are not, so Python compares in lower case too.
    """
    active = User.objects.filter(is_active=True, is_staff=True).exclude(email="")
    found = active.filter(email__iexact=address).order_by("pk")[:_MOST_USERS]
    return [user for user in found if folded(user.email) == folded(address)]

"""Which users have an e-mail address, in any case of its letters."""

from typing import Final

from django.contrib.auth.models import User
from django.db.models import Window
from django.db.models.functions import RowNumber

_MOST_USERS: Final = 10


def folded(address: str) -> str:
    """The same for all spellings of an address."""
    return address.strip().lower()


def users_with(address: str) -> list[User]:
    """Active members of staff: the oldest of each account, then the second of each, and so on. So
    an owner who gives many users somebody's address keeps no user of another account out of it.

    The database compares in upper case, in which a long s is an S and an i without a dot an I. For
    mail servers they are not, so Python compares in lower case too.
    """
    active = User.objects.filter(is_active=True, is_staff=True).exclude(email="")
    # Owners create no superusers, but can leave users without an account.
    groups = ["memberships__account_id", "is_superuser"]
    place = Window(RowNumber(), partition_by=groups, order_by="pk")
    found = active.filter(email__iexact=address).annotate(place=place).order_by("place", "pk")
    users = dict.fromkeys(found[:_MOST_USERS])  # who has several accounts is found in each
    return [user for user in users if folded(user.email) == folded(address)]

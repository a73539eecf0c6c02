"""Finds users by their e-mail address, without regard to case."""

from typing import Final

from django.contrib.auth.models import User
from django.db.models import Window
from django.db.models.functions import RowNumber

_MOST_USERS: Final = 10


def folded(address: str) -> str:
    """The same text for all spellings of an address."""
    return address.strip().lower()


def users_with(address: str) -> list[User]:
    """Active members of staff with this address, at most _MOST_USERS: the oldest of each account,
    then the second of each, and so on. So an owner who creates many users with another person's
    address cannot displace users of other accounts.

    The database compares in upper case, where a long s equals S and a dotless i equals I. Mail
    servers distinguish them, so Python also compares in lower case.
    """
    active = User.objects.filter(is_active=True, is_staff=True).exclude(email="")
    # Owners create no superusers, but can leave users without an account.
    groups = ["memberships__account_id", "is_superuser"]
    place = Window(RowNumber(), partition_by=groups, order_by="pk")
    found = active.filter(email__iexact=address).annotate(place=place).order_by("place", "pk")
    users = dict.fromkeys(found[:_MOST_USERS])  # a user with several accounts is found in each
    return [user for user in users if folded(user.email) == folded(address)]

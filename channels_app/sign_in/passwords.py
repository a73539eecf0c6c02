"""Links with which users choose their password.

Passwords are never assigned. A new user chooses one with a link that works once, for a day.
"""

from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.utils.http import int_to_base36
from typing_extensions import override

from channels_app import audit

# As `admin/pages.py` routes it. Workers, which mail links, have no routes.
_PATH: Final = "/admin/auth/user/set-password/{user}-{token}/"


class SetPasswordTokens(PasswordResetTokenGenerator):
    """A token becomes invalid when it is used, when the user signs in, and when the user's accounts
    change. So an owner who still has a link cannot use it to get into an account that the user
    joined later."""

    key_salt = "channels_app.members.SetPasswordTokens"

    @override
    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        held = user.memberships.order_by("account_id").values_list("account_id", flat=True)
        accounts = ",".join(str(account_id) for account_id in held)
        return f"{super()._make_hash_value(user, timestamp)}{user.is_superuser}{accounts}"


@transaction.atomic
def set_password_path(*, user: User, account_id: UUID | None = None) -> str:
    """The path of a page on which the user chooses a password, once, within a day. Writes an entry
    to the audit log."""
    note = "A link to set a password was created."
    audit.record(user, audit.Action.UPDATE, note=note, account_id=account_id)
    return unrecorded_path(user)


def unrecorded_path(user: User) -> str:
    """As `set_password_path`, without an entry in the audit log; the caller writes its own."""
    return _PATH.format(user=int_to_base36(user.pk), token=SetPasswordTokens().make_token(user))

"""The credentials for Android: a Google service account."""

from dataclasses import dataclass, field
from typing import Final

from notifications_app.delivery.types import stored_texts

# A registration token that no app has. FCM refuses it only after it has accepted the account.
NO_DEVICE: Final = "pushsvc-credential-test"
_FIELDS: Final = ("project_id", "client_email", "private_key", "private_key_id")


class AccountUnreadableError(ValueError):
    """The stored text is not a service account, or its key is not an RSA key."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A Google service account as it was stored. `version` counts the channel's credentials."""

    project_id: str
    client_email: str
    private_key: str = field(repr=False)
    private_key_id: str
    version: int

    @classmethod
    def parse(cls, secret: str, version: int) -> "ServiceAccount":
        """From the stored JSON. Raises AccountUnreadableError."""
        try:
            return cls(**stored_texts(secret, _FIELDS), version=version)
        except ValueError:
            raise AccountUnreadableError from None

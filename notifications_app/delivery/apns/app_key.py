"""The credentials for iOS: a key of a team, and the app that it is used for."""

from dataclasses import dataclass
from typing import Final

from notifications_app.delivery.apns.provider_token import ApnsKey
from notifications_app.delivery.types import stored_texts

# A device token that no device has. APNs refuses it only after it has accepted the key.
NO_DEVICE: Final = "0" * 64
# Apple's server for each environment.
HOSTS: Final = {"production": "api.push.apple.com", "sandbox": "api.sandbox.push.apple.com"}


@dataclass(frozen=True, slots=True)
class AppKey:
    """A key, and the app that it is used for. `topic`: the app's bundle id. `environment`: where
    the app is registered (production or sandbox). `version` counts the channel's credentials."""

    key: ApnsKey
    topic: str
    environment: str
    version: int = 0

    @classmethod
    def parse(cls, secret: str, version: int) -> "AppKey":
        """From the stored JSON. Raises ValueError."""
        stored = stored_texts(secret, ("key", "key_id", "team_id", "topic", "environment"))
        key = ApnsKey(stored["key"], stored["key_id"], stored["team_id"])
        return cls(key, stored["topic"], _environment(stored["environment"]), version)


def _environment(name: str) -> str:
    if name not in HOSTS:
        raise ValueError("the environment is neither production nor sandbox")
    return name

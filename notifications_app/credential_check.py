"""Whether a channel's credentials are good, found out by asking the push service itself."""

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from notifications_app.content import Content
from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.fcm import transport as fcm
from notifications_app.delivery.registry import Credentials, Target
from notifications_app.delivery.types import Accepted, Deferred, Message, Misconfigured, Outcome
from notifications_app.pipeline import connections
from notifications_app.pipeline.targets import stored_credentials
from pushsvc.common.ids import uuid7

# What no device has: the service refuses it, but only after it has accepted the credentials.
_NO_REGISTRATION: Final = "pushsvc-credential-test"
_NO_DEVICE: Final = "0" * 64
_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Trial:
    """`is_good`: True or False as the service said; None: it could not be asked."""

    is_good: bool | None
    code: str
    detail: str


def credentials_try(*, channel_id: UUID, platform: str) -> Trial:
    """Asks with a message to a device that does not exist; nobody gets anything. Safe to repeat.

    Takes as long as a call to the push service. Raises CredentialsMissing, CredentialsUnreadable,
    SecretUnreadable.
    """
    credentials = stored_credentials(platform, channel_id)
    return _judged(asyncio.run(_ask(platform, _nobody(platform), credentials)))


async def _ask(platform: str, target: Target, credentials: Credentials) -> Outcome:
    client = connections.new_client(platform)
    try:
        return await client.send(_message(), target, credentials)
    finally:
        await client.close()


def _judged(outcome: Outcome) -> Trial:
    match outcome:
        case Misconfigured(code, detail):
            return Trial(False, code, detail)
        case Deferred(code=code, detail=detail):
            return Trial(None, code, detail)
        case Accepted():
            return Trial(True, "accepted", "")
        case _:
            return Trial(True, outcome.code, outcome.detail)


def _nobody(platform: str) -> Target:
    if platform == "android":
        return fcm.Target(uuid7(), _NO_REGISTRATION, "")
    return apns.Target(uuid7(), _NO_DEVICE, "")


def _message() -> Message:
    loop = asyncio.get_running_loop()
    content = Content(body="Credential test", ttl=0, urgency="low")
    return Message(uuid7(), content, expires_at=loop.time() + _SECONDS)

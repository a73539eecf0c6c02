"""Whether a channel's credentials are good, found out by asking the push service itself."""

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from notifications_app.content import Content
from notifications_app.delivery.registry import TRANSPORTS, Credentials
from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Message,
    Misconfigured,
    Outcome,
    Target,
)
from notifications_app.pipeline import connections
from notifications_app.pipeline.targets import stored_credentials
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform

_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Trial:
    """`is_good`: True or False as the service said; None: it could not be asked."""

    is_good: bool | None
    code: str
    detail: str


def credentials_try(*, channel_id: UUID, platform: Platform) -> Trial:
    """Asks with a message to a device that does not exist; nobody gets anything. Safe to repeat.

    Takes as long as a call to the push service. Raises CredentialsMissing, CredentialsUnreadable,
    SecretUnreadable.
    """
    credentials = stored_credentials(platform, channel_id)
    return _judged(asyncio.run(_ask(platform, credentials)))


async def _ask(platform: Platform, credentials: Credentials) -> Outcome:
    target = Target(uuid7(), TRANSPORTS[platform].no_device, "")
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


def _message() -> Message:
    loop = asyncio.get_running_loop()
    content = Content(body="Credential test", ttl=0, urgency="low")
    return Message(uuid7(), content, expires_at=loop.time() + _SECONDS)

"""Checks a channel's credentials by asking the push service."""

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog

from channels_app.pauses import credential_check_claim, credential_check_record
from channels_app.selectors import credentials_unchecked
from notifications_app.content.values import Content
from notifications_app.delivery.registry import TRANSPORTS, Credentials
from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Destination,
    Message,
    Misconfigured,
    Outcome,
)
from notifications_app.pipeline import connections
from notifications_app.pipeline.destinations import (
    CredentialsMissing,
    CredentialsUnreadable,
    stored_credentials,
)
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import SecretUnreadable

logger = structlog.stdlib.get_logger(__name__)

_SECONDS: Final = 60.0
_AT_ONCE: Final = 5  # checks in one task, so that a task occupies its worker for a bounded time


@dataclass(frozen=True)
class CredentialCheck:
    """`is_good`: whether the service accepts the credentials; None if it could not be asked."""

    is_good: bool | None
    code: str
    detail: str


def credentials_check(*, channel_id: UUID, platform: Platform) -> CredentialCheck:
    """Sends a message to a device that does not exist, so no device gets anything. Safe to repeat.

    Takes as long as a call to the push service, and stores the result with the credentials. If they
    are accepted, this ends a pause of the platform. Raises CredentialsMissing,
    CredentialsUnreadable, SecretUnreadable.
    """
    credentials = stored_credentials(platform, channel_id)
    check = _checked(asyncio.run(_ask(platform, credentials)))
    credential_check_record(
        channel_id=channel_id,
        platform=platform,
        version=credentials.version,
        is_accepted=check.is_good,
        code=check.code,
        detail=check.detail,
    )
    return check


def platforms_to_check() -> list[Platform]:
    """Platforms with new credentials that were not checked yet."""
    names = credentials_unchecked().order_by().values_list("platform", flat=True).distinct()
    return [Platform(name) for name in names]


def check_new(platform: Platform) -> None:
    """Checks new credentials of the platform. Each version is checked once, by one worker."""
    for credential in credentials_unchecked().filter(platform=platform)[:_AT_ONCE]:
        if not credential_check_claim(credential):
            continue
        try:
            credentials_check(channel_id=credential.channel_id, platform=platform)
        except (CredentialsMissing, CredentialsUnreadable, SecretUnreadable):
            logger.warning("credentials.unreadable", platform=platform.value)


async def _ask(platform: Platform, credentials: Credentials) -> Outcome:
    destination = Destination(uuid7(), TRANSPORTS[platform].no_device, "")
    client = connections.new_client(platform)
    try:
        return await client.send(_message(), destination, credentials)
    finally:
        await client.close()


def _checked(outcome: Outcome) -> CredentialCheck:
    match outcome:
        case Misconfigured(code, detail):
            return CredentialCheck(False, code, detail)
        case Deferred(code=code, detail=detail):
            return CredentialCheck(None, code, detail)
        case Accepted():
            return CredentialCheck(True, "accepted", "")
        case _:
            return CredentialCheck(True, outcome.code, outcome.detail)


def _message() -> Message:
    loop = asyncio.get_running_loop()
    content = Content(body="Credential test", ttl=0, urgency="low")
    return Message(uuid7(), content, expires_at=loop.time() + _SECONDS)

"""Tests credentials with a call to the push service, and retries paused platforms.

A check sends a message to a device that does not exist, so no device gets anything. A try sends to
one recipient that waits, or makes a check if none waits. A platform whose credentials are accepted
again is resumed: the next tick makes its parked batches ready.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final, assert_never
from uuid import UUID

import structlog

from channels_app.models import ProviderCredential
from channels_app.pauses import (
    credential_check_claim,
    credential_check_record,
    credential_retry_claim,
)
from channels_app.selectors import credentials_to_retry, credentials_unchecked
from notifications_app.content.values import Content
from notifications_app.delivery.registry import TRANSPORTS, Credentials
from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Destination,
    Gone,
    Message,
    Misconfigured,
    Outcome,
    Rejected,
)
from notifications_app.pipeline import batches, breakers, connections, dispatch
from notifications_app.pipeline.destinations import (
    CredentialsMissing,
    CredentialsUnreadable,
    stored_credentials,
)
from notifications_app.pipeline.reading import Halted
from pushsvc.common.endpoints import TOKEN_SERVICES
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import SecretUnreadable

logger = structlog.stdlib.get_logger(__name__)

_SECONDS: Final = 60.0
_AT_ONCE: Final = 5  # in one task, so that a task occupies its worker for a bounded time
_LOOKED_AT: Final = 100  # to be tried, of which some may be held by a breaker


@dataclass(frozen=True)
class CredentialCheck:
    """`is_good`: whether the push service accepts the credentials; None if it did not respond."""

    is_good: bool | None
    code: str
    detail: str = ""


_UNREADABLE: Final = CredentialCheck(
    False, "key_unreadable", "The stored credentials cannot be read."
)


def platforms_with_work() -> list[Platform]:
    """Platforms with credentials that are to be checked, or tried again, now."""
    unchecked = credentials_unchecked().order_by().values_list("platform", flat=True)
    due = credentials_to_retry().order_by().values_list("platform", flat=True)
    return [Platform(name) for name in unchecked.union(due)]


def credentials_check(*, channel_id: UUID, platform: Platform) -> CredentialCheck:
    """Checks the channel's credentials and stores the result with them. Safe to repeat.

    Takes as long as a call to the push service. If the credentials are accepted, this ends a pause
    of the platform. Raises CredentialsMissing, CredentialsUnreadable, SecretUnreadable.
    """
    credentials = stored_credentials(platform, channel_id)
    check = _check_of(asyncio.run(_call(platform, credentials)))
    _record(channel_id, platform, credentials.version, check)
    return check


def check_new(platform: Platform) -> None:
    """Checks new credentials of the platform. Each version is checked once, by one worker."""
    for credential in credentials_unchecked().filter(platform=platform)[:_AT_ONCE]:
        if not credential_check_claim(credential):
            continue
        try:
            credentials_check(channel_id=credential.channel_id, platform=platform)
        except (CredentialsMissing, CredentialsUnreadable, SecretUnreadable):
            logger.warning("credentials.unreadable", platform=platform.value)


def retry_due(platform: Platform) -> None:
    """Tries the channels whose next try is due. Each try is made by one worker. If that worker
    dies, the next try follows at its own time."""
    service, held, tried = TOKEN_SERVICES[platform], set(breakers.held()), 0
    for credential in credentials_to_retry().filter(platform=platform)[:_LOOKED_AT]:
        is_held = held & {service, breakers.of_channel(service, credential.channel_id)}
        if is_held or not credential_retry_claim(credential):
            continue
        _retry(credential, platform)
        tried += 1
        if tried == _AT_ONCE:
            return


def _retry(credential: ProviderCredential, platform: Platform) -> None:
    logger.info("platform.retried", channel=credential.channel_id, platform=platform)
    lease = batches.claim_parked(platform, credential.channel_id)
    ends_pause = partial(_ends_pause, credential, platform)
    try:
        if lease is None:
            ends_pause(None)
        else:
            dispatch.try_parked(lease, ends_pause)
    except CredentialsUnreadable:
        _record(credential.channel_id, platform, credential.version, _UNREADABLE)
    except SecretUnreadable:
        logger.warning("credentials.unreadable", platform=platform.value)
    except (CredentialsMissing, Halted):
        pass  # deleted, or the notification was paused, meanwhile


def _ends_pause(
    credential: ProviderCredential, platform: Platform, outcome: Outcome | None
) -> bool:
    """Stores what the try showed. Returns whether the platform is to be resumed.

    A Rejected proves nothing, because some are returned before the credentials are read. Then, and
    without a recipient, a check decides.
    """
    if outcome is None or isinstance(outcome, Rejected):
        return (
            credentials_check(channel_id=credential.channel_id, platform=platform).is_good is True
        )
    check = _check_of(outcome)
    _record(credential.channel_id, platform, credential.version, check)
    return check.is_good is True


def _check_of(outcome: Outcome) -> CredentialCheck:
    """What the outcome shows about the credentials. To find out that a device is gone, or does not
    exist, the push service has read them."""
    match outcome:
        case Accepted():
            return CredentialCheck(True, "accepted")
        case Misconfigured(code, detail):
            return CredentialCheck(False, code, detail)
        case Deferred(code=code, detail=detail):
            return CredentialCheck(None, code, detail)
        case Gone(code=code, detail=detail) | Rejected(code=code, detail=detail):
            return CredentialCheck(True, code, detail)
        case _:
            assert_never(outcome)


def _record(channel_id: UUID, platform: Platform, version: int, check: CredentialCheck) -> None:
    credential_check_record(
        channel_id=channel_id,
        platform=platform,
        version=version,
        is_accepted=check.is_good,
        code=check.code,
        detail=check.detail,
    )


async def _call(platform: Platform, credentials: Credentials) -> Outcome:
    expires_at = asyncio.get_running_loop().time() + _SECONDS
    content = Content(body="Credential test", ttl=0, urgency="low")
    message = Message(uuid7(), content, expires_at=expires_at)
    destination = Destination(uuid7(), TRANSPORTS[platform].no_device, "")
    client = connections.new_client(platform)
    try:
        return await client.send(message, destination, credentials)
    finally:
        await client.close()

"""Asks FCM about addresses of phones, without a message to any of them."""

import asyncio
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from notifications_app.content.values import Content
from notifications_app.delivery.registry import Credentials
from notifications_app.delivery.types import Destination, Message, Outcome
from notifications_app.pipeline import connections
from notifications_app.pipeline.destinations import stored_credentials
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform

_SECONDS: Final = 60.0


def tokens_check(*, channel_id: UUID, addresses: Sequence[str]) -> list[Outcome]:
    """What FCM says about each of these registration tokens and installation ids, with the
    channel's credentials. Makes all calls at once, so there should be few.

    Raises CredentialsMissing, CredentialsUnreadable, SecretUnreadable.
    """
    credentials = stored_credentials(Platform.ANDROID, channel_id)
    return asyncio.run(_answers(credentials, addresses))


async def _answers(credentials: Credentials, addresses: Sequence[str]) -> list[Outcome]:
    expires_at = asyncio.get_running_loop().time() + _SECONDS
    message = Message(uuid7(), Content(body="Import test", ttl=0), expires_at=expires_at)
    client = connections.new_client(Platform.ANDROID)
    try:
        calls = (
            client.validate(message, Destination(uuid7(), address, ""), credentials)
            for address in addresses
        )
        return await asyncio.gather(*calls)
    finally:
        await client.close()

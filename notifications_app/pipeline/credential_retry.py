"""Tries paused platforms again: with one recipient that waits, or with a check if none waits.

A platform that the push service accepts again is resumed. Its parked batches are made ready by the
next tick, as after a replacement of the credentials.
"""

from functools import partial
from typing import Final

import structlog

from channels_app.models import ProviderCredential
from channels_app.pauses import credential_check_record, credential_retry_claim
from channels_app.selectors import credentials_to_retry, credentials_unchecked
from notifications_app.delivery.types import Accepted, Deferred, Gone, Misconfigured, Outcome
from notifications_app.pipeline import batches, breakers, dispatch
from notifications_app.pipeline.credential_check import credentials_check
from notifications_app.pipeline.destinations import CredentialsMissing, CredentialsUnreadable
from notifications_app.pipeline.reading import Halted
from pushsvc.common.endpoints import TOKEN_SERVICES
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import SecretUnreadable

logger = structlog.stdlib.get_logger(__name__)

_AT_ONCE: Final = 5  # tries in one task, so that a task occupies its worker for a bounded time
_LOOKED_AT: Final = 100  # of which others may be held by a breaker
_UNREADABLE: Final = "The stored credentials cannot be read."


def platforms_with_work() -> list[Platform]:
    """Platforms with credentials that are to be checked, or tried again, now."""
    unchecked = credentials_unchecked().order_by().values_list("platform", flat=True)
    due = credentials_to_retry().order_by().values_list("platform", flat=True)
    return [Platform(name) for name in unchecked.union(due)]


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
        _record(credential, False, "key_unreadable", _UNREADABLE)
    except SecretUnreadable:
        logger.warning("credentials.unreadable", platform=platform.value)
    except (CredentialsMissing, Halted):
        pass  # deleted, or the notification was paused, meanwhile


def _ends_pause(
    credential: ProviderCredential, platform: Platform, outcome: Outcome | None
) -> bool:
    """Stores what the try showed. Returns whether the platform is to be resumed.

    The credentials are proven by an accepted message, and by a Gone: to find out that a device is
    gone, the push service has looked at the message. A Rejected proves nothing, because some are
    answered before the credentials are read. Then a check decides.
    """
    match outcome:
        case Accepted():
            _record(credential, True, "accepted")
            return True
        case Gone(code=code, detail=detail):
            _record(credential, True, code, detail)
            return True
        case Misconfigured(code=code, detail=detail):
            _record(credential, False, code, detail)
            return False
        case Deferred(code=code, detail=detail):
            _record(credential, None, code, detail)
            return False
        case _:
            check = credentials_check(channel_id=credential.channel_id, platform=platform)
            return check.is_good is True


def _record(
    credential: ProviderCredential, is_accepted: bool | None, code: str, detail: str = ""
) -> None:
    credential_check_record(
        channel_id=credential.channel_id,
        platform=credential.platform,
        version=credential.version,
        is_accepted=is_accepted,
        code=code,
        detail=detail,
    )

"""Pauses of platforms whose credentials were refused, the retries that end them, and checks.

Every write is one conditional update that names the version of the credentials. So a late result
for one version changes nothing once other credentials are stored.
"""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import (
    Case,
    DurationField,
    ExpressionWrapper,
    F,
    IntegerField,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Least, Now
from django.db.models.lookups import Exact

from channels_app.feeds import EventKind, message_add
from channels_app.models import ProviderCredential
from channels_app.selectors import credentials_to_retry
from pushsvc.common.platforms import Platform

logger = structlog.stdlib.get_logger(__name__)

# Before the first, second, third and every later retry of a paused platform.
_RETRY_WAITS: Final = tuple(timedelta(minutes=each) for each in (1, 5, 15, 30))
_MOST_RETRIES: Final = 1_000  # counted; no wait depends on more
_GOES_ON_WITHIN: Final = timedelta(hours=1)


def platform_pause(
    *, channel_id: UUID, platform: Platform, version: int, code: str, detail: str
) -> bool:
    """Pauses the platform. Returns False if it was already paused, or if this version is no longer
    current.

    The platform is retried automatically. If a retry ended its last pause within the last hour, the
    waits between retries continue where they were, so that a platform that is paused repeatedly is
    not retried every minute.
    """
    current = _current(channel_id, platform, version).filter(paused_at__isnull=True)
    is_again = When(retried_at__gt=Now() - _GOES_ON_WITHIN, then=F("retries"))
    retries = Case(is_again, default=0)
    with transaction.atomic():
        paused = current.update(
            paused_at=Now(),
            **_refusal(code, detail),
            retries=retries,
            retry_at=Now() + _wait_after(retries),
            **_checked(False, code, detail),
        )
        if paused:
            message_add(
                EventKind.PAUSED, channel_id, platform=platform, code=code, detail=detail[:200]
            )
    if paused:
        logger.warning("platform.paused", channel=channel_id, platform=platform, code=code)
    return bool(paused)


def credential_retry_claim(credential: ProviderCredential) -> bool:
    """Claims the due retry of a paused platform. Returns True for one caller only.

    Also sets the time of the next retry, so that the platform is retried even if the caller dies.
    """
    due = credentials_to_retry().filter(pk=credential.pk, version=credential.version)
    retries = Least(F("retries") + 1, _MOST_RETRIES)
    claimed = due.update(
        retried_at=Now(), retries=retries, retry_at=Now() + _wait_after(retries), **_unended()
    )
    return claimed == 1


def credential_check_record(
    *,
    channel_id: UUID,
    platform: str,
    version: int,
    is_accepted: bool | None,
    code: str,
    detail: str = "",
) -> None:
    """Stores the result of a check, or of a retry of a paused platform, if this version is
    still current. An accepted check ends a pause.

    `is_accepted` is None if the push service could not be reached.
    """
    current = _current(channel_id, platform, version)
    checked = _checked(is_accepted, code, detail)
    paused = current.filter(paused_at__isnull=False)
    if is_accepted and _resume(channel_id, platform, paused, checked, code, detail):
        logger.info("platform.resumed", channel=channel_id, platform=platform)
        return
    if is_accepted is False and paused.update(**checked, **_refusal(code, detail)):
        return
    current.update(**checked)


@transaction.atomic
def _resume(
    channel_id: UUID,
    platform: str,
    paused: QuerySet[ProviderCredential],
    checked: dict[str, Any],
    code: str,
    detail: str,
) -> bool:
    """Returns whether this ended the pause."""
    if not paused.update(**checked, paused_at=None, **_refusal("", "")):
        return False
    message_add(EventKind.RESUMED, channel_id, platform=platform, code=code, detail=detail[:200])
    return True


def credential_check_claim(credential: ProviderCredential) -> bool:
    """Claims the check of this version. Returns True for one caller only. If its check never ends,
    the credentials have no result, and staff can check them again."""
    unchecked = ProviderCredential.objects.filter(
        pk=credential.pk, version=credential.version, checked_at__isnull=True
    )
    return unchecked.update(**_unended()) == 1


def _current(channel_id: UUID, platform: str, version: int) -> QuerySet[ProviderCredential]:
    """The credentials, if this version is still current."""
    return ProviderCredential.objects.filter(
        channel_id=channel_id, platform=platform, version=version
    )


def _refusal(code: str, detail: str) -> dict[str, str]:
    return {"paused_code": code[:64], "paused_detail": detail[:200]}


def _checked(is_accepted: bool | None, code: str, detail: str) -> dict[str, Any]:
    words = f"{code}: {detail}" if detail else code
    return {"checked_at": Now(), "is_accepted": is_accepted, "checked_words": words[:300]}


def _unended() -> dict[str, Any]:
    """What is stored until a check has ended, and if it never does."""
    return {"checked_at": Now(), "is_accepted": None, "checked_words": "The check did not end."}


def _wait_after(retries: Any) -> Any:
    """How long a paused platform waits for its next retry, after so many."""
    *waits, last = (Value(wait) for wait in _RETRY_WAITS)
    counted = ExpressionWrapper(retries, output_field=IntegerField())
    whens = [When(Exact(counted, number), then=wait) for number, wait in enumerate(waits)]
    return Case(*whens, default=last, output_field=DurationField())

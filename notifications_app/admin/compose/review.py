"""The review of a notification: who gets it, when, and the message as devices get it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils.translation import gettext

from channels_app.models import Channel
from notifications_app.admin.compose.audience import rule_words
from notifications_app.admin.compose.form import ComposeForm, read_form, ttl_words
from notifications_app.admin.compose.personal import JUDGED
from notifications_app.admin.compose.rendered import in_variants
from notifications_app.admin.compose.sections import sections_of
from notifications_app.admin.compose.tested import test_words
from notifications_app.admin.compose.times import timed_words
from notifications_app.content.fields import URGENCIES
from notifications_app.content.personal import sent_literally
from notifications_app.content.values import SendRequest
from notifications_app.reporting.attention import pauses_of
from notifications_app.reporting.limited import slow_words
from notifications_app.sends.dry_run import (
    DryRun,
    capped_words,
    missed_words,
    notification_dry_run,
    rate_words,
    too_large_words,
)
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.store import sql
from subscriptions_app.audiences.targets import TargetIds
from subscriptions_app.models import Segment

_KEY: Final = "console "


@dataclass(frozen=True, slots=True)
class Reach:
    """How many devices of a platform would get the notification, and its size in bytes.
    `too_large`: texts about devices for which it is too large."""

    platform: Platform
    payload_bytes: int | None
    most_bytes: int
    audience: int
    estimated: bool
    too_large: Sequence[str] = ()

    @property
    def name(self) -> str:
        return PLATFORM_NAMES[self.platform]


class ReviewOutdated(Exception):
    """What the user reviewed has changed since."""


def review_context(channel: Channel, form: ComposeForm, request: HttpRequest) -> dict[str, Any]:
    """The context of `console/notifications/reviewed.html`. Raises what `read_form` raises,
    and what a dry run raises."""
    send, _ = read_form(form)
    found = notification_dry_run(channel=channel, request=send, sample=JUDGED)
    reach = reach_of(found)
    sections = sections_of(form)
    return {
        "form": form,
        "send": send,
        **sections,
        "reach": reach,
        "audience": sum(each.audience for each in reach),
        "is_estimate": any(each.estimated for each in reach),
        "limits": _limits(channel.id, reach, send.content.ttl),
        "pauses": pauses_of(channel.id, send.target_platforms),
        "is_late": is_past(send.scheduled_at),
        "is_scheduled": _is_later(send, found),
        "timed_words": timed_words(found, reader_zone(request)),
        "local_day": datetime.fromisoformat(send.local_at) if send.local_at else None,
        "segment": found.segment,
        "seen": seen_of(send, found.segment),
        "rule_words": "" if send.replaces else rule_words(send.rule, request),
        "literal": sent_literally(send.content),
        "urgency": gettext(URGENCIES[send.content.urgency]),
        "variants_shown": in_variants(channel, send, found, sections["languages"]),
        "test_words": test_words(send.test) if send.test else "",
        **named_context(found),
        **paced_context(found, send),
        "time_zone": form.time_zone,
        "local_moment": _local(send.scheduled_at, form.time_zone),
        "local_end": _local(send.expires_at, form.time_zone),
        "ttl": ttl_words(send.content.ttl),
    }


def new_key() -> str:
    """An idempotency key, with which confirming a review twice sends one notification."""
    return _KEY + str(uuid4())


def seen_of(send: SendRequest, segment: Segment | None) -> str:
    """What a review shows of things that can change before the user confirms it: whether the time
    has passed, and the version of the segment."""
    late = "late" if is_past(send.scheduled_at) else ""
    return f"{late} {segment.version if segment else ''}".strip()


def _local(moment: datetime | None, time_zone: str) -> datetime | None:
    """The local time without an offset, so that templates do not convert it."""
    return moment.astimezone(ZoneInfo(time_zone)).replace(tzinfo=None) if moment else None


def named_context(found: DryRun) -> dict[str, Any]:
    """For a send to targets: unknown ids, and platforms that get nothing."""
    unknown = found.unknown or TargetIds()
    return {
        "unknown": [*unknown.external_ids, *map(str, unknown.subscription_ids)],
        "missed": missed_words(found) if found.missed else "",
    }


def paced_context(found: DryRun, send: SendRequest) -> dict[str, str]:
    """For a send with a rate: how long it takes, and whether it expires before. For one with caps:
    how many are left out."""
    pace, unreached = rate_words(found, send)
    return {"pace": pace, "unreached": unreached, "capped": capped_words(found)}


def reach_of(found: DryRun) -> list[Reach]:
    return [
        Reach(
            platform,
            each.payload_bytes,
            each.payload_limit,
            each.audience.size,
            each.audience.estimated,
            too_large_words(each),
        )
        for platform, each in found.platforms.items()
    ]


def _limits(channel_id: UUID, reach: Sequence[Reach], ttl: int) -> list[str]:
    """What push services that limit the channel do to a send to these browsers."""
    browsers = sum(each.audience for each in reach if each.platform == Platform.WEB)
    return slow_words(channel_id, browsers, ttl) if browsers else []


def _is_later(send: SendRequest, found: DryRun) -> bool:
    moment = found.releases[0].release_at if send.local_at else send.scheduled_at
    return moment is not None and not is_past(moment)


def is_past(moment: datetime | None) -> bool:
    return moment is not None and moment <= sql.now()

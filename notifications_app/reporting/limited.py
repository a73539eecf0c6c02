"""Push services that limit a channel, and what that does to its sends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Least
from django.utils.translation import gettext

from channels_app.models import Channel
from notifications_app.models import RECIPIENTS_LEFT, Batch, Notification
from notifications_app.pipeline import web_rate
from notifications_app.pipeline.web_rate import Limit
from notifications_app.querysets import BatchQuerySet
from notifications_app.states import NotificationStatus
from pushsvc.common.findings import Finding, Kind
from pushsvc.common.platforms import Platform
from pushsvc.common.quantities import duration
from pushsvc.common.texts import later, localized

_MOST_SHOWN: Final = 10
_BROWSERS: Final = {"fcm": "Chrome", "mozilla": "Mozilla", "apple": "Apple", "wns": "Microsoft"}
# https://developer.chrome.com/blog/web-push-rate-limits
_CHROME_HELP: Final = later(
    "Google rates each site daily by its messages and permission prompts for the time that people "
    "spend on it. Send fewer messages, to people who open them, and ask for permission only where "
    "people expect it. The limit lasts a day, then 7, then 14 days; 42 good days reset that."
)
_HELP: Final = later("Send fewer messages, or spread them over time.")


@dataclass(frozen=True, slots=True)
class Outlook:
    """What becomes of recipients that wait at a push service that limits the channel: `waiting`
    now, until the last is called after `lasts`, except those that will have expired."""

    limit: Limit
    waiting: int
    lasts: timedelta
    expiring: int

    @property
    def facts(self) -> dict[str, Any]:
        per_minute = _rounded(self.limit.per_minute)
        return {"service": name_of(self.limit.service), "per_minute": per_minute}

    @property
    def title(self) -> str:
        return Kind.LIMITED.titled(**self.facts)

    @property
    def effect(self) -> str:
        if not self.waiting:
            return gettext("Nobody waits for it now.")
        texts = [
            gettext("%(waiting)s recipients wait; the last of them is called in about %(lasts)s.")
            % {
                "waiting": localized(f"{self.waiting:,}"),
                "lasts": duration(self.lasts.total_seconds()),
            }
        ]
        if self.expiring:
            words = gettext("About %(expiring)s of them will expire before.")
            texts.append(words % {"expiring": localized(f"{self.expiring:,}")})
        return " ".join(texts)

    @property
    def help(self) -> str:
        return _CHROME_HELP if self.limit.service == "fcm" else _HELP


def name_of(service: str) -> str:
    named = gettext("The push service %(service)s") % {"service": service}
    return _BROWSERS.get(service, named)


def limited_by(notification: Notification) -> str | None:
    """The push service that limits the notification's channel, and at which recipients wait."""
    if notification.status != NotificationStatus.PROCESSING:
        return None
    limits = web_rate.limits_of(notification.channel_id)
    if not limits:
        return None
    services = [limit.service for limit in limits]
    batches = Batch.objects.filter(notification_id=notification.pk, push_service__in=services)
    waiting = set(batches.open().values_list("push_service", flat=True))
    return next((service for service in services if service in waiting), None)


def outlooks(notification: Notification, now: datetime) -> list[Outlook]:
    """For each push service that limits the channel and at which recipients of the notification
    wait."""
    if notification.status != NotificationStatus.PROCESSING:
        return []
    limits = web_rate.limits_of(notification.channel_id)
    own = Batch.objects.filter(notification_id=notification.pk)
    found = [_outlook(limit, own, now) for limit in limits]
    return [each for each in found if each.waiting]


def slow_words(channel_id: UUID, audience: int, ttl: int) -> list[str]:
    """For each push service that limits the channel: how long a send to so many browsers takes
    there at most. `ttl`: the send's, in seconds."""
    return [_slow_words(limit, audience, ttl) for limit in web_rate.limits_of(channel_id)]


def _slow_words(limit: Limit, audience: int, ttl: int) -> str:
    seconds = 60 * audience / limit.per_minute
    text = gettext(
        "%(service)s accepts about %(rate)s messages a minute of this channel now. If all "
        "%(audience)s browsers are there, this takes %(duration)s."
    ) % {
        "service": name_of(limit.service),
        "rate": localized(f"{_rounded(limit.per_minute):,}"),
        "audience": localized(f"{audience:,}"),
        "duration": duration(seconds),
    }
    if seconds > ttl:
        text += " " + gettext("Those that are not reached within the time to live expire.")
    return text


def is_not_limited() -> Q:
    """Batches that do not wait because a push service limits their channel."""
    limits = web_rate.limits()
    own = (Q(channel=each.channel_id, push_service=each.service) for each in limits)
    return ~reduce(or_, own) if limits else Q()


def limited(
    channels: QuerySet[Channel], now: datetime, most: int = _MOST_SHOWN
) -> Iterator[Finding]:
    """Channels that a push service limits."""
    limits = web_rate.limits()
    ids = {limit.channel_id for limit in limits}
    names = dict(channels.filter(pk__in=ids).values_list("pk", "name")) if ids else {}
    own = [limit for limit in limits if limit.channel_id in names]
    for limit in islice(own, most):
        outlook = _outlook(limit, Batch.objects.filter(channel_id=limit.channel_id), now)
        yield Kind.LIMITED.found(
            effect=outlook.effect,
            help=outlook.help,
            since=limit.since,
            channel=(limit.channel_id, names[limit.channel_id]),
            platform=Platform.WEB,
            subject=limit.service,
            **outlook.facts,
        )


def _outlook(limit: Limit, batches: BatchQuerySet[Any], now: datetime) -> Outlook:
    groups = _groups(batches, limit.service)
    waiting = sum(recipients for _, recipients in groups)
    lasts = timedelta(minutes=waiting / limit.per_minute)
    return Outlook(limit, waiting, lasts, _expiring(groups, limit.per_minute, now))


def _groups(batches: BatchQuerySet[Any], service: str) -> list[tuple[datetime | None, int]]:
    """How many recipients wait until each deadline, the earliest first."""
    groups = (
        batches.filter(push_service=service, plan__halted_at__isnull=True)
        .open()
        .annotate(until=Least("plan__deadline_at", "notification__expires_at"))
        .values("until")
        .annotate(recipients=Sum(RECIPIENTS_LEFT))
    )
    return list(groups.order_by("until").values_list("until", "recipients"))


def _expiring(groups: Sequence[tuple[datetime | None, int]], per_minute: int, now: datetime) -> int:
    """How many recipients cannot be called before their deadlines, if the earliest come first."""
    called = expiring = 0
    for until, recipients in groups:
        if until is None:
            continue
        room = max(0, int((until - now).total_seconds() * per_minute / 60) - called)
        called += min(room, recipients)
        expiring += max(0, recipients - room)
    return expiring


def _rounded(per_minute: int) -> int:
    """To two digits, because a limit is an estimate."""
    return int(float(f"{per_minute:.2g}"))

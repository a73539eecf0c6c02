"""Dry runs: check and count a send without storing it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils.translation import gettext

from channels_app.models import Channel
from notifications_app.content.values import Content, SendRequest
from notifications_app.delivery.registry import TRANSPORTS
from notifications_app.errors import SegmentNotFound
from notifications_app.pipeline.contacts import Cap, caps_from, over_caps
from notifications_app.pipeline.halting import time_to_live
from notifications_app.pipeline.send_rates import least_seconds
from notifications_app.sends.checks import (
    caps_of,
    channel_check,
    content_check,
    declarative_payload,
    time_check,
    with_defaults,
)
from notifications_app.sends.sampling import SAMPLED, largest_payloads, sampled_devices
from notifications_app.sends.timed import Release, named_by, releases_of
from notifications_app.timing import Timing
from pushsvc.common.errors import NotFound
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.quantities import duration
from pushsvc.common.store import sql
from pushsvc.common.texts import localized
from subscriptions_app.audiences.sizes import Size, audience_size, services_seen
from subscriptions_app.audiences.targets import TargetIds, targets_reach
from subscriptions_app.categories.consent import consent_to
from subscriptions_app.models import Segment, Subscription
from subscriptions_app.segments.compiler import EVERYBODY, Condition
from subscriptions_app.segments.rules import Rule
from subscriptions_app.segments.selectors import segment_get

# The devices for which a push service takes less.
_TIGHT: Final = {"mozilla": "Firefox for Android"}


@dataclass(frozen=True, slots=True)
class ServiceDryRun:
    """The result at one push service: bytes per device, and how many it takes for each device."""

    payload_bytes: int
    payload_limit: int


@dataclass(frozen=True, slots=True)
class PlatformDryRun:
    """The result on one platform: bytes per device, and how many devices. `largest_sampled`: for a
    personal send, the most bytes for one of some sampled devices; None without devices.
    `services`: by the name of each push service that was seen in the audience; on the web only."""

    payload_bytes: int
    payload_limit: int
    audience: Size
    largest_sampled: int | None = None
    services: Mapping[str, ServiceDryRun] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run. For a send to targets: `unknown` are the targets that the channel
    does not have, and `missed` the platforms of the targets' devices that the send does not name.
    `releases`: when each time zone gets a send by local time or with quiet hours, which `timing`
    has. `capped`: how many of the audience a cap would leave out now; None without caps. `segment`:
    the send's. `sampled`: some devices that a personalized send would reach.
    """

    platforms: Mapping[Platform, PlatformDryRun]
    unknown: TargetIds | None = None
    missed: tuple[Platform, ...] = ()
    rate_per_minute: int | None = None
    timing: Timing | None = None
    releases: Sequence[Release] = ()
    capped: Size | None = None
    segment: Segment | None = None
    sampled: Mapping[Platform, Sequence[Subscription]] = field(default_factory=dict)

    @property
    def audience(self) -> int:
        return sum(each.audience.size for each in self.platforms.values())

    @property
    def takes_at_least_seconds(self) -> int | None:
        """None without a rate."""
        rate = self.rate_per_minute
        return least_seconds(self.audience, rate) if rate else None


def notification_dry_run(
    *, channel: Channel, request: SendRequest, sample: int = SAMPLED
) -> DryRun:
    """Checks everything that `notification_accept` checks, and stores nothing. `sample`: how many
    devices of a platform `sampled` may have."""
    request = with_defaults(channel, request)
    channel_check(channel, request)
    sizes = content_check(request)
    due = time_check(channel, request)
    timing = due.timing
    is_timed = timing is not None and (timing.local_at or timing.quiet)
    releases = releases_of(channel, request, timing) if timing and is_timed else ()
    consent = consent_to(request.category) if request.category else EVERYBODY
    caps = caps_from(caps_of(channel, request))
    over = _over(consent, caps, due.at or sql.now()) if caps else None
    segment = _segment(channel.id, request)
    rule = segment.rule if segment else request.rule
    platforms = request.target_platforms if request.content.personalize else ()
    sampled = sampled_devices(channel.id, request, rule, platforms, limit=sample)
    largest = largest_payloads(request, sampled)
    if not request.targets:
        audience = audience_size(channel.id, rule, sizes, consent)
        is_web = Platform.WEB in sizes
        seen = services_seen(channel.id, rule, Platform.WEB, consent) if is_web else ()
        services = _at_services(channel, request.content, sizes, seen)
        judged = _dry_runs(sizes, audience, largest, services)
        capped = audience_size(channel.id, rule, sizes, over) if over else None
        return DryRun(
            judged,
            rate_per_minute=_rate(channel, request),
            timing=timing,
            releases=releases,
            capped=_sum(capped.values()) if capped is not None else None,
            segment=segment,
            sampled=sampled,
        )
    reach = targets_reach(channel.id, named_by(request.targets), consent)
    counts = {platform: Size(count, estimated=False) for platform, count in reach.devices.items()}
    missed = tuple(each for each, count in reach.devices.items() if count and each not in sizes)
    at_targets = reach.services.get(Platform.WEB, ())
    services = _at_services(channel, request.content, sizes, at_targets)
    judged = _dry_runs(sizes, counts, largest, services)
    rate = _rate(channel, request)
    found = DryRun(judged, reach.unknown, missed, rate, timing, releases, sampled=sampled)
    if over is None:
        return found
    devices = targets_reach(channel.id, named_by(request.targets), over).devices
    size = sum(devices[platform] for platform in sizes)
    return replace(found, capped=Size(size, estimated=False))


def _over(consent: Condition, caps: Sequence[Cap], at: datetime) -> Condition:
    """The condition that a device wants the send, and a cap leaves it out."""
    over = over_caps(caps, at)
    parameters = {**consent.parameters, **over.parameters}
    return Condition(f"({consent.text} AND {over.text})", parameters)


def _sum(sizes: Collection[Size]) -> Size:
    return Size(sum(each.size for each in sizes), any(each.estimated for each in sizes))


def missed_words(found: DryRun) -> str:
    """A text for people: on which other platforms the targets have devices."""
    names = ", ".join(PLATFORM_NAMES[each] for each in found.missed)
    words = gettext("The targets also have devices on %(names)s, which get nothing.")
    return words % {"names": names}


def capped_words(found: DryRun) -> str:
    """A text for people: how many of the audience a cap leaves out. "" if nobody."""
    if found.capped is None or not found.capped.size:
        return ""
    words = (
        gettext("About %(number)s of the audience have had enough and are skipped.")
        if found.capped.estimated
        else gettext("%(number)s of the audience have had enough and are skipped.")
    )
    return words % {"number": _grouped(found.capped.size)}


def _grouped(number: int) -> str:
    return localized(f"{number:,}")


def rate_words(found: DryRun, request: SendRequest) -> tuple[str, str]:
    """Texts for people: how long the send takes at its rate, and how many are not reached before it
    expires. Either may be ""."""
    rate, audience = found.rate_per_minute, found.audience
    if not rate:
        return "", ""
    seconds = 60 * audience / rate
    values = {"rate": _grouped(rate), "audience": _grouped(audience), "time": duration(seconds)}
    words = gettext("About %(rate)s a minute. %(audience)s take about %(time)s.") % values
    room = time_to_live(request.content.ttl)
    if request.expires_at:
        now = sql.now()
        room = min(room, request.expires_at - max(request.scheduled_at or now, now))
    elif found.releases:
        first, last = found.releases[0], found.releases[-1]
        room += last.release_at - first.release_at  # each time zone has its time to live
    late = audience - int(rate * room.total_seconds() / 60)
    if found.takes_at_least_seconds is None or late <= 0:
        return words, ""
    return words, gettext(
        "At %(rate)s a minute, about %(late)s of %(audience)s are not reached within %(time)s, and "
        "expire."
    ) % (values | {"late": _grouped(late), "time": duration(room.total_seconds())})


def _rate(channel: Channel, request: SendRequest) -> int | None:
    own = request.rate_per_minute
    return (channel.rate_per_minute if own is None else own) or None


def too_large_words(found: PlatformDryRun) -> list[str]:
    """Texts for people: for which devices of the audience the message is too large."""
    return [
        gettext("%(browser)s gets no message over %(most)s bytes. This one has %(size)s.")
        % {"browser": _TIGHT[name], "most": _grouped(each.payload_limit), "size": _grouped(size)}
        for name, each in found.services.items()
        if name in _TIGHT
        and (size := max(each.payload_bytes, found.largest_sampled or 0)) > each.payload_limit
    ]


def _dry_runs(
    sizes: Mapping[Platform, int],
    audience: Mapping[Platform, Size],
    sampled: Mapping[Platform, int | None],
    services: Mapping[str, ServiceDryRun],
) -> dict[Platform, PlatformDryRun]:
    """`services`: the push services of the web's audience."""
    largest = max((each.payload_bytes for each in services.values()), default=0)
    found = {
        platform: PlatformDryRun(
            size, TRANSPORTS[platform].max_payload, audience[platform], sampled.get(platform)
        )
        for platform, size in sizes.items()
    }
    if web := found.get(Platform.WEB):
        size = max(web.payload_bytes, largest)
        found[Platform.WEB] = replace(web, payload_bytes=size, services=services)
    return found


def _at_services(
    channel: Channel, content: Content, sizes: Mapping[Platform, int], services: Iterable[str]
) -> dict[str, ServiceDryRun]:
    """By the names of the web push services."""
    web = TRANSPORTS[Platform.WEB]
    found = {}
    for name in services if Platform.WEB in sizes else ():
        is_declarative = name in web.declarative_services
        size = declarative_payload(channel, content) if is_declarative else sizes[Platform.WEB]
        found[name] = ServiceDryRun(size, web.sure_payloads.get(name, web.max_payload))
    return found


def audience_rule(channel_id: UUID, request: SendRequest) -> Rule | None:
    """The rule of a send without targets; None means the whole channel. Raises SegmentNotFound."""
    segment = _segment(channel_id, request)
    return segment.rule if segment else request.rule


def _segment(channel_id: UUID, request: SendRequest) -> Segment | None:
    if request.segment_id is None:
        return None
    try:
        return segment_get(channel_id=channel_id, segment_id=request.segment_id)
    except NotFound as error:
        raise SegmentNotFound from error

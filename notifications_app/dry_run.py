"""Dry runs: check and count a send without storing it."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from channels_app.models import Channel
from notifications_app.content import SendRequest
from notifications_app.delivery.registry import TRANSPORTS
from notifications_app.errors import SegmentNotFound
from notifications_app.sampling import largest_payload, named_by
from notifications_app.send_checks import (
    channel_check,
    content_check,
    expiry_check,
    with_platforms,
)
from pushsvc.common.errors import NotFound
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from subscriptions_app.consent import consent_to
from subscriptions_app.named import Named, reach_of
from subscriptions_app.segments.compiler import EVERYBODY
from subscriptions_app.segments.rules import Rule
from subscriptions_app.selectors import segment_get
from subscriptions_app.sizes import Size, audience_size


@dataclass(frozen=True, slots=True)
class PlatformDryRun:
    """The result on one platform: bytes per device, and how many devices. `largest_sampled`: for a
    personal send, the most bytes for one of some sampled devices; None without devices."""

    payload_bytes: int
    payload_limit: int
    audience: Size
    largest_sampled: int | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run. For a send to targets: `unknown` are the targets that the channel
    does not have, and `missed` the platforms of the targets' devices that the send does not name.
    """

    platforms: Mapping[Platform, PlatformDryRun]
    unknown: Named | None = None
    missed: tuple[Platform, ...] = ()


def notification_dry_run(*, channel: Channel, request: SendRequest) -> DryRun:
    """Checks everything that `notification_accept` checks, and stores nothing."""
    request = with_platforms(channel, request)
    channel_check(channel, request)
    sizes = content_check(request)
    expiry_check(request)
    consent = consent_to(request.category) if request.category else EVERYBODY
    rule = audience_rule(channel.id, request)
    sampled = _sampled(channel.id, request, rule)
    if not request.targets:
        audience = audience_size(channel.id, rule, sizes, consent)
        return DryRun(_dry_runs(sizes, audience, sampled))
    reach = reach_of(channel.id, named_by(request.targets), consent)
    counts = {platform: Size(count, estimated=False) for platform, count in reach.devices.items()}
    missed = tuple(each for each, count in reach.devices.items() if count and each not in sizes)
    return DryRun(_dry_runs(sizes, counts, sampled), reach.unknown, missed)


def missed_words(found: DryRun) -> str:
    """A text for people: on which other platforms the targets have devices."""
    names = ", ".join(PLATFORM_NAMES[each] for each in found.missed)
    return f"The targets also have devices on {names}, which get nothing."


def _sampled(
    channel_id: UUID, request: SendRequest, rule: Rule | None
) -> dict[Platform, int | None]:
    if not request.content.personalize:
        return {}
    return {
        platform: largest_payload(channel_id, request, rule, platform)
        for platform in request.target_platforms
    }


def _dry_runs(
    sizes: Mapping[Platform, int],
    audience: Mapping[Platform, Size],
    sampled: Mapping[Platform, int | None],
) -> dict[Platform, PlatformDryRun]:
    return {
        platform: PlatformDryRun(
            size, TRANSPORTS[platform].max_payload, audience[platform], sampled.get(platform)
        )
        for platform, size in sizes.items()
    }


def audience_rule(channel_id: UUID, request: SendRequest) -> Rule | None:
    """The rule of a send without targets; None means the whole channel. Raises SegmentNotFound."""
    if request.segment_id is None:
        return request.rule
    try:
        rule: Rule = segment_get(channel_id=channel_id, segment_id=request.segment_id).rule
    except NotFound as error:
        raise SegmentNotFound from error
    return rule

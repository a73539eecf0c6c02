"""Samples devices of an audience to measure and preview a personal send."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from notifications_app.content.placeholders import Values
from notifications_app.content.values import MAX_TARGETS, SendRequest
from notifications_app.delivery.messages import Messages
from notifications_app.device_values import device_values, spoken_by
from notifications_app.sends.checks import ANY_ID, payload_size
from notifications_app.sends.timed import named_by
from pushsvc.common.platforms import Platform
from subscriptions_app.audiences.languages import shares_of
from subscriptions_app.audiences.sizes import audience_sample, languages_seen
from subscriptions_app.audiences.targets import targets_sample
from subscriptions_app.categories.consent import consent_to
from subscriptions_app.models import Subscription
from subscriptions_app.segments.compiler import EVERYBODY
from subscriptions_app.segments.rules import Rule

SAMPLED: Final = 20  # devices of each platform


def largest_payloads(
    request: SendRequest, sampled: Mapping[Platform, Sequence[Subscription]]
) -> dict[Platform, int | None]:
    """By platform: the largest message in bytes among those of the first SAMPLED devices; None
    without devices."""
    return {
        platform: _largest(request, platform, own[:SAMPLED]) for platform, own in sampled.items()
    }


def _largest(
    request: SendRequest, platform: Platform, devices: Sequence[Subscription]
) -> int | None:
    values = [(spoken_by(each), sampled_values(request, each)) for each in devices]
    sizes: list[int] = []
    for _, content in request.content.versions:
        messages = Messages(ANY_ID, content, platform, expires_at=0.0)
        sizes += [payload_size(platform, messages.filled(*own)) for own in values]
    return max(sizes, default=None)


def sampled_devices(
    channel_id: UUID,
    request: SendRequest,
    rule: Rule | None,
    platforms: Iterable[Platform],
    *,
    limit: int,
) -> dict[Platform, list[Subscription]]:
    """Some devices of each platform that the send would reach, with their persons. `rule`: of an
    audience without targets; None means the whole channel."""
    found: dict[Platform, list[Subscription]] = {platform: [] for platform in platforms}
    ids = _sampled(channel_id, request, rule, found, limit) if found else ()
    devices = Subscription.objects.filter(id__in=ids).select_related("person").order_by("-id")
    for device in devices if ids else ():
        found[Platform(device.platform)].append(device)
    return found


def sampled_languages(
    channel_id: UUID, request: SendRequest, rule: Rule | None, sizes: Mapping[Platform, int]
) -> Mapping[str, float]:
    """The shares of languages in the send's audience, as `shares_of` returns them. `sizes`: of the
    audience on each platform."""
    if request.targets:
        devices = sampled_devices(channel_id, request, rule, sizes, limit=MAX_TARGETS).values()
        spoken = Counter((each.platform, spoken_by(each)) for own in devices for each in own)
        return shares_of([(*key, count) for key, count in spoken.items()], sizes)
    consent = consent_to(request.category) if request.category else EVERYBODY
    return shares_of(languages_seen(channel_id, rule, sizes, consent), sizes)


def sampled_values(request: SendRequest, device: Subscription) -> Values:
    """The values of the send's placeholders for the device."""
    sent_vars = _sent_vars(request, device)
    return device_values(device, notification_id=ANY_ID, sent_vars=sent_vars)


def _sampled(
    channel_id: UUID,
    request: SendRequest,
    rule: Rule | None,
    platforms: Iterable[Platform],
    limit: int,
) -> Sequence[UUID]:
    if not request.targets:
        consent = consent_to(request.category) if request.category else EVERYBODY
        return audience_sample(channel_id, rule, platforms, limit=limit, consent=consent)
    return targets_sample(channel_id, named_by(request.targets), platforms, limit=limit)


def _sent_vars(request: SendRequest, device: Subscription) -> dict[str, Any]:
    """The `vars` of the send with those of the targets that name the device. Values of the
    subscription override those of the person."""
    person = device.person.external_id if device.person else None
    sent_vars = dict(request.content.vars)
    for own in ((person, None), (None, device.id)):
        for each in request.targets:
            if own == (each.external_id, each.subscription_id):
                sent_vars |= each.vars or {}
    return sent_vars

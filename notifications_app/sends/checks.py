"""Checks a send before it is stored: its platforms, audience, category, content and time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext

from channels_app.models import Channel
from channels_app.selectors import channel_get, is_enabled
from notifications_app.content.personal import values_of
from notifications_app.content.tracking import TOKEN_LENGTH
from notifications_app.content.values import IGNORE, Content, SendRequest
from notifications_app.delivery.messages import Messages
from notifications_app.delivery.registry import TRANSPORTS
from notifications_app.delivery.types import Message, Site
from notifications_app.errors import CategoryRequired, PayloadTooLarge, SegmentNotFound
from notifications_app.models import Notification
from notifications_app.sends.corrections import with_correction
from notifications_app.sends.timed import starts_at, timing_of
from notifications_app.timing import Timing
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.links import CLICK_DEFAULT
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.categories.consent import is_category
from subscriptions_app.errors import CategoryUnknown, PlatformNotEnabled
from subscriptions_app.segments.selectors import check_notifications, segment_hold

# A payload has the same size with any id and with any token.
ANY_ID: Final = UUID(int=0)
_ANY_TOKEN: Final = "x" * TOKEN_LENGTH


@dataclass(frozen=True, slots=True)
class Due:
    """When a send is due; None means immediately."""

    at: datetime | None
    timing: Timing | None


def with_defaults(
    channel: Channel, request: SendRequest, *, is_started: bool = False
) -> SendRequest:
    """The request with the channel's platforms and its behavior of a click, unless it names its
    own. A correction as by `with_correction`, which may raise; `is_started` as there."""
    if request.replaces is not None:
        replaces = request.replaces
        request = with_correction(channel.id, request, replaces, is_started=is_started)
    if channel.web_click != CLICK_DEFAULT and "click" not in request.content.web:
        web = {**request.content.web, "click": channel.web_click}
        request = replace(request, content=replace(request.content, web=web))
    if request.target_platforms:
        return request
    # Read from the database, because the channel's row may be a second old.
    enabled = [name for name, is_on in channel_get(channel.id).platforms.items() if is_on]
    if not enabled:
        raise Invalid(
            [
                FieldError(
                    "target_platforms", "empty", gettext("The channel has no platform enabled.")
                )
            ]
        )
    return replace(request, target_platforms=tuple(map(Platform, enabled)))


def send_check(*, channel: Channel, request: SendRequest) -> Due:
    """Raises for a send that may not be stored. Holds its segment until the transaction ends, so
    that it cannot be deleted."""
    audience_check(channel=channel, request=request)
    content_check(request)
    return time_check(channel, request)


def audience_check(*, channel: Channel, request: SendRequest) -> None:
    """Raises PlatformNotEnabled, CategoryUnknown, CategoryRequired, SegmentNotFound, and
    NotificationNotFound for one that the rule names. Holds the segment until the transaction ends.
    """
    channel_check(channel, request)
    segment_id = request.segment_id
    if segment_id and not segment_hold(channel_id=channel.id, segment_id=segment_id):
        raise SegmentNotFound


def content_check(request: SendRequest) -> dict[Platform, int]:
    """Returns the bytes of the largest message by platform. Raises Invalid, PayloadTooLarge."""
    for platform in request.target_platforms:
        if names := TRANSPORTS[platform].unusable_data_names(request.content):
            detail = gettext("This name is reserved on %(platform)s; choose another.") % {
                "platform": PLATFORM_NAMES[platform]
            }
            raise Invalid([FieldError(f"data.{name}", "reserved_name", detail) for name in names])
    return {
        platform: _largest_payload(platform, request.content, request.root_id)
        for platform in request.target_platforms
    }


def time_check(channel: Channel, request: SendRequest) -> Due:
    """Raises Invalid for a send that would expire before it is due."""
    timing = timing_of(channel, request)
    found = Due(starts_at(channel, request, timing), timing)
    expiry_check(request, found)
    return found


def caps_of(channel: Channel, request: SendRequest) -> list[dict[str, int]] | None:
    """The caps for the send, as a notification stores them. Tests have none."""
    if request.only_subscription_id is not None:
        return None
    return [] if request.cap == IGNORE else channel.caps or None


def expiry_check(request: SendRequest, found: Due, *, decides_at: datetime | None = None) -> None:
    """Raises Invalid for a send that would expire before it is due, or before its test ends.
    `decides_at`: when that is, if the test has begun."""
    if request.expires_at is None:
        return
    now = sql.now()
    due_at = found.at or now
    minutes = (request.test or {}).get("minutes", 0)
    decided_at = decides_at or max(due_at, now) + timedelta(minutes=minutes)
    if request.expires_at <= decided_at:
        detail = gettext("Must be later than `scheduled_at` and later than now.")
        if request.test:
            detail = gettext("Must be later than the end of the test, %(decided_at)s.") % {
                "decided_at": format_timestamp(decided_at)
            }
        if request.local_at:
            detail = gettext("Must be later than the first release, %(due_at)s.") % {
                "due_at": format_timestamp(due_at)
            }
        raise Invalid([FieldError("expires_at", "out_of_range", detail)])


def channel_check(channel: Channel, request: SendRequest) -> None:
    """Raises for platforms, a category and notifications that the channel does not have."""
    for platform in request.target_platforms:
        if not is_enabled(channel, platform):
            raise PlatformNotEnabled("target_platforms", platform)
    if request.category and not is_category(channel.id, request.category):
        raise CategoryUnknown("category")
    if channel.category_required and not request.category and _is_wide(request):
        raise CategoryRequired
    if request.rule is not None:
        check_notifications(channel.id, request.rule)


def _is_wide(request: SendRequest) -> bool:
    """Whether the audience is wider than the targets of the send, or of the send it corrects."""
    if request.targets or request.only_subscription_id:
        return False
    if request.root_id is None:
        return True
    return not Notification.objects.filter(pk=request.root_id, has_targets=True).exists()


def _largest_payload(platform: Platform, content: Content, root_id: UUID | None) -> int:
    """The largest payload of all variants and languages. Placeholders without a value in the send
    have their defaults."""
    return max(_largest_version(platform, each, path, root_id) for path, each in content.versions)


def _largest_version(platform: Platform, content: Content, path: str, root_id: UUID | None) -> int:
    """`path`: of the variant, as in errors."""
    limit = TRANSPORTS[platform].max_payload
    messages = Messages(ANY_ID, content, platform, expires_at=0.0, root_id=root_id)
    values = values_of(platform=platform, notification_id=str(ANY_ID), sent_vars=content.vars)
    attrs = {tag: path + _longest(tag, each) for tag, each in content.translations.items()}
    largest = 0
    for tag, attr in {"": path.rstrip(".") or "target_platforms", **attrs}.items():
        message = messages.filled(tag, values)
        if not message.content.title and not message.content.body:
            detail = gettext("There must be a title or a body.")
            raise Invalid([FieldError(f"{path}{platform}.body", "blank", detail)])
        size = payload_size(platform, message)
        if size > limit:
            raise PayloadTooLarge(platform, size, limit, attr)
        largest = max(largest, size)
    return largest


def declarative_payload(channel: Channel, content: Content) -> int:
    """The largest payload of all variants and languages for browsers that show messages without
    our worker."""
    site = Site.of(channel.site_url, channel.name)
    values = values_of(platform=Platform.WEB, notification_id=str(ANY_ID), sent_vars=content.vars)
    found = []
    for _, version in content.versions:
        messages = Messages(ANY_ID, version, Platform.WEB, expires_at=0.0, site=site)
        filled = (messages.filled(tag, values) for tag in ("", *version.translations))
        found += [payload_size(Platform.WEB, each) for each in filled]
    return max(found)


def _longest(tag: str, translation: Mapping[str, Any]) -> str:
    """The path of the translation's longest text, which should be shortened first."""
    name = max(translation, key=lambda each: len(str(translation[each])), default="")
    return f"translations.{tag}.{name}".rstrip(".")


def payload_size(platform: Platform, message: Message) -> int:
    """The size of the payload in bytes, with a tracking token."""
    return len(TRANSPORTS[platform].payload(message, _ANY_TOKEN))

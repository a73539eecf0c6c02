"""The choices in the forms that write a notification."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.utils.translation import gettext

from channels_app.models import Channel
from notifications_app.admin.compose import emoji
from notifications_app.admin.compose.form import NOW_OR_NEVER, TTL_UNITS, ComposeForm
from notifications_app.content.fields import MAX_BODY, MAX_TITLE, URGENCIES
from notifications_app.content.values import ON_MISSING
from notifications_app.reporting.attention import pauses_of
from pushsvc.common.ids import parse_uuid
from pushsvc.common.platforms import PLATFORM_NAMES
from subscriptions_app.categories.consent import categories_of
from subscriptions_app.models import Segment
from subscriptions_app.segments.selectors import segment_find, segments_by_name

MOST_SEGMENTS: Final = 500


def choices_of(channel: Channel) -> Mapping[str, Any]:
    """Choices that are the same in every form of the channel."""
    return {
        "platforms": [
            (name, PLATFORM_NAMES[name], enabled) for name, enabled in channel.platforms.items()
        ],
        "urgencies": [(value, gettext(label)) for value, label in URGENCIES.items()],
        "on_missing_choices": [(value, gettext(label)) for value, label in ON_MISSING.items()],
        "ttl_units": [*TTL_UNITS, NOW_OR_NEVER],
        "limits": {"title": MAX_TITLE, "body": MAX_BODY},
        "emoji": emoji.picker(),
        "pauses": pauses_of(
            channel.id, [name for name, enabled in channel.platforms.items() if enabled]
        ),
    }


def segments_for(channel: Channel, form: ComposeForm) -> Mapping[str, Any]:
    """The channel's segments and categories. Includes a chosen segment that is not listed;
    otherwise the page would choose all subscribers instead."""
    listed = segments_by_name(channel_id=channel.id, limit=MOST_SEGMENTS)
    categories = categories_of(channel.pk)
    is_unlisted = form.segment_id not in {"", *(str(each.id) for each in listed)}
    return {
        "segments": listed,
        "is_segment_unlisted": is_unlisted,
        "categories": categories,
        "category_keys": [each.key for each in categories],
        "unlisted": _named(channel, form.segment_id) if is_unlisted else None,
    }


def _named(channel: Channel, text: str) -> Segment | None:
    try:
        return segment_find(channel_id=channel.id, segment_id=parse_uuid(text))
    except ValueError:
        return None


def form_for_segment(channel: Channel, segment_id: str) -> ComposeForm:
    """An empty form for the subscribers of this segment; for all if the channel has no such
    segment."""
    segment = _named(channel, segment_id) if segment_id else None
    return replace(ComposeForm.empty(channel), segment_id=str(segment.pk) if segment else "")

"""What `manage.py export_channel` writes about a channel, as lines of JSON by file."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from channels_app.models import Channel, VapidKey, Webhook
from channels_app.selectors import vapid_private_keys
from notifications_app.content.values import CONTENT, DEFAULTS
from notifications_app.images.services import content_of, images_of
from notifications_app.models import (
    Automation,
    Image,
    Newsfeed,
    Notification,
    Schedule,
    Target,
    Template,
)
from notifications_app.reporting.deliveries import deliveries_page, delivery_texts
from notifications_app.selectors import COUNTS
from pushsvc.common.http.exports import MOST_ROWS, NO_ID
from pushsvc.common.store.lines import Page
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.devices.exporting import subscription_texts, subscriptions_page
from subscriptions_app.models import Category, Person, Segment

Row = dict[str, Any]
_SLICE: Final = 500
_SETTINGS: Final = (
    "vapid_subject",
    "site_url",
    "web_click",
    "prompt",
    "identity",
    "timezone",
    "rate_per_minute",
    "category_required",
    "quiet_hours",
    "caps",
    "inbox_days",
    "sends_per_second",
    "subscribes_per_minute",
    "max_subscriptions",
    "created_at",
)
_NOTIFICATION: Final = (
    "status",
    "target_platforms",
    "segment_id",
    "rule",
    "replaces",
    "only_subscription_id",
    "category",
    "template_id",
    "name",
    "labels",
    "vars",
    "rate_per_minute",
    "cap",
    "test",
    "decision",
    "sent_by",
    "created_at",
    "edited_at",
    "scheduled_at",
    "timing",
    "expires_at",
    "started_at",
    "deadline_at",
    "first_hand_over_at",
    "paused_at",
    "stopped_at",
    "finished_at",
    *COUNTS,
)


def channel_files(channel: Channel, *, with_keys: bool) -> Iterator[tuple[str, Iterator[str]]]:
    """The name of each file, and its lines in texts of a bounded size. `with_keys`: also what is
    needed to send to the devices, and the webhooks, whose addresses may contain secrets."""
    yield "subscriptions", _subscriptions(channel.pk, with_keys)
    yield "people", _people(channel.pk)
    yield "categories", _lines(_category, Category, channel, "position", "id")
    yield "segments", _lines(_segment, Segment, channel)
    yield "templates", _lines(_template, Template, channel)
    yield "schedules", _lines(_schedule, Schedule, channel)
    yield "automations", _lines(_automation, Automation, channel)
    yield "newsfeeds", _lines(_newsfeed, Newsfeed, channel)
    yield "images", map(json_line, map(_image, images_of(channel.pk)))
    yield "notifications", map(json_line, map(_notification, _notifications(channel.pk)))
    yield "deliveries", _deliveries(channel.pk)
    if with_keys:
        yield "webhooks", _lines(_webhook, Webhook, channel)
        yield "vapid_keys", map(json_line, _vapid_keys(channel))


def _image(each: Image) -> Row:
    return {
        "name": str(each),
        "width": each.width,
        "height": each.height,
        "added_at": each.added_at,
        "content": b64encode(content_of(each)).decode(),
    }


def channel_settings(channel: Channel) -> Row:
    platforms = [name for name, is_on in channel.platforms.items() if is_on]
    return {"platforms": platforms} | {name: getattr(channel, name) for name in _SETTINGS}


def json_line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, default=_plain, separators=(",", ":")) + "\n"


def _plain(value: object) -> str:
    return format_timestamp(value) if isinstance(value, datetime) else str(value)


def _read(read: Callable[[UUID], Page], texts: Callable[[Page], Iterator[str]]) -> Iterator[str]:
    """Everything that follows the smallest id, a page at a time."""
    after: UUID | None = NO_ID
    while after is not None:
        page = read(after)
        yield from texts(page)
        after = page.next_after


def _subscriptions(channel_id: UUID, with_keys: bool) -> Iterator[str]:
    return _read(
        lambda after: subscriptions_page(channel_id, after=after, limit=MOST_ROWS),
        lambda page: subscription_texts(page, with_address=with_keys),
    )


def _people(channel_id: UUID) -> Iterator[str]:
    """Those who opted out or have choices. Of the others, subscriptions have everything."""
    own = Person.objects.filter(channel_id=channel_id).order_by("external_id")
    found = own.exclude(opted_out_at=None, choices={})
    after = ""
    while people := list(found.filter(external_id__gt=after)[:_SLICE]):
        for each in people:
            is_out = each.opted_out_at is not None
            choices = each.choices
            row = {"external_id": each.external_id, "choices": choices, "opted_out": is_out}
            yield json_line(row)
        after = people[-1].external_id


def _notifications(channel_id: UUID) -> Iterator[Notification]:
    own = Notification.objects.filter(channel_id=channel_id).order_by("id")
    after = NO_ID
    while found := list(own.filter(id__gt=after)[:_SLICE]):
        yield from found
        after = found[-1].pk


def _deliveries(channel_id: UUID) -> Iterator[str]:
    for each in _notifications(channel_id):
        yield from _deliveries_of(each)


def _deliveries_of(notification: Notification) -> Iterator[str]:
    return _read(
        lambda after: deliveries_page(notification.pk, after=after, limit=MOST_ROWS),
        lambda page: delivery_texts(notification, page, is_named=True),
    )


def _lines(row: Callable[[Any], Row], model: Any, channel: Channel, *order: str) -> Iterator[str]:
    own = model.objects.filter(channel=channel).order_by(*(order or ("id",)))
    return map(json_line, map(row, own.iterator(chunk_size=_SLICE)))


def _category(each: Category) -> Row:
    return {
        "key": each.key,
        "name": each.name,
        "description": each.description,
        "default": each.chosen_by_default,
        "position": each.position,
        "created_at": each.created_at,
        "archived_at": each.archived_at,
    }


def _segment(each: Segment) -> Row:
    return _named("segment_id", each, rule=each.rule)


def _template(each: Template) -> Row:
    return _named("template_id", each, content=json.loads(each.content_json))


def _schedule(each: Schedule) -> Row:
    return _named(
        "schedule_id",
        each,
        enabled=each.is_enabled,
        notification=each.send,
        recurrence=each.recurrence,
        once_per_days=each.once_per_days,
        next_at=each.next_at if each.is_enabled else None,
        last_notification_id=each.last_notification_id,
        disabled_code=each.disabled_code or None,
    )


def _automation(each: Automation) -> Row:
    return _named(
        "automation_id",
        each,
        enabled=each.is_enabled,
        trigger=each.trigger,
        delay_minutes=each.delay_minutes,
        recipient=each.recipient,
        notification=each.send,
        once_per_days=each.once_per_days,
        disabled_code=each.disabled_code or None,
    )


def _newsfeed(each: Newsfeed) -> Row:
    return _named(
        "newsfeed_id",
        each,
        enabled=each.is_enabled,
        url=each.url,
        every_minutes=each.every_minutes,
        daily_limit=each.daily_limit,
        notification=each.send,
        last_notification_id=each.last_notification_id,
        disabled_code=each.disabled_code or None,
    )


def _named(
    id_name: str, each: Segment | Template | Schedule | Automation | Newsfeed, **own: Any
) -> Row:
    times = {"created_at": each.created_at, "updated_at": each.updated_at}
    return {id_name: each.pk, "name": each.name, **own, **times}


def _notification(each: Notification) -> Row:
    content = {name: getattr(each.content, name) for name in CONTENT}
    given = {name: value for name, value in content.items() if value != DEFAULTS.get(name)}
    named = Target.objects.of(each.pk) if each.has_targets else ()
    return {
        "notification_id": each.pk,
        "content": given,
        **{name: getattr(each, name) for name in _NOTIFICATION},
        "targets": [
            {
                "external_id": target.external_id,
                "subscription_id": target.subscription_id,
                "vars": target.vars,
            }
            for target in named
        ],
    }


def _webhook(each: Webhook) -> Row:
    return {
        "webhook_id": each.pk,
        "url": each.url,
        "description": each.description,
        "events": each.events,
        "format": each.format,
        "enabled": each.is_enabled,
        "disabled_code": each.disabled_code or None,
        "created_at": each.created_at,
    }


def _vapid_keys(channel: Channel) -> Iterator[Row]:
    keys = VapidKey.objects.filter(channel=channel).order_by("created_at", "id")
    private = vapid_private_keys(key.pk for key in keys)
    for key in keys:
        yield {
            "public_key": key.public_key,
            "private_key": private[key.pk].private_key,
            "current": key.retired_at is None,
        }

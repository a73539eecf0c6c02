"""Everything that is stored about devices and people, as JSON, for the people concerned."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from notifications_app.models import (
    AutomationContact,
    AutomationEntry,
    Contact,
    Delivery,
    Notification,
    Once,
    Target,
)
from notifications_app.reporting.campaigns import with_newest_to_many
from notifications_app.selectors import SubscriberDelivery, newest_ids
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.models import LastClick, Person, Subscription
from subscriptions_app.people.services import person_devices
from subscriptions_app.tags.selectors import device_tags

_LOOKED_UP: Final = 100_000  # notifications of the channel times devices
_MOST: Final = 10_000  # newest notifications of the channel, and newest ones to many


def person_data(person: Person) -> dict[str, Any]:
    devices = person_devices(person)
    return {
        "external_id": person.external_id,
        "channel_id": str(person.channel_id),
        "created_at": format_timestamp(person.created_at),
        "opted_out_at": _moment(person.opted_out_at),
        "choices": person.choices,
        "devices": devices_data(devices),
        "values": _values(person, devices),
        **_contacts(person, devices),
    }


def _values(person: Person, devices: Sequence[Subscription]) -> list[dict[str, Any]]:
    """The values that direct sends gave for the person's messages, the newest first."""
    named = Target.objects.naming(
        channel_id=person.channel_id,
        external_id=person.external_id,
        subscription_ids=[each.pk for each in devices],
    )
    found = named.filter(vars__isnull=False).order_by("-notification_id", "position")
    return [{"notification_id": str(each.notification_id), "vars": each.vars} for each in found]


def _contacts(person: Person, devices: Sequence[Subscription]) -> dict[str, list[dict[str, Any]]]:
    """What contacted the person, or the devices before they were linked, or will."""
    ids = [each.pk for each in devices]
    keys = [person.pk, *ids]
    contacts = [
        pair
        for each in Contact.objects.filter(channel_id=person.channel_id, key__in=keys)
        for pair in zip(each.times, each.sends, strict=True)
    ]
    schedules = Once.objects.filter(schedule__channel=person.channel_id, key__in=keys)
    automations = AutomationContact.objects.filter(key__in=keys)
    waiting = AutomationEntry.objects.filter(subscription_id__in=ids)
    return {
        "contacts": [
            _when(at, notification_id=send) for at, send in sorted(contacts, reverse=True)
        ],
        "schedules": [
            _when(each.at, schedule_id=each.schedule_id, notification_id=each.send)
            for each in schedules.order_by("-at")
        ],
        "automations": [
            _when(each.at, automation_id=each.automation_id) for each in automations.order_by("-at")
        ],
        "waiting": [
            _when(each.due_at, automation_id=each.automation_id)
            | {"subscription_id": str(each.subscription_id)}
            for each in waiting.order_by("due_at")
        ],
    }


def _when(at: datetime, **ids: UUID) -> dict[str, Any]:
    return {**{name: str(each) for name, each in ids.items()}, "at": _moment(at)}


def devices_data(devices: Sequence[Subscription]) -> list[dict[str, Any]]:
    """Everything about devices of one channel, with the outcomes of all sends that name them or
    their people, and of the channel's last others."""
    if not devices:
        return []
    ids = [each.pk for each in devices]
    deliveries = _deliveries(devices)
    tags = device_tags(ids)
    clicks = LastClick.objects.in_bulk(ids)
    return [
        _device(each, tags.get(each.pk, []), [_outcome(found) for found in deliveries[each.pk]])
        | {"last_clicked_at": _moment(clicks[each.pk].clicked_at if each.pk in clicks else None)}
        for each in devices
    ]


def _deliveries(devices: Sequence[Subscription]) -> dict[UUID, list[SubscriberDelivery]]:
    """By the device's id, the newest first. Each is one lookup by key."""
    channel_id, ids = devices[0].channel_id, [each.pk for each in devices]
    people = Person.objects.filter(pk__in={each.person_id for each in devices})
    most = min(_MOST, _LOOKED_UP // len(ids))
    newest = newest_ids([channel_id], limit=most)
    newest = with_newest_to_many(newest, [channel_id], limit=most)
    of_channel = Notification.objects.filter(pk__in=newest).values_list("pk", flat=True)
    external_ids = list(people.values_list("external_id", flat=True))
    naming = Q(channel_id=channel_id, external_id__in=external_ids), Q(subscription_id__in=ids)
    targets = (Target.objects.filter(each).order_by("-notification_id") for each in naming)
    named = (each.values_list("notification_id", flat=True)[:_LOOKED_UP] for each in targets)
    candidates = set[UUID]().union(of_channel, *named)
    rows = Delivery.objects.filter(notification_id__in=candidates, subscription_id__in=ids)
    found = list(rows.order_by("-notification_id"))
    notifications = Notification.objects.in_bulk({each.notification_id for each in found})
    deliveries: dict[UUID, list[SubscriberDelivery]] = {id_: [] for id_ in ids}
    for each in found:
        shown = SubscriberDelivery(notifications[each.notification_id], each)
        deliveries[each.subscription_id].append(shown)
    return deliveries


def _device(
    device: Subscription, tags: Sequence[str], deliveries: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    texts = ("platform", "address", "p256dh", "auth", "push_service", "expired_code")
    return {
        "subscription_id": str(device.pk),
        "channel_id": str(device.channel_id),
        **{name: getattr(device, name) for name in texts},
        "attributes": device.attributes,
        "tags": list(tags),
        "timezone": device.timezone,
        "language": device.language,
        "choices": device.choices,
        "created_at": _moment(device.created_at),
        "registered_at": _moment(device.registered_at),
        "expired_at": _moment(device.expired_at),
        "deliveries": list(deliveries),
    }


def _outcome(each: SubscriberDelivery) -> dict[str, Any]:
    delivery = each.delivery
    times = ("finished_at", "received_at", "clicked_at", "dismissed_at")
    return {
        "notification_id": str(each.notification.pk),
        "title": each.notification.title,
        "body": each.notification.body,
        "outcome": each.outcome,
        "code": delivery.code,
        **{name: _moment(getattr(delivery, name)) for name in times},
    }


def _moment(moment: Any) -> str | None:
    return format_timestamp(moment) if moment else None

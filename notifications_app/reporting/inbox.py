"""Lists what a device or a person was sent lately, also messages that did not arrive.

Candidates are the newest sends to many and the newest sends that name the person or a device; each
is looked up in the ledger by its key. So the cost is bounded, however much the channel sends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings

from channels_app.models import Channel
from notifications_app.content.tracking import make_token
from notifications_app.content.values import Content
from notifications_app.delivery.messages import Messages, Unsendable
from notifications_app.device_values import device_values, spoken_by
from notifications_app.errors import InboxOff
from notifications_app.models import Notification
from notifications_app.pipeline.splitting import variants_of
from notifications_app.pipeline.transitions import OPTED_OUT, PERSON_CHANGED, STOPPED, UNSUBSCRIBED
from notifications_app.selectors import NamedNow, naming, still_named
from notifications_app.states import STATES
from pushsvc.common.errors import NotFound
from pushsvc.common.links import may_be_opened
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription

MOST_CANDIDATES: Final = 200  # of each kind
MOST_INBOX_DEVICES: Final = 10  # of a person, the newest ones


class InboxMessage(NamedTuple):
    """A message as the device would show it now. `sent_at`: when its delivery ended, or was given
    up. `token`: for events of this delivery."""

    notification_id: UUID
    sent_at: datetime
    content: Content
    is_received: bool
    is_clicked: bool
    is_dismissed: bool
    token: str

    @property
    def is_unread(self) -> bool:
        return not (self.is_clicked or self.is_dismissed)


@dataclass(frozen=True, slots=True)
class Inbox:
    """A page, the newest first, and how many of all messages are unread."""

    messages: Sequence[InboxMessage]
    unread: int


def inbox_read(
    channel: Channel,
    devices: Sequence[Subscription],
    *,
    limit: int,
    before: UUID | None = None,
) -> Inbox:
    """What the devices were sent within the channel's `inbox_days`. `devices`: one device, or those
    of a person, with their persons loaded; at most MOST_INBOX_DEVICES are read, the newest. A
    message to several of them is listed once. `before`: the id of the message after which the page
    begins.

    Left out are messages that were withdrawn before the call, messages that a device got before it
    belonged to its person, messages that name somebody who is not the device's person any more, and
    messages of which a correction is listed.
    Raises InboxOff, and NotFound if there is no message `before`.
    """
    if not channel.inbox_days:
        raise InboxOff
    own = sorted(devices, key=lambda each: each.pk, reverse=True)[:MOST_INBOX_DEVICES]
    messages = _messages(_entries(channel, own)) if own else []
    return Inbox(
        _page(messages, limit=limit, before=before), sum(each.is_unread for each in messages)
    )


def _page(
    messages: Sequence[InboxMessage], *, limit: int, before: UUID | None
) -> Sequence[InboxMessage]:
    if before is None:
        return messages[:limit]
    places = (place for place, each in enumerate(messages) if each.notification_id == before)
    place = next(places, None)
    if place is None:
        raise NotFound("The inbox has no such message: begin again without `before`.")
    return messages[place + 1 : place + 1 + limit]


class _Entry(NamedTuple):
    """What the ledger says of one delivery."""

    notification_id: UUID
    device: Subscription
    sent_at: datetime
    is_received: bool
    is_clicked: bool
    is_dismissed: bool


def _entries(channel: Channel, devices: Sequence[Subscription]) -> list[_Entry]:
    """Deliveries, the newest first."""
    by_id = {each.pk: each for each in devices}
    parameters: dict[str, Any] = {
        "channel": channel.pk,
        "external_ids": [each.person.external_id for each in devices if each.person],
        "devices": list(by_id),
        "linked": [each.linked_at for each in devices],
        "days": channel.inbox_days,
        "lease": settings.LEASE_SECONDS,
        "withdrawn": [OPTED_OUT, PERSON_CHANGED, STOPPED, UNSUBSCRIBED],
        "most": MOST_CANDIDATES,
    }
    return [
        _Entry(notification_id, by_id[device_id], *rest)
        for notification_id, device_id, *rest in sql.rows(_ENTRIES, STATES | parameters)
    ]


def _messages(entries: Sequence[_Entry]) -> list[InboxMessage]:
    """The messages that can be shown, in the order of the entries."""
    notifications = Notification.objects.in_bulk({each.notification_id for each in entries})
    named_by = naming(notifications.values())
    of_targets = [
        (named_by[each.notification_id], each.device.pk)
        for each in entries
        if each.notification_id in named_by
    ]
    named = still_named(of_targets) if of_targets else {}
    shown: dict[UUID, InboxMessage] = {}
    latest: dict[UUID, UUID] = {}  # by the first notification: it, or its newest correction
    for entry in entries:
        notification = notifications[entry.notification_id]
        pair = named_by.get(notification.pk, notification.pk), entry.device.pk
        if notification.pk in named_by and pair not in named:
            continue
        root_id = notification.root_id or notification.pk
        if latest.setdefault(root_id, notification.pk) != notification.pk:
            continue
        if found := shown.get(entry.notification_id):
            shown[entry.notification_id] = _merged(found, entry)
        elif content := _content(notification, entry.device, named.get(pair)):
            shown[entry.notification_id] = _message(entry, content)
    return list(shown.values())


def _message(entry: _Entry, content: Content) -> InboxMessage:
    token = make_token(entry.notification_id, entry.device.pk)
    events = entry.is_received, entry.is_clicked, entry.is_dismissed
    return InboxMessage(entry.notification_id, entry.sent_at, content, *events, token)


def _merged(found: InboxMessage, entry: _Entry) -> InboxMessage:
    """The message, with what a second device of the person did with it."""
    return found._replace(
        is_received=found.is_received or entry.is_received,
        is_clicked=found.is_clicked or entry.is_clicked,
        is_dismissed=found.is_dismissed or entry.is_dismissed,
    )


def _content(
    notification: Notification, device: Subscription, named: NamedNow | None
) -> Content | None:
    """As the device would show it now; None if its values fit no longer."""
    content, platform = notification.content, Platform(device.platform)
    if content.variants:
        content = content.of_variant(variants_of(notification, [device.pk]).get(device.pk))
    messages = Messages(notification.pk, content, platform, expires_at=0.0)
    if not messages.is_personal:
        return messages.of(spoken_by(device)).content
    own = named.vars if named and notification.has_targets else {}
    sent_vars: Mapping[str, Any] = {**content.vars, **own}
    values = device_values(device, notification_id=notification.pk, sent_vars=sent_vars)
    message = messages.for_recipient(spoken_by(device), values)
    if isinstance(message, Unsendable):
        return None
    whole = message.whole
    return whole if not whole.url or may_be_opened(whole.url) else None


# Raw, because the ORM has neither LATERAL nor unnest over parallel arrays. A device's deliveries
# are found by the ledger's primary key; OFFSET keeps each search apart, because PostgreSQL might
# search by half of the key. A pass reads the person before it writes the outcome, at most the time
# of a lease before, and after the notification started.
_ENTRIES: Final = """
WITH device AS MATERIALIZED (
  SELECT * FROM unnest(%(devices)s::uuid[], %(linked)s::timestamptz[]) AS own (id, linked_at)
), candidate AS MATERIALIZED (
  (SELECT id FROM notifications_app_notification
   WHERE CASE WHEN NOT has_targets AND only_subscription_id IS NULL AND started_at IS NOT NULL
         THEN channel_id END = %(channel)s
     AND NOT has_targets AND only_subscription_id IS NULL AND started_at IS NOT NULL
   ORDER BY id DESC LIMIT %(most)s)
  UNION
  (SELECT notification_id FROM notifications_app_target
   WHERE channel_id = %(channel)s AND external_id = ANY (%(external_ids)s::text[])
   ORDER BY notification_id DESC LIMIT %(most)s)
  UNION
  (SELECT notification_id FROM notifications_app_target
   WHERE channel_id = %(channel)s AND subscription_id = ANY (%(devices)s::uuid[])
   ORDER BY notification_id DESC LIMIT %(most)s)
)
SELECT delivery.notification_id, delivery.subscription_id, delivery.finished_at,
  delivery.received_at IS NOT NULL, delivery.clicked_at IS NOT NULL,
  delivery.dismissed_at IS NOT NULL
FROM candidate CROSS JOIN device CROSS JOIN LATERAL (
  SELECT * FROM notifications_app_delivery
  WHERE notification_id = candidate.id AND subscription_id = device.id OFFSET 0
) AS delivery
WHERE delivery.status IN (%(delivery_delivered)s, %(delivery_bounced)s)
  AND delivery.code <> ALL (%(withdrawn)s::text[])
  AND delivery.finished_at > statement_timestamp() - make_interval(days => %(days)s)
  AND (device.linked_at IS NULL
    OR device.linked_at < delivery.finished_at - make_interval(secs => %(lease)s)
    OR device.linked_at < (SELECT started_at FROM notifications_app_notification
      WHERE id = delivery.notification_id))
ORDER BY delivery.finished_at DESC, delivery.notification_id DESC, delivery.subscription_id DESC
"""

"""Creates rows for tests. Fields that a test does not name get usual values.

`register` and `subscribe_*` use the service, as a device's request does. `add_*` write rows and the
channel's counters directly, for subscriptions that need no push service.
"""

from collections.abc import Sequence
from datetime import time, timedelta
from hashlib import sha256
from os import urandom
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from channels_app.models import Account, Channel, ChannelCounter, Scope
from channels_app.selectors import current_vapid_key
from channels_app.services import api_key_issue, channel_create
from notifications_app.content.values import Content, SendRequest, TargetId
from notifications_app.models import (
    Automation,
    Draft,
    Newsfeed,
    Notification,
    Plan,
    Schedule,
    Target,
    Template,
)
from notifications_app.sends.automations import automation_create
from notifications_app.sends.newsfeeds import newsfeed_create
from notifications_app.sends.schedules import schedule_create
from notifications_app.sends.templates import template_create
from pushsvc.common import base64url
from pushsvc.common.endpoints import TOKEN_SERVICES
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from sandbox.apns.devices import DEFAULT_TOPIC
from subscriptions_app.addresses import Address
from subscriptions_app.categories.services import category_create
from subscriptions_app.devices.registration import subscription_register
from subscriptions_app.devices.values import Facts, Previous
from subscriptions_app.models import Category, Person, Segment, Subscription, Tag, TestDevice
from subscriptions_app.people.counting import Changes, Standing, changes_count
from subscriptions_app.segments.services import segment_create

GOOGLE_PROJECT = "alices-shop"
WEEKLY = {
    "rule": "FREQ=WEEKLY;BYDAY=MO",
    "at": [time(9)],
    "timezone": "Europe/Berlin",
    "starts_on": None,
}

# --- channels -------------------------------------------------------------------------------------


def make_channel(
    name: str = "Alice's shop", *, account: Account | None = None, **fields: Any
) -> Channel:
    """A channel with its VAPID key; `fields` are set as given."""
    channel = channel_create(name=name, account=account)
    for field, value in fields.items():
        setattr(channel, field, value)
    if fields:
        channel.save()
    return channel


def make_key(channel: Channel, *, scopes: list[str] | None = None) -> str:
    """The text of a new key, by default with all scopes."""
    _, text = api_key_issue(channel=channel, scopes=scopes or Scope.values)
    return text


def make_segment(channel: Channel, rule: Any, name: str = "Some of them") -> Segment:
    return segment_create(channel=channel, name=name, rule=rule)


def make_category(channel: Channel, key: str = "offers", *, default: bool = False) -> Category:
    return category_create(
        channel=channel, key=key, name=key.title(), description="", default=default
    )


def make_template(channel: Channel, name: str = "Order shipped", content: Any = None) -> Template:
    return template_create(channel=channel, name=name, content=content or {"body": "It left."})


def make_newsfeed(channel: Channel, name: str = "News") -> Newsfeed:
    """Of a feed that nothing serves."""
    content = Content(title="{{ entry.title }}", body=name)
    return newsfeed_create(
        channel=channel,
        name=name,
        url=f"https://{name.lower()}.example.com/feed",
        send=SendRequest(content=content, target_platforms=(Platform.WEB,)),
        every_minutes=15,
        daily_limit=5,
    )


def make_schedule(channel: Channel, name: str = "Digest", **send: Any) -> Schedule:
    """Of each Monday."""
    content = Content(**{"title": name, "body": name} | send)
    request = SendRequest(content=content, target_platforms=(Platform.WEB,))
    return schedule_create(channel=channel, name=name, send=request, recurrence=WEEKLY)


def make_automation(channel: Channel, name: str = "Welcome", **send: Any) -> Automation:
    """For each new subscription, at once."""
    content = Content(**{"title": name, "body": name} | send)
    return automation_create(
        channel=channel,
        name=name,
        send=SendRequest(content=content, target_platforms=(Platform.WEB,)),
        trigger={"event": "subscriptions.created"},
        delay_minutes=0,
        recipient="device",
    )


# --- browsers and phones, as they describe themselves ---------------------------------------------


def browser_keys() -> dict[str, str]:
    point = ec.generate_private_key(ec.SECP256R1()).public_key()
    raw = point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return {"p256dh": base64url.encode(raw), "auth": base64url.encode(urandom(16))}


def browser(endpoint: str = "https://fcm.googleapis.com/fcm/send/abc", **fields: Any) -> Any:
    """What a browser sends to `POST /subscribe`."""
    return {"endpoint": endpoint, "keys": browser_keys()} | fields


def phone(platform: str, token: str, **fields: Any) -> Any:
    """What an app sends to `POST /subscribe`."""
    return {"platform": platform, "provider_token": token} | fields


# --- subscriptions of devices ---------------------------------------------------------------------


def register(
    channel: Channel,
    platform: str = "web",
    address: str | None = None,
    previous_endpoint: str | None = None,
    **facts: Any,
) -> Subscription:
    """Registers the address, by default a new one. Safe to repeat."""
    if platform == "web":
        facts = browser_keys() | facts
    address = address or f"https://fcm.googleapis.com/fcm/send/{uuid7()}"
    known = subscription_register(
        channel=channel,
        address=Address.of(Platform(platform), address),
        facts=Facts(**facts),
        previous=previous_endpoint and Previous(Address.of(Platform(platform), previous_endpoint)),
    )
    return Subscription.objects.select_related("channel").get(pk=known.id)


def register_device(channel: Channel, device: Any, platform: str = "web") -> Subscription:
    """Registers a device of a sandbox. Safe to repeat."""
    if platform == "web":
        return register(channel, address=device.endpoint, p256dh=device.p256dh, auth=device.auth)
    return register(channel, platform, device.address if platform == "android" else device.token)


def subscribe_browsers(
    sandbox: Any, channel: Channel, count: int = 1
) -> list[tuple[Any, Subscription]]:
    """New devices of the sandbox, each with its subscription."""
    return _registered(channel, "web", [sandbox.subscribe() for _ in range(count)])


def subscribe_androids(
    fcm: Any,
    channel: Channel,
    count: int = 1,
    project: str = GOOGLE_PROJECT,
    *,
    by_fid: bool = False,
) -> list[tuple[Any, Subscription]]:
    devices = [fcm.register(project, by_fid=by_fid) for _ in range(count)]
    return _registered(channel, "android", devices)


def subscribe_iphones(
    apns: Any, channel: Channel, count: int = 1, topic: str = DEFAULT_TOPIC
) -> list[tuple[Any, Subscription]]:
    return _registered(channel, "ios", [apns.register(topic) for _ in range(count)])


def _registered(channel, platform, devices):
    return [(device, register_device(channel, device, platform)) for device in devices]


# --- people ---------------------------------------------------------------------------------------


def make_person(channel: Channel, external_id: str = "user-42") -> Person:
    """The person with this id, created if missing."""
    named = {"channel": channel, "external_id": external_id}
    person, _ = Person.objects.get_or_create(**named, defaults={"left_at": Now()})
    return person


# --- subscriptions without a device --------------------------------------------------------------


def add_subscription(
    channel: Channel, attributes: dict[str, Any] | None = None, **fields: Any
) -> Subscription:
    (row,) = add_subscriptions(channel, 1, attributes=attributes or {}, **fields)
    return row


def add_subscriptions(channel: Channel, count: int, **fields: Any) -> list[Subscription]:
    """Subscriptions with equal fields, in the order of their ids."""
    return add_each(channel, [fields] * count)


def add_each(channel: Channel, each: list[dict[str, Any]]) -> list[Subscription]:
    """One subscription for each of these fields; their ids are in the same order."""
    key = current_vapid_key(channel)
    ids = sorted(uuid7() for _ in each)
    rows = [_row(channel, key, id_, **fields) for id_, fields in zip(ids, each, strict=True)]
    Subscription.objects.bulk_create(rows)
    changes = Changes()
    for row in rows:
        changes.note(None, Standing.of(row))
    changes_count(channel.id, changes)
    return rows


def add_tags(rows: list[Subscription], *tags: str) -> None:
    """Adds each of these tags to each of these devices."""
    Tag.objects.bulk_create(
        Tag(channel_id=row.channel_id, platform=row.platform, tag=tag, subscription=row)
        for row in rows
        for tag in tags
    )


def _row(channel, key, id_, *, platform="web", **fields):
    address = f"https://push.example/{id_}"
    values = {
        "address": address,
        "address_sha256": sha256(address.encode()).digest(),
        "vapid_key": key if platform == "web" else None,
        "push_service": TOKEN_SERVICES.get(platform, "fcm"),
    }
    return Subscription(id=id_, channel=channel, platform=platform, **(values | fields))


# SQL that may use the row's number `n`.
PEOPLE = """
jsonb_build_object('plan', (ARRAY['free', 'pro', 'team'])[1 + n %% 3], 'age', 18 + n %% 60,
  'city', (ARRAY['Berlin', 'Lima', 'Osaka', 'Accra'])[1 + n %% 4])
"""


def add_crowd(
    channel: Channel,
    count: int,
    attributes: str = PEOPLE,
    *,
    platform: str = "web",
    expired_at: str = "NULL",
) -> None:
    """Many subscriptions of the last three months, generated by the database. Hourly figures do
    not contain them."""
    sql.execute(
        _CROWD.format(attributes=attributes, expired_at=expired_at),
        {
            "channel": channel.pk,
            "platform": platform,
            "count": count,
            "service": TOKEN_SERVICES.get(platform, "mozilla"),
            "vapid": current_vapid_key(channel).pk if platform == "web" else None,
        },
    )
    counter, _ = ChannelCounter.objects.get_or_create(channel=channel, shard=0)
    for name in (f"{platform}_subscribers", "stored_subscriptions"):
        setattr(counter, name, F(name) + count)
    counter.save()


_CROWD = """
INSERT INTO subscriptions_app_subscription
  (id, channel_id, platform, address, address_sha256, p256dh, auth, vapid_key_id, push_service,
   attributes, created_at, registered_at, expired_at, expired_code)
SELECT
  (lpad(to_hex((extract(epoch FROM created) * 1000)::bigint), 12, '0')
    || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid,
  %(channel)s, %(platform)s, address, sha256(address::bytea), '', '', %(vapid)s, %(service)s,
  {attributes}::jsonb, created, now() - make_interval(hours => n %% 1000),
  ({expired_at})::timestamptz, ''
FROM (
  SELECT n, format('https://push.example/%%s/%%s', gen_random_uuid(), n) AS address,
    now() - make_interval(hours => n %% 2000) AS created
  FROM generate_series(1, %(count)s) AS n
) AS made
"""

# --- notifications --------------------------------------------------------------------------------


def make_notification(channel: Channel, **fields: Any) -> Notification:
    """A notification to all browsers, due now, as the API would store it."""
    values = {"body": "Fresh bread", "ttl": 3600, "target_platforms": ["web"]}
    values |= {"scheduled_at": Now()} | fields
    notification = Notification.objects.create(channel=channel, **values)
    notification.refresh_from_db()
    return notification


def make_direct_notification(
    channel: Channel,
    *,
    people: Sequence[str] = (),
    subscriptions: Sequence[Subscription] = (),
    targets: Sequence[TargetId] = (),
    **fields: Any,
) -> Notification:
    """A notification to these people, subscriptions and targets, in this order."""
    named = [
        *(TargetId(external_id=each) for each in people),
        *(TargetId(subscription_id=each.pk) for each in subscriptions),
        *targets,
    ]
    notification = make_notification(channel, has_targets=True, **fields)
    Target.objects.store(notification.pk, channel_id=channel.pk, targets=named)
    return notification


def make_sent_notification(channel: Channel, **fields: Any) -> Notification:
    """A notification that was sent a day ago to a hundred browsers, unless `fields` differ."""
    began = timezone.now() - timedelta(days=1)
    values = {
        "title": "Spring sale",
        "body": "Twenty per cent off until Sunday.",
        "url": "https://shop.example/sale",
        "status": "sent",
        "scheduled_at": began,
        "started_at": began,
        "finished_at": began + timedelta(seconds=40),
        "recipient_count": 100,
        "delivered_count": 97,
        "bounced_count": 3,
        "clicked_count": 12,
    }
    return make_notification(channel, **(values | fields))


def make_plan(notification: Notification, **fields: Any) -> Plan:
    """A plan of the notification for web, released at its start."""
    released_at = notification.started_at or notification.scheduled_at
    fields = {
        "platform": "web",
        "release_at": released_at,
        "deadline_at": released_at + timedelta(seconds=notification.ttl),
    } | fields
    return Plan.objects.create(notification=notification, channel=notification.channel, **fields)


def make_draft(channel, owner, **fields):
    """A draft with these fields of the console's form; other fields are as in an empty form."""
    return Draft.objects.create(
        channel=channel, owner=owner, changed_by=owner, form={"body": "Half", **fields}
    )


def make_waiting(channel, owner, note="", **fields):
    """A draft for which its owner asked for approval."""
    draft = make_draft(channel, owner, **fields)
    Draft.objects.filter(pk=draft.pk).update(asked_by=owner, asked_at=Now(), note=note)
    draft.refresh_from_db()
    return draft


def make_device(channel, subscription, owner, name="the kitchen iPhone"):
    """A test device."""
    return TestDevice.objects.create(
        channel=channel, subscription_id=subscription.pk, name=name, added_by=owner
    )

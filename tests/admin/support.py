"""A console with a cast: Alice's account with a member of each role, Bob's beside it, and root."""

import re
from dataclasses import dataclass, field
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from channels_app.models import Account, Channel, Membership, Role
from channels_app.services import channel_create
from notifications_app.models import HourlyStat, Notification
from subscriptions_app.models import Subscription

PASSWORD = "correct-horse-battery-staple"


@dataclass
class House:
    """An account, its channel, and its members by role."""

    account: Account
    channel: Channel
    members: dict[str, User] = field(default_factory=dict)


def make_house(name: str) -> House:
    account = Account.objects.create(name=name)
    house = House(account, channel_create(name=f"{name}'s channel", account=account))
    for role in Role.values:
        user = User.objects.create_user(f"{name.lower()}-{role}", password=PASSWORD, is_staff=True)
        Membership.objects.create(account=account, user=user, role=role)
        house.members[role] = user
    return house


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="channels_app.sign_in.console.StaffBackend")
    return client


def said(answer):
    """What the page says, without what is new on each."""
    page = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", answer.content.decode())
    return answer.status_code, re.sub(r'value="[\w-]*"', "", page), sorted(answer.headers)


def make_root() -> User:
    return User.objects.create_superuser("root", password=PASSWORD)


def fill_subscribers(channel: Channel, count: int, *, platform: str = "web") -> None:
    """Active subscriptions written by the server itself, with the channel's counter kept right."""
    with connection.cursor() as cursor:
        cursor.execute(
            _SUBSCRIBERS,
            {
                "channel": channel.pk,
                "platform": platform,
                "count": count,
                "service": {"web": "mozilla", "android": "fcm_v1", "ios": "apns"}[platform],
                "vapid": channel.vapid_keys.get(retired_at=None).pk if platform == "web" else None,
            },
        )
        cursor.execute(_COUNT.format(platform), {"channel": channel.pk, "count": count})


def make_notification(channel: Channel, **fields) -> Notification:
    """A stored one, sent a day ago to a hundred web subscribers unless `fields` say otherwise."""
    now = timezone.now()
    values = {
        "title": "Spring sale",
        "body": "Twenty per cent off until Sunday.",
        "url": "https://shop.example/sale",
        "ttl": 3600,
        "target_platforms": ["web"],
        "status": "sent",
        "scheduled_at": now - timedelta(days=1),
        "started_at": now - timedelta(days=1),
        "finished_at": now - timedelta(days=1) + timedelta(seconds=40),
        "recipient_count": 100,
        "delivered_count": 97,
        "bounced_count": 3,
        "clicked_count": 12,
    }
    return Notification.objects.create(channel=channel, **(values | fields))


def fill_hours(channel: Channel, *, days: int = 30, platform: str = "web") -> None:
    """Hourly rows of the last days, with numbers that rise and fall."""
    last = timezone.now().replace(minute=0, second=0, microsecond=0)
    HourlyStat.objects.bulk_create(
        HourlyStat(
            channel=channel,
            platform=platform,
            hour=last - timedelta(hours=back),
            recipients=100 + back % 24 * 10,
            delivered=96 + back % 24 * 10,
            bounced=4,
            clicked=back % 7,
        )
        for back in range(days * 24)
    )


def subscriber(channel: Channel, **fields) -> Subscription:
    """The newest active subscription of a channel that `fill_subscribers` filled."""
    return Subscription.objects.filter(channel=channel, **fields).order_by("-id")[0]


_SUBSCRIBERS = """
INSERT INTO subscriptions_app_subscription
  (id, channel_id, platform, address, address_sha256, p256dh, auth, vapid_key_id, push_service,
   attributes, created_at, registered_at, expired_code)
SELECT
  (lpad(to_hex((extract(epoch FROM created) * 1000)::bigint), 12, '0')
    || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid,
  %(channel)s, %(platform)s, address, sha256(address::bytea), '', '', %(vapid)s, %(service)s,
  jsonb_build_object('plan', (ARRAY['free', 'pro', 'team'])[1 + n %% 3], 'age', 18 + n %% 60,
    'city', (ARRAY['Berlin', 'Lima', 'Osaka', 'Accra'])[1 + n %% 4]),
  created, now() - make_interval(hours => n %% 1000), ''
FROM (
  SELECT n, format('https://push.example/%%s/%%s', gen_random_uuid(), n) AS address,
    now() - make_interval(hours => n %% 2000) AS created
  FROM generate_series(1, %(count)s) AS n
) AS made
"""

_COUNT = """
INSERT INTO channels_app_channelcounter (channel_id, shard, {0}_subscribers)
VALUES (%(channel)s, 0, %(count)s)
ON CONFLICT (channel_id, shard) DO UPDATE
SET {0}_subscribers = channels_app_channelcounter.{0}_subscribers + EXCLUDED.{0}_subscribers
"""

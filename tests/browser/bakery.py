"""A bakery with a hundred thousand subscribers, for the pictures of the console.

Rows are written as the pipeline would have written them, with all sums that the pages show.
"""

import json
import random
import time
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from channels_app.models import (
    Account,
    ChannelCounter,
    ChannelHour,
    Membership,
    ProviderCredential,
    Role,
)
from channels_app.services import api_key_issue, provider_credentials_store
from notifications_app.models import Batch, EventHour, HourlyStat, Notification, OutcomeMinute
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.segments.services import segment_create
from tests.admin.support import signed_in
from tests.api.credentials import APPLE, GOOGLE
from tests.factories import (
    add_crowd,
    add_each,
    make_channel,
    make_plan,
    make_sent_notification,
    make_template,
)

_RANDOM = random.Random(7)  # noqa: S311 (figures of pictures, the same each time)
DAYS = 62
PLATFORMS = {"web": 48_210, "android": 31_870, "ios": 22_460}
RULE = {
    "all": [
        {"attribute": "plan", "operator": "in", "value": ["pro", "team"]},
        {"field": "last_seen_at", "operator": "gte", "value": {"days_ago": 30}},
        {
            "any": [
                {"attribute": "city", "operator": "eq", "value": "Berlin"},
                {"attribute": "age", "operator": "lt", "value": 30},
            ]
        },
    ]
}
SALES = [
    ("Fresh bread from six o'clock", "Rye, spelt and oat, still warm. Until noon or sold out."),
    ("Your order is on its way", "It arrives between 2 and 4 in the afternoon."),
    ("Spring sale", "Twenty per cent off everything green, until Sunday."),
    ("Closed on Monday", "We are at the market in Accra. Back on Tuesday."),
    ("New: oat croissants", "Baked by hand, with nothing of an animal in them."),
    ("Your table is waiting", "Tonight at seven, by the window."),
    ("Last day of the sale", "Twenty per cent off ends at midnight."),
    ("Rain today?", "We bring it to you: no delivery fee until ten."),
]


ORDER = {
    "title": "Your order is ready",
    "body": "Hi {{ first_name | default: 'there' }}, it waits for you at the counter.",
    "url": "https://bakery.example/orders",
    "actions": [{"id": "map", "title": "Show the way"}],
    "personalize": True,
    "translations": {"de": {"title": "Bestellung fertig"}},
}


def furnish():
    """The paths of the pages by name, and the session of the user who opens them."""
    account = Account.objects.create(name="Corner Bakery")
    channel = make_channel("Corner Bakery", account=account)
    provider_credentials_store(
        channel=channel, fcm_service_account=json.dumps(GOOGLE), apns_key=json.dumps(APPLE)
    )
    api_key_issue(channel=channel, name="Shop backend")
    user = User.objects.create_user("alice", is_staff=True)
    Membership.objects.create(account=account, user=user, role=Role.OWNER)
    for platform, count in PLATFORMS.items():
        add_crowd(channel, count // 20, platform=platform)
    _hours(channel)
    _gold_club(channel)
    _count(channel)
    segment = segment_create(channel=channel, name="Regulars nearby", rule=RULE)
    running = _notifications(channel, segment)
    template = make_template(channel, "Order ready", ORDER)
    _pause_apple(channel)
    _everything_lives()
    one, opens = channel.pk, "/admin/notifications_app/notification"
    listing = "/admin/subscriptions_app/subscription/"
    paths = {
        "dashboard": f"/admin/?channel={one}&days=30",
        "compose": f"{opens}/compose/?channel={one}",
        "notification": f"{opens}/{running.pk}/change/",
        "channel": f"/admin/channels_app/channel/{one}/change/",
        "segment": f"/admin/subscriptions_app/segment/{segment.pk}/change/",
        "template": f"{opens}/templates/{template.pk}/edit/",
        "subscribers": f"{listing}?channel__id__exact={one}&q=club%3Dgold",
    }
    return paths, signed_in(user).cookies["sessionid"].value


def _gold_club(channel):
    """A segment that is small enough to be found, on all platforms."""
    cities = ("Berlin", "Lima", "Osaka", "Accra")
    add_each(
        channel,
        [
            {
                "platform": _RANDOM.choice(list(PLATFORMS)),
                "attributes": {"club": "gold", "city": _RANDOM.choice(cities), "age": 24 + 5 * n},
                "created_at": timezone.now() - timedelta(hours=_RANDOM.randrange(40, 4000)),
                "registered_at": timezone.now() - timedelta(hours=_RANDOM.randrange(40)),
                **(
                    {"expired_at": timezone.now(), "expired_code": "unregistered"} if n == 4 else {}
                ),
            }
            for n in range(8)
        ],
    )


def _count(channel):
    """Sets the counters to the sums of the hourly figures."""
    held = {f"{platform}_subscribers": count for platform, count in PLATFORMS.items()}
    ChannelCounter.objects.filter(channel=channel).delete()
    ChannelCounter.objects.create(
        channel=channel,
        shard=0,
        **held,
        notifications_sent=236,
        recipients=16_912_880,
        delivered=16_613_104,
        bounced=299_776,
        clicked=1_012_430,
    )


def _hours(channel):
    """Two months of hours: mornings and evenings, quieter weekends, some growth, one bad
    afternoon."""
    last = timezone.now().replace(minute=0, second=0, microsecond=0)
    stats, changes = [], []
    for back in range(DAYS * 24):
        hour = last - timedelta(hours=back)
        busy = {7: 1.0, 8: 0.6, 12: 0.35, 18: 0.8, 19: 0.3}.get(hour.hour, 0.01)
        busy *= 0.55 if hour.weekday() > 4 else 1
        gone = {}
        for platform, count in PLATFORMS.items():
            recipients = int(count * busy * _RANDOM.uniform(0.75, 1.1))
            share = 0.11 if platform == "ios" and back in (7 * 24, 7 * 24 + 1) else 0.017
            bounced = int(recipients * share * _RANDOM.uniform(0.7, 1.3))
            clicked = int(recipients * _RANDOM.uniform(0.04, 0.075)) + int(count * 0.0004)
            stats.append(
                HourlyStat(
                    channel=channel,
                    platform=platform,
                    hour=hour,
                    recipients=recipients,
                    delivered=recipients - bounced,
                    bounced=bounced,
                    clicked=clicked,
                )
            )
            gone[f"{platform}_gained"] = int(count / 2600 * _RANDOM.uniform(0.4, 1.9))
            gone[f"{platform}_lost"] = int(count / 4200 * _RANDOM.uniform(0.2, 1.8))
        sent = int(busy > 0.3)
        changes.append(
            ChannelHour(channel=channel, hour=hour, shard=0, notifications_sent=sent, **gone)
        )
    HourlyStat.objects.bulk_create(stats)
    ChannelHour.objects.bulk_create(changes)


def _notifications(channel, segment):
    """One that is being sent, some that ended before it, and some that are due."""
    now = timezone.now()
    everybody = sum(PLATFORMS.values())
    for index, (title, body) in enumerate(SALES):
        began = now - timedelta(hours=11 * (len(SALES) - index) + 3)
        bounced = int(everybody * _RANDOM.uniform(0.012, 0.023))
        make_sent_notification(
            channel,
            title=title,
            body=body,
            target_platforms=list(PLATFORMS),
            scheduled_at=began,
            started_at=began,
            finished_at=began + timedelta(seconds=74),
            recipient_count=everybody,
            delivered_count=everybody - bounced,
            bounced_count=bounced,
            clicked_count=int(everybody * _RANDOM.uniform(0.04, 0.07)),
        )
    for hours, title, segment_id in ((14, "Breakfast box", None), (38, "Only for you", segment.pk)):
        make_sent_notification(
            channel,
            title=title,
            status="pending",
            segment_id=segment_id,
            scheduled_at=(now + timedelta(hours=hours)).replace(minute=30, second=0),
            started_at=None,
            finished_at=None,
            recipient_count=0,
            delivered_count=0,
            bounced_count=0,
            clicked_count=0,
        )
    return _running(channel)


def _running(channel):
    """A notification that is half sent, with every row that the pipeline would have written."""
    began = timezone.now() - timedelta(minutes=4)
    ended = {"web": (41_920, 611), "android": (24_310, 402), "ios": (9_870, 35)}
    delivered = sum(good for good, _ in ended.values())
    bounced = sum(bad for _, bad in ended.values())
    notification = make_sent_notification(
        channel,
        title="Oat croissants are back",
        body="Warm from seven, at both shops. Show this message and the coffee is on us.",
        url="https://bakery.example/croissants",
        ttl=6 * 3600,
        target_platforms=list(PLATFORMS),
        status="processing",
        scheduled_at=began,
        started_at=began,
        deadline_at=began + timedelta(hours=6),
        finished_at=None,
        recipient_count=sum(PLATFORMS.values()),
        delivered_count=delivered,
        bounced_count=bounced,
        received_count=38_520,
        clicked_count=1_204,
        dismissed_count=9_310,
    )
    _events(notification, began)
    Notification.objects.filter(pk=notification.pk).update(created_at=began)
    codes = {"web": "endpoint_gone", "android": "unregistered", "ios": "unregistered"}
    shares = (0.14, 0.22, 0.25, 0.26, 0.13)
    for platform, (good, bad) in ended.items():
        plan = make_plan(
            notification,
            platform=platform,
            status="delivering",
            recipient_count=PLATFORMS[platform],
        )
        Batch.objects.create(
            plan=plan,
            notification=notification,
            channel=channel,
            platform=platform,
            push_service="mozilla",
            status="leased",
            claimed_at=timezone.now(),
            lease_until=timezone.now() + timedelta(hours=1),
            recipient_count=PLATFORMS[platform],
            delivered_count=good,
            bounced_count=bad,
        )
        for number, share in enumerate(shares):
            minute = (began + timedelta(minutes=number)).replace(second=0, microsecond=0)
            for code, count in (("", good), (codes[platform], bad)):
                OutcomeMinute.objects.create(
                    notification=notification,
                    platform=platform,
                    minute=minute,
                    code=code,
                    count=int(count * share),
                )
    return notification


def _events(notification, began):
    """As many as the notification counts: (received, clicked, dismissed)."""
    reported = {"web": (33_900, 871, 9_310), "android": (4_431, 264, 0), "ios": (189, 69, 0)}
    for platform, (received, clicked, dismissed) in reported.items():
        EventHour.objects.create(
            notification=notification,
            hour=began.replace(minute=0, second=0, microsecond=0),
            platform=platform,
            received=received,
            clicked=clicked,
            dismissed=dismissed,
        )


def _pause_apple(channel):
    """Something that needs attention: Apple has refused the key for some time."""
    ProviderCredential.objects.filter(channel=channel, platform="ios").update(
        paused_at=timezone.now() - timedelta(minutes=25),
        paused_code="key_refused",
        paused_detail="403 InvalidProviderToken",
        retried_at=timezone.now() - timedelta(minutes=4),
        retry_at=timezone.now() + timedelta(minutes=26),
        retries=3,
        checked_at=timezone.now() - timedelta(minutes=4),
        is_accepted=False,
        checked_words="key_refused: 403 InvalidProviderToken",
    )


def _everything_lives():
    """Workers and beat report themselves for as long as the pictures take."""
    for queue in ("plan", "tick", *PLATFORMS):
        redis_client().hset(f"pushsvc:workers:{queue}", "node", f"{time.time() + 3600}:2")
    redis_client().set("pushsvc:ticked", 1)

"""Measures what each page of the console costs in a large installation.

For each page: the number of its queries, whether one of them scans a big table, and its best time
of several as a multiple of GET /healthz, in the same process and minute. The bench fills a
temporary database and deletes it at the end.
"""

import argparse
import re
import time
from typing import TYPE_CHECKING, Any

from bench import filling
from bench.database import own_database

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

    from channels_app.models import Channel

_CHANNELS = 20
_DAYS = 400  # of hourly rows
_MOST_QUERIES = 25
_TIMES = 7
_BIG = (
    "subscriptions_app_subscription",
    "notifications_app_delivery",
    "notifications_app_notification",
    "notifications_app_hourlystat",
    "notifications_app_outcomeminute",
    "notifications_app_eventhour",
    "notifications_app_batch",
)
_SCAN = re.compile(rf"Seq Scan on ({'|'.join(_BIG)})\b")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscribers", type=int, default=1_000_000)
    parser.add_argument("--notifications", type=int, default=10_000)
    arguments = parser.parse_args()
    with own_database():
        began = time.perf_counter()
        channel = _fill(arguments.subscribers, arguments.notifications)
        print(f"filled in {time.perf_counter() - began:.0f} s")
        for user in (_owner(channel), _root()):
            _measure(channel, user)


def _fill(subscribers: int, notifications: int) -> "Channel":
    """Creates twenty channels. Returns the first, which has nine tenths of the subscribers."""
    from django.db import connection

    from channels_app.models import Account
    from channels_app.services import channel_create

    account = Account.objects.create(name="Bench")
    channels = [
        channel_create(name=f"Channel {number:02}", account=account) for number in range(_CHANNELS)
    ]
    for position, channel in enumerate(channels):
        share = 0.9 if position == 0 else 0.1 / (_CHANNELS - 1)
        filling.fill(channel, int(subscribers * share), notifications // _CHANNELS)
    with connection.cursor() as cursor:
        for channel in channels:
            for statement in (_HOURS, _CHANNEL_HOURS):
                cursor.execute(statement, {"channel": channel.pk, "hours": _DAYS * 24})
        cursor.execute(_DELIVERIES, {"channel": channels[0].pk})
        cursor.execute(_LABELS)
        cursor.execute(_BATCHES)
        cursor.execute(_MINUTES)
        cursor.execute(_EVENT_HOURS)
        cursor.execute("VACUUM ANALYZE")
    return channels[0]


def _owner(channel: "Channel") -> "User":
    from django.contrib.auth.models import User

    from channels_app.models import Membership, Role

    user = User.objects.create_user("owner", is_staff=True)
    Membership.objects.create(account=channel.account, user=user, role=Role.OWNER)
    return user


def _root() -> "User":
    from django.contrib.auth.models import User

    return User.objects.create_superuser("root")


def _measure(channel: "Channel", user: "User") -> None:
    from django.test import Client

    client = Client(raise_request_exception=False)
    client.force_login(user)
    floor = _seconds(client, "/healthz", times=50)
    print(f"\nas {user}; GET /healthz takes {1000 * floor:.1f} ms")
    print(f"{'page':<44}{'queries':>8}{'ms':>8}{'ratio':>8}  scans")
    for name, address in pages(channel).items():
        status, statements = _statements(client, address)
        if status != 200:
            print(f"{name:<44} answered {status}: {address}")
            continue
        seconds = _seconds(client, address, times=_TIMES)
        scans = ", ".join(_scanned(statements)) or "none"
        too_many = " too many queries" if len(statements) > _MOST_QUERIES else ""
        figures = f"{len(statements):>8}{1000 * seconds:>8.0f}{seconds / floor:>8.0f}"
        print(f"{name:<44}{figures}  {scans}{too_many}")


def pages(channel: "Channel") -> dict[str, str]:
    from django.urls import reverse

    from notifications_app.models import Notification
    from subscriptions_app.models import Subscription

    own = Notification.objects.filter(channel=channel)
    largest = own.order_by("-recipient_count", "id")[0]
    running = own.filter(status="processing").order_by("id")[0]
    subscription = Subscription.objects.filter(channel=channel).order_by("id")[0]

    def at(name: str, *arguments: object, **query: object) -> str:
        found = "&".join(f"{key}={value}" for key, value in query.items())
        return f"{reverse(f'admin:{name}', args=arguments)}?{found}"

    compared = "&".join(f"id={each.pk}" for each in own.order_by("-id")[:5])
    notifications = "notifications_app_notification_changelist"
    subscribers = "subscriptions_app_subscription_changelist"
    mine = {"channel__id__exact": channel.pk}
    return {
        "dashboard, 24 hours": at("index", days=1),
        "dashboard, 90 days": at("index", days=90),
        "dashboard of a channel, 90 days": at("index", days=90, channel=channel.pk),
        "dashboard: live part": at("dashboard_live"),
        "dashboard: attention": at("dashboard_attention"),
        "notifications": at(notifications),
        "notifications of a channel": at(notifications, **mine),
        "notifications: running": at(notifications, show="running"),
        "notifications: scheduled": at(notifications, show="scheduled"),
        "notifications: many bounces": at(notifications, show="bounces"),
        "notifications: tests": at(notifications, show="tests"),
        "notifications: last month": at(notifications, span="last_month"),
        "notifications: by click rate": at(notifications, sort="clicked_rate"),
        "notifications of a channel: by clicks": at(notifications, **mine, sort="clicked"),
        "notifications: of a schedule": at(notifications, kind="scheduled"),
        "labels, 52 weeks": at("notification_labels", weeks=52),
        "notifications: search": at(notifications, q="number+77"),
        "notifications: 24 hours": at(notifications, within=1),
        "notifications: 90 days": at(notifications, within=90),
        "notifications: bounced in 90 days": at(notifications, within=90, outcome="bounced"),
        "notifications: bounced on iOS": at(notifications, outcome="bounced", platform="ios"),
        "notifications: delivered on iOS, 7 days": at(
            notifications, within=7, outcome="delivered", platform="ios"
        ),
        "notification, the largest": at("notifications_app_notification_change", largest.pk),
        "notification that is being sent": at("notifications_app_notification_change", running.pk),
        "comparison of five": f"{at('notification_compare')}{compared}",
        "best hours of 52 weeks": at("channel_best_hours", channel.pk, weeks=52),
        "compose": at("notification_compose", channel=channel.pk),
        "channels": at("channels_app_channel_changelist"),
        "channel": at("channels_app_channel_change", channel.pk),
        "channel: credentials": at("channel_credentials", channel.pk),
        "channel: API keys": at("channel_keys", channel.pk),
        "channel: web push key": at("channel_vapid", channel.pk),
        "channel: snippet": at("channel_snippet", channel.pk),
        "segments": at("subscriptions_app_segment_changelist"),
        "segment builder": at("segment_new", channel.pk),
        "subscribers": at(subscribers),
        "subscribers of a channel": at(subscribers, **mine),
        "subscribers of a channel, active": at(subscribers, **mine, state="active"),
        "subscribers who came in 24 hours": at(subscribers, **mine, within=1),
        "subscribers who came in 90 days": at(subscribers, **mine, within=90),
        "subscribers who went in 7 days": at(subscribers, **mine, within=7, state="expired"),
        "subscribers who went in 90 days": at(subscribers, **mine, within=90, state="expired"),
        "subscribers: search by id": at(subscribers, q=subscription.pk),
        "subscribers: search by attribute": at(subscribers, **mine, q="plan%3Dteam"),
        "subscriber": at("subscriptions_app_subscription_change", subscription.pk),
        "accounts": at("channels_app_account_changelist"),
        "audit log": at("auditlog_logentry_changelist"),
    }


def _statements(client: "Client", address: str) -> tuple[int, list[str]]:
    """The status of the answer, and its statements."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        answer = client.get(address, follow=True)
    return answer.status_code, [query["sql"] for query in captured.captured_queries]


def _scanned(statements: list[str]) -> list[str]:
    """Big tables of which a statement reads every row."""
    from django.db import connection

    scanned: set[str] = set()
    with connection.cursor() as cursor:
        for statement in statements:
            if statement.lstrip().startswith(("SELECT", "WITH")):
                cursor.execute(f"EXPLAIN {statement}")
                rows: list[Any] = cursor.fetchall()
                scanned.update(_SCAN.findall("\n".join(row[0] for row in rows)))
    return sorted(scanned)


def _seconds(client: "Client", address: str, *, times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        client.get(address, follow=True)
        taken.append(time.perf_counter() - began)
    return min(taken)  # other work of the machine can only increase the time


_HOURS = """
INSERT INTO notifications_app_hourlystat
  (channel_id, platform, hour, recipients, delivered, bounced, deferred, clicked)
SELECT %(channel)s, platform, date_trunc('hour', now()) - make_interval(hours => back),
  1000, 900 + back %% 50, 100 - back %% 50, 0, back %% 90
FROM generate_series(0, %(hours)s) AS back, unnest(ARRAY['web', 'android', 'ios']) AS platform
"""

_CHANNEL_HOURS = """
INSERT INTO channels_app_channelhour
  (channel_id, hour, shard, web_gained, web_lost, android_gained, ios_gained, notifications_sent)
SELECT %(channel)s, date_trunc('hour', now()) - make_interval(hours => back), 0,
  40 + back %% 7, 30, 10, 5, 1
FROM generate_series(0, %(hours)s) AS back
"""

# One notification reached every subscriber of the channel, and another is half sent.
_DELIVERIES = """
WITH largest AS (
  UPDATE notifications_app_notification SET recipient_count = counted.number,
    delivered_count = counted.number - counted.number / 20, bounced_count = counted.number / 20
  FROM (SELECT count(*) AS number FROM subscriptions_app_subscription
        WHERE channel_id = %(channel)s) AS counted
  WHERE id = (SELECT id FROM notifications_app_notification
              WHERE channel_id = %(channel)s AND status = 'sent' ORDER BY id DESC LIMIT 1)
  RETURNING id
), minutes AS (
  INSERT INTO notifications_app_outcomeminute (notification_id, minute, platform, code, count)
  SELECT id, date_trunc('minute', now()) - make_interval(mins => back), platform, code, 1000
  FROM largest, generate_series(1, 60) AS back, unnest(ARRAY['web', 'android', 'ios']) AS platform,
    unnest(ARRAY['', 'endpoint_gone', 'expired', 'timeout']) AS code
)
INSERT INTO notifications_app_delivery
  (notification_id, subscription_id, batch_id, status, code, finished_at)
SELECT largest.id, subscription.id, 1 + (row_number() OVER ()) / 1000,
  1 + (random() < 0.05)::int, CASE WHEN random() < 0.05 THEN 'endpoint_gone' ELSE '' END, now()
FROM largest, subscriptions_app_subscription subscription
WHERE subscription.channel_id = %(channel)s
"""

# Every notification has clicks, and every third has labels.
_LABELS = """
WITH numbered AS (SELECT id, row_number() OVER () AS n FROM notifications_app_notification)
UPDATE notifications_app_notification AS own
SET clicked_count = CASE WHEN status = 'sent' THEN n % 90 ELSE 0 END,
  labels = CASE WHEN n % 3 = 0 THEN jsonb_build_array('newsletter', 'week ' || n % 40) END
FROM numbered WHERE numbered.id = own.id
"""

# Of every second notification: two minutes, on each platform.
_MINUTES = """
INSERT INTO notifications_app_outcomeminute (notification_id, minute, platform, code, count)
SELECT id, date_trunc('minute', started_at) + make_interval(mins => n), platform, code, 75
FROM notifications_app_notification, generate_series(0, 1) AS n,
  unnest(ARRAY['web', 'android', 'ios']) AS platform, unnest(ARRAY['', 'endpoint_gone']) AS code
WHERE started_at IS NOT NULL
ON CONFLICT DO NOTHING
"""

# Of every notification: four days, on each platform.
_EVENT_HOURS = """
INSERT INTO notifications_app_eventhour (notification_id, hour, platform, received, clicked)
SELECT id, date_trunc('hour', started_at) + make_interval(hours => n), platform, 60, 5
FROM notifications_app_notification, generate_series(0, 95) AS n,
  unnest(ARRAY['web', 'android', 'ios']) AS platform
WHERE started_at IS NOT NULL
"""

# Of every notification that is being sent: a hundred batches that are done, and twenty that are
# not.
_BATCHES = """
WITH plans AS (
  INSERT INTO notifications_app_plan
    (notification_id, channel_id, platform, status, recipient_count, release_at, deadline_at)
  SELECT id, channel_id, 'web', 'delivering', 1000, started_at, started_at + interval '1 hour'
  FROM notifications_app_notification WHERE status = 'processing'
  RETURNING id, notification_id, channel_id
)
INSERT INTO notifications_app_batch
  (plan_id, notification_id, channel_id, platform, push_service, status, due_at, finished_at,
   recipient_count, delivered_count)
SELECT id, notification_id, channel_id, 'web', 'mozilla',
  CASE WHEN n > 20 THEN 'done' ELSE 'ready' END,
  now() - interval '3 minutes', CASE WHEN n > 20 THEN now() END, 1000,
  CASE WHEN n > 20 THEN 1000 ELSE 0 END
FROM plans, generate_series(1, 120) AS n
"""


if __name__ == "__main__":
    main()

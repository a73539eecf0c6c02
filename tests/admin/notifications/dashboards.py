"""What the tests of the dashboard share: its page, and rows that it shows."""

import time
from datetime import UTC, timedelta

from django.urls import reverse
from django.utils import timezone

from channels_app.models import Channel
from notifications_app.models import Batch, HourlyStat
from pushsvc.common.store.redis_client import redis_client
from tests.admin.support import signed_in
from tests.factories import make_plan, make_sent_notification

QUEUES = ("plan", "tick", "web", "android", "ios", "hooks")


def page(user, **query):
    return signed_in(user).get(reverse("admin:index"), query)


def html(user, **query):
    answer = page(user, **query)
    assert answer.status_code == 200
    return answer.content.decode()


def everything_lives():
    until = time.time() + 600  # a busy machine may take longer than the 15 s of a heartbeat
    for queue in QUEUES:
        redis_client().hset(f"pushsvc:workers:{queue}", "node", f"{until}:2")
    redis_client().set("pushsvc:ticked", 1)


def hour(*, back=0):
    now = timezone.now().astimezone(UTC)
    return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=back)


def stat(channel, *, back=0, platform="web", **counts):
    HourlyStat.objects.create(channel=channel, platform=platform, hour=hour(back=back), **counts)


def all_of(house):
    return Channel.objects.filter(account=house.account)


def running(channel, *, batches=(), is_planning=False, **fields):
    """A notification that is being sent, with one batch of each given status."""
    values = {
        "status": "processing",
        "started_at": timezone.now() - timedelta(seconds=100),
        "deadline_at": timezone.now() + timedelta(hours=1),
        "finished_at": None,
        "delivered_count": 0,
        "bounced_count": 0,
    }
    notification = make_sent_notification(channel, **(values | fields))
    status = "planning" if is_planning else "delivering"
    times = {
        "due_at": timezone.now() - timedelta(days=1),
        "deadline_at": notification.deadline_at,
    }
    plan = make_plan(notification, status=status, **times)
    for each in batches:
        values = {"status": "ready", "recipient_count": 10, "push_service": "mozilla"} | each
        Batch.objects.create(
            plan=plan, notification=notification, channel=channel, platform="web", **values
        )
    return notification

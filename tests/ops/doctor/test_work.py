"""`manage.py doctor` names what is wrong with the work that goes on."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from bench.ports import own_port
from channels_app.models import Channel
from channels_app.services import api_key_issue
from notifications_app.models import Batch, Plan
from notifications_app.pipeline import breakers
from pushsvc.common.ids import uuid7
from pushsvc.common.store.redis_client import redis_client
from tests.admin.notifications.dashboards import running, stat
from tests.factories import add_subscriptions, make_notification, register
from tests.ops.doctor.findings import the_fault
from tests.pipeline import support

pytestmark = pytest.mark.django_db


def _ago(**by):
    return timezone.now() - timedelta(**by)


def _no_heartbeat(queue):
    return lambda _channel: redis_client().delete(f"pushsvc:workers:{queue}")


def _no_tick(_channel):
    redis_client().delete("pushsvc:ticked")


def _service_fails(_channel):
    """For most channels that called it, each with few calls."""
    for _ in range(2):
        breakers.record("mozilla", uuid7(), answered=0, outages=10)


def _service_fails_one(channel):
    breakers.record("mozilla", channel.pk, answered=0, outages=50)


def _starts_late(channel):
    make_notification(channel, scheduled_at=_ago(minutes=3))


def _queue_is_late(**by):
    return lambda channel: running(channel, batches=[{"due_at": _ago(**by)}])


def _workers_die(channel):
    """Three die, one after the other, while they send the same batch."""
    add_subscriptions(channel, 2, push_service="mozilla")
    notification = make_notification(channel, title="Spring sale")
    support.plan()
    for _ in range(3):
        support.make_due(notification)
        support.lose_lease(support.claim().batch_id)


def _bounces_jump(channel):
    stat(channel, back=72, delivered=990, bounced=10)
    stat(channel, back=2, delivered=900, bounced=100)


def _holds(stored):
    def fill(channel):
        Channel.objects.filter(pk=channel.pk).update(max_subscriptions=10)
        add_subscriptions(channel, stored)

    return fill


def _used_key_ends(channel):
    ends_at = timezone.now() + timedelta(days=5.5)
    _, text = api_key_issue(channel=channel, name="Till", expires_at=ends_at)
    headers = {"Authorization": f"Key {text}", "Host": "push.example.com"}
    used = Client().get(f"/channel/{channel.pk}", headers=headers, secure=True)
    assert used.status_code == 200


@pytest.mark.parametrize(
    ("break_it", "title", "tone", "way"),
    [
        (_no_heartbeat("plan"), "The planner is not running", "bad", "Start worker-plan"),
        (_no_heartbeat("tick"), "The planner is not running", "bad", "Start worker-plan"),
        (_no_heartbeat("web"), "No worker for Web is running", "bad", "Start worker-web"),
        (_no_tick, "No tick ended in the last 15 seconds", "bad", "Start beat"),
        (_service_fails, "The push service mozilla is failing", "warn", "next attempt"),
        (
            _service_fails_one,
            "The push service mozilla is failing for this channel (Alice's shop)",
            "warn",
            "Other channels are not delayed",
        ),
        (_starts_late, "Notifications that are late to start: 1", "bad", "planner or beat"),
        (_queue_is_late(minutes=2), "10 recipients wait on Web", "warn", "start more worker-web"),
        (_queue_is_late(minutes=20), "10 recipients wait on Web", "bad", "start more worker-web"),
        (_workers_die, "Workers fail on “Spring sale” (Alice's shop)", "warn", "out-of-memory"),
        (_bounces_jump, "Web: 10% of recipients bounce (Alice's shop)", "warn", "show the reasons"),
        (
            _holds(9),
            "The channel holds 9 of at most 10 subscriptions (Alice's shop)",
            "warn",
            "Raise the limit",
        ),
        (
            _holds(10),
            "The channel holds 10 of at most 10 subscriptions (Alice's shop)",
            "bad",
            "Raise the limit",
        ),
        (
            _used_key_ends,
            "The API key “Till” expires in 5 days (Alice's shop)",
            "warn",
            "Issue another key",
        ),
    ],
)
def test_what_is_late_or_failing_is_the_only_fault(healthy, break_it, title, tone, way):
    break_it(healthy)

    told = the_fault()
    assert told[:2] == (title, tone)
    assert way in told[2]


@pytest.mark.django_db(transaction=True)
def test_a_push_service_that_nobody_can_connect_to_is_named(healthy, settings):
    """With fewer calls than open a breaker."""
    origin = f"http://127.0.0.1:{own_port()}"
    settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({origin})
    for name in ("one", "two"):
        register(healthy, address=f"{origin}/{name}")
    support.send(healthy)
    Batch.objects.update(due_at=Now() + timedelta(hours=1))  # however long the doctor takes

    for minutes, tone in ((5, "warn"), (20, "bad")):
        Plan.objects.update(due_at=_ago(minutes=minutes))
        title, told, remedy = the_fault()
        assert (title, told) == ("Calls for 2 recipients on Web fail", tone)
        assert "check their DNS, firewall, proxy and clocks" in remedy
        assert "They said: connection_failed" in remedy

"""`manage.py doctor` names what is wrong with the work, as the dashboard does, for all channels."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from bench.ports import own_port
from channels_app.models import Channel, ProviderCredential
from notifications_app.models import Batch, Plan
from pushsvc.common.store.crypto import encrypt
from pushsvc.common.store.redis_client import redis_client
from tests.admin.notifications.dashboards import stat
from tests.factories import add_subscriptions, make_notification, register
from tests.ops.doctor.findings import report, the_fault
from tests.pipeline import support

pytestmark = pytest.mark.django_db


def _ago(**by):
    return timezone.now() - timedelta(**by)


def _no_heartbeat(_channel):
    redis_client().delete("pushsvc:workers:plan")


def _android_without_credentials(channel):
    Channel.objects.filter(pk=channel.pk).update(android_enabled=True)


def _a_paused_platform(channel):
    ProviderCredential.objects.create(
        channel=channel,
        platform="ios",
        secret_encrypted=encrypt("x"),
        paused_at=timezone.now(),
        paused_code="invalid_provider_token",
        paused_detail="InvalidProviderToken",
    )


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


@pytest.mark.parametrize(
    ("break_it", "title", "way"),
    [
        (_no_heartbeat, "The planner is not running", "Start worker-plan"),
        (_android_without_credentials, "Android has no credentials (Alice's shop)", "Google"),
        (
            _a_paused_platform,
            "iOS is paused: Apple refused the credentials (Alice's shop)",
            "The response was: invalid_provider_token: InvalidProviderToken",
        ),
        (_workers_die, "Workers fail on “Spring sale” (Alice's shop)", "out-of-memory"),
        (_bounces_jump, "Web: 10% of recipients bounce (Alice's shop)", "show the reasons"),
    ],
)
def test_what_is_late_or_failing_is_the_only_fault(healthy, break_it, title, way):
    break_it(healthy)

    found_title, remedy = the_fault()
    assert found_title == title
    assert way in remedy


@pytest.mark.django_db(transaction=True)
def test_a_push_service_that_nobody_can_connect_to_is_named(healthy, settings):
    """With fewer calls than open a breaker."""
    origin = f"http://127.0.0.1:{own_port()}"
    settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({origin})
    for name in ("one", "two"):
        register(healthy, address=f"{origin}/{name}")
    support.send(healthy)
    Batch.objects.update(due_at=Now() + timedelta(hours=1))  # however long the doctor takes

    for minutes, severity in ((5, "warning"), (20, "error")):
        Plan.objects.update(due_at=_ago(minutes=minutes))
        (fault,) = [each for each in report()[0] if each["code"] == "calls_fail"]
        assert fault["title"] == "Calls for 2 recipients on Web fail"
        assert fault["severity"] == severity
        assert "check their DNS, firewall, proxy and clocks" in fault["remedy"]
        assert "The response was: connection_failed" in fault["remedy"]

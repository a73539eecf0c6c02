"""`manage.py doctor` names what is wrong with the work, as the dashboard does, for all channels."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from bench.ports import own_port
from channels_app.models import ProviderCredential
from notifications_app.models import Batch, Plan
from pushsvc.common.store.crypto import encrypt
from pushsvc.common.store.redis_client import redis_client
from tests.factories import register
from tests.ops.doctor.findings import report, the_error
from tests.pipeline import support

pytestmark = pytest.mark.django_db


def test_a_missing_planner_is_the_only_error(healthy):
    redis_client().delete("pushsvc:workers:plan")

    title, remedy = the_error()
    assert title == "The planner is not running"
    assert "Start worker-plan" in remedy


def test_a_paused_platform_is_named_with_its_channel_and_the_providers_words(healthy):
    ProviderCredential.objects.create(
        channel=healthy,
        platform="ios",
        secret_encrypted=encrypt("x"),
        paused_at=timezone.now(),
        paused_code="invalid_provider_token",
        paused_detail="InvalidProviderToken",
    )

    title, remedy = the_error()
    assert title == "iOS is paused: Apple refused the credentials (Alice's shop)"
    assert remedy.endswith("The response was: invalid_provider_token: InvalidProviderToken")


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
        Plan.objects.update(due_at=timezone.now() - timedelta(minutes=minutes))
        (error,) = [each for each in report()[0] if each["code"] == "calls_fail"]
        assert error["title"] == "Calls for 2 recipients on Web fail"
        assert error["severity"] == severity
        assert "check their DNS, firewall, proxy and clocks" in error["remedy"]
        assert "The response was: connection_failed" in error["remedy"]

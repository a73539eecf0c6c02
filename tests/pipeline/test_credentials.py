"""Credentials that the push service refuses: the platform pauses, its batches wait, then bounce."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from channels_app.models import ProviderCredential
from channels_app.pauses import platform_pause
from notifications_app.delivery.types import Misconfigured
from notifications_app.models import Batch, Plan
from notifications_app.pipeline import batches, outcomes
from notifications_app.pipeline.lease import HeldLeases
from notifications_app.pipeline.transitions import Limits, Transition, transition_of
from notifications_app.states import DeliveryStatus
from pushsvc.common.store.crypto import encrypt
from tests import factories
from tests.pipeline import support


@pytest.fixture
def credential(channel):
    return ProviderCredential.objects.create(
        channel=channel, platform="android", secret_encrypted=encrypt("{}")
    )


@pytest.fixture
def notification(channel, settings):
    """A notification for two phones, planned in two batches."""
    settings.BATCH_SIZE = 1
    factories.add_subscriptions(channel, 2, platform="android")
    notification = factories.make_notification(channel, target_platforms=["android"])
    support.plan(notification)
    return notification


def recipient(notification, lease):
    row = support.deliveries(notification).get(batch_id=lease.batch_id)
    return support.due(row)


def refuse(notification, lease):
    """As a worker does whose credentials were refused."""
    limits = Limits(notification.deadline_at, 12, 3600)
    now = lease.now()
    refusal = Misconfigured("sender_id_disabled", "The project is disabled.")
    transition = transition_of(
        recipient(notification, lease), refusal, registered_at=now, now=now, limits=limits
    )
    outcomes.record([lease], [transition])
    HeldLeases([lease]).park()


def pause(channel, version=1):
    return platform_pause(
        channel_id=channel.id, platform="android", version=version, code="x", detail="y"
    )


def replace(credential):
    """What storing new credentials changes in the row."""
    ProviderCredential.objects.filter(pk=credential.pk).update(
        version=F("version") + 1, paused_at=None
    )


def end_overdue():
    for batch_id, code in batches.overdue():
        outcomes.bounce_overdue(batch_id, code)


def deliver(notification, lease):
    accepted = Transition(recipient(notification, lease), DeliveryStatus.DELIVERED, attempts=1)
    outcomes.record([lease], [accepted])


def parked(channel, notification):
    """Every batch is parked and the platform is paused."""
    assert pause(channel)
    while (lease := support.claim("android")) is not None:
        refuse(notification, lease)


def test_a_refusal_counts_no_attempt_and_keeps_the_recipient_waiting(
    channel, credential, notification
):
    parked(channel, notification)

    assert set(Batch.objects.values_list("status", flat=True)) == {"parked"}
    for row in support.deliveries(notification):
        assert (row.status, row.attempts, row.code) == (0, 0, "sender_id_disabled")
    assert support.claim("android") is None


def test_parked_batches_wait_while_the_platform_is_paused(channel, credential, notification):
    """However usable the credentials of another platform are."""
    ProviderCredential.objects.create(
        channel=channel, platform="ios", secret_encrypted=encrypt("{}")
    )
    parked(channel, notification)

    assert batches.unpark() == 0
    end_overdue()

    assert set(Batch.objects.values_list("status", flat=True)) == {"parked"}


def test_new_credentials_resume_parked_batches(channel, credential, notification):
    parked(channel, notification)

    replace(credential)

    assert batches.unpark() == 2
    for _ in range(2):
        deliver(notification, support.claim("android"))
    assert support.counts(notification) == ("sent", 2, 2, 0)


def test_a_parked_batch_that_another_session_holds_does_not_keep_the_tick(
    channel, credential, notification
):
    parked(channel, notification)
    replace(credential)
    held, other = Batch.objects.order_by("pk").values_list("pk", flat=True)

    resumed = support.waits_for_nobody(Batch.objects.filter(pk=held), batches.unpark)

    assert resumed == 1
    assert Batch.objects.get(status="ready").pk == other


def test_the_tick_resumes_only_the_channel_that_got_credentials(
    channel, other_channel, credential, notification
):
    other = ProviderCredential.objects.create(
        channel=other_channel, platform="android", secret_encrypted=encrypt("{}")
    )
    parked(channel, notification)
    assert pause(other_channel)

    replace(other)

    assert batches.unpark() == 0


def test_a_late_answer_to_old_credentials_does_not_pause_new_ones(channel, credential):
    replace(credential)

    assert pause(channel, version=1) is False

    credential.refresh_from_db()
    assert credential.paused_at is None
    assert pause(channel, version=2) is True


@pytest.mark.parametrize("over", ["an_hour_after_parking", "at_the_deadline"])
def test_a_parked_batch_bounces_because_of_its_credentials(channel, credential, notification, over):
    parked(channel, notification)
    if over == "at_the_deadline":
        support.end_time(notification)
    else:
        Batch.objects.update(parked_at=Now() - timedelta(minutes=61))

    end_overdue()

    assert support.codes(notification) == ["credentials_refused"] * 2
    assert support.counts(notification) == ("failed", 2, 0, 2)


def test_a_batch_that_became_ready_since_it_was_overdue_is_not_bounced(
    channel, credential, notification
):
    """Two ticks at once: one looks for overdue batches, then the other makes them ready."""
    parked(channel, notification)
    Batch.objects.update(parked_at=Now() - timedelta(minutes=61))
    overdue = batches.overdue()
    replace(credential)
    batches.unpark()

    for each in overdue:
        outcomes.bounce_overdue(*each)

    assert len(overdue) == 2
    assert support.counts(notification) == ("processing", 2, 0, 0)
    for _ in overdue:
        deliver(notification, support.claim("android"))


def test_the_notification_is_sent_and_not_failed_if_one_recipient_got_it(
    channel, credential, notification
):
    deliver(notification, support.claim("android"))
    parked(channel, notification)
    Batch.objects.filter(status="parked").update(parked_at=Now() - timedelta(minutes=61))

    end_overdue()

    assert support.counts(notification) == ("sent", 2, 1, 1)


def test_the_notification_is_sent_and_not_failed_if_one_recipient_bounced_for_another_reason(
    channel, credential, notification
):
    lease = support.claim("android")
    gone = Transition(recipient(notification, lease), DeliveryStatus.BOUNCED, "unsubscribed")
    outcomes.record([lease], [gone])
    parked(channel, notification)
    Batch.objects.filter(status="parked").update(parked_at=Now() - timedelta(minutes=61))

    end_overdue()

    assert support.counts(notification) == ("sent", 2, 0, 2)
    assert Plan.objects.get().status == "delivering"

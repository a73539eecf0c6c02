"""FCM's quota: calls over it wait, and count no attempt."""

from datetime import timedelta

import pytest

from notifications_app.models import Batch
from notifications_app.pipeline import batches, breakers, dispatch
from notifications_app.pipeline import quota as quotas
from notifications_app.pipeline.quota import Quota
from notifications_app.states import CAREFUL_AFTER_LEASE_LOSSES
from pushsvc.common.store.redis_client import redis_client
from tests import factories
from tests.factories import GOOGLE_PROJECT
from tests.pipeline import phones, support

BURST = 100


@pytest.fixture
def google(fcm, channel, settings, monkeypatch):
    """A project that is granted BURST calls, and no more until the test fills its bucket again."""
    settings.FCM_CALLS_PER_MINUTE = 60 * 10 * BURST
    phones.stop_clock(monkeypatch)
    phones.store_google(fcm, channel)
    phones.prove(fcm, channel)
    return fcm


def use_up(settings, project=GOOGLE_PROJECT):
    """As another worker does; the bucket stays empty for the test."""
    settings.FCM_CALLS_PER_MINUTE = 1
    Quota("fcm_v1", 1).take(project, 1)


def refill(settings):
    settings.FCM_CALLS_PER_MINUTE = 600_000
    redis_client().flushdb()
    dispatch._over_quota.clear()


@pytest.fixture
def claims(monkeypatch):
    """The channels of the batches that were claimed."""
    claimed = []
    claim = batches.claim

    def noted(*arguments, **options):
        leases = claim(*arguments, **options)
        claimed.extend(lease.channel_id for lease in leases)
        return leases

    monkeypatch.setattr(batches, "claim", noted)
    return claimed


def test_a_batch_is_cut_to_the_granted_calls_and_the_rest_comes_later(google, channel, settings):
    devices = factories.subscribe_androids(google, channel, BURST + 30)

    notification = phones.send(channel, "android")

    assert support.counts(notification) == ("processing", BURST + 30, BURST, 0)
    batch = Batch.objects.get(notification=notification)
    assert (batch.status, batch.lease_losses) == ("ready", 0)
    waiting = support.deliveries(notification).filter(status=0)
    assert set(waiting.values_list("attempts", "code", "first_attempt_at")) == {(0, "", None)}
    refill(settings)
    phones.deliver_to_the_end(notification, "android")
    assert support.counts(notification) == ("sent", BURST + 30, BURST + 30, 0)
    assert phones.received(devices) == [1] * (BURST + 30)
    assert set(support.deliveries(notification).values_list("attempts", flat=True)) == {1}


def test_no_device_is_called_while_the_quota_is_used_up(google, channel, settings):
    devices = factories.subscribe_androids(google, channel, 3)
    use_up(settings)

    notification = phones.send(channel, "android")

    assert phones.received(devices) == [0, 0, 0]
    assert support.counts(notification) == ("processing", 3, 0, 0)
    batch = Batch.objects.get(notification=notification)
    assert batch.due_at - batch.claimed_at >= timedelta(seconds=1)  # the longest wait for a quota
    refill(settings)
    phones.send_again(notification, "android")
    assert phones.received(devices) == [1, 1, 1]


def test_recipients_that_wait_for_the_quota_bounce_at_the_deadline(google, channel, settings):
    factories.subscribe_androids(google, channel, 3)
    use_up(settings)
    notification = phones.send(channel, "android")

    support.end_time(notification)
    support.tick()

    assert support.counts(notification) == ("sent", 3, 0, 3)
    assert support.codes(notification) == ["expired"] * 3


def test_batches_over_the_quota_are_skipped_while_others_are_claimed(
    google, channel, other_channel, settings, claims, monkeypatch
):
    settings.BATCH_SIZE = 1
    monkeypatch.setattr(quotas, "_LONGEST_WAIT", 3600.0)  # however slow the machine is
    phones.store_google(google, other_channel, "bobs-news")
    waiting = factories.subscribe_androids(google, channel, 20)
    served = factories.subscribe_androids(google, other_channel, 1, "bobs-news")
    use_up(settings)
    phones.plan(channel, "android")
    notification = phones.plan(other_channel, "android")

    phones.deliver(notification, "android")

    assert claims.count(channel.id) == 1
    assert claims.count(other_channel.id) == 1
    assert phones.received(waiting) == [0] * 20
    assert phones.received(served) == [1]


def test_a_channel_is_claimed_again_when_its_wait_for_the_quota_is_over(google, channel, settings):
    devices = factories.subscribe_androids(google, channel, 1)
    use_up(settings)
    notification = phones.send(channel, "android")
    assert phones.received(devices) == [0]

    settings.FCM_CALLS_PER_MINUTE = 600_000
    redis_client().flushdb()
    support.until(lambda: phones.send_again(notification, "android") or phones.received(devices)[0])


def test_iphones_and_browsers_have_no_quota(sandbox, google, apns, channel, settings):
    phones.store_apple(apns, channel)
    browsers = factories.subscribe_browsers(sandbox, channel, 2)
    iphones = factories.subscribe_iphones(apns, channel, 2)
    factories.subscribe_androids(google, channel, 1)
    use_up(settings)

    phones.send(channel, "android", "web", "ios")

    assert phones.received(iphones) == phones.received(browsers) == [1, 1]


def test_everything_is_granted_while_redis_is_unreachable(google, channel, settings):
    devices = factories.subscribe_androids(google, channel, BURST + 30)
    notification = phones.plan(channel, "android")
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    phones.deliver(notification, "android")

    assert support.counts(notification) == ("sent", BURST + 30, BURST + 30, 0)
    assert phones.received(devices) == [1] * (BURST + 30)


def test_a_careful_batch_obeys_the_quota_too(google, channel, settings):
    settings.FCM_CALLS_PER_MINUTE = 60 * 10 * 3  # three at first
    devices = factories.subscribe_androids(google, channel, 5)
    notification = phones.plan(channel, "android")
    Batch.objects.filter(notification=notification).update(lease_losses=CAREFUL_AFTER_LEASE_LOSSES)

    phones.deliver(notification, "android")

    assert sum(phones.received(devices)) == 3
    batch = Batch.objects.get(notification=notification)
    assert batch.lease_losses == CAREFUL_AFTER_LEASE_LOSSES  # the notification is not finished
    assert set(support.deliveries(notification).values_list("solo_attempts", flat=True)) == {0}
    refill(settings)
    phones.deliver_to_the_end(notification, "android")
    assert phones.received(devices) == [1] * 5


def test_a_worker_without_granted_calls_takes_no_probe(google, channel, settings):
    factories.subscribe_androids(google, channel, 3)
    breakers.record("fcm_v1", channel.id, responded=0, outages=20)
    support.end_breaker_waits()
    notification = phones.plan(channel, "android")
    use_up(settings)

    phones.deliver(notification, "android")

    assert support.counts(notification) == ("processing", 3, 0, 0)
    assert breakers.take_probe("fcm_v1", channel.id)

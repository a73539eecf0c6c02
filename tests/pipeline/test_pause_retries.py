"""Refusals are confirmed before a pause; a paused platform is tried again by itself."""

import time
from datetime import timedelta
from functools import partial

import pytest
from django.db.models.functions import Now

from channels_app.models import ProviderCredential
from channels_app.pauses import credential_retry_claim, platform_pause
from channels_app.selectors import credentials_to_retry
from notifications_app import tasks
from notifications_app.models import Batch
from notifications_app.pipeline import batches, breakers, dispatch
from notifications_app.pipeline.credential_checks import credentials_check, platforms_with_work
from notifications_app.sends.services import notification_pause
from subscriptions_app.models import Subscription
from tests.factories import GOOGLE_PROJECT
from tests.pipeline import phones, support

MINUTE = timedelta(minutes=1)


@pytest.fixture
def paused(provider, channel):
    """A channel whose platform is paused, a notification that waits for it, its devices, and what
    was stored."""
    stored = provider.store(channel)
    devices = provider.devices(channel, 5)
    provider.refuse(stored, times=None)
    notification = phones.send(channel, provider.platform)
    assert phones.credential(channel).paused_at
    assert support.batch_statuses() == {"parked"}
    return notification, devices, stored


def accept(provider, stored):
    if provider.platform == "android":
        provider.service.project(GOOGLE_PROJECT).messaging.behave("accept")
    else:
        stored.behave("accept")


def make_due():
    """The time of the next try has come."""
    ProviderCredential.objects.update(retry_at=Now() - timedelta(seconds=1))


def try_again(provider):
    """The next try, as the tick and a worker make it together."""
    make_due()
    support.tick()
    assert support.waiting(provider.platform)
    tasks.check_credentials(provider.platform)
    return ProviderCredential.objects.get()


def calls_to(provider, devices):
    """How many messages reached the push service, accepted or not."""
    if provider.platform == "android":
        return len(provider.service.project(GOOGLE_PROJECT).messaging.receipts)
    return sum(len(device.receipts) for device, _ in devices)


# Confirmed


def test_a_refusal_that_a_second_call_does_not_confirm_pauses_nothing(provider, channel, caplog):
    provider.refuse(provider.store(channel), times=1)
    devices = provider.devices(channel, 30)

    notification = phones.send(channel, provider.platform)
    phones.send_again(notification, provider.platform)

    assert phones.credential(channel).paused_at is None
    assert support.counts(notification) == ("sent", 30, 30, 0)
    assert phones.received(devices) == [1] * 30
    assert support.logged(caplog, "credentials.refused_once")


def test_others_that_were_refused_with_it_are_tried_again_later(google, channel, settings):
    settings.CALLS_IN_FLIGHT = 10
    google.refuse(google.store(channel), times=10)
    devices = google.devices(channel, 20)

    notification = phones.send(channel, "android")

    assert phones.credential(channel).paused_at is None
    assert support.counts(notification) == ("processing", 20, 11, 0)
    waiting = support.deliveries(notification).filter(status=0)
    assert set(waiting.values_list("code", "attempts")) == {("permission_denied", 1)}
    phones.send_again(notification, "android")
    assert phones.received(devices) == [1] * 20


def test_many_refusals_in_flight_cost_one_call_more(google, channel, settings):
    settings.CALLS_IN_FLIGHT = 10
    google.refuse(google.store(channel), times=None)
    devices = google.devices(channel, 40)

    notification = phones.send(channel, "android")

    assert calls_to(google, devices) == 11
    assert phones.credential(channel).paused_code == "permission_denied"
    assert set(support.deliveries(notification).values_list("attempts", flat=True)) == {0}


def test_the_second_call_has_a_connection_and_an_access_token_of_its_own(google, apple, channel):
    google.refuse(google.store(channel), times=1)
    google.devices(channel, 1)
    phones.send(channel, "android")
    assert len(google.service.project(GOOGLE_PROJECT).tokens.receipts) == 2

    apple.store(channel).behave("revoked", times=1)
    ((device, _),) = apple.devices(channel, 1)
    phones.send(channel, "ios")
    phones.send(channel, "ios")
    refused, accepted, later = device.receipts
    assert len({refused.connection, accepted.connection, later.connection}) == 3
    assert refused.headers["authorization"] == accepted.headers["authorization"]


def test_an_access_token_that_was_refused_once_pauses_nothing(google, channel):
    google.store(channel)
    google.service.project(GOOGLE_PROJECT).tokens.behave("invalid_grant", times=1)
    devices = google.devices(channel, 3)

    notification = phones.send(channel, "android")
    assert phones.credential(channel).paused_at is None
    assert support.counts(notification) == ("processing", 3, 1, 0)

    phones.send_again(notification, "android")
    assert phones.received(devices) == [1] * 3


# Answers of others


def test_a_proxy_in_front_of_the_push_service_pauses_nothing_and_expires_nobody(provider, channel):
    stored = provider.store(channel)
    provider.block(stored)
    devices = provider.devices(channel, 3)

    notification = phones.send(channel, provider.platform)
    assert support.counts(notification) == ("processing", 3, 0, 0)
    assert support.codes(notification) == ["foreign_response"] * 3

    accept(provider, stored)
    phones.send_again(notification, provider.platform)
    assert phones.credential(channel).paused_at is None
    assert phones.received(devices) == [1] * 3
    assert Subscription.objects.filter(expired_at=None).count() == 3


def test_a_proxy_in_front_of_the_token_endpoint_pauses_nothing(google, channel):
    google.store(channel)
    google.devices(channel, 1)
    google.service.project(GOOGLE_PROJECT).tokens.behave("blocked")

    notification = phones.send(channel, "android")

    assert phones.credential(channel).paused_at is None
    assert support.codes(notification) == ["token_unavailable"]


# Tried again


def test_one_recipient_is_tried_after_1_5_15_and_then_every_30_minutes(provider, channel, paused):
    _, devices, _ = paused
    first = phones.credential(channel)
    assert first.retry_at - first.paused_at == MINUTE
    assert (first.retries, first.tries.last_at) == (0, None)
    assert platforms_with_work() == []
    parked_at = Batch.objects.get().parked_at

    for minutes in (5, 15, 30, 30):
        before = calls_to(provider, devices)
        seen = try_again(provider)

        assert seen.retry_at - seen.retried_at == minutes * MINUTE
        assert seen.tries == (seen.retried_at, True, seen.retry_at)
        assert (seen.is_accepted, seen.paused_at) == (False, first.paused_at)
        assert calls_to(provider, devices) == before + 2  # one recipient, and the confirmation
        assert support.batch_statuses() == {"parked"}
        assert Batch.objects.get().parked_at == parked_at  # so the hour goes on

    assert seen.retries == 4
    assert phones.received(devices) == [0] * 5


def test_the_platform_resumes_when_the_recipient_is_accepted(provider, channel, paused, caplog):
    notification, devices, stored = paused
    try_again(provider)
    accept(provider, stored)

    resumed = try_again(provider)

    assert (resumed.paused_at, resumed.paused_code, resumed.version) == (None, "", 1)
    assert (resumed.is_accepted, resumed.checked_words) == (True, "accepted")
    assert sorted(phones.received(devices)) == [0, 0, 0, 0, 1]
    assert support.logged(caplog, "platform.resumed")
    support.tick()
    phones.deliver(notification, provider.platform)
    assert support.counts(notification) == ("sent", 5, 5, 0)
    assert phones.received(devices) == [1] * 5
    assert credentials_to_retry().count() == 0


def test_all_batches_of_the_channel_and_of_no_other_are_made_ready(
    provider, channel, other_channel, settings
):
    settings.BATCH_SIZE = 2
    stored = [provider.store(each) for each in (channel, other_channel)]
    for each in (channel, other_channel):
        provider.devices(each, 6)
    provider.refuse(stored[0], times=None)
    provider.refuse(stored[1], times=None)
    for each in (channel, other_channel):
        phones.send(each, provider.platform)
    ProviderCredential.objects.filter(channel=channel).update(retry_at=Now())
    accept(provider, stored[0])

    tasks.check_credentials(provider.platform)
    support.tick()

    open_ = Batch.objects.exclude(status="done")
    assert set(open_.filter(channel=channel).values_list("status", flat=True)) == {"ready"}
    assert set(open_.filter(channel=other_channel).values_list("status", flat=True)) == {"parked"}


def test_without_recipients_a_check_resumes_the_platform(provider, channel, paused):
    notification, devices, stored = paused
    support.end_time(notification)
    support.tick()
    assert support.counts(notification) == ("failed", 5, 0, 5)
    assert try_again(provider).paused_at
    accept(provider, stored)

    assert try_again(provider).paused_at is None
    assert phones.received(devices) == [0] * 5


def test_each_try_is_made_by_one_worker(provider, channel, paused):
    _, devices, _ = paused
    before = calls_to(provider, devices)
    make_due()

    support.in_threads(*[partial(tasks.check_credentials, provider.platform)] * 3)

    assert calls_to(provider, devices) == before + 2
    assert phones.credential(channel).retries == 1


def test_the_next_try_comes_at_its_time_if_the_worker_dies(provider, channel, paused):
    notification, devices, stored = paused
    parked_at = Batch.objects.get().parked_at
    make_due()
    assert credential_retry_claim(credentials_to_retry().get())
    lease = batches.claim_parked(provider.platform, channel.id)
    accept(provider, stored)

    tasks.check_credentials(provider.platform)  # nothing is due
    support.lose_lease(lease.batch_id)
    phones.deliver(notification, provider.platform)

    seen = phones.credential(channel)
    assert (seen.retries, seen.is_accepted) == (1, None)
    assert seen.retry_at - seen.retried_at == 5 * MINUTE
    assert (Batch.objects.get().status, Batch.objects.get().parked_at) == ("parked", parked_at)
    assert phones.received(devices) == [0] * 5
    try_again(provider)
    phones.deliver_to_the_end(notification, provider.platform)
    assert phones.received(devices) == [1] * 5


def test_credentials_that_were_stored_during_a_try_win(provider, channel, paused):
    notification, devices, stored = paused
    accept(provider, stored)
    for device, _ in devices:
        device.behave("slow", seconds=1)
    before = calls_to(provider, devices)
    make_due()

    with phones.meanwhile(partial(tasks.check_credentials, provider.platform)):
        support.until(lambda: calls_to(provider, devices) > before)
        provider.revoke(provider.store(channel))

    seen = phones.credential(channel)
    assert (seen.version, seen.paused_at, seen.checked_at) == (2, None, None)
    support.tick()
    phones.deliver(notification, provider.platform)
    assert phones.credential(channel).paused_at
    provider.store(channel)
    phones.deliver_to_the_end(notification, provider.platform)
    assert phones.received(devices) == [1] * 5


def test_a_late_refusal_of_a_try_does_not_pause_new_credentials(provider, channel, paused):
    notification, devices, stored = paused
    make_due()

    with (
        phones.meanwhile(partial(tasks.check_credentials, provider.platform)),
        phones.held(Batch.objects.get()),
    ):
        support.until(lambda: phones.credential(channel).retries == 1)
        provider.store(channel)
        if provider.platform == "android":
            accept(provider, stored)

    assert phones.credential(channel).version == 2
    phones.deliver_to_the_end(notification, provider.platform)
    assert phones.credential(channel).paused_at is None
    assert phones.received(devices) == [1] * 5


# What proves the credentials


def test_a_device_that_is_gone_proves_the_credentials(provider, channel, paused):
    _, devices, stored = paused
    accept(provider, stored)
    for device, _ in devices:
        device.behave("unregistered")

    assert try_again(provider).paused_at is None
    assert Subscription.objects.filter(expired_at=None).count() == 4


def test_a_message_that_is_rejected_leaves_the_decision_to_a_check(provider, channel, paused):
    _, devices, stored = paused
    accept(provider, stored)
    for device, _ in devices:
        device.behave("error", status=413)

    resumed = try_again(provider)

    assert resumed.paused_at is None
    assert resumed.checked_words.startswith(("token_invalid", "bad_device_token"))


@pytest.mark.parametrize("mode", ["unavailable", "throttled"])
def test_no_answer_decides_nothing(mode, provider, channel, paused):
    notification, devices, stored = paused
    accept(provider, stored)
    for device, _ in devices:
        device.behave(mode)

    seen = try_again(provider)

    assert (bool(seen.paused_at), seen.is_accepted) == (True, None)
    assert support.batch_statuses() == {"parked"}
    assert support.counts(notification) == ("processing", 5, 0, 0)


def test_no_try_is_made_while_the_push_service_fails(provider, channel, paused):
    _, devices, _ = paused
    service = {"android": "fcm_v1", "ios": "apns"}[provider.platform]
    before = calls_to(provider, devices)
    make_due()
    until = 1000 * (time.time() + breakers.LONGEST_WAIT_SECONDS / 2)
    for name in (service, breakers.of_channel(service, channel.id)):
        breakers.redis_client().zadd(breakers._OPEN, {name: until})

        tasks.check_credentials(provider.platform)

        assert calls_to(provider, devices) == before
        breakers.redis_client().delete(breakers._OPEN)


def test_an_accepted_check_by_staff_resumes_the_platform(provider, channel, paused):
    notification, devices, stored = paused
    accept(provider, stored)

    assert credentials_check(channel_id=channel.id, platform=provider.platform).is_good

    assert phones.credential(channel).paused_at is None
    phones.deliver_to_the_end(notification, provider.platform)
    assert phones.received(devices) == [1] * 5


# Times


def test_a_platform_that_is_paused_again_soon_is_not_tried_more_often(provider, channel, paused):
    _, _, stored = paused
    try_again(provider)
    accept(provider, stored)
    try_again(provider)
    pause = {"channel_id": channel.id, "platform": provider.platform, "version": 1, "code": "x"}

    assert platform_pause(**pause, detail="")

    again = phones.credential(channel)
    assert again.retry_at - again.paused_at == 15 * MINUTE
    assert again.tries.last_at is None
    ProviderCredential.objects.update(paused_at=None, retried_at=Now() - timedelta(minutes=61))
    assert platform_pause(**pause, detail="")
    assert phones.credential(channel).retries == 0


def test_a_resume_that_reaches_nobody_prolongs_no_wait(provider, channel, paused):
    """A check may be accepted, and the messages not."""
    notification, _, _ = paused
    Batch.objects.update(parked_at=Now() - timedelta(minutes=59))
    parked_at = Batch.objects.get().parked_at
    ProviderCredential.objects.update(paused_at=None, updated_at=Now() - timedelta(hours=2))
    support.tick()
    assert support.batch_statuses() == {"ready"}

    phones.deliver(notification, provider.platform)

    assert phones.credential(channel).paused_at
    assert Batch.objects.get().parked_at == parked_at


def test_other_credentials_give_the_recipients_a_new_hour(provider, channel, paused):
    notification, _, _ = paused
    Batch.objects.update(parked_at=Now() - timedelta(minutes=59))
    provider.revoke(provider.store(channel))
    support.tick()

    phones.deliver(notification, provider.platform)

    batch = Batch.objects.get()
    assert batch.parked_at > batch.claimed_at


def test_a_paused_notification_is_not_tried(provider, channel, paused):
    _, devices, _ = paused
    before = calls_to(provider, devices)
    notification_pause(channel_id=channel.id, notification_id=Batch.objects.get().notification_id)

    assert batches.claim_parked(provider.platform, channel.id) is None
    assert dispatch.deliver(provider.platform, seconds=5) is False
    assert calls_to(provider, devices) == before

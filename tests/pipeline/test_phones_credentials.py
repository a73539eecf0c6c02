"""Credentials that are refused, unreadable or missing, with many calls in flight."""

import pytest
from cryptography.fernet import Fernet

from channels_app.models import ProviderCredential
from notifications_app.models import Batch
from notifications_app.pipeline import dispatch
from pushsvc.common.store.crypto import encrypt
from subscriptions_app.models import Subscription
from tests import factories
from tests.factories import GOOGLE_PROJECT
from tests.pipeline import phones, support

# Refused


def test_refused_credentials_pause_the_platform_until_others_are_stored(provider, channel):
    provider.revoke(provider.store(channel))
    devices = provider.devices(channel, 30)

    notification = phones.send(channel, provider.platform)

    assert support.counts(notification) == ("processing", 30, 0, 0)
    assert support.batch_statuses() == {"parked"}
    assert set(support.deliveries(notification).values_list("attempts", flat=True)) == {0}
    assert phones.credential(channel).paused_at
    assert Subscription.objects.filter(expired_at=None).count() == 30
    support.tick()
    assert support.batch_statuses() == {"parked"}

    provider.store(channel)
    support.tick()
    phones.deliver(notification, provider.platform)

    assert support.counts(notification) == ("sent", 30, 30, 0)
    assert phones.received(devices) == [1] * 30


def refuse_by_fcm(mode, google, channel):
    google.store(channel)
    google.service.project(GOOGLE_PROJECT).messaging.behave(mode)


def refuse_a_token(_mode, google, channel):
    google.revoke(google.store(channel))


def refuse_by_apple(mode, apple, channel):
    apple.store(channel).behave(mode)


@pytest.mark.parametrize(
    ("name", "refuse", "mode", "code", "words"),
    [
        ("google", refuse_by_fcm, "permission_denied", "permission_denied", "403 Permission 'clo"),
        ("google", refuse_by_fcm, "service_disabled", "permission_denied", "403 Firebase Cloud"),
        ("google", refuse_by_fcm, "unauthenticated", "unauthenticated", "401 Request had invalid"),
        ("google", refuse_a_token, "", "token_refused", "400 invalid_grant: Invalid grant: acc"),
        ("apple", refuse_by_apple, "revoked", "key_refused", "403 InvalidProviderToken"),
        ("apple", refuse_by_apple, "wrong_environment", "key_for_other_environment", "403 BadEnv"),
        ("apple", refuse_by_apple, "unrelated", "key_for_other_topic", "403 UnrelatedKeyIdInToken"),
    ],
)
def test_a_pause_has_the_push_services_words(name, refuse, mode, code, words, channel, request):
    provider = request.getfixturevalue(name)
    refuse(mode, provider, channel)
    provider.devices(channel, 1)

    phones.send(channel, provider.platform)

    credential = phones.credential(channel)
    assert credential.paused_code == code
    assert credential.paused_detail.startswith(words)


def test_the_first_refusal_ends_the_calls_of_a_batch(provider, channel, settings):
    settings.UNWRITTEN_OUTCOMES = 1
    provider.refuse(provider.store(channel), times=2)
    devices = provider.devices(channel, 5)

    notification = phones.send(channel, provider.platform)

    assert phones.received(devices) == [0] * 5
    assert support.batch_statuses() == {"parked"}
    assert support.counts(notification) == ("processing", 5, 0, 0)


def test_a_paused_platform_is_not_called_even_if_it_would_answer_again(provider, channel):
    provider.refuse(provider.store(channel), times=2)
    devices = provider.devices(channel, 1)
    phones.send(channel, provider.platform)

    second = phones.send(channel, provider.platform)

    assert support.counts(second) == ("processing", 1, 0, 0)
    assert phones.received(devices) == [0]


def test_a_pause_affects_one_platform(fcm, apns, channel):
    phones.store_apple(apns, channel)
    fcm.revoke(phones.store_google(fcm, channel))
    factories.subscribe_androids(fcm, channel, 2)
    iphones = factories.subscribe_iphones(apns, channel, 2)

    notification = phones.send(channel, "android", "ios")

    assert support.counts(notification) == ("processing", 4, 2, 0)
    assert phones.received(iphones) == [1, 1]


def test_the_notification_fails_if_nobody_replaces_the_credentials(provider, channel, settings):
    provider.revoke(provider.store(channel))
    provider.devices(channel, 3)
    settings.PARKED_SECONDS = 0

    notification = phones.send(channel, provider.platform)
    support.tick()

    assert support.counts(notification) == ("failed", 3, 0, 3)
    assert support.codes(notification) == ["credentials_refused"] * 3
    assert Subscription.objects.filter(expired_at=None).count() == 3


# Missing or unreadable


def test_a_channel_without_credentials_waits_for_them(provider, channel):
    provider.store(channel)
    devices = provider.devices(channel, 3)
    ProviderCredential.objects.all().delete()

    notification = phones.send(channel, provider.platform)
    support.tick()
    assert support.batch_statuses() == {"parked"}
    assert support.counts(notification) == ("processing", 3, 0, 0)

    provider.store(channel)
    phones.deliver_to_the_end(notification, provider.platform)
    assert phones.received(devices) == [1] * 3


def test_undecryptable_secrets_are_retried_after_a_minute_and_count_no_attempt(
    provider, channel, settings, caplog
):
    provider.store(channel)
    devices = provider.devices(channel, 3)
    keys = settings.CREDENTIAL_KEYS
    settings.CREDENTIAL_KEYS = (Fernet.generate_key().decode(),)

    notification = phones.send(channel, provider.platform)

    batch = Batch.objects.get()
    assert (batch.status, batch.lease_losses) == ("ready", 0)
    assert 59 <= (batch.due_at - batch.claimed_at).total_seconds() < 70
    assert set(support.deliveries(notification).values_list("attempts", "code")) == {(0, "")}
    assert support.logged(caplog, "credentials.unreadable")
    assert phones.credential(channel).paused_at is None

    settings.CREDENTIAL_KEYS = keys
    phones.send_again(notification, provider.platform)
    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert phones.received(devices) == [1] * 3


@pytest.mark.parametrize("secret", ["{}", "[]", "no JSON"])
def test_unusable_stored_credentials_pause_the_platform_until_others_are_stored(
    secret, provider, channel
):
    provider.store(channel)
    devices = provider.devices(channel, 3)
    ProviderCredential.objects.update(secret_encrypted=encrypt(secret))

    notification = phones.send(channel, provider.platform)

    assert support.batch_statuses() == {"parked"}
    assert Batch.objects.get().lease_losses == 0
    assert phones.credential(channel).paused_code == "key_unreadable"
    provider.store(channel)
    phones.deliver_to_the_end(notification, provider.platform)
    assert phones.received(devices) == [1] * 3


def test_unusable_credentials_do_not_pause_those_that_replaced_them(google, channel, monkeypatch):
    google.store(channel)
    devices = google.devices(channel, 1)
    ProviderCredential.objects.update(secret_encrypted=encrypt("{}"))
    notification = phones.plan(channel, "android")
    pause = dispatch.pause

    def too_late(*arguments):
        google.store(channel)
        return pause(*arguments)

    monkeypatch.setattr(dispatch, "pause", too_late)
    phones.deliver_to_the_end(notification, "android")

    assert phones.credential(channel).paused_at is None
    assert phones.received(devices) == [1]

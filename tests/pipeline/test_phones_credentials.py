"""Credentials that are refused, replaced, unreadable or missing, while much is under way."""

import json

import pytest
from cryptography.fernet import Fernet
from django.db.models import F

from channels_app.models import ProviderCredential
from channels_app.services import channel_create, provider_credentials_store
from notifications_app import connections, dispatch
from notifications_app.delivery import ios
from notifications_app.models import Batch
from pushsvc.common.crypto import encrypt
from subscriptions_app.models import Subscription
from tests.api.support import owner_of
from tests.pipeline import phones, support

PLATFORMS = ["android", "ios"]
DEVICES = {"android": phones.android, "ios": phones.iphones}


class Provider:
    """Google or Apple, by what both can do."""

    def __init__(self, platform, service):
        self.platform = platform
        self.service = service

    def store(self, channel, **how):
        store = phones.store_google if self.platform == "android" else phones.store_apple
        return store(self.service, channel, **how)

    def devices(self, channel, count):
        return DEVICES[self.platform](self.service, channel, count)

    def revoke(self, credential):
        if self.platform == "android":
            self.service.revoke(credential)
        else:
            credential.behave("revoked")

    def refuse_once(self, credential):
        if self.platform == "android":
            project = self.service.project(credential["project_id"])
            project.messaging.behave("permission_denied", times=1)
        else:
            credential.behave("unrelated", times=1)


@pytest.fixture(params=PLATFORMS)
def provider(request, fcm, apns):
    return Provider(request.param, {"android": fcm, "ios": apns}[request.param])


@pytest.fixture
def google(fcm):
    return Provider("android", fcm)


@pytest.fixture
def apple(apns):
    return Provider("ios", apns)


def batch_statuses():
    return set(Batch.objects.values_list("status", flat=True))


# Refused


def test_refused_credentials_pause_the_platform_until_others_are_stored(provider, channel):
    provider.revoke(provider.store(channel))
    devices = provider.devices(channel, 30)

    notification = phones.send(channel, provider.platform)

    assert support.counts(notification) == ("processing", 30, 0, 0)
    assert batch_statuses() == {"parked"}
    assert set(support.deliveries(notification).values_list("attempts", flat=True)) == {0}
    assert phones.credential(channel).paused_at
    assert Subscription.objects.filter(expired_at=None).count() == 30
    support.tick()
    assert batch_statuses() == {"parked"}

    provider.store(channel)
    support.tick()
    phones.deliver(notification, provider.platform)

    assert support.counts(notification) == ("sent", 30, 30, 0)
    assert phones.received(devices) == [1] * 30


@pytest.mark.parametrize(
    ("mode", "code", "words"),
    [
        ("permission_denied", "permission_denied", "403 Permission 'cloudmessaging.messages.crea"),
        ("service_disabled", "permission_denied", "403 Firebase Cloud Messaging API has not been"),
        ("unauthenticated", "unauthenticated", "401 Request had invalid authentication credenti"),
    ],
)
def test_a_pause_says_in_googles_words_what_is_wrong(mode, code, words, google, channel):
    google.store(channel)
    google.devices(channel, 1)
    google.service.project(phones.PROJECT).messaging.behave(mode)

    phones.send(channel, "android")

    credential = phones.credential(channel)
    assert credential.paused_code == code
    assert credential.paused_detail.startswith(words)


def test_a_pause_says_in_the_token_endpoints_words_what_is_wrong(google, channel):
    google.revoke(google.store(channel))
    google.devices(channel, 1)

    phones.send(channel, "android")

    credential = phones.credential(channel)
    assert credential.paused_code == "token_refused"
    assert credential.paused_detail == "400 invalid_grant: Invalid grant: account not found"


@pytest.mark.parametrize(
    ("mode", "code", "words"),
    [
        ("revoked", "key_refused", "403 InvalidProviderToken"),
        ("wrong_environment", "key_for_other_environment", "403 BadEnvironmentKeyIdInToken"),
        ("unrelated", "key_for_other_topic", "403 UnrelatedKeyIdInToken"),
    ],
)
def test_a_pause_says_apples_reason(mode, code, words, apple, channel):
    apple.store(channel).behave(mode)
    apple.devices(channel, 1)

    phones.send(channel, "ios")

    credential = phones.credential(channel)
    assert (credential.paused_code, credential.paused_detail) == (code, words)


def test_the_first_refusal_ends_the_calls_of_a_batch(provider, channel, settings):
    settings.UNWRITTEN_OUTCOMES = 1
    provider.refuse_once(provider.store(channel))
    devices = provider.devices(channel, 5)

    notification = phones.send(channel, provider.platform)

    assert phones.received(devices) == [0] * 5
    assert batch_statuses() == {"parked"}
    assert support.counts(notification) == ("processing", 5, 0, 0)


def test_a_paused_platform_is_not_called_even_if_it_would_answer_again(provider, channel):
    provider.refuse_once(provider.store(channel))
    devices = provider.devices(channel, 1)
    phones.send(channel, provider.platform)

    second = phones.send(channel, provider.platform)

    assert support.counts(second) == ("processing", 1, 0, 0)
    assert phones.received(devices) == [0]


def test_a_pause_is_of_one_platform(fcm, apns, channel):
    phones.store_apple(apns, channel)
    fcm.revoke(phones.store_google(fcm, channel))
    phones.android(fcm, channel, 2)
    iphones = phones.iphones(apns, channel, 2)

    notification = phones.send(channel, "android", "ios")

    assert support.counts(notification) == ("processing", 4, 2, 0)
    assert phones.received(iphones) == [1, 1]


def test_credentials_that_nobody_replaces_fail_the_notification(provider, channel, settings):
    provider.revoke(provider.store(channel))
    provider.devices(channel, 3)
    settings.PARKED_SECONDS = 0

    notification = phones.send(channel, provider.platform)
    support.tick()

    assert support.counts(notification) == ("failed", 3, 0, 3)
    assert support.codes(notification) == ["credentials_refused"] * 3
    assert Subscription.objects.filter(expired_at=None).count() == 3


# Replaced


@pytest.mark.parametrize("revoked_first", [False, True])
def test_credentials_replaced_while_a_send_is_running_lose_and_double_nothing(
    revoked_first, provider, channel, settings
):
    settings.BATCH_SIZE = 15
    settings.CALLS_IN_FLIGHT = 5
    current = provider.store(channel)
    devices = provider.devices(channel, 90)
    for device, _ in devices:
        device.behave("slow", seconds=0.05)
    notification = phones.plan(channel, provider.platform)

    with phones.meanwhile(lambda: phones.deliver_to_the_end(notification, provider.platform)):
        for replaced_at in (10, 40, 70):
            support.until(lambda least=replaced_at: sum(phones.received(devices)) >= least)
            old = current
            if revoked_first:
                provider.revoke(old)
            current = provider.store(channel)
            if not revoked_first:
                provider.revoke(old)

    assert support.counts(notification) == ("sent", 90, 90, 0)
    assert phones.received(devices) == [1] * 90
    credential = phones.credential(channel)
    assert (credential.version, credential.paused_at) == (4, None)


def test_the_interface_replaces_credentials_while_a_send_is_running(fcm, apns, channel, settings):
    settings.CALLS_IN_FLIGHT = 3
    accounts = [phones.store_google(fcm, channel)]
    keys = [phones.store_apple(apns, channel)]
    devices = phones.android(fcm, channel, 20) + phones.iphones(apns, channel, 20)
    for device, _ in devices:
        device.behave("slow", seconds=0.1)
    owner = owner_of(channel)
    notification = phones.plan(channel, "android", "ios")

    def replace():
        accounts.append(fcm.service_account(phones.PROJECT))
        keys.append(apns.key())
        new = {
            "fcm_service_account": json.dumps(accounts[-1]),
            "apns_key": json.dumps(keys[-1].credential),
        }
        path = f"/channel/{channel.id}/providers"
        assert owner.call("PUT", path, {"providers_config": new}).status_code == 200
        fcm.revoke(accounts[-2])
        keys[-2].behave("revoked")

    with (
        phones.meanwhile(lambda: phones.deliver_to_the_end(notification, "android")),
        phones.meanwhile(lambda: phones.deliver_to_the_end(notification, "ios")),
    ):
        support.until(lambda: sum(phones.received(devices)) >= 10)
        replace()

    assert support.counts(notification) == ("sent", 40, 40, 0)
    assert phones.received(devices) == [1] * 40


def test_a_late_refusal_of_old_credentials_does_not_pause_new_ones(provider, channel):
    provider.revoke(provider.store(channel))
    devices = provider.devices(channel, 3)
    notification = phones.plan(channel, provider.platform)
    lease = support.claim(provider.platform)

    with (
        phones.meanwhile(lambda: dispatch.deliver_batch(lease)),
        phones.held(phones.credential(channel)),
    ):
        support.until(support.waiting_sessions)  # who writes the pause
        provider.store(channel)

    assert phones.credential(channel).paused_at is None
    assert batch_statuses() == {"parked"}
    phones.deliver_to_the_end(notification, provider.platform)
    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert phones.received(devices) == [1] * 3


def test_the_same_credentials_stored_again_change_nothing_but_their_version(provider, channel):
    stored = provider.store(channel)
    devices = provider.devices(channel, 3)
    first = phones.send(channel, provider.platform)
    if provider.platform == "android":
        again = {"fcm_service_account": json.dumps(stored)}
    else:
        again = {"apns_key": json.dumps(stored.credential)}

    provider_credentials_store(channel=channel, **again)
    second = phones.send(channel, provider.platform)

    assert support.counts(first) == support.counts(second) == ("sent", 3, 3, 0)
    assert phones.received(devices) == [2] * 3
    assert phones.credential(channel).version == 2


def test_another_project_reaches_its_own_phones_and_expires_no_others(google, channel):
    google.store(channel)
    old = google.devices(channel, 3)
    assert support.counts(phones.send(channel, "android")) == ("sent", 3, 3, 0)

    google.store(channel, project="bobs-news")
    new = phones.android(google.service, channel, 4, project="bobs-news")
    notification = phones.send(channel, "android")
    support.tick()

    assert support.counts(notification) == ("sent", 7, 4, 3)
    assert phones.received(old) == [1] * 3
    assert phones.received(new) == [1] * 4
    assert support.codes(notification)[4:] == ["sender_id_mismatch"] * 3
    assert Subscription.objects.filter(expired_at=None).count() == 7


def test_another_topic_reaches_its_own_iphones_and_expires_no_others(apple, channel):
    apple.store(channel)
    old = apple.devices(channel, 3)
    assert support.counts(phones.send(channel, "ios")) == ("sent", 3, 3, 0)

    apple.store(channel, topic="com.example.news")
    new = phones.iphones(apple.service, channel, 4, topic="com.example.news")
    notification = phones.send(channel, "ios")
    support.tick()

    assert support.counts(notification) == ("sent", 7, 4, 3)
    assert phones.received(old) == [1] * 3
    assert phones.received(new) == [1] * 4
    assert Subscription.objects.filter(expired_at=None).count() == 7


def test_another_environment_has_connections_of_its_own(apple, channel):
    key = apple.store(channel, environment="production")
    ((device, _),) = apple.devices(channel, 1)
    key.behave("wrong_environment", times=1)
    notification = phones.send(channel, "ios")
    assert phones.credential(channel).paused_code == "key_for_other_environment"

    apple.store(channel, key=key, environment="sandbox")
    phones.deliver_to_the_end(notification, "ios")

    assert support.counts(notification) == ("sent", 1, 1, 0)
    refused, accepted = device.receipts
    assert refused.connection != accepted.connection


# Missing or unreadable


def test_a_channel_without_credentials_waits_for_them(provider, channel):
    provider.store(channel)
    devices = provider.devices(channel, 3)
    ProviderCredential.objects.all().delete()

    notification = phones.send(channel, provider.platform)
    support.tick()
    assert batch_statuses() == {"parked"}
    assert support.counts(notification) == ("processing", 3, 0, 0)

    provider.store(channel)
    phones.deliver_to_the_end(notification, provider.platform)
    assert phones.received(devices) == [1] * 3


def test_secrets_that_cannot_be_decrypted_wait_a_minute_and_cost_no_attempt(
    provider, channel, settings, caplog
):
    provider.store(channel)
    devices = provider.devices(channel, 3)
    keys = settings.CREDENTIAL_KEYS
    settings.CREDENTIAL_KEYS = (Fernet.generate_key().decode(),)

    notification = phones.send(channel, provider.platform)

    batch = Batch.objects.get()
    assert (batch.status, batch.lapses) == ("ready", 0)
    assert 59 <= (batch.due_at - batch.claimed_at).total_seconds() < 70
    assert set(support.deliveries(notification).values_list("attempts", "code")) == {(0, "")}
    assert support.logged(caplog, "credentials.unreadable")
    assert phones.credential(channel).paused_at is None

    settings.CREDENTIAL_KEYS = keys
    phones.send_again(notification, provider.platform)
    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert phones.received(devices) == [1] * 3


@pytest.mark.parametrize("secret", ["{}", "[]", "no JSON"])
def test_stored_text_that_is_no_credential_pauses_the_platform_until_one_is_stored(
    secret, provider, channel
):
    provider.store(channel)
    devices = provider.devices(channel, 3)
    ProviderCredential.objects.update(secret_encrypted=encrypt(secret))

    notification = phones.send(channel, provider.platform)

    assert batch_statuses() == {"parked"}
    assert Batch.objects.get().lapses == 0
    assert phones.credential(channel).paused_code == "key_unreadable"
    provider.store(channel)
    phones.deliver_to_the_end(notification, provider.platform)
    assert phones.received(devices) == [1] * 3


def test_text_that_is_no_credential_does_not_pause_what_replaced_it(google, channel, monkeypatch):
    google.store(channel)
    devices = google.devices(channel, 1)
    ProviderCredential.objects.update(secret_encrypted=encrypt("{}"))
    notification = phones.plan(channel, "android")
    park = dispatch._pause_and_park

    def too_late(*arguments):
        google.store(channel)
        park(*arguments)

    monkeypatch.setattr(dispatch, "_pause_and_park", too_late)
    phones.deliver_to_the_end(notification, "android")

    assert phones.credential(channel).paused_at is None
    assert phones.received(devices) == [1]


# Many channels


def channels(count):
    return [channel_create(name=f"Channel {number}") for number in range(count)]


def test_two_channels_at_once_never_mix_their_credentials(
    fcm, apns, channel, other_channel, settings
):
    settings.BATCH_SIZE = 10
    projects = {channel: phones.PROJECT, other_channel: "bobs-news"}
    topics = {channel: "com.example.shop", other_channel: "com.example.news"}
    teams = {channel: "TEAMALICES", other_channel: "TEAMOFBOBS"}
    devices, notifications = [], []
    for each in (channel, other_channel):
        phones.store_google(fcm, each, projects[each])
        phones.store_apple(apns, each, topic=topics[each], team=teams[each])
        devices += phones.android(fcm, each, 30, projects[each])
        devices += phones.iphones(apns, each, 30, topics[each])
        notifications.append(phones.plan(each, "android", "ios"))

    calls = [lambda platform=p: dispatch.deliver(platform, seconds=30) for p in PLATFORMS * 2]
    support.in_threads(*calls)

    assert [support.counts(each) for each in notifications] == [("sent", 60, 60, 0)] * 2
    assert phones.received(devices) == [1] * 120
    assert not ProviderCredential.objects.exclude(paused_at=None).exists()


def test_connections_to_apple_are_kept_for_the_keys_used_last(transactional_db, apns, monkeypatch):
    monkeypatch.setattr(ios, "MAX_POOLS", 5)
    cast = channels(20)
    devices = []
    for number, each in enumerate(cast):
        phones.store_apple(apns, each, team=f"TEAM{number:06}")
        devices += phones.iphones(apns, each, 2)

    notifications = [phones.plan(each, "ios") for each in cast]
    dispatch.deliver("ios", seconds=30)

    assert [support.counts(each) for each in notifications] == [("sent", 2, 2, 0)] * 20
    assert phones.received(devices) == [1] * 40
    support.until(lambda: apns.open_connection_count <= 5)
    again = phones.send(cast[0], "ios")
    assert support.counts(again) == ("sent", 2, 2, 0)


def test_a_new_version_of_credentials_gets_a_token_of_its_own(google, channel):
    google.store(channel)
    google.devices(channel, 1)
    tokens = google.service.project(phones.PROJECT).tokens
    for _ in range(2):
        phones.send(channel, "android")
    assert len(tokens.receipts) == 1

    ProviderCredential.objects.update(version=F("version") + 1)
    phones.send(channel, "android")

    assert len(tokens.receipts) == 2


def test_connections_that_were_shut_down_are_made_anew(provider, channel):
    provider.store(channel)
    devices = provider.devices(channel, 2)
    phones.send(channel, provider.platform)

    connections.shut_down()
    notification = phones.send(channel, provider.platform)

    assert support.counts(notification) == ("sent", 2, 2, 0)
    assert phones.received(devices) == [2, 2]

"""Credentials replaced with many calls in flight, and credentials of many channels."""

import json

import pytest
from django.db.models import F

from channels_app.models import ProviderCredential
from channels_app.services import provider_credentials_store
from notifications_app.delivery.apns import transport as ios
from notifications_app.pipeline import connections, dispatch
from subscriptions_app.models import Subscription
from tests import factories
from tests.api.support import owner_of
from tests.factories import GOOGLE_PROJECT, make_channel
from tests.pipeline import phones, support

# Replaced


@pytest.mark.parametrize("revoked_first", [False, True])
def test_credentials_replaced_during_a_send_lose_and_double_nothing(
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


def test_the_api_replaces_credentials_during_a_send(fcm, apns, channel, settings):
    settings.CALLS_IN_FLIGHT = 3
    accounts = [phones.store_google(fcm, channel)]
    keys = [phones.store_apple(apns, channel)]
    devices = factories.subscribe_androids(fcm, channel, 20) + factories.subscribe_iphones(
        apns, channel, 20
    )
    for device, _ in devices:
        device.behave("slow", seconds=0.1)
    owner = owner_of(channel)
    notification = phones.plan(channel, "android", "ios")

    def replace():
        accounts.append(fcm.service_account(GOOGLE_PROJECT))
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
        phones.meanwhile(lambda: dispatch.deliver_batches([lease])),
        phones.held(phones.credential(channel)),
    ):
        support.until(support.waiting_sessions)  # the worker that writes the pause
        provider.store(channel)

    assert phones.credential(channel).paused_at is None
    assert support.batch_statuses() == {"parked"}
    phones.deliver_to_the_end(notification, provider.platform)
    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert phones.received(devices) == [1] * 3


def test_storing_the_same_credentials_again_changes_only_their_version(provider, channel):
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


NEWS = {"topic": "com.example.news"}


@pytest.mark.parametrize(
    ("name", "subscribe", "other", "code"),
    [
        ("google", factories.subscribe_androids, {"project": "bobs-news"}, "sender_id_mismatch"),
        ("apple", factories.subscribe_iphones, NEWS, "device_token_not_for_topic"),
    ],
)
def test_another_project_or_topic_reaches_its_own_phones_and_expires_no_others(
    name, subscribe, other, code, channel, request
):
    provider = request.getfixturevalue(name)
    provider.store(channel)
    old = provider.devices(channel, 3)
    assert support.counts(phones.send(channel, provider.platform)) == ("sent", 3, 3, 0)

    provider.store(channel, **other)
    new = subscribe(provider.service, channel, 4, **other)
    notification = phones.send(channel, provider.platform)
    support.tick()

    assert support.counts(notification) == ("sent", 7, 4, 3)
    assert phones.received(old) == [1] * 3
    assert phones.received(new) == [1] * 4
    assert support.codes(notification)[4:] == [code] * 3
    assert Subscription.objects.filter(expired_at=None).count() == 7


def test_another_environment_has_its_own_connections(apple, channel):
    key = apple.store(channel, environment="production")
    ((device, _),) = apple.devices(channel, 1)
    key.behave("wrong_environment", times=2)
    notification = phones.send(channel, "ios")
    assert phones.credential(channel).paused_code == "key_for_other_environment"

    apple.store(channel, key=key, environment="sandbox")
    phones.deliver_to_the_end(notification, "ios")

    assert support.counts(notification) == ("sent", 1, 1, 0)
    connections_used = {receipt.connection for receipt in device.receipts}
    assert len(connections_used) == 3  # of the refusal, its confirmation, and the other environment


# Many channels


def channels(count):
    return [make_channel(f"Channel {number}") for number in range(count)]


def test_two_channels_at_once_never_mix_their_credentials(
    fcm, apns, channel, other_channel, settings
):
    settings.BATCH_SIZE = 5
    projects = {channel: GOOGLE_PROJECT, other_channel: "bobs-news"}
    topics = {channel: "com.example.shop", other_channel: "com.example.news"}
    teams = {channel: "TEAMALICES", other_channel: "TEAMOFBOBS"}
    devices, notifications = [], []
    for each in (channel, other_channel):
        phones.store_google(fcm, each, projects[each])
        phones.store_apple(apns, each, topic=topics[each], team=teams[each])
        devices += factories.subscribe_androids(fcm, each, 15, projects[each])
        devices += factories.subscribe_iphones(apns, each, 15, topics[each])
        notifications.append(phones.plan(each, "android", "ios"))

    platforms = ["android", "ios"] * 2
    calls = [lambda platform=p: dispatch.deliver(platform, seconds=30) for p in platforms]
    support.in_threads(*calls)

    assert [support.counts(each) for each in notifications] == [("sent", 30, 30, 0)] * 2
    assert phones.received(devices) == [1] * 60
    assert not ProviderCredential.objects.exclude(paused_at=None).exists()


def test_connections_to_apple_are_kept_for_the_most_recent_keys(
    transactional_db, apns, monkeypatch
):
    monkeypatch.setattr(ios, "MAX_POOLS", 3)
    cast = channels(8)
    devices = []
    for number, each in enumerate(cast):
        phones.store_apple(apns, each, team=f"TEAM{number:06}")
        devices += factories.subscribe_iphones(apns, each, 2)

    notifications = [phones.plan(each, "ios") for each in cast]
    dispatch.deliver("ios", seconds=30)

    assert [support.counts(each) for each in notifications] == [("sent", 2, 2, 0)] * 8
    assert phones.received(devices) == [1] * 16
    support.until(lambda: apns.open_connection_count <= 3)
    again = phones.send(cast[0], "ios")
    assert support.counts(again) == ("sent", 2, 2, 0)


def test_a_new_version_of_credentials_gets_its_own_token(google, channel):
    google.store(channel)
    google.devices(channel, 1)
    tokens = google.service.project(GOOGLE_PROJECT).tokens
    for _ in range(2):
        phones.send(channel, "android")
    assert len(tokens.receipts) == 1

    ProviderCredential.objects.update(version=F("version") + 1)
    phones.send(channel, "android")

    assert len(tokens.receipts) == 2


def test_connections_that_were_shut_down_are_opened_again(provider, channel):
    provider.store(channel)
    devices = provider.devices(channel, 2)
    phones.send(channel, provider.platform)

    connections.shut_down()
    notification = phones.send(channel, provider.platform)

    assert support.counts(notification) == ("sent", 2, 2, 0)
    assert phones.received(devices) == [2, 2]

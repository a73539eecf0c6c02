"""What FCM's and APNs' answers about a device change: device, notification and platform."""

import time
from datetime import timedelta

import pytest

from notifications_app.models import Batch
from notifications_app.pipeline import dispatch
from subscriptions_app.models import Subscription
from tests import factories
from tests.factories import GOOGLE_PROJECT
from tests.pipeline import phones, support

CREDENTIALS = {"android": phones.store_google, "ios": phones.store_apple}
TEAPOT = {"error": {"code": 418, "message": "No coffee", "status": "FAILED_PRECONDITION"}}
DEVICES = {"android": factories.subscribe_androids, "ios": factories.subscribe_iphones}


@pytest.fixture
def push_service(platform, fcm, apns, channel):
    """The platform's push service, with credentials stored."""
    service = {"android": fcm, "ios": apns}[platform]
    CREDENTIALS[platform](service, channel)
    return service


@pytest.fixture
def devices(platform, push_service, channel):
    return DEVICES[platform](push_service, channel, 2)


@pytest.mark.parametrize(
    ("platform", "mode", "options", "code"),
    [
        ("android", "invalid_argument", {}, "invalid_argument"),
        ("android", "third_party_auth", {}, "third_party_auth"),
        ("android", "error", {"status": 413}, "payload_too_large"),
        ("android", "error", {"status": 418, "body": TEAPOT}, "refused"),
        ("ios", "error", {"status": 400}, "bad_request"),
        ("ios", "error", {"status": 413}, "payload_too_large"),
        ("ios", "error", {"status": 418}, "refused"),
    ],
)
def test_a_rejected_message_bounces_and_the_phone_stays_active(
    platform, mode, options, code, devices, channel
):
    (device, subscription), _ = devices
    device.behave(mode, **options)

    notification = phones.send(channel, platform)
    support.tick()

    assert support.counts(notification) == ("sent", 2, 1, 1)
    assert support.codes(notification) == ["", code]
    assert support.is_active(subscription)
    assert phones.credential(channel).paused_at is None
    assert len(device.receipts) == 1


@pytest.mark.parametrize(
    ("platform", "mode", "options", "code"),
    [
        ("android", "unregistered", {}, "unregistered"),
        ("android", "bad_token", {"names_field": True}, "token_invalid"),
        ("android", "bad_token", {"names_field": False}, "token_invalid"),
        ("ios", "unregistered", {}, "unregistered"),
        ("ios", "expired_token", {}, "expired_token"),
    ],
)
def test_a_gone_phone_expires_and_is_not_called_again(
    platform, mode, options, code, devices, channel
):
    (device, subscription), _ = devices
    device.behave(mode, **options)

    first = phones.send(channel, platform)
    second = phones.send(channel, platform)

    assert support.counts(first) == ("sent", 2, 1, 1)
    assert support.counts(second) == ("sent", 1, 1, 0)
    assert not support.is_active(subscription)
    assert subscription.expired_code == code
    assert len(device.receipts) == 1


@pytest.mark.parametrize("platform", ["ios"])
@pytest.mark.parametrize(("days", "stays"), [(-1, True), (1, False)])
def test_410_applies_to_registrations_before_its_timestamp(days, stays, platform, devices, channel):
    (device, subscription), _ = devices
    moment = time.time() + timedelta(days=days).total_seconds()
    device.behave("unregistered", timestamp=int(moment * 1_000))

    notification = phones.send(channel, platform)

    assert support.counts(notification) == ("sent", 2, 1, 1)
    assert support.is_active(subscription) is stays


@pytest.mark.parametrize("platform", ["android", "ios"])
def test_a_phone_that_registers_again_during_its_call_stays_active(platform, devices, channel):
    (device, subscription), _ = devices
    device.behave("unregistered")
    notification = phones.plan(channel, platform)
    lease = support.claim(platform)

    with (
        phones.meanwhile(lambda: dispatch.deliver_batches([lease])),
        phones.held(Batch.objects.get()),
    ):
        support.until(lambda: device.receipts)
        factories.register_device(channel, device, platform)

    assert support.counts(notification) == ("sent", 2, 1, 1)
    assert support.is_active(subscription)


@pytest.mark.parametrize(
    ("platform", "mode"),
    [("android", "sender_mismatch"), ("ios", "bad_device_token"), ("ios", "not_for_topic")],
)
@pytest.mark.parametrize(("wrong", "left"), [(1, 9), (2, 10)])
def test_a_mistake_of_ours_that_looks_like_dead_phones_expires_no_subscription(
    platform, mode, wrong, left, push_service, channel
):
    devices = DEVICES[platform](push_service, channel, 10)
    for device, _ in devices[:wrong]:
        device.behave(mode)

    notification = phones.send(channel, platform)
    support.tick()

    assert support.counts(notification) == ("sent", 10, 10 - wrong, wrong)
    assert Subscription.objects.filter(expired_at=None).count() == left
    assert phones.credential(channel).paused_at is None


@pytest.mark.parametrize("platform", ["android"])
@pytest.mark.parametrize(("refusing", "warnings"), [(12, 1), (9, 0)])
def test_many_tokens_of_other_platforms_cause_a_warning_and_pause_nothing(
    refusing, warnings, platform, push_service, channel, settings, caplog
):
    settings.FLUSH_SECONDS = 10  # all answers in one flush
    devices = factories.subscribe_androids(push_service, channel, 14)
    for device, _ in devices[:refusing]:
        device.behave("third_party_auth")

    notification = phones.send(channel, platform)

    assert support.counts(notification) == ("sent", 14, 14 - refusing, refusing)
    assert len(support.logged(caplog, "fcm.third_party_auth_by_many")) == warnings
    assert phones.credential(channel).paused_at is None


@pytest.mark.parametrize("platform", ["android"])
def test_an_access_token_revoked_early_is_replaced_within_the_attempt(
    platform, push_service, devices, channel
):
    phones.send(channel, platform)
    push_service.expire_tokens(GOOGLE_PROJECT)

    notification = phones.send(channel, platform)

    assert support.counts(notification) == ("sent", 2, 2, 0)
    assert phones.credential(channel).paused_at is None
    assert set(support.deliveries(notification).values_list("attempts", flat=True)) == {1}


@pytest.mark.parametrize(
    ("reason", "status", "least"),
    [("ExpiredProviderToken", 403, 60), ("TooManyProviderTokenUpdates", 429, 300)],
)
@pytest.mark.parametrize("platform", ["ios"])
def test_a_provider_token_refused_for_its_time_defers_and_pauses_nothing(
    reason, status, least, platform, devices, channel
):
    (device, _), _ = devices
    device.behave("error", status=status, body={"reason": reason}, times=1)

    notification = phones.send(channel, platform)

    assert support.counts(notification) == ("processing", 2, 1, 0)
    assert phones.credential(channel).paused_at is None
    batch = Batch.objects.get()
    assert batch.due_at - batch.claimed_at >= timedelta(seconds=least)
    phones.send_again(notification, platform)
    assert support.counts(notification) == ("sent", 2, 2, 0)

"""The Procfile's real workers of every platform."""

import json

from notifications_app.models import Batch
from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import phones, support

PLATFORMS = ["android", "ios"]
TEXTS = ["Hallo Anna in BONN", "Hi you in Ulm"]


def test_a_worker_for_each_platform_delivers_to_its_devices(sandbox, fcm, apns, channel, processes):
    phones.store_google(fcm, channel)
    phones.store_apple(apns, channel)
    browsers = factories.subscribe_browsers(sandbox, channel, 5)
    androids = factories.subscribe_androids(fcm, channel, 5)
    iphones = factories.subscribe_iphones(apns, channel, 5)
    for device, _ in (androids[0], iphones[0]):
        device.behave("unavailable", times=1, retry_after=1)  # ticks find its retry
    notification = factories.make_notification(channel, target_platforms=["web", *PLATFORMS])

    for name in ("worker-plan", "worker-web", "worker-android", "worker-ios", "beat"):
        processes.start(name)
    support.until(lambda: support.is_sent(notification))

    assert support.counts(notification) == ("sent", 15, 15, 0)
    assert phones.received(browsers + androids + iphones) == [1] * 15
    _assert_personal_texts_arrive(channel, browsers, androids, iphones)


def _assert_personal_texts_arrive(channel, *devices):
    """Of each platform one speaks German, one has no name, and three have nothing more to say."""
    for (_, german), (_, unnamed), *others in devices:
        known = {"name": "Anna", "city": "Bonn"}
        Subscription.objects.filter(pk=german.pk).update(language="de", attributes=known)
        Subscription.objects.filter(pk=unnamed.pk).update(attributes={"city": "Ulm"})
        nowhere = Subscription.objects.filter(pk__in=[row.pk for _, row in others])
        nowhere.update(attributes={"name": "Bo"})
    notification = factories.make_notification(
        channel,
        target_platforms=["web", *PLATFORMS],
        body="Hi {{ name | default: 'you' }} in {{ city }}",
        extras={
            "personalize": True,
            "on_missing": "bounce",
            "translations": {"de": {"body": "Hallo {{ name }} in {{ city | upcase }}"}},
        },
    )

    support.until(lambda: support.is_sent(notification))

    assert support.counts(notification) == ("sent", 15, 6, 9)
    web, android, ios = devices
    assert [json.loads(device.receipts[-1].plaintext)["body"] for device, _ in web[:2]] == TEXTS
    shown = [device.receipts[-1].message["notification"]["body"] for device, _ in android[:2]]
    alerts = [json.loads(device.receipts[-1].payload)["aps"]["alert"] for device, _ in ios[:2]]
    assert shown == [each["body"] for each in alerts] == TEXTS


def test_the_workers_of_a_platform_resume_when_its_credentials_are_replaced(
    fcm, channel, processes
):
    fcm.revoke(phones.store_google(fcm, channel))
    devices = factories.subscribe_androids(fcm, channel, 5)
    notification = factories.make_notification(channel, target_platforms=["android"])
    for name in ("worker-plan", "worker-android", "beat"):
        processes.start(name)
    support.until(lambda: Batch.objects.filter(status="parked").exists())

    phones.store_google(fcm, channel)

    support.until(lambda: support.is_sent(notification))
    assert phones.received(devices) == [1] * 5

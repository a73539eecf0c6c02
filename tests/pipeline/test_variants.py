"""Variants: each device gets one of several contents, and their counts add up."""

import json
from collections import Counter
from uuid import uuid4

import pytest

from notifications_app.content.values import Content
from notifications_app.events import Event, events_record
from notifications_app.models import Batch, Delivery, Notification, VariantCount
from notifications_app.pipeline import splitting
from notifications_app.reporting.details import details_of
from notifications_app.retention import purge
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import phones, support
from tests.pipeline.test_languages import speak, texts

VARIANTS = [
    {"name": "short", "weight": 1, "title": "Sale"},
    {"name": "long", "weight": 1, "title": "Our sale begins", "body": "Everything is cheaper"},
]
SHOWN = [("Sale", "Fresh bread"), ("Our sale begins", "Everything is cheaper")]
# The quantiles of chi-squared at 0.9999, by degrees of freedom.
CHI_SQUARED = {1: 15.14, 2: 18.42, 3: 21.11}


def results(notification):
    found = details_of(channel_id=notification.channel_id, notification_id=notification.pk)
    return found.notification, found.variants


def assert_sums(notification):
    """What all variants have is what the notification has."""
    row, variants = results(notification)
    names = ("recipients", "delivered", "bounced", "received", "clicked", "dismissed")
    counts = [
        getattr(row, f"{'recipient' if name == 'recipients' else name}_count") for name in names
    ]
    assert [sum(getattr(each, name) for each in variants) for name in names] == counts


def given_to(notification):
    """The number of the variant of each recipient, by its batch."""
    batches = dict(Batch.objects.filter(notification=notification).values_list("pk", "variant"))
    rows = Delivery.objects.filter(notification_id=notification.pk)
    return {each.subscription_id: batches[each.batch_id] for each in rows}


def test_each_browser_is_shown_its_variant(sandbox, channel):
    browsers = factories.subscribe_browsers(sandbox, channel, 40)

    notification = phones.send(channel, "web", title="Bread", extras={"variants": VARIANTS})

    assert support.counts(notification) == ("sent", 40, 40, 0)
    given = given_to(notification)
    assert set(given.values()) == {0, 1}
    for device, subscription in browsers:
        assert [texts(device)] == [SHOWN[given[subscription.pk]]]
    assert_sums(notification)


def test_phones_are_shown_their_variants(fcm, apns, channel):
    phones.store_google(fcm, channel)
    phones.store_apple(apns, channel)
    androids = factories.subscribe_androids(fcm, channel, 10)
    iphones = factories.subscribe_iphones(apns, channel, 10)

    notification = phones.send(
        channel, "android", "ios", title="Bread", extras={"variants": VARIANTS}
    )

    given = given_to(notification)
    for device, subscription in androids:
        shown = device.receipts[0].message["notification"]
        assert (shown["title"], shown["body"]) == SHOWN[given[subscription.pk]]
    for device, subscription in iphones:
        alert = json.loads(device.receipts[0].payload)["aps"]["alert"]
        assert (alert["title"], alert["body"]) == SHOWN[given[subscription.pk]]
    assert_sums(notification)


def test_a_send_to_targets_has_variants(sandbox, channel):
    browsers = factories.subscribe_browsers(sandbox, channel, 20)
    rows = [subscription for _, subscription in browsers]
    notification = factories.make_direct_notification(
        channel, subscriptions=rows, extras={"variants": VARIANTS}
    )

    support.plan()
    support.deliver(notification)

    given = given_to(notification)
    assert len(given) == 20
    for device, subscription in browsers:
        assert texts(device) == (SHOWN[given[subscription.pk]])


def test_variants_have_translations_and_values_of_each_recipient(sandbox, channel):
    ((device, subscription),) = factories.subscribe_browsers(sandbox, channel, 1)
    speak(subscription, language="de")
    both = [
        {"name": name, "weight": 1, "translations": {"de": {"title": f"{name} {{{{ vars.day }}}}"}}}
        for name in ("Kurz", "Lang")
    ]
    extras = {
        "variants": both,
        "translations": {"de": {"title": "Brot", "body": "Frisch"}},
        "personalize": True,
    }

    notification = phones.send(channel, "web", title="Bread", vars={"day": "heute"}, extras=extras)

    name = both[given_to(notification)[subscription.pk]]["name"]
    assert texts(device) == (f"{name} heute", "Frisch")


def test_events_are_counted_with_their_variant(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 30)
    notification = phones.send(channel, "web", title="Bread", extras={"variants": VARIANTS})
    given = given_to(notification)
    ids = sorted(given)

    for index, subscription_id in enumerate(ids[:12]):
        kind = ("received", "clicked", "dismissed")[index % 3]
        events_record([Event(notification.pk, subscription_id, kind)] * 2)
    events_record([Event(notification.pk, each, "clicked") for each in ids])

    _, variants = results(notification)
    expected = Counter(given.values())
    assert [each.clicked for each in variants] == [expected[0], expected[1]]
    assert_sums(notification)


def test_a_plain_send_writes_no_counts_of_variants(sandbox, channel):
    ((_, subscription),) = factories.subscribe_browsers(sandbox, channel, 1)
    notification = phones.send(channel, "web", title="Bread")

    events_record([Event(notification.pk, subscription.pk, "clicked")])

    assert results(notification)[1] == ()
    assert not VariantCount.objects.exists()


def test_the_sums_stay_when_deliveries_are_purged(sandbox, tampered_channel, settings):
    channel = tampered_channel
    factories.subscribe_browsers(sandbox, channel, 10)
    notification = phones.send(channel, "web", title="Bread", extras={"variants": VARIANTS})
    events_record([Event(notification.pk, each, "clicked") for each in given_to(notification)])
    before = results(notification)[1]
    settings.DELIVERY_RETENTION_DAYS = -1

    purge()

    assert not Batch.objects.filter(notification=notification).exists()
    assert results(notification)[1] == before
    assert_sums(notification)


def test_a_window_of_several_variants_fills_their_batches(sandbox, channel, settings):
    settings.PLAN_WINDOW, settings.BATCH_SIZE = 10, 5
    factories.subscribe_browsers(sandbox, channel, 60)

    notification = phones.plan(channel, "web", title="Bread", extras={"variants": VARIANTS})

    batches = Batch.objects.filter(notification=notification)
    assert sum(each.recipient_count for each in batches) == 60
    assert Counter(given_to(notification).values()).keys() == {0, 1}
    assert_sums(notification)


@pytest.mark.django_db
@pytest.mark.parametrize("weights", [(1, 1), (1, 3), (5, 2, 1, 2)])
def test_the_split_follows_the_weights(weights):
    notification_id, count = uuid4(), 20_000
    variant = splitting.variant_part(weights)
    ids = "SELECT gen_random_uuid() AS id FROM generate_series(1, %(count)s)"
    text = f"SELECT {variant} AS variant, count(*) FROM ({ids}) AS own GROUP BY 1"  # noqa: S608

    found = dict(sql.rows(text, {"count": count, **splitting.parameters(notification_id)}))

    expected = [count * weight / sum(weights) for weight in weights]
    spread = sum((found[i] - each) ** 2 / each for i, each in enumerate(expected))
    assert spread < CHI_SQUARED[len(weights) - 1]


@pytest.mark.django_db
def test_a_device_is_in_another_part_for_each_notification():
    ids = [uuid4() for _ in range(2_000)]
    content = Content(body="x", variants=VARIANTS)
    sends = [Notification(pk=uuid4(), **Notification.values_of(content)) for _ in range(2)]

    first, second = (splitting.variants_of(each, ids) for each in sends)

    together = Counter((first[each], second[each]) for each in ids)
    assert first == splitting.variants_of(sends[0], ids)
    assert all(400 < together[pair] < 600 for pair in [(0, 0), (0, 1), (1, 0), (1, 1)])

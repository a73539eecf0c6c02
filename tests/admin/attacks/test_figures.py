"""Figures of the console agree with what SQL counts after the pipeline has worked."""

import json
from collections import Counter
from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from notifications_app.content.tracking import make_token
from notifications_app.models import Batch, Notification
from notifications_app.pipeline import connections
from notifications_app.sends.services import notification_cancel
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.models import Subscription
from tests import factories
from tests.admin.support import make_house, make_root, signed_in
from tests.factories import make_channel, make_sent_notification
from tests.pipeline import phones, support

PLATFORMS = ["web", "android", "ios"]


@pytest.fixture
def world(transactional_db, sandbox, fcm, apns):
    """Two channels of Alice's and one of Bob's, with recipients of every outcome."""
    connections.client("web")
    alice, bob = make_house("Alice"), make_house("Bob")
    second = make_channel("Alice's second", account=alice.account)
    factories.subscribe_browsers(sandbox, bob.channel, 2)
    support.send(bob.channel)
    report(support.send(bob.channel, url="https://x.example/"), "clicked")

    browsers = factories.subscribe_browsers(sandbox, alice.channel, 5)
    browsers[0][0].behave("gone")
    browsers[1][0].behave("error", status=400)
    subscription_unsubscribe(
        channel=alice.channel, address=Address.of("web", browsers[4][0].endpoint)
    )
    phones.store_apple(apns, alice.channel)
    factories.subscribe_iphones(apns, alice.channel, 2)
    mixed = phones.send(alice.channel, *["web", "ios"])
    report(mixed, "clicked", "received", "clicked", most=2)
    report(support.send(alice.channel), "dismissed")
    test = browsers[2][1]
    report(support.send(alice.channel, only_subscription_id=test.pk), "clicked")
    later = factories.make_notification(
        alice.channel, scheduled_at=timezone.now() + timedelta(days=1)
    )
    notification_cancel(channel_id=alice.channel.pk, notification_id=later.pk)
    factories.make_notification(alice.channel, scheduled_at=timezone.now() + timedelta(days=1))

    account = phones.store_google(fcm, second)
    factories.subscribe_androids(fcm, second, 3)
    fcm.revoke(account)
    refused = phones.send(second, "android")
    Batch.objects.filter(status="parked").update(parked_at=F("parked_at") - timedelta(hours=2))
    phones.deliver_to_the_end(refused, "android")
    factories.subscribe_browsers(sandbox, second, 1)
    factories.make_notification(second)
    support.plan()
    alice.second = second
    return alice, bob


def report(notification, *events, most=1):
    """The first delivered recipients report an event, each twice."""
    delivered = support.deliveries(notification).filter(status=1).order_by("subscription_id")
    for row in delivered[:most]:
        token = make_token(notification.pk, row.subscription_id)
        body = {"events": [{"token": token, "event": event} for event in events]}
        for _ in range(2):
            sent = Client().post("/events", json.dumps(body), content_type="text/plain")
            assert sent.status_code == 204


_COUNTS = """
SELECT batch.platform, count(*), count(*) FILTER (WHERE delivery.status = 1),
  count(*) FILTER (WHERE delivery.status = 2), count(delivery.clicked_at)
FROM notifications_app_delivery delivery
JOIN notifications_app_batch batch ON batch.id = delivery.batch_id
JOIN notifications_app_notification notification ON notification.id = batch.notification_id
WHERE batch.channel_id = ANY(%(channels)s) AND
  (%(is_with_tests)s OR notification.only_subscription_id IS NULL) AND
  (%(notification)s::uuid IS NULL OR batch.notification_id = %(notification)s)
GROUP BY batch.platform
"""


def counted(channels, notification=None, *, is_with_tests=True):
    """{platform: (recipients, delivered, bounced, clicked)}, counted from the deliveries."""
    parameters = {
        "channels": [each.pk for each in channels],
        "notification": notification,
        "is_with_tests": is_with_tests,
    }
    return {row[0]: row[1:] for row in sql.rows(_COUNTS, parameters)}


def active(channels):
    rows = Subscription.objects.filter(channel__in=channels, expired_at=None)
    return Counter(rows.values_list("platform", flat=True))


def sums(found):
    return tuple(map(sum, zip(*found.values(), strict=True))) if found else (0, 0, 0, 0)


def shown(client, channels, chosen=None, days=1):
    """Compares the dashboard with the rows."""
    query = {"days": days} | ({"channel": chosen.pk} if chosen else {})
    context = client.get(reverse("admin:index"), query).context
    figures = {each["name"]: each["value"] for each in context["figures"]}
    found = counted(channels, is_with_tests=False)
    recipients, delivered, bounced, clicked = sums(found)
    assert figures == {
        "Subscribers": sum(active(channels).values()),
        "Notifications sent": Notification.objects.filter(
            channel__in=channels, status="sent", only_subscription_id=None
        ).count(),
        "Delivered": delivered,
        "Bounced": bounced,
        "Clicked": clicked,
    }
    outcomes = context["statistics"].outcomes
    assert sum(entry.recipients for entry in outcomes.entries) == recipients
    by_platform = {each["name"]: each for each in context["platforms"]}
    for platform in PLATFORMS:
        if platform in by_platform:
            row = by_platform[platform]
            total = row["outcomes"]
            told = (total.recipients, total.delivered, total.bounced, total.clicked)
            assert told == found.get(platform, (0, 0, 0, 0))
            assert row["subscribers"] == active(channels)[platform]
        else:
            assert not found.get(platform)
            assert not active(channels)[platform]
    return recipients


@pytest.mark.parametrize("days", [1, 7, 30, 90])
def test_every_figure_of_the_dashboard_is_the_sum_of_the_rows(world, days):
    alice, bob = world
    own = [alice.channel, alice.second]
    member = signed_in(alice.members["viewer"])

    assert shown(member, own, days=days) >= 10
    for channel in own:
        assert shown(member, [channel], channel, days)
    assert shown(signed_in(bob.members["viewer"]), [bob.channel], days=days)
    assert shown(signed_in(make_root()), [*own, bob.channel], days=days)
    support.assert_exact(alice.channel)
    support.assert_exact(alice.second)


def test_a_channel_page_and_its_lists_agree_with_the_rows(world):
    alice, _ = world
    client = signed_in(alice.members["viewer"])
    for channel in (alice.channel, alice.second):
        page = reverse("admin:channels_app_channel_change", args=[channel.pk])
        context = client.get(page).context
        recipients, delivered, bounced, clicked = sums(counted([channel]))
        sent = Notification.objects.filter(channel=channel, status="sent").count()
        values = [each["value"] for each in context["figures"]]
        assert values == [sent, recipients, delivered, bounced, clicked]
        for each in context["platforms"]:
            assert each["subscribers"] == active([channel])[each["name"]]
        linked = context["figures"][0]["url"]
        assert client.get(linked).context["cl"].result_count == sent


def test_the_list_behind_an_outcome_holds_every_notification_with_that_outcome(world):
    """Also a failed one, whose recipients all bounced."""
    alice, _ = world
    client = signed_in(alice.members["viewer"])
    context = client.get(reverse("admin:index"), {"channel": alice.second.pk}).context
    figures = {each["name"]: each["url"] for each in context["figures"]}
    of_its, of_others = [figures["Bounced"]], [figures["Notifications sent"], figures["Delivered"]]
    failed = Notification.objects.get(channel=alice.second, status="failed")
    for platform in context["platforms"]:
        delivered, bounced, _ = (each["url"] for each in platform["ended"])
        is_its = platform["name"] in failed.target_platforms
        (of_its if is_its else of_others).extend([platform["recipients_url"], bounced])
        of_others.append(delivered)

    assert all(failed in client.get(link).context["cl"].result_list for link in of_its)
    assert not any(failed in client.get(link).context["cl"].result_list for link in of_others)


def test_the_list_behind_a_platforms_subscribers_has_as_many_rows_as_its_figure(world):
    alice, _ = world
    client = signed_in(alice.members["viewer"])
    page = reverse("admin:channels_app_channel_change", args=[alice.channel.pk])
    text = client.get(page).content.decode().replace("&amp;", "&")
    for platform in ("web", "ios"):
        path = reverse("admin:subscriptions_app_subscription_changelist")
        at = text.index(f"{path}?channel__id__exact={alice.channel.pk}&platform__exact={platform}")
        linked = text[at : text.index('"', at)]
        listed = client.get(linked).context["cl"].result_count
        assert listed == active([alice.channel])[platform]


def test_a_notification_page_agrees_with_its_deliveries(world):
    alice, _ = world
    client = signed_in(alice.members["viewer"])
    seen = Counter()
    for notification in Notification.objects.filter(channel__account=alice.account):
        seen[notification.status] += 1
        page = reverse("admin:notifications_app_notification_change", args=[notification.pk])
        context = client.get(page).context
        found = counted([notification.channel], notification.pk)
        shown_, progress = context["notification"], context["progress"]
        told = (
            shown_.recipient_count,
            shown_.delivered_count,
            shown_.bounced_count,
            shown_.clicked_count,
        )
        assert told == sums(found)
        for each in progress.platforms:
            expected = found.get(each.platform, (0, 0, 0, 0))
            assert (each.recipients, each.delivered, each.bounced) == expected[:3]
        reasons = Counter(support.codes(notification))
        assert {each.code: each.recipients for each in progress.reasons} == {
            code: count for code, count in reasons.items() if code
        }
        assert sum(sum(point[1:]) for point in progress.points) == sum(told[1:3])
        log = client.get(reverse("admin:notification_log", args=[notification.pk]))
        assert b"".join(log).count(b"\r\n") == told[0] + 1
    assert seen == {"sent": 3, "cancelled": 1, "pending": 1, "failed": 1, "processing": 1}


@pytest.mark.parametrize("who", ["viewer", "root"])
def test_a_channel_id_in_upper_or_lower_case_selects_the_channel(db, who):
    alice = make_house("Alice")
    notification = make_sent_notification(alice.channel)
    client = signed_in(make_root() if who == "root" else alice.members["viewer"])
    listing = reverse("admin:notifications_app_notification_changelist")

    for spelling in (str(alice.channel.pk), str(alice.channel.pk).upper()):
        page = client.get(listing, {"channel__id__exact": spelling})
        assert list(page.context["cl"].result_list) == [notification]

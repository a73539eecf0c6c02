"""What staff and programs are told of a push service that limits a channel."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from notifications_app.models import Plan
from notifications_app.pipeline import web_rate
from notifications_app.reporting.attention import attention
from notifications_app.reporting.installation import open_batches
from pushsvc.common.findings import Kind
from pushsvc.common.store.redis_client import redis_client
from tests.admin.notifications.composing import review, written
from tests.admin.notifications.dashboards import all_of, everything_lives, html, running
from tests.admin.support import signed_in
from tests.factories import add_crowd, make_key, make_sent_notification
from tests.pipeline.rate_model import make_known
from tests.scrape import scrape

HOUR_AGO = timedelta(hours=1)


def about(house, *kinds):
    everything = attention(all_of(house), now=timezone.now())
    return [each for each in everything if each.code in {kind.code for kind in kinds}]


def waiting(channel, recipients, *, minutes, push_service="fcm"):
    """A notification with so many recipients at the push service, until its deadline."""
    due = {"due_at": timezone.now() - HOUR_AGO, "recipient_count": recipients}
    deadline = timezone.now() + timedelta(minutes=minutes)
    return running(channel, deadline_at=deadline, batches=[due | {"push_service": push_service}])


def details(channel, notification):
    key = {"Authorization": f"Key {make_key(channel)}"}
    answer = Client().get(f"/notification/{notification.id}/details", headers=key)
    assert answer.status_code == 200
    return answer.json()


def test_a_limited_channel_is_found_with_its_effect_and_what_helps(alice, bob):
    everything_lives()
    make_known("fcm", alice.channel.id, 1000)
    waiting(alice.channel, 240_000, minutes=600)

    (finding,) = about(alice, Kind.LIMITED)

    assert finding.title == "Chrome limits this channel to about 1,000 messages a minute"
    assert (finding.severity, finding.channel_id) == ("warning", alice.channel.id)
    assert timezone.now() - finding.since < timedelta(minutes=5)
    words = "240,000 recipients wait; the last of them is called in about 4 h."
    assert words in finding.remedy
    assert "will expire" not in finding.remedy
    assert "Send fewer messages" in finding.remedy
    assert about(bob, Kind.LIMITED) == []
    assert "Chrome limits this channel" in html(alice.members["viewer"])
    assert "Chrome limits" not in html(bob.members["viewer"])


def test_the_recipients_that_will_expire_are_counted(alice):
    make_known("fcm", alice.channel.id, 1000)
    waiting(alice.channel, 5_000, minutes=4)
    waiting(alice.channel, 30_000, minutes=20)
    waiting(alice.channel, 1_000, minutes=1, push_service="mozilla")

    (finding,) = about(alice, Kind.LIMITED)

    told = finding.remedy.partition("About ")[2].partition(" of them")[0]
    assert 15_000 <= int(told.replace(",", "")) <= 15_100  # 20 minutes' worth are called


@pytest.mark.parametrize(
    ("service", "name"),
    [("mozilla", "Mozilla"), ("apple", "Apple"), ("wns", "Microsoft")],
)
def test_the_limit_of_another_push_service_is_named(alice, service, name):
    make_known(service, alice.channel.id, 300)

    (finding,) = about(alice, Kind.LIMITED)

    assert finding.title.startswith(f"{name} limits this channel to about 300 messages")
    assert "Google" not in finding.remedy
    assert "Nobody waits for it now." in finding.remedy


def test_recipients_are_due_that_more_workers_would_reach(alice):
    now = timezone.now()
    past = {"due_at": now - HOUR_AGO}
    future = {"due_at": now + HOUR_AGO}
    counted = (past | {"recipient_count": 5, "delivered_count": 2}, past | {"status": "leased"})
    others = (future, past | {"status": "parked"}, past | {"push_service": "fcm"})
    running(alice.channel, batches=[*counted, *others])
    make_known("fcm", alice.channel.id, 1000)
    halted = running(alice.channel, batches=[past])
    halted.plans.update(halted_at=now)
    rated = running(alice.channel, batches=[past])
    rated.plans.update(has_rate=True)

    found = scrape()

    assert found["pushsvc_due_recipients"] == {("web",): 13, ("android",): 0, ("ios",): 0}
    assert found["pushsvc_waiting_recipients"]["web",] == 63


def test_batches_that_a_limit_holds_up_are_not_late(alice):
    everything_lives()
    waiting(alice.channel, 100, minutes=60)
    assert about(alice, Kind.QUEUE_LATE)
    assert open_batches()["web", "ready"].lateness > timedelta(minutes=59)

    make_known("fcm", alice.channel.id, 1000)

    assert about(alice, Kind.QUEUE_LATE, Kind.CALLS_FAIL) == []
    assert open_batches()["web", "ready"].lateness == timedelta()
    waiting(alice.channel, 100, minutes=60, push_service="mozilla")
    assert about(alice, Kind.QUEUE_LATE)


@pytest.mark.parametrize(
    ("limited", "push_service", "told"),
    [("fcm", "fcm", "fcm"), ("fcm", "mozilla", None), (None, "fcm", None)],
)
def test_details_name_the_push_service_for_which_recipients_wait(
    alice, limited, push_service, told
):
    if limited:
        make_known(limited, alice.channel.id, 1000)
    notification = waiting(alice.channel, 100, minutes=60, push_service=push_service)

    assert details(alice.channel, notification)["limited_by"] == told


def test_details_of_an_ended_notification_name_no_limit(alice):
    make_known("fcm", alice.channel.id, 1000)
    ended = make_sent_notification(alice.channel)

    assert details(alice.channel, ended)["limited_by"] is None


def test_details_are_answered_while_redis_is_away(alice, settings):
    notification = waiting(alice.channel, 100, minutes=60)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert details(alice.channel, notification)["limited_by"] is None


def test_the_page_of_a_notification_says_until_when_it_is_sent(alice):
    make_known("fcm", alice.channel.id, 1000)
    notification = waiting(alice.channel, 2_500, minutes=60)
    address = reverse("admin:notification_progress", args=[notification.pk])

    address = reverse("admin:notifications_app_notification_change", args=[notification.pk])
    viewer = signed_in(alice.members["viewer"])

    page = viewer.get(address).content.decode()

    assert "Chrome limits this channel to about 1,000 messages a minute." in page
    assert "2,500 recipients wait" in page
    Plan.objects.update(halted_at=timezone.now())
    assert "Chrome limits" not in viewer.get(address).content.decode()


def test_a_review_says_how_long_a_limited_send_takes(sender, alice):
    add_crowd(alice.channel, 1_200)
    assert "Chrome accepts" not in review(sender, written(alice)).content.decode()
    make_known("fcm", alice.channel.id, 120)

    page = review(sender, written(alice)).content.decode()

    assert "Chrome accepts about 120 messages a minute of this channel now." in page
    assert "If all 1,200 browsers are there, this takes 10 min." in page
    assert "expire" not in page.partition("Chrome accepts")[2].partition("</p>")[0]


def test_metrics_count_limited_channels(alice, bob):
    make_known("fcm", alice.channel.id, 1000)
    make_known("fcm", bob.channel.id, 500)

    found = scrape()["pushsvc_limited_channels"]

    assert (found["fcm",], found["mozilla",]) == (2, 0)


def test_no_more_is_read_than_is_known(alice):
    assert web_rate.limits() == []
    redis_client().zadd("pushsvc:web_rate:limited", {f"fcm {alice.channel.id}": 10**14})

    assert web_rate.limits() == []  # the state is lost

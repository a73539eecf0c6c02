"""What is being sent and due on the dashboard, and when the page asks again."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from notifications_app.models import Notification, OutcomeMinute
from notifications_app.reporting.activity import sending_and_due
from tests.admin.notifications.dashboards import all_of, html, running
from tests.admin.support import signed_in
from tests.factories import make_sent_notification


def one_running(house):
    ((only,), _) = sending_and_due(all_of(house))
    return only


def ended_lately(notification, count):
    minute = notification.started_at.replace(second=0, microsecond=0)
    OutcomeMinute.objects.create(
        notification=notification, minute=minute, platform="web", code="", count=count
    )


def test_no_remaining_time_is_shown_while_recipients_are_counted(alice):
    notification = running(
        alice.channel, is_planning=True, recipient_count=5000, delivered_count=500, batches=[{}]
    )
    notification.plans.update(sliced_at=timezone.now())
    ended_lately(notification, 500)

    only = one_running(alice)

    assert (only.stage, only.pace.seconds_left) == ("planning", None)
    assert only.pace.rate > 0
    assert "counting recipients" in html(alice.members["viewer"])


def test_the_remaining_time_follows_from_the_latest_outcomes(alice):
    notification = running(
        alice.channel,
        recipient_count=3000,
        delivered_count=900,
        bounced_count=100,
        batches=[{"recipient_count": 2000}],
    )
    ended_lately(notification, 1000)

    only = one_running(alice)

    assert only.stage == "sending"
    assert only.pace.rate == pytest.approx(10, rel=0.1)
    assert only.pace.seconds_left == pytest.approx(200, rel=0.1)
    assert (only.done, only.delivered_share) == (1000, 0.3)


def test_a_waiting_notification_says_what_it_waits_for(alice):
    soon = timezone.now() + timedelta(minutes=5)
    retrying = running(alice.channel, batches=[{"due_at": soon}, {"status": "parked"}])
    parked = running(alice.channel, batches=[{"status": "parked"}])
    busy = running(alice.channel, batches=[{"due_at": soon}, {"status": "leased"}])
    now = timezone.now()
    paused = running(alice.channel, batches=[{"status": "leased"}], paused_at=now)
    stopping = running(alice.channel, batches=[{}], stopped_at=now)

    stages = {each.notification.id: each.stage for each in sending_and_due(all_of(alice))[0]}

    assert stages == {
        retrying.id: "retrying",
        parked.id: "parked",
        busy.id: "sending",
        paused.id: "paused",
        stopping.id: "stopping",
    }


def test_due_notifications_are_listed_soonest_first(alice):
    now = timezone.now()
    for hours in (5, 1, 3):
        make_sent_notification(
            alice.channel,
            title=f"in {hours}",
            status="pending",
            scheduled_at=now + timedelta(hours=hours),
        )

    assert [str(each) for each in sending_and_due(all_of(alice))[1]] == ["in 1", "in 3", "in 5"]


def pending(house, title, at, **fields):
    return make_sent_notification(
        house.channel, title=title, status="pending", scheduled_at=at, **fields
    )


def test_paused_notifications_do_not_hide_what_is_due(alice):
    now = timezone.now()
    for hours in range(1, 6):
        pending(alice, f"paused {hours}", now - timedelta(hours=hours), paused_at=now)
    pending(alice, "soon", now + timedelta(hours=2))

    _, due = sending_and_due(all_of(alice))
    assert [str(each) for each in due] == ["soon", *(f"paused {hours}" for hours in (5, 4, 3, 2))]
    assert "hx-get" not in live(alice)


def live(house):
    answer = signed_in(house.members["viewer"]).get(reverse("admin:dashboard_live"))
    return answer.content.decode()


def test_the_live_part_asks_again_only_while_something_is_sent(alice):
    notification = running(alice.channel, batches=[{}])
    assert "every 2s" in live(alice)

    Notification.objects.filter(pk=notification.pk).update(
        status="sent", delivered_count=100, finished_at=timezone.now()
    )
    assert "hx-get" not in live(alice)


def test_the_live_part_does_not_ask_again_while_all_that_runs_is_paused(alice):
    running(alice.channel, batches=[{}], paused_at=timezone.now())
    assert "hx-get" not in live(alice)

    running(alice.channel, batches=[{}])
    assert "every 2s" in live(alice)


def test_the_live_part_asks_again_when_the_next_notification_is_due(alice):
    make_sent_notification(
        alice.channel, status="pending", scheduled_at=timezone.now() + timedelta(seconds=90)
    )

    (seconds,) = re.findall(r"load delay:(\d+)s", live(alice))

    assert 80 < int(seconds) <= 93

"""Pausing, resuming and stopping a notification on its page, and how the console shows it."""

from datetime import UTC, datetime, timedelta

import pytest
from auditlog.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from notifications_app.models import Notification
from notifications_app.reporting.activity import Pace
from tests.factories import make_plan, make_sent_notification

NAMES = ("pause", "stop", "resume", "end")


def address(name, notification):
    return reverse(f"admin:notification_{name}", args=[notification.pk])


def page_of(notification):
    return reverse("admin:notifications_app_notification_change", args=[notification.pk])


def running(channel, **fields):
    counts = {"recipient_count": 200, "delivered_count": 90, "bounced_count": 10}
    notification = make_sent_notification(
        channel, **counts | {"status": "processing", "finished_at": None} | fields
    )
    make_plan(notification, status="delivering")
    return notification


def scheduled(channel, **fields):
    later = timezone.now() + timedelta(days=1)
    nothing = dict.fromkeys(("recipient_count", "delivered_count", "bounced_count"), 0)
    nothing |= {"status": "pending", "scheduled_at": later, "started_at": None}
    return running(channel, **nothing | fields)


def offered(client, notification):
    """The names of the page's buttons."""
    page = client.get(page_of(notification)).content.decode()
    return [name for name in ("edit", *NAMES) if f'"{address(name, notification)}"' in page]


def posted(client, act, notification, **form):
    """What the page says afterwards."""
    return client.post(address(act, notification), form, follow=True).content.decode()


def shown(notification):
    """The version that a page of the notification has."""
    return now(notification).pause_version


def now(notification):
    return Notification.objects.get(pk=notification.pk)


@pytest.mark.parametrize("make", [running, scheduled])
def test_a_sender_pauses_and_resumes_a_notification(sender, alice, make):
    notification = make(alice.channel)

    page = posted(sender, "pause", notification)
    assert now(notification).is_paused
    assert "is paused" in page
    assert ">paused</span>" in page
    assert offered(sender, notification) == ["edit", "resume", "end"]

    assert "no longer paused" in posted(sender, "resume", notification, version=shown(notification))
    assert not now(notification).is_paused
    assert "pause" in offered(sender, notification)
    entries = LogEntry.objects.filter(object_pk=str(notification.pk))
    assert {entry.actor for entry in entries} == {alice.members["sender"]}
    assert entries.count() == 2


def test_stop_halts_at_once_and_the_end_is_decided_afterwards(sender, alice):
    notification = running(alice.channel)
    assert offered(sender, notification) == ["pause", "stop"]

    assert "Nobody else gets it" in posted(sender, "stop", notification)
    assert now(notification).is_paused
    assert offered(sender, notification) == ["edit", "resume", "end"]

    assert "is stopped" in posted(sender, "end", notification)
    assert now(notification).is_stopped
    assert offered(sender, notification) == []
    halted, ended = LogEntry.objects.filter(object_pk=str(notification.pk)).order_by("id")
    assert ("paused_at" in halted.changes, "stopped_at" in ended.changes) == (True, True)


def test_a_scheduled_notification_is_held_and_then_cancelled(sender, alice):
    notification = scheduled(alice.channel)
    assert offered(sender, notification) == ["edit", "pause", "stop"]

    posted(sender, "stop", notification)
    assert (now(notification).status, now(notification).is_paused) == ("pending", True)

    assert "is cancelled" in posted(sender, "end", notification)
    assert now(notification).status == "cancelled"


STARTED = {"status": "processing", "started_at": timezone.now(), "recipient_count": 38_708}


@pytest.mark.parametrize("name", ["pause", "stop", "end"])
@pytest.mark.parametrize("make", [running, scheduled])
@pytest.mark.parametrize(
    "since", [{}, STARTED, STARTED | {"paused_at": timezone.now()}], ids=["same", "more", "paused"]
)
def test_no_button_lets_a_send_go_on_whatever_has_happened_since(sender, alice, name, make, since):
    notification = make(alice.channel)
    Notification.objects.filter(pk=notification.pk).update(**since)

    posted(sender, name, notification)

    assert now(notification).is_halted or now(notification).status == "cancelled"


@pytest.mark.parametrize("typed", ["", "Another", "spring sale"])
def test_ending_a_large_send_needs_the_typed_name_while_it_is_paused(sender, alice, typed):
    notification = running(alice.channel, title="Spring <sale>", recipient_count=10_101)
    assert "type its name: “Spring &lt;sale&gt;”" in posted(sender, "end", notification, name=typed)
    assert now(notification).is_paused
    assert not now(notification).is_stopped

    posted(sender, "end", notification, name=" Spring <sale> ")

    assert now(notification).is_stopped


@pytest.mark.parametrize(
    ("fields", "typed"),
    [
        ({"title": "Spring  sale"}, "Spring sale"),
        ({"title": "", "body": "Spring\nsale\tnow"}, "Springsale now"),
    ],
)
def test_a_name_is_typed_as_the_page_shows_it(sender, alice, fields, typed):
    notification = running(alice.channel, recipient_count=10_101, **fields)
    posted(sender, "end", notification, name=typed)
    assert now(notification).is_stopped


def test_what_was_edited_since_the_page_was_loaded_is_not_resumed_unseen(sender, alice):
    notification = running(alice.channel)
    posted(sender, "pause", notification)
    seen = shown(notification)
    Notification.objects.filter(pk=notification.pk).update(edited_at=timezone.now(), body="Other")

    assert "still paused, because it was edited or paused again" in posted(
        sender, "resume", notification, version=seen
    )
    assert now(notification).is_paused

    posted(sender, "resume", notification, version=shown(notification))
    assert not now(notification).is_paused


@pytest.mark.parametrize("make", [running, scheduled])
def test_a_second_pause_is_not_resumed_from_a_page_that_showed_the_first(sender, alice, make):
    notification = make(alice.channel)
    posted(sender, "pause", notification)
    seen = shown(notification)
    posted(sender, "resume", notification, version=seen)
    posted(sender, "pause", notification)

    assert "still paused" in posted(sender, "resume", notification, version=seen)
    assert now(notification).is_paused


@pytest.mark.parametrize("status", ["sent", "failed", "cancelled"])
def test_an_ended_notification_offers_no_action_and_says_why(sender, alice, status):
    counts = {"recipient_count": 3, "delivered_count": 3, "bounced_count": 0}
    notification = make_sent_notification(alice.channel, status=status, **counts)
    assert offered(sender, notification) == []
    over = "already been stopped or cancelled" if status == "cancelled" else "already ended"
    for name in NAMES:
        is_repeated = (name, status) == ("end", "cancelled")
        said = "The notification is cancelled" if is_repeated else over
        assert said in posted(sender, name, notification)
    assert now(notification).status == status
    assert not now(notification).is_halted


@pytest.mark.parametrize("name", NAMES)
def test_a_viewer_and_a_get_request_change_nothing(viewer, sender, bob, alice, name):
    notification, theirs = running(alice.channel), running(bob.channel)
    assert offered(viewer, notification) == []
    assert viewer.post(address(name, notification)).status_code == 403
    assert sender.get(address(name, notification)).status_code == 405
    assert sender.post(address(name, theirs)).status_code == 404
    assert not any(now(each).is_halted for each in (notification, theirs))


def test_the_list_and_the_timeline_show_pauses_and_stops(viewer, alice):
    moment = timezone.now()
    paused = running(alice.channel, title="One", paused_at=moment)
    stopping = running(alice.channel, title="Two", stopped_at=moment)
    counts = {"delivered_count": 90, "bounced_count": 110}
    stopped = running(
        alice.channel, title="Three", status="sent", stopped_at=moment, finished_at=moment, **counts
    )
    text = viewer.get(reverse("admin:notifications_app_notification_changelist")).content.decode()
    for word in ("paused", "stopping", "stopped"):
        assert f">{word}</span>" in text
    steps = {
        each: [step.name for step in viewer.get(page_of(each)).context["steps"]]
        for each in (paused, stopping, stopped)
    }
    assert steps[paused][-2:] == ["Paused", "Sent"]
    assert steps[stopping][-2:] == ["Stopped", "Being sent"]
    assert steps[stopped][-2:] == ["Stopped", "Sent"]


def test_the_page_says_when_a_notification_expires(viewer, alice):
    label = "<dt>Stop delivering after</dt>"
    expires_at = datetime(2031, 3, 14, 9, 30, tzinfo=UTC)
    assert label not in viewer.get(page_of(scheduled(alice.channel))).content.decode()
    expiring = viewer.get(page_of(scheduled(alice.channel, expires_at=expires_at)))
    assert "2031-03-14T09:30" in expiring.content.decode().partition(label)[2]


def test_the_live_part_reloads_the_page_when_somebody_pauses(viewer, alice):
    notification = running(alice.channel)
    part = reverse("admin:notification_progress", args=[notification.pk])
    assert "HX-Refresh" not in viewer.get(part, {"seen": "processing"}).headers

    Notification.objects.update(paused_at=timezone.now())

    assert viewer.get(part, {"seen": "processing"}).headers["HX-Refresh"] == "true"
    assert "processing%20paused" in viewer.get(part, {"seen": "processing paused"}).content.decode()


def test_no_rate_and_no_remaining_time_is_shown_during_a_pause(viewer, alice):
    notification = running(alice.channel, paused_at=timezone.now())
    assert viewer.get(page_of(notification)).context["sending"].pace == Pace(0, None)

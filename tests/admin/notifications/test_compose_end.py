"""Composing: the moment after which nobody gets the notification."""

from datetime import UTC, datetime

from notifications_app.models import Notification
from tests.admin.notifications.composing import duplicate, review, send, written


def test_the_end_is_a_local_time_that_the_review_shows(sender, alice):
    form = written(alice, expires_local="2031-07-02T09:00", time_zone="Europe/Berlin")

    sender.cookies["browser-time-zone"] = "America/Los_Angeles"
    page = review(sender, form).content.decode()
    send(sender, form)

    told = page.partition("<dt>Stop delivering after</dt>")[2][:300]
    assert "2 July 2031, 09:00" in told
    assert "2031-07-02 07:00 UTC</time> in America/Los_Angeles" in told  # converted by times.js
    assert Notification.objects.get().expires_at == datetime(2031, 7, 2, 7, tzinfo=UTC)


def test_without_it_the_time_to_live_decides(sender, alice):
    page = review(sender, written(alice)).content.decode()
    send(sender, written(alice))
    assert "Stop delivering after" not in page
    assert Notification.objects.get().expires_at is None


def test_a_duplicate_has_no_end(sender, alice):
    send(sender, written(alice, expires_local="2031-07-02T09:00"))
    form = duplicate(sender, Notification.objects.get()).context["form"]
    assert form.expires_local == ""

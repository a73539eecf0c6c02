"""Caps in the console: composing a send, its page, and schedules."""

from django.urls import reverse

from channels_app.models import Channel
from notifications_app.models import Notification, Plan
from tests.admin.notifications.composing import CHECK, COMPOSE, review, send, written
from tests.admin.notifications.test_timing import page_of
from tests.factories import add_subscriptions, make_notification
from tests.pipeline import support

CAPS = [{"limit": 1, "hours": 24}]


def capped(house):
    Channel.objects.filter(pk=house.channel.pk).update(caps=CAPS)
    add_subscriptions(house.channel, 2)
    make_notification(house.channel, caps=CAPS)
    support.plan()


def test_the_form_and_its_review_say_how_many_are_skipped(sender, alice):
    form = written(alice)
    assert 'name="cap"' not in sender.get(compose(alice)).content.decode()
    capped(alice)
    words = "2 of the audience have had enough and are skipped."
    assert sender.post(CHECK, form).json()["capped"] == words
    assert words in review(sender, form).content.decode()
    assert sender.post(CHECK, form | {"cap": "ignore"}).json()["capped"] == ""
    assert "at most: 1 time in 24 hours." in sender.get(compose(alice)).content.decode()


def compose(house):
    return f"{COMPOSE}?channel={house.channel.pk}"


def test_what_was_chosen_is_stored_and_shown_again(sender, alice):
    capped(alice)
    send(sender, written(alice, cap="ignore", when="later", local_time="2031-12-24T18:00"))
    notification = Notification.objects.latest("created_at")
    assert notification.caps == []
    assert "Ignored and not counted" in page_of(sender, notification)
    edit = sender.get(reverse("admin:notification_edit", args=[notification.pk])).content.decode()
    assert 'name="cap" value="ignore" checked' in edit


def test_the_page_says_who_was_left_out(sender, alice):
    capped(alice)
    notification = make_notification(alice.channel, caps=CAPS)
    support.plan()
    Plan.objects.filter(notification=notification).update(repeated_count=1)
    page = page_of(sender, notification)
    assert "2 have had enough, 1 were reached by the schedule lately" in page
    assert "1 in 24 hours" in page

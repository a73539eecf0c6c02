"""Correcting a notification in the console: *Correct…*, the draft, its approval, and the links."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.urls import reverse

from notifications_app.models import Notification
from tests.admin.notifications.composing import (
    CHECK,
    COMPOSE,
    duplicate,
    review,
    send,
    shown_in,
    written,
)
from tests.admin.notifications.test_approval import ask, decide
from tests.admin.notifications.test_approval import page_of as approval_of
from tests.admin.notifications.test_edit import edited
from tests.admin.support import signed_in
from tests.factories import make_notification, make_sent_notification


def page_of(notification):
    return reverse("admin:notifications_app_notification_change", args=[notification.pk])


def correct(client, notification):
    path = reverse("admin:notification_correct", args=[notification.pk])
    return client.post(path, follow=True)


@pytest.fixture
def wrong(alice):
    return make_notification(alice.channel, title="1:0", status="sent", finished_at=Now())


def test_correct_opens_a_draft_with_the_content_for_who_has_it(alice, sender):
    sent = make_sent_notification(alice.channel, title="1:0")
    assert "Correct…" in sender.get(page_of(sent)).content.decode()

    page = correct(sender, sent)

    form = page.context["form"]
    assert (form.title, form.audience, form.replaces) == ("1:0", "correction", str(sent.pk))
    text = page.content.decode()
    assert "This draft replaces “1:0” where it was delivered" in text
    assert 'value="correction" selected' in text
    assert page_of(sent) in text


def test_a_draft_that_corrects_variants_has_none(alice, sender):
    variants = [{"name": "short", "title": "1:0"}, {"name": "long", "title": "Goal: 1:0"}]
    sent = make_notification(
        alice.channel, title="1:0", status="sent", finished_at=Now(), extras={"variants": variants}
    )

    form = shown_in(correct(sender, sent)) | {"channel": str(alice.channel.pk), "title": "0:1"}

    assert send(sender, form).status_code == 302
    assert Notification.objects.get(title="0:1").content.variants == []


@pytest.mark.parametrize(
    "fields",
    [{"delivered_count": 0, "bounced_count": 100}, {"status": "processing", "finished_at": None}],
)
def test_what_nobody_has_and_what_is_still_sent_offers_no_correction(alice, sender, fields):
    sent = make_sent_notification(alice.channel, **fields)
    assert "Correct…" not in sender.get(page_of(sent)).content.decode()


def test_a_viewer_corrects_nothing(alice, viewer, wrong):
    assert correct(viewer, wrong).status_code == 403


def test_a_correction_is_reviewed_and_sent_and_both_pages_link(alice, sender, wrong):
    form = shown_in(correct(sender, wrong)) | {"channel": str(alice.channel.pk), "title": "0:1"}

    reviewed = review(sender, form).content.decode()
    assert "the notification that it corrects" in reviewed
    assert send(sender, form).status_code == 302

    right = Notification.objects.get(title="0:1")
    assert right.replaces == wrong.pk
    assert (
        f'Corrected by <a href="{page_of(right)}">' in sender.get(page_of(wrong)).content.decode()
    )
    page = sender.get(page_of(right)).content.decode()
    assert f'Corrects <a href="{page_of(wrong)}">' in page
    assert shown_in(duplicate(sender, right))["replaces"] == str(wrong.pk)


@pytest.mark.parametrize("replaces", ["", "none", "../x"])
def test_what_a_browser_posts_for_the_corrected_notification_is_checked(alice, sender, replaces):
    form = written(alice, audience="correction", replaces=replaces)
    found = sender.post(CHECK, form).json()["errors"]
    assert found["replaces"]
    assert sender.post(COMPOSE, form | {"step": "review"}).status_code == 400


def test_a_writers_correction_is_approved_by_another_person(alice, sender, wrong):
    writer = signed_in(alice.members["writer"])
    form = shown_in(correct(writer, wrong)) | {"channel": str(alice.channel.pk), "title": "0:1"}
    draft = ask(writer, alice, **form)
    assert "the notification that it corrects" in sender.get(approval_of(draft)).content.decode()
    decide(sender, draft, "approve")
    assert Notification.objects.get(title="0:1").replaces == wrong.pk


def test_another_audience_makes_it_an_ordinary_notification(alice, sender, wrong):
    form = shown_in(correct(sender, wrong)) | {"channel": str(alice.channel.pk), "audience": ""}
    assert send(sender, form | {"title": "0:1"}).status_code == 302
    assert Notification.objects.get(title="0:1").replaces is None


def test_a_pending_correction_is_edited_as_one(alice, sender, wrong):
    own = {"notification": str(wrong.pk), "outcome": "delivered"}
    later = {"scheduled_at": Now() + timedelta(days=1)}
    right = make_notification(alice.channel, rule=own, root_id=wrong.pk, **later)
    right, _ = edited(sender, right, body="0:2")
    assert (right.body, right.replaces) == ("0:2", wrong.pk)

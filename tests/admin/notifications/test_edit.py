"""Editing: the form has what an edit of the API can change, and changes nothing else."""

import re
from datetime import UTC, datetime

import pytest
from auditlog.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from notifications_app.models import Notification
from subscriptions_app.segments.services import segment_create
from tests.admin.notifications.composing import shown_in
from tests.admin.notifications.test_actions import running, scheduled
from tests.admin.support import deleted_after_its_lock, signed_in

TEXTS = {"title": "Bakery", "body": "Fresh\r\nbread", "url": "https://shop.example/"}
VARIANTS = [{"name": "short", "weight": 1, "title": "Sale"}, {"name": "long", "weight": 2}]
TEST = {"share": 20, "minutes": 60, "metric": "received", "inconclusive": "hold"}
DUE = datetime(2031, 3, 14, 9, 30, 17, 250_000, tzinfo=UTC)


def path_of(notification):
    return reverse("admin:notification_edit", args=[notification.pk])


def form_of(client, notification):
    return form_in(client.get(path_of(notification)))


def form_in(page):
    (version,) = re.findall(r'name="version" value="([^"]+)"', page.content.decode())
    return shown_in(page) | {"version": version}


def edited(client, notification, **fields):
    """The notification after its form was posted with these changes, and what the page says."""
    form = form_of(client, notification) | fields
    page = client.post(path_of(notification), form, follow=True).content.decode()
    return Notification.objects.get(pk=notification.pk), page


def shown_test(html):
    typed = re.findall(r'<input[^>]* name="(test_\w+)"[^>]* value="([^"]*)"', html)
    chosen = re.findall(r'<select[^>]* name="(test_\w+)">.*?value="(\w+)" selected', html)
    return dict([*typed, *chosen])


def make_segment(house, name):
    rule = {"attribute": "plan", "operator": "eq", "value": name}
    return segment_create(channel=house.channel, name=name, rule=rule)


@pytest.mark.parametrize(("make", "pauses"), [(scheduled, False), (running, True)])
def test_a_sender_edits_the_texts_of_what_is_scheduled_or_paused(sender, alice, make, pauses):
    moment = timezone.now() if pauses else None
    notification = make(alice.channel, paused_at=moment, icon="https://shop.example/old.png")
    page = sender.get(path_of(notification)).content.decode()
    assert notification.body in page
    assert "https://shop.example/old.png" in page

    after, said = edited(sender, notification, **TEXTS, icon="")

    assert "is changed" in said
    assert (after.title, after.body, after.icon) == ("Bakery", "Fresh\nbread", "")
    assert (after.ttl, after.scheduled_at) == (notification.ttl, notification.scheduled_at)
    (entry,) = LogEntry.objects.filter(object_pk=str(notification.pk))
    assert (entry.actor, entry.changes["icon"][1]) == (alice.members["sender"], "")


def test_nobody_replaces_a_colleagues_edit_unseen(sender, alice):
    notification = scheduled(alice.channel, title="Old")
    opened = form_of(sender, notification)
    edited(signed_in(alice.members["manager"]), notification, title="Corrected")

    answer = sender.post(path_of(notification), opened | {"body": "Mine"})
    assert answer.status_code == 400
    assert "It was changed or started after you opened this page" in answer.content.decode()
    assert Notification.objects.get(pk=notification.pk).title == "Corrected"
    again = form_in(answer)
    assert (again["title"], again["body"]) == ("Old", "Mine")
    assert sender.post(path_of(notification), again).status_code == 302
    assert Notification.objects.get(pk=notification.pk).body == "Mine"


def test_the_form_shows_that_too_many_notifications_wait(sender, alice, settings):
    notification = scheduled(alice.channel)
    scheduled(alice.channel)
    opened = form_of(sender, notification)
    settings.PENDING_PER_CHANNEL = 1

    later = {"when": "later", "local_time": "2031-03-15T12:00"}
    answer = sender.post(path_of(notification), opened | later | {"body": "Mine"})

    assert answer.status_code == 400
    assert "has 1 notifications that wait" in answer.content.decode()
    assert form_in(answer)["body"] == "Mine"


def test_what_is_deleted_while_its_form_is_refused_is_not_found(sender, alice):
    notification = scheduled(alice.channel)
    form = form_of(sender, notification) | {"version": "another"}
    with deleted_after_its_lock(notification):
        assert sender.post(path_of(notification), form).status_code == 404


def test_a_form_to_which_a_language_was_added_is_as_old_as_before(sender, alice):
    notification = scheduled(alice.channel, title="Old")
    opened = form_of(sender, notification)
    edited(sender, notification, title="Corrected")

    longer = sender.post(path_of(notification), opened | {"add_language": "de", "step": "edit"})

    assert sender.post(path_of(notification), form_in(longer)).status_code == 400
    assert Notification.objects.get(pk=notification.pk).title == "Corrected"


def test_a_start_after_the_form_was_opened_is_told(sender, alice):
    """Otherwise the page would say that a time was changed that is fixed by now."""
    notification = scheduled(alice.channel)
    opened = form_of(sender, notification)
    now = timezone.now()
    Notification.objects.filter(pk=notification.pk).update(
        status="processing", started_at=now, paused_at=now
    )

    answer = sender.post(path_of(notification), opened | {"local_time": "2031-03-15T12:00"})
    assert answer.status_code == 400
    assert "It was changed or started" in answer.content.decode()


def test_everything_of_a_scheduled_notification_is_edited(sender, alice):
    old, new = (make_segment(alice, name) for name in ("gold", "silver"))
    notification = scheduled(
        alice.channel, scheduled_at=DUE, segment_id=old.pk, data={"a": "1"}, data_names=["a"]
    )
    changes = {
        "segment_id": str(new.pk),
        "ttl_number": "2",
        "ttl_unit": "hours",
        "urgency": "high",
        "topic": "bread",
        "data_name": ["b", "a"],
        "data_value": ["2", "1"],
        "local_time": "2031-03-15T12:00",
        "expires_local": "2031-03-15T18:00",
        "time_zone": "Europe/Berlin",
    }

    after, said = edited(sender, notification, **changes)

    assert "is changed" in said
    assert (after.segment_id, after.ttl, after.urgency, after.topic) == (
        new.pk,
        7200,
        "high",
        "bread",
    )
    assert list(after.ordered_data.items()) == [("b", "2"), ("a", "1")]
    assert after.scheduled_at == datetime(2031, 3, 15, 11, tzinfo=UTC)
    assert after.expires_at == datetime(2031, 3, 15, 17, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_a_form_that_is_saved_unchanged_changes_nothing(sender, alice, zone):
    """The form shows minutes; a browser shows them in its own zone."""
    notification = scheduled(
        alice.channel,
        scheduled_at=DUE,
        expires_at=DUE.replace(hour=20),
        data={"b": "2", "a": "1"},
        data_names=["b", "a"],
        ttl=5400,
        extras={"variants": VARIANTS},
        test=TEST,
    )
    own = {"UTC": {}, "Asia/Kolkata": {"local_time": "2031-03-14T15:00"}}
    own["Asia/Kolkata"] |= {"expires_local": "2031-03-15T02:00"}

    page = sender.get(path_of(notification)).content.decode()
    after, _ = edited(sender, notification, time_zone=zone, **own[zone])

    assert shown_test(page) == {f"test_{name}": str(value) for name, value in TEST.items()}
    assert (after.scheduled_at, after.expires_at) == (DUE, notification.expires_at)
    assert after.edited_at is None
    assert (after.content.variants, after.test) == (VARIANTS, TEST)
    assert not LogEntry.objects.filter(object_pk=str(notification.pk)).exists()


def test_a_notification_that_waits_loses_its_last_variant_and_its_test(sender, alice):
    extras = {"variants": VARIANTS}
    notification = scheduled(alice.channel, scheduled_at=DUE, extras=extras, test=TEST)
    opened = form_of(sender, notification)

    single = sender.post(path_of(notification), opened | {"variant": "remove.1"})
    saved = sender.post(path_of(notification), form_in(single))

    assert saved.status_code == 302
    after = Notification.objects.get(pk=notification.pk)
    assert (after.title, after.content.variants, after.test) == ("Sale", [], None)


def test_another_order_of_the_data_is_a_change(sender, alice):
    notification = scheduled(alice.channel, data={"b": "2", "a": "1"}, data_names=["b", "a"])
    turned = {"data_name": ["a", "b"], "data_value": ["1", "2"]}
    after, _ = edited(sender, notification, **turned)
    assert list(after.ordered_data) == ["a", "b"]


def test_a_scheduled_notification_is_sent_at_once(sender, alice):
    notification = scheduled(alice.channel)
    after, said = edited(sender, notification, when="now")
    assert "is changed" in said
    assert after.scheduled_at <= after.edited_at


def test_what_is_being_sent_keeps_audience_and_time(sender, alice):
    notification = running(alice.channel, paused_at=timezone.now())
    page = sender.get(path_of(notification)).content.decode()
    assert "audience and time can no longer change" in page
    for name in ("when", "local_time", "segment_id"):
        assert f'name="{name}"' not in page

    end = DUE.replace(second=0, microsecond=0)
    after, said = edited(
        sender,
        notification,
        body="New",
        platforms=["web", "ios"],
        when="later",
        local_time="2032-01-01T00:00",
        expires_local=f"{end:%Y-%m-%dT%H:%M}",
    )

    assert "is changed" in said
    assert (after.body, after.expires_at) == ("New", end)
    assert (after.target_platforms, after.scheduled_at) == (
        notification.target_platforms,
        notification.scheduled_at,
    )


def test_only_a_send_to_a_segment_offers_segments(sender, alice):
    segment = make_segment(alice, "gold")
    to_all = sender.get(path_of(scheduled(alice.channel))).content.decode()
    to_some = scheduled(alice.channel, segment_id=segment.pk)
    page = sender.get(path_of(to_some)).content.decode()

    assert 'name="segment_id"' not in to_all
    assert "cancel it and duplicate it" in to_all
    assert f'<option value="{segment.pk}" selected>' in page
    assert '<option value="">All' not in page


def test_an_edit_with_errors_is_shown_again_with_what_was_written(sender, alice):
    notification = scheduled(alice.channel)
    for texts in ({"body": ""}, {"body": "x", "url": "<script>"}, {"body": "\x00"}):
        form = form_of(sender, notification) | texts
        answer = sender.post(path_of(notification), form)
        assert answer.status_code == 400
        assert "Nothing was changed" in answer.content.decode()
        assert '<script>"' not in answer.content.decode()
        assert Notification.objects.get(pk=notification.pk).body == notification.body


def test_errors_of_an_edit_stand_at_their_fields_in_the_words_of_the_form(sender, alice):
    notification = scheduled(alice.channel, scheduled_at=DUE)
    form = form_of(sender, notification) | {"expires_local": "2031-03-14T09:00"}

    answer = sender.post(path_of(notification), form)

    told = {"expires_at": ["Choose a moment after the start, and later than now."]}
    assert answer.context["errors"] == told
    assert 'value="2031-03-14T09:00"' in answer.content.decode()


def test_what_is_being_sent_is_not_edited(sender, alice):
    notification = running(alice.channel)
    after, said = edited(sender, notification, **TEXTS)
    assert "could not be changed" in said
    assert after.body == notification.body


def test_a_viewer_edits_nothing(viewer, alice):
    notification = scheduled(alice.channel)
    assert viewer.get(path_of(notification)).status_code == 403
    assert viewer.post(path_of(notification), TEXTS).status_code == 403

"""Composing a send by local time, and following it."""

from datetime import UTC, datetime, timedelta

from django.db.models import F
from django.db.models.functions import Now
from django.urls import reverse

from notifications_app.models import Batch, Notification, Plan
from notifications_app.pipeline import timed_starts
from notifications_app.timing import Timing
from pushsvc.common.store import sql
from tests.admin.notifications.composing import CHECK, review, send, written
from tests.factories import add_each, make_notification
from tests.pipeline import support

EAST, WEST = "Etc/GMT-3", "Etc/GMT+5"  # three hours east, five hours west of UTC
CHRISTMAS = {"when": "later", "local_time": "2031-12-24T18:00", "is_zoned": "on"}
WORDS = "First at 15:00 on Wednesday, 24 December (UTC), in Etc/GMT-3, last 8 h later in Etc/GMT+5."


def with_zones(house, *zones):
    return add_each(house.channel, [{"timezone": each} for each in zones])


def page_of(client, notification):
    name = "admin:notifications_app_notification_change"
    return client.get(reverse(name, args=[notification.pk])).content.decode()


def test_the_form_and_its_review_say_the_first_and_the_last_moment(sender, alice):
    with_zones(alice, EAST, WEST)
    form = written(alice, **CHRISTMAS)
    assert sender.post(CHECK, form).json()["timed"] == WORDS
    page = review(sender, form).content.decode()
    assert WORDS in page
    sender.cookies["browser-time-zone"] = "Asia/Tokyo"
    assert (
        "First at 00:00 on Thursday, 25 December (Asia/Tokyo)"
        in (sender.post(CHECK, form).json()["timed"])
    )
    assert "in each recipient\u2019s time zone" in page
    assert "Wednesday, 24 December 2031, 18:00" in page


def test_one_moment_for_all_is_said_without_a_last_one(sender, alice):
    form = written(alice, **CHRISTMAS)
    assert sender.post(CHECK, form).json()["timed"] == (
        "At 18:00 on Wednesday, 24 December (UTC), in the channel\u2019s time zone."
    )


def test_it_is_stored_for_the_local_time_that_was_written(sender, alice):
    with_zones(alice, EAST, WEST)
    answer = send(sender, written(alice, **CHRISTMAS))
    stored = Notification.objects.get()
    assert stored.timed.local_at == "2031-12-24T18:00"
    assert stored.scheduled_at == datetime(2031, 12, 24, 15, tzinfo=UTC)
    assert "It is scheduled" in sender.get(answer["Location"]).content.decode()


def test_a_missing_day_is_an_error_of_the_field(sender, alice):
    page = sender.post(CHECK, written(alice, **CHRISTMAS | {"local_time": ""})).json()
    assert page["errors"] == {"local_at": ["Choose a day and a time."]}


def test_an_edit_keeps_the_local_time_until_it_is_changed(sender, alice):
    with_zones(alice, EAST)
    send(sender, written(alice, **CHRISTMAS))
    stored = Notification.objects.get()
    path = reverse("admin:notification_edit", args=[stored.pk])
    shown = sender.get(path)
    assert (shown.context["form"].local_time, shown.context["form"].is_zoned) == (
        "2031-12-24T18:00",
        "on",
    )
    version = {"version": shown.context["version"]}
    fields = dict(shown.context["form"].inputs()) | {"channel": str(alice.channel.pk)} | version
    assert sender.post(path, fields).status_code == 302
    assert Notification.objects.get().edited_at is None

    sender.post(path, fields | {"local_time": "2031-12-25T18:00"})
    assert Notification.objects.get().timed.local_at == "2031-12-25T18:00"


def test_a_time_of_any_day_is_shown_with_its_first_day(alice):
    timing = Timing(local_at="09:00", after=datetime(2031, 1, 1, 12, tzinfo=UTC), timezone="UTC")
    assert timing.first_local == "2031-01-02T09:00"
    assert timing.words == "09:00"


def test_the_page_has_a_bar_for_each_release(sender, alice):
    with_zones(alice, EAST, EAST, WEST)
    now = sql.now()
    local_at = f"{now + timedelta(hours=3):%Y-%m-%dT%H:%M}"
    after = now - timedelta(hours=1)
    notification = make_notification(
        alice.channel,
        timing=Timing(local_at=local_at, after=after, timezone="UTC").stored(),
    )
    assert timed_starts.start_timed() == 1
    support.plan(notification)
    page = page_of(sender, notification)
    assert page.count("ps-notification-bar") == 2
    assert "waits" in page
    assert "Waits for the next release" not in page  # the first part is being sent
    assert ">Next release</span>" in page
    assert page.count('aria-current="step"') == 1
    assert "of the released done" in page
    Batch.objects.update(status="done", finished_at=Now(), delivered_count=F("recipient_count"))
    waiting = page_of(sender, notification)
    assert "Waits for the next release" in waiting
    assert waiting.count('aria-current="step"') == 1
    assert "in each recipient\u2019s time zone" in page

    Plan.objects.update(release_at=Now(), due_at=Now())
    support.plan(notification)
    assert "waits" not in page_of(sender, notification)


# Quiet hours

AFTERNOON = {"quiet": "own", "quiet_from": "12:00", "quiet_to": "18:00"}
# 13:00 in Berlin is 15:00 in the east, and 7:00 in the west.
AT_ONE = {"when": "later", "local_time": "2031-12-24T13:00"}


def test_the_review_says_when_nobody_gets_it(sender, alice):
    with_zones(alice, EAST, WEST)
    page = review(sender, written(alice, **AT_ONE, **AFTERNOON)).content.decode()
    assert "Wednesday, 24 December 2031, 13:00" in page
    assert "last 3 h later in Etc/GMT-3. Nobody between 12:00 and 18:00 by the recipient" in page


def test_an_edit_and_a_copy_keep_quiet_hours(sender, alice):
    with_zones(alice, EAST)
    send(sender, written(alice, **AT_ONE, **AFTERNOON))
    stored = Notification.objects.get()
    assert stored.timed.chosen == {"from": "12:00", "to": "18:00"}
    assert "12:00 to 18:00 by the recipient\u2019s clock" in page_of(sender, stored)
    edit = sender.get(reverse("admin:notification_edit", args=[stored.pk]))
    copy = sender.post(reverse("admin:notification_duplicate", args=[stored.pk]), follow=True)
    for form in (edit.context["form"], copy.context["form"]):
        assert {each: getattr(form, each) for each in AFTERNOON} == AFTERNOON


def test_quiet_hours_that_are_half_written_are_an_error_of_the_field(sender, alice):
    form = written(alice, **AFTERNOON | {"quiet_to": ""})
    assert "Choose when they begin and end." in review(sender, form).content.decode()

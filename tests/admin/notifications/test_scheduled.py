"""What is scheduled: the list leads with when and to how many; the calendar of a month."""

import re
from datetime import UTC, datetime
from itertools import islice

import pytest
from django.urls import reverse
from django.utils import timezone

from notifications_app.admin import scheduled
from notifications_app.models import Notification, Occurrence, Schedule
from notifications_app.recurrence import NEXT_WITHIN
from notifications_app.timing import Timing
from subscriptions_app.segments.services import segment_create
from tests.factories import add_crowd, add_each, make_notification, make_schedule

CALENDAR = reverse("admin:notification_calendar")
LIST = reverse("admin:notifications_app_notification_changelist")


def at(day, hour=9, month=3):
    return datetime(2031, month, day, hour, 30, tzinfo=UTC)


def make(house, title, moment, **fields):
    return make_notification(
        house.channel, title=title, body="x", status="pending", scheduled_at=moment, **fields
    )


def days(page):
    """What stands in each day of the calendar that has something."""
    cells = re.findall(r'datetime="([-\d]+)">.*?</time>(.*?)</td>', page, re.DOTALL)
    told = {day: " ".join(re.sub(r"<[^>]+>", " ", text).split()) for day, text in cells}
    return {day: text for day, text in told.items() if text}


def test_a_month_shows_what_is_scheduled_when_and_to_how_many(alice, viewer):
    add_crowd(alice.channel, 3)
    add_each(alice.channel, [{"attributes": {"club": "gold"}}] * 2)
    rule = {"attribute": "club", "operator": "eq", "value": "gold"}
    segment = segment_create(channel=alice.channel, name="Gold", rule=rule)
    make(alice, "For all", at(14))
    make(alice, "For some", at(14, hour=23), segment_id=segment.pk)
    make(alice, "Next month", at(30, month=4))
    make_notification(alice.channel, body="sent", status="sent", scheduled_at=at(15))

    page = viewer.get(CALENDAR, {"month": "2031-03"}).content.decode()

    assert days(page) == {
        "2031-03-14": "For all 09:30 · to 5 For some 23:30 · to 2",
        "2031-03-15": "sent 09:30 · 0 delivered",
    }
    assert "March 2031" in page
    for other in ("2031-02", "2031-04"):
        assert f'href="?month={other}"' in page


def test_what_is_paused_is_marked_in_the_calendar_and_in_the_list(alice, viewer):
    make(alice, "Held", at(14), paused_at=timezone.now())
    make(alice, "Not held", at(15))

    page = viewer.get(CALENDAR, {"month": "2031-03"}).content.decode()
    assert days(page) == {
        "2031-03-14": "Held 09:30 · to 0 paused",
        "2031-03-15": "Not held 09:30 · to 0",
    }
    listed = viewer.get(LIST, {"show": "scheduled"}).content.decode()
    assert listed.count(">paused</span>") == 1


def test_days_and_times_are_in_the_readers_zone(alice, viewer):
    make(alice, "Late", at(14, hour=23))
    make_notification(alice.channel, body="Early", status="sent", scheduled_at=at(1, hour=2))
    viewer.cookies["browser-time-zone"] = "America/Los_Angeles"
    page = viewer.get(CALENDAR, {"month": "2031-03"})
    assert days(page.content.decode()) == {
        "2031-02-28": "Early 18:30 · 0 delivered",
        "2031-03-14": "Late 16:30 · to 0",
    }
    viewer.cookies["browser-time-zone"] = "Mars/Base"
    page = viewer.get(CALENDAR, {"month": "2031-03"}).content.decode()
    assert "2031-03-01" in days(page)


def test_recurring_sends_are_shown_once_and_only_campaigns_of_the_past(alice, bob, viewer):
    first = make_schedule(alice.channel, "Digest")
    make_schedule(bob.channel, "Theirs")
    off = make_schedule(alice.channel, "Off")
    Schedule.objects.filter(pk=off.pk).update(is_enabled=False)
    mondays = list(islice(first.recurs.after(timezone.now(), within=NEXT_WITHIN), 3))
    for at_, code in zip(mondays, ["skipped", "sent"], strict=False):
        Occurrence.objects.create(schedule=first, occurs_at=at_, code=code)
    make_notification(
        alice.channel,
        body="A test",
        status="sent",
        scheduled_at=mondays[0],
        only_subscription_id=alice.channel.pk,
    )
    make_notification(
        alice.channel, body="To one", status="sent", scheduled_at=mondays[0], has_targets=True
    )

    shown = {}
    for month in {f"{each:%Y-%m}" for each in mondays}:
        shown |= days(viewer.get(CALENDAR, {"month": month}).content.decode())

    ours = {day: text for day, text in shown.items() if day <= mondays[2].date().isoformat()}
    clocks = [f"{each:%H:%M}" for each in mondays]
    assert ours == {
        f"{mondays[0]:%Y-%m-%d}": f"Digest {clocks[0]} · recurs skipped",
        f"{mondays[2]:%Y-%m-%d}": f"Digest {clocks[2]} · recurs",
    }
    assert "Theirs" not in str(shown)
    assert "Off" not in str(shown)


def test_days_of_the_weeks_at_its_edges_are_shown_too(alice, viewer):
    make(alice, "In April", at(1, month=4))
    page = viewer.get(CALENDAR, {"month": "2031-03"}).content.decode()
    assert list(days(page)) == ["2031-04-01"]


def test_another_accounts_are_not_in_the_calendar(alice, bob, viewer):
    make(bob, "Theirs", at(14))
    page = viewer.get(CALENDAR, {"month": "2031-03"}).content.decode()
    assert "Theirs" not in page
    assert "Nothing is on the calendar this month." in page


@pytest.mark.parametrize(
    "month",
    ["", "x", "2031-13", "0000-01", "9999-12", "2031-3", "\N{ARABIC-INDIC DIGIT TWO}031-03"],
)
def test_no_month_is_this_month(viewer, month):
    now = timezone.now()
    assert f"{now:%B %Y}" in viewer.get(CALENDAR, {"month": month}).content.decode()


@pytest.mark.parametrize("month", ["1000-01", "9998-12"])
def test_the_first_and_the_last_month_are_shown(viewer, month):
    assert viewer.get(CALENDAR, {"month": month}).status_code == 200


def test_a_full_day_shows_the_rest_on_request(alice, viewer):
    for number in range(6):
        make(alice, f"Number {number}", at(14, hour=number))

    page = viewer.get(CALENDAR, {"month": "2031-03"}).content.decode()

    shown, _, rest = page.partition("<details><summary>2 more</summary>")
    assert shown.count("Number ") == 4
    assert re.findall(r">(Number \d)<", rest.partition("</details>")[0]) == ["Number 4", "Number 5"]


def test_a_send_by_local_time_is_on_its_day_of_each_recipients_clock(alice, viewer):
    """Its first part is released on the day before, where the reader is."""
    viewer.cookies["browser-time-zone"] = "America/Los_Angeles"
    timing = Timing(local_at="2031-02-24T09:00", timezone="UTC").stored()
    make(alice, "For all", datetime(2031, 2, 23, 19, tzinfo=UTC), timing=timing)

    page = viewer.get(CALENDAR, {"month": "2031-03"}).content.decode()

    assert days(page) == {"2031-02-24": "For all 09:00 · to 0 by each recipient\u2019s clock"}


def test_a_stopped_send_and_one_that_is_being_sent_are_marked_as_on_their_pages(alice, viewer):
    make_notification(alice.channel, body="Runs", status="processing", scheduled_at=at(14))
    make_notification(
        alice.channel, body="Over", status="sent", scheduled_at=at(15), stopped_at=timezone.now()
    )

    page = viewer.get(CALENDAR, {"month": "2031-03"}).content.decode()

    assert days(page) == {
        "2031-03-14": "Runs 09:30 · 0 delivered sending",
        "2031-03-15": "Over 09:30 · 0 delivered stopped",
    }


def test_a_month_has_a_bounded_number_and_says_so(alice, viewer, monkeypatch):
    monkeypatch.setattr(scheduled, "_MOST_SHOWN", 2)
    for number in range(3):
        make(alice, f"Number {number}", at(14, hour=number))
    page = viewer.get(CALENDAR, {"month": "2031-03"}).content.decode()
    assert "at most 2 of each kind" in page
    assert "Number 2" not in page
    for _ in range(2):
        make_notification(alice.channel, body="x", status="sent", scheduled_at=at(14, month=4))
    make(alice, "Scheduled", at(14, month=4))
    page = viewer.get(CALENDAR, {"month": "2031-04"}).content.decode()
    assert "at most" not in page


def test_the_list_of_what_is_scheduled_leads_with_when_and_to_how_many(alice, viewer):
    add_crowd(alice.channel, 3)
    for title, day in (("later", 20), ("sooner", 10)):
        make(alice, title, at(day))
    make(alice, "a test", at(30), only_subscription_id=alice.channel.pk)

    page = viewer.get(LIST, {"show": "scheduled"}).context["cl"]

    assert page.list_display[:2] == ["when", "audience"]
    told = [(each.title, each.audience) for each in page.result_list]
    assert told == [("sooner", "3"), ("later", "3"), ("a test", "1")]


def test_a_page_counts_a_bounded_number_of_audiences(alice, viewer, monkeypatch):
    monkeypatch.setattr(scheduled, "MOST_AUDIENCES", 1)
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    segment = segment_create(channel=alice.channel, name="Pro", rule=rule)
    make(alice, "first", at(1))
    make(alice, "second", at(2), segment_id=segment.pk)
    make(alice, "third", at(3))

    rows = viewer.get(LIST, {"show": "scheduled"}).context["cl"].result_list

    assert [each.audience for each in rows] == ["0", "\N{EN DASH}", "0"]


def test_the_page_of_a_scheduled_notification_leads_with_when_and_to_how_many(alice, viewer):
    add_crowd(alice.channel, 3)
    make(alice, "Soon", at(14))
    own = reverse("admin:notifications_app_notification_change", args=[only(alice).pk])

    page = " ".join(re.sub(r"<[^>]+>", " ", viewer.get(own).content.decode()).split())

    assert "2031-03-14 09:30 UTC to 3 subscribers as of now" in page
    Notification.objects.update(status="cancelled", finished_at=at(13))
    assert "as of now" not in viewer.get(own).content.decode()


def only(house):
    return Notification.objects.get(channel=house.channel)

"""Moving a scheduled notification to another time, from the calendar."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from auditlog.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from notifications_app.models import Notification, Occurrence
from tests.admin.support import signed_in
from tests.factories import add_each, make_notification, make_schedule

CALENDAR = reverse("admin:notification_calendar")
JUNE = datetime(2031, 6, 10, 7, 30, tzinfo=UTC)  # 09:30 in Berlin


@pytest.fixture
def berlin(sender):
    sender.cookies["browser-time-zone"] = "Europe/Berlin"
    return sender


def planned(house, at=JUNE, **fields):
    return make_notification(house.channel, body="Sale", scheduled_at=at, **fields)


def own(notification):
    return reverse("admin:notification_move", args=[notification.pk])


def shown(client, notification, **query):
    """What a browser would post of the page, and the page's text."""
    answer = client.get(own(notification), query)
    page = answer.content.decode()
    names = ("version", "time_zone", "local_time")
    return {
        name: re.search(rf'name="{name}"[^>]* value="([^"]*)"', page)[1] for name in names
    }, page


def move(client, notification, day, **typed):
    fields, _ = shown(client, notification, day=day)
    return client.post(own(notification), fields | typed, follow=True)


def start(notification):
    return Notification.objects.get(pk=notification.pk).scheduled_at


def test_a_notification_moves_to_the_day_where_it_was_dropped_at_the_same_time_of_day(
    alice, berlin
):
    one = planned(alice)

    fields, page = shown(berlin, one, day="2031-06-12")
    assert fields["local_time"] == "2031-06-12T09:30"
    assert "Tuesday, 10 June 2031, 09:30" in page
    assert start(one) == JUNE
    answer = berlin.post(own(one), fields, follow=True)

    assert start(one) == JUNE + timedelta(days=2)
    assert "scheduled for Thursday, 12 June 2031, 09:30, in Europe/Berlin." in str(
        [str(each) for each in answer.context["messages"]]
    )
    assert answer.redirect_chain == [(f"{CALENDAR}?month=2031-06", 302)]
    assert LogEntry.objects.latest("id").additional_data["note"] == "Edited: scheduled_at."


def test_the_time_of_day_stays_when_clocks_change_in_between(alice, berlin):
    one = planned(alice, datetime(2031, 3, 28, 8, 0, tzinfo=UTC))  # 09:00, winter
    move(berlin, one, "2031-04-01")
    assert start(one) == datetime(2031, 4, 1, 7, 0, tzinfo=UTC)  # 09:00, summer


def test_a_time_that_clocks_skip_is_refused_in_words(alice, berlin):
    one = planned(alice, datetime(2031, 3, 28, 1, 30, tzinfo=UTC))  # 02:30 in Berlin

    fields, page = shown(berlin, one, day="2031-03-30")
    answer = berlin.post(own(one), fields)

    for text in (page, answer.content.decode()):
        assert "This time does not exist in Europe/Berlin" in text
    assert answer.status_code == 400
    assert start(one) == datetime(2031, 3, 28, 1, 30, tzinfo=UTC)


def test_a_time_that_occurs_twice_means_the_first(alice, berlin):
    one = planned(alice, datetime(2031, 10, 24, 0, 30, tzinfo=UTC))  # 02:30 in Berlin
    move(berlin, one, "2031-10-26")
    assert start(one) == datetime(2031, 10, 26, 0, 30, tzinfo=UTC)


def test_a_time_that_has_passed_sends_nothing(alice, berlin):
    one = planned(alice)
    yesterday = f"{timezone.now() - timedelta(days=1):%Y-%m-%d}"

    _, page = shown(berlin, one, day=yesterday)
    answer = move(berlin, one, yesterday)

    assert "This time has passed." in page
    assert "This time has passed." in answer.content.decode()
    assert start(one) == JUNE


def test_moving_twice_to_the_same_time_is_one_move(alice, berlin):
    one = planned(alice)
    fields, _ = shown(berlin, one, day="2031-06-12")

    answers = [berlin.post(own(one), fields) for _ in range(2)]

    assert [each.status_code for each in answers] == [302, 302]
    assert start(one) == JUNE + timedelta(days=2)
    assert LogEntry.objects.filter(object_pk=str(one.pk)).count() == 1


def test_what_was_changed_meanwhile_is_shown_before_it_moves(alice, berlin):
    one = planned(alice)
    fields, _ = shown(berlin, one, day="2031-06-12")
    move(berlin, one, "2031-06-20")

    answer = berlin.post(own(one), fields)

    page = answer.content.decode()
    assert "It was not moved, because it was changed meanwhile." in page
    assert "Friday, 20 June 2031, 09:30" in page
    assert start(one) == JUNE + timedelta(days=10)
    again = re.search(r'name="version"[^>]* value="([^"]*)"', page)[1]
    berlin.post(own(one), fields | {"version": again})
    assert start(one) == JUNE + timedelta(days=2)


def test_the_zone_of_the_page_holds_even_if_the_reader_has_chosen_another(alice, berlin):
    one = planned(alice)
    fields, _ = shown(berlin, one, day="2031-06-12")
    berlin.cookies["browser-time-zone"] = "Asia/Tokyo"
    berlin.post(own(one), fields)
    assert start(one) == JUNE + timedelta(days=2)


@pytest.mark.parametrize("typed", ["", "tomorrow", "2031-06-12T09:30+00:00", "9999-12-31T23:59"])
def test_what_is_no_time_moves_nothing(alice, berlin, typed):
    one = planned(alice)
    answer = move(berlin, one, "2031-06-12", local_time=typed)
    assert answer.status_code in {200, 400}
    assert start(one) == JUNE or typed.startswith("9999")


def test_a_time_at_the_end_of_all_dates_is_shown(alice, berlin):
    _, page = shown(berlin, planned(alice, datetime(9999, 12, 31, 23, 30, tzinfo=UTC)))
    assert "31 December 9999, 23:30" in page


@pytest.mark.parametrize("zone", ["", "Mars/Base", "../../etc/passwd"])
def test_a_zone_that_nobody_has_moves_nothing(alice, berlin, zone):
    one = planned(alice)
    assert move(berlin, one, "2031-06-12", time_zone=zone).status_code == 400
    assert start(one) == JUNE


def test_a_send_that_would_end_before_it_starts_is_not_moved(alice, berlin):
    one = planned(alice, expires_at=JUNE + timedelta(days=1))
    answer = move(berlin, one, "2031-06-12")
    assert "Must be later than" in answer.content.decode()
    assert start(one) == JUNE


@pytest.mark.parametrize("status", ["processing", "sent", "cancelled"])
def test_one_that_has_started_or_ended_is_not_moved(alice, berlin, status):
    one = planned(alice)
    fields, _ = shown(berlin, one, day="2031-06-12")
    over = {} if status == "processing" else {"finished_at": timezone.now()}
    Notification.objects.update(status=status, started_at=timezone.now(), **over)

    answer = berlin.post(own(one), fields, follow=True)

    assert "it has started or ended" in answer.content.decode()
    assert start(one) == JUNE


def test_a_paused_one_moves_and_stays_paused(alice, berlin):
    one = planned(alice, paused_at=timezone.now())
    _, page = shown(berlin, one)
    assert "It is paused, and stays so." in page
    move(berlin, one, "2031-06-12")
    assert start(one) == JUNE + timedelta(days=2)
    assert Notification.objects.get().is_paused


def by_local_time(house, local_at):
    add_each(house.channel, [{"timezone": "Europe/Berlin"}, {"timezone": "America/Lima"}])
    timing = {"local_at": local_at, "after": timezone.now().isoformat(), "timezone": "UTC"}
    return planned(house, datetime(2031, 6, 10, 7, 0, tzinfo=UTC), timing=timing)


def test_a_send_by_local_time_moves_by_the_clock_of_each_recipient(alice, berlin):
    berlin.cookies["browser-time-zone"] = "Asia/Tokyo"
    one = by_local_time(alice, "2031-06-10T09:00")

    fields, page = shown(berlin, one, day="2031-06-12")
    assert "Tuesday, 10 June 2031, 09:00</strong> in each recipient" in page
    berlin.post(own(one), fields)

    after = Notification.objects.get()
    assert after.timed.local_at == "2031-06-12T09:00"
    assert after.scheduled_at == datetime(2031, 6, 12, 7, 0, tzinfo=UTC)  # the first: Berlin


def test_a_local_time_that_has_passed_in_some_zone_is_refused(alice, berlin):
    one = by_local_time(alice, "2031-06-10T09:00")
    now = timezone.now() - timedelta(hours=2)  # in Lima, this is still to come
    answer = move(berlin, one, "", local_time=f"{now:%Y-%m-%dT%H:%M}")
    assert "In some time zones of the audience, this time has passed." in answer.content.decode()
    assert Notification.objects.get().timed.local_at == "2031-06-10T09:00"


def test_what_a_schedule_makes_is_moved_by_the_schedule(alice, berlin):
    one = planned(alice)
    schedule = make_schedule(alice.channel, "Digest")
    Occurrence.objects.create(
        schedule=schedule, occurs_at=JUNE, code="sent", notification_id=one.pk
    )

    answer = berlin.get(own(one), {"day": "2031-06-12"}, follow=True)
    assert "the schedule “Digest” makes it" in answer.content.decode()
    berlin.post(own(one), {"local_time": "2031-06-12T09:30", "time_zone": "UTC", "version": "- -"})
    assert start(one) == JUNE
    assert own(one) not in berlin.get(CALENDAR, {"month": "2031-06"}).content.decode()


def test_only_those_who_may_send_move_anything(alice, bob, berlin):
    one = planned(alice)
    fields, _ = shown(berlin, one, day="2031-06-12")
    for role in ("viewer", "writer"):
        client = signed_in(alice.members[role])
        assert client.post(own(one), fields).status_code == 403
        page = client.get(CALENDAR, {"month": "2031-06"}).content.decode()
        assert "Sale" in page
        assert own(one) not in page
    assert signed_in(bob.members["owner"]).post(own(one), fields).status_code == 404
    assert start(one) == JUNE


def test_the_calendar_offers_to_move_what_is_scheduled_and_days_that_are_to_come(alice, berlin):
    one = planned(alice)
    test = planned(alice, only_subscription_id=alice.channel.pk)

    page = berlin.get(CALENDAR, {"month": "2031-06"}).content.decode()

    assert f'data-move="{own(one)}"' in page
    assert f'href="{own(one)}"' in page
    assert own(test) not in page
    assert 'data-day="2031-06-12"' in page
    past = berlin.get(CALENDAR, {"month": "2020-06"}).content.decode()
    assert "data-day" not in past

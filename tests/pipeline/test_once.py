"""A schedule with `once_per_days` contacts nobody twice within so many days."""

from datetime import timedelta

import pytest
from django.db.models import F

from notifications_app.models import Contact, Notification, Once, Schedule
from notifications_app.pipeline import plan_queue, planning
from notifications_app.reporting.details import details_of
from notifications_app.reporting.explaining import devices_asked, notification_explained
from notifications_app.retention import purge
from notifications_app.sends import firing
from pushsvc.common.store import sql
from tests import factories
from tests.api.schedules import GIVEN, due
from tests.api.support import owner_of
from tests.pipeline import support
from tests.pipeline.plans import claim
from tests.pipeline.test_caps import ONE_A_DAY, cap, people

DAY = timedelta(days=1)


@pytest.fixture
def owner(channel):
    return owner_of(channel)


@pytest.fixture
def schedule(owner):
    return due(owner, {**GIVEN, "once_per_days": 7})


def occur(schedule):
    """The next occurrence is planned. Returns how many it reaches, and who is left out."""
    Schedule.objects.filter(pk=schedule.pk).update(next_at=sql.now())
    assert firing.fire_next()
    support.plan()
    notification = Notification.objects.filter(channel=schedule.channel).latest("created_at")
    found = details_of(channel_id=schedule.channel_id, notification_id=notification.pk).left_out
    return notification.recipient_count, found["repeated"], found["capped"]


def pass_by(time):
    Once.objects.update(at=F("at") - time)


def test_who_was_contacted_lately_is_left_out_and_counted(channel, schedule):
    people(channel, 2)
    assert occur(schedule) == (2, 0, 0)
    people(channel, 2, 1)
    pass_by(6 * DAY)
    assert occur(schedule) == (1, 4, 0)
    pass_by(DAY)

    assert occur(schedule) == (4, 1, 0)
    assert not Contact.objects.exists()


def test_a_weekly_schedule_reaches_everyone_although_clocks_are_put_forward(channel, schedule):
    people(channel, 1)
    occur(schedule)
    pass_by(7 * DAY - timedelta(hours=1, minutes=5))
    assert occur(schedule) == (1, 0, 0)


def test_the_days_begin_with_the_first_device_that_an_occurrence_reaches(
    channel, schedule, settings
):
    """Otherwise who has devices in two time zones would get each further one on the second only."""
    settings.PLAN_WINDOW = 1
    people(channel, 2)
    Schedule.objects.filter(pk=schedule.pk).update(next_at=sql.now())
    assert firing.fire_next()
    plan_queue.start_due()
    left = planning.plan_windows(claim())
    pass_by(timedelta(hours=5))
    while left:
        left = planning.plan_windows(left)
    assert Notification.objects.get().recipient_count == 2
    pass_by(7 * DAY - timedelta(hours=5))

    assert occur(schedule) == (2, 0, 0)


def test_other_schedules_and_sends_do_not_count(channel, owner, schedule):
    people(channel, 1)
    factories.make_notification(channel)
    support.plan()
    assert occur(schedule) == (1, 0, 0)
    other = due(owner, {**GIVEN, "name": "Other", "once_per_days": 30})
    assert [occur(other), occur(other)] == [(1, 0, 0), (0, 1, 0)]


def test_who_is_capped_is_not_counted_as_contacted(channel, schedule):
    """Who was contacted lately has no place in a cap, either."""
    people(channel, 1)
    cap(channel, ONE_A_DAY)
    factories.make_notification(channel, caps=ONE_A_DAY)
    support.plan()
    assert occur(schedule) == (0, 0, 1)
    assert not Once.objects.exists()
    Contact.objects.all().delete()
    assert occur(schedule) == (1, 0, 0)
    Contact.objects.all().delete()
    assert occur(schedule) == (0, 1, 0)

    assert not Contact.objects.exists()


def test_a_schedule_without_it_repeats(channel, owner):
    people(channel, 1)
    schedule = due(owner, {**GIVEN, "once_per_days": None})
    assert [occur(schedule), occur(schedule)] == [(1, 0, 0)] * 2
    assert not Once.objects.exists()


def test_explaining_says_when_it_was_last(channel, schedule):
    (device,) = people(channel, 1)
    occur(schedule)
    occur(schedule)
    notification = Notification.objects.latest("created_at")
    _, devices = devices_asked(channel.pk, subscription_id=device.pk)
    (found,) = notification_explained(channel, notification.pk, devices).devices

    assert (found.verdict, found.because) == ("left_out", "once")
    last = f"{Once.objects.get().at:%Y-%m-%dT%H:%M}"
    assert last in next(each.detail for each in found.steps if not each.ok)


def test_rows_are_deleted_after_a_year_and_with_their_schedule(channel, owner, schedule):
    people(channel, 3)
    occur(schedule)
    other = due(owner, {**GIVEN, "name": "Other", "once_per_days": 30})
    occur(other)
    Once.objects.filter(schedule=other).update(at=F("at") - 365 * DAY)
    purge()
    assert Once.objects.count() == 2
    Once.objects.filter(schedule=other).update(at=F("at") - 2 * DAY)
    purge()
    assert set(Once.objects.values_list("schedule_id", flat=True)) == {schedule.pk}
    schedule.delete()
    purge()

    assert not Once.objects.exists()

"""Schedules fire: one notification for each occurrence, whoever fires and wherever it is killed."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from channels_app.models import Webhook, WebhookMessage
from notifications_app import tasks
from notifications_app.errors import NeverHappens
from notifications_app.models import Notification, Occurrence, Schedule
from notifications_app.reporting.attention import attention
from notifications_app.sends import bounds, firing, schedules
from notifications_app.sends.services import notification_accept, segment_delete
from pushsvc.common.errors import Conflict, Unavailable
from pushsvc.common.findings import Kind
from pushsvc.common.store import sql
from tests import factories
from tests.api.schedules import GIVEN, SEND, due, path, sending
from tests.api.support import owner_of
from tests.pipeline import support
from tests.pipeline.processes import kill
from tests.segments import attribute

HOUR = timedelta(hours=1)


@pytest.fixture
def owner(channel):
    return owner_of(channel)


def fire():
    """Fires as a worker does, until nothing is due."""
    assert firing.work(seconds=60) is False


def occurred(schedule):
    """[(occurs_at, code)] in their order."""
    own = Occurrence.objects.filter(schedule=schedule).order_by("occurs_at")
    return list(own.values_list("occurs_at", "code"))


def of_schedule(schedule):
    return Notification.objects.filter(channel=schedule.channel).order_by("scheduled_at")


# --- what is sent, and when -----------------------------------------------------------------------


def test_an_occurrence_reaches_the_devices(sandbox, channel, owner):
    devices = factories.subscribe_browsers(sandbox, channel, 3)
    schedule = due(owner)
    fire()
    support.plan()
    support.deliver()

    schedule.refresh_from_db()
    sent = of_schedule(schedule).get()
    assert support.counts(sent) == ("sent", 3, 3, 0)
    assert {len(device.receipts) for device, _ in devices} == {1}
    assert sent.pk == schedule.last_notification_id
    assert occurred(schedule) == [(sent.scheduled_at, "sent")]
    assert sent.sent_by == schedule.changed_by != ""
    assert schedule.next_at == sent.scheduled_at + timedelta(days=1)


def test_an_occurrence_waits_as_a_notification_from_half_a_minute_before_its_time(owner):
    schedule = due(owner)
    soon = sql.now() + timedelta(seconds=20)
    Schedule.objects.update(next_at=soon)
    fire()
    waiting = of_schedule(schedule).get()
    assert (waiting.status, waiting.scheduled_at) == ("pending", soon)

    later = due(owner)
    Schedule.objects.filter(pk=later.pk).update(next_at=soon + timedelta(seconds=20))
    fire()
    assert of_schedule(schedule).count() == 1


def test_the_tick_rings_only_for_enabled_schedules_that_are_due(owner):
    schedule = due(owner)
    Schedule.objects.update(is_enabled=False)
    tasks.tick()
    assert support.waiting("plan") == 0
    fire()
    assert not of_schedule(schedule).exists()

    Schedule.objects.update(is_enabled=True)
    tasks.tick()
    assert support.waiting("plan") == 1


@pytest.mark.parametrize(
    ("ago", "code"),
    [(timedelta(), "sent"), (HOUR * 0.9, "sent"), (HOUR * 1.1, "skipped_late")],
)
def test_of_missed_occurrences_the_latest_is_sent_if_it_is_less_than_an_hour_late(owner, ago, code):
    schedule = due(owner, ago=ago)
    latest = schedule.next_at
    Schedule.objects.update(next_at=latest - timedelta(days=3))
    fire()
    missed = [(latest - timedelta(days=day), "skipped_late") for day in (3, 2, 1)]
    assert occurred(schedule) == [*missed, (latest, code)]
    assert of_schedule(schedule).count() == (code == "sent")
    schedule.refresh_from_db()
    assert schedule.next_at == latest + timedelta(days=1)


def skipped(schedule, occurs_at):
    return Occurrence.objects.create(schedule=schedule, occurs_at=occurs_at, code="skipped")


def test_a_skipped_occurrence_that_passed_while_the_service_was_away_is_not_sent(owner):
    schedule = due(owner)
    latest = schedule.next_at
    Schedule.objects.update(next_at=latest - timedelta(days=1))
    skipped(schedule, latest)
    fire()
    assert occurred(schedule) == [
        (latest - timedelta(days=1), "skipped_late"),
        (latest, "skipped"),
    ]
    schedule.refresh_from_db()
    assert (schedule.is_enabled, schedule.next_at) == (True, latest + timedelta(days=1))


def test_a_missed_occurrence_is_sent_if_the_one_after_it_was_skipped(owner):
    schedule = due(owner, ago=HOUR / 2)
    first, second = schedule.next_at, schedule.next_at + HOUR / 4
    schedule.recurrence["at"] = sorted(f"{each:%H:%M}" for each in (first, second))
    schedule.save()
    skipped(schedule, second)
    fire()
    assert occurred(schedule) == [(first, "sent"), (second, "skipped")]
    schedule.refresh_from_db()
    assert (schedule.is_enabled, schedule.next_at) == (True, first + timedelta(days=1))


def test_a_schedule_ends_with_its_last_occurrence(owner):
    schedule = waiting(owner, count=4)
    assert (schedule.next_at, schedule.is_enabled) == (None, True)
    fire()
    assert of_schedule(schedule).count() == 1


def test_an_occurrence_of_each_recipients_clock_begins_where_it_is_that_time_first(owner):
    at = (timezone.now() + timedelta(hours=14)).replace(second=0, microsecond=0, tzinfo=None)
    schedule = due(owner, timezone="recipient", at=[f"{at:%H:%M}"])
    schedule.refresh_from_db()
    occurs_at = schedule.next_at
    assert schedule.recurs.local_at(occurs_at) == f"{at:%Y-%m-%dT%H:%M}"
    fire()
    sent = of_schedule(schedule).get()
    assert sent.timed.local_at == f"{at:%Y-%m-%dT%H:%M}"
    schedule.refresh_from_db()
    assert schedule.next_at == occurs_at + timedelta(days=1)
    assert schedule.recurs.local_at(schedule.next_at) == f"{at + timedelta(days=1):%Y-%m-%dT%H:%M}"


# --- one notification for each occurrence ---------------------------------------------------------


def test_many_who_fire_at_once_send_each_occurrence_once(owner):
    all_ = [due(owner, {**GIVEN, "name": str(number)}) for number in range(20)]
    support.in_threads(*[lambda: firing.work(seconds=60)] * 8)
    assert of_schedule(all_[0]).count() == 20
    assert Occurrence.objects.filter(code="sent").count() == 20
    assert {row.next_at > timezone.now() for row in Schedule.objects.all()} == {True}


class Killed(BaseException):
    """No code catches it, as none catches a SIGKILL."""


def test_a_worker_killed_between_acceptance_and_commit_leaves_nothing(owner, monkeypatch):
    schedule = due(owner)
    accepted = []

    def accept_and_die(**given):
        accepted.append(notification_accept(**given))
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(firing, "notification_accept", accept_and_die)
        with pytest.raises(Killed):
            firing.fire_next()
    assert len(accepted) == 1
    assert not Notification.objects.exists()
    assert not Occurrence.objects.exists()

    fire()
    assert of_schedule(schedule).count() == 1


def test_two_beats_and_two_planners_one_of_them_killed_send_each_occurrence_once(
    processes, sandbox, channel, owner
):
    devices = factories.subscribe_browsers(sandbox, channel, 2)
    for number in range(40):
        due(owner, {**GIVEN, "name": str(number)})
    Schedule.objects.update(next_at=sql.now() + timedelta(hours=2))
    workers = [processes.start(name) for name in ("worker-plan", "worker-plan", "worker-web")]
    for _ in range(2):
        processes.start("beat")
    Schedule.objects.update(next_at=F("next_at") - timedelta(hours=2))
    support.until(lambda: Occurrence.objects.exists())
    kill(workers[0])

    support.until(lambda: Notification.objects.filter(status="sent").count() == 40)
    assert Occurrence.objects.filter(code="sent").count() == 40
    assert Notification.objects.count() == 40
    assert {len(device.receipts) for device, _ in devices} == {40}


# --- what is refused ------------------------------------------------------------------------------


def test_a_refused_schedule_is_disabled_with_its_code_and_told(channel, owner):
    category = factories.make_category(channel)
    schedule = due(owner, sending(category=category.key))
    Webhook.objects.create(
        channel=channel, url="https://a.example/", events=["schedule.disabled"], secret_encrypted=""
    )
    owner.call("DELETE", f"/channel/{channel.id}/categories/{category.key}")
    fire()

    schedule.refresh_from_db()
    assert (schedule.is_enabled, schedule.disabled_code) == (False, "category_unknown")
    assert [code for _, code in occurred(schedule)] == ["category_unknown"]
    assert not Notification.objects.exists()
    message = WebhookMessage.objects.get()
    assert message.type == "schedule.disabled"
    assert str(schedule.pk).encode() in bytes(message.body)
    found = attention(type(channel).objects.all(), now=timezone.now())
    (finding,) = [each for each in found if each.code == Kind.SCHEDULE_DISABLED.code]
    assert "Digest" in finding.title
    assert "category_unknown" in finding.title
    fire()
    assert Occurrence.objects.count() == 1

    owner.call("PUT", path(owner, schedule.pk), GIVEN)
    schedule.refresh_from_db()
    assert (schedule.is_enabled, schedule.disabled_code) == (True, "")


def test_a_limit_of_the_channel_costs_one_occurrence(owner, settings):
    settings.PENDING_PER_CHANNEL = 0
    schedule = due(owner)
    fire()
    schedule.refresh_from_db()
    assert [code for _, code in occurred(schedule)] == ["too_many_pending"]
    assert schedule.is_enabled
    assert schedule.next_at > timezone.now()


def test_a_schedule_that_cannot_be_read_delays_no_other(owner, caplog):
    broken, whole = due(owner, ago=timedelta(minutes=5)), due(owner)
    Schedule.objects.filter(pk=broken.pk).update(send_json="{}")
    fire()
    broken.refresh_from_db()
    assert broken.disabled_code == "internal_error"
    assert [code for _, code in occurred(whole)] == ["sent"]


def test_while_the_service_is_unavailable_an_occurrence_waits(owner, monkeypatch):
    schedule = due(owner)

    def busy(*_, **__):
        raise Unavailable

    with monkeypatch.context() as away:
        away.setattr(bounds, "check_volume", busy)
        away.setattr("notifications_app.sends.services.check_volume", busy)
        with pytest.raises(Unavailable):
            firing.fire_next()
    assert occurred(schedule) == []
    fire()
    assert [code for _, code in occurred(schedule)] == ["sent"]


def test_a_segment_that_a_schedule_sends_to_cannot_go_before_its_occurrence(channel, owner):
    segment = factories.make_segment(channel, attribute("plan", "eq", "pro"))
    schedule = due(owner, sending(segment_id=str(segment.id)))
    with pytest.raises(Conflict, match=f"Schedule {schedule.pk}"):
        segment_delete(channel_id=channel.id, segment_id=segment.id)
    fire()
    assert of_schedule(schedule).get().segment_id == segment.id


# --- changes until the last moment ----------------------------------------------------------------


def waiting(owner, **fields):
    """A schedule of which the next occurrence is a pending notification."""
    schedule = due(owner, ago=timedelta(minutes=-5), **fields)
    with pytest.MonkeyPatch.context() as early:
        early.setattr(firing, "AHEAD", timedelta(minutes=10))
        fire()
    assert of_schedule(schedule).get().status == "pending"
    schedule.refresh_from_db()
    return schedule


def switched(schedule):
    schedules.schedule_switch(
        channel_id=schedule.channel_id, schedule_id=schedule.pk, on=not schedule.is_enabled
    )


@pytest.mark.parametrize("change", ["PUT", "DELETE", "skip", "disable"])
def test_a_change_in_the_last_moment_stops_the_waiting_notification(owner, change):
    schedule = waiting(owner)
    of = {"channel_id": schedule.channel_id, "schedule_id": schedule.pk}
    occurs_at = of_schedule(schedule).get().scheduled_at
    match change:
        case "skip":
            schedules.occurrence_skip(**of, occurs_at=occurs_at)
        case "disable":
            switched(schedule)
        case _:
            owner.call(change, path(owner, schedule.pk), GIVEN if change == "PUT" else None)

    assert of_schedule(schedule).get().status == "cancelled"
    expected = [(occurs_at, "skipped")] if change == "skip" else []
    assert occurred(schedule) == expected


def test_an_edit_in_the_last_moment_sends_the_new_text_at_the_same_time(owner):
    schedule = waiting(owner)
    occurs_at = of_schedule(schedule).get().scheduled_at
    edited = {
        "name": "Digest",
        "notification": SEND | {"body": "Corrected."},
        "recurrence": schedule.recurrence,
    }
    assert owner.call("PUT", path(owner, schedule.pk), edited).status_code == 200
    schedule.refresh_from_db()
    assert schedule.next_at == occurs_at
    with pytest.MonkeyPatch.context() as early:
        early.setattr(firing, "AHEAD", timedelta(minutes=10))
        fire()
    sent = of_schedule(schedule).get(status="pending")
    assert (sent.body, sent.scheduled_at) == ("Corrected.", occurs_at)


def test_a_skipped_occurrence_is_left_out_and_the_next_one_sent(owner):
    schedule = due(owner, ago=-HOUR)
    of = {"channel_id": schedule.channel_id, "schedule_id": schedule.pk}
    first = schedule.next_at
    for _ in range(2):
        schedules.occurrence_skip(**of, occurs_at=first)
    schedule.refresh_from_db()
    assert schedule.next_at == first + timedelta(days=1)
    shown = schedules.coming_of([schedule], timezone.now(), most=2)
    assert shown[schedule.pk] == [(first, True), (first + timedelta(days=1), False)]
    owner.call("PUT", path(owner, schedule.pk), {**GIVEN, "recurrence": schedule.recurrence})
    schedule.refresh_from_db()
    assert schedule.next_at == first + timedelta(days=1)

    schedules.occurrence_unskip(**of, occurs_at=first)
    schedule.refresh_from_db()
    assert schedule.next_at == first
    for wrong in (first + timedelta(minutes=1), first - timedelta(days=1)):
        with pytest.raises(Conflict):
            schedules.occurrence_skip(**of, occurs_at=wrong)


@pytest.mark.parametrize("change", ["skip", "unskip", "PUT"])
def test_a_change_of_what_comes_does_not_lose_an_overdue_occurrence(owner, change):
    schedule = due(owner, ago=timedelta(minutes=5))
    overdue = schedule.next_at
    later = {"occurs_at": overdue + timedelta(days=1)}
    of = {"channel_id": schedule.channel_id, "schedule_id": schedule.pk}
    if change == "PUT":
        edited = {**sending(body="Corrected."), "recurrence": schedule.recurrence}
        assert owner.call("PUT", path(owner, schedule.pk), edited).status_code == 200
    else:
        schedules.occurrence_skip(**of, **later)
    if change == "unskip":
        schedules.occurrence_unskip(**of, **later)
    fire()
    assert (overdue, "sent") in occurred(schedule)
    sent = of_schedule(schedule).get()
    assert sent.body == ("Corrected." if change == "PUT" else SEND["body"])
    schedule.refresh_from_db()
    assert schedule.next_at == overdue + timedelta(days=2 if change == "skip" else 1)


@pytest.mark.parametrize("changed", ["times", "enabled"])
def test_a_schedule_with_other_times_or_enabled_again_begins_with_what_comes(owner, changed):
    schedule = due(owner, ago=timedelta(minutes=5))
    at = {"at": [f"{schedule.next_at + HOUR * 2:%H:%M}"]} if changed == "times" else {}
    edited = {**GIVEN, "recurrence": schedule.recurrence | at}
    if changed == "enabled":
        switched(schedule)
    assert owner.call("PUT", path(owner, schedule.pk), edited).status_code == 200
    fire()
    assert occurred(schedule) == []
    schedule.refresh_from_db()
    assert schedule.is_enabled
    assert schedule.next_at > timezone.now()


def test_an_ended_schedule_cannot_be_enabled(owner):
    schedule = waiting(owner, count=4)
    Occurrence.objects.update(occurs_at=F("occurs_at") - HOUR)
    Schedule.objects.update(recurrence={**schedule.recurrence, "count": 3})
    schedule.refresh_from_db()
    switched(schedule)
    schedule.refresh_from_db()
    with pytest.raises(NeverHappens):
        switched(schedule)

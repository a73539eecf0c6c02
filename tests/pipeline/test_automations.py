"""Automations fire: each person or device once, in one notification a day, whoever fires and
wherever it is killed."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from notifications_app import deletion, erasure, retention, tasks
from notifications_app.models import (
    AutomationContact,
    AutomationEntry,
    Contact,
    Plan,
    Target,
)
from notifications_app.reporting.activity import sending_and_due
from notifications_app.reporting.details import details_of
from notifications_app.reporting.explaining import notification_explained
from notifications_app.reporting.targets import target_page
from notifications_app.sends import automation_firing, firing
from notifications_app.sends.automations import (
    automation_delete,
    automation_switch,
)
from notifications_app.sends.stored_sends import loaded
from pushsvc.common import metrics
from pushsvc.common.errors import Unavailable
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from subscriptions_app.devices.services import subscription_expire
from subscriptions_app.models import Subscription
from subscriptions_app.people.counting import Changes, Standing, changes_count
from subscriptions_app.people.linking import devices_link
from tests import factories
from tests.api.support import owner_of
from tests.pipeline import halting, support
from tests.pipeline.automations import (
    DAY,
    HOUR,
    automated,
    changed,
    days,
    ended_day,
    fire,
    made,
    passed,
    send,
    waiting,
)
from tests.segments import attribute

CLOCK_CHANGES_AT_MIDNIGHT = ("Africa/Cairo", "America/Havana", "America/Santiago", "Asia/Beirut")


def deleted_row(channel, row):
    """Deletes the subscription as the service does."""
    changes = Changes()
    changes.note(Standing.of(row), None)
    row.delete()
    changes_count(channel.pk, changes)


# --- what is sent, and when -----------------------------------------------------------------------


def test_each_new_device_gets_the_notification_of_the_day_once(sandbox, channel):
    automation = automated(channel)
    devices = factories.subscribe_browsers(sandbox, channel, 2)
    fire()
    send()
    devices += factories.subscribe_browsers(sandbox, channel, 1)
    fire()
    send()

    (notification,) = made(channel)
    assert support.counts(notification) == ("processing", 3, 3, 0)
    assert {len(device.receipts) for device, _ in devices} == {1}
    assert days(automation) == [{"fired": 3}]
    assert notification.name == "Welcome"
    assert notification.sent_by == automation.changed_by
    parts = Plan.objects.filter(notification=notification).order_by("part")
    assert list(parts.values_list("part", "recipient_count")) == [(0, 0), (1, 2), (2, 1)]


def test_the_notification_ends_with_its_day_and_the_next_day_has_another(sandbox, channel):
    automation = automated(channel)
    factories.subscribe_browsers(sandbox, channel, 2)
    fire()
    send()
    passed()
    send()
    (notification,) = made(channel)
    assert support.counts(notification) == ("sent", 2, 2, 0)

    factories.subscribe_browsers(sandbox, channel, 1)
    fire()
    send()
    assert [each.recipient_count for each in made(channel)] == [2, 1]
    assert days(automation) == [{"fired": 2}, {"fired": 1}]


def test_a_device_waits_for_the_delay(channel):
    automated(channel, delay_minutes=60)
    factories.add_subscription(channel)
    tasks.tick()
    assert support.waiting("plan") == 0
    fire()
    assert (waiting(), made(channel)) == (1, [])

    AutomationEntry.objects.update(due_at=Now())
    tasks.tick()
    assert support.waiting("plan") == 1
    fire()
    assert (waiting(), len(made(channel))) == (0, 1)


@pytest.mark.parametrize("plans", [nullcontext, support.nested_loops])
def test_an_automation_is_fired_once_a_minute_unless_more_is_due(channel, monkeypatch, plans):
    monkeypatch.setattr(automation_firing, "SLICE_TARGETS", 2)
    automation = automated(channel)
    factories.add_subscriptions(channel, 5)
    with plans():
        assert firing.work(seconds=60) is False
    assert days(automation) == [{"fired": 5}]

    factories.add_subscription(channel)
    assert firing.work(seconds=60) is False
    assert waiting() == 1
    fire()
    assert days(automation) == [{"fired": 6}]


def test_the_notification_of_a_device_expires_by_its_own_slice(channel):
    automated(channel, send=loaded({"body": "x", "ttl": 3600, "target_platforms": ["web"]}))
    factories.add_subscription(channel)
    fire()
    Plan.objects.update(deadline_at=F("deadline_at") - timedelta(minutes=30))
    factories.add_subscription(channel)
    fire()
    first, second = Plan.objects.filter(part__gt=0).order_by("part")
    assert timedelta(minutes=29) < second.deadline_at - first.deadline_at < timedelta(minutes=32)
    assert (second.deadline_at - second.release_at).total_seconds() == pytest.approx(3600)


def test_in_its_quiet_hours_a_device_waits_and_the_others_do_not(sandbox, channel):
    now = sql.now() + timedelta(hours=3)
    quiet = {"from": f"{now - HOUR:%H:%M}", "to": f"{now + 2 * HOUR:%H:%M}"}
    content = {"body": "x", "ttl": 86_400, "target_platforms": ["web"]}
    automated(channel, send=loaded(content | {"quiet_hours": quiet}))
    (east, row), (west, _) = factories.subscribe_browsers(sandbox, channel, 2)
    Subscription.objects.update(timezone="Etc/GMT+5")
    Subscription.objects.filter(pk=row.pk).update(timezone="Etc/GMT-3")
    fire()
    send()

    (notification,) = made(channel)
    assert (len(east.receipts), len(west.receipts)) == (0, 1)
    assert support.delivery(notification, row).code == "quiet_hours"
    assert support.counts(notification) == ("processing", 2, 1, 0)


@pytest.mark.parametrize("zone", [*CLOCK_CHANGES_AT_MIDNIGHT, "Europe/Berlin", "Pacific/Apia"])
def test_a_day_ends_with_the_first_moment_of_the_next_on_which_clocks_change_too(zone):
    local = ZoneInfo(zone)
    now = datetime(2026, 1, 1, 7, tzinfo=UTC)
    while now.year < 2027:
        end = automation_firing.day_end(now, zone)
        before, after = (each.astimezone(local) for each in (end - timedelta(seconds=1), end))
        assert before.date() == now.astimezone(local).date() < after.date()
        now += timedelta(hours=7)


# --- whom it is for -------------------------------------------------------------------------------


def test_two_devices_of_a_person_are_contacted_once(channel):
    automation = automated(channel)
    person = factories.make_person(channel)
    factories.add_subscription(channel, person=person)
    fire()
    factories.add_subscriptions(channel, 2, person=person)
    fire()
    assert days(automation) == [{"fired": 1, "repeated": 2}]


def test_two_devices_of_a_person_in_one_slice_are_contacted_once(channel):
    automation = automated(channel)
    person = factories.make_person(channel)
    factories.add_subscriptions(channel, 2, person=person)
    fire()
    assert days(automation) == [{"fired": 1, "repeated": 1}]


def test_all_devices_of_the_person_get_it_if_the_person_is_the_recipient(sandbox, channel):
    automation = automated(channel, recipient="person")
    person = factories.make_person(channel)
    own = factories.subscribe_browsers(sandbox, channel, 2)
    anonymous = factories.subscribe_browsers(sandbox, channel, 1)
    devices_link(channel=channel, links={row.pk: person.external_id for _, row in own})
    fire()
    send()
    assert days(automation) == [{"fired": 2, "repeated": 1}]
    assert {len(device.receipts) for device, _ in own + anonymous} == {1}
    named = Target.objects.exclude(external_id=None)
    assert [(each.external_id, each.devices) for each in named] == [(person.external_id, 2)]


@pytest.mark.parametrize(
    ("once_per_days", "ago", "expected"),
    [
        (None, 400 * DAY, {"repeated": 1}),
        (7, 6.9 * DAY, {"repeated": 1}),
        (7, 7.1 * DAY, {"fired": 1}),
    ],
)
def test_a_person_is_contacted_again_after_some_days_only_if_so_set(
    channel, once_per_days, ago, expected
):
    automation = automated(channel, once_per_days=once_per_days)
    person = factories.make_person(channel)
    factories.add_subscription(channel, person=person)
    fire()
    AutomationContact.objects.update(at=Now() - ago)
    passed()
    factories.add_subscription(channel, person=person)
    fire()
    assert days(automation)[1:] == [expected]


@pytest.mark.parametrize("recipient", ["device", "person"])
def test_on_a_day_of_25_hours_a_second_event_is_repeated_and_the_next_day_is_not(
    channel, recipient
):
    automation = automated(channel, once_per_days=1, recipient=recipient)
    row = factories.add_subscription(channel, person=factories.make_person(channel))
    fire()
    AutomationContact.objects.update(at=Now() - timedelta(hours=24, minutes=30))
    for _ in range(2):
        AutomationEntry.objects.create(automation=automation, subscription_id=row.pk, due_at=Now())
        fire()
        passed()
    assert days(automation) == [{"fired": 1, "repeated": 1}, {"fired": 1}]


def test_the_condition_must_match_when_the_time_comes(channel):
    rule = attribute("plan", "eq", "trial")
    automation = automated(
        channel, send=loaded({"body": "x", "rule": rule, "target_platforms": ["web"]})
    )
    kept, bought = factories.add_subscriptions(channel, 2, attributes={"plan": "trial"})
    bought.attributes = {"plan": "pro"}
    bought.save()
    fire()
    assert days(automation) == [{"fired": 1, "condition": 1}]
    assert list(Target.objects.values_list("subscription_id", flat=True)) == [kept.pk]
    assert not AutomationContact.objects.filter(key=bought.pk).exists()


def test_a_condition_may_be_a_segment_as_it_is_then(channel):
    segment = factories.make_segment(channel, attribute("plan", "eq", "trial"))
    body = {"body": "x", "segment_id": str(segment.pk), "target_platforms": ["web"]}
    automation = automated(channel, send=loaded(body))
    factories.add_subscription(channel, {"plan": "pro"})
    segment.rule = attribute("plan", "eq", "pro")
    segment.save()
    fire()
    assert days(automation) == [{"fired": 1}]


def test_gone_and_foreign_devices_are_skipped(channel):
    automation = automated(channel)
    gone, deleted = factories.add_subscriptions(channel, 2)
    factories.add_subscription(channel, platform="android")
    subscription_expire(subscription=gone)
    deleted_row(channel, deleted)
    fire()
    assert days(automation) == [{"gone": 2, "platform": 1}]
    assert made(channel) == []


def test_an_entry_that_was_missed_for_a_day_is_skipped(channel):
    automation = automated(channel)
    factories.add_subscriptions(channel, 2)
    late = AutomationEntry.objects.order_by("pk").first()
    AutomationEntry.objects.update(due_at=Now() - 0.9 * DAY)
    AutomationEntry.objects.filter(pk=late.pk).update(due_at=Now() - 1.1 * DAY)
    fire()
    assert days(automation) == [{"fired": 1, "late": 1}]


def test_caps_and_consent_apply_and_explain_knows_them(channel):
    channel.caps = [{"limit": 1, "hours": 24}]
    channel.save()
    category = factories.make_category(channel, default=True)
    body = {"body": "x", "category": category.key, "target_platforms": ["web"]}
    automation = automated(channel, send=loaded(body))
    capped, refusing, reached = factories.add_subscriptions(channel, 3)
    refusing.choices = {category.key: False}
    refusing.save()
    Contact.objects.create(
        key=capped.pk,
        channel_id=channel.pk,
        times=[sql.now()],
        sends=[uuid7()],
        expires_on="2999-01-01",
    )
    fire()
    support.plan()
    (notification,) = made(channel)
    assert days(automation) == [{"fired": 3}]
    found = details_of(channel_id=channel.pk, notification_id=notification.pk)
    assert (found.left_out["capped"], found.left_out["opted_out"]) == (1, 1)
    assert [each.recipients for each in found.releases] == [1]

    def verdict(row):
        (found,) = notification_explained(channel, notification.pk, [row]).devices
        return found.verdict, found.because

    verdicts = [verdict(row) for row in (capped, refusing, reached)]
    assert verdicts == [("left_out", "cap"), ("left_out", "category"), ("waiting", "")]


# --- reports --------------------------------------------------------------------------------------


def test_the_day_of_an_automation_is_no_time_to_hand_over(sandbox, channel):
    automated(channel)
    metrics.take()
    welcome = ended_day(sandbox, channel)
    assert welcome.status == "sent"

    assert f"{metrics.LAST_HAND_OVER.name}\tsum" not in metrics.take()
    address = f"/channel/{channel.pk}/statistics"
    assert owner_of(channel).call("GET", address).json()["hand_over"] == []


def test_a_day_that_waits_is_listed_after_what_is_being_sent(sandbox, channel):
    automated(channel)
    factories.subscribe_browsers(sandbox, channel, 1)
    fire()
    send()
    campaign = factories.make_notification(channel)
    support.plan(campaign)

    found, _ = sending_and_due(type(channel).objects.all())

    (welcome, _) = made(channel)
    assert [(each.notification.pk, each.stage) for each in found] == [
        (campaign.pk, "sending"),
        (welcome.pk, "waiting"),
    ]


def test_a_target_that_is_left_out_does_not_wait_for_the_end_of_the_day(channel):
    factories.make_category(channel, "offers", default=False)
    automation = automated(channel)
    changed(automation, send=replace(loaded(automation.send), category="offers"))
    factories.add_subscription(channel)
    fire()
    (welcome,) = made(channel)
    own = {"channel_id": channel.pk, "notification_id": welcome.pk, "limit": 10}
    assert [each.state for each in target_page(**own)] == ["waiting"]

    support.plan(welcome)

    assert welcome.status == "processing"
    assert [each.state for each in target_page(**own)] == ["left_out"]


# --- changes --------------------------------------------------------------------------------------


def test_a_disabled_automation_notes_nobody_and_sends_to_who_waits_later(channel):
    automation = automated(channel)
    factories.add_subscription(channel)
    own = {"channel_id": channel.pk, "automation_id": automation.pk}
    automation_switch(**own, on=False)
    factories.add_subscription(channel)
    tasks.tick()
    fire()
    assert (waiting(), made(channel)) == (1, [])

    automation_switch(**own, on=True)
    fire()
    assert days(automation) == [{"fired": 1}]


def test_who_waits_for_a_disabled_automation_is_forgotten_a_day_after_the_time(channel):
    disabled, enabled = automated(channel), automated(channel)
    factories.add_subscription(channel)
    automation_switch(channel_id=channel.pk, automation_id=disabled.pk, on=False)
    AutomationEntry.objects.update(due_at=Now() - 0.9 * DAY)
    retention.purge()
    assert waiting() == 2

    AutomationEntry.objects.update(due_at=Now() - 1.1 * DAY)
    retention.purge()

    assert AutomationEntry.objects.get().automation_id == enabled.pk


def test_a_device_registered_while_the_automation_is_made_is_noted_or_not(channel):
    """A transaction that does not see the automation does not note the device."""
    factories.add_subscription(channel)
    automation = automated(channel)
    with transaction.atomic():
        factories.add_subscription(channel)
        support.in_threads(lambda: changed(automation, name="Hello"))
    fire()
    assert days(automation) == [{"fired": 1}]


def test_a_change_ends_the_day_and_who_waits_gets_the_new_notification(sandbox, channel):
    automation = automated(channel)
    factories.subscribe_browsers(sandbox, channel, 1)
    fire()
    send()
    factories.subscribe_browsers(sandbox, channel, 1)
    changed(automation, send=loaded({"body": "New", "target_platforms": ["web"]}))
    fire()
    send()
    first, second = made(channel)
    assert (support.counts(first), first.body) == (("sent", 1, 1, 0), "Welcome")
    assert (support.counts(second), second.body) == (("processing", 1, 1, 0), "New")


def test_a_deleted_automation_sends_nothing_and_leaves_no_rows(channel):
    automation = automated(channel)
    factories.add_subscription(channel)
    fire()
    factories.add_subscription(channel)
    automation_delete(channel_id=channel.pk, automation_id=automation.pk)
    fire()
    support.plan()
    retention.purge()
    (notification,) = made(channel)
    assert notification.recipient_count == 1
    assert not AutomationEntry.objects.exists()
    assert not AutomationContact.objects.exists()
    assert not Plan.objects.filter(status="planning").exists()


def test_nothing_is_sent_for_a_channel_that_is_being_deleted(channel):
    automated(channel)
    factories.add_subscription(channel)
    deletion.deletion_ask(channel_id=channel.pk)
    fire()
    assert (waiting(), made(channel)) == (1, [])


def test_a_refused_notification_disables_the_automation_and_keeps_who_waits(channel):
    category = factories.make_category(channel)
    body = {"body": "x", "category": category.key, "target_platforms": ["web"]}
    automation = automated(channel, send=loaded(body))
    factories.add_subscription(channel)
    category.archived_at = Now()
    category.save()
    fire()
    automation.refresh_from_db()
    assert (automation.is_enabled, automation.disabled_code) == (False, "category_unknown")
    assert (waiting(), days(automation), AutomationContact.objects.count()) == (1, [], 0)


# --- pauses and stops of the day's notification ---------------------------------------------------


def test_who_becomes_due_while_the_notification_is_paused_waits(sandbox, channel):
    automated(channel)
    factories.subscribe_browsers(sandbox, channel, 1)
    fire()
    send()
    (notification,) = made(channel)
    halting.pause(notification)
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    fire()
    send()
    assert len(device.receipts) == 0
    assert support.counts(notification)[1] == 1  # nobody is planned meanwhile
    halting.resume(notification)
    send()
    assert len(device.receipts) == 1
    assert support.counts(notification) == ("processing", 2, 2, 0)


def test_who_becomes_due_after_a_stop_is_skipped_until_the_next_day(channel):
    automation = automated(channel)
    factories.add_subscription(channel)
    fire()
    (notification,) = made(channel)
    halting.stop(notification)
    person = factories.make_person(channel)
    factories.add_subscription(channel, person=person)
    fire()
    passed()
    factories.add_subscription(channel, person=person)
    fire()
    assert days(automation) == [{"fired": 1, "stopped": 1}, {"fired": 1}]
    support.plan()


# --- exactly once ---------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["_judge", "_begin", "_add_slice", "_wait"])
def test_a_planner_that_dies_has_changed_nothing(sandbox, channel, monkeypatch, where):
    automation = automated(channel)
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    real = getattr(automation_firing, where)

    def die(*arguments, **named):
        real(*arguments, **named)
        raise Unavailable  # leaves the transaction, as a lost connection does

    with monkeypatch.context() as patch:
        patch.setattr(automation_firing, where, die)
        with pytest.raises(Unavailable):
            fire()
    assert (waiting(), made(channel), AutomationContact.objects.count()) == (1, [], 0)
    fire()
    send()
    assert len(device.receipts) == 1
    assert days(automation) == [{"fired": 1}]


def test_two_planners_fire_nobody_twice(channel, monkeypatch):
    monkeypatch.setattr(automation_firing, "SLICE_TARGETS", 3)
    automations = [automated(channel) for _ in range(2)]
    factories.add_subscriptions(channel, 20)
    support.in_threads(*[lambda: firing.work(seconds=60)] * 3)
    fire()
    support.plan()
    assert [days(each) for each in automations] == [[{"fired": 20}]] * 2
    assert [each.recipient_count for each in made(channel)] == [20, 20]


def test_an_erased_person_neither_waits_nor_is_remembered(channel):
    automated(channel)
    person = factories.make_person(channel)
    factories.add_subscription(channel, person=person)
    fire()
    factories.add_subscription(channel, person=person)
    factories.add_subscription(channel)
    erasure.person_forget(channel=channel, external_id=person.external_id)
    assert waiting() == 1
    assert not AutomationContact.objects.filter(key=person.pk).exists()
    support.plan()


def test_contacts_are_kept_as_long_as_they_count(channel):
    automation = automated(channel)
    kept, deleted = factories.add_subscriptions(channel, 2)
    fire()
    deleted_row(channel, deleted)
    AutomationContact.objects.update(expires_on="2020-01-01")
    retention.purge()
    assert list(AutomationContact.objects.values_list("key", flat=True)) == [kept.pk]

    changed(automation, once_per_days=7)
    today = sql.now().date()
    AutomationContact.objects.update(expires_on=today, at=Now() - 8 * DAY)
    retention.purge()
    assert not AutomationContact.objects.exists()
    support.plan()

"""Caps: no person is contacted by more sends than the channel allows, whoever plans them."""

from collections import defaultdict
from datetime import timedelta
from random import Random

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from notifications_app.content.values import Content, SendRequest, TargetId
from notifications_app.models import Contact, Delivery, Notification, Plan
from notifications_app.pipeline import plan_queue, planning
from notifications_app.reporting.details import details_of
from notifications_app.retention import purge
from notifications_app.sends.delivery_settings import delivery_settings_replace
from notifications_app.sends.dry_run import notification_dry_run
from notifications_app.sends.editing import notification_edit
from notifications_app.sends.services import notification_accept, notification_test
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import support
from tests.pipeline.halting import stop
from tests.pipeline.parts import in_parts, release
from tests.pipeline.plans import claim, noted_calls
from tests.pipeline.processes import kill
from tests.segments import RANDOM

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
WEB, IOS = Platform.WEB, Platform.IOS
ONE_A_DAY = [{"limit": 1, "hours": 24}]
TWO_A_DAY = [{"limit": 2, "hours": 24}]


def cap(channel, caps):
    delivery_settings_replace(
        channel_id=channel.pk,
        timezone="UTC",
        rate_per_minute=None,
        category_required=False,
        quiet_hours=None,
        caps=caps,
    )
    channel.refresh_from_db()


def accept(channel, *, platforms=(WEB,), **fields):
    content = Content(body="Fresh bread")
    request = SendRequest(content=content, target_platforms=platforms, **fields)
    return notification_accept(channel=channel, request=request)


def send(channel, **fields):
    """A send that is planned. Returns how many it reaches, and how many are capped."""
    return reached(planned(channel, **fields))


def planned(channel, **fields):
    notification = accept(channel, **fields)
    support.plan(notification)
    return notification


def reached(notification):
    left_out = details(notification).left_out
    notification.refresh_from_db()
    return notification.recipient_count, left_out["capped"]


def details(notification):
    return details_of(channel_id=notification.channel_id, notification_id=notification.pk)


def pass_by(time):
    """Moves all contacts into the past."""
    for contact in Contact.objects.all():
        contact.times = [each - time for each in contact.times]
        contact.save()


def people(channel, *devices, platforms=("web",)):
    """A person for each number, with so many devices on these platforms in turn. Returns rows."""
    each = [
        {
            "person": factories.make_person(channel, f"user-{number}"),
            "platform": platforms[place % len(platforms)],
        }
        for number, count in enumerate(devices)
        for place in range(count)
    ]
    return factories.add_each(channel, each)


# --- who is left out ------------------------------------------------------------------------------


def test_who_had_enough_is_left_out_and_counted(channel):
    factories.add_subscriptions(channel, 2)
    cap(channel, TWO_A_DAY)
    assert [send(channel), send(channel)] == [(2, 0), (2, 0)]
    factories.add_subscriptions(channel, 3)

    assert [send(channel), send(channel), send(channel)] == [(3, 2), (3, 2), (0, 5)]


def test_the_time_of_a_cap_rolls(channel):
    factories.add_subscriptions(channel, 1)
    cap(channel, TWO_A_DAY)
    send(channel)
    pass_by(12 * HOUR)
    assert [send(channel), send(channel)] == [(1, 0), (0, 1)]
    pass_by(12 * HOUR)

    assert [send(channel), send(channel)] == [(1, 0), (0, 1)]


def test_the_devices_of_a_person_count_as_one_and_get_it_together(channel):
    people(channel, 3, 1)
    factories.add_subscriptions(channel, 2)
    cap(channel, ONE_A_DAY)
    assert [send(channel), send(channel)] == [(6, 0), (0, 6)]
    assert Contact.objects.count() == 4


def test_all_platforms_of_a_send_count_once(channel):
    type(channel).objects.filter(pk=channel.pk).update(ios_enabled=True)
    channel.refresh_from_db()
    people(channel, 2, 2, platforms=("web", "ios"))
    cap(channel, ONE_A_DAY)

    assert send(channel, platforms=(WEB, IOS)) == (4, 0)
    assert send(channel, platforms=(WEB, IOS)) == (0, 4)


def test_each_of_two_caps_counts(channel):
    factories.add_subscriptions(channel, 1)
    cap(channel, [*ONE_A_DAY, {"limit": 2, "hours": 720}])
    assert [send(channel), send(channel)] == [(1, 0), (0, 1)]
    pass_by(DAY)
    assert send(channel) == (1, 0)
    pass_by(2 * DAY)
    assert send(channel) == (0, 1)
    pass_by(27 * DAY)
    assert send(channel) == (1, 0)


def test_a_send_that_ignores_caps_is_neither_limited_nor_counted(channel):
    factories.add_subscriptions(channel, 1)
    cap(channel, ONE_A_DAY)
    assert [send(channel, cap="ignore") for _ in range(3)] == [(1, 0)] * 3
    assert [send(channel), send(channel), send(channel, cap="ignore")] == [(1, 0), (0, 1), (1, 0)]


def test_a_test_is_neither_limited_nor_counted(channel):
    (device,) = factories.add_subscriptions(channel, 1)
    cap(channel, ONE_A_DAY)
    for _ in range(2):
        test = notification_test(
            channel=channel, content=Content(body="Hello"), subscription_id=device.pk
        )
        support.plan(test)
        assert test.recipient_count == 1
    assert send(channel) == (1, 0)


def test_targets_are_left_out_too(channel):
    rows = people(channel, 2, 1)
    cap(channel, ONE_A_DAY)
    ada = TargetId(external_id="user-0")
    assert send(channel, targets=(ada,)) == (2, 0)

    own = TargetId(subscription_id=rows[0].pk)
    both = planned(channel, targets=(ada, own, TargetId(external_id="user-1")))
    assert reached(both) == (1, 2)
    assert support.planned_ids(both) == [rows[2].pk]


def test_who_refuses_the_category_is_not_contacted(channel):
    factories.make_category(channel, "offers", default=True)
    factories.add_each(channel, [{"choices": {"offers": False}}, {}])
    cap(channel, ONE_A_DAY)
    notification = planned(channel, category="offers")
    assert details(notification).left_out == {"opted_out": 1, "capped": 0, "repeated": 0}

    assert send(channel) == (1, 1)


def test_linking_a_device_begins_a_new_count(tampered_channel):
    channel = tampered_channel
    (device,) = factories.add_subscriptions(channel, 1)
    cap(channel, ONE_A_DAY)
    assert [send(channel), send(channel)] == [(1, 0), (0, 1)]
    Subscription.objects.filter(pk=device.pk).update(person=factories.make_person(channel))

    assert [send(channel), send(channel)] == [(1, 0), (0, 1)]


def test_a_stopped_send_has_counted_whom_it_planned(channel):
    """Calls are made later, and some push services accept messages that never arrive."""
    factories.add_subscriptions(channel, 1)
    cap(channel, ONE_A_DAY)
    stop(planned(channel))
    support.tick()

    assert send(channel) == (0, 1)


def test_contacts_of_other_channels_count_for_nobody(channel, other_channel):
    for each in (channel, other_channel):
        people(each, 1)
        cap(each, ONE_A_DAY)
    assert [send(channel), send(other_channel), send(channel)] == [(1, 0), (1, 0), (0, 1)]


# --- parts ----------------------------------------------------------------------------------------


def test_a_later_part_passes_even_if_another_send_came_between(channel):
    rows = people(channel, 2)
    for row, plan in zip(rows, ("pro", "free"), strict=True):
        Subscription.objects.filter(pk=row.pk).update(attributes={"plan": plan})
    cap(channel, ONE_A_DAY)
    notification, _, rest = in_parts(channel, later=HOUR, caps=channel.caps)
    support.plan(notification)
    assert send(channel) == (0, 2)
    release(rest)
    support.plan(notification)

    assert reached(notification) == (2, 0)


def test_who_another_part_planned_is_not_judged_again(tampered_channel):
    """Its device belongs to somebody else by then, who had enough."""
    channel = tampered_channel
    row, other = people(channel, 1, 1)
    cap(channel, ONE_A_DAY)
    Subscription.objects.filter(pk=row.pk).update(attributes={"plan": "pro"})
    notification, _, rest = in_parts(channel, later=HOUR, caps=channel.caps)
    support.plan(notification)
    assert send(channel, targets=(TargetId(external_id="user-1"),)) == (1, 0)
    Subscription.objects.filter(pk=row.pk).update(person=other.person)
    release(rest)
    support.plan(notification)

    assert reached(notification) == (1, 1)


def test_a_contact_that_comes_later_counts_as_well(channel):
    """The release of a part may lie ahead, if a planner's clock is behind."""
    factories.add_subscriptions(channel, 1)
    cap(channel, ONE_A_DAY)
    late = accept(channel)
    plan_queue.start_due()
    Plan.objects.filter(notification=late).update(release_at=Now() + 20 * HOUR)
    support.plan(late)
    assert reached(late) == (1, 0)

    assert send(channel) == (0, 1)


# --- changes of caps ------------------------------------------------------------------------------


def test_a_change_reaches_pending_notifications_but_not_those_that_ignore_caps(channel):
    later = {"scheduled_at": sql.now() + HOUR}
    sends = [accept(channel, **later), accept(channel, cap="ignore", **later)]
    (device,) = factories.add_subscriptions(channel, 1)
    test = notification_test(
        channel=channel, content=Content(body="Hello"), subscription_id=device.pk
    )
    for caps in (ONE_A_DAY, TWO_A_DAY, []):
        cap(channel, caps)
        for each in (*sends, test):
            each.refresh_from_db()
        assert [each.caps for each in sends] == [caps or None, []]
        assert test.caps is None


def test_an_edit_keeps_what_the_send_said_and_can_change_it(channel):
    cap(channel, ONE_A_DAY)
    notification = accept(channel, scheduled_at=sql.now() + HOUR)
    for changes, expected in [
        ({"body": "Fresh rolls"}, ONE_A_DAY),
        ({"cap": "ignore"}, []),
        ({"body": "Fresh cake"}, []),
        ({"cap": "respect"}, ONE_A_DAY),
        ({"cap": None}, ONE_A_DAY),
    ]:
        edited = notification_edit(
            channel=channel, notification_id=notification.pk, changes=changes
        )
        assert edited.caps == expected


def test_a_notification_that_has_begun_keeps_its_caps(channel):
    factories.add_subscriptions(channel, 1)
    cap(channel, ONE_A_DAY)
    send(channel)
    notification = accept(channel)
    plan_queue.start_due()
    cap(channel, [])
    support.plan(notification)

    assert reached(notification) == (0, 1)


# --- how it is planned ----------------------------------------------------------------------------


def test_a_window_that_is_rolled_back_leaves_no_contact(channel, monkeypatch):
    factories.add_subscriptions(channel, 3)
    cap(channel, ONE_A_DAY)
    notification = accept(channel)
    plan_queue.start_due()
    leases = claim()
    with monkeypatch.context() as broken:
        broken.setattr(planning, "_count_windows", lambda planned: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            planning.plan_windows(leases)
    assert not Contact.objects.exists()

    assert planning.plan_windows(leases) == []
    assert reached(notification) == (3, 0)


def test_a_planner_that_lost_its_lease_contacts_nobody(channel):
    factories.add_subscriptions(channel, 1)
    cap(channel, ONE_A_DAY)
    accept(channel)
    plan_queue.start_due()
    (lost,) = claim()
    Plan.objects.update(lease_until=Now() - HOUR)
    (lease,) = claim()

    assert planning.plan_windows([lost]) == []
    assert not Contact.objects.exists()
    planning.plan_windows([lease])
    assert Contact.objects.count() == 1


def test_each_plan_with_caps_has_a_transaction_of_its_own(
    channel, other_channel, monkeypatch, patient_transactions
):
    """Which locks contacts in their order."""
    for each in (channel, other_channel):
        factories.add_subscriptions(each, 2)
        cap(each, ONE_A_DAY)
        accept(each)
        accept(each)
    plan_queue.start_due()
    leases = claim()
    counted = noted_calls(monkeypatch, "_count_windows")
    while leases := planning.plan_windows(leases):
        pass

    assert [len(each) for (each,) in counted] == [1, 1, 1, 1]


def test_a_killed_planner_leaves_no_contact(processes, channel):
    *some, last = people(channel, *[1] * 20)
    cap(channel, ONE_A_DAY)
    assert send(channel, targets=(TargetId(external_id="user-19"),)) == (1, 0)
    notification = accept(channel)
    with transaction.atomic():
        list(Contact.objects.filter(pk=last.person_id).select_for_update())
        worker = processes.start("worker-plan")
        support.until(support.waiting_sessions)
        kill(worker)
    support.until(lambda: not support.waiting_sessions())
    Plan.objects.update(lease_until=Now() - HOUR)
    assert Contact.objects.count() == 1
    support.plan(notification)

    assert reached(notification) == (len(some), 1)
    assert Contact.objects.count() == 20


# --- the invariant --------------------------------------------------------------------------------


def assert_within(channel, limit, hours):
    """From the ledger alone: no key has more contacts than the limit in any time of that length.
    A contact is a notification, at the release of the first part that reached one of the key's
    devices."""
    keys = {
        id_: person or id_
        for id_, person in Subscription.objects.filter(channel=channel).values_list(
            "id", "person_id"
        )
    }
    own_plans = Plan.objects.filter(channel=channel)
    released = dict(own_plans.values_list("batches__id", "release_at"))
    first = defaultdict(dict)
    for notification_id, subscription_id, batch_id in Delivery.objects.filter(
        notification_id__in=own_plans.values("notification_id")
    ).values_list("notification_id", "subscription_id", "batch_id"):
        own = first[keys[subscription_id]]
        at = released[batch_id]
        own[notification_id] = min(at, own.get(notification_id, at))
    for contacts in first.values():
        times = sorted(contacts.values())
        for begin in times:
            within = [each for each in times if begin <= each < begin + hours * HOUR]
            assert len(within) <= limit, (within, limit)


def assert_nobody_is_missing(channel, audience):
    for notification in Notification.objects.filter(channel=channel):
        count, capped = reached(notification)
        assert count + capped == audience


@pytest.mark.parametrize("seed", range(3))
def test_eight_planners_stay_within_the_caps(channel, settings, seed):
    random = Random(seed)  # noqa: S311 (no secrets)
    settings.PLAN_WINDOW, settings.PLAN_SLICE_SECONDS = 40, 0.01
    type(channel).objects.filter(pk=channel.pk).update(ios_enabled=True)
    channel.refresh_from_db()
    rows = people(channel, *(random.randint(1, 3) for _ in range(200)), platforms=("web", "ios"))
    cap(channel, [{"limit": 3, "hours": 6}, {"limit": 5, "hours": 24}])
    for _ in range(20):
        accept(channel, platforms=(WEB, IOS))
    plan_queue.start_due()
    now = sql.now()
    for plan in Plan.objects.order_by("notification_id").distinct("notification_id"):
        at = now + random.random() * 48 * HOUR
        Plan.objects.filter(notification_id=plan.notification_id).update(release_at=at)

    support.in_threads(*[support.plan] * 8)

    assert not Plan.objects.filter(status="planning").exists()
    assert_within(channel, 3, 6)
    assert_within(channel, 5, 24)
    assert_nobody_is_missing(channel, len(rows))
    assert Plan.objects.filter(capped_count__gt=0).exists()
    assert Delivery.objects.exists()


@examples(RANDOM, max_examples=15)
@given(
    devices=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    caps=st.lists(
        st.fixed_dictionaries({"limit": st.integers(1, 3), "hours": st.integers(1, 72)}),
        min_size=1,
        max_size=2,
    ),
    releases=st.lists(st.integers(0, 200), min_size=1, max_size=8),
)
def test_any_releases_stay_within_any_caps(transactional_db, devices, caps, releases):
    """And who is capped really had enough."""
    own = factories.make_channel("Of one example")
    rows = people(own, *devices)
    cap(own, caps)
    kept = []
    for hours in releases:
        notification = accept(own)
        plan_queue.start_due()
        Plan.objects.filter(notification=notification).update(release_at=Now() + hours * HOUR)
        support.plan(notification)
        has_room = all(
            sum(abs(hours - each) < one["hours"] for each in kept) < one["limit"] for one in caps
        )
        # An hour sooner or later, a contact is not at the border.
        at_border = any(abs(hours - each) == one["hours"] for each in kept for one in caps)
        count, capped = reached(notification)
        assert count + capped == len(rows)
        assert count in (0, len(rows))
        if not at_border:
            assert bool(count) == has_room
        if count:
            kept.append(hours)
    for one in caps:
        assert_within(own, one["limit"], one["hours"])


# --- what is stored -------------------------------------------------------------------------------


def test_contacts_that_no_cap_counts_are_forgotten(channel):
    factories.add_subscriptions(channel, 2)
    cap(channel, [{"limit": 50, "hours": 2}])
    for _ in range(3):
        send(channel)
    assert {len(each.times) for each in Contact.objects.all()} == {3}
    pass_by(4 * HOUR)
    send(channel)
    assert {len(each.sends) for each in Contact.objects.all()} == {1}
    purge()
    assert Contact.objects.count() == 2
    last = max(max(each.times) for each in Contact.objects.all()) + 3 * HOUR  # an hour longer
    assert {each.expires_on for each in Contact.objects.all()} == {last.date() + DAY}
    Contact.objects.update(expires_on=sql.now().date() + DAY)
    purge()
    assert Contact.objects.count() == 2
    Contact.objects.update(expires_on=F("expires_on") - DAY)
    purge()

    assert not Contact.objects.exists()


def test_a_channel_without_caps_stores_no_contact(channel):
    factories.add_subscriptions(channel, 1)
    send(channel)
    assert not Contact.objects.exists()


def test_a_dry_run_counts_who_would_be_left_out(channel):
    people(channel, 2, 1)
    request = SendRequest(content=Content(body="Hello"), target_platforms=(WEB,))
    targets = (TargetId(external_id="user-0"), TargetId(external_id="user-1"))
    assert notification_dry_run(channel=channel, request=request).capped is None
    cap(channel, ONE_A_DAY)
    send(channel, targets=targets[:1])
    for given_, expected in [({}, 2), ({"targets": targets}, 2), ({"targets": targets[1:]}, 0)]:
        request = SendRequest(content=Content(body="Hello"), target_platforms=(WEB,), **given_)
        found = notification_dry_run(channel=channel, request=request).capped
        assert (found.size, found.estimated) == (expected, False)

    tomorrow = {"scheduled_at": sql.now() + DAY}
    request = SendRequest(content=Content(body="Hello"), target_platforms=(WEB,), **tomorrow)
    assert notification_dry_run(channel=channel, request=request).capped.size == 0

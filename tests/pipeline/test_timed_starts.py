"""Sends by local time: they start in parts, and each device is planned by the part of its zone."""

import zoneinfo
from datetime import datetime, timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now

from notifications_app.content.values import Content, SendRequest, TargetId
from notifications_app.models import Notification, Plan, Target
from notifications_app.pipeline import batches, plan_queue, planning, timed_starts
from notifications_app.reporting.activity import sending_and_due
from notifications_app.reporting.details import details_of
from notifications_app.sends.services import notification_accept, notification_stop
from notifications_app.timing import Timing, _zone
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from tests import factories, segments
from tests.pipeline import support
from tests.pipeline.halting import pause, resume
from tests.zones import write_zones

HOUR = timedelta(hours=1)
EAST, WEST = "Etc/GMT-3", "Etc/GMT+5"  # three hours east, five hours west of UTC
FAR = "Etc/GMT+9"
PRO = segments.attribute("plan", "eq", "pro")


@pytest.fixture(autouse=True)
def _small_windows(settings):
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


def devices(channel, *zones, **fields):
    return factories.add_each(channel, [{"timezone": each, **fields} for each in zones])


def local_clock(zone, moment):
    """The time of the zone's clocks, as `local_at`."""
    hours = {EAST: 3, WEST: -5, FAR: -9, "": 0}[zone]
    return f"{moment + timedelta(hours=hours):%Y-%m-%dT%H:%M}"


def send_at(channel, local_at, *, platforms=(Platform.WEB,), **fields):
    request = SendRequest(
        content=Content(body="Fresh bread"), target_platforms=platforms, local_at=local_at, **fields
    )
    return notification_accept(channel=channel, request=request)


def started(channel, *, east_in=timedelta(), **fields):
    """A notification that is due in EAST's time zone, and has started."""
    notification = send_at(channel, local_clock(EAST, sql.now() + east_in), **fields)
    Notification.objects.filter(pk=notification.pk).update(scheduled_at=Now())
    assert plan_queue.start_due() == 0
    assert timed_starts.start_timed() == 1
    notification.refresh_from_db()
    return notification


def parts(notification):
    rows = notification.plans.order_by("part")
    return [(each.driver, each.zones) for each in rows]


def release(notification, zone=None):
    """The time of the zone's part has come, or that of the movers."""
    own = {"driver": "movers"} if zone is None else {"zones__contains": [zone]}
    past = Now() - timedelta(seconds=1)
    assert notification.plans.filter(**own).update(release_at=past, due_at=past) == 1


def move(device, zone):
    """As a visit does."""
    Subscription.objects.filter(pk=device.pk).update(timezone=zone, timezone_changed_at=Now())


def planned(notification):
    return support.planned_ids(notification)


def test_a_send_has_a_part_for_each_moment_and_one_for_movers(channel):
    devices(channel, EAST, WEST, "Etc/GMT+5", "", "Mars/Olympus")
    notification = started(channel)

    assert parts(notification) == [
        ("zones", [EAST]),
        ("zones", ["", "Mars/Olympus"]),
        ("zones", [WEST]),
        ("movers", None),
    ]
    first, second, third, movers = notification.plans.order_by("part")
    assert second.release_at - first.release_at < 3 * HOUR + timedelta(minutes=1)
    assert third.release_at - second.release_at == 5 * HOUR
    assert movers.release_at == third.release_at
    ttl = timedelta(seconds=notification.ttl)
    assert all(each.deadline_at - each.release_at == ttl for each in (first, second, third))
    assert notification.deadline_at == third.deadline_at
    assert notification.status == "processing"


def test_nobody_is_planned_before_its_release(channel):
    rows = devices(channel, *[EAST] * 9, *[WEST] * 3)
    notification = started(channel)

    support.plan(notification)
    assert planned(notification) == support.ids(rows[:9])
    support.plan(notification)
    assert planned(notification) == support.ids(rows[:9])

    release(notification, WEST)
    support.plan(notification)
    assert planned(notification) == support.ids(rows)
    assert notification.status == "processing"
    release(notification)
    support.plan(notification)
    assert notification.recipient_count == 12
    assert not notification.plans.filter(status="planning").exists()


def test_a_send_whose_time_has_come_everywhere_starts_as_any_other(channel):
    rows = devices(channel, EAST, WEST)
    notification = started(channel, east_in=-10 * HOUR)

    assert parts(notification) == [("scan", None)]
    assert notification.plans.get().part == 0
    support.plan(notification)
    assert planned(notification) == support.ids(rows)


def test_a_channel_without_devices_has_a_part_for_who_comes(channel):
    notification = started(channel, east_in=5 * HOUR)
    assert parts(notification) == [("zones", [""]), ("movers", None)]
    release(notification, "")
    (row,) = devices(channel, "")
    support.plan(notification)
    assert planned(notification) == [row.id]


def test_windows_span_zones_and_end_within_one(channel, settings):
    settings.PLAN_WINDOW = 5
    zones = ["Etc/GMT-3", "Africa/Nairobi", "Asia/Riyadh", "Europe/Istanbul"]
    rows = devices(channel, *[zones[n % 4] for n in range(21)], WEST)
    notification = started(channel)
    assert sorted(parts(notification)[0][1]) == sorted(zones)
    lease = support.claim_plan()
    assert support.windows_until_the_end(lease) == 5
    assert planned(notification) == support.ids(rows[:21])


def test_platforms_have_parts_of_their_own(channel):
    channel.android_enabled = True
    channel.save()
    factories.add_each(
        channel,
        [
            {"platform": "android", "timezone": EAST},
            {"platform": "android", "timezone": WEST},
            {"timezone": WEST},
        ],
    )
    notification = started(channel, platforms=(Platform.WEB, Platform.ANDROID))
    rows = notification.plans.order_by("platform", "part")
    assert [(each.platform, each.part, each.driver) for each in rows] == [
        ("android", 1, "zones"),
        ("android", 2, "zones"),
        ("android", 3, "movers"),
        ("web", 1, "zones"),
        ("web", 2, "movers"),
    ]


def test_zones_whose_time_comes_after_the_end_are_left_out_and_counted(channel):
    devices(channel, EAST, WEST, FAR)
    notification = started(channel, expires_at=sql.now() + 4 * HOUR)

    assert parts(notification) == [("zones", [EAST]), ("movers", None)]
    assert Timing.of(notification.timing).zones_too_late == 2
    assert notification.deadline_at == notification.expires_at


def test_a_send_that_is_too_late_everywhere_ends_without_recipients(channel):
    devices(channel, WEST)
    notification = send_at(channel, local_clock(WEST, sql.now() + HOUR))
    soon = sql.now() + timedelta(minutes=1)
    Notification.objects.update(scheduled_at=Now(), expires_at=soon)
    support.plan(notification)
    support.tick()
    assert support.counts(notification) == ("sent", 0, 0, 0)


# Whom the audience has


def test_rules_tags_and_segments_choose_within_each_zone(channel, settings):
    settings.PLAN_WINDOW = 2
    rows = factories.add_each(
        channel,
        [
            {"timezone": zone, "attributes": {"plan": plan}}
            for zone in (EAST, WEST)
            for plan in ("pro", "free", "pro")
        ],
    )
    factories.add_tags(rows[1:5], "news")
    by_rule = started(channel, rule=PRO)
    by_tag = started(channel, rule={"tag": "news"})
    by_segment = started(channel, segment_id=factories.make_segment(channel, PRO).id)
    support.plan()
    assert planned(by_rule) == planned(by_segment) == support.ids([rows[0], rows[2]])
    assert planned(by_tag) == support.ids(rows[1:3])
    for each in (by_rule, by_tag, by_segment):
        release(each, WEST)
    support.plan()
    assert (
        planned(by_rule) == planned(by_segment) == support.ids([rows[0], rows[2], rows[3], rows[5]])
    )
    assert planned(by_tag) == support.ids(rows[1:5])


def test_targets_get_it_by_the_zone_of_each_device_and_are_counted_once(channel):
    ada = factories.make_person(channel, "ada")
    rows = devices(channel, EAST, WEST, person=ada)
    (other,) = devices(channel, WEST)
    named = (TargetId(external_id="ada"), TargetId(subscription_id=other.id))
    notification = started(channel, targets=named)
    assert parts(notification) == [("zones", [EAST]), ("zones", [WEST]), ("movers", None)]
    support.plan(notification)
    assert planned(notification) == [rows[0].id]
    release(notification, WEST)
    support.plan(notification)
    release(notification)
    support.plan(notification)
    assert planned(notification) == support.ids([*rows, other])
    counted = Target.objects.of(notification.pk).values_list("devices", flat=True)
    assert list(counted) == [2, 1]


def test_who_refuses_the_category_is_counted_in_each_part(channel):
    factories.make_category(channel, "offers", default=True)
    devices(channel, EAST, WEST, choices={"offers": False})
    notification = started(channel, category="offers")
    release(notification, WEST)
    support.plan(notification)
    found = details_of(channel_id=channel.id, notification_id=notification.id)
    assert (notification.recipient_count, found.left_out["opted_out"]) == (0, 2)


# Devices that move


def test_who_leaves_a_zone_before_its_part_for_one_that_is_over_is_found_by_the_last(channel):
    rows = devices(channel, EAST, WEST)
    notification = started(channel)
    support.plan(notification)
    move(rows[1], EAST)
    release(notification, WEST)
    support.plan(notification)
    assert planned(notification) == [rows[0].id]

    release(notification)
    support.plan(notification)
    assert planned(notification) == support.ids(rows)
    assert not notification.plans.filter(status="planning").exists()


def test_who_was_planned_and_moves_is_not_planned_again(channel):
    rows = devices(channel, EAST, WEST)
    notification = started(channel)
    support.plan(notification)
    move(rows[0], WEST)
    release(notification, WEST)
    support.plan(notification)
    release(notification)
    support.plan(notification)
    support.plan(notification)
    assert planned(notification) == support.ids(rows)
    assert notification.recipient_count == 2


def test_the_last_part_waits_for_the_others_of_its_platform(channel):
    rows = devices(channel, EAST, WEST)
    notification = started(channel)
    support.plan(notification)
    release(notification, WEST)
    release(notification)
    zone, movers = plan_queue.claim_plans(most=10)
    assert (zone.driver, movers.driver) == ("zones", "movers")
    move(rows[1], EAST)
    assert not support.plan_window(movers)  # the planner of the other part is slow
    assert planned(notification) == [rows[0].id]
    while support.plan_window(zone):
        pass
    support.plan(notification)
    assert planned(notification) == [rows[0].id]  # it waits for a second
    release(notification)
    support.plan(notification)
    assert planned(notification) == support.ids(rows)


def test_who_moves_to_a_zone_without_a_part_gets_it_at_the_time_of_that_zone(channel):
    rows = devices(channel, EAST, WEST, WEST)
    notification = started(channel)
    support.plan(notification)
    move(rows[1], FAR)
    move(rows[2], EAST)
    release(notification, WEST)
    support.plan(notification)
    release(notification)
    support.plan(notification)
    assert planned(notification) == support.ids([rows[0], rows[2]])
    movers = notification.plans.get(driver="movers")
    assert movers.status == "planning"
    assert movers.release_at == movers.due_at == Timing.of(notification.timing).release(FAR)
    assert notification.deadline_at == movers.deadline_at
    assert not planning.anything_to_plan()

    passed = local_clock(FAR, sql.now() - HOUR)
    own = Timing.of(notification.timing)
    stored = Timing(local_at=passed, after=own.after - 2 * HOUR, timezone="UTC")
    Notification.objects.update(timing=stored.stored())  # by now, FAR's time has come
    release(notification)
    support.plan(notification)
    assert planned(notification) == support.ids(rows)
    assert not notification.plans.filter(status="planning").exists()


def test_a_mover_in_an_early_window_is_not_forgotten(channel, settings):
    """It must wait when its window is read, and no longer when the last one is."""
    settings.PLAN_WINDOW = 1
    rows = devices(channel, EAST, EAST, EAST)
    notification = started(channel, east_in=HOUR)
    move(rows[0], FAR)
    move(rows[1], WEST)
    release(notification, EAST)
    support.plan(notification)
    release(notification)
    lease = support.claim_plan()
    assert lease.driver == "movers"
    assert support.plan_window(lease)
    move(rows[0], "")
    move(rows[1], "")
    Notification.objects.update(
        timing=Timing(
            local_at=local_clock("", sql.now() - HOUR), after=sql.now() - HOUR, timezone="UTC"
        ).stored()
    )
    while support.plan_window(lease):
        pass
    assert notification.plans.get(driver="movers").status == "planning"
    support.plan(notification)
    assert planned(notification) == support.ids(rows)


def test_a_target_that_moves_to_a_zone_without_a_part_waits_for_it(channel):
    ada = factories.make_person(channel, "ada")
    rows = devices(channel, EAST, WEST, person=ada)
    notification = started(channel, targets=(TargetId(external_id="ada"),))
    support.plan(notification)
    move(rows[1], FAR)
    release(notification, WEST)
    support.plan(notification)
    release(notification)
    support.plan(notification)
    assert planned(notification) == [rows[0].id]
    assert notification.plans.get(driver="movers").status == "planning"


# Starts


def test_timed_notifications_of_many_channels_take_turns(channel, other_channel):
    for _ in range(3):
        send_at(channel, local_clock(EAST, sql.now() - 10 * HOUR))
    other = send_at(other_channel, local_clock(EAST, sql.now() - 10 * HOUR))
    own = plan_queue.RoundRobin()
    assert plan_queue.start_due(round_robin=own) == 0
    assert own.is_timed_due
    assert timed_starts.start_timed(1, round_robin=own) == 2
    other.refresh_from_db()
    assert other.status == "processing"
    support.plan()
    assert not Notification.objects.filter(status="pending").exists()
    plan_queue.start_due(round_robin=own)
    assert not own.is_timed_due


def test_many_small_sends_with_quiet_hours_start_with_few_statements(channel):
    """As all sends of a channel with quiet hours do, by day."""
    later = f"{sql.now() + HOUR:%H:%M}", f"{sql.now() + 2 * HOUR:%H:%M}"
    for _ in range(20):
        request = SendRequest(
            content=Content(body="Fresh bread"),
            target_platforms=(Platform.WEB,),
            quiet_hours=dict(zip(("from", "to"), later, strict=True)),
        )
        notification_accept(channel=channel, request=request)
    with support.statements() as made:
        assert timed_starts.start_timed() == 20
    assert len(made) <= 8


def test_one_that_cannot_be_started_delays_no_other(channel, other_channel, caplog):
    broken = send_at(channel, local_clock(EAST, sql.now() - 10 * HOUR))
    Notification.objects.filter(pk=broken.pk).update(timing={"local_at": "09:00"})
    others = [
        send_at(each, local_clock(EAST, sql.now() - 10 * HOUR)) for each in (channel, other_channel)
    ]
    plain = factories.make_notification(channel)
    support.plan()
    support.plan()
    for each in (*others, plain):
        each.refresh_from_db()
        assert each.status == "sent"
    assert len(support.logged(caplog, "notification.start_failed")) == 1  # not again at once


def test_one_that_waits_for_a_lock_for_too_long_delays_no_other(channel, other_channel, caplog):
    (row,) = devices(channel, EAST)
    long_ago = local_clock(EAST, sql.now() - 10 * HOUR)
    waiting = send_at(channel, long_ago, targets=(TargetId(subscription_id=row.id),))
    other = send_at(other_channel, long_ago)

    def start():
        sql.rows("SELECT set_config('lock_timeout', '100ms', false)", {})
        return timed_starts.start_timed()

    with transaction.atomic():
        sql.execute("LOCK TABLE notifications_app_target IN ACCESS EXCLUSIVE MODE", {})
        assert support.in_threads(start) == [1]
    other.refresh_from_db()
    waiting.refresh_from_db()
    assert (other.status, waiting.status) == ("processing", "pending")
    (logged,) = support.logged(caplog, "notification.start_failed")
    assert not logged.exc_info


def test_two_planners_start_one_once(channel):
    devices(channel, EAST, WEST)
    notification = send_at(channel, local_clock(EAST, sql.now()))
    Notification.objects.update(scheduled_at=Now())
    started_by = support.in_threads(timed_starts.start_timed, timed_starts.start_timed)
    assert sorted(started_by) == [0, 1]
    assert len(parts(notification)) == 3


def test_a_paused_one_does_not_start_and_a_paused_part_is_not_planned(channel):
    rows = devices(channel, EAST, WEST)
    pending = send_at(channel, local_clock(EAST, sql.now()))
    Notification.objects.update(scheduled_at=Now())
    pause(pending)
    support.plan(pending)
    assert pending.status == "pending"
    resume(pending)
    support.plan(pending)
    assert planned(pending) == [rows[0].id]
    pause(pending)
    release(pending, WEST)
    support.plan(pending)
    assert planned(pending) == [rows[0].id]
    resume(pending)
    support.plan(pending)
    assert planned(pending) == support.ids(rows)


def test_a_stop_ends_all_parts(channel):
    devices(channel, WEST)
    notification = started(channel)
    notification_stop(channel_id=channel.id, notification_id=notification.id)
    support.tick()
    assert support.counts(notification) == ("cancelled", 0, 0, 0)
    assert support.open_plans() == 0


def test_a_part_ends_at_its_own_deadline(channel):
    devices(channel, EAST, WEST)
    notification = started(channel)
    support.plan()
    support.end_time_of_part(notification.plans.get(part=1).pk)
    assert [code for _, code in batches.overdue()] == ["expired"]


def test_old_planners_find_nobody_for_parts_that_they_do_not_know(channel):
    devices(channel, EAST, WEST)
    notification = started(channel)
    Plan.objects.update(driver="scan", zones=None, release_at=Now(), due_at=Now())
    support.plan(notification)
    assert planned(notification) == []


def test_starts_read_only_what_is_due(channel, other_channel):
    for _ in range(30):
        send_at(channel, local_clock(EAST, sql.now() + 9 * HOUR))
    devices(other_channel, EAST)
    send_at(other_channel, local_clock(EAST, sql.now() - 10 * HOUR))
    sql.execute("ANALYZE notifications_app_notification", {})
    read = support.most_rows_read(timed_starts.start_timed, as_if_large=True)
    assert read < 20


def test_a_window_of_zones_reads_no_more_than_it_needs(channel, settings):
    settings.PLAN_WINDOW = 10
    devices(channel, *["Asia/Riyadh"] * 300, *["Africa/Nairobi"] * 300, *[WEST] * 2_000)
    started(channel)
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    lease = support.claim_plan()
    assert lease.driver == "zones"
    for _ in range(3):
        read = support.most_rows_read(lambda: support.plan_window(lease), as_if_large=True)
        assert read <= 40


def test_a_waiting_one_is_shown_after_those_that_are_sent(channel):
    devices(channel, WEST)
    waiting = started(channel)
    other = factories.make_notification(channel)
    support.plan()
    found, _ = sending_and_due(type(channel).objects.all())
    assert [(each.notification.pk, each.stage) for each in found] == [
        (other.pk, "sending"),
        (waiting.pk, "waiting"),
    ]
    west = waiting.plans.get(part=1)
    assert found[-1].next_at == west.release_at


def test_the_first_release_is_when_it_is_scheduled(channel):
    devices(channel, EAST, WEST)
    after = sql.now().replace(second=0, microsecond=0) + timedelta(days=3)
    local = f"{after + timedelta(hours=2):%H:%M}"
    notification = send_at(channel, local, scheduled_at=after)
    # two hours later it is this time in UTC; an hour ago it was in EAST, and it is in WEST in 7 h
    assert notification.scheduled_at == after + 7 * HOUR
    assert isinstance(notification.scheduled_at, datetime)


# At the push service


@pytest.fixture
def tzdata(tmp_path):
    zoneinfo.reset_tzpath(to=[str(tmp_path)])
    _zone.cache_clear()
    yield tmp_path
    zoneinfo.reset_tzpath()
    _zone.cache_clear()


def test_no_call_is_made_before_its_release(sandbox, channel, tzdata):
    """Three zones, in which it is nine o'clock within the next seconds, one after the other."""
    began = int(sql.now().timestamp())
    releases = {"A": began + 1, "B": began + 3, "C": began + 5}
    local_at = write_zones(tzdata, **releases)
    devices = factories.subscribe_browsers(sandbox, channel, 9)
    for number, (_, row) in enumerate(devices):
        Subscription.objects.filter(pk=row.pk).update(timezone="ABC"[number % 3])
    notification = send_at(channel, local_at)
    move(devices[2][1], "A")  # from C, before it starts

    def is_sent():
        support.tick()
        support.plan(notification)
        support.deliver(notification, seconds=1)
        return notification.status == "sent"

    support.until(is_sent)

    zone_of = dict(Subscription.objects.values_list("pk", "timezone"))
    for device, row in devices:
        (receipt,) = device.receipts
        assert receipt.at >= releases[zone_of[row.pk]]
    assert support.counts(notification) == ("sent", 9, 9, 0)

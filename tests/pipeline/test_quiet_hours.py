"""No call begins in the quiet hours of a recipient, by the clock where it is."""

import zoneinfo
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from channels_app.models import ProviderCredential
from notifications_app.content.values import Content, SendRequest, TargetId
from notifications_app.models import Batch, Delivery, Notification
from notifications_app.pipeline import dispatch, plan_queue, reading, timed_starts
from notifications_app.reporting.explaining import devices_asked, notification_explained
from notifications_app.sends.delivery_settings import delivery_settings_replace
from notifications_app.sends.editing import notification_edit
from notifications_app.sends.services import notification_accept, notification_test
from notifications_app.timing import Quiet, Timing, _zone
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import support
from tests.zones import write_zones

EAST, WEST = "Etc/GMT-3", "Etc/GMT+5"
HOUR = timedelta(hours=1)


def hours(begins, ends, *, utc_offset=0):
    """Quiet hours from and to so many hours from now, in a zone with this offset."""
    now = sql.now() + timedelta(hours=utc_offset)
    return {"from": f"{now + begins * HOUR:%H:%M}", "to": f"{now + ends * HOUR:%H:%M}"}


def send(channel, **fields):
    request = SendRequest(
        content=Content(body="Fresh bread"), target_platforms=(Platform.WEB,), **fields
    )
    return notification_accept(channel=channel, request=request)


def in_zone(devices, zone):
    for _, row in devices:
        Subscription.objects.filter(pk=row.pk).update(timezone=zone)


def quiet_from_now_on(notification, quiet):
    """Of a notification whose recipients are planned."""
    Notification.objects.filter(pk=notification.pk).update(
        timing=Timing(timezone="UTC", quiet=Quiet.of(quiet), quiet_from="send").stored()
    )


def test_recipients_wait_until_their_quiet_hours_end(sandbox, channel):
    (east,) = factories.subscribe_browsers(sandbox, channel, 1)
    (west,) = factories.subscribe_browsers(sandbox, channel, 1)
    in_zone([east], EAST)
    in_zone([west], WEST)
    notification = send(channel)
    support.plan(notification)
    quiet_from_now_on(notification, hours(-1, 2, utc_offset=3))
    support.deliver(notification)

    assert len(west[0].receipts) == 1
    assert east[0].receipts == []
    waiting = support.delivery(notification, east[1])
    assert (waiting.code, waiting.attempts, waiting.first_attempt_at) == ("quiet_hours", 0, None)
    assert timedelta(minutes=118) < waiting.due_at - sql.now() <= 2 * HOUR
    batch = Batch.objects.get(pk=waiting.batch_id)
    assert (batch.status, batch.due_at) == ("ready", waiting.due_at)
    assert support.counts(notification) == ("processing", 2, 1, 0)

    quiet_from_now_on(notification, hours(-2, -1, utc_offset=3))
    support.make_due(notification)
    support.deliver(notification)
    assert len(east[0].receipts) == 1
    assert support.counts(notification) == ("sent", 2, 2, 0)


def test_the_attempts_of_a_recipient_begin_anew_after_its_quiet_hours(sandbox, channel):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    device.behave("throttled")
    notification = support.send(channel, ttl=86_400)
    assert support.delivery(notification, row).attempts == 1
    quiet_from_now_on(notification, hours(-1, 2))
    support.make_due(notification)
    support.deliver(notification)

    waiting = support.delivery(notification, row)
    assert (waiting.code, waiting.attempts, waiting.first_attempt_at) == ("quiet_hours", 0, None)
    assert len(device.receipts) == 1


def test_who_cannot_be_reached_in_time_expires(sandbox, channel):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    notification = factories.make_notification(channel, ttl=600)
    support.plan()
    quiet_from_now_on(notification, hours(-1, 2))
    support.deliver(notification)

    bounced = support.delivery(notification, row)
    assert (bounced.code, bounced.detail) == ("expired", "quiet_hours")
    assert device.receipts == []
    assert support.counts(notification) == ("sent", 1, 0, 1)


def test_a_start_at_night_releases_each_zone_in_its_morning(channel):
    factories.add_each(channel, [{"timezone": EAST}, {"timezone": WEST}])
    quiet = hours(-1, 2, utc_offset=3)
    notification = send(channel, quiet_hours=quiet)
    assert plan_queue.start_due() == 0
    assert timed_starts.start_timed() == 1
    west, east, movers = notification.plans.order_by("part")
    assert (west.zones, east.zones, movers.driver) == ([WEST], [EAST], "movers")
    assert east.release_at.astimezone(zoneinfo.ZoneInfo(EAST)).strftime("%H:%M") == quiet["to"]
    support.plan(notification)
    assert notification.recipient_count == 1


def test_by_day_it_starts_as_any_other(channel):
    factories.add_each(channel, [{"timezone": EAST}, {"timezone": WEST}])
    notification = send(channel, quiet_hours=hours(1, 2, utc_offset=-1))
    support.plan(notification)
    assert [each.driver for each in notification.plans.all()] == ["scan"]


def test_quiet_hours_win_over_the_local_time(channel):
    factories.add_each(channel, [{"timezone": EAST}])
    soon = sql.now() + 4 * HOUR  # in an hour, in the zone
    notification = send(
        channel,
        local_at=f"{soon:%Y-%m-%dT%H:%M}",
        quiet_hours=hours(0, 3, utc_offset=3),
    )
    asked = notification.timed
    assert notification.scheduled_at == asked.release(EAST)
    assert notification.scheduled_at - sql.now() > 2 * HOUR


def test_a_send_to_targets_keeps_them_without_parts(sandbox, channel):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    in_zone([(device, row)], EAST)
    notification = send(
        channel,
        targets=(TargetId(subscription_id=row.pk),),
        quiet_hours=hours(-1, 2, utc_offset=3),
    )
    support.plan(notification)
    support.deliver(notification)
    assert [each.driver for each in notification.plans.all()] == ["ids"]
    assert support.codes(notification) == ["quiet_hours"]
    assert device.receipts == []
    _, found = devices_asked(channel.pk, subscription_id=row.pk)
    (explained,) = notification_explained(channel, notification.pk, found).devices
    assert (explained.verdict, explained.because) == ("waiting", "quiet_hours")
    assert "quiet hours end" in explained.steps[0].detail


def test_a_test_ignores_them(sandbox, channel):
    settings_of(channel, hours(-1, 2))
    ((device, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    notification = notification_test(
        channel=channel, content=Content(body="x"), subscription_id=row.pk
    )
    support.plan(notification)
    support.deliver(notification)
    assert len(device.receipts) == 1


def settings_of(channel, quiet_hours, timezone="UTC"):
    delivery_settings_replace(
        channel_id=channel.pk,
        timezone=timezone,
        rate_per_minute=None,
        category_required=False,
        quiet_hours=quiet_hours,
    )
    channel.refresh_from_db()


NIGHT = {"from": "22:00", "to": "08:00"}


def test_settings_of_the_channel_reach_its_pending_notifications(channel):
    later = sql.now() + HOUR
    plain = send(channel, scheduled_at=later)
    ignoring = send(channel, scheduled_at=later, quiet_hours="ignore")
    own = send(channel, scheduled_at=later, quiet_hours={"from": "01:00", "to": "02:00"})
    local = send(channel, local_at="2031-12-24T18:00")

    def quiet(notification):
        notification.refresh_from_db()
        timing = notification.timed
        return timing and (timing.quiet and timing.quiet.stored(), timing.timezone)

    settings_of(channel, NIGHT, timezone="Asia/Tokyo")
    assert quiet(plain) == (NIGHT, "Asia/Tokyo")
    assert quiet(ignoring) == (None, "Asia/Tokyo")
    assert quiet(own) == ({"from": "01:00", "to": "02:00"}, "Asia/Tokyo")
    assert quiet(local) == (NIGHT, "Asia/Tokyo")
    assert quiet(send(channel, scheduled_at=later)) == (NIGHT, "Asia/Tokyo")

    settings_of(channel, None)
    assert quiet(plain) is None
    assert quiet(ignoring) == (None, "UTC")
    assert quiet(local) == (None, "UTC")


def test_settings_of_the_channel_move_the_first_release_of_pending_notifications(channel):
    ada = factories.make_person(channel, "ada")
    factories.add_each(channel, [{"timezone": ""}, {"timezone": EAST, "person": ada}])
    at = f"{sql.now() + 72 * HOUR:%Y-%m-%dT23:00}"
    to_all = send(channel, local_at=at)
    to_ada = send(channel, local_at=at, targets=(TargetId(external_id="ada"),))
    plain = send(channel, scheduled_at=sql.now() + HOUR)

    def times():
        for each in (to_all, to_ada, plain):
            each.refresh_from_db()
        return [f"{each.scheduled_at:%H:%M}" for each in (to_all, to_ada)]

    before = plain.scheduled_at
    assert times() == ["20:00", "20:00"]
    settings_of(channel, None, timezone="Asia/Tokyo")
    assert times() == ["14:00", "20:00"]
    settings_of(channel, NIGHT, timezone="UTC")
    assert times() == ["05:00", "05:00"]
    settings_of(channel, None)
    assert times() == ["20:00", "20:00"]
    assert plain.scheduled_at == before


def test_an_edit_that_changes_nothing_is_none_after_a_change_of_the_settings_either(channel):
    pending = [
        send(channel, scheduled_at=sql.now() + HOUR),
        send(channel, scheduled_at=sql.now() + HOUR, quiet_hours="ignore"),
        send(channel, local_at="2031-12-24T18:00"),
    ]
    for quiet in (NIGHT, None):
        settings_of(channel, quiet, timezone="Asia/Tokyo")
        for each in pending:
            notification_edit(
                channel=channel, notification_id=each.pk, changes={"body": "Fresh bread"}
            )
            each.refresh_from_db()
            assert each.edited_at is None


def test_an_edit_from_ignore_takes_those_of_the_channel(channel):
    settings_of(channel, NIGHT)
    notification = send(channel, scheduled_at=sql.now() + HOUR, quiet_hours="ignore")
    assert notification.timed.quiet is None

    def edited(**changes):
        return notification_edit(channel=channel, notification_id=notification.pk, changes=changes)

    assert edited(body="other").timed.quiet_from == "ignore"
    assert edited(quiet_hours="channel").timed.quiet.stored() == NIGHT
    assert edited(quiet_hours={"from": "01:00", "to": "02:00"}).timed.quiet_from == "send"
    assert edited(quiet_hours=None).timed.quiet.stored() == NIGHT


@pytest.fixture
def tzdata(tmp_path):
    zoneinfo.reset_tzpath(to=[str(tmp_path)])
    _zone.cache_clear()
    yield tmp_path
    zoneinfo.reset_tzpath()
    _zone.cache_clear()


def test_a_pass_makes_no_further_call_from_the_border_on(sandbox, channel, tzdata, settings):
    settings.CALLS_IN_FLIGHT = 1
    devices = factories.subscribe_browsers(sandbox, channel, 60)
    for device, _ in devices:
        device.behave("slow", seconds=0.1)
    border = int(sql.now().timestamp()) + 3
    write_zones(tzdata, Own=border)  # it is nine o'clock there
    in_zone(devices, "Own")
    notification = send(channel)
    support.plan(notification)
    quiet_from_now_on(notification, {"from": "09:00", "to": "17:00"})
    support.deliver(notification)

    called = [receipt.at for device, _ in devices for receipt in device.receipts]
    assert called
    assert max(called) < border + 0.5  # it began before
    assert support.counts(notification)[1:] == (60, len(called), 0)
    left = Delivery.objects.filter(notification_id=notification.pk, status=0)
    assert set(left.values_list("code", flat=True)) <= {"quiet_hours", ""}
    support.make_due(notification)
    support.deliver(notification)
    assert sum(len(device.receipts) for device, _ in devices) == len(called)
    assert set(left.values_list("code", flat=True)) == {"quiet_hours"}


def test_after_quiet_hours_a_recipient_is_wanted_from_their_end_on(channel):
    """Although further attempts have replaced the time until which it waited."""
    factories.add_subscriptions(channel, 1)
    notification = send(channel)
    support.plan(notification)
    quiet_from_now_on(notification, hours(-12, -2))
    asked, called = sql.now() - 10 * HOUR, sql.now() - HOUR
    Notification.objects.update(scheduled_at=asked, created_at=asked)
    Delivery.objects.update(attempts=1, first_attempt_at=called, code="throttled", due_at=Now())
    (recipient,) = reading.read([support.claim()]).recipients
    assert HOUR < sql.now() - recipient.delivery.wanted_at < 3 * HOUR


def test_who_needs_no_quiet_hours_reads_no_time_zone(channel):
    factories.add_subscriptions(channel, 1)
    notification = send(channel)
    support.plan(notification)
    (recipient,) = reading.read([support.claim()]).recipients
    assert recipient.device.timezone == ""
    assert recipient.quiet_at == float("inf")


def test_a_batch_that_a_pause_holds_over_the_border_waits_for_the_morning(sandbox, channel):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    notification = send(channel, quiet_hours=hours(2, 5))
    support.plan(notification)
    quiet_from_now_on(notification, hours(-1, 2))  # three hours have passed
    Batch.objects.update(due_at=Now())
    support.deliver(notification)
    assert device.receipts == []
    assert support.delivery(notification, row).code == "quiet_hours"


def at_night(provider, channel, *zones):
    """A send to a phone in each zone, which is planned and has quiet hours in EAST now."""
    provider.store(channel)
    phones = provider.devices(channel, len(zones))
    for phone, zone in zip(phones, zones, strict=True):
        in_zone([phone], zone)
    notification = factories.make_notification(
        channel, target_platforms=[provider.platform], ttl=86_400
    )
    support.plan(notification)
    quiet_from_now_on(notification, hours(-1, 2, utc_offset=3))
    return notification, [row for _, row in phones]


def credentials_are_refused(is_refused):
    ProviderCredential.objects.update(paused_at=Now() if is_refused else None)


def test_at_night_a_batch_does_not_begin_to_wait_for_credentials(provider, channel, settings):
    settings.PARKED_SECONDS = 0
    notification, (row,) = at_night(provider, channel, EAST)
    credentials_are_refused(True)
    dispatch.deliver(provider.platform, seconds=30)
    support.tick()

    waiting = support.delivery(notification, row)
    batch = Batch.objects.get()
    assert waiting.code == "quiet_hours"
    assert (batch.status, batch.parked_at, batch.due_at) == ("ready", None, waiting.due_at)


def test_who_waits_for_the_morning_does_not_bounce_with_a_parked_batch(provider, channel, settings):
    notification, (east, west) = at_night(provider, channel, EAST, WEST)
    credentials_are_refused(True)
    dispatch.deliver(provider.platform, seconds=30)
    assert support.batch_statuses() == {"parked"}
    settings.PARKED_SECONDS = 0
    support.tick()

    codes = [support.delivery(notification, each).code for each in (east, west)]
    assert codes == ["quiet_hours", "credentials_refused"]
    assert support.batch_statuses() == {"ready"}

    credentials_are_refused(False)
    quiet_from_now_on(notification, hours(-2, -1, utc_offset=3))
    support.make_due(notification)
    dispatch.deliver(provider.platform, seconds=30)
    assert support.counts(notification) == ("sent", 2, 1, 1)

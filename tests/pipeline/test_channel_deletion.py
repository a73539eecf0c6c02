"""Deleting a channel while it sends, and the deletion by a housekeeper that is killed."""

from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from channels_app.models import Channel
from channels_app.selectors import ChannelDeleted
from notifications_app import tasks
from notifications_app.content.values import Content, SendRequest
from notifications_app.deletion import (
    DeletionBegun,
    deletion_ask,
    deletion_undo,
    halt_deleted,
    purge_deleted,
)
from notifications_app.models import Contact, Delivery, Notification, Schedule
from notifications_app.sends.firing import fire_next
from notifications_app.sends.services import notification_accept, notification_resume
from pushsvc.common.platforms import Platform
from subscriptions_app.models import LastClick, Subscription
from tests import factories
from tests.calls import standing_still
from tests.pipeline import support
from tests.pipeline.processes import kill
from tests.scrape import scrape


def ask(channel):
    return deletion_ask(channel_id=channel.pk)


def pass_the_day(channel):
    Channel.objects.filter(pk=channel.pk).update(deletion_asked_at=Now() - timedelta(days=1))


def send_now(channel):
    request = SendRequest(content=Content(body="Hello"), target_platforms=(Platform.WEB,))
    return notification_accept(channel=channel, request=request)


def paused(*notifications):
    for each in notifications:
        each.refresh_from_db()
    return [each.is_paused for each in notifications]


def rows():
    """Of all channels, but the audit log's."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        names = {name for (name,) in cursor.fetchall()} - {"auditlog_logentry"}
        found = {}
        for name in sorted(names):
            cursor.execute(f'SELECT count(*) FROM "{name}"')  # noqa: S608
            found[name] = cursor.fetchone()[0]
    return found


def test_a_send_with_an_old_copy_of_the_channel_is_refused(channel):
    stale = Channel.objects.get(pk=channel.pk)
    ask(channel)

    with pytest.raises(ChannelDeleted):
        send_now(stale)
    assert not Notification.objects.exists()


def test_a_send_that_is_stored_at_the_same_moment_is_paused(channel):
    """The request to delete waits until the send has committed."""
    with support.waits_for(lambda: send_now(channel), lambda: ask(channel)):
        pass

    assert paused(*Notification.objects.all()) == [True]
    support.plan()
    assert not Delivery.objects.exists()


def test_nothing_is_sent_until_the_deletion_is_undone(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 3)
    now = factories.make_notification(channel)
    running = factories.make_notification(channel, scheduled_at=Now() - timedelta(minutes=1))
    support.plan()
    later = factories.make_notification(channel, scheduled_at=Now() + timedelta(hours=2))
    by_staff = factories.make_notification(
        channel, scheduled_at=Now() + timedelta(hours=2), paused_at=Now()
    )
    missed = factories.make_notification(channel, scheduled_at=Now() + timedelta(minutes=5))
    ask(channel)
    Notification.objects.filter(pk=missed.pk).update(scheduled_at=Now())
    support.plan()
    support.deliver()
    support.tick()

    assert [len(device.receipts) for device, _ in devices] == [0, 0, 0]
    assert paused(now, running, later, by_staff, missed) == [True] * 5
    with pytest.raises(ChannelDeleted):
        notification_resume(channel_id=channel.pk, notification_id=now.pk)

    deletion_undo(channel_id=channel.pk)

    assert paused(now, running, later, by_staff, missed) == [True, True, False, True, True]
    for each in (now, running, missed):
        notification_resume(channel_id=channel.pk, notification_id=each.pk)
    support.plan()
    support.deliver()
    assert [len(device.receipts) for device, _ in devices] == [3, 3, 3]


def test_a_schedule_waits_for_the_end_of_the_deletion(channel):
    schedule = factories.make_schedule(channel)
    Schedule.objects.filter(pk=schedule.pk).update(next_at=Now())
    ask(channel)

    assert not fire_next()
    deletion_undo(channel_id=channel.pk)
    assert fire_next()
    schedule.refresh_from_db()
    assert schedule.is_enabled
    assert Notification.objects.count() == 1


def test_housekeeping_pauses_what_a_killed_request_left(channel):
    """The process died when it had stored that the channel is to be deleted."""
    running = factories.make_notification(channel)
    support.plan()
    pending = factories.make_notification(channel)
    factories.add_subscriptions(channel, 1)
    Channel.objects.filter(pk=channel.pk).update(deletion_asked_at=Now())
    running.refresh_from_db()
    assert running.status == "sent"
    sending = factories.make_notification(channel)
    Notification.objects.filter(pk=pending.pk).update(scheduled_at=Now() + timedelta(hours=1))
    support.plan()

    halt_deleted()

    assert paused(pending, sending) == [True, True]


def test_after_a_day_it_cannot_be_undone(channel):
    ask(channel)
    pass_the_day(channel)

    with pytest.raises(DeletionBegun):
        deletion_undo(channel_id=channel.pk)


def test_rows_are_not_deleted_while_the_deletion_is_being_undone(tampered_channel):
    """An undo that began in time, and commits after the day."""
    factories.add_subscriptions(tampered_channel, 1)
    ask(tampered_channel)
    pass_the_day(tampered_channel)
    own = Channel.objects.filter(pk=tampered_channel.pk)

    support.waits_for_nobody(own, purge_deleted)

    assert Subscription.objects.count() == 1
    purge_deleted()
    assert Subscription.objects.count() == 0


def test_a_housekeeper_that_is_killed_leaves_nothing_behind(
    processes, sandbox, tampered_channel, channel
):
    factories.subscribe_browsers(sandbox, channel, 1)
    kept = support.send(channel)
    before = rows()
    gone = tampered_channel
    factories.add_crowd(gone, 30_000)
    factories.subscribe_browsers(sandbox, gone, 2)
    support.send(gone, target_platforms=["web"])
    ask(gone)
    pass_the_day(gone)
    stored = Subscription.objects.count()

    victim = processes.start("worker-plan")
    tasks.housekeeping.apply_async(queue="tick")
    support.until(lambda: Subscription.objects.count() < stored)
    kill(victim)
    # PostgreSQL ends the statement first. Until then others leave the channel to it.
    with transaction.atomic():
        assert Channel.objects.select_for_update().filter(pk=gone.pk).first()
    processes.start("worker-plan")
    tasks.housekeeping.apply_async(queue="tick")
    support.until(lambda: not Channel.objects.filter(pk=gone.pk).exists())

    before["channels_app_channel"] -= 1
    before["channels_app_vapidkey"] -= 1
    before["channels_app_deletedtotals"] += 1
    assert rows() == before
    assert support.counts(kept) == ("sent", 1, 1, 0)
    entry = LogEntry.objects.get(object_pk=str(gone.pk), action=2)
    assert entry.additional_data["note"] == "The channel was deleted with everything that it had."


def test_the_counters_of_metrics_do_not_fall_with_a_channel(sandbox, channel, tampered_channel):
    """Prometheus takes a fall for a restart, and the whole count for an increase."""
    for each, devices in ((channel, 1), (tampered_channel, 2)):
        factories.subscribe_browsers(sandbox, each, devices)
        support.send(each)
    names = ("notifications_sent", "recipients", "delivered", "bounced", "clicked")
    before = [scrape()[f"pushsvc_{name}_total"] for name in names]
    assert [each[()] for each in before] == [2, 3, 3, 0, 0]

    for each in (tampered_channel, channel):
        ask(each)
        pass_the_day(each)
        purge_deleted()
        assert [scrape()[f"pushsvc_{name}_total"] for name in names] == before
    assert not Channel.objects.exists()


def test_contacts_are_deleted_with_those_whom_they_name(tampered_channel, channel):
    for each in (tampered_channel, channel):
        Channel.objects.filter(pk=each.pk).update(caps=[{"limit": 3, "hours": 24}])
        person = factories.make_person(each, "ada")
        factories.add_each(each, [{"person": person}, {}])
        each.refresh_from_db()
        send_now(each)
    support.plan()
    contacts = Contact.objects.filter(channel_id=channel.pk)
    assert (contacts.count(), Contact.objects.count()) == (2, 4)
    ask(tampered_channel)
    pass_the_day(tampered_channel)

    with CaptureQueriesContext(connection) as captured:
        purge_deleted()

    assert (contacts.count(), Contact.objects.count()) == (2, 2)
    assert not any("notifications_app_contact WHERE channel" in each["sql"] for each in captured)


def test_a_channel_is_deleted_under_a_worker_that_is_calling(processes, sandbox, tampered_channel):
    """The worker stands still for longer than a day, as it seems. Its outcomes find no rows."""
    devices = factories.subscribe_browsers(sandbox, tampered_channel, 3)
    factories.make_notification(tampered_channel)
    support.plan()
    with standing_still([device for device, _ in devices]) as called:
        processes.start("worker-web")
        called()
        ask(tampered_channel)
        pass_the_day(tampered_channel)
        purge_deleted()
    assert not Channel.objects.filter(pk=tampered_channel.pk).exists()

    other = factories.make_channel("Bob's")
    factories.subscribe_browsers(sandbox, other, 1)
    later = factories.make_notification(other)
    support.plan()
    support.until(lambda: support.is_sent(later))
    assert Delivery.objects.count() == 1


@pytest.mark.django_db
def test_last_clicks_are_deleted_with_their_devices():
    """A step that looked for them would read all devices that have none, each time again."""
    channel = factories.make_channel()
    (device,) = factories.add_subscriptions(channel, 1)
    LastClick.objects.create(subscription=device, clicked_at=Now())
    ask(channel)
    pass_the_day(channel)

    with support.statements() as made:
        purge_deleted()

    assert not LastClick.objects.exists()
    assert not [each for each in made if LastClick._meta.db_table in each]

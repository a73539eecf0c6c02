"""The parts of the pipeline, called as workers call them, and reads of what they wrote."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from django.db import connection
from django.db.models import F, Sum
from django.db.models.functions import Now

from channels_app.selectors import channel_totals
from notifications_app import tasks
from notifications_app.models import (
    Batch,
    Delivery,
    HourlyStat,
    Notification,
    OutcomeMinute,
    Plan,
)
from notifications_app.pipeline import batches, breakers, dispatch, planning
from notifications_app.states import DeliveryStatus
from pushsvc.common.store import sql
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.models import Subscription
from tests import factories


def until(condition, seconds=60):
    """Waits for what another thread or process does."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return value


def waiting_sessions():
    """How many sessions of this database wait for a lock; visible inside a transaction, too."""
    sql.rows("SELECT pg_stat_clear_snapshot()", {})
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return sql.rows(waiting, {})[0][0]


def cut_other_connections():
    """Ends every other session of the database, as its restart would."""
    sql.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        {},
    )


def in_threads(*calls):
    """Makes the calls at once, each on its own database connection; their results."""
    start = threading.Barrier(len(calls))

    def run(call):
        start.wait(timeout=60)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        begun = [pool.submit(closing_connection(run), call) for call in calls]
        return [future.result() for future in begun]


def closing_connection(call):
    """The call, for a thread that does nothing else: it leaves no database connection open."""

    def run(*arguments):
        try:
            return call(*arguments)
        finally:
            connection.close()

    return run


def plan(notification=None):
    planning.work(seconds=30)
    if notification is not None:
        notification.refresh_from_db()


def claim(platform="web", skip=(), processes=4):
    return batches.claim(platform, skip=list(skip), processes=processes)


def deliver(notification=None, seconds=30):
    dispatch.deliver("web", seconds=seconds)
    if notification is not None:
        notification.refresh_from_db()


def send(channel, **fields):
    """Plans and delivers as far as possible at once."""
    notification = factories.make_notification(channel, **fields)
    plan()
    deliver(notification)
    return notification


def tick():
    tasks.tick()


def make_due(notification):
    """Ends the waits of deferred recipients."""
    Delivery.objects.filter(notification_id=notification.id, status=0).update(due_at=None)
    Batch.objects.filter(notification=notification, status="ready").update(due_at=Now())


def end_breaker_waits():
    """Ends the waits of all open breakers, which are half-open then."""
    redis_client().delete(breakers._OPEN)


def age(notification, **by):
    """Moves the first attempts at the notification's recipients into the past."""
    tried = Delivery.objects.filter(notification_id=notification.id, first_attempt_at__isnull=False)
    tried.update(first_attempt_at=F("first_attempt_at") - timedelta(**by))


def end_time(notification):
    """Moves the notification's deadline into the past."""
    past = Now() - timedelta(seconds=1)
    Notification.objects.filter(pk=notification.pk).update(deadline_at=past)


def lose_lease(batch_id):
    """Ends the lease, as if its worker had died two minutes ago."""
    Batch.objects.filter(pk=batch_id).update(lease_until=Now() - timedelta(seconds=1))
    batches.free_lost()


def is_sent(notification):
    notification.refresh_from_db()
    return notification.status == "sent"


def counts(notification):
    notification.refresh_from_db()
    return (
        notification.status,
        notification.recipient_count,
        notification.delivered_count,
        notification.bounced_count,
    )


def deliveries(notification):
    return Delivery.objects.filter(notification_id=notification.id)


def delivery(notification, subscription):
    return Delivery.objects.get(notification_id=notification.id, subscription_id=subscription.id)


def codes(notification):
    return sorted(deliveries(notification).values_list("code", flat=True))


def batch_statuses():
    return set(Batch.objects.values_list("status", flat=True))


def is_active(subscription):
    subscription.refresh_from_db()
    return subscription.expired_at is None


def waiting(queue):
    """How many wakeups wait in the broker's queue."""
    return redis_client().llen(queue)


def logged(caplog, event):
    return [record for record in caplog.records if record.message == event]


def assert_exact(channel):
    """Every sum of the channel agrees with its delivery rows."""
    assert_outcomes_exact(channel)
    _assert_events_exact(channel)


def assert_outcomes_exact(channel):
    """The sums of outcomes agree with the delivery rows."""
    for notification in Notification.objects.filter(channel=channel):
        rows = Delivery.objects.filter(notification_id=notification.id)
        delivered = rows.filter(status=DeliveryStatus.DELIVERED).count()
        bounced = rows.filter(status=DeliveryStatus.BOUNCED).count()
        assert (notification.recipient_count, notification.delivered_count) == (
            rows.count(),
            delivered,
        )
        assert notification.bounced_count == bounced
        batches_ = Batch.objects.filter(notification=notification)
        batch_platforms = dict(batches_.values_list("id", "platform"))
        sums = batches_.aggregate(
            r=Sum("recipient_count", default=0),
            d=Sum("delivered_count", default=0),
            b=Sum("bounced_count", default=0),
        )
        assert sums == {"r": rows.count(), "d": delivered, "b": bounced}
        assert minutes(notification) == Counter(
            (batch_platforms[batch_id], code)
            for batch_id, code in rows.exclude(status=0).values_list("batch_id", "code")
        )
    totals = channel_totals(channel.id)
    sums = Notification.objects.filter(channel=channel).aggregate(
        r=Sum("recipient_count", default=0),
        d=Sum("delivered_count", default=0),
        b=Sum("bounced_count", default=0),
    )
    assert (totals.recipients, totals.delivered, totals.bounced) == tuple(sums.values())
    active = Subscription.objects.filter(channel=channel, expired_at=None).count()
    assert totals.subscribers == active
    sent = Notification.objects.filter(channel=channel, status="sent").count()
    assert totals.notifications_sent == sent
    hourly = HourlyStat.objects.filter(channel=channel).aggregate(
        r=Sum("recipients", default=0), d=Sum("delivered", default=0), b=Sum("bounced", default=0)
    )
    assert hourly == sums


def _assert_events_exact(channel):
    """The sums of events agree with the delivery rows."""
    clicked = 0
    for notification in Notification.objects.filter(channel=channel):
        rows = deliveries(notification)
        counted = (
            notification.received_count,
            notification.clicked_count,
            notification.dismissed_count,
        )
        assert counted == (
            rows.exclude(received_at=None).count(),
            rows.exclude(clicked_at=None).count(),
            rows.exclude(dismissed_at=None).count(),
        )
        clicked += notification.clicked_count
    assert channel_totals(channel.id).clicked == clicked
    hours = HourlyStat.objects.filter(channel=channel)
    assert hours.aggregate(clicked=Sum("clicked", default=0)) == {"clicked": clicked}


def minutes(notification):
    """The outcomes by (platform, code), from the rows of minutes."""
    ended = Counter()
    for row in OutcomeMinute.objects.filter(notification=notification):
        ended[row.platform, row.code] += row.count
    return ended


def open_plans():
    return Plan.objects.exclude(status="done").count()

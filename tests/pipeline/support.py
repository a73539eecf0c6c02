"""The parts of the pipeline, called as workers call them, and reads of what they wrote."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from channels_app.models import WebhookAttempt, WebhookMessage
from notifications_app import tasks
from notifications_app.models import (
    Batch,
    Delivery,
    EventHour,
    Notification,
    Plan,
    Target,
)
from notifications_app.pipeline import batches, breakers, dispatch, plan_queue, planning
from notifications_app.pipeline.transitions import DueDelivery
from pushsvc.common.store import sql
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.models import Subscription, Tag
from tests import factories
from tests.pipeline.exactness import assert_exact as assert_exact
from tests.pipeline.exactness import assert_outcomes_exact as assert_outcomes_exact
from tests.pipeline.exactness import assert_people_exact as assert_people_exact


def other_session():
    """Another session of the role in the test's database."""
    parameters = connection.get_connection_params()
    names = ("host", "port", "dbname", "user", "password")
    return psycopg.connect(**{name: parameters[name] for name in names})


@contextmanager
def cancelled_statements(table, limit="statement_timeout"):
    """PostgreSQL cancels our statements on the table, by this limit. For tests that commit."""
    with other_session() as holder, connection.cursor() as cursor:
        holder.execute(f"LOCK TABLE {table}")
        cursor.execute(f"SET {limit} = {10 if limit == 'lock_timeout' else 500}")  # milliseconds
        try:
            yield
        finally:
            cursor.execute(f"RESET {limit}")


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


@contextmanager
def waits_for(held, call):
    """Makes the call beside a transaction that holds the rows `held`, or that made the changes of
    the callable `held`. The call must wait for it. The block runs while it waits. Then the
    transaction ends, and the call must succeed."""
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            held() if callable(held) else list(held.select_for_update(no_key=True))
            called = pool.submit(closing_connection(call))
            until(lambda: called.done() or waiting_sessions())
            assert not called.done(), called.result()
            yield
        called.result(timeout=60)


def waits_for_nobody(held, call):
    """The result of the call, which must not wait although another session holds the rows."""
    with transaction.atomic():
        list(held.select_for_update(no_key=True))
        return in_threads(lambda: (_no_waits(), call()))[0][1]


def _no_waits():
    sql.rows("SELECT set_config('lock_timeout', '5s', false)", {})


def unlocked(rows):
    """The keys of the rows that no other session has locked to change them."""
    free = rows.select_for_update(skip_locked=True, no_key=True)
    return sorted(row.pk for row in free)


@transaction.atomic  # at whose end foreign keys are checked
def stored_backwards(rows):
    """Stores the rows anew in the reverse order of their keys, in which a statement that has no
    order is most likely to read them."""
    again = list(rows.order_by("-pk"))
    rows._raw_delete(rows.db)
    for row in again:
        row.save(force_insert=True)


def plan(notification=None):
    planning.work(seconds=30)
    if notification is not None:
        notification.refresh_from_db()


def claim_plan():
    """One plan; None if none is due."""
    return next(iter(plan_queue.claim_plans(most=1)), None)


def plan_window(lease):
    """Plans the next window; whether there may be more."""
    return planning.plan_windows([lease]) != []


def started(channel, rule):
    """A notification to a new segment, and its only plan, claimed."""
    segment = factories.make_segment(channel, rule)
    notification = factories.make_notification(channel, segment_id=segment.id)
    plan_queue.start_due()
    return notification, claim_plan()


def windows_until_the_end(lease):
    count = 1
    while plan_window(lease):
        count += 1
    return count


def claim(platform="web", skip=(), processes=4):
    """One batch; None if none is due."""
    return next(iter(claim_together(platform, most=1, skip=skip, processes=processes)), None)


def claim_together(platform="web", most=100, skip=(), processes=4):
    return batches.claim(platform, most=most, skip=list(skip), processes=processes)


WANTED_AT = datetime(2026, 11, 20, tzinfo=UTC)


def due(row):
    """A delivery row, as a worker reads it."""
    return DueDelivery(
        row.batch_id,
        row.subscription_id,
        row.attempts,
        row.first_attempt_at,
        row.solo_attempts,
        WANTED_AT,
    )


def due_rows(lease):
    """The recipients of a claimed batch that wait, as its worker reads them."""
    return [due(row) for row in Delivery.objects.filter(batch_id=lease.batch_id, status=0)]


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
    """Moves the notification's deadline, and that of its parts, into the past."""
    for plan in Plan.objects.filter(notification_id=notification.pk):
        end_time_of_part(plan.pk)
    past = Now() - timedelta(seconds=1)
    Notification.objects.filter(pk=notification.pk).update(deadline_at=past)


def end_time_of_part(plan_id):
    """The same of one part alone."""
    Plan.objects.filter(pk=plan_id).update(deadline_at=Now() - timedelta(seconds=1))


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


def event_hours(notification):
    """The events by (platform, kind), from the rows of hours."""
    events = Counter()
    for row in EventHour.objects.filter(notification=notification):
        for kind in ("received", "clicked", "dismissed"):
            events[row.platform, kind] += getattr(row, kind)
    return +events


def open_plans():
    return Plan.objects.exclude(status="done").count()


@contextmanager
def statements():
    """The statements of the block, in a list that is filled at its end."""
    made = []
    with CaptureQueriesContext(connection) as captured:
        yield made
    made += [each["sql"] for each in captured]


def planned_ids(notification):
    return sorted(deliveries(notification).values_list("subscription_id", flat=True))


def ids(rows):
    return sorted(row.id for row in rows)


def most_rows_read(call, *, as_if_large=False):
    """The most rows that one node of a query plan reads, of the statements of `call`. They are
    undone, made again to be explained, and in the end made to last. PostgreSQL reads a small table
    whole, whatever indexes it has; `as_if_large`, it does so only where no index serves."""
    _forget_deleted_rows()
    with statements() as made, transaction.atomic():
        call()
        transaction.set_rollback(True)
    explainable = ("SELECT", "(SELECT", "WITH", "UPDATE", "DELETE")
    own = [each for each in made if each.lstrip().startswith(explainable)]
    read = max(_explained(each, as_if_large=as_if_large) for each in own)
    call()
    return read


@contextmanager
def nested_loops():
    """PostgreSQL joins by loops, which read the inner side again for each outer row, also where it
    locks rows."""
    methods = ("hashjoin", "mergejoin", "hashagg", "sort", "material")
    scans = ("indexscan", "indexonlyscan", "bitmapscan")
    for method in methods + scans:
        sql.execute(f"SET enable_{method} = off", {})
    try:
        yield
    finally:
        for method in methods + scans:
            sql.execute(f"RESET enable_{method}", {})


def _forget_deleted_rows():
    """An index has deleted rows and earlier versions until a vacuum, and a bitmap's count has them,
    too."""
    if not connection.in_atomic_block:
        sql.execute(f"VACUUM (INDEX_CLEANUP ON) {', '.join(_READ_TABLES)}", {})


_READ = (Plan, Batch, Delivery, Notification, Target, Subscription, Tag)
_READ_TABLES = [each._meta.db_table for each in (*_READ, WebhookAttempt, WebhookMessage)]


def _explained(statement, *, as_if_large):
    with transaction.atomic():
        if as_if_large:
            sql.execute("SET LOCAL enable_seqscan = off", {})
        doubled = statement.replace("%", "%%")
        explained = sql.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {doubled}", {})
        transaction.set_rollback(True)
    return _most_rows(explained[0][0][0]["Plan"])


def _most_rows(node):
    """In all loops, with those that it leaves out."""
    left_out = (count for name, count in node.items() if name.startswith("Rows Removed by"))
    own = node["Actual Loops"] * (node["Actual Rows"] + sum(left_out))
    return max([own, *map(_most_rows, node.get("Plans", []))])

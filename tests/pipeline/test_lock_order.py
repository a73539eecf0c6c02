"""Who waits for a row that another session holds, in which order, and who skips it:
docs/architecture.md, "Locks".

For the order, a test holds the first row. Whoever comes must wait for it without having locked a
later one. Two that lock in different orders would sooner or later wait for each other.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from notifications_app.erasure import person_forget
from notifications_app.models import (
    Automation,
    AutomationContact,
    AutomationEntry,
    Batch,
    Contact,
    Delivery,
    Notification,
    Plan,
    Target,
)
from notifications_app.pipeline import batches, outcomes, plan_queue, planning
from notifications_app.pipeline.followers import followers_forget
from notifications_app.pipeline.lease import HeldLeases, LeaseLost
from notifications_app.pipeline.transitions import EXPIRED, Transition
from notifications_app.sends import automation_firing as firing
from notifications_app.states import DeliveryStatus
from pushsvc.common.store import sql
from tests import factories
from tests.factories import make_direct_notification, make_person
from tests.pipeline import support
from tests.pipeline.parts import in_parts


def ready_together(channel, count):
    """The keys of the batches of so many notifications to one device."""
    factories.add_subscriptions(channel, 1)
    for _ in range(count):
        factories.make_notification(channel)
    support.plan()
    return list(Batch.objects.order_by("pk").values_list("pk", flat=True))


def claimed(channel, count):
    """Their leases, as one worker holds them."""
    ready_together(channel, count)
    leases = support.claim_together()
    # Renewed together, so that no index has the order in which they were claimed.
    Batch.objects.update(lease_until=Now() + timedelta(minutes=2))
    return leases


def accepted(leases):
    rows = [row for lease in leases for row in support.due_rows(lease)]
    return [Transition(row, DeliveryStatus.DELIVERED, attempts=1) for row in rows]


def assert_waits_for_the_first(rows, call):
    """The rows are stored in the other order, and the call should get them in the other order."""
    support.stored_backwards(rows)
    first, *others = sorted(rows.values_list("pk", flat=True))
    assert others
    with support.waits_for(rows.filter(pk=first), call):
        assert support.unlocked(rows.filter(pk__in=others)) == others


def test_a_flush_locks_batches_in_their_order(channel):
    leases = claimed(channel, 3)[::-1]
    assert_waits_for_the_first(
        Batch.objects.all(), lambda: outcomes.record(leases, accepted(leases))
    )


def test_a_window_locks_contacts_in_the_order_of_their_keys(channel):
    """A device's key is not in the order of devices if it belongs to somebody."""
    people = [make_person(channel, str(number)) for number in range(3)]
    factories.add_each(channel, [{"person": each} for each in people[::-1]])
    for _ in range(2):
        factories.make_notification(channel, caps=[{"limit": 3, "hours": 24}])
    plan_queue.start_due()
    first, second = plan_queue.claim_plans(most=2)
    planning.plan_windows([first])
    assert_waits_for_the_first(Contact.objects.all(), lambda: planning.plan_windows([second]))


def test_a_flush_locks_notifications_in_their_order(channel):
    leases = claimed(channel, 3)[::-1]
    assert_waits_for_the_first(
        Notification.objects.all(), lambda: outcomes.record(leases, accepted(leases))
    )


@pytest.mark.parametrize(
    "end",
    [
        lambda held: held.hand_back(finished_pass=True),
        lambda held: held.hand_back_failed(),
        lambda held: held.park(),
    ],
    ids=["hand back", "hand back after a failure", "park"],
)
def test_leases_of_one_pass_end_in_the_order_of_their_batches(channel, end):
    leases = claimed(channel, 3)[::-1]
    assert_waits_for_the_first(Batch.objects.all(), lambda: end(HeldLeases(leases)))


def test_a_flush_that_waits_for_another_claim_of_its_batch_writes_nothing(channel):
    leases = claimed(channel, 1)
    written = accepted(leases)

    def flush():
        with pytest.raises(LeaseLost):
            outcomes.record(leases, written)

    with support.waits_for(lambda: Batch.objects.update(lease_number=F("lease_number") + 1), flush):
        pass

    assert set(Delivery.objects.values_list("status", flat=True)) == {DeliveryStatus.WAITING}


def test_a_batch_that_is_claimed_meanwhile_does_not_bounce(channel):
    factories.add_subscriptions(channel, 2)
    notification = factories.make_notification(channel)
    support.plan()
    support.end_time(notification)
    batch = Batch.objects.get()

    with support.waits_for(support.claim, lambda: outcomes.bounce_overdue(batch.pk, EXPIRED)):
        pass

    assert support.batch_statuses() == {"leased"}
    assert set(Delivery.objects.values_list("status", flat=True)) == {DeliveryStatus.WAITING}


def to_people(channel, *names):
    """A started notification to these people; each has a device."""
    for name in names:
        factories.add_subscription(channel, person=make_person(channel, name))
    notification = make_direct_notification(channel, people=names)
    plan_queue.start_due()
    return notification


@pytest.mark.parametrize("window", [4, 100_000], ids=["alone", "with other sends"])
def test_targets_are_locked_in_the_order_of_the_send(channel, settings, window):
    settings.PLAN_WINDOW = window
    to_people(channel, "eve", "bob", "ada")
    to_people(channel, "amy")
    assert_waits_for_the_first(Target.objects.all(), lambda: planning.work(seconds=30))


@pytest.mark.usefixtures("patient_transactions")
def test_who_waits_for_the_targets_of_a_send_holds_none_of_another(channel, settings):
    settings.PLAN_WINDOW = 4  # so that each send has a statement
    first, second = [to_people(channel, f"ada-{n}", f"bob-{n}") for n in range(2)]
    last = Target.objects.filter(notification_id=second.pk, position=1)

    with support.waits_for(last, lambda: planning.work(seconds=30)):
        assert len(support.unlocked(Target.objects.filter(notification_id=first.pk))) == 2
        assert support.counts(first)[1] == 2


@pytest.mark.usefixtures("patient_transactions")
def test_who_waits_for_another_part_of_a_send_holds_no_part_of_another(channel):
    (device,) = factories.add_subscriptions(channel, 1, attributes={"plan": "pro"})
    first, second = [in_parts(channel)[0] for _ in range(2)]

    def plan_other_part():
        Delivery.objects.create(notification_id=second.pk, subscription_id=device.pk, batch_id=0)

    with support.waits_for(plan_other_part, lambda: planning.work(seconds=30)):
        assert support.planned_ids(first) == [device.pk]
        Delivery.objects.filter(batch_id=0).delete()


def welcomed(channel, *names):
    """Makes an automation that has contacted these people, and has another device of each in its
    queue."""
    people = [make_person(channel, name) for name in names]
    factories.make_automation(channel)
    Automation.objects.update(recipient="person")
    for _ in range(2):
        factories.add_each(channel, [{"person": each} for each in people[::-1]])
        if not AutomationContact.objects.exists():
            firing.fire_next()
    Automation.objects.update(fire_at=Now())


def test_an_automation_locks_contacts_in_the_order_of_their_keys(channel):
    welcomed(channel, "ada", "bob", "eve")
    assert_waits_for_the_first(AutomationContact.objects.all(), firing.fire_next)


def test_an_automation_that_waits_for_its_notification_holds_no_entry(channel):
    welcomed(channel, "ada", "bob")
    entries = AutomationEntry.objects.all()
    with support.waits_for(Plan.objects.filter(part=0), firing.fire_next):
        assert len(support.unlocked(entries)) == 2
    assert not entries.exists()


@pytest.mark.parametrize("rows", [AutomationEntry, AutomationContact])
def test_an_erasure_locks_what_automations_know_in_the_order_of_the_keys(channel, rows):
    welcomed(channel, "ada", "bob", "eve")
    known = {
        "keys": list(AutomationContact.objects.values_list("key", flat=True)),
        "subscription_ids": list(AutomationEntry.objects.values_list("subscription_id", flat=True)),
    }

    def forget():
        with support.nested_loops(), transaction.atomic():  # no index gives the rows an order
            followers_forget(channel.pk, **known)

    assert_waits_for_the_first(rows.objects.all(), forget)


@pytest.mark.parametrize("rows", [AutomationEntry, AutomationContact])
def test_an_erasure_that_waits_for_an_automation_holds_no_target(channel, rows):
    welcomed(channel, "ada")
    with support.waits_for(
        rows.objects.all(), lambda: person_forget(channel=channel, external_id="ada")
    ):
        assert len(support.unlocked(Target.objects.all())) == 1
    assert not rows.objects.exists()
    support.plan()


# --- who skips rows that others hold, and waits for nobody ----------------------------------------


def test_a_worker_claims_the_next_batch_while_another_claims_the_first(channel, settings):
    settings.BATCH_SIZE = 1
    factories.add_subscriptions(channel, 2)
    factories.make_notification(channel)
    support.plan()
    first, second = Batch.objects.order_by("pk")

    lease = support.waits_for_nobody(Batch.objects.filter(pk=first.pk), support.claim)

    assert lease.batch_id == second.pk


def test_a_batch_that_another_session_holds_is_not_claimed_along(channel):
    first, *others, held = ready_together(channel, 4)

    leases = support.waits_for_nobody(
        Batch.objects.filter(pk=held), lambda: support.claim_together()
    )

    assert {lease.batch_id for lease in leases} == {first, *others}


def test_a_lost_lease_that_its_worker_renews_just_now_is_not_freed(channel):
    renewed, lost = claimed(channel, 2)
    Batch.objects.update(lease_until=Now() - timedelta(seconds=1))

    freed = support.waits_for_nobody(Batch.objects.filter(pk=renewed.batch_id), batches.free_lost)

    assert freed == 1
    assert Batch.objects.get(status="ready").pk == lost.batch_id


def test_a_batch_that_was_claimed_since_the_statement_began_is_not_claimed_along(channel):
    """A trigger of the table holds the statement up after it began, and before it reads."""
    ready_together(channel, 4)
    first = support.claim()

    with held_up("notifications_app_batch"), ThreadPoolExecutor(1) as pool:
        along = pool.submit(support.closing_connection(lambda: batches._companions(first, 1, 9)))
        support.until(support.waiting_sessions)
        taken = support.claim()
        release()
        leases = along.result(timeout=60)

    assert len(leases) == 2
    assert taken.batch_id not in {lease.batch_id for lease in leases}
    assert Batch.objects.get(pk=taken.batch_id).lease_number == taken.number


@contextmanager
def held_up(table):
    """Updates of the table by other sessions wait when they have begun, until `release`."""
    sql.rows("SELECT pg_advisory_lock(1)", {})
    sql.execute(f"{_HOLD_UP} ON {table} EXECUTE FUNCTION hold_up()", {})
    try:
        yield
    finally:
        sql.rows("SELECT pg_advisory_unlock_all()", {})
        sql.execute("DROP FUNCTION hold_up CASCADE", {})


def release():
    sql.rows("SELECT pg_advisory_unlock_all()", {})


_HOLD_UP = """
CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
CREATE TRIGGER hold_up BEFORE UPDATE"""

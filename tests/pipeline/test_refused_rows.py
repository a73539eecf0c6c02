"""A recipient's row that the database refuses to change."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from channels_app.models import Channel
from notifications_app.models import Batch
from notifications_app.pipeline import batches, dispatch, outcomes
from notifications_app.pipeline.lease import HeldLeases
from notifications_app.pipeline.outcomes import RowsRefused
from notifications_app.pipeline.transitions import Transition
from notifications_app.reporting.attention import attention
from notifications_app.states import DeliveryStatus
from pushsvc.common.findings import Kind
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support


@pytest.fixture
def refuse():
    """From now on every UPDATE of the subscription's deliveries fails, until `refuse.end()`."""
    yield _Refusal
    _Refusal.end()


class _Refusal:
    def __init__(self, subscription):
        sql.execute(_FUNCTION, {})
        sql.execute(_TRIGGER.format(id=subscription.id), {})

    @staticmethod
    def end():
        sql.execute("DROP FUNCTION IF EXISTS refuse_this CASCADE", {})


def planned(sandbox, channel, count):
    """A notification for `count` devices, and these in the order of their subscriptions."""
    devices = factories.subscribe_browsers(sandbox, channel, count)
    notification = factories.make_notification(channel)
    support.plan()
    return notification, sorted(devices, key=lambda each: each[1].id)


def received(devices):
    return [len(device.receipts) for device, _ in devices]


def breaking():
    """The channels that have a notification on which workers break."""
    found = attention(Channel.objects.all(), now=timezone.now())
    return [each.channel_id for each in found if each.code == Kind.WORKERS_BREAK.code]


@pytest.mark.parametrize("place", [0, 3, 6])
def test_the_other_outcomes_are_written_and_no_recipient_is_called_again(
    sandbox, channel, refuse, caplog, place
):
    notification, devices = planned(sandbox, channel, 7)
    device, subscription = devices[place]
    device.behave("error", status=400)
    refuse(subscription)

    for _ in range(3):
        support.deliver(notification)
        Batch.objects.update(due_at=Now())

    assert support.counts(notification) == ("processing", 7, 6, 0)
    assert received(devices) == [1] * 7
    assert {record.error for record in support.logged(caplog, "outcome.refused")} == {
        "not this row"
    }
    assert support.logged(caplog, "outcome.unwritable") == []
    refuse.end()
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 7, 6, 1)


def test_a_deferred_recipient_is_tried_again(sandbox, channel, refuse):
    notification, devices = planned(sandbox, channel, 5)
    for device, _ in devices[1:]:
        device.behave("throttled", times=1)
    refuse(devices[0][1])

    support.deliver(notification)
    others = support.deliveries(notification).exclude(subscription_id=devices[0][1].id)
    others.update(due_at=None)
    Batch.objects.update(due_at=Now())
    support.deliver(notification)

    assert support.counts(notification) == ("processing", 5, 4, 0)
    assert received(devices) == [1, 2, 2, 2, 2]
    devices[0][0].behave("error", status=400)
    refuse.end()
    support.make_due(notification)
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 5, 4, 1)


def test_the_wait_for_a_refused_row_grows(sandbox, channel, refuse):
    notification, devices = planned(sandbox, channel, 1)
    devices[0][0].behave("error", status=400)
    refuse(devices[0][1])
    waits = []
    for _ in range(3):
        lease = support.claim()
        dispatch.deliver_batches([lease])
        waits.append((Batch.objects.get().due_at - lease.claimed_at).total_seconds())
        Batch.objects.update(due_at=Now())

    assert 1 <= waits[0] < waits[1] < waits[2]
    refuse.end()
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 1, 0, 1)


def test_staff_see_a_refused_row_until_it_is_written(sandbox, channel, refuse):
    notification, devices = planned(sandbox, channel, 5)
    refuse(devices[2][1])
    support.deliver(notification)
    assert breaking() == [channel.pk]

    refuse.end()
    support.make_due(notification)
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 5, 5, 0)
    assert breaking() == []


def test_batches_that_end_with_the_flush_of_a_refused_row_are_not_taken_for_lost(
    sandbox, channel, refuse, caplog, settings
):
    settings.FLUSH_OUTCOMES = settings.CALLS_IN_FLIGHT = settings.UNWRITTEN_OUTCOMES = 2
    (_, refused), (_, other) = factories.subscribe_browsers(sandbox, channel, 2)
    broken, *others = [
        factories.make_notification(channel, only_subscription_id=each.id)
        for each in (refused, other, other, other)
    ]
    support.plan()
    refuse(refused)

    dispatch.deliver_batches(support.claim_together())

    assert len(support.logged(caplog, "outcome.refused")) == 1
    assert support.logged(caplog, "batch.lease_lost") == []
    assert [support.counts(each)[0] for each in others] == ["sent"] * 3
    refuse.end()
    support.make_due(broken)
    support.deliver(broken)
    assert support.counts(broken) == ("sent", 1, 1, 0)


def test_a_flush_of_which_nothing_is_written_renews_no_lease(sandbox, channel, refuse):
    _, ((_, subscription),) = planned(sandbox, channel, 1)
    lease = support.claim()
    held = HeldLeases([lease])
    before = held.until
    accepted = Transition(*support.due_rows(lease), DeliveryStatus.DELIVERED, attempts=1)
    refuse(subscription)

    held.write_and_renew(lambda leases: outcomes.record(leases, [accepted]))

    assert held.until == before
    refuse.end()
    held.write_and_renew(lambda leases: outcomes.record(leases, [accepted]))
    assert held.until > before


@pytest.mark.parametrize("status", ["ready", "parked"])
def test_the_deadline_ends_the_other_recipients_and_batches(
    sandbox, channel, refuse, status, caplog
):
    broken, devices = planned(sandbox, channel, 5)
    refuse(devices[2][1])
    Batch.objects.update(status=status, parked_at=Now())
    support.end_time(broken)

    support.tick()

    assert support.deliveries(broken).filter(status=2).count() == 4
    assert len(support.logged(caplog, "outcome.refused")) == 1
    assert support.logged(caplog, "tick.step_failed") == []
    assert "its data" not in caplog.text
    assert batches.overdue() == []  # not each second
    refuse.end()
    Batch.objects.update(bounce_again_at=Now())
    support.tick()
    assert support.counts(broken)[1:] == (5, 0, 5)


def test_a_batch_that_broke_before_its_deadline_ends_at_it(sandbox, channel, refuse):
    notification, devices = planned(sandbox, channel, 5)
    refuse(devices[2][1])
    support.deliver(notification)
    refuse.end()
    Batch.objects.update(due_at=Now() + timedelta(minutes=2))  # as with a breaker's wait
    support.end_time(notification)

    support.tick()

    assert support.counts(notification) == ("sent", 5, 4, 1)


def test_a_failure_that_is_not_about_rows_is_not_isolated_row_by_row(
    sandbox, tampered_channel, caplog
):
    notification, _ = planned(sandbox, tampered_channel, 60)
    support.end_time(notification)
    Batch.objects.update(recipient_count=F("recipient_count") - 60)  # it refuses every count now
    with pytest.raises(RowsRefused):
        outcomes.bounce_overdue(Batch.objects.get().id, "expired")

    assert support.deliveries(notification).filter(status=0).count() == 60
    (record,) = support.logged(caplog, "outcome.refused")
    assert len(record.subscriptions) == 20


@pytest.fixture
def sessions_without_right(transactional_db):
    """The session of this test is that of a role that may not count. A new one is not."""
    role = f"no_right_{connection.settings_dict['NAME']}"
    sql.rows_of_last(_ROLE.format(role=role), {})
    yield
    connection.close()
    sql.rows_of_last(f"DROP OWNED BY {role}; DROP ROLE {role}; SELECT 1", {})


_ROLE = """
CREATE ROLE {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
REVOKE INSERT ON notifications_app_outcomeminute FROM {role};
SET ROLE {role};
SELECT 1
"""


@pytest.fixture
def sessions_with_a_limit(transactional_db):
    """The session of this test ends in its first flush, because a transaction may not take so
    long. A new one has no limit."""
    if connection.pg_version < 170_000:
        pytest.skip("transaction_timeout is a setting of PostgreSQL 17")
    sql.execute(_SLOW_ONCE, {})
    yield
    sql.execute("DROP FUNCTION slow_once CASCADE", {})
    sql.execute("DROP SEQUENCE flushes", {})


_SLOW_ONCE = """
CREATE SEQUENCE flushes;
CREATE FUNCTION slow_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('flushes') = 1 THEN PERFORM pg_sleep(60); END IF;
  RETURN new;
END $$;
CREATE TRIGGER slow_once BEFORE UPDATE ON notifications_app_delivery
FOR EACH ROW EXECUTE FUNCTION slow_once();
SET transaction_timeout = '1s'
"""


@pytest.mark.parametrize("state", ["sessions_without_right", "sessions_with_a_limit"])
def test_a_refusal_that_no_row_causes_is_one_of_the_database(sandbox, channel, request, state):
    """As while it is away: the outcome is kept and written later, and nobody is called again."""
    notification, devices = planned(sandbox, channel, 1)
    request.getfixturevalue(state)

    support.deliver(notification)

    assert support.counts(notification) == ("sent", 1, 1, 0)
    assert received(devices) == [1]


_FUNCTION = """
CREATE OR REPLACE FUNCTION refuse_this() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  RAISE EXCEPTION 'not this row' USING ERRCODE = 'data_corrupted', DETAIL = 'its data';
END $$
"""
_TRIGGER = """
CREATE TRIGGER refuse_this BEFORE UPDATE ON notifications_app_delivery
FOR EACH ROW WHEN (old.subscription_id = '{id}') EXECUTE FUNCTION refuse_this()
"""

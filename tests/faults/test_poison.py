"""Recipients whose answers break the flush or the worker every time."""

import pytest

from tests.faults import poison
from tests.faults.exactness import ENDED, WAITING, assert_exact, codes, outcomes, wait_ended
from tests.faults.processes import until
from tests.faults.support import many, pass_waits, status, timed_out

UNWRITABLE = "cannot be stored"


@pytest.fixture
def poisonable(system):
    """A database that refuses rows with certain words."""
    system.rows(_REFUSE)
    system.rows(_WHERE.format(words=UNWRITABLE))
    yield system
    system.rows("DROP FUNCTION faults_refuse CASCADE")


def answers(device, words):
    device.behave("error", status=400, body=words)


def test_an_answer_that_breaks_a_flush_does_not_affect_its_batch(poisonable, channel):
    pairs = channel.subscribe(many(600))
    for words in (UNWRITABLE, poison.BREAKS):
        answers(poisonable.random.choice(pairs)[1], words)

    notification = channel.send()

    assert_exact(channel, [notification])
    assert codes(channel, notification) == {"": many(600) - 2, "internal_error": 2}
    extra = [len(device.receipts) - 1 for _, device in pairs]
    assert min(extra) == 0
    assert sum(extra) <= timed_out(channel)


def test_a_row_that_takes_no_outcome_delays_no_other_and_is_not_called_again(poisonable, channel):
    system = poisonable
    pairs = channel.subscribe(many(300))
    (poisoned_id, poisoned), *later = system.random.sample(pairs, many(10))
    poisoned.behave("error", status=400)
    for _, device in later:
        device.behave("throttled", times=1)
    system.rows(_REFUSE_ROW.format(id=poisoned_id))

    notification = channel.send()

    def waiting():
        pass_waits(channel)  # each wait is twice as long as the one before
        return [id_ for id_, row in outcomes(channel, notification).items() if row[0] == WAITING]

    until(lambda: waiting() == [poisoned_id], "all others have their outcome")
    refused = len(system.logged("outcome.refused"))
    pass_waits(channel)
    until(lambda: len(system.logged("outcome.refused")) > refused, "it is tried again")
    assert len(poisoned.receipts) == 1
    system.rows("DROP TRIGGER faults_refuse_row ON notifications_app_delivery")
    pass_waits(channel)
    assert_exact(channel, [notification])
    assert codes(channel, notification)[""] == many(300) - 1
    # Once more, now that its attempt can be written.
    assert 2 <= len(poisoned.receipts) <= 2 + timed_out(channel)


def test_a_recipient_that_crashes_workers_delays_no_other_and_is_given_up(poisonable, channel):
    pairs = channel.subscribe(many(400))
    poisoned_id, poisoned = poisonable.random.choice(pairs)
    answers(poisoned, poison.KILLS)

    notification = channel.send()
    deaths = 0
    while not _is_over(channel, notification):
        until(
            lambda seen=deaths: _deaths(poisonable) > seen or _is_over(channel, notification),
            "it ends another worker, or is given up",
        )
        deaths = _deaths(poisonable)
        poisonable.unclean_ends = ["worker-web"] * deaths
        poisonable.rows(_LAPSE, [notification, poisoned_id])

    wait_ended(channel, [notification])
    assert deaths == 6  # three times with others, three times alone
    assert deaths <= len(poisoned.receipts) <= deaths + timed_out(channel)
    assert_exact(channel, [notification])
    ended = outcomes(channel, notification)
    assert ended[poisoned_id][1] == "internal_error"
    assert codes(channel, notification) == {"": many(400) - 1, "internal_error": 1}
    in_time = [row for row in ended.values() if row[2] < 2]  # the other calls timed out
    assert max(in_time, key=lambda row: row[3]) == ended[poisoned_id]
    repeats = sum(len(device.receipts) - 1 for _, device in pairs if device is not poisoned)
    print(f"{repeats} others were sent again")  # noqa: T201 (a figure for who reads the run)


def _deaths(system):
    return len(system.logged("raised error: WorkerLostError"))


def _is_over(channel, notification_id):
    return status(channel, notification_id) in ENDED


_REFUSE = """
CREATE OR REPLACE FUNCTION faults_refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'not this row' USING ERRCODE = 'internal_error'; END $$
"""
_WHERE = """
CREATE TRIGGER faults_refuse BEFORE UPDATE ON notifications_app_delivery
FOR EACH ROW WHEN (new.detail LIKE '%{words}%') EXECUTE FUNCTION faults_refuse()
"""
_REFUSE_ROW = """
CREATE TRIGGER faults_refuse_row BEFORE UPDATE ON notifications_app_delivery
FOR EACH ROW WHEN (old.subscription_id = '{id}') EXECUTE FUNCTION faults_refuse()
"""
# All that the dead process held: it may have served another batch in the same pass.
_LAPSE = """
UPDATE notifications_app_batch SET lease_until = now() - '1 s'::interval
WHERE status = 'leased' AND holder = (
  SELECT holder FROM notifications_app_batch batch
  JOIN notifications_app_delivery delivery ON delivery.batch_id = batch.id
  WHERE batch.status = 'leased'
    AND delivery.notification_id = %s AND delivery.subscription_id = %s)
"""

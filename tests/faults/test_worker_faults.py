"""Workers, planners and web processes that are killed, or paused or without PostgreSQL past their
lease."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psutil
import pytest

from tests.faults.database import EVERYBODY
from tests.faults.exactness import assert_exact, got, outcomes, wait_ended
from tests.faults.processes import CONCURRENCY, DELIVERING, PLATFORMS, until
from tests.faults.support import audience, each_in_the_middle, many, planned
from tests.faults.system import most_repeats

QUICK = {"FAULTS_LEASE_SECONDS": "8", "FAULTS_CALL_SECONDS": "3"}


def test_workers_killed_repeatedly_repeat_only_unwritten_outcomes(stopped, channel):
    system = stopped
    audience(channel, many(600))
    notification = channel.send(*PLATFORMS)
    kills = []
    for _ in range(3):
        with each_in_the_middle(channel, PLATFORMS, lambda of: system.kill(f"worker-{of}")):
            system.run_all()
        until(lambda: system.are_sandboxes_left(*PLATFORMS), "what the dead sent last is read")
        unwritten = {id_ for id_, row in outcomes(channel, notification).items() if row[0] == 0}
        system.end_leases(*PLATFORMS)
        kills.append((unwritten, time.time()))
    system.run_all()
    assert_exact(channel, [notification])
    _assert_repeats_were_unwritten(channel, notification, kills)


def _assert_repeats_were_unwritten(channel, notification_id, kills):
    """Each message beyond the first was taken before a kill that found its recipient without an
    outcome. No kill found more such recipients than its processes may have unwritten."""
    lost = [Counter() for _ in kills]
    for subscription_id, times in got(channel)[notification_id].items():
        for at in times[:-1]:
            number = next((n for n, (_, ended_at) in enumerate(kills) if at < ended_at), None)
            assert number is not None, "sent once more without a kill"
            assert subscription_id in kills[number][0], "sent once more though it was written"
            lost[number][channel.platform_of[subscription_id]] += 1
    assert all(count <= most_repeats(1) for each in lost for count in each.values()), lost


def test_a_planner_killed_during_planning_omits_and_doubles_no_recipient(system, channel, gate):
    assert set(system.tell_to_stop("worker-web")) == {0}  # so that only the planner counts
    channel.subscribe(many(2_400))
    notification = channel.send()
    places = system.random.sample(_COUNTED_LAST, 2)
    for windows, table in zip(sorted(system.random.sample(range(7), 2)), places, strict=True):
        count = many(300) * windows
        gate(count)
        until(lambda count=count: planned(channel, notification) == count, "windows follow")
        with system.connect() as connection:
            # A window's transaction ends with counting: it is held up there, half done.
            connection.execute(f"LOCK {table} IN SHARE MODE")
            gate(EVERYBODY)
            until(lambda table=table: system.value(_HELD_UP, [table]), "a window is held up")
            system.kill("worker-plan")
            gate(0)
        system.end_plan_leases()
        system.start("worker-plan")
    gate(EVERYBODY)
    system.run_all()
    assert_exact(channel, [notification])
    assert channel.read(notification)["recipient_count"] == many(2_400)


def test_a_paused_worker_writes_nothing_after_its_lease_ended(stopped, channel):
    system = stopped
    for _, device in audience(channel, many(500)):
        device.behave("slow", seconds=0.3)
    for name in DELIVERING:
        system.start(name, **QUICK)
    with each_in_the_middle(channel, PLATFORMS, lambda of: system.pause(f"worker-{of}")):
        notification = channel.send(*PLATFORMS)
    held = _called_and_unwritten(channel, notification)
    assert set(held.values()) == set(PLATFORMS)
    for name in DELIVERING:
        system.unclean_ends.append(name)
        system.start(name)

    wait_ended(channel, [notification])
    ended = outcomes(channel, notification)
    for name in DELIVERING:
        system.wake(name)

    def lost():
        return {each["batch"] for each in system.fields("batch.lease_lost")}

    until(lambda: held.keys() <= lost(), "the zombies found their leases lost")
    assert outcomes(channel, notification) == ended
    assert_exact(channel, [notification], zombies=True)


def test_postgresql_away_for_longer_than_a_lease_repeats_only_unwritten_outcomes(stopped, channel):
    system = stopped
    audience(channel, many(500))
    for name in DELIVERING:
        system.start(name, **QUICK)
    with each_in_the_middle(channel, ("web",), lambda _: system.stop_postgres()):
        notification = channel.send(*PLATFORMS)
    until(lambda: system.fields("batch.lease_lost"), "the workers gave their batches up")
    system.unclean_ends.extend(DELIVERING)
    system.revive_servers()

    assert_exact(channel, [notification])


def _called_and_unwritten(channel, notification_id):
    """{batch id: platform}, while no worker runs: batches for which a worker has an outcome to
    write, even if its lease is over. Batches of which no recipient was called are left out."""
    with channel.system.connect() as connection:
        # What was being written when the workers stopped is either written then, or undone.
        connection.execute("LOCK notifications_app_delivery IN SHARE MODE")
        waiting = connection.execute(_WAITING, [notification_id]).fetchall()
    return {
        batch_id: platform
        for batch_id, platform, subscription_id in waiting
        if channel.devices[subscription_id].receipts
    }


def test_a_killed_workers_batches_go_on_before_their_leases_end_and_a_paused_ones_do_not(
    stopped, channel
):
    """The same ticks see both."""
    system = stopped
    acts = {"web": system.pause, "android": system.kill}
    for _, device in audience(channel, many(500), tuple(acts)):
        device.behave("slow", seconds=0.3)  # so that calls are in flight
    for platform in acts:
        system.start(f"worker-{platform}")
    with each_in_the_middle(channel, tuple(acts), lambda of: acts[of](f"worker-{of}")):
        notification = channel.send(*acts)
    paused, dead = (_leases_after(channel, of, silent_for=15) for of in acts)
    assert paused
    assert dead

    system.start("worker-android")
    until(lambda: dead.keys() <= _ended_batches(channel), "others served the dead one's batches")
    assert _leases(channel, "web") == paused
    system.wake("worker-web")

    assert_exact(channel, [notification])
    assert system.logged("batch.lease_lost") == []


def _leases_after(channel, platform, *, silent_for):
    """{batch id: (lease number, end)} of leases that nobody renewed for so many more seconds."""
    with channel.system.connect() as connection:
        # What was being written when the worker stopped is either written then, or undone.
        connection.execute("LOCK notifications_app_batch IN SHARE ROW EXCLUSIVE MODE")
        connection.execute(
            "UPDATE notifications_app_batch SET lease_until = lease_until - %s * interval '1 s'"
            " WHERE channel_id = %s AND platform = %s AND status = 'leased'",
            [silent_for, channel.id, platform],
        )
    return _leases(channel, platform)


def _leases(channel, platform):
    return {
        batch_id: lease
        for batch_id, *lease in channel.system.rows(
            "SELECT id, lease_number, lease_until FROM notifications_app_batch"
            " WHERE channel_id = %s AND platform = %s AND status = 'leased'",
            [channel.id, platform],
        )
    }


def _ended_batches(channel):
    done = "SELECT id FROM notifications_app_batch WHERE channel_id = %s AND status = 'done'"
    return {batch_id for (batch_id,) in channel.system.rows(done, [channel.id])}


def test_a_worker_paused_for_longer_than_a_calls_timeout_reads_the_answers(stopped, channel):
    system = stopped
    for _, device in audience(channel, many(500)):
        device.behave("slow", seconds=0.3)  # so that calls are in flight
    for name in DELIVERING:
        system.start(name, FAULTS_CALL_SECONDS="5", FAULTS_LEASE_SECONDS="300")
    with each_in_the_middle(channel, PLATFORMS, lambda of: system.pause(f"worker-{of}")):
        notification = channel.send(*PLATFORMS)
    time.sleep(6.0)  # past the timeout of every call
    for name in DELIVERING:
        system.wake(name)

    assert_exact(channel, [notification])
    assert system.logged("batch.lease_lost") == []


def test_killing_one_process_of_a_worker_affects_only_its_batch(web_stopped, channel):
    system = web_stopped
    channel.subscribe(many(1_000))
    worker = system.start("worker-web", **QUICK)
    system.unclean_ends.append("worker-web")

    def kill(_platform):
        until(lambda: system.value(_HOLDERS) == CONCURRENCY, "each process has a batch")
        system.random.choice(psutil.Process(worker.pid).children()).kill()

    with each_in_the_middle(channel, ["web"], kill):
        notification = channel.send()

    assert_exact(channel, [notification])
    # Celery notices only after ten seconds. By then another process may have served the batch.
    until(lambda: len(system.logged("raised error: WorkerLostError")) == 1, "it held a batch")
    assert system.alive("worker-web") == [worker]


def test_a_process_that_hangs_is_replaced(web_and_planner_stopped, channel):
    system = web_and_planner_stopped
    system.start("worker-plan", FAULTS_TASK_SECONDS="5")  # whose wakeups have the limit
    channel.subscribe(many(300))
    worker = psutil.Process(system.start("worker-web", **QUICK, WORKER_CONCURRENCY="1").pid)
    system.unclean_ends.append("worker-web")
    hanging = []

    def hang(_platform):
        hanging.extend(worker.children())
        hanging[0].suspend()

    with each_in_the_middle(channel, ["web"], hang):
        notification = channel.send()
    (process,) = hanging
    until(lambda: not process.is_running(), "it is killed")

    assert_exact(channel, [notification])
    assert worker.is_running()


@pytest.fixture
def held_commit(system):
    """A connection that delays the commit of every notification until it is closed."""
    system.rows(_HOLD_COMMITS)
    with system.connect() as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_COMMIT_LOCK])
        yield connection
    system.rows("DROP FUNCTION faults_commit CASCADE")


def test_a_send_is_delivered_if_its_web_process_is_killed_between_commit_and_wakeup(
    system, channel, held_commit
):
    channel.subscribe(many(300))
    stored = "SELECT id FROM notifications_app_notification WHERE channel_id = %s"
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(channel.ask, "the same again")
        until(
            lambda: system.value(_IS_COMMIT_HELD, [_COMMIT_LOCK]),
            "the notification is about to be committed",
        )
        system.pause("web")
        held_commit.close()
        until(lambda: system.rows(stored, [channel.id]), "the notification is committed")
        system.kill("web")
        assert asked.result() is None  # the client does not know that the send was stored
    system.run_all()
    until(system.is_up, "the web server is back")
    notification = UUID(channel.ask("the same again").body["notification_id"])

    assert system.rows(stored, [channel.id]) == [(notification,)]
    assert_exact(channel, [notification])


_WAITING = """
SELECT batch.id, batch.platform, delivery.subscription_id
FROM notifications_app_batch batch
JOIN notifications_app_delivery delivery ON delivery.batch_id = batch.id
WHERE batch.notification_id = %s AND delivery.status = 0 AND delivery.attempts = 0
"""
_HOLDERS = "SELECT count(DISTINCT holder) FROM notifications_app_batch WHERE status = 'leased'"
_COMMIT_LOCK = 4711
_HOLD_COMMITS = f"""
CREATE FUNCTION faults_commit() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock({_COMMIT_LOCK}); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER faults_commit AFTER INSERT ON notifications_app_notification
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION faults_commit()
"""
_IS_COMMIT_HELD = """
SELECT EXISTS (
  SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = %s)
"""
_COUNTED_LAST = ("channels_app_channelcounter", "notifications_app_hourlystat")
_HELD_UP = """
SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = %s::regclass)
"""

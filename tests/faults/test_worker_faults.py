"""Processes that are killed, or wake when their time is over."""

import signal
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psutil

from tests.faults.exactness import assert_exact, wait_ended
from tests.faults.support import audience, await_part, many
from tests.faults.system import PLATFORMS, until

DELIVERING = tuple(f"worker-{platform}" for platform in PLATFORMS)
QUICK = {"FAULTS_LEASE_SECONDS": "8", "FAULTS_CALL_SECONDS": "3"}


def test_workers_killed_again_and_again_repeat_only_what_was_not_written(system, channel):
    count = many(600)
    audience(channel, count)
    notification = channel.send(*PLATFORMS)
    for part in (0.1, 0.4, 0.7):
        await_part(channel, part + system.random.uniform(0.0, 0.2))
        system.kill(*DELIVERING)
        system.lapse(*PLATFORMS)
        system.run_all()
    assert_exact(channel, [notification])


def test_a_planner_killed_in_the_middle_of_a_plan_leaves_nobody_out_and_nobody_twice(
    system, channel
):
    channel.subscribe(many(2_400))
    notification = channel.send()
    for windows in sorted(system.random.sample(range(1, 7), 2)):
        with system.connect() as connection:
            # A window's transaction counts into hourly rows last: here it is held up half done.
            connection.execute("LOCK notifications_app_hourlystat IN SHARE MODE")
            until(lambda: system.value(_HELD_UP), "a window is held up")
            system.kill("worker-plan")
        system.lapse_plans()
        system.run_all()
        until(
            lambda enough=windows * 300: planned(channel, notification) >= enough, "windows follow"
        )
    assert_exact(channel, [notification])
    assert channel.read(notification)["recipient_count"] == many(2_400)


def planned(channel, notification_id):
    return channel.system.value(
        "SELECT recipient_count FROM notifications_app_plan WHERE notification_id = %s",
        [notification_id],
    )


def test_a_worker_paused_past_its_lease_writes_nothing_when_it_wakes(system, channel):
    assert set(system.tell_to_stop(*DELIVERING)) == {0}
    audience(channel, many(500))
    for name in DELIVERING:
        system.start(name, **QUICK)
    notification = channel.send(*PLATFORMS)
    await_part(channel, system.random.uniform(0.2, 0.4))
    for name in DELIVERING:
        system.pause(name)
        system.unclean_ends.append(name)
        system.start(name)

    wait_ended(channel, [notification])
    for name in DELIVERING:
        system.wake(name)

    lost = lambda: len(system.logged("batch.lease_lost"))  # noqa: E731
    until(lambda: lost() >= len(DELIVERING), "the zombies found their leases lost")
    assert_exact(channel, [notification], zombies=True)


def test_one_process_of_a_worker_killed_costs_only_its_own_batch(system, channel):
    assert set(system.tell_to_stop("worker-web")) == {0}
    channel.subscribe(many(1_000))
    worker = system.start("worker-web", **QUICK)
    notification = channel.send()
    await_part(channel, system.random.uniform(0.1, 0.3))

    child = system.random.choice(psutil.Process(worker.pid).children())
    child.send_signal(signal.SIGKILL)
    system.unclean_ends.append("worker-web")

    assert_exact(channel, [notification])
    assert system.alive("worker-web") == [worker]


def test_a_web_server_killed_between_commit_and_doorbell_has_accepted(system, channel):
    channel.subscribe(many(300))
    system.signal_redis(signal.SIGSTOP)  # the ring after the commit finds no answer
    stored = "SELECT id FROM notifications_app_notification WHERE channel_id = %s"
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(channel.ask, "the same again")
        until(lambda: system.rows(stored, [channel.id]), "the notification is committed")
        system.kill("web")
        assert asked.result() is None  # the client does not know
    system.signal_redis(signal.SIGCONT)
    system.run_all()
    until(system.is_up, "the web server is back")
    notification = UUID(channel.ask("the same again").body["notification_id"])

    assert system.rows(stored, [channel.id]) == [(notification,)]
    assert_exact(channel, [notification])


_HELD_UP = """
SELECT EXISTS (SELECT FROM pg_locks
               WHERE NOT granted AND relation = 'notifications_app_hourlystat'::regclass)
"""

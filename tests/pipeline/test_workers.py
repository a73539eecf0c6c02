"""Real workers and beats, stopped gently and killed."""

import os
import socket

import pytest
from django.conf import settings
from django.db import connection

from notifications_app import tasks
from notifications_app.models import Batch
from pushsvc.common.store import sql
from tests import factories
from tests.calls import standing_still, when_called
from tests.pipeline import phones, support
from tests.pipeline.processes import kill


def only_devices(pairs):
    return [device for device, _ in pairs]


def received(devices):
    return [len(device.receipts) for device, _ in devices]


def test_two_beats_and_two_workers_deliver_notifications_completely(processes, sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 5)
    now = factories.make_notification(channel)
    for name in ("worker-plan", "worker-web", "beat", "beat"):
        processes.start(name)

    support.until(lambda: support.is_sent(now))
    devices[0][0].behave("throttled", times=1)
    later = factories.make_notification(channel)  # no wakeup: a tick finds it, and its retry
    support.until(lambda: support.is_sent(later))

    assert support.counts(now) == support.counts(later) == ("sent", 5, 5, 0)
    assert received(devices) == [3, 2, 2, 2, 2]


def test_a_killed_worker_repeats_only_unwritten_outcomes(processes, sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 150)
    notification = factories.make_notification(channel)
    support.plan()
    # More than are called at once, so that some are answered.
    with standing_still(only_devices(devices), nth=settings.CALLS_IN_FLIGHT + 10) as called:
        victim = processes.start("worker-web")
        called()
        support.until(lambda: Batch.objects.get().delivered_count > 0)
        kill(victim)
    batch = Batch.objects.get()
    assert batch.status == "leased"
    written = set(
        support.deliveries(notification).filter(status=1).values_list("subscription_id", flat=True)
    )
    support.lose_lease(batch.id)
    support.tick()
    processes.start("worker-web")
    support.until(lambda: support.is_sent(notification))

    assert support.counts(notification) == ("sent", 150, 150, 0)
    assert set(received(devices)) <= {1, 2}
    for device, subscription in devices:
        assert len(device.receipts) == 1 or subscription.id not in written


@pytest.mark.parametrize(
    ("platform", "tell"),
    [("web", os.kill), ("web", os.killpg), ("android", os.kill), ("ios", os.kill)],
    ids=["web", "whole group", "android", "ios"],
)
def test_a_worker_that_is_told_to_stop_repeats_nothing_and_hands_the_rest_back(
    platform, tell, processes, sandbox, fcm, apns, channel
):
    if platform == "web":
        devices = factories.subscribe_browsers(sandbox, channel, 250)
    else:
        provider = phones.Provider(platform, {"android": fcm, "ios": apns}[platform])
        provider.store(channel)
        devices = provider.devices(channel, 250)
    notification = phones.plan(channel, platform)

    told = when_called(only_devices(devices), 60, lambda: processes.stop_gently(worker, tell))
    worker = processes.start(f"worker-{platform}")

    told.result(60)
    assert worker.wait(timeout=60) == 0
    batch = Batch.objects.get()
    assert (batch.status, batch.lease_losses) == ("ready", 0)
    assert batch.delivered_count == sum(received(devices)) < 250
    phones.deliver(notification, platform)
    assert received(devices) == [1] * 250
    assert support.counts(notification) == ("sent", 250, 250, 0)


def test_a_worker_keeps_its_database_session_between_tasks(processes, sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 1)
    _start_workers(processes)
    _sent_by_workers(channel)
    before = _sessions_so_far()
    for _ in range(8):
        _sent_by_workers(channel)

    # Eight sends are sixteen tasks. Each worker's second process may have its first task only now.
    assert _sessions_so_far() - before <= 2


def test_a_session_that_was_cut_between_tasks_costs_no_task(processes, sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 1)
    _start_workers(processes)
    _sent_by_workers(channel)
    for _ in range(3):
        support.cut_other_connections()
        _sent_by_workers(channel)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux's socket options")
def test_a_session_whose_server_is_gone_ends_within_seconds(transactional_db):
    connection.ensure_connection()
    with socket.socket(fileno=os.dup(connection.connection.fileno())) as open_:
        if open_.family == socket.AF_UNIX:
            pytest.skip("the database is reached by a local socket")
        of_tcp = {
            option: open_.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE)
        }
    assert of_tcp == {socket.TCP_USER_TIMEOUT: 20_000, socket.TCP_KEEPIDLE: 20}


def _start_workers(processes):
    """Without beat, so no tick does what a task left undone."""
    for name in ("worker-plan", "worker-web"):
        processes.start(name)


def _sent_by_workers(channel):
    notification = factories.make_notification(channel)
    tasks.wake_planner()
    support.until(lambda: support.is_sent(notification))


def _sessions_so_far():
    """Of this database, since it was made."""
    sql.rows("SELECT pg_stat_clear_snapshot()", {})
    counted = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"
    return sql.rows(counted, {})[0][0]

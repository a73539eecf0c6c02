"""One push service's outage delays nobody else."""

import socket
from datetime import timedelta

import pytest

from notifications_app import breakers, dispatch
from notifications_app.models import Batch
from pushsvc.common.endpoints import OTHER
from pushsvc.common.redis_client import redis_client
from tests.pipeline import support

SERVICES = ["apple", "fcm", "mozilla"]


@pytest.fixture(autouse=True)
def _one_window(monkeypatch):
    """So that no test's calls fall into two."""
    monkeypatch.setattr(breakers, "WINDOW_SECONDS", 36_000)


def wait_is_over(service):
    """The breaker's wait passes."""
    redis_client().delete(breakers._key(service, "open"))


def service_of(sandbox):
    return sandbox.origin.removeprefix("http://")


@pytest.mark.parametrize(
    ("answered", "outages", "is_open"),
    [(10, 9, False), (0, 19, False), (0, 20, True), (10, 10, True), (11, 10, False)],
)
def test_it_opens_when_half_of_at_least_twenty_calls_met_an_outage(answered, outages, is_open):
    breakers.record("fcm", answered=answered, outages=outages)

    assert breakers.services_to_skip(SERVICES) == (["fcm"] if is_open else [])
    assert (breakers.seconds_open("fcm") > 0) == is_open


def test_calls_of_several_workers_add_up():
    for _ in range(4):
        breakers.record("fcm", answered=2, outages=3)

    assert breakers.services_to_skip(SERVICES) == ["fcm"]


def test_half_open_lets_one_worker_try():
    breakers.record("fcm", answered=0, outages=20)
    assert not breakers.is_half_open("fcm")

    wait_is_over("fcm")

    assert breakers.is_half_open("fcm")
    assert breakers.services_to_skip(SERVICES) == []
    assert support.in_threads(*[lambda: breakers.take_probe("fcm")] * 4).count(True) == 1
    assert breakers.services_to_skip(SERVICES) == ["fcm"]  # until the one has tried


def test_a_probe_that_is_answered_closes_it():
    breakers.record("fcm", answered=0, outages=20)
    wait_is_over("fcm")
    breakers.take_probe("fcm")

    breakers.record("fcm", answered=20, outages=0)

    assert not breakers.is_half_open("fcm")
    assert breakers.services_to_skip(SERVICES) == []


def test_outages_from_before_it_closed_do_not_open_it_again():
    breakers.record("fcm", answered=0, outages=20)
    breakers.record("fcm", answered=0, outages=40)  # calls that were under way
    wait_is_over("fcm")
    breakers.take_probe("fcm")

    breakers.record("fcm", answered=5, outages=0)
    breakers.record("fcm", answered=15, outages=0)

    assert breakers.services_to_skip(SERVICES) == []


def test_each_probe_that_fails_doubles_the_wait_up_to_a_bound():
    breakers.record("fcm", answered=0, outages=20)
    waits = [breakers.seconds_open("fcm")]
    for _ in range(5):
        wait_is_over("fcm")
        breakers.take_probe("fcm")
        breakers.record("fcm", answered=0, outages=1)
        waits.append(breakers.seconds_open("fcm"))

    assert [round(wait / 15) for wait in waits] == [1, 2, 4, 8, 8, 8]


def test_strangers_share_no_breaker():
    breakers.record(OTHER, answered=0, outages=1000)

    assert breakers.services_to_skip([OTHER]) == []


def test_without_redis_every_breaker_counts_as_closed(settings):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"

    breakers.record("fcm", answered=0, outages=1000)

    assert breakers.services_to_skip(SERVICES) == []
    assert breakers.seconds_open("fcm") == 0.0
    assert not breakers.is_half_open("fcm")
    assert breakers.take_probe("fcm")


def test_everything_is_delivered_while_redis_is_away(sandbox, channel, settings):
    devices = support.subscribe(sandbox, channel, 3)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    notification = support.notify(channel)
    support.plan()
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert [len(device.receipts) for device, _ in devices] == [1, 1, 1]


def test_an_outage_stops_the_calls_to_its_service_and_to_no_other(
    sandbox, other_sandbox, channel, settings
):
    settings.UNWRITTEN_OUTCOMES = 20
    ailing = support.subscribe(sandbox, channel, 60)
    for device, _ in ailing:
        device.behave("error", status=503)
    healthy = support.subscribe(other_sandbox, channel, 30)

    notification = support.send(channel)

    assert support.counts(notification) == ("processing", 90, 30, 0)
    assert all(len(device.receipts) == 1 for device, _ in healthy)
    called = sum(len(device.receipts) for device, _ in ailing)
    assert 20 <= called < 60
    batch = Batch.objects.get(status="ready")
    assert batch.due_at - batch.claimed_at > timedelta(seconds=10)

    support.make_due(notification)
    support.deliver()
    assert sum(len(device.receipts) for device, _ in ailing) == called  # not even claimed


def test_after_an_outage_twenty_calls_try_and_then_all_get_theirs(sandbox, channel):
    devices = support.subscribe(sandbox, channel, 50)
    service = service_of(sandbox)
    breakers.record(service, answered=0, outages=20)
    wait_is_over(service)
    notification = support.notify(channel)
    support.plan()

    dispatch.deliver_batch(support.claim())
    assert sum(len(device.receipts) for device, _ in devices) == breakers.PROBE_CALLS
    assert not breakers.is_half_open(service)

    support.deliver(notification)
    assert support.counts(notification) == ("sent", 50, 50, 0)
    assert [len(device.receipts) for device, _ in devices] == [1] * 50


def test_being_asked_to_slow_down_is_no_outage(sandbox, channel):
    devices = support.subscribe(sandbox, channel, 30)
    for device, _ in devices:
        device.behave("throttled", times=1)

    notification = support.send(channel)

    assert breakers.services_to_skip([service_of(sandbox)]) == []
    support.make_due(notification)
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 30, 30, 0)


def test_a_probe_with_nobody_left_to_call_is_not_taken(sandbox, channel):
    support.subscribe(sandbox, channel)
    service = service_of(sandbox)
    breakers.record(service, answered=0, outages=20)
    wait_is_over(service)
    notification = support.notify(channel)
    support.plan()
    support.end_time(notification)

    support.deliver(notification)

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert breakers.take_probe(service)


def test_the_retries_of_a_few_do_not_open_the_breaker_for_everybody(sandbox, channel):
    devices = support.subscribe(sandbox, channel, 80)
    for device, _ in devices[::3]:  # never half of any twenty answers
        device.behave("error", status=503)
    notification = support.send(channel)
    assert support.counts(notification) == ("processing", 80, 53, 0)

    for _ in range(3):
        support.make_due(notification)
        support.deliver(notification)

    assert breakers.services_to_skip([devices[0][1].push_service]) == []
    assert support.send(channel).delivered_count == 53


def test_calls_that_all_fail_stop_a_batch_before_it_is_written_that_they_do(
    sandbox, channel, settings
):
    settings.CALLS_IN_FLIGHT = 20
    settings.FLUSH_SECONDS = 30
    settings.FLUSH_OUTCOMES = 1000
    devices = support.subscribe(sandbox, channel, 100)
    for device, _ in devices:
        device.behave("reset")

    notification = support.notify(channel)
    support.plan()
    support.deliver(notification, seconds=0.01)

    called = sum(len(device.receipts) for device, _ in devices)
    assert 20 <= called < 60

"""One push service's outage delays nobody else."""

import socket
from datetime import timedelta

import pytest

from notifications_app.models import Batch
from notifications_app.pipeline import breakers, dispatch
from pushsvc.common.endpoints import OTHER
from pushsvc.common.ids import uuid7
from pushsvc.common.store.redis_client import redis_client
from tests import factories
from tests.pipeline import support

ALICE, BOB, CHARLIE, DORA = (uuid7() for _ in range(4))


@pytest.fixture(autouse=True)
def _one_window(monkeypatch):
    """So that no test's calls fall into two."""
    monkeypatch.setattr(breakers, "WINDOW_SECONDS", 36_000)
    monkeypatch.setattr(breakers, "SERVICE_WINDOW_SECONDS", 36_000)


def waits_are_over():
    """Of all breakers that are open."""
    redis_client().delete(breakers._OPEN)


def service_of(sandbox):
    return sandbox.origin.removeprefix("http://")


def at_fcm(*channels):
    return [breakers.of_channel("fcm", each) for each in channels]


def outages(channel, count):
    return breakers.record("fcm", channel, answered=0, outages=count)


def open_for_all():
    for each in (ALICE, BOB):
        outages(each, 20)
    assert sorted(breakers.held()) == sorted(["fcm", *at_fcm(ALICE, BOB)])


def probe(channel, *, answered, outages):
    assert breakers.is_half_open("fcm", channel)
    assert breakers.take_probe("fcm", channel)
    return breakers.end_probe("fcm", channel, answered=answered, outages=outages)


@pytest.mark.parametrize(
    ("answered", "outages", "is_open"),
    [(10, 9, False), (0, 19, False), (0, 20, True), (10, 10, True), (11, 10, False)],
)
def test_it_opens_when_half_of_at_least_twenty_calls_met_an_outage(answered, outages, is_open):
    wait = breakers.record("fcm", ALICE, answered=answered, outages=outages)

    assert breakers.held() == (at_fcm(ALICE) if is_open else [])
    assert (wait > 0) == is_open


def test_calls_of_several_workers_add_up():
    for _ in range(4):
        breakers.record("fcm", ALICE, answered=2, outages=3)

    assert breakers.held() == at_fcm(ALICE)


def test_one_channel_however_much_it_suffers_holds_only_itself():
    for _ in range(50):
        outages(ALICE, 1000)
        waits_are_over()
        breakers.take_probe("fcm", ALICE)
        breakers.end_probe("fcm", ALICE, answered=0, outages=20)

    assert breakers.held() == at_fcm(ALICE)
    assert not breakers.is_half_open("fcm", BOB)


def test_it_opens_for_all_when_several_channels_meet_outages():
    outages(ALICE, 1000)
    outages(BOB, 9)
    assert breakers.held() == at_fcm(ALICE)

    assert outages(BOB, 1) > 0

    assert sorted(breakers.held()) == sorted(["fcm", *at_fcm(ALICE)])


def test_small_channels_add_up():
    for _ in range(19):
        outages(uuid7(), 1)
    assert breakers.held() == []

    outages(uuid7(), 1)

    assert breakers.held() == ["fcm"]


def test_it_stays_closed_for_all_while_half_of_the_channels_are_answered():
    for each in (CHARLIE, DORA):
        breakers.record("fcm", each, answered=1, outages=0)

    for each in (ALICE, BOB):
        outages(each, 20)
    assert sorted(breakers.held()) == sorted(at_fcm(ALICE, BOB))

    outages(DORA, 1)
    assert "fcm" in breakers.held()


def test_a_channel_that_is_answered_again_no_longer_counts():
    outages(ALICE, 10)
    breakers.record("fcm", ALICE, answered=11, outages=0)

    outages(BOB, 20)

    assert breakers.held() == at_fcm(BOB)


def test_half_open_lets_one_worker_of_each_channel_try():
    open_for_all()
    assert not breakers.is_half_open("fcm", CHARLIE)

    waits_are_over()

    assert breakers.held() == []
    for each in (ALICE, CHARLIE):
        assert breakers.is_half_open("fcm", each)
        taken = support.in_threads(*[lambda each=each: breakers.take_probe("fcm", each)] * 4)
        assert taken.count(True) == 1
    assert sorted(breakers.held()) == sorted(at_fcm(ALICE, CHARLIE))  # until they have tried


def test_a_probe_that_is_answered_closes_it():
    outages(ALICE, 20)
    waits_are_over()

    assert probe(ALICE, answered=20, outages=0) == 0

    assert not breakers.is_half_open("fcm", ALICE)
    assert breakers.held() == []


def test_one_channel_that_is_answered_closes_it_for_all():
    open_for_all()
    waits_are_over()

    assert probe(CHARLIE, answered=20, outages=0) == 0

    assert not breakers.is_half_open("fcm", DORA)
    assert breakers.is_half_open("fcm", ALICE)  # by its own
    assert breakers.held() == []


def test_it_opens_again_for_all_only_when_several_channels_have_tried():
    open_for_all()
    waits_are_over()

    probe(ALICE, answered=0, outages=1)
    assert breakers.held() == at_fcm(ALICE)

    assert probe(CHARLIE, answered=0, outages=1) > breakers.WAIT_SECONDS
    assert sorted(breakers.held()) == sorted(["fcm", *at_fcm(ALICE, CHARLIE)])


def test_a_probe_that_says_nothing_leaves_it_to_the_next():
    outages(ALICE, 20)
    waits_are_over()

    assert probe(ALICE, answered=0, outages=0) == breakers.WAIT_SECONDS

    assert breakers.held() == []
    assert probe(ALICE, answered=1, outages=0) == 0
    assert not breakers.is_half_open("fcm", ALICE)


def test_outages_from_before_it_closed_do_not_open_it_again():
    outages(ALICE, 20)
    outages(ALICE, 40)  # calls that were under way
    waits_are_over()
    probe(ALICE, answered=5, outages=0)

    breakers.record("fcm", ALICE, answered=15, outages=0)

    assert breakers.held() == []


def test_each_probe_that_fails_doubles_the_wait_up_to_a_bound():
    waits = [outages(ALICE, 20)]
    for _ in range(5):
        waits_are_over()
        waits.append(probe(ALICE, answered=0, outages=1))

    assert [round(wait / breakers.WAIT_SECONDS) for wait in waits] == [1, 2, 4, 8, 8, 8]


def test_a_breaker_that_nobody_tries_is_forgotten():
    outages(ALICE, 20)
    waits_are_over()

    left = redis_client().ttl(breakers._level(*at_fcm(ALICE)))

    assert breakers.LONGEST_WAIT_SECONDS < left <= 600


def test_unknown_hosts_share_no_breaker():
    for each in (ALICE, BOB):
        breakers.record(OTHER, each, answered=0, outages=1000)

    assert breakers.held() == []


def test_without_redis_every_breaker_counts_as_closed(settings):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"

    assert outages(ALICE, 1000) == 0.0

    assert breakers.held() == []
    assert not breakers.is_half_open("fcm", ALICE)
    assert breakers.take_probe("fcm", ALICE)


def test_everything_is_delivered_while_redis_is_away(sandbox, channel, settings):
    devices = factories.subscribe_browsers(sandbox, channel, 3)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    notification = factories.make_notification(channel)
    support.plan()
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert [len(device.receipts) for device, _ in devices] == [1, 1, 1]


def test_an_outage_stops_the_calls_to_its_service_and_to_no_other(
    sandbox, other_sandbox, channel, settings
):
    settings.UNWRITTEN_OUTCOMES = 20
    ailing = factories.subscribe_browsers(sandbox, channel, 60)
    for device, _ in ailing:
        device.behave("error", status=503)
    healthy = factories.subscribe_browsers(other_sandbox, channel, 30)

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


def half_open(service, channel):
    breakers.record(service, channel.id, answered=0, outages=20)
    waits_are_over()
    assert breakers.is_half_open(service, channel.id)


def test_after_an_outage_twenty_calls_try_and_then_all_get_theirs(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 50)
    service = service_of(sandbox)
    half_open(service, channel)
    notification = factories.make_notification(channel)
    support.plan()

    dispatch.deliver_batch(support.claim())
    assert sum(len(device.receipts) for device, _ in devices) == breakers.PROBE_CALLS
    assert not breakers.is_half_open(service, channel.id)

    support.deliver(notification)
    assert support.counts(notification) == ("sent", 50, 50, 0)
    assert [len(device.receipts) for device, _ in devices] == [1] * 50


def test_a_probe_is_judged_as_a_whole_not_by_who_fails_first(sandbox, channel, settings):
    settings.FLUSH_SECONDS = 0.05
    devices = factories.subscribe_browsers(sandbox, channel, 20)
    for device, _ in devices[:9]:
        device.behave("error", status=503)
    for device, _ in devices[9:]:
        device.behave("slow", seconds=1.0)
    half_open(service_of(sandbox), channel)

    support.send(channel)

    assert not breakers.is_half_open(service_of(sandbox), channel.id)
    assert breakers.held() == []


def test_a_probe_tries_first_attempts_and_no_retries(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 40)
    for device, _ in devices[:15]:  # the first by id
        device.behave("error", status=503)
    notification = factories.make_notification(channel)
    support.plan()
    tried = [subscription.id for _, subscription in devices[:15]]
    support.deliveries(notification).filter(subscription_id__in=tried).update(attempts=1)
    half_open(service_of(sandbox), channel)

    dispatch.deliver_batch(support.claim())

    called = [len(device.receipts) for device, _ in devices]
    assert (sum(called[:15]), sum(called[15:])) == (0, breakers.PROBE_CALLS)
    assert not breakers.is_half_open(service_of(sandbox), channel.id)


def retries_left(sandbox, channel, devices):
    """A notification of which everybody was tried once and met an outage; the breaker's wait is
    over."""
    for device, _ in devices:
        device.behave("error", status=503)
    notification = support.send(channel)
    assert breakers.held() == [breakers.of_channel(service_of(sandbox), channel.id)]
    waits_are_over()
    support.make_due(notification)
    return notification


def test_where_only_retries_are_left_one_that_is_answered_closes_it(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 30)
    notification = retries_left(sandbox, channel, devices)
    for device, _ in devices[10:]:
        device.behave("accept")

    for _ in range(3):
        support.make_due(notification)
        support.deliver(notification)

    assert not breakers.is_half_open(service_of(sandbox), channel.id)
    assert support.counts(notification) == ("processing", 30, 20, 0)


def test_retries_that_fail_neither_open_it_again_nor_keep_others_from_trying(sandbox, channel):
    service = service_of(sandbox)
    notification = retries_left(
        sandbox, channel, factories.subscribe_browsers(sandbox, channel, 30)
    )
    before = sum(support.deliveries(notification).values_list("attempts", flat=True))

    support.deliver(notification)

    tried = sum(support.deliveries(notification).values_list("attempts", flat=True)) - before
    assert tried == breakers.PROBE_CALLS
    assert breakers.held() == []
    assert breakers.is_half_open(service, channel.id)
    batch = Batch.objects.get(notification=notification)
    assert batch.due_at - batch.claimed_at > timedelta(seconds=breakers.WAIT_SECONDS - 5)

    ((_, subscription),) = factories.subscribe_browsers(sandbox, channel)
    later = factories.make_notification(channel, only_subscription_id=subscription.id)
    support.plan()
    support.deliver(later)
    assert support.counts(later) == ("sent", 1, 1, 0)
    assert not breakers.is_half_open(service, channel.id)


def test_being_asked_to_slow_down_is_no_outage(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 30)
    for device, _ in devices:
        device.behave("throttled", times=1)

    notification = support.send(channel)

    assert breakers.held() == []
    support.make_due(notification)
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 30, 30, 0)


def test_a_probe_without_recipients_left_is_not_taken(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel)
    half_open(service_of(sandbox), channel)
    notification = factories.make_notification(channel)
    support.plan()
    support.end_time(notification)

    support.deliver(notification)

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert breakers.take_probe(service_of(sandbox), channel.id)


def test_the_retries_of_a_few_do_not_open_the_breaker_for_all(sandbox, channel, settings):
    settings.FLUSH_SECONDS = 30  # all answers in one flush: those that fail may come first
    devices = factories.subscribe_browsers(sandbox, channel, 80)
    for device, _ in devices[::3]:
        device.behave("error", status=503)
    notification = support.send(channel)
    assert support.counts(notification) == ("processing", 80, 53, 0)

    for _ in range(3):
        support.make_due(notification)
        support.deliver(notification)

    assert breakers.held() == []
    assert support.send(channel).delivered_count == 53


def test_calls_that_all_fail_stop_a_batch_before_it_is_written_that_they_do(
    sandbox, channel, settings
):
    settings.CALLS_IN_FLIGHT = 20
    settings.FLUSH_SECONDS = 30
    settings.FLUSH_OUTCOMES = 1000
    devices = factories.subscribe_browsers(sandbox, channel, 100)
    for device, _ in devices:
        device.behave("reset")

    factories.make_notification(channel)
    support.plan()
    dispatch.deliver_batch(support.claim())

    called = sum(len(device.receipts) for device, _ in devices)
    assert 20 <= called < 60

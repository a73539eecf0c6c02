"""Temporary failures are retried at the right time, and reach each phone once."""

from datetime import timedelta

import pytest

from notifications_app.models import Batch
from notifications_app.pipeline import breakers, connections, dispatch
from notifications_app.states import DeliveryStatus
from tests import factories
from tests.factories import GOOGLE_PROJECT
from tests.pipeline import phones, support

SERVICES = {"android": "fcm_v1", "ios": "apns"}

pytestmark = pytest.mark.usefixtures("one_breaker_window")


@pytest.fixture
def quick_calls(settings):
    """Calls time out after two seconds."""
    settings.CALL_SECONDS = 2.0


@pytest.fixture
def subscribe(platform, fcm, apns, channel):
    """Makes phones of the platform and stores its credentials."""
    if platform == "android":
        phones.store_google(fcm, channel)
        return lambda count: factories.subscribe_androids(fcm, channel, count)
    phones.store_apple(apns, channel)
    return lambda count: factories.subscribe_iphones(apns, channel, count)


def deferred(notification):
    """The only recipient that waits for its next attempt."""
    row = support.deliveries(notification).get(status=DeliveryStatus.WAITING)
    assert row.attempts == 1
    return row


@pytest.mark.parametrize(
    ("platform", "mode", "options", "code", "given"),
    [
        ("android", "throttled", {}, "throttled", 1),
        ("android", "internal", {}, "service_error", 1),
        ("android", "unavailable", {}, "service_error", 1),
        ("android", "error", {"status": 307}, "redirected", 1),
        ("android", "reset", {}, "connection_failed", 1),
        ("android", "garbage", {}, "connection_failed", 1),
        ("android", "close_after_accept", {}, "connection_failed", 2),
        ("ios", "throttled", {}, "throttled", 1),
        ("ios", "internal_error", {}, "service_error", 1),
        ("ios", "unavailable", {}, "service_error", 1),
        ("ios", "shutdown", {}, "service_error", 1),
        ("ios", "header_only", {"status": 503}, "service_error", 1),
        ("ios", "empty_data", {"status": 500}, "service_error", 1),
        ("ios", "rst_stream", {}, "stream_reset", 1),
        ("ios", "reset", {}, "connection_failed", 1),
        ("ios", "garbage", {}, "connection_failed", 1),
        ("ios", "close_after_accept", {}, "connection_failed", 2),
    ],
)
def test_a_temporary_failure_is_retried_later_and_then_delivered(
    platform, mode, options, code, given, subscribe, channel
):
    devices = subscribe(1)
    devices[0][0].behave(mode, times=1, **options)

    notification = phones.send(channel, platform)
    assert support.counts(notification) == ("processing", 1, 0, 0)
    assert deferred(notification).code == code
    phones.deliver(notification, platform)
    assert len(devices[0][0].receipts) == 1  # not due yet

    phones.send_again(notification, platform)
    assert support.counts(notification) == ("sent", 1, 1, 0)
    assert phones.received(devices) == [given]


@pytest.mark.usefixtures("quick_calls")
@pytest.mark.parametrize("platform", ["android", "ios"])
def test_a_call_without_an_answer_times_out_and_delays_no_other(platform, channel, subscribe):
    devices = subscribe(12)
    phones.send(channel, platform)
    devices[5][0].behave("hang", times=1)

    notification = phones.send(channel, platform)

    assert support.counts(notification) == ("processing", 12, 11, 0)
    assert deferred(notification).code == "timeout"
    phones.send_again(notification, platform)
    assert support.counts(notification) == ("sent", 12, 12, 0)
    assert phones.received(devices) == [2] * 12


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("slow", {"seconds": 0.5}),
        ("no_apns_id", {}),
        ("refused_stream", {}),
        ("goaway", {}),
        ("goaway_first", {"seconds": 0.3}),
        ("goaway_unprocessed", {}),
    ],
)
@pytest.mark.parametrize("platform", ["ios"])
def test_errors_that_http2_can_repair_take_one_attempt(mode, options, platform, subscribe, channel):
    devices = subscribe(60)
    for device, _ in devices[20:60:20]:
        device.behave(mode, times=1, **options)

    notification = phones.send(channel, platform)

    assert support.counts(notification) == ("sent", 60, 60, 0)
    assert phones.received(devices) == [1] * 60
    assert set(support.deliveries(notification).values_list("attempts", flat=True)) == {1}


@pytest.mark.parametrize("platform", ["ios"])
def test_a_server_that_allows_one_stream_and_then_many_gets_every_message(
    platform, subscribe, channel
):
    devices = subscribe(80)
    devices[10][0].behave("streams", streams=1, times=1)
    devices[50][0].behave("streams", streams=100, times=1)

    notification = phones.send(channel, platform)

    assert support.counts(notification) == ("sent", 80, 80, 0)
    assert phones.received(devices) == [1] * 80


@pytest.mark.parametrize(
    ("platform", "mode", "options", "least"),
    [
        ("android", "throttled", {}, 60),
        ("android", "throttled", {"retry_after": 900}, 900),
        ("android", "throttled", {"retry_after": 900, "as_date": True}, 898),
        ("android", "unavailable", {}, 10),
        ("android", "unavailable", {"retry_after": 900}, 900),
        ("android", "internal", {"retry_after": 900, "as_date": True}, 898),
        ("ios", "throttled", {}, 4),
        ("ios", "throttled", {"retry_after": 900}, 900),
        ("ios", "unavailable", {"retry_after": 900, "as_date": True}, 898),
    ],
)
def test_the_wait_is_what_the_push_service_asks_for(
    platform, mode, options, least, subscribe, channel
):
    ((device, _),) = subscribe(1)
    device.behave(mode, **options)

    notification = phones.send(channel, platform)

    row = deferred(notification)
    wait = row.due_at - row.first_attempt_at
    assert timedelta(seconds=least - 1) <= wait < timedelta(seconds=1.5 * least + 10)
    batch = Batch.objects.get()
    assert (batch.status, batch.due_at) == ("ready", row.due_at)


@pytest.mark.parametrize("platform", ["android", "ios"])
def test_an_outage_stops_the_calls_to_its_push_service_and_to_no_other(
    platform, subscribe, sandbox, channel, settings
):
    settings.UNWRITTEN_OUTCOMES = 20
    failing = subscribe(60)
    for device, _ in failing:
        device.behave("unavailable")
    browsers = factories.subscribe_browsers(sandbox, channel, 30)

    notification = phones.send(channel, platform, "web")

    assert support.counts(notification) == ("processing", 90, 30, 0)
    assert phones.received(browsers) == [1] * 30
    called = sum(len(device.receipts) for device, _ in failing)
    assert 20 <= called < 60
    assert breakers.held() == [breakers.of_channel(SERVICES[platform], channel.id)]
    phones.send_again(notification, platform)
    assert sum(len(device.receipts) for device, _ in failing) == called  # not even claimed


@pytest.mark.parametrize("platform", ["android", "ios"])
def test_after_an_outage_twenty_calls_probe_and_then_everybody_is_called(
    platform, subscribe, channel
):
    devices = subscribe(50)
    service = SERVICES[platform]
    breakers.record(service, channel.id, responded=0, outages=20)
    support.end_breaker_waits()
    notification = phones.plan(channel, platform)

    dispatch.deliver_batches([support.claim(platform)])
    assert sum(phones.received(devices)) == breakers.PROBE_CALLS
    assert not breakers.is_half_open(service, channel.id)

    phones.deliver(notification, platform)
    assert support.counts(notification) == ("sent", 50, 50, 0)
    assert phones.received(devices) == [1] * 50


@pytest.mark.parametrize(
    ("mode", "options", "least"),
    [
        ("unavailable", {}, 10),
        ("unavailable", {"retry_after": 900}, 900),
        ("throttled", {}, 60),
        ("reset", {}, 10),
    ],
)
@pytest.mark.parametrize("platform", ["android"])
def test_a_failing_token_endpoint_defers_and_pauses_nothing(
    mode, options, least, platform, subscribe, fcm, channel, settings
):
    settings.CALLS_IN_FLIGHT = 1
    devices = subscribe(3)
    endpoint = fcm.project(GOOGLE_PROJECT).tokens
    endpoint.behave(mode, **options)

    notification = phones.send(channel, platform)

    assert support.counts(notification) == ("processing", 3, 0, 0)
    assert set(support.deliveries(notification).values_list("code", flat=True)) == {
        "token_unavailable"
    }
    assert phones.credential(channel).paused_at is None
    batch = Batch.objects.get()
    assert batch.due_at - batch.claimed_at >= timedelta(seconds=least - 1)
    assert len(endpoint.receipts) == 1  # not once for each phone
    endpoint.behave("accept")
    connections.shut_down()  # and with them the rest after a failure
    phones.send_again(notification, platform)
    assert phones.received(devices) == [1] * 3

"""The modes that all sandboxes share, over a real connection, and how they are set."""

import http.client
import json
import time
from email.utils import parsedate_to_datetime

import pytest

from sandbox import ApnsMode, FcmMode, KeyMode, Mode
from sandbox.fcm.behaviours import ProjectMode, TokenMode
from tests.sandbox.services import SERVICES

OVER_HTTP = ("web", "android")  # APNs serves HTTP/2
INSTEAD_OF_A_RESPONSE = {
    "reset": ConnectionResetError,
    "close_after_accept": http.client.RemoteDisconnected,
    "garbage": http.client.BadStatusLine,
}


@pytest.fixture(scope="module", params=SERVICES)
def service(request):
    with SERVICES[request.param]() as running:
        yield running


@pytest.fixture
def device(service):
    return service.register()


def test_a_retry_after_is_in_seconds_a_date_or_absent(service, device):
    device.behave("throttled", retry_after=7)
    assert service.sender.send(device).headers["Retry-After"] == "7"
    device.behave("throttled", retry_after=7, as_date=True)
    date = parsedate_to_datetime(service.sender.send(device).headers["Retry-After"])
    assert 0 <= date.timestamp() - time.time() <= 8
    device.behave("throttled")
    response = service.sender.send(device)
    assert (response.status, "Retry-After" in response.headers) == (429, False)


def test_any_response_can_be_chosen(service, device):
    headers = {"X-Tea": "green", "content-type": "text/x-test"}
    body = {"reason": "Teapot"}
    device.behave("error", status=418, body=body, headers=headers, retry_after=9)
    response = service.sender.send(device)
    assert (response.status, json.loads(response.body)) == (418, body)
    assert response.headers["Content-Type"].startswith("text/x-test")
    assert (response.headers["X-Tea"], response.headers["Retry-After"]) == ("green", "9")


@pytest.mark.parametrize(("status", "accepted"), [(200, 1), (202, 1), (400, 0), (599, 0)])
def test_only_a_chosen_success_is_accepted(service, device, status, accepted):
    device.behave("error", status=status, body={})
    assert service.statuses(device, 1) == [status]
    assert service.sandbox.accepted_count(service.id_of(device)) == accepted


@pytest.mark.parametrize("service", OVER_HTTP, indirect=True)
def test_a_slow_device_accepts_in_the_end(service, device):
    device.behave("slow", seconds=2.0)
    with pytest.raises(TimeoutError):
        service.sender.send(device, timeout=0.5)
    assert service.statuses(device, 1) == [service.accepted]
    assert [receipt.accepted for receipt in device.receipts] == [False, True]


@pytest.mark.parametrize("service", OVER_HTTP, indirect=True)
def test_a_hanging_device_never_responds(service, device):
    device.behave("hang", times=1)
    with pytest.raises(TimeoutError):
        service.sender.send(device, timeout=2.0)
    [receipt] = device.receipts
    assert (receipt.status, receipt.accepted) == (None, False)


@pytest.mark.parametrize("service", OVER_HTTP, indirect=True)
@pytest.mark.parametrize("mode", INSTEAD_OF_A_RESPONSE)
def test_a_connection_can_end_without_a_response(service, device, mode):
    device.behave(mode, times=1)
    with pytest.raises((http.client.HTTPException, OSError)) as raised:
        service.sender.send(device)
    assert raised.type is INSTEAD_OF_A_RESPONSE[mode]
    [receipt] = device.receipts
    assert (receipt.status, receipt.complete, receipt.accepted) == (None, False, False)
    assert receipt.taken is (mode == "close_after_accept")


def test_a_behaviour_ends_after_its_times_and_belongs_to_one_device(service, device):
    device.behave("throttled", times=2)
    assert service.statuses(service.register(), 1) == [service.accepted]
    assert service.sender.send(device, **service.invalid).status == 400
    assert service.statuses(device, 3) == [429, 429, service.accepted]


def test_a_behaviour_without_times_stays_until_it_is_replaced(service, device):
    device.behave("throttled")
    assert service.statuses(device, 3) == [429, 429, 429]
    device.behave("accept")
    assert service.statuses(device, 1) == [service.accepted]


@pytest.mark.parametrize(
    ("mode", "options", "complaint"),
    [
        ("sleepy", {}, "mode must be one of accept, "),
        ("accept", {"status": 410}, "mode accept has no option status"),
        ("slow", {}, "mode slow needs the option seconds"),
        ("slow", {"seconds": -1}, "seconds must be"),
        ("slow", {"seconds": float("nan")}, "seconds must be"),
        ("error", {}, "mode error needs the option status"),
        ("error", {"status": 199}, "status must be"),
        ("error", {"status": True}, "status must be"),
        ("error", {"status": 500, "headers": {"A": "b\r\nC: d"}}, "headers must be"),
        ("error", {"status": 500, "body": 5}, "body must be"),
        ("error", {"status": 500, "body": "\ud800"}, "body must be"),
        ("throttled", {"retry_after": "soon"}, "retry_after must be"),
        ("throttled", {"as_date": 1}, "as_date must be"),
        ("accept", {"times": 0}, "times must be"),
        ("accept", {"times": 1.5}, "times must be"),
        ("accept", {"times": True}, "times must be"),
    ],
)
def test_an_invalid_behaviour_is_rejected_with_a_reason(device, mode, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        device.behave(mode, **options)


@pytest.mark.parametrize("modes", [Mode, FcmMode, ProjectMode, TokenMode, ApnsMode, KeyMode])
def test_every_mode_is_described(modes):
    assert all(mode.value in modes.__doc__ for mode in modes)

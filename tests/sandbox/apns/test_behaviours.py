"""Each mode does what its name says over a real connection, for as many requests as it was set
for."""

import json
import time

import pytest
from h2.errors import ErrorCodes

from sandbox import running_apns_sandbox
from tests.sandbox.apns.sender import Provider, headers_of, token_of


@pytest.fixture(scope="module")
def sandbox():
    with running_apns_sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def token(sandbox):
    return token_of(sandbox.key())


@pytest.fixture
def device(sandbox):
    return sandbox.register()


@pytest.fixture
def provider(sandbox, token):
    """A provider on a connection that takes many requests at once."""
    with Provider(sandbox) as connected:
        connected.send(headers_of(sandbox.register(), token))
        yield connected


def last(device):
    return device.receipts[-1]


@pytest.mark.parametrize(
    ("mode", "status", "reason"),
    [
        ("bad_device_token", 400, "BadDeviceToken"),
        ("not_for_topic", 400, "DeviceTokenNotForTopic"),
        ("throttled", 429, "TooManyRequests"),
        ("internal_error", 500, "InternalServerError"),
        ("unavailable", 503, "ServiceUnavailable"),
        ("shutdown", 503, "Shutdown"),
    ],
)
def test_an_error_mode_responds_with_apples_reason(provider, token, device, mode, status, reason):
    device.behave(mode)
    answered = provider.send(headers_of(device, token))
    assert (answered.status, json.loads(answered.body)) == (status, {"reason": reason})
    assert (last(device).status, last(device).complete, last(device).accepted) == (
        status,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("mode", "reason"), [("unregistered", "Unregistered"), ("expired_token", "ExpiredToken")]
)
def test_a_dead_token_has_a_timestamp_in_milliseconds(provider, token, device, mode, reason):
    device.behave(mode, timestamp=1_700_000_000_123)
    answered = provider.send(headers_of(device, token))
    assert (answered.status, json.loads(answered.body)) == (
        410,
        {"reason": reason, "timestamp": 1_700_000_000_123},
    )
    device.behave(mode)
    before = int(time.time() * 1_000)
    said = json.loads(provider.send(headers_of(device, token)).body)
    assert before <= said["timestamp"] <= time.time() * 1_000


def test_a_deleted_app_is_unregistered_since_its_deletion(sandbox, provider, token, device):
    sandbox.delete(device)
    answered = provider.send(headers_of(device, token))
    assert (answered.status, answered.reason) == (410, "Unregistered")
    first = json.loads(answered.body)["timestamp"]
    sandbox.delete(device)
    assert json.loads(provider.send(headers_of(device, token)).body)["timestamp"] == first


def test_an_error_can_have_no_body(provider, token, device):
    device.behave("header_only", status=400)
    answered = provider.send(headers_of(device, token))
    assert (answered.status, answered.frames) == (400, [])


def test_an_error_can_end_with_an_empty_frame(provider, token, device):
    device.behave("empty_data", status=400)
    answered = provider.send(headers_of(device, token))
    assert answered.frames == [len(answered.body), 0]


def test_a_success_can_lack_its_apns_id(provider, token, device):
    device.behave("no_apns_id")
    answered = provider.send(headers_of(device, token))
    assert answered.status == 200
    assert "apns-id" not in answered.headers


def test_a_success_can_lack_its_end(provider, token, device):
    device.behave("endless")
    stream_id = provider.post(headers_of(device, token))
    with pytest.raises(ConnectionAbortedError):
        provider.read_to_the_end()
    assert (provider.answers[stream_id].status, provider.answers[stream_id].ended) == (200, False)


def test_a_slow_response_delays_no_other(provider, token, sandbox, device):
    device.behave("slow", seconds=2.0)
    slow = provider.post(headers_of(device, token))
    assert provider.send(headers_of(sandbox.register(), token)).status == 200
    assert not provider.answers[slow].ended
    assert provider.read(slow).status == 200


def test_a_request_can_hang_while_others_get_a_response(provider, token, sandbox, device):
    device.behave("hang")
    hanging = provider.post(headers_of(device, token))
    assert provider.send(headers_of(sandbox.register(), token)).status == 200
    assert not provider.answers[hanging].ended
    assert (last(device).status, last(device).taken) == (None, False)


def test_a_connection_can_be_reset_without_a_response(provider, token, device):
    device.behave("reset")
    provider.post(headers_of(device, token))
    with provider.without_tls() as plain, pytest.raises(ConnectionResetError):
        list(iter(lambda: plain.recv(65_536), b""))
    assert (last(device).status, last(device).taken) == (None, False)


def test_a_connection_can_be_closed_after_the_message_was_taken(provider, token, device):
    device.behave("close_after_accept")
    with pytest.raises(ConnectionAbortedError):
        provider.send(headers_of(device, token))
    assert (last(device).status, last(device).taken, last(device).accepted) == (None, True, False)


def test_garbage_is_not_valid_http2(provider, token, device):
    device.behave("garbage")
    provider.post(headers_of(device, token))
    read = b""
    while data := provider.socket.recv(65_536):
        read += data
    assert b"HTTP/1.1" in read


@pytest.mark.parametrize(
    ("mode", "code"),
    [("rst_stream", ErrorCodes.INTERNAL_ERROR), ("refused_stream", ErrorCodes.REFUSED_STREAM)],
)
def test_a_single_stream_can_be_reset(provider, token, sandbox, device, mode, code):
    device.behave(mode)
    assert provider.send(headers_of(device, token)).reset == code
    assert provider.send(headers_of(sandbox.register(), token)).status == 200


def read_to_the_end(provider):
    """Every byte, and the position of a GOAWAY frame among them; h2 would stop at it."""
    read = b""
    while data := provider.socket.recv(65_536):
        read += data
    frames = []
    while len(read) >= 9:
        length = int.from_bytes(read[:3])
        frames.append((read[3], int.from_bytes(read[5:9]), read[9 : 9 + length]))
        read = read[9 + length :]
    return frames


HEADERS, GOAWAY = 1, 7


@pytest.mark.parametrize(
    ("mode", "options", "order"),
    [("goaway", {}, [HEADERS, GOAWAY]), ("goaway_first", {"seconds": 0.05}, [GOAWAY, HEADERS])],
)
def test_goaway_names_the_last_request_with_a_response(
    provider, token, device, mode, options, order
):
    device.behave(mode, **options)
    stream_id = provider.post(headers_of(device, token))
    frames = [frame for frame in read_to_the_end(provider) if frame[0] in (HEADERS, GOAWAY)]
    assert [kind for kind, _, _ in frames] == order
    [goaway] = [content for kind, _, content in frames if kind == GOAWAY]
    assert int.from_bytes(goaway[:4]) == stream_id
    assert last(device).accepted


def test_goaway_can_leave_a_request_unprocessed_and_respond_to_those_before(
    provider, token, sandbox, device
):
    slow = sandbox.register()
    slow.behave("slow", seconds=2.0)
    device.behave("goaway_unprocessed")
    before = provider.post(headers_of(slow, token))
    provider.post(headers_of(device, token))
    late = sandbox.register()
    provider.post(headers_of(late, token))
    frames = read_to_the_end(provider)
    [goaway] = [content for kind, _, content in frames if kind == GOAWAY]
    assert int.from_bytes(goaway[:4]) == before
    assert [stream for kind, stream, _ in frames if kind == HEADERS] == [before]
    assert (slow.receipts[0].accepted, last(device).taken, late.receipts) == (True, False, [])


def test_one_stream_is_allowed_until_a_valid_token_and_the_number_can_be_changed(
    sandbox, token, device
):
    with Provider(sandbox) as provider:
        provider.send(headers_of(device, "nonsense"))
        assert provider.streams[-1] == 1
        provider.send(headers_of(device, token))
        assert provider.streams[-1] == 1_000
        device.behave("streams", streams=1, times=1)
        provider.send(headers_of(device, token))
        assert provider.streams[-1] == 1
        device.behave("streams", streams=50, times=1)
        assert provider.send(headers_of(device, token)).status == 200
        assert provider.streams[-1] == 50


@pytest.mark.parametrize(
    ("mode", "options", "error"),
    [
        ("streams", {"streams": "1"}, "streams must be a number"),
        ("unregistered", {"timestamp": 1.5}, "timestamp must be milliseconds"),
    ],
)
def test_an_invalid_behaviour_is_rejected(device, mode, options, error):
    with pytest.raises(ValueError, match=error):
        device.behave(mode, **options)

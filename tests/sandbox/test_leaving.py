"""Receipts say whether the sender read the answer, over HTTP/1.1 and HTTP/2."""

import http.client
import socket
import struct
import time

import pytest
from h2.exceptions import ProtocolError

from sandbox import running_apns_sandbox, running_sandbox
from tests.calls import standing_still
from tests.sandbox.apns.sender import Provider, headers_of, token_of
from tests.sandbox.webpush.sender import Sender, encoded

# struct linger: on, for zero seconds, which makes close() send RST
RESETS_AT_ONCE = struct.pack("ii", 1, 0)


@pytest.fixture
def web():
    with running_sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def apns():
    with running_apns_sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def token(apns):
    return token_of(apns.key())


def request_to(device):
    """A connection on which a request was sent, and no answer was read."""
    host, port = device.endpoint.split("/")[2].split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("POST", f"/push/{device.id}", encoded(device), Sender().headers(device))
    return connection


def until(is_so):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_answered(device):
    return bool(device.receipts) and device.receipts[-1].complete


def test_a_response_that_waits_unread_when_the_sender_closes_is_noted(web):
    device = web.subscribe()
    connection = request_to(device)
    until(lambda: is_answered(device))
    connection.close()
    until(lambda: device.receipts[0].unread)
    assert device.receipts[0].accepted


def test_a_response_to_a_sender_that_has_closed_is_noted(web):
    device = web.subscribe()
    with standing_still([device]) as wait_until_called:
        connection = request_to(device)
        wait_until_called()
        connection.close()
    until(lambda: device.receipts[0].unread)


def test_a_response_was_read_if_another_request_followed():
    with running_sandbox() as web:
        device = web.subscribe()
        connection = request_to(device)
        assert connection.getresponse().read() == b""
        device.behave("hang")
        connection.request("POST", f"/push/{device.id}", encoded(device), Sender().headers(device))
        until(lambda: len(device.receipts) == 2)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS_AT_ONCE)
        connection.close()
    assert not device.receipts[0].unread


def test_a_sender_that_closes_after_it_read_the_answer_is_not_noted():
    with running_sandbox() as web:
        device = web.subscribe()
        connection = request_to(device)
        assert connection.getresponse().read() == b""
        connection.close()
    assert not device.receipts[0].unread


def test_a_response_on_a_stream_that_the_client_resets_is_noted_and_no_other(apns, token):
    read, given_up = apns.register(), apns.register()
    with Provider(apns) as provider:
        assert provider.send(headers_of(read, token)).status == 200
        stream = provider.post(headers_of(given_up, token))
        until(lambda: is_answered(given_up))
        provider.reset(stream)
        until(lambda: given_up.receipts[0].unread)
        assert not read.receipts[0].unread


def test_a_request_that_is_reset_before_it_is_read_is_not_taken_and_costs_no_other(apns, token):
    read, given_up = apns.register(), apns.register()
    with Provider(apns) as provider:
        assert provider.send(headers_of(apns.register(), token)).status == 200
        with standing_still([read]) as wait_until_called:
            stream = provider.post(headers_of(read, token))
            wait_until_called()
            provider.reset(provider.post(headers_of(given_up, token)))
        assert provider.read(stream).status == 200
        assert provider.send(headers_of(read, token)).status == 200
    assert given_up.receipts == []


def test_a_response_is_noted_if_the_client_leaves_without_a_word(apns, token):
    device = apns.register()
    with Provider(apns) as provider:
        provider.post(headers_of(device, token))
        until(lambda: is_answered(device))
    until(lambda: device.receipts[0].unread)


def test_a_response_is_not_noted_if_the_client_says_goodbye():
    with running_apns_sandbox() as apns:
        device = apns.register()
        with Provider(apns) as provider:
            assert provider.send(headers_of(device, token_of(apns.key()))).status == 200
            provider.say_goodbye()
    assert not device.receipts[0].unread


@pytest.mark.parametrize("mode", ["reset", "close_after_accept", "garbage"])
def test_a_connection_that_the_push_service_cuts_is_no_excuse(apns, token, mode):
    """It cuts it after its answers have arrived, before it asks whether they were read."""
    device, cutting = apns.register(), apns.register()
    cutting.behave(mode)
    with Provider(apns) as provider:
        assert provider.send(headers_of(apns.register(), token)).status == 200
        provider.post(headers_of(device, token))
        until(lambda: is_answered(device))
        provider.post(headers_of(cutting, token))
        with pytest.raises((ConnectionError, ProtocolError)):
            provider.read_to_the_end()
    until(lambda: apns.open_connection_count == 0)
    assert not device.receipts[0].unread


def test_a_response_before_a_ping_that_the_client_acknowledged_was_read():
    with running_apns_sandbox() as apns:
        device = apns.register()
        with Provider(apns) as provider:
            assert provider.send(headers_of(device, token_of(apns.key()))).status == 200
            while not provider.pings:
                provider.read_some()
    assert not device.receipts[0].unread

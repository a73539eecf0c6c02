import asyncio
import logging
import socket
import ssl
import threading

import pytest
from py_vapid import Vapid02

from notifications_app.delivery.types import Accepted, Deferred, Gone, Rejected
from notifications_app.delivery.webpush.transport import VapidKey
from pushsvc.common import egress
from tests.delivery.support import (
    CREDENTIALS,
    KEY_ID,
    Browser,
    PushService,
    answer,
    hang,
    hang_up,
    make_client,
    make_message,
    raw,
    reset,
    seconds_for,
    send,
)


def sent(behave, **settings):
    """The outcome at a trusted origin that behaves so, and what the origin received."""

    async def once():
        async with PushService(behave) as service:
            destination = Browser().destination(f"{service.origin}/push/1")
            outcome = await send(destination, trusted=[service.origin], **settings)
            return outcome, service.received

    return asyncio.run(once())


def test_a_message_arrives_readable_and_signed():
    browser = Browser()

    async def deliver():
        async with PushService(answer(201, ["Location: /m/77"])) as service:
            destination = browser.destination(f"{service.origin}/push/1?a=%2b")
            return await send(destination, trusted=[service.origin]), service

    outcome, service = asyncio.run(deliver())
    assert outcome == Accepted()
    [request] = service.received
    assert (request.method, request.path) == ("POST", "/push/1?a=%2b")
    assert browser.read(request.body)["body"] == "It rains."
    assert request.headers["TTL"] == "3600"
    assert Vapid02.verify(request.headers["Authorization"].replace(", k=", ",k="))


def test_the_messages_of_a_batch_share_a_connection():
    async def deliver():
        async with PushService(answer()) as service:
            client = make_client(service.origin)
            for number in range(3):
                destination = Browser().destination(f"{service.origin}/push/{number}")
                await client.send(make_message(), destination, CREDENTIALS)
            await client.close()
            return service

    service = asyncio.run(deliver())
    assert (service.connections, len(service.received)) == (1, 3)


def test_connections_to_an_origin_are_limited():
    async def deliver():
        async with PushService(answer()) as service:
            client = make_client(service.origin, calls_in_flight=2)
            destinations = [
                Browser().destination(f"{service.origin}/push/{number}") for number in range(10)
            ]
            outcomes = await asyncio.gather(
                *(
                    client.send(make_message(), destination, CREDENTIALS)
                    for destination in destinations
                )
            )
            await client.close()
            return set(outcomes), service.connections

    assert asyncio.run(deliver()) == ({Accepted()}, 2)


ENDLESS = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        (answer(404), Gone("endpoint_gone", "404")),
        (answer(429, ["Retry-After: 9"]), Deferred("throttled", "429", 9.0)),
        (answer(500, body=b"oh"), Deferred("service_error", "500 oh", outage=True)),
        (raw(ENDLESS, b"1\r\nx\r\n" * 1_000), Accepted()),
    ],
)
def test_each_answer_becomes_its_outcome(behave, outcome):
    assert sent(behave)[0] == outcome


def test_a_redirect_to_a_private_address_is_refused_and_not_followed():
    async def redirect():
        async with PushService(answer()) as inside:
            location = f"Location: {inside.origin}/"
            async with PushService(answer(307, [location])) as service:
                destination = Browser().destination(f"{service.origin}/push/1")
                outcome = await send(destination, trusted=[service.origin, inside.origin])
                return outcome, inside.connections

    assert asyncio.run(redirect()) == (Rejected("redirected", "307"), 0)


@pytest.mark.parametrize(
    ("behave", "code"),
    [
        (hang, "timeout"),
        (raw(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.05), "timeout"),
        (hang_up, "connection_failed"),
        (reset, "connection_failed"),
        (raw(b"SSH-2.0-OpenSSH_9.7\r\n"), "connection_failed"),
        (raw(b"HTTP/1.1 201 Created\r\n" + b"X: " + b"y" * 100_000), "connection_failed"),
        (raw(b"HTTP/1.1 201 Created\r\nContent-Length: -1\r\n\r\n"), "connection_failed"),
    ],
)
def test_a_missing_or_broken_answer_is_an_outage(behave, code):
    outcome, received = sent(behave, call_seconds=seconds_for(code))
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.outage) == (code, True)
    assert len(received) == 1


def test_a_refused_connection_is_an_outage():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        origin = f"http://127.0.0.1:{closed.getsockname()[1]}"
    outcome = asyncio.run(send(Browser().destination(f"{origin}/push/1"), trusted=[origin]))
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.outage) == ("connection_failed", True)


@pytest.fixture
def names(monkeypatch):
    """Replaces the system's resolver; the test sets where names lead, and at first they do not
    resolve."""
    addresses = {}

    def look_up(host, port, *_, **__):
        if host not in addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        address = addresses[host]() if callable(addresses[host]) else addresses[host]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    return addresses


@pytest.fixture
def dialled(monkeypatch):
    """The addresses that are dialled; no connection is ever made."""
    addresses = []

    async def swallow(_, __, address):
        addresses.append(address)
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", swallow)
    return addresses


@pytest.mark.parametrize("host", ["fcm.googleapis.com", "push.example.org"])
def test_a_public_name_that_resolves_to_a_private_address_is_not_dialled(names, dialled, host):
    names[host] = "127.0.0.1"
    outcome = asyncio.run(send(Browser().destination(f"https://{host}/push/1"), call_seconds=5.0))
    assert dialled == []
    assert outcome == Rejected("endpoint_not_allowed", "The host's address is not public.")


@pytest.mark.parametrize(
    ("host", "connect_seconds", "unknown_host_seconds"),
    [("fcm.googleapis.com", 0.5, 3600.0), ("push.example.org", 3600.0, 2.0)],
)
def test_a_host_that_accepts_no_connection_does_not_take_the_time_of_a_whole_call(
    names, dialled, host, connect_seconds, unknown_host_seconds, monkeypatch
):
    """Connecting has its own limit, and the calls of unknown hosts have a shorter one."""
    monkeypatch.setattr(egress, "CONNECT_TIMEOUT", connect_seconds)
    names[host] = "192.88.98.1"
    destination = Browser().destination(f"https://{host}/push/1")
    sending = send(destination, call_seconds=3600.0, unknown_host_call_seconds=unknown_host_seconds)

    outcome = asyncio.run(asyncio.wait_for(sending, 30))

    assert outcome == Deferred("timeout", outage=True)
    assert dialled == [("192.88.98.1", 443)]


@pytest.mark.usefixtures("names")
def test_the_name_of_an_unknown_host_that_does_not_exist_is_a_suspect():
    outcome = asyncio.run(send(Browser().destination("https://push.example.org/push/1")))
    assert outcome == Gone("name_not_found", suspect=True, attempts=3)


@pytest.mark.usefixtures("names")
def test_the_name_of_a_known_or_trusted_service_that_does_not_exist_is_an_outage():
    trusted = "https://push.lan"
    for origin in ("https://fcm.googleapis.com", trusted):
        outcome = asyncio.run(send(Browser().destination(f"{origin}/push/1"), trusted=[trusted]))
        assert outcome == Deferred("name_not_resolved", outage=True)


@pytest.mark.parametrize("error", [socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_NODATA])
def test_a_name_for_which_no_server_answers_or_that_has_no_address_is_an_outage(names, error):
    def fails():
        raise socket.gaierror(error, "no answer")

    names["push.example.org"] = fails
    outcome = asyncio.run(send(Browser().destination("https://push.example.org/push/1")))
    assert outcome == Deferred("name_not_resolved", outage=True)


@pytest.mark.parametrize(
    ("host", "is_suspect"), [("permanently-removed.invalid", False), ("push.test", True)]
)
def test_a_reserved_name_is_gone_without_a_look_up(names, host, is_suspect):
    names[host] = "8.8.8.8"
    outcome = asyncio.run(send(Browser().destination(f"https://{host}/push/1")))
    assert outcome == Gone("name_not_found", "a reserved name", suspect=is_suspect)


def test_unknown_hosts_with_unresolved_names_do_not_delay_a_known_push_service(names):
    leave = threading.Event()

    def never():
        leave.wait(60)
        return "127.0.0.1"

    unknown = [f"host-{number}.example.org" for number in range(40)]
    names.update(dict.fromkeys(unknown, never))
    names["fcm.googleapis.com"] = "127.0.0.1"

    async def deliver():
        client = make_client(call_seconds=3.0, unknown_host_call_seconds=1.0)
        sends = [
            asyncio.ensure_future(
                client.send(make_message(), Browser().destination(f"https://{host}/"), CREDENTIALS)
            )
            for host in (*unknown, "fcm.googleapis.com")
        ]
        *others, known = await asyncio.gather(*sends)
        leave.set()
        await client.close()
        return set(others), known

    others, known = asyncio.run(deliver())
    assert others == {Deferred("timeout", outage=True)}
    assert known == Rejected("endpoint_not_allowed", "The host's address is not public.")


@pytest.mark.parametrize(
    "endpoint",
    ["http://push.example.org/", "https://127.0.0.1/", "https://nas.lan/", "nonsense", ""],
)
def test_an_endpoint_that_is_no_longer_allowed_is_refused(endpoint):
    outcome = asyncio.run(send(Browser().destination(endpoint)))
    assert isinstance(outcome, Rejected)
    assert outcome.code == "endpoint_not_allowed"


def test_a_host_that_was_removed_from_the_list_is_refused():
    destination = Browser().destination("https://push.example.org/1")
    outcome = asyncio.run(send(destination, allowed_hosts=("example.net",)))
    assert outcome == Rejected(
        "endpoint_not_allowed", "The endpoint's host is not among the allowed hosts."
    )
    assert not outcome.was_called


def refused_unsent(behave=None, *, destination=None, **over):
    async def once():
        async with PushService(behave or answer()) as service:
            browser = Browser().destination(f"{service.origin}/push/1", **destination or {})
            outcome = await send(browser, trusted=[service.origin], **over)
            assert not outcome.was_called
            return outcome, len(service.received)

    return asyncio.run(once())


def test_keys_that_cannot_be_encrypted_to_are_refused_unsent():
    outcome = refused_unsent(destination={"p256dh": "AAAA"})
    assert outcome == (Rejected("bad_keys"), 0)


def test_a_payload_that_is_too_large_is_refused_unsent():
    outcome = refused_unsent(message=make_message(data={"a": "x" * 4_000}))
    assert outcome == (Rejected("payload_too_large", "more than 3993 bytes"), 0)


@pytest.mark.parametrize(
    "credentials",
    [{}, {KEY_ID: VapidKey("damaged", "mailto:push@example.com")}],
)
def test_an_unreadable_vapid_key_defers_the_recipient(credentials):
    outcome = refused_unsent(credentials=credentials)
    assert outcome == (Deferred("vapid_key_unreadable"), 0)


def test_our_own_error_becomes_an_outcome_and_is_logged_without_the_endpoint(caplog):
    with caplog.at_level(logging.ERROR):
        outcome, requests = refused_unsent(message=make_message(topic="a\r\nX-Evil: 1"))
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.outage, requests) == ("unexpected_error", False, 0)
    [record] = caplog.records
    assert (record.message, record.error) == ("web.unexpected_error", "ValueError")
    assert record.exc_info is None
    assert "127.0.0.1" not in caplog.text


def test_a_cancelled_send_is_cancelled():
    async def cancel():
        async with PushService(hang) as service:
            destination = Browser().destination(f"{service.origin}/push/1")
            task = asyncio.ensure_future(send(destination, trusted=[service.origin]))
            await service.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())


def over_tls(certificate, **settings):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)

    async def once():
        async with PushService(answer(), tls=tls) as service:
            destination = Browser().destination(f"{service.origin}/push/1")
            return await send(destination, trusted=[service.origin], **settings)

    return asyncio.run(once())


def test_the_operators_authority_is_trusted_if_it_is_set(certificate):
    assert over_tls(certificate, ca_file=str(certificate)) == Accepted()


def test_an_unknown_authority_is_not_trusted(certificate):
    assert over_tls(certificate) == Deferred("tls_failed", outage=True)

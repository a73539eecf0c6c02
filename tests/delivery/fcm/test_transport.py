"""The transport against the FCM sandbox, and against servers that misbehave."""

import asyncio
import logging
import socket
import ssl
from types import SimpleNamespace

import pytest

from notifications_app.delivery.types import Accepted, Deferred, Gone, Misconfigured, Rejected
from sandbox import running_fcm_sandbox
from tests.delivery.fcm.support import PROJECT, client_of, credentials_of, destination_of, send
from tests.delivery.support import (
    PushService,
    answer,
    hang,
    hang_up,
    make_message,
    raw,
    reset,
    seconds_for,
)


@pytest.fixture(scope="module")
def credentials(sandbox):
    return credentials_of(sandbox.service_account(PROJECT))


@pytest.fixture
def device(sandbox):
    return sandbox.register(PROJECT)


def test_a_message_reaches_its_device(sandbox, credentials, device):
    [outcome] = send(sandbox, credentials, device.token)
    assert outcome == Accepted()
    [receipt] = sandbox.messages(device.id)
    assert receipt.accepted
    assert receipt.message["notification"] == {"title": "Rain", "body": "It rains."}
    assert receipt.message["data"]["token"] == "tracking-token"


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"urgency": "very-low"}, {"priority": "NORMAL"}),
        ({"urgency": "high"}, {"priority": "HIGH"}),
        ({"topic": "rain"}, {"collapse_key": "rain"}),
        ({"ttl": 0}, {"ttl": "0s"}),
    ],
)
def test_delivery_options_arrive_as_the_sandbox_accepts_them(
    sandbox, credentials, device, fields, part
):
    [outcome] = send(sandbox, credentials, device.token, message=make_message(**fields))
    assert outcome == Accepted()
    [receipt] = sandbox.messages(device.id)
    assert part.items() <= receipt.message["android"].items()


@pytest.mark.parametrize(
    ("mode", "options", "outcome"),
    [
        ("unregistered", {}, Gone("unregistered", "404 Requested entity was not found.")),
        (
            "bad_token",
            {},
            Gone(
                "token_invalid",
                "400 The registration token is not a valid FCM registration token",
            ),
        ),
        (
            "bad_token",
            {"names_field": True},
            Gone("token_invalid", "400 Request contains an invalid argument."),
        ),
        ("invalid_argument", {}, Rejected("invalid_argument", "400 Chosen by the user")),
        (
            "sender_mismatch",
            {},
            Gone("sender_id_mismatch", "403 SenderId mismatch", suspect=True),
        ),
        (
            "third_party_auth",
            {},
            Rejected("third_party_auth", "401 Auth error from APNS or Web Push Service"),
        ),
        (
            "internal",
            {"retry_after": 30},
            Deferred("service_error", "500 Internal error encountered.", 30.0, outage=True),
        ),
        (
            "unavailable",
            {},
            Deferred("service_error", "503 The service is currently unavailable.", 10.0, True),
        ),
    ],
)
def test_each_error_of_fcm_becomes_its_outcome(
    sandbox, credentials, device, mode, options, outcome
):
    device.behave(mode, **options)
    assert send(sandbox, credentials, device.token) == [outcome]
    assert len(sandbox.messages(device.id)) == 1


@pytest.fixture
def fid_device(sandbox):
    return sandbox.register(PROJECT, by_fid=True)


def test_both_kinds_of_address_are_reached_over_one_client(
    sandbox, credentials, device, fid_device
):
    outcomes = send(sandbox, credentials, fid_device.fid, device.token, fid_device.fid)
    assert outcomes == [Accepted()] * 3
    assert [device.totals().taken, fid_device.totals().taken] == [1, 2]


@pytest.mark.parametrize(
    ("mode", "options", "outcome"),
    [
        ("unregistered", {}, Gone("unregistered", "404 Requested entity was not found.")),
        ("bad_token", {}, Gone("token_invalid", "400 Request contains an invalid argument.")),
        ("invalid_argument", {}, Rejected("invalid_argument", "400 Chosen by the user")),
        ("sender_mismatch", {}, Gone("sender_id_mismatch", "403 SenderId mismatch", suspect=True)),
    ],
)
def test_each_error_about_an_installation_id_becomes_its_outcome(
    sandbox, credentials, fid_device, mode, options, outcome
):
    fid_device.behave(mode, **options)
    assert send(sandbox, credentials, fid_device.fid) == [outcome]


def test_what_fcm_has_against_tokens_is_no_error_of_an_installation_id(
    sandbox, credentials, fid_device
):
    text = "The registration token is not a valid FCM registration token"
    code = {
        "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
        "errorCode": "INVALID_ARGUMENT",
    }
    error = {"status": "INVALID_ARGUMENT", "message": text, "details": [code]}
    fid_device.behave("error", status=400, body={"error": error})

    assert send(sandbox, credentials, fid_device.fid) == [
        Rejected("invalid_argument", f"400 {text}")
    ]


def test_a_project_of_a_domain_is_sent_to(sandbox):
    project = "example.com:my-project"
    account = sandbox.service_account(project)
    assert account["client_email"].endswith("@my-project.example.com.iam.gserviceaccount.com")
    device = sandbox.register(project)
    assert send(sandbox, credentials_of(account), device.token) == [Accepted()]
    assert sandbox.messages(device.id)[0].accepted


def test_an_app_that_registers_by_installation_id_gets_nothing_by_its_token(
    sandbox, credentials, device
):
    gone = Gone("unregistered", "404 Requested entity was not found.")
    assert send(sandbox, credentials, device.fid, device.token) == [gone, Accepted()]
    sandbox.register_by_fid(device)
    assert send(sandbox, credentials, device.fid, device.token) == [Accepted(), gone]


def test_a_wait_can_be_a_date(sandbox, credentials, device):
    device.behave("unavailable", retry_after=100, as_date=True)
    [outcome] = send(sandbox, credentials, device.token)
    assert isinstance(outcome, Deferred)
    assert 60 < outcome.retry_after <= 100


def test_a_project_over_its_quota_waits_for_as_long_as_fcm_says(sandbox):
    project = sandbox.project("full-app")
    project.quota_per_minute = 1
    credentials = credentials_of(sandbox.service_account("full-app"))
    tokens = [sandbox.register("full-app").token for _ in range(2)]
    first, second = send(sandbox, credentials, *tokens)
    assert isinstance(first, Accepted)
    assert isinstance(second, Deferred)
    assert (second.code, second.outage) == ("throttled", False)
    assert 0 < second.retry_after <= 60


def test_a_token_of_another_project_is_a_suspect(sandbox, credentials):
    foreign = sandbox.register("other-app")
    [outcome] = send(sandbox, credentials, foreign.token)
    assert outcome == Gone("sender_id_mismatch", "403 SenderId mismatch", suspect=True)


@pytest.mark.parametrize("mode", ["permission_denied", "service_disabled"])
def test_an_account_without_the_permission_is_misconfigured(sandbox, mode):
    credentials = credentials_of(sandbox.service_account("closed-app"))
    device = sandbox.register("closed-app")
    sandbox.project("closed-app").messaging.behave(mode, times=1)
    refused, taken = send(sandbox, credentials, device.token, device.token)
    assert isinstance(refused, Misconfigured)
    assert refused.code == "permission_denied"
    assert isinstance(taken, Accepted)


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("hang", "timeout"),
        ("reset", "connection_failed"),
        ("garbage", "connection_failed"),
        ("close_after_accept", "connection_failed"),
    ],
)
def test_a_missing_or_broken_answer_is_an_outage_and_not_retried_within_the_call(
    sandbox, credentials, device, mode, code
):
    device.behave(mode)
    [outcome] = send(sandbox, credentials, device.token, call_seconds=seconds_for(code))
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.retry_after, outcome.outage) == (code, 10.0, True)
    assert len(sandbox.messages(device.id)) == 1


def test_an_answer_whose_body_never_ends_counts_by_its_status(sandbox, credentials, device):
    device.behave("endless_body", status=200)
    assert send(sandbox, credentials, device.token) == [Accepted()]


async def sent(behave, sandbox, credentials, **settings):
    """The outcome if FCM behaves so, and how many requests it got."""
    async with PushService(behave) as fcm:
        urls = SimpleNamespace(origin=fcm.origin, token_uri=sandbox.token_uri)
        async with client_of(urls, **settings) as client:
            outcome = await client.send(make_message(), destination_of("t"), credentials)
        return outcome, len(fcm.received)


@pytest.mark.parametrize(
    ("behave", "code"),
    [
        (hang, "timeout"),
        (raw(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.05), "timeout"),
        (hang_up, "connection_failed"),
        (reset, "connection_failed"),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 100_000), "connection_failed"),
    ],
)
def test_a_server_that_does_not_speak_http_is_an_outage(sandbox, credentials, behave, code):
    seconds = seconds_for(code)
    outcome, requests = asyncio.run(sent(behave, sandbox, credentials, call_seconds=seconds))
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.outage, requests) == (code, True, 1)


def test_a_redirect_is_not_followed(sandbox, credentials):
    async def redirected():
        async with PushService(answer(200)) as inside:
            redirect = answer(307, [f"Location: {inside.origin}/"])
            outcome, _ = await sent(redirect, sandbox, credentials)
            return outcome, inside.connections

    outcome, connections = asyncio.run(redirected())
    assert isinstance(outcome, Deferred)
    assert (outcome.code, connections) == ("redirected", 0)


def test_a_payload_that_is_too_large_is_refused_unsent(sandbox, credentials, device):
    message = make_message(data={"a": "x" * 4_000})
    [outcome] = send(sandbox, credentials, device.token, message=message)
    assert outcome == Rejected("payload_too_large", "more than 4096 bytes")
    assert not outcome.was_called
    assert sandbox.messages(device.id) == []


def test_a_refused_connection_is_an_outage(credentials, sandbox, device):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        origin = f"http://127.0.0.1:{closed.getsockname()[1]}"
    [outcome] = send(sandbox, credentials, device.token, fcm_api_base=origin)
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.outage) == ("connection_failed", True)


def test_a_name_that_does_not_resolve_is_an_outage(monkeypatch, credentials, sandbox, device):
    def look_up(host, port, *_, **__):
        if host == "127.0.0.1":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    [outcome] = send(sandbox, credentials, device.token, fcm_api_base="https://fcm.googleapis.com")
    assert outcome == Deferred("name_not_resolved", "", 10.0, outage=True)


def test_our_own_error_becomes_an_outcome_and_is_logged_without_the_token(
    caplog, sandbox, credentials, device
):
    with caplog.at_level(logging.ERROR):
        [outcome] = send(sandbox, credentials, device.token, message=make_message(topic=5))
    assert outcome == Deferred("unexpected_error", "ValueError")
    [record] = caplog.records
    assert (record.message, record.error) == ("android.unexpected_error", "ValueError")
    assert record.exc_info is None
    assert device.token not in caplog.text


def test_connections_are_limited_and_shared(sandbox, credentials, device):
    async def deliver():
        async with PushService(answer(200)) as fcm:
            urls = SimpleNamespace(origin=fcm.origin, token_uri=sandbox.token_uri)
            async with client_of(urls, calls_in_flight=2) as client:
                sends = [
                    client.send(make_message(), destination_of(device.token), credentials)
                    for _ in range(10)
                ]
                outcomes = await asyncio.gather(*sends)
            return set(outcomes), fcm.connections, len(fcm.received)

    assert asyncio.run(deliver()) == ({Accepted()}, 2, 10)


def test_a_cancelled_send_is_cancelled(sandbox, credentials):
    async def cancel():
        async with PushService(hang) as fcm:
            urls = SimpleNamespace(origin=fcm.origin, token_uri=sandbox.token_uri)
            async with client_of(urls) as client:
                call = client.send(make_message(), destination_of("t"), credentials)
                task = asyncio.ensure_future(call)
                await fcm.asked.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

    asyncio.run(cancel())


@pytest.fixture(scope="module")
def tls_sandbox(certificate):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with running_fcm_sandbox(ssl_context=tls) as running:
        yield running


@pytest.fixture(scope="module")
def tls_account(tls_sandbox):
    return credentials_of(tls_sandbox.service_account(PROJECT))


def test_the_operators_authority_is_trusted_if_it_is_set(tls_sandbox, tls_account, certificate):
    token = tls_sandbox.register(PROJECT).token
    [outcome] = send(tls_sandbox, tls_account, token, ca_file=str(certificate))
    assert isinstance(outcome, Accepted)


def test_an_unknown_authority_is_not_trusted(tls_sandbox, tls_account, sandbox, credentials):
    device = tls_sandbox.register(PROJECT)
    [outcome] = send(tls_sandbox, tls_account, device.token)
    assert isinstance(outcome, Deferred)
    assert outcome.code == "token_unavailable"
    [outcome] = send(sandbox, credentials, device.token, fcm_api_base=tls_sandbox.origin)
    assert outcome == Deferred("tls_failed", "", 10.0, outage=True)

"""Access tokens: one for each account, renewed in time, without a message lost."""

import asyncio
import json
import time
from types import SimpleNamespace

import pytest

from notifications_app.delivery.fcm import access_token
from notifications_app.delivery.fcm.access_token import (
    AccountUnreadableError,
    Granted,
    ServiceAccount,
    assertion,
)
from notifications_app.delivery.types import Accepted, Deferred, Misconfigured
from pushsvc.common import base64url
from tests.delivery.fcm.support import PROJECT, client_of, credentials_of, destination_of, send
from tests.delivery.support import PushService, answer, hang, make_message


@pytest.fixture(scope="module")
def key_file(sandbox):
    return sandbox.service_account(PROJECT)


@pytest.fixture
def credentials(key_file):
    return credentials_of(key_file)


@pytest.fixture
def project(sandbox):
    """The project, with counts of zero and no behaviour set."""
    sandbox.reset()
    return sandbox.project(PROJECT)


@pytest.fixture
def device(sandbox, project):
    return sandbox.register(PROJECT)


def soon():
    return asyncio.get_running_loop().time() + 20


def test_the_messages_of_a_channel_share_one_token(sandbox, project, credentials, device):
    outcomes = send(sandbox, credentials, *[device.token] * 3)
    assert [type(outcome) for outcome in outcomes] == [Accepted] * 3
    assert project.tokens.totals().requests == 1


def test_concurrent_sends_wait_for_one_refresh(sandbox, project, credentials, device):
    async def deliver():
        async with client_of(sandbox) as client:
            return await asyncio.gather(
                *(
                    client.send(make_message(), destination_of(device.token), credentials)
                    for _ in range(50)
                )
            )

    outcomes = asyncio.run(deliver())
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert project.tokens.totals().requests == 1


def test_each_version_of_the_credentials_has_its_own_token(sandbox, project, key_file, device):
    async def deliver():
        async with client_of(sandbox) as client:
            for version in (1, 2, 1):
                versioned = credentials_of(key_file, version)
                await client.send(make_message(), destination_of(device.token), versioned)

    asyncio.run(deliver())
    assert project.tokens.totals().requests == 2


def test_a_send_that_gives_up_does_not_cancel_the_shared_refresh(
    sandbox, project, credentials, device
):
    project.tokens.behave("slow", seconds=0.5, times=1)

    async def deliver():
        async with client_of(sandbox) as client:
            calls = [
                asyncio.ensure_future(
                    client.send(make_message(), destination_of(device.token), credentials)
                )
                for _ in range(2)
            ]
            while not project.tokens.receipts:  # noqa: ASYNC110 (filled by another thread)
                await asyncio.sleep(0.01)
            calls[0].cancel()
            return await asyncio.gather(*calls, return_exceptions=True)

    cancelled, outcome = asyncio.run(deliver())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert isinstance(outcome, Accepted)
    assert project.tokens.totals().requests == 1


def test_an_expired_token_is_replaced_and_the_message_is_sent(
    sandbox, project, credentials, device
):
    async def deliver():
        async with client_of(sandbox) as client:
            first = await client.send(make_message(), destination_of(device.token), credentials)
            sandbox.expire_tokens(PROJECT)
            more = [
                client.send(make_message(), destination_of(device.token), credentials)
                for _ in range(20)
            ]
            return [first, *await asyncio.gather(*more)]

    outcomes = asyncio.run(deliver())
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert project.tokens.totals().requests == 2
    assert sandbox.accepted_count(device.id) == 21


def test_a_refused_new_token_is_misconfigured(sandbox, project, credentials, device):
    project.messaging.behave("unauthenticated")
    [outcome] = send(sandbox, credentials, device.token)
    assert isinstance(outcome, Misconfigured)
    assert outcome.code == "unauthenticated"
    assert project.messaging.totals().requests == 2
    assert project.tokens.totals().requests == 2


def test_a_device_token_of_ios_does_not_renew_the_access_token(
    sandbox, project, credentials, device
):
    device.behave("third_party_auth")
    send(sandbox, credentials, device.token, device.token)
    assert project.tokens.totals().requests == 1


def test_a_revoked_account_is_misconfigured_and_sends_nothing(sandbox, device):
    key_file = sandbox.service_account(PROJECT)
    sandbox.revoke(key_file)
    [outcome] = send(sandbox, credentials_of(key_file), device.token)
    assert outcome == Misconfigured(
        "token_refused", "400 invalid_grant: Invalid grant: account not found"
    )
    assert sandbox.messages(device.id) == []


def test_an_account_revoked_between_two_messages_is_misconfigured(sandbox, device):
    key_file = sandbox.service_account(PROJECT)

    async def deliver():
        async with client_of(sandbox) as client:
            credentials = credentials_of(key_file)
            first = await client.send(make_message(), destination_of(device.token), credentials)
            sandbox.revoke(key_file)
            return first, await client.send(
                make_message(), destination_of(device.token), credentials
            )

    first, second = asyncio.run(deliver())
    assert isinstance(first, Accepted)
    assert isinstance(second, Misconfigured)
    assert second.code == "token_refused"


def test_a_key_of_another_account_is_misconfigured(sandbox, key_file, device):
    other = sandbox.service_account(PROJECT)
    mixed = credentials_of(key_file, private_key=other["private_key"])
    [outcome] = send(sandbox, mixed, device.token)
    assert outcome == Misconfigured("token_refused", "400 invalid_grant: Invalid JWT Signature.")


@pytest.mark.parametrize(
    ("mode", "options", "retry_after", "outage"),
    [
        ("unavailable", {"retry_after": 30}, 30.0, True),
        ("unavailable", {}, 10.0, True),
        ("throttled", {}, 60.0, False),
        ("hang", {}, 10.0, True),
        ("reset", {}, 10.0, True),
        ("garbage", {}, 10.0, True),
    ],
)
def test_a_failed_refresh_defers_the_recipient(
    sandbox, project, credentials, device, mode, options, retry_after, outage
):
    project.tokens.behave(mode, **options)
    seconds = 4.0 if mode == "hang" else 20.0
    [outcome] = send(sandbox, credentials, device.token, call_seconds=seconds)
    assert isinstance(outcome, Deferred)
    assert outcome.code == "token_unavailable"
    assert (outcome.retry_after, outcome.outage) == (retry_after, outage)
    assert sandbox.messages(device.id) == []


def test_the_wait_for_a_token_is_part_of_the_calls_time(sandbox, project, credentials, device):
    project.tokens.behave("slow", seconds=1.0)
    device.behave("slow", seconds=5.5)
    [outcome] = send(sandbox, credentials, device.token, call_seconds=6.0)
    assert outcome == Deferred("timeout", "", 10.0, outage=True)


def test_a_failed_refresh_is_not_repeated_for_each_recipient(sandbox, project, credentials, device):
    project.tokens.behave("unavailable")
    outcomes = send(sandbox, credentials, *[device.token] * 5)
    assert {outcome.code for outcome in outcomes} == {"token_unavailable"}
    assert project.tokens.totals().requests == 1


@pytest.fixture
def clock(monkeypatch):
    """The monotonic clock as the module sees it. It stands where the test sets it."""
    stands = SimpleNamespace(at=0.0)
    seen = SimpleNamespace(monotonic=lambda: stands.at, time=time.time)
    monkeypatch.setattr(access_token, "time", seen)
    return stands


def through_time(sandbox, clock, credentials, device, *steps):
    """The outcomes of a message at each of the times. An action may come before each."""

    async def deliver():
        outcomes = []
        async with client_of(sandbox) as client:
            for seconds, prepare in steps:
                clock.at = seconds
                prepare()
                call = client.send(make_message(), destination_of(device.token), credentials)
                outcomes.append(await call)
                refreshes = [each.refresh for each in client._tokens._entries.values()]
                await asyncio.gather(*filter(None, refreshes))
        return outcomes

    return asyncio.run(deliver())


def nothing():
    pass


@pytest.mark.parametrize(
    ("lifetime", "later", "requests"),
    [(3_600, 3_250, 1), (3_600, 3_301, 2), (3_600, 3_700, 2), (100, 40, 1), (100, 51, 2)],
)
def test_a_token_is_renewed_five_minutes_before_its_end(
    sandbox, project, credentials, device, clock, lifetime, later, requests
):
    project.tokens.lifetime = lifetime
    steps = [(0, nothing), (later, nothing)]
    outcomes = through_time(sandbox, clock, credentials, device, *steps)
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert project.tokens.totals().requests == requests


def test_an_old_token_is_used_while_its_refresh_fails(sandbox, project, credentials, device, clock):
    fail = lambda: project.tokens.behave("unavailable")  # noqa: E731
    steps = [(0, nothing), (3_400, fail), (3_403, nothing), (3_406, nothing), (3_601, nothing)]
    outcomes = through_time(sandbox, clock, credentials, device, *steps)
    assert [type(outcome) for outcome in outcomes] == [Accepted] * 4 + [Deferred]
    assert project.tokens.totals().requests == 4


def test_no_send_waits_for_a_refresh_while_the_old_token_is_valid(
    sandbox, project, credentials, device, clock
):
    async def deliver():
        async with client_of(sandbox) as client:
            await client.send(make_message(), destination_of(device.token), credentials)
            clock.at = 3_400
            project.tokens.behave("hang")
            outcome = await client.send(make_message(), destination_of(device.token), credentials)
            [entry] = client._tokens._entries.values()
            return outcome, entry.refresh is not None

    outcome, is_refreshing = asyncio.run(deliver())
    assert isinstance(outcome, Accepted)
    assert is_refreshing


def test_a_late_refusal_of_the_old_token_does_not_drop_the_new_one(sandbox, project, credentials):
    async def ask():
        async with client_of(sandbox) as client:
            tokens = client._tokens
            first = await tokens.get(credentials, soon())
            tokens.refuse(credentials, first)
            second = await tokens.get(credentials, soon())
            tokens.refuse(credentials, first)
            return first, second, await tokens.get(credentials, soon())

    first, second, third = asyncio.run(ask())
    assert first != second == third
    assert project.tokens.totals().requests == 2


def test_a_refused_refresh_is_repeated_after_a_pause(sandbox, project, credentials, device, clock):
    project.tokens.behave("invalid_grant", times=1)
    outcomes = through_time(
        sandbox, clock, credentials, device, (0, nothing), (4, nothing), (6, nothing)
    )
    assert [type(outcome) for outcome in outcomes] == [Misconfigured, Misconfigured, Accepted]


def test_closing_a_client_cancels_its_refreshes(credentials):
    async def deliver():
        async with PushService(hang) as google:
            urls = SimpleNamespace(origin=google.origin, token_uri=google.origin)
            async with client_of(urls) as client:
                call = client.send(make_message(), destination_of("t"), credentials)
                task = asyncio.ensure_future(call)
                await google.asked.wait()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(deliver())


def test_the_number_of_cached_tokens_is_bounded(monkeypatch, key_file):
    monkeypatch.setattr(access_token, "MAX_CACHED", 3)

    async def ask():
        good = json.dumps({"access_token": "ya29", "expires_in": 3_600}).encode()
        async with PushService(answer(200, body=good)) as google:
            urls = SimpleNamespace(origin=google.origin, token_uri=google.origin)
            async with client_of(urls) as client:
                for version in [1, 2, 3, 1, 4, 1, 2]:
                    await client._tokens.get(credentials_of(key_file, version), soon())
                return len(client._tokens._entries), len(google.received)

    assert asyncio.run(ask()) == (3, 5)


@pytest.mark.parametrize("private_key", ["", "nonsense", "-----BEGIN PRIVATE KEY-----"])
def test_an_unreadable_key_is_misconfigured(sandbox, key_file, device, private_key):
    [outcome] = send(sandbox, credentials_of(key_file, private_key=private_key), device.token)
    assert outcome == Misconfigured("key_unreadable", "The service account's key cannot be read.")


def test_an_account_without_a_key_id_gets_a_token(sandbox, key_file, device):
    [outcome] = send(sandbox, credentials_of(key_file, private_key_id=""), device.token)
    assert isinstance(outcome, Accepted)


def test_an_assertion_needs_a_key():
    with pytest.raises(AccountUnreadableError):
        assertion(ServiceAccount(PROJECT, "a@b.c", "", "1", version=1), 0)


@pytest.mark.parametrize("secret", ["", "{", "[]", "5", "null", '{"project_id": "demo-app"}'])
def test_stored_text_that_is_no_account_is_refused(secret):
    with pytest.raises(AccountUnreadableError):
        ServiceAccount.parse(secret, 1)


def test_the_repr_of_credentials_shows_no_secret(credentials):
    assert "PRIVATE" not in repr(credentials)
    assert "ya29" not in repr(Granted("ya29.c", 3_600.0))


def test_the_audience_of_an_assertion_is_googles_own_address(credentials):
    """Google compares it with its own name, whatever proxy the request goes through."""
    signed = assertion(credentials, 1_700_000_000)
    claims = json.loads(part(signed, 1))
    assert claims == {
        "iss": credentials.client_email,
        "aud": "https://oauth2.googleapis.com/token",
        "scope": "https://www.googleapis.com/auth/firebase.messaging",
        "iat": 1_700_000_000,
        "exp": 1_700_003_600,
    }
    assert json.loads(part(signed, 0))["kid"] == credentials.private_key_id


def part(token, index):
    return base64url.decode(token.split(".")[index])

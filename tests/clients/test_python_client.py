"""clients/python against the running service, and its retries against a server that fails."""

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from pushsvc_client import AsyncClient, Client, Refused, Unreachable, calls, types
from tests import openapi
from tests.clients.failing import BUSY, SENT, answering

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PACKAGE = CHECKOUT / "clients" / "python"


@pytest.fixture
def push(shop):
    with Client(shop.url, channel=shop.channel, key=shop.key) as push:
        yield push


def test_a_send_is_delivered_and_read(push, shop):
    push.subscribe(shop.browser())
    sent = push.send(title="Hello", body="It works.", url="https://example.com/")

    shown = push.wait(sent["notification_id"])

    assert (shown["status"], shown["delivered_count"], shown["recipient_count"]) == ("sent", 1, 1)
    assert [each["notification_id"] for each in push.notifications()] == [sent["notification_id"]]
    assert push.statistics()["subscriber_count"] == 1


def test_an_unsubscribed_browser_is_sent_nothing(push, shop):
    browser = shop.browser()
    push.subscribe(browser)
    push.unsubscribe({"endpoint": browser["endpoint"]})

    sent = push.send(body="Anybody?")

    assert push.wait(sent["notification_id"])["recipient_count"] == 0


def test_a_scheduled_notification_is_paused_resumed_and_cancelled_but_not_stopped(push):
    sent = push.send(body="Later", scheduled_at="2999-01-01T00:00:00Z")["notification_id"]

    push.pause(sent)
    paused = push.details(sent)
    assert (paused["paused"], paused["content"]["body"]) == (True, "Later")
    push.resume(sent)
    assert push.details(sent)["paused"] is False
    with pytest.raises(Refused, match="not_running"):
        push.stop(sent)
    push.cancel(sent)
    assert push.notification(sent)["status"] == "cancelled"


def test_the_state_of_each_platform_is_read(push):
    web = push.platforms()["platforms"]["web"]

    assert (web["enabled"], web["paused"], web["credential"]["kind"]) == (True, None, "vapid_key")


@pytest.mark.parametrize(
    ("answer", "schema"),
    [
        (types.Sent, "SendOutput"),
        (types.Notification, "NotificationOutput"),
        (types.ChannelStatistics, "ChannelStatisticsOutput"),
        (types.NotificationDetails, "NotificationDetailsOutput"),
        (types.Audience, "AudienceOutput"),
        (types.Timing, "TimingOutput"),
        (types.Content, "ContentOutput"),
        (types.PlatformDetails, "PlatformDetailsOutput"),
        (types.Release, "ReleaseOutput"),
        (types.Reason, "ReasonOutput"),
        (types.PlatformState, "PlatformStateOutput"),
        (types.PlatformPause, "PauseOutput"),
        (types.Credential, "CredentialOutput"),
    ],
)
def test_the_types_have_the_fields_of_the_openapi_document(answer, schema):
    described = openapi.document()["components"]["schemas"][schema]["properties"]

    assert answer.__annotations__.keys() == described.keys()


def test_the_same_idempotency_key_sends_once(push):
    first, second = (push.send(body="Once", idempotency_key="order-1") for _ in range(2))

    assert first == second


def test_an_error_has_its_code_and_its_errors(push):
    with pytest.raises(Refused) as refused:
        push.send(body="", target_platforms=["web", "fax"])

    assert (refused.value.status, refused.value.code) == (400, "validation_error")
    assert {field_error.attr for field_error in refused.value.errors} == {
        "body",
        "target_platforms.1",
    }


def test_the_asynchronous_client_has_the_same_results(shop):
    async def send():
        async with AsyncClient(shop.url, channel=shop.channel, key=shop.key) as push:
            await push.subscribe(shop.browser())
            sent = await push.send(body="It works.")
            shown = await push.wait(sent["notification_id"])
            assert (await push.details(sent["notification_id"]))["status"] == "sent"
            with pytest.raises(Refused, match="validation_error"):
                await push.send(body="")
            return shown["delivered_count"], len(await push.notifications())

    assert asyncio.run(send()) == (1, 1)


# Retries


@pytest.mark.parametrize("answer", [BUSY, None], ids=["busy", "none"])
def test_a_send_is_retried_with_the_same_idempotency_key(answer):
    with failing(answer, answer, SENT) as (push, requests):
        assert push.send(body="Once")["notification_id"] == "one"

    assert len(requests) == 3
    assert len({headers["Idempotency-Key"] for headers in requests}) == 1


def test_two_sends_have_two_idempotency_keys():
    with failing(SENT, SENT) as (push, requests):
        push.send(body="One")
        push.send(body="Two")

    assert len({headers["Idempotency-Key"] for headers in requests}) == 2


@pytest.mark.parametrize(
    ("answers", "retries", "error", "words"),
    [
        ([(400, {"code": "validation_error"}, {})], 4, Refused, "validation"),
        ([BUSY] * 5, 4, Refused, "busy"),
        ([None, None], 1, Unreachable, None),
    ],
    ids=["for good", "too often", "no answer"],
)
def test_the_last_attempts_error_is_raised(answers, retries, error, words):
    with (
        failing(*answers, retries=retries) as (push, requests),
        pytest.raises(error, match=words),
    ):
        push.send(body="Once")

    assert len(requests) == len(answers)


@pytest.mark.parametrize("status", [429, 503])
def test_a_retry_waits_for_as_long_as_the_response_says(status):
    attempts = calls.attempts(calls.notification("one"), 1)
    next(attempts)

    assert attempts.send(httpx.Response(status, headers={"Retry-After": "7"})) == calls.Pause(7.0)


def test_an_id_is_quoted_as_one_part_of_the_path():
    assert calls.notification("../channel?x=1").path == "/notification/..%2Fchannel%3Fx%3D1"


@contextmanager
def failing(*answers, retries=4):
    """A client of a server that gives these answers, None being none; and the requests' headers."""
    with (
        answering(*answers) as (url, requests),
        Client(url, channel="shop", key="psk_x", retries=retries) as push,
    ):
        yield push, requests


# The package


def test_the_package_can_be_installed_by_its_path(tmp_path):
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--offline"]
    subprocess.run([*install, "--target", str(tmp_path), str(PACKAGE)], check=True)

    names = {path.name for path in (tmp_path / "pushsvc_client").iterdir()}
    assert names >= {"__init__.py", "client.py", "py.typed"}

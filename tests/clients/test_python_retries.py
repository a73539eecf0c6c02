"""The retries of clients/python, against a server that fails."""

import pickle
import re
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from pushsvc_client import Client, Refused, Unreachable, calls, operations
from tests.clients.failing import BUSY, CHANNEL, SENT, answering


@pytest.mark.parametrize("answer", [BUSY, None], ids=["busy", "none"])
def test_a_send_is_retried_with_the_same_idempotency_key(answer):
    with failing(answer, answer, SENT) as (push, requests):
        assert push.send_notification(body="Once")["notification_id"] == "one"

    assert len(requests) == 3
    assert len({headers["Idempotency-Key"] for headers in requests}) == 1


def test_two_sends_have_two_idempotency_keys():
    with failing(SENT, SENT) as (push, requests):
        push.send_notification(body="One")
        push.send_notification(body="Two")

    assert len({headers["Idempotency-Key"] for headers in requests}) == 2


@pytest.mark.parametrize(
    ("answers", "retries", "error", "words"),
    [
        ([(400, {"code": "validation_error"}, {})], 4, Refused, "validation"),
        ([BUSY] * 5, 4, Refused, "busy"),
        ([(502, {"errors": [{"message": "no route"}]}, {})], 0, Refused, "not from pushsvc"),
        ([None, None], 1, Unreachable, None),
    ],
    ids=["for good", "too often", "a proxy's", "no answer"],
)
def test_the_last_attempts_error_is_raised(answers, retries, error, words):
    with (
        failing(*answers, retries=retries) as (push, requests),
        pytest.raises(error, match=words),
    ):
        push.send_notification(body="Once")

    assert len(requests) == len(answers)


@pytest.mark.parametrize("location", ["https://push.example.com/", "https://sso.example.com/"])
def test_a_redirection_by_a_proxy_is_an_error(location):
    moved = (308, None, {"Location": location})

    with failing(moved) as (push, _), pytest.raises(Refused, match="308 not from pushsvc"):
        push.send_notification(body="Once")


def test_a_post_without_an_idempotency_key_is_not_repeated_if_it_may_have_been_done():
    with failing(BUSY) as (push, requests), pytest.raises(Refused, match="busy"):
        push.request("POST", f"/channel/{CHANNEL}/segments", json={}, idempotency_key="")

    assert [headers["Idempotency-Key"] for headers in requests] == [None]


def test_a_list_of_at_most_no_entries_is_empty():
    with failing() as (push, requests):
        assert list(push.list_notifications(limit=0)) == []

    assert requests == []


def test_the_redirection_of_a_click_is_its_answer():
    with failing((302, None, {"Location": "https://shop.example/"})) as (push, _):
        assert push.follow_click("token") == "https://shop.example/"


PATIENCE = calls.Patience(retries=1, longest_wait=60.0)
READ = calls.Call("GET", "/notification/one")
CREATE = calls.Call("POST", "/channel/shop/segments", is_repeatable=False)


def after(answer, call=READ):
    """What the client does after this answer."""
    steps = calls.attempts(call, PATIENCE)
    next(steps)
    return steps.send(answer)


@pytest.mark.parametrize("status", [429, 503])
def test_a_retry_waits_for_as_long_as_the_response_says(status):
    assert after(httpx.Response(status, headers={"Retry-After": "7"})) == calls.Pause(7.0)


def test_a_call_is_not_retried_if_the_service_asks_for_a_long_wait():
    with pytest.raises(Refused, match="check the address") as refused:
        after(httpx.Response(429, headers={"Retry-After": "86400", "X-Request-ID": "abc"}))

    assert (refused.value.retry_after, refused.value.request_id) == (86400, "abc")


@pytest.mark.parametrize(
    "answer",
    [httpx.Response(429, headers={"Retry-After": "1"}), httpx.ConnectError("refused")],
    ids=["limited", "not connected"],
)
def test_a_creation_is_retried_if_nothing_was_done(answer):
    assert isinstance(after(answer, CREATE), calls.Pause)


@pytest.mark.parametrize(
    "answer", [httpx.Response(503), httpx.ReadTimeout("late")], ids=["busy", "no answer"]
)
def test_a_creation_that_may_have_been_done_is_not_retried(answer):
    with pytest.raises((Refused, Unreachable)):
        after(answer, CREATE)


def test_an_error_reaches_another_process_whole():
    each = {"attr": "body", "code": "too_long", "detail": "Too long."}
    refused = Refused(400, {"code": "validation_error", "errors": [each]}, 7.0)

    received = pickle.loads(pickle.dumps(refused))  # noqa: S301 - its own

    assert str(received) == str(refused) == "400 validation_error: body: Too long."
    assert vars(received) == vars(refused)


def test_an_id_is_quoted_as_one_part_of_the_path():
    assert calls.part("../channel?x=1") == "..%2Fchannel%3Fx%3D1"


def test_only_creations_without_an_idempotency_key_are_not_repeated():
    text = Path(operations.__file__).read_text()
    methods = re.split(r"\n    def ", text)[1:]

    found = {each.partition("(")[0] for each in methods if "is_repeatable=False" in each}

    assert found == {
        "create_category",
        "create_identity_key",
        "create_newsfeed",
        "create_segment",
        "create_web_push_key",
        "create_webhook",
        "rotate_webhook_secret",
    }


@contextmanager
def failing(*answers, retries=4):
    """A client of a server that gives these answers, None being none; and the requests' headers."""
    with (
        answering(*answers) as (url, requests),
        Client(url, channel=CHANNEL, key="psk_x", retries=retries) as push,
    ):
        yield push, requests

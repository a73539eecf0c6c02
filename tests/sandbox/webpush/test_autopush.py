"""The web sandbox as the push service of a real browser: autopush's protocol over a WebSocket."""

import json
import time

import pytest

from pushsvc.common import base64url
from sandbox import running_sandbox
from tests.sandbox.webpush.autopush_browser import AutopushBrowser, Letters
from tests.sandbox.webpush.sender import Sender, encrypted, request

PROTOCOL_ERROR = 1002
GOING_AWAY = 1001


@pytest.fixture
def sandbox():
    with running_sandbox() as running:
        yield running


@pytest.fixture
def browser(sandbox):
    browser = AutopushBrowser(sandbox)
    yield browser
    browser.discard()


def subscribed(browser, sender=None, **fields):
    """Greets and registers; what is needed to send to the browser."""
    sender = sender or Sender()
    browser.hello()
    return Letters(browser.register(sender.public_key, **fields)["pushEndpoint"], sender)


def test_a_browser_is_given_an_id_and_keeps_it_with_its_subscriptions(sandbox, browser):
    with browser:
        reply = browser.hello()
        assert reply["use_webpush"] is True
        first = browser.register()["pushEndpoint"]
    given = browser.uaid

    with browser:
        assert browser.hello()["uaid"] == given
        assert Letters(first).send()[0].status == 201
        assert browser.hear()["messageType"] == "notification"


@pytest.mark.parametrize("known_as", ["of-another-service", None])
def test_a_browser_without_subscriptions_is_not_remembered(browser, known_as):
    browser.uaid = known_as
    with browser:
        given = browser.hello()["uaid"]
        assert given != known_as
        browser.say("unregister", channelID="none")
        assert browser.hear()["status"] == 200
    with browser:
        assert browser.hello()["uaid"] != given


def test_a_registration_gives_an_endpoint_of_the_sandbox(sandbox, browser):
    with browser:
        browser.hello()
        reply = browser.register(channel_id="one")
    assert (reply["messageType"], reply["status"], reply["channelID"]) == ("register", 200, "one")
    assert reply["pushEndpoint"].startswith(f"{sandbox.origin}/push/")
    assert [device.endpoint for device in sandbox.browser_devices()] == [reply["pushEndpoint"]]
    assert sandbox.devices() == []


def test_a_registration_may_be_repeated_but_not_with_another_key(browser, sender):
    with browser:
        browser.hello()
        padded = sender.public_key + "="
        first = browser.register(padded, channel_id="one")
        assert browser.register(padded, channel_id="one") == first
        assert browser.register(Sender().public_key, channel_id="one")["status"] == 409
        assert browser.register(channel_id="one")["status"] == 409


def test_a_registration_with_an_invalid_key_is_rejected(sandbox, browser):
    with browser:
        browser.hello()
        assert browser.register("AAAA")["status"] == 400
    assert sandbox.browser_devices() == []


def test_a_message_reaches_the_browser_unchanged(sandbox, browser):
    with browser:
        letters = subscribed(browser, channel_id="one")
        answered, body = letters.send()
        heard = browser.hear()
        assert answered.status == 201
        assert heard == {
            "messageType": "notification",
            "channelID": "one",
            "version": answered.headers["Location"].rpartition("/")[2],
            "data": base64url.encode(body),
            "headers": {"encoding": "aes128gcm"},
        }
    (receipt,) = sandbox.messages(letters.id)
    assert (receipt.plaintext, receipt.accepted) == (None, True)
    assert sandbox.accepted_count() == sandbox.accepted_count(letters.id) == 1


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"TTL": None}, 400),
        ({"Urgency": "now"}, 400),
        ({"Content_Encoding": "aesgcm"}, 400),
        ({"Authorization": None}, 401),
        ({"Authorization": "vapid t=x, k=y"}, 401),
        ({"body": b"x" * 4097}, 413),
        ({"body": b"short"}, 400),
        ({"body": b"s" * 16 + (4096).to_bytes(4, "big") + b"\x41" + b"\x04" * 65 + b"c" * 40}, 400),
    ],
    ids=["ttl", "urgency", "encoding", "no vapid", "bad vapid", "too large", "short", "no point"],
)
def test_messages_to_a_browser_are_checked_as_far_as_possible_without_its_keys(
    browser, changes, status
):
    with browser:
        letters = subscribed(browser)
        assert letters.send(**changes)[0].status == status
        assert browser.is_quiet()


def test_a_browsers_endpoint_rejects_another_vapid_key_and_a_body_sent_twice(browser):
    with browser:
        letters = subscribed(browser)
        assert Letters(letters.endpoint).send()[0].status == 403
        assert browser.is_quiet()
        body = encrypted(letters)
        assert [letters.send(body)[0].status for _ in range(2)] == [201, 400]


def test_messages_wait_for_an_offline_browser_and_arrive_in_order(browser):
    with browser:
        letters = subscribed(browser)
    sent = [letters.send()[1] for _ in range(3)]
    with browser:
        browser.hello()
        heard = [browser.hear()["data"] for _ in range(3)]
    assert heard == [base64url.encode(body) for body in sent]


def test_a_message_is_repeated_until_it_is_acknowledged(sandbox, browser):
    with browser:
        letters = subscribed(browser)
        letters.send()
        first = browser.hear()
    with browser:
        browser.hello()
        again = browser.hear()
        assert again == first
        update = {"channelID": again["channelID"], "version": again["version"], "code": 100}
        browser.say("ack", updates=[update])
        assert browser.is_quiet()
    with browser:
        browser.hello()
        assert browser.is_quiet()
    assert sandbox.messages(letters.id)[0].ack_code == 100


def test_a_message_that_a_worker_could_not_handle_is_recorded(sandbox, browser):
    with browser:
        letters = subscribed(browser)
        letters.send()
        browser.say("nack", version=browser.hear()["version"], code=301)
        assert browser.is_quiet()
    answered = request("GET", f"{sandbox.origin}/subscriptions/{letters.id}/messages")
    assert json.loads(answered.body)["messages"][0]["ack_code"] == 301


def test_an_expired_message_is_not_delivered(browser):
    with browser:
        letters = subscribed(browser)
        letters.send(TTL="0")
        update = browser.hear()
        browser.say("nack", version=update["version"], code=301)
        assert browser.is_quiet()
    assert letters.send(TTL="0")[0].status == 201
    assert letters.send(TTL="1")[0].status == 201
    end = time.time() + 1
    while time.time() <= end:
        time.sleep(0.05)
    with browser:
        browser.hello()
        assert browser.is_quiet()


def test_only_the_newest_message_of_a_topic_waits(browser):
    with browser:
        letters = subscribed(browser)
        other = Letters(browser.register()["pushEndpoint"])
    kept = [other.send(Topic="news")[1], letters.send()[1]]
    letters.send(Topic="news")
    kept.append(letters.send(Topic="news")[1])
    with browser:
        browser.hello()
        assert [browser.hear()["data"] for _ in kept] == [base64url.encode(body) for body in kept]
        assert browser.is_quiet()


def test_an_unregistered_endpoint_is_gone_with_its_waiting_messages(browser):
    with browser:
        letters = subscribed(browser, channel_id="one")
        letters.send()
        browser.hear()
        browser.say("unregister", channelID="one")
        reply = browser.hear()
        assert (reply["messageType"], reply["status"], reply["channelID"]) == (
            "unregister",
            200,
            "one",
        )
        assert letters.send()[0].status == 410
        browser.register()
    with browser:
        browser.hello()
        assert browser.is_quiet()


def test_endpoints_of_browsers_can_misbehave(sandbox, browser):
    with browser:
        letters = subscribed(browser)
        (device,) = sandbox.browser_devices()
        device.behave("gone", times=1)
        assert letters.send()[0].status == 410
        assert browser.is_quiet()
        device.behave("throttled", times=1, retry_after=3)
        assert letters.send()[0].status == 429
        assert letters.send()[0].status == 201
        assert browser.hear()["messageType"] == "notification"


def test_an_accepted_message_reaches_the_browser_although_its_response_is_lost(sandbox, browser):
    with browser:
        letters = subscribed(browser)
        sandbox.browser_devices()[0].behave("close_after_accept", times=1)
        with pytest.raises(ConnectionError):
            letters.send()
        assert browser.hear()["messageType"] == "notification"


def test_a_deleted_endpoint_is_gone_and_the_browser_is_not_notified(sandbox, browser):
    with browser:
        letters = subscribed(browser)
        sandbox.delete(sandbox.browser_devices()[0])
        assert letters.send()[0].status == 410
        assert browser.is_quiet()


def over_http(sandbox, device):
    url = f"{sandbox.origin}/subscriptions/{device.id}/renew"
    assert request("POST", url).status == 204


@pytest.mark.parametrize(
    ("forget", "status"),
    [(lambda s, d: s.renew(d), 410), (over_http, 410), (lambda s, _: s.reset(), 404)],
    ids=["renewed", "renewed over http", "reset"],
)
def test_a_browser_that_was_forgotten_returns_with_another_id(sandbox, browser, forget, status):
    with browser:
        letters = subscribed(browser)
        before = browser.uaid
        forget(sandbox, sandbox.browser_devices()[0])
        assert browser.end() == GOING_AWAY
    assert letters.send()[0].status == status
    with browser:
        assert browser.hello()["uaid"] != before


def test_a_simulated_device_cannot_be_renewed(sandbox):
    device = sandbox.subscribe()
    answered = request("POST", f"{sandbox.origin}/subscriptions/{device.id}/renew")
    assert answered.status == 400
    assert request("POST", f"{sandbox.origin}/subscriptions/x/renew").status == 404


def test_a_second_connection_of_a_browser_ends_the_first(sandbox, browser):
    with browser:
        letters = subscribed(browser)
        second = AutopushBrowser(sandbox)
        second.uaid = browser.uaid
        with second:
            second.hello()
            assert browser.end() == GOING_AWAY
            letters.send()
            assert second.hear()["messageType"] == "notification"
        second.discard()


def test_pings_get_a_response_and_broadcasts_are_not(browser):
    with browser:
        browser.say("ping")
        assert browser.hear() == {"messageType": "ping"}
        browser.hello()
        browser.say("broadcast_subscribe", broadcasts={"remote-settings/monitor_changes": "1"})
        assert browser.is_quiet()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[" * 60_000,
        "[]",
        '{"messageType": "dance"}',
        '{"messageType": ["hello"]}',
        '{"messageType": "hello"}',
        '{"messageType": "register"}',
        '{"messageType": "register", "channelID": 5}',
        '{"messageType": "register", "channelID": "one", "key": 5}',
        '{"messageType": "unregister"}',
        '{"messageType": "ack", "updates": {}}',
        '{"messageType": "ack", "updates": [5]}',
        '{"messageType": "ack", "updates": [{"version": 5, "code": 100}]}',
        '{"messageType": "nack", "version": "x"}',
        b"{}",
    ],
)
def test_a_message_outside_the_protocol_ends_the_connection(browser, text):
    say = AutopushBrowser.say_bytes if isinstance(text, bytes) else AutopushBrowser.say_raw
    with browser:
        browser.hello()
        say(browser, text)
        assert browser.end() == PROTOCOL_ERROR


def test_a_registration_before_the_hello_is_rejected(sandbox, browser):
    with browser:
        browser.say("register", channelID="one")
        assert browser.end() == PROTOCOL_ERROR
    assert sandbox.browser_devices() == []


def test_a_connected_browser_does_not_prevent_the_sandbox_from_stopping():
    with running_sandbox() as sandbox:
        browser = AutopushBrowser(sandbox)
        browser.__enter__()
        browser.hello()
    assert browser.end() == GOING_AWAY
    browser.__exit__()
    browser.discard()

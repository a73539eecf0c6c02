"""Each mode does what its name says over a real socket, for as many requests as it was set for."""

import http.client
import json

import pytest

from sandbox import FcmMode
from tests.sandbox.fcm.sender import PROJECT
from tests.sandbox.over_http import check_wait

INSTEAD_OF_AN_ANSWER = {
    "reset": ConnectionResetError,
    "close_after_accept": http.client.RemoteDisconnected,
    "garbage": http.client.BadStatusLine,
}


@pytest.mark.parametrize(
    ("mode", "status", "name", "code"),
    [
        ("unregistered", 404, "NOT_FOUND", "UNREGISTERED"),
        ("bad_token", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ("invalid_argument", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ("sender_mismatch", 403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
        ("third_party_auth", 401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"),
        ("throttled", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
        ("internal", 500, "INTERNAL", "INTERNAL"),
        ("unavailable", 503, "UNAVAILABLE", "UNAVAILABLE"),
    ],
)
def test_an_error_mode_answers_as_fcm_does(sandbox, sender, device, mode, status, name, code):
    device.behave(mode)
    said = sender.send(device)
    assert (said.status, said.error["code"]) == (status, status)
    assert (said.error["status"], said.fcm_code) == (name, code)
    [receipt] = sandbox.messages(device.id)
    assert (receipt.status, receipt.complete, receipt.accepted) == (status, True, False)
    assert receipt.message["token"] == device.token


def test_a_bad_token_is_named_in_the_message_or_as_a_field(sender, device):
    device.behave("bad_token")
    said = sender.send(device)
    assert (said.error["message"][:22], said.fields) == ("The registration token", [])
    device.behave("bad_token", names_field=True)
    assert sender.send(device).fields == ["message.token"]


def test_a_bad_installation_id_is_named_as_a_field(sandbox, sender):
    device = sandbox.register(PROJECT, by_fid=True)
    device.behave("bad_token")
    assert sender.send(device).fields == ["message.fid"]


@pytest.mark.parametrize("mode", ["throttled", "internal", "unavailable"])
def test_a_retry_after_is_in_seconds_a_date_or_absent(sender, device, mode):
    check_wait(sender, device, mode)


def test_any_answer_can_be_chosen(sandbox, sender, device):
    device.behave("error", status=202, body={"name": "x"}, headers={"X-A": "b"})
    said = sender.send(device)
    assert (said.status, said.json, said.headers["X-A"]) == (202, {"name": "x"}, "b")
    assert sandbox.accepted_count(device.id) == 1


def test_a_slow_device_accepts_in_the_end(sandbox, sender, device):
    device.behave("slow", seconds=2.0)
    with pytest.raises(TimeoutError):
        sender.send(device, timeout=0.5)
    assert sender.send(device).status == 200
    assert [receipt.accepted for receipt in sandbox.messages(device.id)] == [False, True]


def test_a_hanging_device_never_answers(sandbox, sender, device):
    device.behave("hang", times=1)
    with pytest.raises(TimeoutError):
        sender.send(device, timeout=2.0)
    [receipt] = sandbox.messages(device.id)
    assert (receipt.status, receipt.accepted) == (None, False)


@pytest.mark.parametrize("mode", INSTEAD_OF_AN_ANSWER)
def test_a_connection_can_end_without_an_answer(sandbox, sender, device, mode):
    device.behave(mode, times=1)
    with pytest.raises((http.client.HTTPException, OSError)) as raised:
        sender.send(device)
    assert raised.type is INSTEAD_OF_AN_ANSWER[mode]
    [receipt] = sandbox.messages(device.id)
    assert (receipt.status, receipt.complete, receipt.accepted) == (None, False, False)
    assert receipt.taken is (mode == "close_after_accept")


def test_a_behaviour_ends_after_its_times_and_belongs_to_one_device(sandbox, sender, device):
    device.behave("unregistered", times=2)
    assert sender.send(sandbox.register(PROJECT)).status == 200
    assert sender.send(device, data={"from": "x"}).status == 400
    assert [sender.send(device).status for _ in range(3)] == [404, 404, 200]


@pytest.mark.parametrize(
    ("mode", "options", "status", "reason"),
    [
        ("unauthenticated", {}, 401, "ACCESS_TOKEN_EXPIRED"),
        ("permission_denied", {}, 403, "IAM_PERMISSION_DENIED"),
        ("service_disabled", {}, 403, "SERVICE_DISABLED"),
        ("unavailable", {"retry_after": 5}, 503, None),
    ],
)
def test_a_whole_project_can_be_refused(sandbox, sender, device, mode, options, status, reason):
    messaging = sandbox.project(PROJECT).messaging
    before = messaging.totals().requests
    messaging.behave(mode, times=1, **options)
    said = sender.send(device)
    assert (said.status, said.reason) == (status, reason)
    assert sandbox.messages(device.id) == []
    assert sender.send(device).status == 200
    assert messaging.totals().requests == before + 2


def test_a_proxy_can_answer_instead_of_google(sandbox, sender, device):
    project = sandbox.project(PROJECT)
    for part, ask in (
        (project.messaging, lambda: sender.send(device)),
        (project.tokens, sender.token),
    ):
        part.behave("blocked", times=1)
        with pytest.raises(json.JSONDecodeError):
            ask()
        assert part.receipts[-1].status == 403
        assert ask().status == 200


@pytest.mark.parametrize("mode", ["reset", "garbage"])
def test_the_token_endpoint_can_break_connections(sandbox, sender, mode):
    sandbox.project(PROJECT).tokens.behave(mode, times=1)
    with pytest.raises(INSTEAD_OF_AN_ANSWER[mode]):
        sender.token()
    assert sender.token().status == 200


@pytest.mark.parametrize(
    ("mode", "options", "complaint"),
    [
        ("gone", {}, "mode must be one of accept, unregistered"),
        ("unregistered", {"retry_after": 5}, "mode unregistered has no option retry_after"),
        ("bad_token", {"names_field": 1}, "names_field must be true or false"),
        ("slow", {}, "mode slow needs the option seconds"),
        ("error", {}, "mode error needs the option status"),
    ],
)
def test_an_invalid_behaviour_is_refused_with_a_reason(device, mode, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        device.behave(mode, **options)


def test_every_mode_is_described():
    assert all(mode.value in FcmMode.__doc__ for mode in FcmMode)

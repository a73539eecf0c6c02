"""What only the modes of the FCM sandbox do, over a real socket."""

import json

import pytest

from tests.sandbox.fcm.sender import PROJECT
from tests.sandbox.test_behaviours import INSTEAD_OF_A_RESPONSE


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
def test_an_error_mode_responds_as_fcm_does(sandbox, sender, device, mode, status, name, code):
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


@pytest.mark.parametrize(
    ("mode", "options", "status", "reason"),
    [
        ("unauthenticated", {}, 401, "ACCESS_TOKEN_EXPIRED"),
        ("permission_denied", {}, 403, "IAM_PERMISSION_DENIED"),
        ("service_disabled", {}, 403, "SERVICE_DISABLED"),
        ("unavailable", {"retry_after": 5}, 503, None),
    ],
)
def test_a_whole_project_can_be_rejected(sandbox, sender, device, mode, options, status, reason):
    messaging = sandbox.project(PROJECT).messaging
    before = messaging.totals().requests
    messaging.behave(mode, times=1, **options)
    said = sender.send(device)
    assert (said.status, said.reason) == (status, reason)
    assert sandbox.messages(device.id) == []
    assert sender.send(device).status == 200
    assert messaging.totals().requests == before + 2


def test_a_proxy_can_respond_instead_of_google(sandbox, sender, device):
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
    with pytest.raises(INSTEAD_OF_A_RESPONSE[mode]):
        sender.token()
    assert sender.token().status == 200


@pytest.mark.parametrize(
    ("mode", "options", "complaint"),
    [
        ("unregistered", {"retry_after": 5}, "mode unregistered has no option retry_after"),
        ("bad_token", {"names_field": 1}, "names_field must be true or false"),
    ],
)
def test_an_invalid_behaviour_is_rejected_with_a_reason(device, mode, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        device.behave(mode, **options)

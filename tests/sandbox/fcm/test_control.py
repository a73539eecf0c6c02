"""The HTTP interface for other processes, and what survives a restart of the sandbox."""

import pytest

from sandbox import running_fcm_sandbox
from tests.sandbox.fcm.sender import PROJECT, FcmSender
from tests.sandbox.services import call


@pytest.fixture
def sandbox():
    with running_fcm_sandbox() as running:
        yield running


def made(sandbox, path, body=None):
    status, answer = call(sandbox, "POST", path, body)
    assert status == 201
    return answer


def test_an_account_and_a_device_made_over_http_work(sandbox):
    account = made(sandbox, f"/projects/{PROJECT}/service-accounts")
    device = made(sandbox, f"/projects/{PROJECT}/devices")
    assert device.keys() == {"id", "project", "token"}
    sender = FcmSender(sandbox)
    bearer = sender.token(sender.assertion(account)).json["access_token"]
    [registered] = sandbox.devices()
    assert sender.send(registered, bearer=bearer).status == 200
    _, received = call(sandbox, "GET", f"/devices/{device['id']}/messages")
    assert received["messages"][0]["message"]["token"] == device["token"]


def test_devices_by_installation_id_are_made_and_moved_over_http(sandbox):
    sender = FcmSender(sandbox)
    device = made(sandbox, f"/projects/{PROJECT}/devices", {"by_fid": True})
    assert device.keys() == {"id", "project", "fid"}
    listed = made(sandbox, f"/projects/{PROJECT}/devices", {"by_fid": True, "count": 2})
    assert len({each["fid"] for each in listed["devices"]}) == 2
    moving = sandbox.register(PROJECT)
    moved = {"id": moving.id, "project": PROJECT, "fid": moving.fid}
    assert call(sandbox, "PUT", f"/devices/{moving.id}/fid") == (200, moved)
    for each in (device, moved):
        assert sender.post({"message": {"fid": each["fid"]}}).status == 200


def test_the_behaviours_of_a_project_are_set_over_http(sandbox):
    sender = FcmSender(sandbox)
    device = sandbox.register(PROJECT)
    for path, mode in [
        (f"/projects/{PROJECT}/messaging/behaviour", "permission_denied"),
        (f"/projects/{PROJECT}/tokens/behaviour", "invalid_grant"),
    ]:
        assert call(sandbox, "PUT", path, {"mode": mode, "times": 1}) == (204, None)
    assert [sender.send(device).status for _ in range(2)] == [403, 200]
    assert [sender.token().status for _ in range(2)] == [400, 200]


def test_a_projects_limits_are_set_over_http(sandbox):
    fields = {"quota_per_minute": 1, "token_lifetime": 60}
    assert call(sandbox, "PUT", f"/projects/{PROJECT}", fields) == (204, None)
    sender = FcmSender(sandbox)
    device = sandbox.register(PROJECT)
    assert [sender.send(device).status for _ in range(2)] == [200, 429]
    assert sender.token().json["expires_in"] == 60
    assert call(sandbox, "PUT", f"/projects/{PROJECT}", {"quota_per_minute": 9})[0] == 204
    assert sandbox.project(PROJECT).tokens.lifetime == 60


def test_accounts_are_revoked_and_tokens_expire_over_http(sandbox):
    sender = FcmSender(sandbox)
    device = sandbox.register(PROJECT)
    assert call(sandbox, "DELETE", f"/projects/{PROJECT}/access-tokens") == (204, None)
    assert sender.send(device).status == 401
    path = f"/service-accounts/{sender.key_file['client_email']}"
    assert call(sandbox, "DELETE", path) == (204, None)
    assert sender.token().error == "invalid_grant"
    assert call(sandbox, "DELETE", path) == (404, {"error": "no such service account"})


def test_a_reset_deletes_devices_and_behaviours_but_no_accounts(sandbox):
    sender = FcmSender(sandbox)
    device = sandbox.register(PROJECT)
    sandbox.project(PROJECT).messaging.behave("unauthenticated")
    assert call(sandbox, "POST", "/reset") == (204, None)
    assert sender.token().status == 200
    assert sender.send(device).fcm_code == "UNREGISTERED"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"/projects/{PROJECT}/devices", {"by_fid": 1}),
        ("PUT", f"/projects/{PROJECT}", {"quota": 5}),
        ("PUT", f"/projects/{PROJECT}", {"quota_per_minute": -1}),
        ("PUT", f"/projects/{PROJECT}", {"quota_per_minute": True}),
        ("PUT", f"/projects/{PROJECT}", {"token_lifetime": "60"}),
        ("PUT", f"/projects/{PROJECT}/tokens/behaviour", {"mode": "unregistered"}),
        ("PUT", f"/projects/{PROJECT}/messaging/behaviour", {"mode": "hang"}),
    ],
)
def test_an_invalid_request_is_rejected_with_a_reason(sandbox, method, path, body):
    status, answer = call(sandbox, method, path, body)
    assert status == 400
    assert answer["error"]
    assert sandbox.devices() == []


def test_accounts_and_registrations_by_fid_survive_a_restart(tmp_path):
    path = tmp_path / "fcm.json"
    with running_fcm_sandbox(state_file=path) as first:
        sender, revoked = FcmSender(first), FcmSender(first)
        moved = first.register(PROJECT, by_fid=True)
        first.revoke(revoked.key_file)
    with running_fcm_sandbox(state_file=path) as second:
        revoked.sandbox = second
        assert sender.moved_to(second).send(moved).status == 200
        assert revoked.token().error == "invalid_grant"
        second.reset()
    with running_fcm_sandbox(state_file=path) as third:
        assert sender.moved_to(third).token().status == 200


def test_a_quota_can_be_set_for_all_projects():
    with running_fcm_sandbox(quota_per_minute=0) as sandbox:
        assert FcmSender(sandbox).send(sandbox.register(PROJECT)).status == 429

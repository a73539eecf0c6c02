"""The HTTP interface for other processes, and what survives a restart of the sandbox."""

import stat
from datetime import datetime

import pytest

from sandbox import running_fcm_sandbox
from tests.sandbox.fcm.sender import PROJECT, FcmSender
from tests.sandbox.over_http import call


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
    status, received = call(sandbox, "GET", f"/devices/{device['id']}/messages")
    [message] = received["messages"]
    assert status == 200
    assert (message["status"], message["taken"], message["accepted"]) == (200, True, True)
    assert message["message"]["token"] == device["token"]
    assert datetime.fromisoformat(message["at"]).tzinfo is not None


def test_many_devices_are_made_with_one_request(sandbox):
    devices = made(sandbox, f"/projects/{PROJECT}/devices", {"count": 300})["devices"]
    assert len({each["token"] for each in devices}) == 300


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


def test_behaviours_are_set_over_http(sandbox):
    sender = FcmSender(sandbox)
    device = sandbox.register(PROJECT)
    for path, mode in [
        (f"/devices/{device.id}/behaviour", "internal"),
        (f"/projects/{PROJECT}/messaging/behaviour", "permission_denied"),
        (f"/projects/{PROJECT}/tokens/behaviour", "invalid_grant"),
    ]:
        assert call(sandbox, "PUT", path, {"mode": mode, "times": 1}) == (204, None)
    assert [sender.send(device).status for _ in range(3)] == [403, 500, 200]
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


def test_totals_are_given_for_each_device_and_for_all(sandbox):
    sender = FcmSender(sandbox)
    one, two = sandbox.register(PROJECT), sandbox.register(PROJECT)
    two.behave("unregistered", times=1)
    assert [sender.send(each).status for each in (one, two, two)] == [200, 404, 200]
    _, totals = call(sandbox, "GET", "/messages")
    assert (totals["requests"], totals["taken"], totals["accepted"]) == (3, 2, 2)
    assert totals["devices"][two.id]["statuses"] == {"404": 1, "200": 1}
    _, of_one = call(sandbox, "GET", f"/messages?id={one.id}")
    assert (of_one["accepted"], list(of_one["devices"])) == (1, [one.id])


def test_a_deleted_device_is_unregistered_and_keeps_its_messages(sandbox):
    sender = FcmSender(sandbox)
    device = sandbox.register(PROJECT)
    sender.send(device)
    assert call(sandbox, "DELETE", f"/devices/{device.id}") == (204, None)
    assert sender.send(device).status == 404
    assert [receipt.status for receipt in sandbox.messages(device.id)] == [200, 404]


def test_a_reset_deletes_devices_and_behaviours_but_no_accounts(sandbox):
    sender = FcmSender(sandbox)
    device = sandbox.register(PROJECT)
    sandbox.project(PROJECT).messaging.behave("unauthenticated")
    assert call(sandbox, "POST", "/reset") == (204, None)
    assert sender.token().status == 200
    assert sender.send(device).fcm_code == "UNREGISTERED"
    assert sandbox.devices() == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"/projects/{PROJECT}/devices", b"{"),
        ("POST", f"/projects/{PROJECT}/devices", {"count": 0}),
        ("POST", f"/projects/{PROJECT}/devices", {"token": "x"}),
        ("POST", f"/projects/{PROJECT}/devices", {"by_fid": 1}),
        ("PUT", f"/projects/{PROJECT}", {"quota": 5}),
        ("PUT", f"/projects/{PROJECT}", {"quota_per_minute": -1}),
        ("PUT", f"/projects/{PROJECT}", {"quota_per_minute": True}),
        ("PUT", f"/projects/{PROJECT}", {"token_lifetime": "60"}),
        ("PUT", f"/projects/{PROJECT}/tokens/behaviour", {"mode": "unregistered"}),
        ("PUT", f"/projects/{PROJECT}/messaging/behaviour", {"mode": "hang"}),
    ],
)
def test_an_invalid_request_is_refused_with_a_reason(sandbox, method, path, body):
    status, answer = call(sandbox, method, path, body)
    assert status == 400
    assert answer["error"]
    assert sandbox.devices() == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/devices/x/behaviour"),
        ("GET", "/devices/x/messages"),
        ("DELETE", "/devices/x"),
        ("GET", "/messages?id=x"),
    ],
)
def test_an_unknown_device_is_404(sandbox, method, path):
    assert call(sandbox, method, path) == (404, {"error": "no such device"})


def test_an_unknown_device_is_a_keyerror(sandbox):
    with pytest.raises(KeyError):
        sandbox.messages("unknown")
    with pytest.raises(KeyError):
        sandbox.accepted_count("unknown")


def test_accounts_and_devices_survive_a_restart(tmp_path):
    path = tmp_path / "fcm.json"
    with running_fcm_sandbox(state_file=path) as first:
        sender, revoked = FcmSender(first), FcmSender(first)
        kept, removed = first.register(PROJECT), first.register(PROJECT)
        moved = first.register(PROJECT, by_fid=True)
        first.unregister(removed)
        first.revoke(revoked.key_file)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with running_fcm_sandbox(state_file=path) as second:
        sender.sandbox = revoked.sandbox = second
        sender.bearer = sender.token().json["access_token"]
        assert [sender.send(each).status for each in (kept, moved)] == [200, 200]
        assert sender.send(removed).fcm_code == "UNREGISTERED"
        assert revoked.token().error == "invalid_grant"
        assert {device.id for device in second.devices()} == {kept.id, removed.id, moved.id}
        second.reset()
    with running_fcm_sandbox(state_file=path) as third:
        sender.sandbox = third
        assert third.devices() == []
        assert sender.token().status == 200


def test_content_need_not_be_kept():
    with running_fcm_sandbox(keep_content=False) as sandbox:
        device = sandbox.register(PROJECT)
        assert FcmSender(sandbox).send(device).status == 200
        [receipt] = sandbox.messages(device.id)
        assert (receipt.message, receipt.headers, receipt.accepted) == (None, {}, True)


def test_a_quota_can_be_set_for_all_projects():
    with running_fcm_sandbox(quota_per_minute=0) as sandbox:
        assert FcmSender(sandbox).send(sandbox.register(PROJECT)).status == 429

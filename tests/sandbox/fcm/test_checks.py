"""The sandbox's send method accepts what FCM accepts, and says what is wrong with the rest."""

import json

import pytest

from tests.sandbox.fcm.sender import PROJECT, FcmSender
from tests.sandbox.webpush.sender import request


def test_a_message_is_accepted_and_kept(sandbox, sender, device):
    said = sender.send(device, data={"city": "Bern"})
    assert said.status == 200
    assert said.json["name"].startswith("projects/demo-app/messages/")
    [receipt] = sandbox.messages(device.id)
    assert (receipt.status, receipt.taken, receipt.complete) == (200, True, True)
    assert receipt.message["data"] == {"city": "Bern"}
    assert receipt.headers["Authorization"].startswith("Bearer ya29.")


FULL = {
    "data": {"a": "b"},
    "notification": {"title": "t", "body": "b", "image": "https://example.com/i.png"},
    "android": {
        "collapse_key": "rain",
        "priority": "HIGH",
        "ttl": "3.5s",
        "restricted_package_name": "com.example",
        "data": {"c": "d"},
        "notification": {
            "title": "t", "body": "b", "icon": "i", "color": "#ffffff", "sound": "s", "tag": "t",
            "click_action": "c", "body_loc_key": "k", "body_loc_args": ["a"], "channel_id": "c",
            "title_loc_key": "k", "title_loc_args": [], "ticker": "t", "sticky": True,
            "event_time": "2026-11-20T15:11:00.123Z", "local_only": False,
            "notification_priority": "PRIORITY_MAX", "default_sound": True,
            "default_vibrate_timings": True, "default_light_settings": True,
            "vibrate_timings": ["1s", "0.5s"], "visibility": "PUBLIC", "notification_count": 3,
            "light_settings": {
                "color": {"red": 1, "green": 0.5, "blue": 0, "alpha": 1},
                "light_on_duration": "1s", "light_off_duration": "1s",
            },
            "image": "https://example.com/i.png", "proxy": "ALLOW",
        },
        "fcm_options": {"analytics_label": "l"},
        "direct_boot_ok": True,
    },
    "webpush": {
        "headers": {"TTL": "60"}, "data": {}, "notification": {"any": 5},
        "fcm_options": {"link": "https://example.com/"},
    },
    "apns": {
        "headers": {"apns-priority": "10"}, "payload": {"aps": {"badge": 1}},
        "fcm_options": {"image": "https://example.com/i.png"},
    },
    "fcm_options": {"analytics_label": "l"},
}  # fmt: skip


def test_every_field_of_the_reference_is_known(sender, device):
    assert sender.send(device, **FULL).status == 200


@pytest.mark.parametrize(
    "android",
    [
        {"collapseKey": "rain", "restrictedPackageName": "com.example"},
        {"priority": "high", "notification": {"visibility": "secret"}},
        {"ttl": None, "notification": None},
        {"ttl": "2419200s"},
        {"ttl": "0s"},
    ],
)
def test_messages_of_googles_own_libraries_are_accepted(sender, device, android):
    assert sender.send(device, android=android).status == 200


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"colour": "red"}, "message"),
        ({"android": {"priorty": "HIGH"}}, "message.android"),
        ({"android": {"notification": {"Tag": "x"}}}, "message.android.notification"),
        ({"notification": {"icon": "x"}}, "message.notification"),
        ({"notification": "It rains."}, "message.notification"),
        ({"notification": {"body": 5}}, "message.notification.body"),
        ({"data": {"a": 5}}, "message.data[0].value"),
        ({"data": {"a": "b", "c": None}}, "message.data[1].value"),
        ({"data": {"a": {"b": "c"}}}, "message.data[0].value"),
        ({"data": ["a"]}, "message.data"),
        ({"token": 5}, "message.token"),
        ({"android": {"ttl": 60}}, "message.android.ttl"),
        ({"android": {"ttl": "60"}}, "message.android.ttl"),
        ({"android": {"ttl": "1m"}}, "message.android.ttl"),
        ({"android": {"ttl": "1.5000000000s"}}, "message.android.ttl"),
        ({"android": {"priority": "urgent"}}, "message.android.priority"),
        ({"android": {"priority": "High"}}, "message.android.priority"),
        ({"android": {"direct_boot_ok": "yes"}}, "message.android.direct_boot_ok"),
        (
            {"android": {"notification": {"body_loc_args": ["a", 5]}}},
            "message.android.notification.body_loc_args[1]",
        ),
        (
            {"android": {"notification": {"body_loc_args": "a"}}},
            "message.android.notification.body_loc_args",
        ),
        (
            {"android": {"notification": {"notification_count": 1.5}}},
            "message.android.notification.notification_count",
        ),
        (
            {"android": {"notification": {"event_time": "today"}}},
            "message.android.notification.event_time",
        ),
        (
            {"android": {"notification": {"light_settings": {"color": {"red": "1"}}}}},
            "message.android.notification.light_settings.color.red",
        ),
        ({"apns": {"payload": []}}, "message.apns.payload"),
    ],
)
def test_the_frontend_names_the_field_that_it_cannot_read(sandbox, sender, device, fields, field):
    said = sender.send(device, **fields)
    assert (said.status, said.error["status"]) == (400, "INVALID_ARGUMENT")
    assert (said.fields, said.fcm_code) == ([field], None)
    assert sandbox.messages(device.id) == []


def test_an_unknown_name_is_reported(sender, device):
    message = sender.send(device, android={"priorty": "HIGH"}).error["message"]
    assert message == (
        "Invalid JSON payload received. Unknown name \"priorty\" at 'message.android': "
        "Cannot find field."
    )


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b"\xff", b"[" * 100_000])
def test_a_body_that_is_not_a_json_object_is_rejected(sender, body):
    assert (sender.post(body).status, sender.post(body).fcm_code) == (400, None)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (
            {"android": {"notification": {"color": "red"}}},
            "message.android.notification.color",
        ),
        ({"token": None}, "message"),
        ({"token": ""}, "message"),
        ({"topic": "rain"}, "message"),
        ({"token": None, "topic": "rain"}, "message.topic"),
        ({"fid": "f" * 22}, "message"),
        ({"fcm_options": {"analytics_label": "a b"}}, "message.fcm_options.analytics_label"),
        (
            {"android": {"fcm_options": {"analytics_label": "a" * 51}}},
            "message.android.fcm_options.analytics_label",
        ),
        ({"android": {"ttl": "2419201s"}}, "message.android.ttl"),
        ({"android": {"ttl": "-1s"}}, "message.android.ttl"),
        ({"data": {"from": "x"}}, "message.data"),
        ({"data": {"message_type": "x"}}, "message.data"),
        ({"data": {"google.sent": "x"}}, "message.data"),
        ({"data": {"gcm.x": "x"}}, "message.data"),
        ({"android": {"data": {"from": "x"}}}, "message.android.data"),
    ],
)
def test_fcm_names_the_field_that_it_rejects(sender, device, fields, field):
    said = sender.send(device, **fields)
    assert (said.status, said.fcm_code) == (400, "INVALID_ARGUMENT")
    assert said.fields == [field]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "message"),
        ({"message": {}}, "message"),
        ({"message": None}, "message"),
        ({"message": {"token": "x"}, "dry_run": True}, ""),
    ],
)
def test_a_request_is_a_message_and_no_unknown_field(sender, body, field):
    assert sender.post(body).fields == [field]


@pytest.mark.parametrize("name", ["googleish", "gcm", "fromage", "From"])
def test_a_name_that_only_starts_like_a_reserved_one_is_accepted(sender, device, name):
    assert sender.send(device, data={name: "x"}).status == 200


@pytest.mark.parametrize(
    "part",
    [
        lambda size: {"notification": {"body": "x" * (size - 4)}},
        lambda size: {"notification": None, "data": {"ü": "x" * (size - 2)}},
        lambda size: {"notification": None, "android": {"data": {"a": "x" * (size - 1)}}},
        lambda size: {
            "notification": None,
            "android": {"notification": {"tag": "x" * (size - 3)}},
        },
    ],
)
def test_names_and_values_have_at_most_4096_bytes_together(sender, device, part):
    assert sender.send(device, **part(4_096)).status == 200
    said = sender.send(device, **part(4_097))
    assert (said.status, said.error["message"]) == (400, "Android message is too big")


def test_a_dry_run_is_checked_and_not_delivered(sandbox, sender, device):
    said = sender.post({"validate_only": True, "message": {"token": device.token}})
    assert said.json["name"] == "projects/demo-app/messages/fake_message_id"
    assert sandbox.accepted_count(device.id) == 0


@pytest.mark.parametrize("token", ["x", "abc:APA91b", "a" * 150, "ü:APA91b" + "x" * 134])
def test_a_token_of_another_shape_is_an_invalid_argument(sender, device, token):
    said = sender.send(device, token=token)
    assert (said.status, said.fcm_code) == (400, "INVALID_ARGUMENT")
    assert said.error["message"] == "The registration token is not a valid FCM registration token"


@pytest.mark.parametrize(
    "fid", ["x", "f" * 21, "f" * 23, "g" + "f" * 21, "f" * 21 + "é", "f" * 21 + "+"]
)
def test_an_installation_id_of_another_shape_is_an_invalid_argument(sender, device, fid):
    said = sender.send(device, token=None, fid=fid)
    assert (said.status, said.fcm_code, said.fields) == (400, "INVALID_ARGUMENT", ["message.fid"])


def test_a_token_is_no_installation_id_and_the_reverse(sandbox, sender, device):
    by_fid = sandbox.register(PROJECT, by_fid=True)
    assert sender.send(device, token=None, fid=device.token).fields == ["message.fid"]
    assert sender.send(by_fid, fid=None, token=by_fid.fid).status == 400


def test_an_app_is_reached_only_by_what_it_is_registered_by(sandbox, sender, device):
    by_fid = {"token": None, "fid": device.fid}
    assert [sender.send(device).status, sender.send(device, **by_fid).status] == [200, 404]
    sandbox.register_by_fid(device)
    assert sender.send(device).status == 200
    by_token = {"token": device.token, "fid": None}
    assert sender.send(device, **by_token).fcm_code == "UNREGISTERED"
    assert sandbox.accepted_count(device.id) == 2


@pytest.mark.parametrize("by_fid", [False, True])
def test_an_unknown_or_removed_app_is_unregistered(sandbox, sender, by_fid):
    removed = sandbox.register(PROJECT, by_fid=by_fid)
    sandbox.unregister(removed)
    unknown = {"fid": "f" * 22} if by_fid else {"token": removed.token[:-4] + "AAAA"}
    for changed in ({}, unknown):
        said = sender.send(removed, **changed)
        assert (said.status, said.error["status"]) == (404, "NOT_FOUND")
        assert said.fcm_code == "UNREGISTERED"
    assert [receipt.status for receipt in sandbox.messages(removed.id)] == [404]


@pytest.mark.parametrize("by_fid", [False, True])
def test_an_app_of_another_project_is_a_mismatch(sandbox, sender, by_fid):
    said = sender.send(sandbox.register("other-app", by_fid=by_fid))
    assert (said.status, said.fcm_code) == (403, "SENDER_ID_MISMATCH")


def test_an_account_sends_only_in_its_own_project(sandbox, sender):
    foreign = sandbox.register("other-app")
    said = sender.send(foreign, project="other-app")
    assert (said.status, said.fcm_code, said.reason) == (403, None, "IAM_PERMISSION_DENIED")


@pytest.mark.parametrize(
    ("scope", "status"),
    [
        ("https://www.googleapis.com/auth/cloud-platform", 200),
        ("email https://www.googleapis.com/auth/firebase.messaging", 200),
        ("email", 403),
    ],
)
def test_an_access_token_needs_a_scope_of_fcms(sender, device, scope, status):
    bearer = sender.token(sender.assertion(scope=scope)).json["access_token"]
    assert sender.send(device, bearer=bearer).status == status


@pytest.mark.parametrize("authorization", [None, "Bearer x", "key=AAAA", "Bearer", "vapid t=x"])
def test_a_send_needs_an_access_token(sandbox, sender, device, authorization):
    url = f"{sandbox.origin}/v1/projects/{PROJECT}/messages:send"
    headers = {"Authorization": authorization} if authorization else {}
    body = json.dumps({"message": {"token": device.token}}).encode()
    answered = request("POST", url, body, headers)
    assert answered.status == 401
    assert "FcmError" not in answered.body.decode()
    assert sandbox.messages(device.id) == []


def test_the_quota_belongs_to_the_project_and_a_rejection_says_when_to_retry(sandbox):
    sandbox.project("full-app").quota_per_minute = 2
    sender = FcmSender(sandbox, "full-app")
    device = sandbox.register("full-app")
    said = [sender.send(device) for _ in range(3)]
    assert [each.status for each in said] == [200, 200, 429]
    assert (said[2].error["status"], said[2].fcm_code) == ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")
    assert 1 <= int(said[2].headers["Retry-After"]) <= 60
    assert FcmSender(sandbox).send(sandbox.register(PROJECT)).status == 200


def test_a_quota_starts_again_after_a_minute(sandbox):
    project = sandbox.project("clock-app")
    project.quota_per_minute = 1
    assert [project.seconds_over_quota(now) for now in (0.0, 10.0, 60.0)] == [0.0, 50.0, 0.0]

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client

from notifications_app.delivery.registry import PAYLOADS
from notifications_app.delivery.types import Message
from notifications_app.models import IdempotencyRecord, Notification
from notifications_app.tracking import make_token
from pushsvc.common.ids import parse_uuid, uuid7
from pushsvc.common.redis_client import redis_client
from pushsvc.common.timestamps import parse_timestamp
from tests.api.support import browser, code, faults, owner_of
from tests.factories import make_channel

pytestmark = pytest.mark.django_db
URL = "https://shop.example/"


def accepted(owner, body, **headers):
    response = owner.send(body, **headers)
    assert response.status_code == 202, response.content
    return Notification.objects.get(id=response.json()["notification_id"])


def now():
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


def test_the_answer_says_what_was_stored(alice):
    before = now()
    response = alice.send({"body": "Fresh bread"})

    assert response.status_code == 202
    answer = response.json()
    assert list(answer) == ["success", "message", "notification_id", "scheduled_at", "status"]
    assert answer["success"] is True
    assert answer["status"] == "pending"
    assert "stored for processing" in answer["message"]
    assert answer["notification_id"] in answer["message"]
    row = Notification.objects.get()
    assert row.id == parse_uuid(answer["notification_id"])
    assert row.id.version == 7
    assert (row.channel, row.body, row.status) == (alice.channel, "Fresh bread", "pending")
    assert before - timedelta(milliseconds=1) <= parse_timestamp(answer["scheduled_at"]) <= now()


def test_what_is_left_out_has_its_default(alice):
    row = accepted(alice, {"body": "x"})
    assert (row.title, row.icon, row.url, row.image, row.topic) == ("", "", "", "", "")
    assert (row.data, row.ttl, row.urgency) == ({}, 259_200, "normal")
    assert (row.target_platforms, row.segment_id) == (["web"], None)


def test_everything_that_is_given_is_stored_as_sent(alice):
    body = {
        "body": "  Fresh bread \n",
        "title": " Bread ",
        "url": URL + "bread?a=1&b=ü#x",
        "icon": "http://shop.example:8080/icon.png",
        "image": URL + "image.png",
        "data": {"order": "4711", "": "", "😀": "😀"},
        "ttl": 0,
        "urgency": "very-low",
        "topic": "order_4711-",
        "target_platforms": ["web", "web"],
        "segment_id": None,
        "scheduled_at": "2031-01-02T03:04:05.678Z",
        "dry_run": False,
    }
    row = accepted(alice, body)
    for name in ("body", "title", "url", "icon", "image", "data", "ttl", "urgency", "topic"):
        assert getattr(row, name) == body[name]
    assert row.target_platforms == ["web"]
    assert row.scheduled_at == datetime(2031, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


@pytest.mark.parametrize("path", ["/send-notification", "/send-notification/"])
def test_the_path_may_end_in_a_slash(alice, path):
    assert alice.call("POST", path, {"body": "x"}).status_code == 202


# --- texts ----------------------------------------------------------------------------------------

COMBINED = "e\u0301"  # two code points


@pytest.mark.parametrize(
    "fields",
    [
        {"body": "x" * 255, "title": "x" * 100},
        {"body": "😀" * 255, "title": "😀" * 100},
        {"body": COMBINED * 127 + "x", "title": COMBINED * 50},
        {"body": " ", "title": ""},
        {"body": "\u2028\u202e\x1f", "title": "\ufeff"},
        {"body": "x", "url": URL + "x" * (2000 - len(URL))},
        {"body": "x", "topic": "t" * 32},
        {"body": "x", "ttl": 28 * 24 * 3600},
    ],
)
def test_texts_up_to_their_limits_are_stored_as_sent(alice, fields):
    row = accepted(alice, fields)
    assert {name: getattr(row, name) for name in fields} == fields


LONG_URL = URL + "x" * (2001 - len(URL))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [("body", "required")]),
        ({"title": "x"}, [("body", "required")]),
        ({"body": None}, [("body", "null")]),
        ({"body": ""}, [("body", "blank")]),
        ({"body": 5}, [("body", "not_a_string")]),
        ({"body": ["x"]}, [("body", "not_a_string")]),
        ({"body": {"x": "y"}}, [("body", "not_a_string")]),
        ({"body": True}, [("body", "not_a_string")]),
        ({"body": "x" * 256}, [("body", "too_long")]),
        ({"body": "😀" * 256}, [("body", "too_long")]),
        ({"body": COMBINED * 128}, [("body", "too_long")]),
        ({"body": "x", "title": "x" * 101}, [("title", "too_long")]),
        ({"body": "x", "title": None}, [("title", "null")]),
        ({"body": "x", "title": 0}, [("title", "not_a_string")]),
        ({"body": "x", "url": ""}, [("url", "blank")]),
        ({"body": "x", "url": "shop.example"}, [("url", "not_a_url")]),
        ({"body": "x", "url": "javascript:alert(1)"}, [("url", "not_a_url")]),
        ({"body": "x", "url": "https://"}, [("url", "not_a_url")]),
        ({"body": "x", "url": "//shop.example"}, [("url", "not_a_url")]),
        ({"body": "x", "url": "https://shop.example/ x"}, [("url", "not_a_url")]),
        ({"body": "x", "url": LONG_URL}, [("url", "too_long")]),
        ({"body": "x", "icon": "data:image/png;base64,AA"}, [("icon", "not_a_url")]),
        ({"body": "x", "image": None}, [("image", "null")]),
        ({"body": "x", "segment_id": "x"}, [("segment_id", "not_a_uuid")]),
        ({"body": "x", "segment_id": uuid7().hex}, [("segment_id", "not_a_uuid")]),
        ({"body": "x", "segment_id": 1}, [("segment_id", "not_a_string")]),
        ({"body": "x", "target_platforms": []}, [("target_platforms", "empty")]),
        ({"body": "x", "target_platforms": "web"}, [("target_platforms", "not_a_list")]),
        ({"body": "x", "target_platforms": None}, [("target_platforms", "null")]),
        ({"body": "x", "target_platforms": ["web", "t"]}, [("target_platforms.1", "not_a_choice")]),
        ({"body": "x", "target_platforms": ["WEB"]}, [("target_platforms.0", "not_a_choice")]),
        ({"body": "x", "target_platforms": [None]}, [("target_platforms.0", "null")]),
        ({"body": "x", "target_platforms": [1]}, [("target_platforms.0", "not_a_string")]),
        ({"body": "x", "data": []}, [("data", "not_an_object")]),
        ({"body": "x", "data": {"a": 1}}, [("data.a", "not_a_string")]),
        ({"body": "x", "data": {"a": None}}, [("data.a", "null")]),
        ({"body": "x", "ttl": -1}, [("ttl", "out_of_range")]),
        ({"body": "x", "ttl": 28 * 24 * 3600 + 1}, [("ttl", "out_of_range")]),
        ({"body": "x", "ttl": 10**300}, [("ttl", "out_of_range")]),
        ({"body": "x", "ttl": 5.0}, [("ttl", "not_a_number")]),
        ({"body": "x", "ttl": "5"}, [("ttl", "not_a_number")]),
        ({"body": "x", "ttl": True}, [("ttl", "not_a_number")]),
        ({"body": "x", "ttl": None}, [("ttl", "null")]),
        ({"body": "x", "urgency": "urgent"}, [("urgency", "not_a_choice")]),
        ({"body": "x", "topic": ""}, [("topic", "blank")]),
        ({"body": "x", "topic": "t" * 33}, [("topic", "not_a_topic")]),
        ({"body": "x", "topic": "a b"}, [("topic", "not_a_topic")]),
        ({"body": "x", "topic": "é"}, [("topic", "not_a_topic")]),
        ({"body": "x", "dry_run": 1}, [("dry_run", "not_a_boolean")]),
        ({"body": "x", "dry_run": "false"}, [("dry_run", "not_a_boolean")]),
        ({"body": "x", "schedule_at": "2031-01-01T00:00Z"}, [("schedule_at", "unknown_field")]),
        ({"body": "x", "channel_id": str(uuid7())}, [("channel_id", "unknown_field")]),
        ({"tilte": "x", "title": 1}, [("body", "required"), ("title", "not_a_string"),
                                      ("tilte", "unknown_field")]),
    ],
)  # fmt: skip
def test_every_fault_is_named_and_nothing_is_stored(alice, fields, expected):
    response = alice.send(fields)
    assert faults(response) == expected
    assert response.json()["code"] == "validation_error"
    assert not Notification.objects.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b'"x"',
        b"null",
        b"{",
        b'{"body": "x"} {}',
        b'{"body": "x", "body": "y"}',
        b'{"body": "a\\u0000b"}',
        b'{"body": "\\ud83d"}',
        b'{"body": "x", "data": {"\\udc00": "x"}}',
        b'{"body": "x", "ttl": NaN}',
        b'{"body": "x", "ttl": 1e400}',
        b'{"body": "x", "ttl": ' + b"9" * 5000 + b"}",
        b'{"body": "\xff"}',
        b'{"body": "x", "data": ' + b"[" * 30 + b"]" * 30 + b"}",
    ],
)
def test_a_body_that_is_no_json_object_we_can_store_is_refused(alice, raw):
    response = Client().post(
        "/send-notification",
        raw,
        content_type="application/json",
        headers={"Authorization": f"Key {alice.key}"},
    )
    faults(response, 400)
    assert not Notification.objects.exists()


# --- when -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("2031-01-02T03:04:05.678Z", "2031-01-02T03:04:05.678Z"),
        ("2031-01-02T03:04:05", "2031-01-02T03:04:05.000Z"),
        ("2031-01-02T03:04:05.678901Z", "2031-01-02T03:04:05.678Z"),
        ("2031-01-02T03:04+02:00", "2031-01-02T01:04:00.000Z"),
        ("20310102T030405Z", "2031-01-02T03:04:05.000Z"),
        ("2031-W01-4T03:04:05Z", "2031-01-02T03:04:05.000Z"),
        ("2031-002T03:04:05Z", "2031-01-02T03:04:05.000Z"),
        ("2031-01-01T24:00:00Z", "2031-01-02T00:00:00.000Z"),
        ("1999-12-31T23:59:59Z", "1999-12-31T23:59:59.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_the_given_moment_is_stored_and_answered(alice, given, shown):
    response = alice.send({"body": "x", "scheduled_at": given})
    assert response.json()["scheduled_at"] == shown
    read = alice.call("GET", f"/notification/{response.json()['notification_id']}").json()
    assert read["scheduled_at"] == shown


@pytest.mark.parametrize(
    "given",
    [
        "",
        "tomorrow",
        "2031-01-02",
        "2031-02-30T00:00:00Z",
        "2031-01-02T25:00:00Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "2031-01-02T03:04:05Z\n",
        "1925000000",
    ],
)
def test_what_is_no_moment_is_refused(alice, given):
    assert faults(alice.send({"body": "x", "scheduled_at": given})) == [
        ("scheduled_at", "not_a_timestamp")
    ]


@pytest.mark.parametrize(
    ("given", "fault"), [(1_925_000_000, "not_a_string"), (None, "null"), ([], "not_a_string")]
)
def test_a_moment_is_a_string(alice, given, fault):
    assert faults(alice.send({"body": "x", "scheduled_at": given})) == [("scheduled_at", fault)]


def test_the_moment_of_acceptance_is_the_same_wherever_it_is_read(alice):
    sent = alice.send({"body": "x"}).json()
    read = alice.call("GET", f"/notification/{sent['notification_id']}").json()
    assert read["scheduled_at"] == read["created_at"] == sent["scheduled_at"]


def waiting_rings():
    return redis_client().llen("plan")


@pytest.mark.django_db(transaction=True)
def test_the_planner_is_told_of_what_is_due_and_not_of_what_is_not(alice):
    alice.send({"body": "x", "scheduled_at": "2031-01-01T00:00:00Z"})
    assert waiting_rings() == 0
    alice.send({"body": "x", "scheduled_at": "2001-01-01T00:00:00Z"})
    assert waiting_rings() == 1


@pytest.mark.django_db(transaction=True)
def test_nobody_is_told_of_what_was_refused(alice):
    alice.send({"body": "x", "segment_id": str(uuid7())})
    alice.send({"body": "x", "dry_run": True})
    assert waiting_rings() == 0


@pytest.fixture
def everywhere():
    """The owner of a channel with every platform enabled."""
    return owner_of(make_channel(android_enabled=True, ios_enabled=True))


# --- to whom --------------------------------------------------------------------------------------


def test_a_segment_that_the_channel_does_not_have_is_refused(alice):
    response = alice.send({"body": "x", "segment_id": str(uuid7())})
    assert faults(response) == [("segment_id", "segment_not_found")]
    assert response.json()["code"] == "segment_not_found"
    assert not Notification.objects.exists()


@pytest.mark.parametrize("platforms", [["android"], ["ios"], ["web", "ios"]])
def test_a_platform_that_the_channel_has_not_enabled_is_refused(alice, platforms):
    response = alice.send({"body": "x", "target_platforms": platforms})
    assert faults(response) == [("target_platforms", "platform_not_enabled")]
    assert response.json()["code"] == "platform_not_enabled"
    assert platforms[-1] in response.json()["detail"]
    assert not Notification.objects.exists()


def test_every_platform_that_is_enabled_can_be_sent_to(everywhere):
    row = accepted(everywhere, {"body": "x", "target_platforms": ["ios", "web", "android"]})
    assert row.target_platforms == ["ios", "web", "android"]


@pytest.mark.parametrize(
    "name", ["notification_id", "url", "icon", "token", "from", "message_type", "google.x", "gcm.y"]
)
def test_data_cannot_take_the_names_of_others_on_android(everywhere, name):
    body = {"body": "x", "data": {name: "1", "mine": "2"}}

    refused = everywhere.send(body | {"target_platforms": ["web", "android"]})

    assert faults(refused) == [(f"data.{name}", "reserved_name")]
    accepted(everywhere, body | {"target_platforms": ["web", "ios"]})


def test_a_channel_without_web_cannot_send_to_it():
    owner = owner_of(make_channel(web_enabled=False))
    assert code(owner.send({"body": "x"}), 400) == "platform_not_enabled"


# --- how much -------------------------------------------------------------------------------------


def payload_bytes(body, platform="web"):
    """What the device would get, tracking token included."""
    message = Message(
        notification_id=uuid7(),
        title="",
        body=body["body"],
        icon="",
        url="",
        image="",
        data=body["data"],
        ttl=1,
        expires_at=0,
        urgency="normal",
        topic="",
    )
    payload, _ = PAYLOADS[platform]
    return len(payload(message, make_token(uuid7(), uuid7())))


@pytest.mark.parametrize("unit", ["x", "😀"])
@pytest.mark.parametrize(("platform", "limit"), [("web", 3993), ("android", 4096), ("ios", 4096)])
def test_a_payload_fits_up_to_the_last_byte(everywhere, platform, limit, unit):
    body = {"body": unit, "data": {"k": ""}, "target_platforms": [platform]}
    body["data"]["k"] = "x" * (limit - payload_bytes(body, platform))
    assert payload_bytes(body, platform) == limit
    accepted(everywhere, body)

    body["data"]["k"] += "x"
    for refused in (everywhere.send(body), everywhere.send(body | {"dry_run": True})):
        assert faults(refused) == [("target_platforms", "payload_too_large")]
        assert refused.json()["code"] == "payload_too_large"
        assert platform in refused.json()["detail"]
    assert Notification.objects.count() == 1


def test_a_dry_run_tells_size_and_audience_and_stores_nothing(alice, bob):
    for number in range(3):
        alice.subscribe(browser(f"https://fcm.googleapis.com/fcm/send/{number}"))
    alice.device("/unsubscribe", {"endpoint": "https://fcm.googleapis.com/fcm/send/0"})
    bob.subscribe(browser())
    body = {"body": "x", "data": {"k": "v"}}

    response = alice.send(body | {"dry_run": True}, **{"Idempotency-Key": "k"})

    assert response.status_code == 200
    assert response.json() == {
        "platforms": {
            "web": {"payload_bytes": payload_bytes(body), "audience": 2, "estimated": False}
        }
    }
    assert not Notification.objects.exists()
    assert not IdempotencyRecord.objects.exists()


def test_a_dry_run_tells_the_audience_of_each_platform(everywhere):
    everywhere.subscribe(browser())
    for token in ("a", "b"):
        everywhere.device("/subscribe", {"platform": "android", "provider_token": token})

    response = everywhere.send(
        {"body": "x", "target_platforms": ["web", "android", "ios"], "dry_run": True}
    )

    found = response.json()["platforms"]
    assert {name: trial["audience"] for name, trial in found.items()} == {
        "web": 1,
        "android": 2,
        "ios": 0,
    }


# --- who ------------------------------------------------------------------------------------------


def test_only_a_key_with_the_scope_may_send(alice):
    reader = owner_of(alice.channel, scopes=["read", "manage"])
    assert code(reader.send({"body": "x"}), 403) == "missing_scope"
    assert owner_of(alice.channel, scopes=["send"]).send({"body": "x"}).status_code == 202


def test_without_a_key_nothing_is_looked_at(alice):
    response = Client().post("/send-notification", json.dumps({}), content_type="application/json")
    faults(response, 401)
    assert response.headers["WWW-Authenticate"] == "Key"


def test_a_key_that_sends_too_often_has_to_wait():
    owner = owner_of(make_channel(sends_per_second=2))
    other_key = owner_of(owner.channel)
    answers = [owner.send({"body": "x"}) for _ in range(10)]

    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert int(refused[0].headers["Retry-After"]) == 1
    assert Notification.objects.count() == 10 - len(refused)
    assert other_key.send({"body": "x"}).status_code == 202

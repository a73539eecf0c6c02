"""POST /send-notification: what is stored and answered, the audience, and who may send."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client

from notifications_app.content.values import CONTENT, Content
from notifications_app.models import Notification
from pushsvc.common.ids import parse_uuid, uuid7
from pushsvc.common.timestamps import parse_timestamp
from tests.api.support import accepted, code, errors, owner_of
from tests.factories import make_channel

pytestmark = pytest.mark.django_db
URL = "https://shop.example/"


def now():
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


def test_content_reaches_the_transports_as_it_was_sent(alice):
    given = {
        "title": " Bakery ",
        "body": "  Fresh bread \n",
        "icon": "http://shop.example:8080/icon.png",
        "url": f"{URL}bread?a=1&b=ü#x",
        "image": f"{URL}image.png",
        "data": {"order": "4711", "": "", "😀": "😀"},
        "ttl": 0,
        "urgency": "very-low",
        "topic": "order_4711-",
        "actions": [{"id": "buy", "title": "Buy"}],
        "web": {"tag": "bread"},
        "android": {"sound": "ding"},
        "ios": {"badge": 1},
        "translations": {"de": {"body": "Frisches Brot"}},
        "personalize": True,
        "vars": {"sale": "20 %", "price": 5.0},
        "on_missing": "bounce",
        "variants": [{"name": "a", "weight": 1, "title": "A"}, {"name": "b", "weight": 9}],
    }
    assert list(given) == list(CONTENT)

    row = accepted(alice, given | {"target_platforms": ["web", "web"], "segment_id": None})

    assert row.content == Content(**given)
    assert (row.target_platforms, row.segment_id) == (["web"], None)


def test_omitted_fields_have_the_same_defaults_everywhere(alice):
    row = accepted(alice, {"body": "Fresh bread"})

    assert row.content == Content(body="Fresh bread")
    assert (row.data, row.ttl, row.urgency) == ({}, 259_200, "normal")
    assert (row.target_platforms, row.segment_id) == (["web"], None)


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


@pytest.mark.parametrize("path", ["/send-notification", "/send-notification/"])
def test_the_path_may_end_in_a_slash(alice, path):
    assert alice.call("POST", path, {"body": "x"}).status_code == 202


# --- audience -------------------------------------------------------------------------------------


def test_an_unknown_segment_is_refused(alice):
    response = alice.send({"body": "x", "segment_id": str(uuid7())})
    assert errors(response) == [("segment_id", "segment_not_found")]
    assert response.json()["code"] == "segment_not_found"
    assert not Notification.objects.exists()


@pytest.mark.parametrize("platforms", [["android"], ["ios"], ["web", "ios"]])
def test_a_platform_that_the_channel_has_not_enabled_is_refused(alice, platforms):
    response = alice.send({"body": "x", "target_platforms": platforms})
    assert errors(response) == [("target_platforms", "platform_not_enabled")]
    assert response.json()["code"] == "platform_not_enabled"
    assert platforms[-1] in response.json()["detail"]
    assert not Notification.objects.exists()


def test_every_enabled_platform_can_be_sent_to(everywhere):
    row = accepted(everywhere, {"body": "x", "target_platforms": ["ios", "web", "android"]})
    assert row.target_platforms == ["ios", "web", "android"]


@pytest.mark.parametrize(
    "name", ["notification_id", "url", "icon", "token", "from", "message_type", "google.x", "gcm.y"]
)
def test_reserved_names_in_data_are_refused_for_android(everywhere, name):
    body = {"body": "x", "data": {name: "1", "mine": "2"}}

    refused = everywhere.send(body | {"target_platforms": ["web", "android"]})

    assert errors(refused) == [(f"data.{name}", "reserved_name")]
    accepted(everywhere, body | {"target_platforms": ["web", "ios"]})


def test_a_channel_with_web_disabled_cannot_send_to_web():
    owner = owner_of(make_channel(web_enabled=False))
    assert code(owner.send({"body": "x"}), 400) == "platform_not_enabled"


# --- who may send ---------------------------------------------------------------------------------


def test_only_a_key_with_the_scope_may_send(alice):
    reader = owner_of(alice.channel, scopes=["read", "manage"])
    assert code(reader.send({"body": "x"}), 403) == "missing_scope"
    assert owner_of(alice.channel, scopes=["send"]).send({"body": "x"}).status_code == 202


def test_a_request_without_a_key_is_refused_before_its_body_is_checked(alice):
    response = Client().post("/send-notification", json.dumps({}), content_type="application/json")
    errors(response, 401)
    assert response.headers["WWW-Authenticate"] == "Key"


def test_a_channel_that_sends_too_often_has_to_wait():
    owner = owner_of(make_channel(sends_per_second=2))
    answers = [owner.send({"body": "x"}) for _ in range(10)]

    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert int(refused[0].headers["Retry-After"]) == 1
    assert Notification.objects.count() == 10 - len(refused)


def test_the_details_name_the_key_that_sent_the_notification(alice):
    other = owner_of(alice.channel)
    for owner in (alice, other):
        sent = owner.send({"body": "Fresh bread"}).json()["notification_id"]
        name = owner.call("GET", f"/notification/{sent}/details").json()["api_key"]
        assert name.startswith("psk_")
        assert owner.key.startswith(name)
        assert name != owner.key

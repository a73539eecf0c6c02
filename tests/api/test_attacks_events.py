"""Hostile requests to POST /events and GET /c/<token>: none counts an event or fails."""

import json

import pytest
from django.test import Client

from notifications_app.models import Delivery
from tests.api.events import reached, without_id

pytestmark = pytest.mark.django_db

TOKEN = "a" * 64


@pytest.fixture
def sent(alice):
    notification, (token,) = reached(alice, 1, url="https://shop.example/")
    return notification, token


def post(body, content_type="application/json", **headers):
    return Client().post("/events", body, content_type=content_type, headers=headers)


def shapes(token):
    """Bodies that hold a genuine click somewhere, but are no report of it."""
    click = {"token": token, "event": "clicked"}
    return [
        [click],
        click,
        {"events": click},
        {"events": {"0": click}},
        {"events": [[click]]},
        {"events": [click] * 21},
        {"events": [click, None]},
        {"events": [click, {**click, "token": [token]}]},
        {"events": [click, {**click, "token": {"$ne": ""}}]},
        {"events": [click, {**click, "event": ["clicked"]}]},
        {"events": [click, {**click, "event": "CLICKED"}]},
        {"events": [click, {**click, "count": 5}]},
        {"events": [click], "notification_id": "x"},
        {"Events": [click]},
        None,
        1e300,
        token,
    ]


@pytest.mark.parametrize("number", range(17))
def test_a_click_in_a_wrong_place_of_the_body_is_not_counted(sent, number):
    notification, token = sent

    answer = post(json.dumps(shapes(token)[number]))

    assert answer.status_code == 400
    assert token not in answer.content.decode()
    notification.refresh_from_db()
    assert notification.clicked_count == 0
    assert not Delivery.objects.exclude(received_at=None).exists()


@pytest.mark.parametrize(
    "body",
    [
        b'{"events":[],"events":[{"token":"%s","event":"clicked"}]}',
        b'{"events":[{"token":"x","token":"%s","event":"clicked"}]}',
        b'{"events":[{"token":"%s","event":"clicked"}]}{}',
        b'{"events":[{"token":"%s","event":"clicked\\u0000"}]}',
        b"[" * 8_000 + b"%s",
        b'{"events":' + b'{"a":' * 1_000 + b'"%s"' + b"}" * 1_000 + b"}",
        b"events=%s",
        b"\xff\xfe%s",
    ],
)
@pytest.mark.parametrize(
    "content_type", ["application/json", "text/plain", "text/plain;charset=utf-16"]
)
def test_a_click_in_invalid_json_is_not_counted(sent, body, content_type):
    notification, token = sent

    assert post(body.replace(b"%s", token.encode()), content_type).status_code == 400
    notification.refresh_from_db()
    assert notification.clicked_count == 0


def test_one_request_cannot_count_a_click_twice(sent):
    """Twenty spellings of one report count as one."""
    notification, token = sent
    events = [{"token": token, "event": event} for event in ("clicked", "received", "dismissed")]

    assert post(json.dumps({"events": (events * 7)[:20]})).status_code == 204

    notification.refresh_from_db()
    counts = (
        notification.clicked_count,
        notification.received_count,
        notification.dismissed_count,
    )
    assert counts == (1, 1, 1)


@pytest.mark.parametrize(
    "spelling",
    [
        "{}=",
        "{}\n",
        " {}",
        "{}%0d%0aLocation:%20https://evil.example",
        "{}/..",
        "{}%00",
        "{}?u=//e",
    ],
)
def test_a_token_has_only_one_valid_spelling(sent, spelling):
    """A program that counts clicks by token would count a second spelling again."""
    notification, token = sent

    answer = Client().get(f"/c/{spelling.format(token)}")

    assert answer.status_code == 404 or answer.headers["Location"] == notification.url
    assert "evil" not in str(answer.headers)
    reported = post(json.dumps({"events": [{"token": f"{token}=", "event": "clicked"}]}))
    assert reported.status_code == 204


def test_an_answer_to_a_device_discloses_nothing_and_is_not_cached(sent):
    _, token = sent
    body = json.dumps({"events": [{"token": token, "event": "clicked"}]})
    forged = json.dumps({"events": [{"token": TOKEN, "event": "clicked"}]})

    answers = [post(each, Origin="https://evil.example") for each in (body, body, forged)]

    assert {answer.status_code for answer in answers} == {204}
    assert {answer.content for answer in answers} == {b""}
    assert without_id(answers[0]) == without_id(answers[1]) == without_id(answers[2])
    assert "Access-Control-Allow-Credentials" not in answers[0].headers
    assert not answers[0].cookies

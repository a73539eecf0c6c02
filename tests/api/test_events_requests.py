"""POST /events: the shape of a request, the origins that may send it, and its limits."""

import json

import pytest
from django.test import Client

from tests.api.events import counts, report
from tests.api.support import code, errors

pytestmark = pytest.mark.django_db


MALFORMED = [
    ({}, [("events", "required")]),
    ({"events": None}, [("events", "null")]),
    ({"events": {}}, [("events", "not_a_list")]),
    ({"events": []}, [("events", "empty")]),
    ({"events": ["x"]}, [("events.0", "not_an_object")]),
    ({"events": [{}]}, [("events.0.event", "required"), ("events.0.token", "required")]),
    ({"events": [{"token": 5, "event": "clicked"}]}, [("events.0.token", "not_a_string")]),
    ({"events": [{"token": None, "event": "clicked"}]}, [("events.0.token", "null")]),
    ({"events": [{"token": "x", "event": "opened"}]}, [("events.0.event", "not_a_choice")]),
    ({"events": [{"token": "x", "event": "Clicked"}]}, [("events.0.event", "not_a_choice")]),
    (
        {"events": [{"token": "x", "event": "clicked", "at": 1}]},
        [("events.0.at", "unknown_field")],
    ),
    ({"events": [{"token": "x", "event": "clicked"}], "x": 1}, [("x", "unknown_field")]),
    ({"events": [{"token": "x", "event": "clicked"}] * 21}, [("events", "too_many")]),
]


@pytest.mark.parametrize("content_type", ["application/json", "text/plain;charset=UTF-8"])
@pytest.mark.parametrize(("body", "expected"), MALFORMED)
def test_a_malformed_report_is_answered_with_its_errors(body, expected, content_type):
    answer = Client().post("/events", json.dumps(body), content_type=content_type)

    assert sorted(errors(answer)) == expected


def test_one_malformed_event_prevents_the_others_from_being_counted(sent):
    notification, (token, _) = sent

    assert code(report((token, "clicked"), (token, "opened")), 400) == "validation_error"

    assert counts(notification) == (0, 0, 0)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "TEXT/PLAIN"])
@pytest.mark.parametrize(
    "body", ["", "{", "[]", '{"events": [], "events": []}', '{"events": NaN}', "events=x"]
)
def test_both_content_types_are_read_strictly(body, content_type):
    answer = Client().post("/events", body, content_type=content_type)

    assert code(answer, 400) in {"malformed_json", "validation_error"}


@pytest.mark.parametrize("content_type", ["text/plain;charset=UTF-8", "text/plain"])
def test_a_beacon_counts_like_a_json_request(sent, content_type):
    notification, (token, _) = sent

    assert report((token, "clicked"), content_type=content_type).status_code == 204

    assert counts(notification) == (1, 1, 0)


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/html"])
def test_other_content_types_are_refused(sent, content_type):
    _, (token, _) = sent

    answer = report((token, "clicked"), content_type=content_type)

    assert code(answer, 415) == "unsupported_media_type"


def test_a_page_of_any_origin_may_report(sent):
    _, (token, _) = sent
    origin = {"Origin": "https://shop.example"}

    beacon = report((token, "clicked"), content_type="text/plain;charset=UTF-8", **origin)
    assert beacon.headers["Access-Control-Allow-Origin"] == "*"

    asked = {"Access-Control-Request-Method": "POST"}
    asked |= {"Access-Control-Request-Headers": "content-type"}
    preflight = Client().options("/events", headers=origin | asked)
    assert preflight.status_code == 200
    assert preflight.headers["Access-Control-Allow-Origin"] == "*"
    assert "content-type" in preflight.headers["Access-Control-Allow-Headers"]


def test_a_beacon_needs_no_preflight(sent):
    """Only these request headers and these types need no preflight (Fetch, section 2.2.2)."""
    notification, (token, _) = sent

    beacon = Client(REMOTE_ADDR="203.0.113.7").post(
        "/events",
        json.dumps({"events": [{"token": token, "event": "dismissed"}]}),
        content_type="text/plain;charset=UTF-8",
    )

    assert beacon.status_code == 204
    assert counts(notification) == (1, 0, 1)


def test_only_forged_reports_are_limited_by_address(sent, settings):
    notification, (one, other) = sent
    settings.FORGED_EVENTS_PER_MINUTE = 3
    for _ in range(3):
        assert report(("forged", "clicked")).status_code == 204

    refused = report(("forged", "clicked"))
    assert code(refused, 429) == "rate_limited"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60

    assert report((one, "clicked")).status_code == 204
    assert report((other, "clicked")).status_code == 204
    assert counts(notification) == (2, 2, 0)
    assert report(("forged", "clicked"), address="203.0.113.8").status_code == 204


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_only_post_reports_events(method):
    assert code(getattr(Client(), method)("/events"), 405) == "method_not_allowed"


def test_a_trailing_slash_does_not_matter(sent):
    notification, (token, _) = sent
    body = json.dumps({"events": [{"token": token, "event": "clicked"}]})

    assert Client().post("/events/", body, content_type="text/plain").status_code == 204

    assert counts(notification) == (1, 1, 0)

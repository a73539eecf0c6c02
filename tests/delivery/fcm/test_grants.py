"""Outcomes of answers of Google's token endpoint."""

import json

import pytest
from multidict import CIMultiDict

from notifications_app.delivery.fcm.access_token import Granted, classify_grant
from notifications_app.delivery.types import Deferred, Misconfigured
from pushsvc.common.egress import Response
from tests.delivery.fcm.test_responses import NOW


def granted(status, body, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return classify_grant(Response(status, CIMultiDict(named), raw), NOW)


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        (granted(200, {"access_token": "a", "expires_in": 60}), Granted("a", 60.0)),
        (granted(200, {"access_token": "a", "expires_in": 3599.5}), Granted("a", 3_599.5)),
        (granted(200, {"access_token": "a"}), Granted("a", 3_600.0)),
        (granted(200, {"access_token": "a", "expires_in": -1}), Granted("a", 3_600.0)),
        (granted(200, {"access_token": "a", "expires_in": 1e9}), Granted("a", 3_600.0)),
        (granted(200, {"access_token": "a", "expires_in": "60"}), Granted("a", 3_600.0)),
        (granted(400, {"error": "invalid_grant"}), Misconfigured),
        (granted(400, {"error": "invalid_scope"}), Misconfigured),
        (granted(401, {"error": "invalid_client"}), Misconfigured),
        (granted(403, {"error": "access_denied"}), Misconfigured),
        (granted(200, {"access_token": ""}), Deferred),
        (granted(200, {"access_token": "a\r\nX: y"}), Deferred),
        (granted(200, {"access_token": 5}), Deferred),
        (granted(200, b"<html>"), Deferred),
        (granted(200, b"[" * 4_000), Deferred),
        (granted(201, {"access_token": "a"}), Deferred),
        (granted(302, b""), Deferred),
        (granted(400, b"<html>"), Deferred),
        (granted(401, b""), Deferred),
        (granted(401, b"<html>"), Deferred),
        (granted(401, {"error": "Unauthorized"}), Deferred),
        (granted(403, {"error": "forbidden"}), Deferred),
        (granted(403, {"status": 403, "error": "Forbidden", "path": "/token"}), Deferred),
        (granted(403, {"error": {"code": 403, "message": "Forbidden"}}), Deferred),
        (granted(400, {"error": "temporarily_unavailable"}), Deferred),
        (granted(400, {"error": "server_error"}), Deferred),
        (granted(400, {"error": "internal_failure"}), Deferred),
        (granted(403, b"blocked by your proxy"), Deferred),
        (granted(404, b""), Deferred),
        (granted(500, b""), Deferred),
        (granted(503, {"error": "invalid_grant"}), Deferred),
    ],
)
def test_each_answer_of_the_token_endpoint_has_the_outcome_of_the_table(answered, expected):
    assert answered == expected or type(answered) is expected
    if isinstance(answered, Deferred):
        assert (answered.code, answered.retry_after, answered.outage) == (
            "token_unavailable",
            10.0,
            True,
        )


def test_the_token_endpoints_text_is_cleaned():
    said = {"error": "invalid_grant", "error_description": "a\n\x00b" + "c" * 300}
    assert granted(400, said).detail == f"400 invalid_grant: a b{'c' * 178}"

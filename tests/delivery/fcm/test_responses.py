import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from notifications_app.delivery.fcm.responses import (
    ACCEPTED_STATUSES,
    FALLBACK,
    SUSPECT_CODES,
    TABLE,
)
from notifications_app.delivery.fcm.transport import CODES, classify
from notifications_app.delivery.responses import (
    ACCEPTED,
    ANY,
    ResponseClass,
    Row,
    accepted_statuses,
)
from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Gone,
    Misconfigured,
    Rejected,
)
from pushsvc.common.egress import Response

NOW = datetime(2026, 11, 20, 15, 11, 0, tzinfo=UTC)
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
ADDRESS_FIELDS = ["token", "fid"]
NOT_A_TOKEN = "The registration token is not a valid FCM registration token"


def answered(status, body=b"", field="token", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return classify(Response(status, CIMultiDict(named), body), NOW, field)


def fcm(status, code, message="Oops", *details, **options):
    """Google's error object, with an FcmError unless `code` is None."""
    coded = [{"@type": FCM_ERROR, "errorCode": code}] if code else []
    error = {"code": status, "message": message, "status": "UNKNOWN"}
    error |= {"details": [*details, *coded]}
    return answered(status, json.dumps({"error": error}).encode(), **options)


def violations(*fields):
    described = [{"field": field, "description": "Invalid"} for field in fields]
    return {"@type": BAD_REQUEST, "fieldViolations": described}


@pytest.mark.parametrize(
    "body",
    [b'{"name": "projects/demo-app/messages/0:1700%abc"}', b'{"name": 5}', b"{}", b"<html>", b""],
)
def test_a_success_is_accepted_whatever_its_body_says(body):
    assert answered(200, body) == Accepted()
    assert sorted(ACCEPTED_STATUSES) == [200]  # whose bodies the transport does not read


def test_a_status_with_several_meanings_is_not_accepted_without_its_reason():
    refused = Row(ResponseClass.REJECTED, "dropped")
    assert accepted_statuses({(200, ANY): ACCEPTED, (200, "dropped"): refused}) == set()
    assert accepted_statuses({(201, "stored"): ACCEPTED}) == set()


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (fcm(400, "INVALID_ARGUMENT"), Rejected("invalid_argument", "400 Oops")),
        (
            fcm(400, "INVALID_ARGUMENT", "Android message is too big"),
            Rejected("invalid_argument", "400 Android message is too big"),
        ),
        (fcm(400, "INVALID_ARGUMENT", NOT_A_TOKEN), Gone("token_invalid", f"400 {NOT_A_TOKEN}")),
        (
            fcm(400, "INVALID_ARGUMENT", "Oops", violations("message.token")),
            Gone("token_invalid", "400 Oops"),
        ),
        (fcm(400, None, "Oops", violations("message.token")), Gone("token_invalid", "400 Oops")),
        (fcm(400, None), Rejected("invalid_argument", "400 Oops")),
        (fcm(400, "SOMETHING_NEW"), Rejected("refused", "400 Oops")),
        (fcm(400, "UNREGISTERED"), Rejected("refused", "400 Oops")),
        (fcm(401, None), Misconfigured("unauthenticated", "401 Oops")),
        (
            fcm(401, None, "Oops", {"@type": ERROR_INFO, "reason": "ACCESS_TOKEN_EXPIRED"}),
            Misconfigured("unauthenticated", "401 Oops"),
        ),
        (fcm(401, "THIRD_PARTY_AUTH_ERROR"), Rejected("third_party_auth", "401 Oops")),
        (fcm(401, "APNS_AUTH_ERROR"), Rejected("third_party_auth", "401 Oops")),
        (fcm(401, "SOMETHING_NEW"), Rejected("refused", "401 Oops")),
        (fcm(403, None), Misconfigured("permission_denied", "403 Oops")),
        (
            fcm(403, "SENDER_ID_MISMATCH", "SenderId mismatch"),
            Gone("sender_id_mismatch", "403 SenderId mismatch", suspect=True),
        ),
        (fcm(403, "SOMETHING_NEW"), Rejected("refused", "403 Oops")),
        (fcm(404, "UNREGISTERED"), Gone("unregistered", "404 Oops")),
        (
            fcm(404, "UNREGISTERED", "Oops", violations("message.token")),
            Gone("unregistered", "404 Oops"),
        ),
        (fcm(404, None), Rejected("refused", "404 Oops")),
        (answered(408), Deferred("timeout", "408", 10.0, outage=True)),
        (answered(413), Rejected("payload_too_large", "413")),
        (fcm(429, "QUOTA_EXCEEDED"), Deferred("throttled", "429 Oops", 60.0)),
        (fcm(429, "QUOTA_EXCEEDED", Retry_After="7"), Deferred("throttled", "429 Oops", 7.0)),
        (
            fcm(429, None, Retry_After="Fri, 20 Nov 2026 15:13:00 GMT"),
            Deferred("throttled", "429 Oops", 120.0),
        ),
        (fcm(429, "QUOTA_EXCEEDED", Retry_After="soon"), Deferred("throttled", "429 Oops", 60.0)),
        (fcm(500, "INTERNAL"), Deferred("service_error", "500 Oops", 10.0, outage=True)),
        (fcm(503, "UNAVAILABLE"), Deferred("service_error", "503 Oops", 10.0, outage=True)),
        (
            fcm(503, "UNAVAILABLE", Retry_After="120"),
            Deferred("service_error", "503 Oops", 120.0, outage=True),
        ),
        (
            fcm(503, "UNAVAILABLE", Retry_After="Fri, 20 Nov 2026 15:11:30 GMT"),
            Deferred("service_error", "503 Oops", 30.0, outage=True),
        ),
        (fcm(500, "UNREGISTERED"), Deferred("service_error", "500 Oops", 10.0, outage=True)),
        (answered(502), Deferred("service_error", "502", 10.0, outage=True)),
        (answered(600), Deferred("service_error", "600", 10.0, outage=True)),
        (answered(0), Deferred("service_error", "0", 10.0, outage=True)),
        (answered(101), Rejected("unexpected_response", "101")),
        (answered(204), Rejected("unexpected_response", "204")),
        (answered(302), Deferred("redirected", "302", 10.0, outage=True)),
        (fcm(402, None), Rejected("refused", "402 Oops")),
        (answered(413, b"<html>"), Rejected("payload_too_large", "413 <html>")),
        (answered(429, b"<html>"), Deferred("throttled", "429 <html>", 60.0)),
    ],
)
def test_each_answer_has_the_outcome_of_the_table(outcome, expected):
    assert outcome == expected


@pytest.mark.parametrize(
    "outcome",
    [
        fcm(400, "INVALID_ARGUMENT", "Oops", violations("message.data")),
        fcm(400, "INVALID_ARGUMENT", "Oops", violations("message.data", "message.token")),
        fcm(400, "INVALID_ARGUMENT", "Oops", {"@type": BAD_REQUEST, "fieldViolations": "x"}),
        fcm(400, "INVALID_ARGUMENT", "Oops", {**violations("message.token"), "@type": "x"}),
        fcm(400, "INVALID_ARGUMENT", f"Invalid value at 'data', \"{NOT_A_TOKEN}\""),
        fcm(400, "INVALID_ARGUMENT", "Oops", violations(["message.token"])),
    ],
)
def test_an_invalid_argument_about_more_than_the_token_expires_nobody(outcome):
    assert isinstance(outcome, Rejected)


@pytest.mark.parametrize("sent", ADDRESS_FIELDS)
@pytest.mark.parametrize("named", ADDRESS_FIELDS)
@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", None])
def test_only_an_error_of_the_field_that_was_sent_expires_a_device(sent, named, code):
    outcome = fcm(400, code, "Oops", violations(f"message.{named}"), field=sent)
    if named == sent:
        assert outcome == Gone("token_invalid", "400 Oops")
    else:
        assert outcome == Rejected("invalid_argument", "400 Oops")


@pytest.mark.parametrize("details", [(), (violations("message.token"),), (violations(),)])
def test_an_installation_id_never_expires_as_an_invalid_token(details):
    outcome = fcm(400, "INVALID_ARGUMENT", NOT_A_TOKEN, *details, field="fid")
    assert outcome == Rejected("invalid_argument", f"400 {NOT_A_TOKEN}")


def test_an_unregistered_installation_id_is_gone():
    assert fcm(404, "UNREGISTERED", field="fid") == Gone("unregistered", "404 Oops")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Forbidden</html>",
        b"[]",
        b'{"error": "forbidden"}',
        b'{"reason": "blocked", "status": "PERMISSION_DENIED"}',
        b'{"error": {"code": 403, "message": "Forbidden"}}',
        b'{"error": {"message": "Forbidden", "status": "blocked"}}',
        b'{"error": {"message": "Forbidden", "status": ["UNAUTHENTICATED"]}}',
        b'{"error":' + b"[" * 4_000,
    ],
)
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 407, 418, 451, 499])
def test_a_refusal_without_googles_error_object_is_an_outage(status, body):
    outcome = answered(status, body, Retry_After="7")
    assert (type(outcome), outcome.code) == (Deferred, "foreign_response")
    assert (outcome.outage, outcome.retry_after) == (True, 7.0)


@pytest.mark.parametrize(
    "details", [None, 5, [], [5, {}, {"@type": 7, "errorCode": []}], [{"@type": ERROR_INFO}]]
)
@pytest.mark.parametrize(("status", "code"), [(401, "unauthenticated"), (403, "permission_denied")])
def test_googles_refusal_without_an_fcm_error_is_misconfigured(status, code, details):
    error = {"code": status, "message": "Oops", "status": "PERMISSION_DENIED", "details": details}
    outcome = answered(status, json.dumps({"error": error}).encode())
    assert outcome == Misconfigured(code, f"{status} Oops")


def test_the_detail_is_googles_text_cleaned():
    assert fcm(400, None, "a\r\n\x00b\ud800" + "c" * 300).detail == f"400 a b{'c' * 193}"


def test_every_code_is_explained():
    codes = {code for _, code in (*TABLE.values(), *FALLBACK.values())} - {""}
    assert codes <= set(CODES)


def test_every_suspicious_answer_is_held_for_the_mass_failure_rule():
    codes = {
        code for response_class, code in TABLE.values() if response_class is ResponseClass.SUSPECT
    }
    assert codes == {"sender_id_mismatch"}
    assert codes <= SUSPECT_CODES


JSON = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
CODE = st.sampled_from(["UNREGISTERED", "INVALID_ARGUMENT", "SENDER_ID_MISMATCH", "X"]) | JSON
DETAIL = st.fixed_dictionaries(
    {},
    optional={
        "@type": st.sampled_from([FCM_ERROR, BAD_REQUEST]) | JSON,
        "errorCode": CODE,
        "fieldViolations": st.sampled_from(ADDRESS_FIELDS).map(
            lambda field: [{"field": f"message.{field}"}]
        )
        | JSON,
    },
)
ERROR = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["UNAUTHENTICATED", "NOT_FOUND"]) | JSON,
        "message": st.just(NOT_A_TOKEN) | JSON,
        "details": st.lists(DETAIL) | JSON,
    },
)
BODIES = st.binary() | (st.fixed_dictionaries({"error": ERROR | JSON}) | JSON).map(
    lambda said: json.dumps(said).encode()
)
HEADERS = st.dictionaries(st.just("Retry-After"), st.just("7") | st.text())


@given(st.integers(0, 999), HEADERS, BODIES, st.sampled_from(ADDRESS_FIELDS))
def test_every_answer_has_an_outcome_and_unknown_ones_are_never_gone(status, headers, body, field):
    outcome = classify(Response(status, CIMultiDict(headers), body), NOW, field)
    assert isinstance(outcome, Accepted) or outcome.code in CODES
    if isinstance(outcome, Accepted):
        assert status == 200
    if isinstance(outcome, Gone):
        assert status in (400, 403, 404)
        names_field = f"message.{field}".encode() in body
        says_token = field == "token" and NOT_A_TOKEN.encode() in body
        assert b"FcmError" in body or names_field or says_token
    if isinstance(outcome, Misconfigured):
        assert status in (401, 403)
    if isinstance(outcome, Misconfigured | Gone | Rejected) and status // 100 == 4:
        assert status == 413 or b'"status": "' in body
    if isinstance(outcome, Deferred):
        assert outcome.outage == (status != 429)

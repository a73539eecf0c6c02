import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from notifications_app.delivery.responses import ResponseClass
from notifications_app.delivery.types import Accepted, Deferred, Gone, Rejected
from notifications_app.delivery.webpush.responses import FALLBACK, SUSPECT_CODES, TABLE
from notifications_app.delivery.webpush.transport import CODES, classify
from pushsvc.common.egress import Response

NOW = datetime(2026, 11, 20, 15, 11, 0, tzinfo=UTC)


def answered(status, body=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return classify(Response(status, CIMultiDict(named), body), NOW)


def autopush(status, errno, message, **headers):
    error = {"code": status, "errno": errno, "error": "Oops", "message": message, "more_info": ""}
    return answered(status, json.dumps(error).encode(), **headers)


def apple(status, reason, **headers):
    return answered(status, json.dumps({"reason": reason}).encode(), **headers)


def wns(status, state, **headers):
    return answered(status, X_WNS_NotificationStatus=state, **headers)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_a_success_is_accepted(status):
    assert answered(status) == Accepted()


@pytest.mark.parametrize("status", [200, 201])
@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("received", Accepted()),
        ("something new", Accepted()),
        ("dropped", Rejected("dropped", "{} full")),
        ("Dropped", Rejected("dropped", "{} full")),
        ("channelThrottled", Deferred("throttled", "{} full")),
        ("appthrottled", Deferred("throttled", "{} full")),
    ],
)
def test_a_success_of_wns_counts_by_its_status_header(status, state, outcome):
    expected = outcome
    if not isinstance(outcome, Accepted):
        expected = type(outcome)(outcome.code, outcome.detail.format(status))
    assert wns(status, state, X_WNS_Error_Description="full") == expected


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (answered(400), Rejected("bad_request", "400")),
        (
            autopush(400, 110, "Invalid crypto"),
            Rejected("bad_request", "400 errno 110: Invalid crypto"),
        ),
        (apple(400, "BadWebPushTopic"), Rejected("bad_request", "400 BadWebPushTopic")),
        (wns(400, "dropped"), Rejected("bad_request", "400")),
        (
            apple(400, "VapidPkHashMismatch"),
            Gone("vapid_key_mismatch", "400 VapidPkHashMismatch", suspect=True),
        ),
        (
            apple(403, "VapidPkHashMismatch"),
            Gone("vapid_key_mismatch", "403 VapidPkHashMismatch", suspect=True),
        ),
        (
            autopush(401, 109, "VAPID public key mismatch"),
            Gone("vapid_refused", "401 errno 109: VAPID public key mismatch", suspect=True),
        ),
        (
            autopush(401, 109, "Key refused"),  # a text that autopush does not have yet
            Gone("vapid_refused", "401 errno 109: Key refused", suspect=True),
        ),
        (
            answered(403, b"the VAPID credentials do not correspond\n"),
            Gone("vapid_refused", "403 the VAPID credentials do not correspond", suspect=True),
        ),
        (
            wns(403, "dropped", X_WNS_Error_Description="Channel URL incompatible"),
            Gone("vapid_refused", "403 Channel URL incompatible", suspect=True),
        ),
        (answered(401), Rejected("unauthorized", "401")),
        (answered(403), Rejected("unauthorized", "403")),
        (answered(403, b"<html>proxy"), Rejected("unauthorized", "403 <html>proxy")),
        (wns(401, "dropped"), Rejected("unauthorized", "401")),
        (apple(403, "BadJwtToken"), Rejected("unauthorized", "403 BadJwtToken")),
        (answered(404), Gone("endpoint_gone", "404")),
        (autopush(404, 102, "No such"), Gone("endpoint_gone", "404 errno 102: No such")),
        (autopush(410, 106, "Bye"), Gone("endpoint_gone", "410 errno 106: Bye")),
        (
            answered(410, b"push subscription has unsubscribed or expired."),
            Gone("endpoint_gone", "410 push subscription has unsubscribed or expired."),
        ),
        (
            wns(406, "channelthrottled", X_WNS_Error_Description="Too fast", Retry_After="30"),
            Deferred("throttled", "406 Too fast", 30.0),
        ),
        (wns(406, "appThrottled"), Deferred("throttled", "406")),
        (wns(406, "dropped"), Deferred("throttled", "406")),
        (answered(406), Deferred("throttled", "406")),
        (answered(406, Retry_After="60"), Deferred("throttled", "406", 60.0)),
        (answered(408), Deferred("timeout", "408", outage=True)),
        (answered(413), Rejected("size_refused", "413")),
        (
            autopush(413, 104, "Too big"),
            Rejected("size_refused", "413 errno 104: Too big"),
        ),
        (answered(429), Deferred("throttled", "429")),
        (answered(429, Retry_After="120"), Deferred("throttled", "429", 120.0)),
        (
            answered(429, Retry_After="Fri, 20 Nov 2026 15:12:00 GMT"),
            Deferred("throttled", "429", 60.0),
        ),
        (answered(429, Retry_After="later"), Deferred("throttled", "429")),
        (
            apple(429, "TooManyRequests", Retry_After="7"),
            Deferred("throttled", "429 TooManyRequests", 7.0),
        ),
        (answered(500), Deferred("service_error", "500", outage=True)),
        (
            autopush(502, 902, "Bridge", Retry_After="5"),
            Deferred("service_error", "502 errno 902: Bridge", 5.0, outage=True),
        ),
        (
            autopush(503, 201, "Back off", Retry_After="120"),
            Deferred("service_error", "503 errno 201: Back off", 120.0, outage=True),
        ),
        (answered(599), Deferred("service_error", "599", outage=True)),
        (answered(600), Deferred("service_error", "600", outage=True)),
        (answered(0), Deferred("service_error", "0", outage=True)),
        (answered(101), Rejected("unexpected_response", "101")),
        (answered(206), Rejected("unexpected_response", "206")),
        (answered(301, Location="http://127.0.0.1/"), Rejected("redirected", "301")),
        (answered(302), Rejected("redirected", "302")),
        (answered(307), Rejected("redirected", "307")),
        (answered(308), Rejected("redirected", "308")),
        (answered(402), Rejected("refused", "402")),
        (answered(418), Rejected("refused", "418")),
        (answered(421), Rejected("refused", "421")),
    ],
)
def test_each_answer_has_the_outcome_of_the_table(outcome, expected):
    assert outcome == expected


# FCM: chromium, web_push_common.cc. Autopush: the texts of VapidError and of its JWT library.
@pytest.mark.parametrize(
    "answer",
    [
        *[
            answered(403, text.encode())
            for text in (
                "sender is not authenticated",
                "invalid JWT provided",
                "aud claim in the token MUST include the origin of the endpoint",
                "exp claim MUST NOT be more than 24 hours from the time of the request",
                "token has expired",
            )
        ],
        *[
            autopush(401, 109, text)
            for text in (
                "Missing VAPID token",
                "Missing VAPID public key",
                "Invalid VAPID public key",
                "Invalid VAPID audience",
                "Invalid VAPID expiry",
                "The VAPID token expiration is too long",
                "Unknown auth scheme",
                "ExpiredSignature",
                "ImmatureSignature",
                "InvalidSignature",
                "InvalidAudience",
                "InvalidSubject",
                "JSON error: EOF",
                "Invalid VAPID: exp is more than 24 hours away",  # the sandbox's own
            )
        ],
    ],
)
def test_an_error_of_our_token_never_expires_a_subscription(answer):
    assert isinstance(answer, Rejected)
    assert answer.code == "unauthorized"


@pytest.mark.parametrize(
    "text",
    [
        "the VAPID credentials in the authorization header do not correspond to the credentials"
        " used to create the subscriptions.",
        "the key in the authorization header does not correspond to the sender ID used to subscribe"
        " this user.",
        "<HTML><HEAD><TITLE>MismatchSenderId</TITLE></HEAD></HTML>",
    ],
)
def test_every_text_of_fcm_for_another_key_is_a_suspect(text):
    outcome = answered(403, text.encode())
    assert (outcome.code, outcome.suspect) == ("vapid_refused", True)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"<html>\r\n<b>No\x00pe</b>", "400 <html> <b>Nope</b>"),
        (b"\xff\xfe", "400 \ufffd\ufffd"),
        (b"{" * 4_096, "400 " + "{" * 196),
        (b'{"a":' + b"[" * 4_000, '400 {"a":' + "[" * 191),
        (b'{"errno": ' + b"9" * 4_000, "400 " + '{"errno": ' + "9" * 186),
        (b'{"reason": ["x"], "message": 5}', '400 {"reason": ["x"], "message": 5}'),
        (b'{"message": "\\ud800\\u0000x"}', "400 x"),
        (b"[1]", "400 [1]"),
    ],
)
def test_the_detail_is_the_push_services_text_cleaned(body, detail):
    assert answered(400, body).detail == detail


def test_every_code_is_explained():
    codes = {code for _, code in (*TABLE.values(), *FALLBACK.values())} - {""}
    assert codes <= set(CODES)


def test_every_suspicious_answer_is_held_for_the_mass_failure_rule():
    codes = {
        code for response_class, code in TABLE.values() if response_class is ResponseClass.SUSPECT
    }
    assert codes
    assert codes <= SUSPECT_CODES


HEADER_NAMES = st.sampled_from(
    ["Retry-After", "Location", "X-WNS-NotificationStatus", "X-WNS-Error-Description", "apns-id"]
)
HEADERS = st.dictionaries(
    HEADER_NAMES, st.sampled_from(["dropped", "channelThrottled", "7"]) | st.text()
)
JSON = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
BODIES = st.binary() | st.dictionaries(
    st.sampled_from(["reason", "errno", "message", "code"]),
    st.sampled_from(["VapidPkHashMismatch", "VAPID public key mismatch", 102, 106, 109]) | JSON,
).map(lambda said: json.dumps(said).encode())


@given(st.integers(0, 999), HEADERS, BODIES)
def test_every_answer_has_an_outcome_and_unknown_ones_are_never_gone(status, headers, body):
    outcome = classify(Response(status, CIMultiDict(headers), body), NOW)
    assert isinstance(outcome, Accepted) or outcome.code in CODES
    if isinstance(outcome, Accepted):
        assert status in (200, 201, 202, 204)
    if isinstance(outcome, Gone):
        assert status in (404, 410) or (outcome.suspect and status in (400, 401, 403))
    if isinstance(outcome, Deferred):
        assert outcome.outage == (status == 408 or status // 100 not in (1, 2, 3, 4))

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from notifications_app.delivery.apns.responses import FALLBACK, SUSPECT_CODES, TABLE, WAITS
from notifications_app.delivery.apns.transport import CODES, classify
from notifications_app.delivery.responses import ResponseClass
from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Gone,
    Misconfigured,
    Rejected,
)
from pushsvc.common.egress import Response

NOW = datetime(2026, 11, 20, 15, 11, 0, tzinfo=UTC)
EARLIER = NOW - timedelta(days=1)


def answered(status, body=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return classify(Response(status, CIMultiDict(named), body), NOW)


def apple(status, reason, **more):
    return answered(status, json.dumps({"reason": reason} | more).encode())


def milliseconds(moment):
    return int(moment.timestamp() * 1_000)


def test_a_success_is_accepted_with_or_without_apples_id():
    assert answered(200, apns_id="4F2A") == Accepted()
    assert answered(200) == Accepted()


@pytest.mark.parametrize(
    "reason",
    [
        "BadCollapseId",
        "BadExpirationDate",
        "BadMessageId",
        "BadPriority",
        "DuplicateHeaders",
        "InvalidPushType",
        "MissingDeviceToken",
        "MissingTopic",
        "PayloadEmpty",
        "SomethingNew",
    ],
)
def test_a_malformed_request_is_rejected_without_blaming_the_device(reason):
    assert apple(400, reason) == Rejected("bad_request", f"400 {reason}")


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("BadDeviceToken", "bad_device_token"),
        ("DeviceTokenNotForTopic", "device_token_not_for_topic"),
    ],
)
def test_a_token_that_our_own_mistake_may_have_refused_is_a_suspect(reason, code):
    assert apple(400, reason) == Gone(code, f"400 {reason}", suspect=True)
    assert code in SUSPECT_CODES


@pytest.mark.parametrize("reason", ["BadTopic", "TopicDisallowed"])
def test_a_refused_topic_is_misconfigured(reason):
    assert apple(400, reason) == Misconfigured("topic_refused", f"400 {reason}")


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("BadCertificate", "key_refused"),
        ("BadCertificateEnvironment", "key_refused"),
        ("Forbidden", "key_refused"),
        ("InvalidProviderToken", "key_refused"),
        ("MissingProviderToken", "key_refused"),
        ("SomethingNew", "key_refused"),
        ("BadEnvironmentKeyIdInToken", "key_for_other_environment"),
        ("BadEnvironmentKeyInToken", "key_for_other_environment"),
        ("UnrelatedKeyIdInToken", "key_for_other_topic"),
    ],
)
def test_403_is_misconfigured(reason, code):
    assert apple(403, reason) == Misconfigured(code, f"403 {reason}")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Forbidden</html>",
        b'{"error": "InvalidProviderToken"}',
        b'{"reason": 5}',
        b'{"reason": "blocked by policy"}',
        b'["InvalidProviderToken"]',
    ],
)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 407, 410, 418, 451])
def test_a_refusal_without_apples_reason_is_an_outage(status, body):
    outcome = answered(status, body)
    assert (type(outcome), outcome.code) == (Deferred, "foreign_response")
    assert (outcome.outage, outcome.retry_after) == (True, 10.0)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (408, Deferred("timeout", "408 <html>", outage=True)),
        (413, Rejected("payload_too_large", "413 <html>")),
        (429, Deferred("throttled", "429 <html>")),
    ],
)
def test_what_a_status_alone_says_counts_from_anyone(status, outcome):
    assert answered(status, b"<html>") == outcome


@pytest.mark.parametrize("reason", ["", "SomethingNew"])
def test_a_redirect_comes_from_another_server(reason):
    outcome = apple(301, reason)
    assert (type(outcome), outcome.code) == (Deferred, "foreign_response")


def test_a_reason_is_looked_up_with_its_status():
    assert apple(400, "UnrelatedKeyIdInToken") == Rejected(
        "bad_request", "400 UnrelatedKeyIdInToken"
    )


@pytest.mark.parametrize(
    ("status", "reason", "code", "wait"),
    [
        (400, "IdleTimeout", "idle_timeout", None),
        (403, "ExpiredProviderToken", "provider_token_expired", 60.0),
        (429, "TooManyRequests", "throttled", None),
        (429, "TooManyProviderTokenUpdates", "provider_token_updates", 300.0),
        (429, "SomethingNew", "throttled", None),
    ],
)
def test_a_temporary_refusal_is_deferred_and_no_outage(status, reason, code, wait):
    assert apple(status, reason) == Deferred(code, f"{status} {reason}", wait)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (500, "InternalServerError"),
        (503, "ServiceUnavailable"),
        (503, "Shutdown"),
        (502, "SomethingNew"),
        (599, ""),
        (600, ""),
        (0, ""),
    ],
)
def test_a_failing_service_is_an_outage(status, reason):
    detail = f"{status} {reason}" if reason else f'{status} {{"reason": ""}}'
    assert apple(status, reason) == Deferred("service_error", detail, 10.0, outage=True)


def test_a_requested_wait_is_taken_over():
    assert answered(503, b"", retry_after="2") == Deferred("service_error", "503", 2.0, outage=True)
    late = answered(429, b'{"reason":"TooManyProviderTokenUpdates"}', retry_after="1200")
    assert late == Deferred("provider_token_updates", "429 TooManyProviderTokenUpdates", 1_200.0)


@pytest.mark.parametrize(
    ("reason", "code"), [("Unregistered", "unregistered"), ("ExpiredToken", "expired_token")]
)
def test_a_dead_token_is_gone_since_its_timestamp(reason, code):
    gone = apple(410, reason, timestamp=milliseconds(EARLIER))
    assert gone == Gone(code, f"410 {reason}", EARLIER)


@pytest.mark.parametrize(
    "more", [{}, {"timestamp": None}, {"timestamp": "1"}, {"timestamp": 1e300}]
)
def test_a_dead_token_without_a_sensible_timestamp_is_gone_since_now(more):
    assert apple(410, "Unregistered", **more) == Gone("unregistered", "410 Unregistered")


def test_a_future_timestamp_becomes_now():
    gone = apple(410, "Unregistered", timestamp=milliseconds(NOW + timedelta(days=1)))
    assert gone == Gone("unregistered", "410 Unregistered", NOW)


def test_410_is_gone_with_any_reason():
    assert apple(410, "SomethingNew") == Gone("unregistered", "410 SomethingNew")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "bad_request"),
        (405, "bad_request"),
        (413, "payload_too_large"),
        (401, "refused"),
        (418, "refused"),
        (201, "unexpected_response"),
        (100, "unexpected_response"),
    ],
)
def test_other_refusals_reject_the_message_and_keep_the_device(status, code):
    assert apple(status, "SomethingNew") == Rejected(code, f"{status} SomethingNew")


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"<html>Bad\nGateway</html>", "400 <html>Bad Gateway</html>"),
        (b"[" * 4_000, "400 " + "[" * 196),
        (b'{"reason": 5}', '400 {"reason": 5}'),
        (b'{"reason": "Bad\\u0000\\ud800Thing"}', "400 BadThing"),
        (b"\xff\xfe", "400 \ufffd\ufffd"),
    ],
)
def test_an_odd_body_becomes_a_clean_detail(body, detail):
    assert answered(400, body).detail == detail


@given(
    st.integers(0, 999),
    st.one_of(
        st.binary(max_size=200),
        st.dictionaries(st.text(), st.text()).map(lambda d: json.dumps(d).encode()),
    ),
)
def test_every_answer_has_an_outcome_and_only_known_ones_are_gone(status, body):
    outcome = answered(status, body)
    assert isinstance(outcome, Accepted) == (status == 200)
    assert not isinstance(outcome, Gone) or (status == 410 and b'"reason"' in body)


def test_every_code_of_the_table_is_explained():
    rows = [*TABLE.values(), *FALLBACK.values()]
    assert {code for _, code in rows if code} <= CODES.keys()
    assert {
        code for response_class, code in rows if response_class is ResponseClass.SUSPECT
    } <= SUSPECT_CODES
    assert WAITS.keys() <= CODES.keys()

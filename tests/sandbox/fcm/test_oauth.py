"""The token endpoint gives access tokens only to accounts that it knows."""

import time

import pytest

from pushsvc.common import base64url
from tests.sandbox.fcm.sender import FcmSender


def test_a_service_account_has_the_shape_of_googles_key_file(sandbox):
    account = sandbox.service_account("demo-app")
    assert account.keys() == {
        "type", "project_id", "private_key_id", "private_key", "client_email", "client_id",
        "auth_uri", "token_uri", "auth_provider_x509_cert_url", "client_x509_cert_url",
        "universe_domain",
    }  # fmt: skip
    assert (account["type"], account["project_id"]) == ("service_account", "demo-app")
    assert account["token_uri"] == sandbox.token_uri
    assert account["client_email"].endswith("@demo-app.iam.gserviceaccount.com")


def test_a_valid_assertion_gets_an_access_token_for_an_hour(sender):
    said = sender.token()
    assert said.status == 200
    assert said.json.keys() == {"access_token", "expires_in", "token_type"}
    assert (said.json["expires_in"], said.json["token_type"]) == (3_600, "Bearer")


def test_the_address_of_the_endpoint_is_also_a_valid_audience(sandbox, sender):
    assert sender.token(sender.assertion(aud=sandbox.token_uri)).status == 200


BAD_TIMES = "Invalid JWT: Token must be a short-lived token"
SIGNATURE = "Invalid JWT Signature."


@pytest.mark.parametrize(
    ("claims", "description"),
    [
        ({"iss": "nobody@demo-app.iam.gserviceaccount.com"}, "Invalid grant: account not found"),
        ({"iss": None}, "Invalid grant: account not found"),
        ({"aud": "https://example.com/token"}, "Invalid JWT: Failed audience check."),
        ({"aud": ["https://oauth2.googleapis.com/token"]}, "Invalid JWT: Failed audience check."),
        ({"iat": None}, BAD_TIMES),
        ({"exp": None}, BAD_TIMES),
        ({"iat": "now"}, BAD_TIMES),
        ({"exp": float("nan")}, BAD_TIMES),
    ],
)
def test_a_wrong_claim_is_an_invalid_grant(sender, claims, description):
    said = sender.token(sender.assertion(**claims))
    assert (said.status, said.error) == (400, "invalid_grant")
    assert said.json["error_description"].startswith(description)


@pytest.mark.parametrize(
    ("issued", "expires", "status"),
    [(0, 3_600, 200), (-60, 3_540, 200), (50, 3_650, 200), (0, 3_601, 400), (-3_700, -100, 400),
     (0, -1, 400), (120, 3_700, 400)],
)  # fmt: skip
def test_an_assertion_must_be_for_an_hour_from_now(sender, issued, expires, status):
    now = int(time.time())
    said = sender.token(sender.assertion(iat=now + issued, exp=now + expires))
    assert said.status == status


def test_an_assertion_signed_by_another_account_is_rejected(sandbox, sender):
    foreign = sandbox.service_account("other-app")
    for changed in ({}, {"private_key_id": sender.key_file["private_key_id"]}):
        mixed = foreign | changed
        said = sender.token(sender.assertion(mixed, iss=sender.key_file["client_email"]))
        assert (said.error, said.json["error_description"]) == ("invalid_grant", SIGNATURE)


def test_an_assertion_that_names_another_key_or_algorithm_is_rejected(sender):
    other_key = sender.key_file | {"private_key_id": "0" * 40}
    for said in (
        sender.token(sender.assertion(other_key)),
        sender.token(sender.assertion(header={"alg": "HS256"})),
    ):
        assert (said.error, said.json["error_description"]) == ("invalid_grant", SIGNATURE)


def test_an_unsigned_assertion_is_rejected(sender):
    _, claims, _ = sender.assertion().split(".")
    header = base64url.encode(b'{"alg": "none"}')
    assert sender.token(f"{header}.{claims}.").json["error_description"] == SIGNATURE


@pytest.mark.parametrize("assertion", ["x", "a.b", "W10.W10.W10", "e30.e30.=", "é.e30.e30"])
def test_a_text_that_is_not_a_jwt_is_rejected(sender, assertion):
    assert sender.token(assertion).error == "invalid_grant"


def test_an_assertion_must_request_a_scope(sender):
    assert sender.token(sender.assertion(scope="")).error == "invalid_scope"


@pytest.mark.parametrize("grant_type", ["", "refresh_token"])
def test_another_grant_type_is_not_supported(sender, grant_type):
    said = sender.token(grant_type=grant_type)
    assert (said.status, said.error) == (400, "unsupported_grant_type")


@pytest.mark.parametrize(
    ("mode", "options", "status", "error"),
    [
        ("invalid_grant", {}, 400, "invalid_grant"),
        ("unauthorized_client", {}, 401, "unauthorized_client"),
        ("throttled", {"retry_after": 9}, 429, "rate_limit_exceeded"),
        ("unavailable", {"retry_after": 9}, 503, "temporarily_unavailable"),
        ("error", {"status": 418, "body": {"error": "teapot"}}, 418, "teapot"),
    ],
)
def test_a_projects_accounts_can_be_rejected(sandbox, sender, mode, options, status, error):
    sandbox.project("demo-app").tokens.behave(mode, times=1, **options)
    said = sender.token()
    assert (said.status, said.error) == (status, error)
    assert said.headers["Retry-After"] == ("9" if "retry_after" in options else None)
    assert sender.token().status == 200


def test_requests_for_tokens_are_counted_by_project(sandbox):
    FcmSender(sandbox, "counted-app").token()
    totals = sandbox.project("counted-app").tokens.totals()
    assert (totals.requests, totals.accepted) == (2, 2)


def test_a_revoked_account_is_unknown_and_its_tokens_are_rejected(sandbox):
    sender = FcmSender(sandbox, "revoked-app")
    device = sandbox.register("revoked-app")
    assert sender.send(device).status == 200
    sandbox.revoke(sender.key_file)
    assert sender.token().error == "invalid_grant"
    assert sender.send(device).status == 401
    with pytest.raises(KeyError):
        sandbox.revoke(sender.key_file)


def test_tokens_can_be_made_to_expire(sandbox):
    sender = FcmSender(sandbox, "expired-app")
    device = sandbox.register("expired-app")
    sandbox.expire_tokens("other-app")
    assert sender.send(device).status == 200
    sandbox.expire_tokens("expired-app")
    said = sender.send(device)
    assert (said.status, said.reason) == (401, "ACCESS_TOKEN_EXPIRED")
    assert sender.send(device, bearer=sender.token().json["access_token"]).status == 200


def test_a_token_ends_with_its_lifetime(sandbox):
    sandbox.project("brief-app").tokens.lifetime = 0
    sender = FcmSender(sandbox, "brief-app")
    assert sender.send(sandbox.register("brief-app")).status == 401

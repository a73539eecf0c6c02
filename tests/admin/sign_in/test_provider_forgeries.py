"""A provider, or somebody in its place, whose answers must not sign anybody in."""

import time

import pytest
from allauth.socialaccount.internal import statekit
from allauth.socialaccount.models import SocialAccount
from django.contrib.sessions.models import Session
from django.test import Client

from tests.admin.sign_in import providers
from tests.admin.sign_in.providers import START, begin, come_back
from tests.admin.sign_in.test_provider import who

OTHERS = providers.new_key()


def signed_in_as(forger, **changes):
    client = Client()
    come_back(client, begin(forger, client), **changes)
    return who(client)


def test_an_honest_answer_signs_in(forger):
    """Otherwise all others might be refused for another reason."""
    assert signed_in_as(forger) == "alice-viewer"
    metadata = "/.well-known/openid-configuration"
    assert forger.asked == [metadata, metadata, "/token", "/jwks"]


def test_the_request_has_pkce_state_and_nonce(forger):
    parameters = begin(forger, Client())

    assert parameters["code_challenge_method"] == "S256"
    assert len(parameters["code_challenge"]) == 43
    assert len(parameters["state"]) >= 20
    assert len(parameters["nonce"]) >= 20
    assert parameters["redirect_uri"] == f"{providers.PUBLIC}{providers.CALLBACK}"
    assert set(parameters["scope"].split()) == {"openid", "email"}


LONG_AGO, LONG_FROM_NOW = 1_000_000_000, 4_000_000_000  # 2001 and 2096


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another-client"},
        {"aud": ["another-client"], "azp": providers.CLIENT},
        {"aud": None},
        {"azp": "another-client"},
        {"iss": "https://accounts.example.com"},
        {"iss": None},
        {"exp": LONG_AGO},
        {"exp": None},
        {"iat": LONG_FROM_NOW},
        {"nonce": "another"},
        {"nonce": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "s" * 192},
        {"sub": "a\x00b"},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": 1},
        {"email_verified": None},
        {"email": ["viewer@example.com"]},
        {"email": "viewer@example.com\x00"},
    ],
    ids=str,
)
def test_a_token_with_wrong_claims_signs_nobody_in(forger, claims):
    forger.claims = claims

    assert signed_in_as(forger) is None
    assert not SocialAccount.objects.exists()


SET_UP = "/admin/auth/user/two-step/app/"


@pytest.mark.parametrize(
    ("ago", "status"), [(10, 200), (-(10**400), 200), (400, 302), (10**400, 302), (None, 302)]
)
def test_a_sign_in_counts_as_proof_if_the_provider_says_that_it_is_recent(forger, ago, status):
    forger.claims = {"auth_time": None if ago is None else int(time.time()) - ago}
    client = Client()
    come_back(client, begin(forger, client))

    assert client.get(SET_UP).status_code == status


@pytest.mark.parametrize(("ago", "is_accepted"), [(10, True), (None, True), (400, False)])
def test_a_proof_at_the_provider_must_be_recent(forger, ago, is_accepted):
    """Some providers do not say when it was."""
    client = Client()
    come_back(client, begin(forger, client))
    forger.claims = {"auth_time": None if ago is None else int(time.time()) - ago}

    asked = begin(forger, client, client.get(SET_UP)["Location"])
    assert (asked["prompt"], asked["max_age"]) == ("login", "300")
    answer = come_back(client, asked)

    assert answer.status_code == (302 if is_accepted else 403)
    assert client.get(SET_UP).status_code == (200 if is_accepted else 302)


def test_a_token_without_a_signature_signs_nobody_in(forger):
    header, payload, _ = forger.id_token().split(".")
    client = Client()
    parameters = begin(forger, client)
    _, payload, _ = forger.id_token().split(".")
    none = "eyJhbGciOiJub25lIn0"  # {"alg":"none"}
    bearer = {"access_token": "access", "token_type": "Bearer"}
    for forged in (f"{none}.{payload}.", f"{header}.{payload}.", f"{header}.{payload}"):
        forger.answers["/token"] = bearer | {"id_token": forged}
        come_back(client, parameters)
        assert who(client) is None
        parameters = begin(forger, client)
        _, payload, _ = forger.id_token().split(".")


def test_a_token_signed_by_anothers_key_signs_nobody_in(forger):
    forger.key = OTHERS

    assert signed_in_as(forger) is None


def test_a_token_signed_by_the_clients_secret_signs_nobody_in(forger):
    """Nor by the provider's public key, as a secret."""
    forger.header, forger.key = {"alg": "HS256", "kid": "one"}, providers.SECRET

    assert signed_in_as(forger) is None


def test_a_token_signed_by_a_key_that_the_provider_does_not_list_signs_nobody_in(forger):
    forger.header = {"alg": "RS256", "kid": "two"}
    client = Client()

    assert come_back(client, begin(forger, client)).status_code == 403
    assert who(client) is None


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"access_token": "a", "token_type": "Bearer"},
        [],
        "text",
        b"no json",
        b"\xff",
        b"[" * 9_999,
    ],
)
def test_an_answer_without_a_token_signs_nobody_in(forger, answer):
    forger.answers["/token"] = answer

    assert signed_in_as(forger) is None


def test_new_keys_of_the_provider_are_read(forger):
    assert signed_in_as(forger) == "alice-viewer"
    forger.key = providers.new_key()
    forger.keys, forger.header = {"two": forger.key}, {"alg": "RS256", "kid": "two"}

    assert signed_in_as(forger) == "alice-viewer"
    assert forger.asked.count("/jwks") == 2


@pytest.mark.parametrize("state", ["another", "", None])
def test_an_answer_with_another_state_signs_nobody_in(forger, state):
    assert signed_in_as(forger, state=state) is None
    assert "/token" not in forger.asked


def test_who_started_nothing_makes_the_service_ask_nothing(forger):
    assert come_back(Client(), {"state": "made-up"}).status_code == 403
    assert forger.asked == []


def test_an_answer_that_comes_too_late_signs_nobody_in(forger, monkeypatch):
    monkeypatch.setattr(statekit, "STATE_TTL", -1)

    assert signed_in_as(forger) is None
    assert "/token" not in forger.asked


def test_a_token_of_another_start_signs_nobody_in(forger):
    """Of the same browser: each start has its own nonce."""
    client = Client()
    first = begin(forger, client)
    begin(forger, client)

    come_back(client, first)
    assert who(client) is None


def test_an_answer_of_another_issuer_signs_nobody_in(forger):
    assert signed_in_as(forger, iss="https://accounts.example.com") is None
    assert signed_in_as(forger, iss=forger.issuer) == "alice-viewer"


def test_an_answer_must_name_its_issuer_if_the_provider_says_so(forger):
    forger.metadata["authorization_response_iss_parameter_supported"] = True

    assert signed_in_as(forger) is None
    assert signed_in_as(forger, iss=forger.issuer) == "alice-viewer"


def test_userinfo_about_somebody_else_signs_nobody_in(forger):
    forger.claims = {"email": None, "email_verified": None}
    forger.userinfo = {"email": "viewer@example.com", "email_verified": True, "sub": "another"}
    assert signed_in_as(forger) is None

    forger.userinfo["sub"] = "subject"
    assert signed_in_as(forger) == "alice-viewer"


def test_a_token_verifies_no_address_of_userinfo(forger):
    forger.claims = {"email": None, "email_verified": True}
    forger.userinfo = {"email": "viewer@example.com", "email_verified": False, "sub": "subject"}

    assert signed_in_as(forger) is None


@pytest.mark.parametrize("address", ["\u017fam@example.com", "sam@example.com", "SAM@EXAMPLE.COM"])
def test_a_letter_that_only_looks_like_another_case_is_another_address(forger, alice, address):
    """The upper case of a long s is S, but a mail to one does not reach the other."""
    viewer = alice.members["viewer"]
    viewer.email = "sam@example.com"
    viewer.save()
    forger.claims = {"email": address}

    assert signed_in_as(forger) == ("alice-viewer" if address.isascii() else None)


def start(forger):
    return Client().get(START).status_code


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://accounts.example.com"},
        {"issuer": None},
        {"jwks_uri": None},
        {"token_endpoint": "file:///etc/passwd"},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
    ids=str,
)
def test_a_document_of_another_issuer_or_with_odd_addresses_is_not_used(forger, change):
    forger.metadata |= change

    assert start(forger) == 503
    forger.reset()
    assert start(forger) == 302  # a failure is not kept


@pytest.mark.parametrize(
    "answer", [b"no json", [], "text", b"x" * (600 * 1024), b"[" * 9_999], ids=len
)
def test_an_odd_or_endless_document_is_not_used(forger, answer):
    forger.answers["/.well-known/openid-configuration"] = answer

    assert start(forger) == 503


def redirect(handler):
    handler.send_response(302)
    handler.send_header("Location", "/jwks")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def drip(handler):
    """A byte at a time, and no end."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)
    except OSError:
        pass


def fall_silent(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "5")
    handler.end_headers()
    handler.rfile.read(1)


@pytest.mark.parametrize("behaviour", [redirect, drip, fall_silent])
def test_redirects_and_answers_without_an_end_are_given_up(forger, settings, behaviour):
    settings.OIDC_SECONDS = 0.5
    forger.answers["/.well-known/openid-configuration"] = behaviour

    assert start(forger) == 503
    assert "/jwks" not in forger.asked


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token"])
def test_a_provider_that_is_away_is_told(forger, settings, path):
    client = Client()
    parameters = begin(forger, client)
    settings.OIDC_SECONDS = 0.5
    forger.answers[path] = fall_silent
    answer = come_back(client, parameters)

    assert answer.status_code == 503
    assert "does not respond as it should" in answer.content.decode()


def test_an_answer_is_used_up_also_if_the_provider_is_away(forger):
    client = Client()
    parameters = begin(forger, client)
    forger.answers["/token"] = redirect
    assert come_back(client, parameters).status_code == 503
    del forger.answers["/token"]

    assert come_back(client, parameters).status_code == 403
    assert who(client) is None
    assert forger.asked.count("/token") == 1


def test_an_answer_is_used_up_also_if_it_is_a_denial(forger):
    client = Client()
    parameters = begin(forger, client)
    come_back(client, parameters, error="access_denied")

    assert come_back(client, parameters).status_code == 403
    assert who(client) is None
    assert "/token" not in forger.asked


def test_starts_of_an_address_are_limited(forger, settings):
    """Each stores a session, for ten minutes."""
    settings.SIGN_INS_PER_MINUTE = 2

    assert [start(forger) for _ in range(3)] == [302, 302, 429]
    assert Session.objects.count() == 2

"""Which tokens prove an external id, and which attacks on them fail."""

import base64
import hashlib
import hmac
import json
import time
from uuid import UUID, uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from subscriptions_app.people.identity_tokens import (
    MAX_TOKEN,
    Broken,
    VerifyingKey,
    token_check,
)
from tests.api.people import key_pair

CHANNEL, ELSEWHERE = UUID(int=1), UUID(int=2)
PRIVATE, PUBLIC = key_pair()
SECRET = "psi_" + "s" * 43
DAY = 24 * 3600
HS = VerifyingKey(uuid4(), "HS256", SECRET)
ES = VerifyingKey(uuid4(), "ES256", PUBLIC)


def made(signs=PRIVATE, algorithm="ES256", headers=None, **claims):
    good = {"sub": "user-42", "aud": str(CHANNEL), "exp": int(time.time()) + 600} | claims
    given = {name: value for name, value in good.items() if value is not None}
    return jwt.encode(given, signs, algorithm, headers=headers)


def judged(token, *keys, external_id="user-42"):
    return token_check(token, keys=keys or (HS, ES), channel_id=CHANNEL, external_id=external_id)


def part(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_hand(header, claims=None, sign=lambda _: b""):
    """A token that no library would make."""
    good = {"sub": "user-42", "aud": str(CHANNEL), "exp": int(time.time()) + 600}
    text = f"{part(header)}.{part(good if claims is None else claims)}"
    return f"{text}.{part(sign(text.encode()))}"


def test_a_token_of_either_algorithm_proves_its_subject():
    assert judged(made()) == (None, "user-42")
    assert judged(made(SECRET, "HS256"), external_id=None) == (None, "user-42")
    assert judged(made(headers={"kid": str(ES.id)})).broken is None
    assert judged(made(aud=["other", str(CHANNEL)])).broken is None
    assert (
        judged(made(iat=int(time.time()) + DAY, jti="7", nbf=int(time.time()) + 30)).broken is None
    )


def test_clocks_may_differ_by_a_minute():
    assert judged(made(exp=int(time.time()) - 30)).broken is None
    assert judged(made(exp=int(time.time()) + 31 * DAY + 30)).broken is None


@pytest.mark.parametrize(
    ("claims", "broken"),
    [
        ({"exp": None}, Broken.CLAIM_MISSING),
        ({"exp": "soon"}, Broken.CLAIM_MISSING),
        ({"exp": float("inf")}, Broken.CLAIM_MISSING),
        ({"exp": 1e300}, Broken.TOO_FAR),
        ({"exp": int(time.time()) - 120}, Broken.EXPIRED),
        ({"exp": int(time.time()) + 32 * DAY}, Broken.TOO_FAR),
        ({"nbf": int(time.time()) + DAY}, Broken.NOT_YET),
        ({"aud": None}, Broken.CLAIM_MISSING),
        ({"aud": str(ELSEWHERE)}, Broken.AUDIENCE),
        ({"aud": {"a": 1}}, Broken.AUDIENCE),
        ({"sub": None}, Broken.CLAIM_MISSING),
        ({"sub": "user-43"}, Broken.SUBJECT),
        ({"sub": "USER-42"}, Broken.SUBJECT),
    ],
)
def test_a_signed_token_must_keep_every_rule(claims, broken):
    assert judged(made(**claims)).broken == broken


def test_the_header_does_not_choose_the_algorithm():
    """`none`, or HS256 with the text of the public key, which is no secret, as its secret."""

    def hmac_of(text):
        return hmac.new(PUBLIC.encode(), text, hashlib.sha256).digest()

    for algorithm in ("none", "None", "", None):
        assert judged(by_hand({"typ": "JWT", "alg": algorithm})).broken == Broken.SIGNATURE
    confused = by_hand({"typ": "JWT", "alg": "HS256"}, sign=hmac_of)
    for keys in [(ES,), (HS, ES)]:
        assert judged(confused, *keys).broken == Broken.SIGNATURE
    assert judged(by_hand({"alg": "ES256", "kid": str(ES.id)}, sign=hmac_of)).broken == (
        Broken.SIGNATURE
    )
    assert judged(made(key_pair(ec.SECP384R1)[0], "ES384")).broken == Broken.SIGNATURE


def test_only_a_key_in_use_of_the_channel_verifies():
    stranger, _ = key_pair()
    assert judged(made(stranger)).broken == Broken.SIGNATURE
    assert judged(made("psi_" + "x" * 43, "HS256")).broken == Broken.SIGNATURE
    assert judged(made(headers={"kid": str(uuid4())})).broken == Broken.UNKNOWN_KEY
    assert judged(made(headers={"kid": str(HS.id)})).broken == Broken.SIGNATURE
    assert judged(made(headers={"kid": "../../keys"})).broken == Broken.UNKNOWN_KEY
    assert token_check(made(), keys=(), channel_id=CHANNEL).broken == Broken.NO_KEY


def test_a_token_has_at_most_2048_characters():
    assert judged("x" * (MAX_TOKEN + 1)).broken == Broken.TOO_LONG
    assert judged(made(sub="user-42", more="x" * 2_048)).broken == Broken.TOO_LONG
    assert judged(None).broken == judged("").broken == Broken.MISSING


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "x.y.z",
        "....",
        "ü.ü.ü",
        "\ud800.y.z",
        by_hand(b"[" * 1_400),
        by_hand([]),
        by_hand({"alg": "ES256", "kid": 7}),
        by_hand({"alg": "ES256", "crit": ["x"]}),
        by_hand({"alg": "ES256", "b64": False}),
        part({"alg": "ES256"}) + ".!!!.x",
    ],
)
def test_what_is_no_token_is_refused_as_such(token):
    assert judged(token).broken == Broken.MALFORMED


@pytest.mark.parametrize("payload", [b"[" * 1_200, b"[]", b"7", b"\xff", b"{"])
def test_a_signed_token_may_hold_anything(payload):
    def signature(text):
        return hmac.new(SECRET.encode(), text, hashlib.sha256).digest()

    token = by_hand({"alg": "HS256"}, payload, signature)
    assert judged(token, HS).broken == Broken.CLAIM_MISSING

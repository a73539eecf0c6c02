import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.delivery.apns import provider_token
from notifications_app.delivery.apns.provider_token import (
    GRID,
    LEAST_AGE,
    ApnsKey,
    ApnsKeyUnreadableError,
    authorization,
)

NOW = 1_795_000_000.0
SLACK = 600


def pem(private, encryption=None):
    encrypted = encryption or NoEncryption()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encrypted).decode()


PRIVATE = ec.derive_private_key(0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF0, ec.SECP256R1())
PUBLIC = PRIVATE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
KEY = ApnsKey(pem(PRIVATE), "KEY1234567", "TEAM123456")


def decoded(header):
    token = header.removeprefix("bearer ")
    claims = jwt.decode(token, PUBLIC, algorithms=["ES256"], options={"verify_iat": False})
    return jwt.get_unverified_header(token), claims


def test_the_token_names_key_and_team_and_is_signed():
    header, claims = decoded(authorization(KEY, NOW))
    assert (header["alg"], header["kid"]) == ("ES256", "KEY1234567")
    assert (claims["iss"], set(claims)) == ("TEAM123456", {"iss", "iat"})


@given(st.floats(min_value=1.7e9, max_value=4e9))
def test_the_token_is_neither_too_old_nor_in_the_future_even_with_a_wrong_clock(now):
    age = now - decoded(authorization(KEY, now))[1]["iat"]
    assert SLACK <= age <= 3_600 - SLACK


def test_the_token_changes_every_forty_minutes_and_no_more_often():
    begin = NOW // GRID * GRID + LEAST_AGE
    tokens = [authorization(KEY, begin + minute * 60) for minute in range(120)]
    changes = [minute for minute in range(1, 120) if tokens[minute] != tokens[minute - 1]]
    assert changes == [40, 80]


def test_another_process_makes_the_same_token():
    first = authorization(KEY, NOW)
    provider_token._signed.cache_clear()
    assert authorization(ApnsKey(KEY.private_key, KEY.key_id, KEY.team_id), NOW + 1) == first


def test_each_key_team_and_key_id_has_its_own_token():
    other = pem(ec.generate_private_key(ec.SECP256R1()))
    keys = [KEY, ApnsKey(other, "KEY1234567", "TEAM123456")]
    keys += [ApnsKey(KEY.private_key, "KEY7654321", "TEAM123456")]
    keys += [ApnsKey(KEY.private_key, "KEY1234567", "TEAM654321")]
    assert len({authorization(key, NOW) for key in keys}) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "ü",
        json.dumps({"key": "x"}),
        PUBLIC.decode(),
        KEY.private_key[:-40],
        pem(ec.generate_private_key(ec.SECP384R1())),
        pem(ed25519.Ed25519PrivateKey.generate()),
        pem(PRIVATE, BestAvailableEncryption(b"secret")),
    ],
)
def test_an_invalid_key_is_unreadable(text):
    with pytest.raises(ApnsKeyUnreadableError):
        authorization(ApnsKey(text, "KEY1234567", "TEAM123456"), NOW)


def test_the_repr_does_not_show_the_private_key():
    assert "PRIVATE KEY" not in repr(KEY)

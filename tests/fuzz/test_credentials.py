"""Any service account and any .p8 key is either accepted and works, or is refused with its
errors."""

import json
from base64 import b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channels_app.provider_credentials import parse_apns_key, parse_service_account, secret_json
from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.apns.provider_token import authorization
from notifications_app.delivery.fcm import transport as fcm
from notifications_app.delivery.fcm.access_token import assertion
from pushsvc.common.errors import Invalid
from tests.api.credentials import APPLE, GOOGLE, P8, RSA_KEY, pem

CODES = {
    "given_twice",
    "malformed",
    "malformed_json",
    "not_a_private_key",
    "key_too_short",
    "not_a_string",
    "not_an_object",
    "required",
    "too_long",
    "unknown_field",
    "wrong_file",
}
NOW = 1_800_000_000


def old_style(key):
    return key.private_bytes(
        Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
    ).decode()


def public(key):
    spki = PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(Encoding.PEM, spki).decode()


def block(raw, label="PRIVATE KEY"):
    return f"-----BEGIN {label}-----\n{b64encode(raw).decode()}\n-----END {label}-----\n"


_RSA = rsa.generate_private_key(65537, 2048)
_EC = ec.generate_private_key(ec.SECP256R1())
GOOGLES = [RSA_KEY, old_style(_RSA), pem(rsa.generate_private_key(65537, 3072))]
APPLES = [P8, old_style(_EC)]
KEYS = [
    *GOOGLES,
    *APPLES,
    public(_RSA),
    public(_EC),
    pem(_RSA, BestAvailableEncryption(b"secret")),
    pem(_EC, BestAvailableEncryption(b"secret")),
    pem(rsa.generate_private_key(65537, 1024)),  # noqa: S505 (one that is refused)
    pem(ec.generate_private_key(ec.SECP384R1())),
    pem(ec.generate_private_key(ec.SECP256K1())),
    pem(ed25519.Ed25519PrivateKey.generate()),
    pem(dsa.generate_private_key(1024)),  # noqa: S505 (the same)
    "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
    "",
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def damaged(draw, texts):
    """One of the texts, damaged as editors, copying and attackers would."""
    text = draw(st.sampled_from(texts))
    cut = draw(st.integers(0, len(text)))
    return draw(
        st.sampled_from(
            [
                text,
                text.strip(),
                text.replace("\n", "\r\n"),
                text.replace("\n", "\\n"),
                text.replace("\n", " "),
                text.replace("\n", ""),
                f"\n\n  {text}  \n",
                f"\ufeff{text}",
                f"Bag Attributes\n    friendlyName: key\n{text}",
                text + text,
                text[:cut],
                text[cut:],
                text[:cut] + "\x00" + text[cut:],
                text[:cut] + "\N{GRINNING FACE}" + text[cut:],
                text[:cut] + "A" + text[cut + 1 :],
                text[:cut] + "\n" * 5_000 + text[cut:],
                text.lower(),
            ]
        )
    )


pems = damaged(KEYS) | st.binary(max_size=300).map(block) | st.text()


def changed(good, keys):
    """The valid object with some fields replaced, missing or added."""
    values = {
        name: st.one_of(st.just(value), st.just(value), st.text(), _JSON)
        for name, value in good.items()
    }
    one = st.fixed_dictionaries({}, optional=values | keys)
    return st.tuples(one, st.dictionaries(st.text(), _JSON, max_size=1)).map(
        lambda parts: parts[0] | parts[1]
    )


def texts_of(good, **keys):
    objects = changed(good, keys).map(lambda value: json.dumps({**good, **value}))
    partly = changed(good, keys).map(json.dumps)
    return objects | partly | damaged([json.dumps(good)]) | _JSON.map(json.dumps) | st.text()


def read(parse, text, path):
    """The key or account that was read, or None if it was refused as documented."""
    try:
        return parse(text)
    except Invalid as error:
        errors = error.errors
    assert errors
    for field_error in errors:
        assert field_error.attr.startswith(path)
        assert field_error.code in CODES
        assert "PRIVATE" not in field_error.detail
    return None


@given(texts_of(GOOGLE, private_key=pems))
@example(json.dumps(GOOGLE))
@example(json.dumps(GOOGLE | {"project_id": "example.com:my-project"}))
@example("[" * 60_000)
@settings(max_examples=150, deadline=None)
def test_a_service_account_works_or_is_rejected(text):
    account = read(parse_service_account, text, "providers_config.fcm_service_account")
    if account is not None:
        credentials = fcm.ServiceAccount.parse(secret_json(account), 3)
        assert credentials.project_id == account.project_id
        assert set(account.project_id) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.:")
        assert assertion(credentials, NOW).count(".") == 2
        assert "PRIVATE" not in repr(credentials)


def parse_p8(text):
    entries = {name: value for name, value in APPLE.items() if name != "key"}
    is_json = text.lstrip().startswith("{")
    return parse_apns_key(text, entries={} if is_json else entries, stored={})


@given(texts_of(APPLE, key=pems) | pems)
@example(json.dumps(APPLE))
@example(P8)
@settings(max_examples=200, deadline=None)
def test_a_p8_key_works_or_is_rejected(text):
    key = read(parse_p8, text, "providers_config")
    if key is not None:
        credentials = apns.AppKey.parse(secret_json(key), 3)
        assert authorization(credentials.key, NOW).startswith("bearer ")
        assert "PRIVATE" not in repr(credentials)


@pytest.mark.parametrize("spell", [str, str.strip, lambda text: text.replace("\n", "\r\n")])
@pytest.mark.parametrize("number", range(len(KEYS)))
def test_only_keys_of_the_needed_kind_are_accepted_in_any_editors_format(number, spell):
    key = KEYS[number]
    account = json.dumps(GOOGLE | {"private_key": spell(key)})
    path = "providers_config"

    assert (read(parse_service_account, account, path) is not None) == (key in GOOGLES)
    assert (read(parse_p8, spell(key), path) is not None) == (key in APPLES)


def test_the_size_of_a_key_is_checked_before_it_is_loaded():
    """Loading it would take half a minute of a processor."""
    huge = block(b"\x30" * 48_000)

    with pytest.raises(Invalid) as refusal:
        parse_service_account(json.dumps(GOOGLE | {"private_key": huge}))

    assert [field_error.code for field_error in refusal.value.errors] == ["too_long"]


@given(st.text() | _JSON.map(json.dumps) | damaged([json.dumps(GOOGLE), json.dumps(APPLE)]))
@example("[" * 60_000)
@example(json.dumps(GOOGLE | {"project_id": {}}))
@settings(max_examples=200, deadline=None)
def test_stored_text_is_read_completely_or_called_unreadable(text):
    """By both transports' readers, whatever the database holds."""
    for kind in (fcm.ServiceAccount, apns.AppKey):
        try:
            credentials = kind.parse(text, 1)
        except ValueError:
            continue
        assert credentials.version == 1
        assert hash(credentials) is not None  # caches use it as their key

"""Key pairs for web push that another service used."""

import json

import pytest
from auditlog.models import LogEntry
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from channels_app.models import VapidKey
from channels_app.selectors import vapid_private_keys
from channels_app.services import MOST_VAPID_KEYS
from pushsvc.common import base64url
from subscriptions_app.models import Subscription
from tests.api.devices import HERE
from tests.api.support import code, errors, owner_of
from tests.factories import browser, make_channel

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel())


@pytest.fixture
def foreign():
    return ec.generate_private_key(ec.SECP256R1())


def path(owner):
    return f"/channel/{owner.channel.id}/web-push-keys"


def raw(key):
    return base64url.encode(key.private_numbers().private_value.to_bytes(32, "big"))


def public(key):
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64url.encode(point)


def pem(key, form=PrivateFormat.PKCS8):
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()


def jwk(key, **changed):
    return json.dumps({"kty": "EC", "crv": "P-256", "d": raw(key), "ext": True} | changed)


def public_pem(key):
    form = PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(Encoding.PEM, form).decode()


def stored(owner, text):
    return owner.call("POST", path(owner), {"private_key": text})


@pytest.mark.parametrize(
    "form",
    [
        raw,
        lambda key: f" {raw(key)}=\n",
        pem,
        lambda key: pem(key, PrivateFormat.TraditionalOpenSSL),
        jwk,
    ],
)
def test_a_foreign_pair_is_stored_encrypted_in_every_form_that_libraries_keep(alice, foreign, form):
    answer = stored(alice, form(foreign))

    assert answer.status_code == 201, answer.content
    assert answer.json() == {"public_key": public(foreign), "current": False}
    row = VapidKey.objects.get(public_key=public(foreign))
    assert raw(foreign) not in row.private_key_encrypted
    assert vapid_private_keys([row.pk])[row.pk].private_key == raw(foreign)
    listed = alice.call("GET", path(alice)).json()
    assert [each["current"] for each in listed] == [True, False]
    assert listed[1] == answer.json()


def test_a_repeated_call_changes_nothing(alice, foreign):
    first = stored(alice, raw(foreign))
    again = stored(alice, pem(foreign))

    assert (again.status_code, again.json()) == (201, first.json())
    assert VapidKey.objects.filter(channel=alice.channel).count() == 2
    entries = LogEntry.objects.filter(content_type__model="vapidkey")
    assert entries.filter(changes__public_key__1=public(foreign)).count() == 1
    assert raw(foreign) not in json.dumps(list(LogEntry.objects.values()), default=str)


@pytest.mark.parametrize(
    "form",
    [
        lambda key: raw(key)[:-2],
        public,
        public_pem,
        lambda key: pem(ec.generate_private_key(ec.SECP384R1())),
        lambda key: pem(rsa.generate_private_key(65537, 2048)),
        lambda key: jwk(key, crv="P-384"),
        lambda key: json.dumps({"kty": "EC", "crv": "P-256"}),
        lambda key: base64url.encode(bytes(32)),
        lambda key: base64url.encode(b"\xff" * 32),
        lambda key: "not base64!",
    ],
)
def test_what_is_no_private_key_on_p256_is_refused_without_its_text(alice, foreign, form):
    text = form(foreign)
    answer = stored(alice, text)

    assert errors(answer) == [("private_key", "not_a_private_key")]
    assert text.strip() not in answer.content.decode()
    assert VapidKey.objects.filter(channel=alice.channel).count() == 1


def test_a_browser_with_a_stored_foreign_key_is_accepted_with_that_key(alice, foreign):
    body = browser(HERE, vapid_public_key=public(foreign))
    assert code(alice.subscribe(body), 400) == "vapid_key_unknown"

    stored(alice, raw(foreign))

    assert alice.subscribe(body).status_code == 201
    assert Subscription.objects.get().vapid_key.public_key == public(foreign)
    known = alice.client.get("/web-push-key", headers={"X-Channel-ID": str(alice.channel.id)})
    assert known.json()["retired_keys"] == [public(foreign)]
    assert known.json()["public_key"] != public(foreign)


def test_a_key_of_one_channel_is_unknown_to_another(alice, foreign):
    bob = owner_of(make_channel())
    stored(alice, raw(foreign))

    assert code(bob.call("POST", path(alice), {"private_key": raw(foreign)}), 404)
    assert code(bob.call("GET", path(alice)), 404)
    body = browser(HERE, vapid_public_key=public(foreign))
    assert code(bob.subscribe(body), 400) == "vapid_key_unknown"
    assert public(foreign) not in str(bob.call("GET", path(bob)).json())


def test_keys_need_the_scope_manage(alice, foreign):
    weak = owner_of(alice.channel, scopes=("send", "read", "subscribers"))
    assert code(stored(weak, raw(foreign)), 403)
    assert code(weak.call("GET", path(weak)), 403)


def test_a_full_channel_takes_no_further_key(alice, foreign):
    VapidKey.objects.bulk_create(
        VapidKey(channel=alice.channel, public_key=f"{n}", retired_at="2026-01-01T00:00:00Z")
        for n in range(MOST_VAPID_KEYS - 1)
    )
    assert code(stored(alice, raw(foreign)), 409) == "too_many_vapid_keys"

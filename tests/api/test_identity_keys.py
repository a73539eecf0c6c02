"""Identity keys over HTTP."""

import json

import pytest
from auditlog.models import LogEntry
from cryptography.hazmat.primitives.asymmetric import ec
from django.core.management import call_command

from channels_app import identity_keys
from channels_app.models import IdentityKey
from pushsvc.common.store import crypto
from tests.api.devices import HERE
from tests.api.people import key_pair, new_key, token
from tests.api.support import code, errors, owner_of
from tests.factories import browser, make_channel

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel())


def path(owner, *parts):
    return "/".join([f"/channel/{owner.channel.id}/identity-keys", *parts])


def signed_in(owner, key):
    proof = {"external_id": "user-42", "identity_token": token(owner, key)}
    return owner.subscribe(browser(HERE, **proof))


def test_a_secret_is_shown_once_and_stored_encrypted(alice):
    answer = alice.call("POST", path(alice), {"algorithm": "HS256"})

    made = answer.json()
    assert list(made) == ["identity_key_id", "algorithm", "public_key", "created_at", "secret"]
    assert made["secret"].startswith("psi_")
    assert len(made["secret"]) == 47
    assert answer.headers["Cache-Control"] == "no-store"
    assert alice.call("GET", path(alice)).json() == [
        {name: value for name, value in made.items() if name != "secret"}
    ]
    row = IdentityKey.objects.get()
    assert made["secret"] not in row.secret_encrypted
    assert crypto.decrypt(row.secret_encrypted) == made["secret"]
    written = json.dumps(list(LogEntry.objects.values()), default=str)
    assert "identitykey" in str(LogEntry.objects.values_list("content_type__model", flat=True))
    assert made["secret"] not in written
    assert row.secret_encrypted not in written


def test_of_a_key_pair_only_the_public_key_is_stored(alice):
    _, public = key_pair()
    made = alice.call("POST", path(alice), {"algorithm": "ES256", "public_key": public}).json()

    assert (made["public_key"], made["secret"]) == (public, None)
    assert IdentityKey.objects.get().secret_encrypted == ""


@pytest.mark.parametrize("line_break", ["\\n", "\r\n", ""], ids=["literal", "Windows", "none"])
def test_a_public_key_is_accepted_as_it_is_pasted(alice, line_break):
    _, public = key_pair()
    pasted = f'\ufeff"{public.replace(chr(10), line_break)}"'

    made = alice.call("POST", path(alice), {"algorithm": "ES256", "public_key": pasted})

    assert (made.status_code, made.json()["public_key"]) == (201, public)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, ("algorithm", "required")),
        ({"algorithm": "none"}, ("algorithm", "not_a_choice")),
        ({"algorithm": "ES256"}, ("public_key", "required")),
        ({"algorithm": "HS256", "public_key": key_pair()[1]}, ("public_key", "unknown_field")),
        ({"algorithm": "ES256", "public_key": key_pair()[0]}, ("public_key", "malformed")),
        (
            {"algorithm": "ES256", "public_key": key_pair(ec.SECP384R1)[1]},
            ("public_key", "malformed"),
        ),
        ({"algorithm": "ES256", "public_key": "x"}, ("public_key", "malformed")),
        ({"algorithm": "ES256", "public_key": "x" * 1_001}, ("public_key", "too_long")),
    ],
)
def test_other_keys_are_refused(alice, body, error):
    assert errors(alice.call("POST", path(alice), body)) == [error]
    assert not IdentityKey.objects.exists()


def test_a_retired_key_proves_nothing_and_its_secret_is_forgotten(alice):
    old, new = new_key(alice), new_key(alice)
    assert signed_in(alice, old).status_code == 201

    assert alice.call("DELETE", path(alice, old[0])).status_code == 204
    assert alice.call("DELETE", path(alice, old[0])).status_code == 404

    known = browser(HERE + "2", external_id="user-42")
    refused = alice.subscribe(known | {"identity_token": token(alice, old)})
    assert code(refused, 403) == "identity_refused"
    by_id = token(alice, old, headers={"kid": old[0]})
    assert code(alice.subscribe(known | {"identity_token": by_id}), 403) == "identity_refused"
    assert alice.subscribe(known | {"identity_token": token(alice, new)}).status_code == 201
    assert [each["identity_key_id"] for each in alice.call("GET", path(alice)).json()] == [new[0]]
    assert IdentityKey.objects.get(pk=old[0]).secret_encrypted == ""


def test_a_channel_has_at_most_four_keys_in_use(alice):
    keys = [new_key(alice) for _ in range(4)]
    full = alice.call("POST", path(alice), {"algorithm": "HS256"})
    assert code(full, 409) == "too_many_identity_keys"

    alice.call("DELETE", path(alice, keys[0][0]))
    assert alice.call("POST", path(alice), {"algorithm": "HS256"}).status_code == 201


def test_of_the_retired_keys_the_newest_are_kept(alice, monkeypatch):
    assert identity_keys.MOST_RETIRED == 100
    monkeypatch.setattr(identity_keys, "MOST_RETIRED", 2)
    made = []
    for _ in range(5):
        made.append(alice.call("POST", path(alice), {"algorithm": "HS256"}).json())
        alice.call("DELETE", path(alice, made[-1]["identity_key_id"]))

    kept = IdentityKey.objects.order_by("created_at").values_list("pk", flat=True)
    assert [str(each) for each in kept] == [each["identity_key_id"] for each in made[2:]]


def test_another_channels_key_proves_nothing_and_cannot_be_retired(alice):
    bob = owner_of(make_channel(name="Bob's news"))
    theirs = new_key(bob)
    new_key(alice)

    for headers in (None, {"kid": theirs[0]}):
        proof = {"external_id": "user-42", "identity_token": token(alice, theirs, headers=headers)}
        assert code(alice.subscribe(browser(HERE, **proof)), 403) == "identity_refused"
    assert alice.call("DELETE", path(alice, theirs[0])).status_code == 404
    assert IdentityKey.objects.get(pk=theirs[0]).retired_at is None


def test_a_rotation_of_credential_keys_encrypts_secrets_anew(alice, settings):
    key = new_key(alice)
    new_key(alice, "ES256")
    before = settings.CREDENTIAL_KEYS
    settings.CREDENTIAL_KEYS = [crypto.Fernet.generate_key().decode(), *before]

    call_command("rotate_credential_keys")

    settings.CREDENTIAL_KEYS = settings.CREDENTIAL_KEYS[:1]
    assert signed_in(alice, key).status_code == 201

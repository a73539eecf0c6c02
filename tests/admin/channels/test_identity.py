"""A channel's identity keys in the console, and the test of tokens."""

import time

import jwt
import pytest
from auditlog.models import LogEntry
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.urls import reverse

from channels_app.identity_keys import identity_key_create
from channels_app.models import IdentityKey
from channels_app.selectors import identity_keys
from tests.admin.support import signed_in


def page_of(house):
    return reverse("admin:channel_identity", args=[house.channel.pk])


@pytest.fixture
def manager(alice):
    return signed_in(alice.members["manager"])


def public_pem():
    return (
        ec.generate_private_key(ec.SECP256R1())
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def token_of(house, secret, **claims):
    said = {"sub": "user-42", "aud": str(house.channel.pk), "exp": int(time.time()) + 600}
    return jwt.encode(said | claims, secret, algorithm="HS256")


def test_a_secret_is_shown_once_and_never_again(alice, manager):
    response = manager.post(page_of(alice), {"do": "secret"})

    secret = response.context["secret"]
    assert secret.startswith("psi_")
    assert secret in response.content.decode()
    assert "no-store" in response.headers["Cache-Control"]
    assert secret not in manager.get(page_of(alice)).content.decode()
    told = str(list(LogEntry.objects.values_list("changes", "object_repr", "additional_data")))
    assert secret not in told
    [key] = identity_keys(alice.channel.pk)
    assert LogEntry.objects.get_for_object(key).get().actor == alice.members["manager"]


def test_a_public_key_is_added_and_a_private_one_is_refused(alice, manager):
    manager.post(page_of(alice), {"do": "public", "public_key": public_pem()})
    assert [key.algorithm for key in identity_keys(alice.channel.pk)] == ["ES256"]

    for text in ("-----BEGIN PRIVATE KEY-----", "nothing of the kind", ""):
        response = manager.post(page_of(alice), {"do": "public", "public_key": text}, follow=True)
        assert "key" in str(next(iter(response.context["messages"])))
    assert len(identity_keys(alice.channel.pk)) == 1


def test_a_fifth_key_is_refused(alice, manager):
    for _ in range(4):
        manager.post(page_of(alice), {"do": "secret"})

    response = manager.post(page_of(alice), {"do": "secret"}, follow=True)

    assert "4 identity keys" in str(next(iter(response.context["messages"])))
    assert len(identity_keys(alice.channel.pk)) == 4


def test_a_retired_key_leaves_the_page_and_is_in_the_audit_log(alice, manager):
    key, _ = identity_key_create(channel=alice.channel, public_key=None)

    manager.post(page_of(alice), {"do": "retire", "key": key.pk})

    assert str(key.pk) not in manager.get(page_of(alice)).content.decode()
    assert LogEntry.objects.get_for_object(key).filter(actor=alice.members["manager"]).exists()


@pytest.mark.parametrize("role", ["viewer", "sender", "editor"])
def test_a_member_without_the_manager_role_reads_and_changes_nothing(alice, role):
    key, _ = identity_key_create(channel=alice.channel, public_key=None)
    client = signed_in(alice.members[role])

    page = client.get(page_of(alice))
    assert str(key.pk) in page.content.decode()
    assert 'value="retire"' not in page.content.decode()
    for what in ({"do": "secret"}, {"do": "public"}, {"do": "retire", "key": key.pk}):
        assert client.post(page_of(alice), what).status_code == 403
    assert [each.retired_at for each in IdentityKey.objects.all()] == [None]


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({}, "It identifies the user “user-42”"),
        ({"exp": 1_700_000_000}, "exp is in the past"),
        ({"exp": 4_000_000_000}, "exp is more than 31 days ahead"),
        ({"aud": "another"}, "aud is not the channel&#x27;s id"),
        ({"sub": "half of a pair: \ud800"}, "exp is missing or malformed"),
    ],
)
def test_the_tester_names_the_rule_that_a_token_breaks(alice, claims, says):
    _, secret = identity_key_create(channel=alice.channel, public_key=None)
    viewer = signed_in(alice.members["viewer"])

    response = viewer.post(
        page_of(alice), {"do": "test", "token": token_of(alice, secret, **claims)}
    )

    assert says in response.content.decode()
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.parametrize("token", ["", "nothing", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "é" * 3000])
def test_the_tester_refuses_texts_that_are_not_tokens(alice, token):
    identity_key_create(channel=alice.channel, public_key=None)
    viewer = signed_in(alice.members["viewer"])

    response = viewer.post(page_of(alice), {"do": "test", "token": token})

    assert (response.status_code, response.context["judgement"].subject) == (200, "")
    assert response.context["judgement"].broken is not None


def test_the_tester_reports_a_secret_that_cannot_be_decrypted(alice):
    _, secret = identity_key_create(channel=alice.channel, public_key=None)
    IdentityKey.objects.update(secret_encrypted="x")
    viewer, tested = signed_in(alice.members["viewer"]), token_of(alice, secret)

    response = viewer.post(page_of(alice), {"do": "test", "token": tested}, follow=True)

    assert "cannot be decrypted" in response.content.decode()

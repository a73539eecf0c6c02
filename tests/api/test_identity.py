"""Devices that belong to people: sign-in with proof, sign-out, moves and counts."""

import re
import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from channels_app.models import Channel, IdentityKey
from channels_app.selectors import recent_forget
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_forget, subscription_unsubscribe
from subscriptions_app.models import MOST_DEVICES, Person, Subscription
from tests.api.devices import ANDROID_TOKEN, HERE, THERE, expire, subscribed
from tests.api.people import audience, new_key, token
from tests.api.support import code, errors, owner_of
from tests.factories import browser, make_channel, phone
from tests.pipeline.support import assert_people_exact

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel(android_enabled=True))


@pytest.fixture
def key(alice):
    return new_key(alice)


def signed_in(alice, key, external_id="user-42", endpoint=HERE, **fields):
    proof = {"external_id": external_id, "identity_token": token(alice, key, external_id)}
    return browser(endpoint, **proof) | fields


def person_of(row):
    row.refresh_from_db()
    return row.person and row.person.external_id


def plain(body):
    """The same device, which says nothing of its person."""
    return {name: body[name] for name in ("endpoint", "keys")}


# --- sign-in --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["HS256", "ES256"])
def test_a_new_device_is_linked_by_a_token_of_the_backend(alice, algorithm):
    key = new_key(alice, algorithm)
    body = signed_in(alice, key)

    row = subscribed(alice, body)

    assert person_of(row) == "user-42"
    assert audience(alice) == {
        "devices": {"web": 1, "android": 0, "ios": 0},
        "people": 1,
        "anonymous_devices": 0,
    }
    assert_people_exact(alice.channel)


def test_two_devices_are_one_person(alice, key):
    subscribed(alice, signed_in(alice, key))
    proof = {"external_id": "user-42", "identity_token": token(alice, key)}
    subscribed(alice, phone("android", ANDROID_TOKEN, **proof))
    subscribed(alice, browser(THERE))

    assert audience(alice)["people"] == 1
    assert audience(alice)["anonymous_devices"] == 1
    assert Person.objects.get().active_devices == 2
    assert_people_exact(alice.channel)


def test_a_known_device_signs_in_changes_its_user_and_signs_out(alice, key):
    body = signed_in(alice, key)
    row = subscribed(alice, plain(body))
    assert person_of(row) is None

    subscribed(alice, body, status=200)
    assert person_of(row) == "user-42"
    other = body | {"external_id": "user-43", "identity_token": token(alice, key, "user-43")}
    subscribed(alice, other, status=200)
    assert person_of(row) == "user-43"
    assert_people_exact(alice.channel)
    subscribed(alice, plain(body) | {"external_id": None}, status=200)
    assert person_of(row) is None

    assert audience(alice)["people"] == 0
    assert_people_exact(alice.channel)


def test_proof_is_asked_for_only_when_the_person_changes(alice, key):
    body = signed_in(alice, key)
    row = subscribed(alice, body)
    without = plain(body) | {"external_id": "user-42"}

    for _ in range(2):
        subscribed(alice, plain(body), status=200)
        subscribed(alice, without, status=200)
        assert person_of(row) == "user-42"
        expire(row)  # the second time by the way with locks
        assert_people_exact(alice.channel)

    assert code(alice.subscribe(without | {"external_id": "user-1"}), 403) == "identity_refused"
    assert person_of(row) == "user-42"


@pytest.mark.parametrize("proof", [{}, {"identity_token": "x.y.z"}])
def test_a_token_of_a_phone_alone_does_not_tell_to_whom_the_phone_belongs(alice, key, proof):
    """Everyone who knows it could try ids until one is not refused."""
    signed = {"external_id": "user-42", "identity_token": token(alice, key)}
    row = subscribed(alice, phone("android", f"{ANDROID_TOKEN}1", **signed))
    subscribed(alice, phone("android", f"{ANDROID_TOKEN}2"))

    answers = [
        alice.subscribe(phone("android", f"{ANDROID_TOKEN}{number}", external_id=guess, **proof))
        for number in (1, 2, 3)
        for guess in ("user-42", "user-43")
    ]

    assert {code(each, 403) for each in answers} == {"identity_refused"}
    assert len({each.json()["detail"] for each in answers}) == 1
    assert person_of(row) == "user-42"
    subscribed(alice, phone("android", f"{ANDROID_TOKEN}1", **signed), status=200)


def test_a_refused_token_stores_nothing(alice, key):
    stranger = new_key(owner_of(make_channel()))
    known = signed_in(alice, key)
    row = subscribed(alice, known)
    forged = {"external_id": "user-1", "identity_token": token(alice, stranger, "user-1")}

    answer = alice.subscribe(plain(known) | forged | {"attributes": {"plan": "pro"}})
    assert code(answer, 403) == "identity_refused"
    assert code(alice.subscribe(browser(THERE, **forged)), 403) == "identity_refused"

    row.refresh_from_db()
    assert (row.attributes, person_of(row)) == ({}, "user-42")
    assert [person.external_id for person in Person.objects.all()] == ["user-42"]
    assert Subscription.objects.count() == 1


def test_a_channel_without_an_identity_key_refuses_every_id_and_says_so(alice):
    answer = alice.subscribe(browser(external_id="user-42", identity_token="x"))
    assert code(answer, 403) == "identity_refused"
    assert answer.json()["detail"] == "The channel has no identity key."


def test_a_channel_may_trust_devices_or_link_none(alice):
    Channel.objects.update(identity="trust")
    body = browser(HERE, external_id="user-42")
    row = subscribed(alice, body)
    assert person_of(row) == "user-42"

    Channel.objects.update(identity="off")
    for external_id in ("user-42", "user-43"):
        answer = alice.subscribe(body | {"external_id": external_id})
        assert code(answer, 400) == "identity_off"
    subscribed(alice, plain(body) | {"external_id": None}, status=200)
    assert person_of(row) is None


def test_values_that_are_not_external_ids_are_rejected(alice):
    for external_id, error in ((" user", "malformed"), ("null", "reserved_value")):
        answer = alice.subscribe(browser(external_id=external_id))
        assert errors(answer) == [("external_id", error)]


def test_an_external_id_may_have_128_characters_of_any_script(alice, key):
    external_id = "ß用户 🙂" + "x" * 123
    assert person_of(subscribed(alice, signed_in(alice, key, external_id))) == external_id


def test_a_secret_that_cannot_be_decrypted_refuses_no_sign_in_for_good(alice, key):
    """Whoever restores the key of CREDENTIAL_KEYS need not ask users to sign in again."""
    other = new_key(alice)
    body = signed_in(alice, key)
    IdentityKey.objects.filter(pk=key[0]).update(secret_encrypted="x")
    recent_forget()

    assert code(alice.subscribe(body), 503) == "unavailable"
    assert not Subscription.objects.exists()
    expired = token(alice, other, exp=int(time.time()) - 120)
    assert code(alice.subscribe(body | {"identity_token": expired}), 403) == "identity_refused"
    assert person_of(subscribed(alice, signed_in(alice, other))) == "user-42"


# --- moves ----------------------------------------------------------------------------------------


def test_a_device_that_moves_with_its_auth_keeps_its_person(alice, key):
    body = signed_in(alice, key)
    row = subscribed(alice, body)
    moved = browser(THERE, previous_endpoint=HERE, previous_auth=body["keys"]["auth"])

    assert subscribed(alice, moved, status=200).id == row.id
    assert person_of(row) == "user-42"
    assert_people_exact(alice.channel)


def test_a_device_that_moves_by_its_id_alone_belongs_to_nobody(alice, key):
    row = subscribed(alice, signed_in(alice, key))
    by_id = {"previous_endpoint": HERE, "previous_subscription_id": str(row.id)}
    moved = browser(THERE, **by_id)

    claimed = alice.subscribe(moved | {"external_id": "user-42"})
    assert code(claimed, 403) == "identity_refused"
    assert person_of(row) == "user-42"

    assert subscribed(alice, moved, status=200).id == row.id
    assert person_of(row) is None
    assert_people_exact(alice.channel)
    proof = {"external_id": "user-42", "identity_token": token(alice, key)}
    subscribed(alice, moved | proof, status=200)
    assert person_of(row) == "user-42"


def test_who_knows_only_the_endpoint_gets_nobodys_messages(alice, key):
    row = subscribed(alice, signed_in(alice, key))

    stranger = subscribed(alice, browser(HERE))

    assert (person_of(stranger), person_of(row)) == (None, "user-42")
    assert audience(alice)["people"] == 0
    assert_people_exact(alice.channel)


def test_a_device_with_two_rows_keeps_the_person_of_the_previous_one(alice, key):
    old = signed_in(alice, key)
    new = browser(THERE)
    subscribed(alice, old)
    kept = subscribed(alice, new)

    moved = new | {"previous_endpoint": HERE, "previous_auth": old["keys"]["auth"]}
    assert subscribed(alice, moved, status=200).id == kept.id
    assert person_of(kept) == "user-42"
    assert_people_exact(alice.channel)


def test_choices_of_the_previous_row_lock_the_person_before_the_counters(alice, key):
    """The order of locks, without which two registrations could deadlock."""
    old = browser(HERE)
    new = signed_in(alice, key, endpoint=THERE)
    chosen = {"offers": True}
    row = Subscription.objects.filter(pk=subscribed(alice, old).pk)
    row.update(choices=chosen, proven_choices=chosen)
    subscribed(alice, new)

    moved = plain(new) | {"previous_endpoint": HERE, "previous_auth": old["keys"]["auth"]}
    with CaptureQueriesContext(connection) as queries:
        subscribed(alice, moved, status=200)

    assert Person.objects.get().choices == {"offers": True}
    said = [query["sql"] for query in queries]
    written = [
        next(name for name in ("_channelcounter", "_person") if name in text)
        for text in said
        if "_channelcounter" in text or "UPDATE subscriptions_app_person" in text
    ]
    assert written == ["_person", "_channelcounter", "_person"]


# --- ends -----------------------------------------------------------------------------------------


def test_ends_and_returns_are_counted_at_once(alice, key):
    bodies = [signed_in(alice, key, endpoint=f"{HERE}{number}") for number in range(4)]
    rows = [subscribed(alice, body) for body in bodies]

    expire(rows[0])
    subscription_unsubscribe(channel=alice.channel, address=Address.of("web", f"{HERE}1"))
    subscription_forget(subscription=rows[2])
    assert Person.objects.filter(active_devices=1, left_at=None).exists()
    assert_people_exact(alice.channel)
    expire(rows[3])
    assert audience(alice)["people"] == 0
    assert Person.objects.filter(active_devices=0, left_at__isnull=False).exists()
    assert_people_exact(alice.channel)

    subscribed(alice, plain(bodies[0]), status=200)
    assert Person.objects.filter(active_devices=1, left_at=None).exists()
    assert_people_exact(alice.channel)


def test_a_full_channel_deletes_a_persons_device_and_counts_it(alice, key):
    body = signed_in(alice, key)
    subscribed(alice, body)
    Channel.objects.update(max_subscriptions=1)

    row = subscribed(alice, signed_in(alice, key, "user-43", THERE))

    assert list(Subscription.objects.all()) == [row]
    assert audience(alice)["people"] == 1
    assert_people_exact(alice.channel)


def test_a_person_has_at_most_a_hundred_active_devices(alice, key):
    for number in range(2):
        subscribed(alice, signed_in(alice, key, endpoint=f"{HERE}{number}"))
    Person.objects.update(active_devices=MOST_DEVICES)
    known = signed_in(alice, key, endpoint=THERE)
    row = subscribed(alice, plain(known))

    assert code(alice.subscribe(signed_in(alice, key)), 409) == "too_many_devices"
    assert code(alice.subscribe(known), 409) == "too_many_devices"
    assert person_of(row) is None
    subscribed(alice, plain(known) | {"external_id": None}, status=200)


# --- costs ----------------------------------------------------------------------------------------


def statements(call):
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = call()
    return answer, [each["sql"] for each in queries]


def test_a_device_that_says_nothing_of_its_person_costs_nothing_more(alice, key):
    body = browser(HERE)
    for status, most in ((201, 3), (200, 2)):
        answer, made = statements(lambda: alice.subscribe(body))
        assert (answer.status_code, len(made)) == (status, most)
        assert not any("identitykey" in each for each in made)
        assert status == 201 or not any("_person" in each for each in made)


def test_a_linked_device_costs_no_more_statements_than_a_plain_one(alice, key):
    body = signed_in(alice, key)
    for status, most in ((201, 4), (200, 2)):
        answer, made = statements(lambda: alice.subscribe(body))
        assert (answer.status_code, len(made)) == (status, most)


def test_a_strangers_token_costs_the_same_statements_as_an_expired_one(alice, key):
    stranger = new_key(owner_of(make_channel()))
    forged = browser(HERE, external_id="user-1", identity_token=token(alice, stranger, "user-1"))
    expired = forged | {"identity_token": token(alice, key, "user-1", exp=1)}
    made = []
    for body in (forged, expired):
        answer, found = statements(lambda body=body: alice.subscribe(body))
        assert code(answer, 403) == "identity_refused"
        made.append([re.sub(r"'[^']*'|_x\d+", "?", each) for each in found])
    assert made[0] == made[1]


def test_an_address_with_many_refused_tokens_has_to_wait_with_these_only(alice, key, settings):
    settings.REFUSED_TOKENS_PER_MINUTE = 2
    refused = browser(HERE, external_id="user-1", identity_token="x.y.z")
    address = "203.0.113.77"
    for _ in range(2):
        assert code(alice.subscribe(refused, address=address), 403) == "identity_refused"

    assert code(alice.subscribe(refused, address=address), 429) == "rate_limited"
    assert alice.subscribe(signed_in(alice, key), address=address).status_code == 201

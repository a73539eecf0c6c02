"""Subscriptions that move, end, come too often, or change simultaneously."""

import pytest

from channels_app.models import VapidKey
from channels_app.selectors import current_vapid_key
from channels_app.services import vapid_key_rotate
from subscriptions_app.models import Subscription
from tests.api.devices import HERE, IOS_TOKEN, THERE, expire, subscribed, subscribers
from tests.api.support import code, errors, owner_of
from tests.factories import browser, make_channel, phone
from tests.pipeline.support import in_threads

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel(android_enabled=True, ios_enabled=True))


# --- an endpoint that changed ---------------------------------------------------------------------


def moved_body(old, **fields):
    """The body that the browser of subscription `old` sends from its new endpoint."""
    return browser(THERE, previous_endpoint=HERE, previous_auth=old.auth, **fields)


def test_a_changed_endpoint_keeps_id_and_attributes(alice):
    old = subscribed(alice, browser(HERE, attributes={"plan": "pro"}))
    body = moved_body(old)

    moved = subscribed(alice, body, status=200)

    assert (moved.id, moved.address, moved.push_service) == (old.id, THERE, "mozilla")
    assert moved.attributes == {"plan": "pro"}
    assert moved.p256dh == body["keys"]["p256dh"]
    assert moved.created_at == old.created_at
    assert subscribers(alice).web_subscribers == 1
    assert subscribed(alice, body, status=200).id == old.id
    assert subscribed(alice, browser(HERE)).id != old.id


def test_an_expired_subscription_that_moves_becomes_active(alice):
    old = subscribed(alice, browser(HERE))
    expire(old)

    moved = subscribed(alice, moved_body(old), status=200)

    assert (moved.id, moved.expired_at) == (old.id, None)
    assert subscribers(alice).web_subscribers == 1


@pytest.mark.parametrize("has_expired", [False, True])
def test_the_old_subscription_expires_if_both_endpoints_are_known(alice, has_expired):
    old = subscribed(alice, browser(HERE, attributes={"plan": "free"}))
    body = moved_body(old, attributes={"plan": "pro"})
    new = subscribed(alice, {key: body[key] for key in ("endpoint", "keys", "attributes")})
    if has_expired:
        expire(new)
    del body["attributes"]

    stays = subscribed(alice, body, status=200)

    old.refresh_from_db()
    assert (stays.id, stays.attributes, stays.expired_at) == (new.id, {"plan": "pro"}, None)
    assert old.expired_at is not None
    assert old.expired_code == "replaced"
    assert subscribers(alice).web_subscribers == 1


def test_a_subscription_that_moves_to_anothers_address_displaces_that_one(alice):
    mine, theirs = subscribed(alice, browser(HERE)), subscribed(alice, browser(THERE))

    assert subscribed(alice, moved_body(mine), status=200).id == mine.id

    theirs.refresh_from_db()
    assert (theirs.expired_code, theirs.is_set_aside) == ("replaced", True)
    assert subscribers(alice).web_subscribers == 1


def test_a_previous_endpoint_of_another_channel_is_unknown(alice, bob):
    theirs = subscribed(bob, browser(HERE))
    assert subscribed(alice, moved_body(theirs)).id != theirs.id
    theirs.refresh_from_db()
    assert theirs.address == HERE


# --- VAPID keys -----------------------------------------------------------------------------------


def test_a_known_endpoint_keeps_its_vapid_key_after_a_rotation(alice):
    body = browser(HERE)
    first = subscribed(alice, body)
    new_key = vapid_key_rotate(channel=alice.channel)

    assert subscribed(alice, body, status=200).vapid_key_id == first.vapid_key_id
    assert subscribed(alice, browser(HERE)).vapid_key_id == first.vapid_key_id
    assert subscribed(alice, browser(THERE)).vapid_key_id == new_key.id


def test_the_vapid_key_that_the_browser_names_is_stored(alice):
    old_key = current_vapid_key(alice.channel)
    new_key = vapid_key_rotate(channel=alice.channel)

    body = browser(HERE)
    row = subscribed(alice, body | {"vapid_public_key": old_key.public_key})
    assert row.vapid_key == old_key
    named = body | {"vapid_public_key": new_key.public_key + "="}
    assert subscribed(alice, named, status=200).vapid_key == new_key


def test_a_vapid_key_of_another_channel_is_refused(alice, bob):
    theirs = VapidKey.objects.get(channel=bob.channel)
    for key in (theirs.public_key, "x" * 87):
        response = alice.subscribe(browser(HERE, vapid_public_key=key))
        assert errors(response) == [("vapid_public_key", "vapid_key_unknown")]
        assert response.json()["code"] == "vapid_key_unknown"
    assert not Subscription.objects.exists()


# --- unsubscribe ----------------------------------------------------------------------------------


def test_unsubscribe_expires_the_subscription_and_may_be_repeated(alice):
    row = subscribed(alice, browser(HERE))

    for _ in range(2):
        response = alice.device("/unsubscribe", {"endpoint": HERE})
        assert response.status_code == 200
        assert list(response.json()) == ["message"]

    row.refresh_from_db()
    assert (row.expired_at is not None, row.expired_code) == (True, "unsubscribed")
    assert subscribers(alice).web_subscribers == 0


def test_unsubscribing_a_phone_needs_its_platform(alice):
    row = subscribed(alice, phone("ios", IOS_TOKEN))

    alice.device("/unsubscribe", {"endpoint": IOS_TOKEN})
    assert subscribers(alice).ios_subscribers == 1

    alice.device("/unsubscribe", phone("ios", IOS_TOKEN.upper()))
    row.refresh_from_db()
    assert row.expired_code == "unsubscribed"
    assert subscribers(alice).ios_subscribers == 0


def test_unsubscribing_an_unknown_device_is_answered_the_same(alice):
    assert alice.device("/unsubscribe", {"endpoint": HERE}).status_code == 200
    assert alice.device("/unsubscribe/", {"endpoint": "not a url"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("endpoint", "required")]),
        ({"platform": "ios"}, [("provider_token", "required")]),
        ({"endpoint": 1}, [("endpoint", "not_a_string")]),
        ({"endpoint": HERE, "platform": "tv"}, [("platform", "not_a_choice")]),
    ],
)
def test_unsubscribe_needs_an_address(alice, body, expected):
    assert errors(alice.device("/unsubscribe", body)) == expected


# --- limits ---------------------------------------------------------------------------------------


def test_an_address_that_subscribes_too_often_has_to_wait():
    owner = owner_of(make_channel(subscribes_per_minute=3))
    for number in range(3):
        subscribed(owner, browser(f"{HERE}{number}"))

    refused = owner.subscribe(browser(HERE))
    assert code(refused, 429) == "rate_limited"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60

    assert owner.subscribe(browser(HERE), address="203.0.113.8").status_code == 201
    assert owner.device("/unsubscribe", {"endpoint": HERE}).status_code == 200


def test_the_installations_limit_counts_all_channels_together(alice, bob, settings):
    settings.SUBSCRIBES_PER_MINUTE = 2
    address = "203.0.113.99"
    assert alice.subscribe(browser(), address=address).status_code == 201
    assert bob.subscribe(browser(), address=address).status_code == 201
    assert code(alice.subscribe(browser(), address=address), 429) == "rate_limited"


# --- simultaneous changes -------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_simultaneous_subscribes_moves_and_ends_are_counted_exactly(alice):
    """Three browsers with proof, and a client without."""
    browsers = [browser(f"{HERE}{number}") for number in range(3)]

    def visit(number):
        body, before = browsers[number % 3], browsers[(number + 1) % 3]
        if number % 4 == 0:
            return alice.device("/unsubscribe", {"endpoint": body["endpoint"]})
        if number % 4 == 1:
            return alice.subscribe(browser(body["endpoint"], previous_endpoint=before["endpoint"]))
        proof = {"previous_auth": before["keys"]["auth"]}
        return alice.subscribe(body | {"previous_endpoint": before["endpoint"]} | proof)

    for _ in range(6):
        responses = in_threads(*[lambda n=n: visit(n) for n in range(12)])
        assert {r.status_code for r in responses} <= {200, 201}

    active = Subscription.objects.filter(expired_at=None).count()
    assert subscribers(alice).web_subscribers == active

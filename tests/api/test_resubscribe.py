"""POST /subscribe of a browser whose push service refused the channel's VAPID key: it is told to
subscribe again, and is not made active only to be refused again."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from channels_app.selectors import current_vapid_key
from channels_app.services import vapid_key_rotate
from notifications_app.delivery.webpush.responses import SUSPECT_CODES
from subscriptions_app.devices.registration import OTHER_KEY
from subscriptions_app.models import Subscription
from tests.api.devices import HERE, THERE, expire, subscribed, subscribers
from tests.api.support import owner_of
from tests.factories import browser, make_channel

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel())


@pytest.fixture
def body():
    return browser(HERE, attributes={"plan": "pro"})


@pytest.fixture
def refused(alice, body):
    row = subscribed(alice, body)
    expire(row, "vapid_refused")
    return row


def state(row):
    row.refresh_from_db()
    return row.expired_at is None, row.expired_code


@pytest.mark.parametrize("code", sorted(OTHER_KEY))
@pytest.mark.parametrize("names_key", [True, False])
def test_a_refused_browser_is_told_to_subscribe_again_at_each_visit(alice, body, code, names_key):
    row = subscribed(alice, body)
    expire(row, code)
    ended = Subscription.objects.get().expired_at
    if names_key:
        body["vapid_public_key"] = current_vapid_key(alice.channel).public_key

    for _ in range(2):
        response = alice.subscribe(body | {"attributes": {"plan": "free"}})

        assert response.status_code == 200
        assert response.json()["subscriptionId"] == str(row.id)
        assert response.json()["resubscribe"] == code
        assert state(row) == (False, code)
        assert (row.expired_at, row.attributes) == (ended, {"plan": "free"})
    assert subscribers(alice).web_subscribers == 0


def test_a_refused_browser_that_subscribes_again_keeps_its_subscription(alice, body, refused):
    proof = {"previous_endpoint": HERE, "previous_auth": body["keys"]["auth"]}

    again = subscribed(alice, browser(THERE, **proof), status=200)

    assert (again.id, again.address, again.attributes) == (refused.id, THERE, {"plan": "pro"})
    assert state(again) == (True, "")
    assert subscribers(alice).web_subscribers == 1


def test_a_refused_browser_that_names_another_key_of_the_channel_is_active(alice, body, refused):
    old = current_vapid_key(alice.channel).public_key
    vapid_key_rotate(channel=alice.channel)
    assert alice.subscribe(body | {"vapid_public_key": old}).json()["resubscribe"]

    new = current_vapid_key(alice.channel)
    response = alice.subscribe(body | {"vapid_public_key": new.public_key})

    assert "resubscribe" not in response.json()
    assert state(refused) == (True, "")
    assert refused.vapid_key == new


def test_a_refusal_is_tried_again_after_a_week(alice, body, refused):
    Subscription.objects.update(expired_at=Now() - timedelta(days=6, hours=23))
    assert alice.subscribe(body).json()["resubscribe"] == "vapid_refused"
    Subscription.objects.update(expired_at=Now() - timedelta(days=7))

    assert "resubscribe" not in alice.subscribe(body).json()

    assert state(refused) == (True, "")


def test_a_refused_endpoint_replaces_no_other_subscription(alice, body, refused):
    live = browser(THERE)
    row = subscribed(alice, live)

    proof = {"previous_endpoint": THERE, "previous_auth": live["keys"]["auth"]}
    assert alice.subscribe(body | proof).json()["resubscribe"] == "vapid_refused"

    assert state(row) == (True, "")
    assert subscribers(alice).web_subscribers == 1


def test_any_other_expired_browser_is_active_again(alice, body):
    row = subscribed(alice, body)
    expire(row)

    assert "resubscribe" not in alice.subscribe(body).json()

    assert state(row) == (True, "")


def test_the_codes_are_those_of_web_push():
    assert OTHER_KEY <= SUSPECT_CODES

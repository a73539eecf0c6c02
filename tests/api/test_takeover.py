"""A client that knows only an endpoint or a token gets nothing of its subscription."""

from uuid import uuid4

import pytest

from channels_app.models import Channel
from channels_app.selectors import channel_totals
from pushsvc.common import base64url
from subscriptions_app.models import MOST_DEVICES, Person, Subscription
from tests.api.devices import ANDROID_TOKEN, FID, HERE, IOS_TOKEN, THERE, expire
from tests.api.support import owner_of
from tests.factories import browser, browser_keys, make_category, make_channel, phone
from tests.pipeline.support import assert_people_exact

pytestmark = pytest.mark.django_db

ELSEWHERE = "https://updates.push.services.mozilla.com/wpush/v2/elsewhere"
GOLD = {"plan": "gold"}
RULE = {"attribute": "plan", "operator": "eq", "value": "gold"}


@pytest.fixture
def alice(db):
    return owner_of(make_channel(android_enabled=True, ios_enabled=True))


class Api:
    """What anybody can call; (status, body) of each response."""

    def __init__(self, owner):
        self._owner = owner

    def subscribe(self, body):
        answer = self._owner.subscribe(body)
        return answer.status_code, answer.json()

    def subscribed(self, status, body):
        answer = self.subscribe(body)
        assert answer[0] == status, answer
        return answer[1]["subscriptionId"]

    def preferences(self, body):
        """Whether the device wants offers, afterwards."""
        return self._owner.device("/preferences", body).json()["categories"][0]["chosen"]

    def gold(self):
        """The size of the audience of gold customers."""
        platforms = ["web", "android", "ios"]
        body = {"body": "x", "dry_run": True, "rule": RULE, "target_platforms": platforms}
        trial = self._owner.send(body).json()
        return {name: each["audience"] for name, each in trial["platforms"].items()}


@pytest.fixture
def api(alice):
    return Api(alice)


def row(id_):
    return Subscription.objects.get(pk=id_)


def active():
    return {str(each.pk) for each in Subscription.objects.filter(expired_at=None)}


def subscribers(alice):
    return channel_totals(alice.channel.id).subscribers


@pytest.fixture
def hers(api):
    """The body with which Alice's visitor subscribed, and the id that was returned."""
    body = browser(HERE, attributes=GOLD)
    return body, api.subscribed(201, body)


# --- somebody else ---


def test_a_previous_endpoint_without_proof_makes_a_new_subscription(api, hers, alice):
    body, id_ = hers
    theirs = api.subscribed(201, browser(THERE, previous_endpoint=HERE))

    assert theirs != id_
    assert row(theirs).attributes == {}
    assert (row(id_).address, row(id_).attributes, row(id_).expired_at) == (HERE, GOLD, None)
    assert api.subscribed(200, body | {"attributes": GOLD}) == id_
    assert subscribers(alice) == 2


@pytest.mark.parametrize(
    "proof",
    [
        {},
        {"previous_auth": base64url.encode(b"0" * 16)},
        {"previous_auth": "not even base64 ☂"},
        {"previous_subscription_id": str(uuid4())},
    ],
)
def test_a_wrong_proof_is_answered_like_an_unknown_endpoint(api, hers, proof):
    known = api.subscribe(browser(THERE, previous_endpoint=HERE, **proof))
    unknown = api.subscribe(browser(ELSEWHERE, previous_endpoint=f"{HERE}-not", **proof))

    assert known[0] == unknown[0] == 201
    assert known[1].pop("subscriptionId") != unknown[1].pop("subscriptionId")
    assert known == unknown
    assert row(hers[1]).address == HERE


def test_a_known_endpoint_with_other_keys_gets_none_of_its_attributes(api, hers, alice):
    _, id_ = hers
    assert api.gold()["web"] == 1

    theirs = api.subscribed(201, browser(HERE))

    assert theirs != id_
    assert row(theirs).attributes == {}
    assert api.gold()["web"] == 0
    assert active() == {theirs}
    assert subscribers(alice) == 1


def test_a_browser_finds_its_subscription_again_after_somebody_else_registered_its_endpoint(
    api, hers, alice
):
    body, id_ = hers
    for _ in range(5):
        api.subscribed(201, browser(HERE))
    assert Subscription.objects.count() == 2

    assert api.subscribed(200, {key: body[key] for key in ("endpoint", "keys")}) == id_

    assert row(id_).attributes == GOLD
    assert (row(id_).auth, row(id_).is_set_aside) == (body["keys"]["auth"], False)
    assert active() == {id_}
    assert (Subscription.objects.count(), subscribers(alice)) == (1, 1)
    assert api.gold()["web"] == 1


def test_the_id_answered_to_somebody_else_proves_nothing_about_the_browsers_subscription(api, hers):
    theirs = browser(HERE)
    told = api.subscribed(201, theirs)
    proofs = {"previous_subscription_id": told, "previous_auth": theirs["keys"]["auth"]}
    body, id_ = hers
    assert api.subscribed(200, body | {"attributes": GOLD}) == id_

    api.subscribed(201, browser(THERE, previous_endpoint=HERE, **proofs))

    assert (row(id_).address, row(id_).attributes) == (HERE, GOLD)
    assert api.gold()["web"] == 1


def test_the_id_of_one_subscription_proves_nothing_about_another(api, hers):
    other = api.subscribed(201, browser(THERE))
    api.subscribed(201, browser(ELSEWHERE, previous_endpoint=HERE, previous_subscription_id=other))
    assert row(hers[1]).address == HERE
    assert row(other).address == THERE


def test_choices_and_fakes_of_who_knows_an_endpoint_and_an_id_do_not_reach_the_person(api, alice):
    """Choices before the first sign-in, and a hundred devices where anyone may name anyone."""
    Channel.objects.update(identity="trust")
    make_category(alice.channel, "offers", default=False)
    body = browser(HERE)
    api.subscribed(201, body)
    for number in range(MOST_DEVICES):
        api.subscribed(201, browser(f"{THERE}{number}", external_id="user-42"))
    assert api.preferences({"endpoint": HERE, "choices": {"offers": True}}) is True

    api.subscribed(200, body | {"external_id": "user-42"})

    person = Person.objects.get()
    assert (person.active_devices, person.choices) == (MOST_DEVICES, {})
    assert Subscription.objects.get(address=HERE).person == person
    assert not Subscription.objects.filter(address=f"{THERE}0").exists()
    assert_people_exact(alice.channel)
    Subscription.objects.update(is_proven=True)
    assert api.subscribe(browser(ELSEWHERE, external_id="user-42"))[0] == 409


# --- the browser itself ---


@pytest.mark.parametrize("shows", ["auth", "padded auth", "id"])
def test_the_old_auth_or_the_id_proves_the_same_browser(api, hers, alice, shows):
    old, id_ = hers
    before = row(id_)
    proof = {
        "auth": {"previous_auth": old["keys"]["auth"]},
        "padded auth": {"previous_auth": old["keys"]["auth"] + "=="},
        "id": {"previous_subscription_id": id_.upper()},
    }[shows]

    assert api.subscribed(200, browser(THERE, previous_endpoint=HERE, **proof)) == id_

    after = row(id_)
    assert (after.address, after.attributes, after.created_at) == (THERE, GOLD, before.created_at)
    assert subscribers(alice) == 1


@pytest.mark.parametrize("named", [{}, {"previous_endpoint": HERE}])
def test_new_keys_at_the_same_endpoint_keep_the_subscription_with_proof(api, hers, named):
    body = browser(HERE, previous_subscription_id=hers[1], **named)
    assert api.subscribed(200, body) == hers[1]
    assert (row(hers[1]).auth, row(hers[1]).attributes) == (body["keys"]["auth"], GOLD)


def test_a_browser_that_somebody_else_displaced_can_still_move(api, hers, alice):
    theirs = api.subscribed(201, browser(HERE))

    moved = browser(THERE, previous_endpoint=HERE, previous_auth=hers[0]["keys"]["auth"])
    assert api.subscribed(200, moved) == hers[1]

    assert (row(hers[1]).address, row(hers[1]).attributes) == (THERE, GOLD)
    assert active() == {hers[1], theirs}
    assert subscribers(alice) == 2


def test_a_new_subscription_takes_over_the_attributes_of_the_proven_old_one(api, hers, alice):
    """A worker that could prove nothing registered the new endpoint before the page did."""
    new = browser(THERE, previous_endpoint=HERE)
    id_ = api.subscribed(201, new)

    assert api.subscribed(200, new | {"previous_subscription_id": hers[1]}) == id_

    assert row(id_).attributes == GOLD
    assert row(hers[1]).expired_code == "replaced"
    assert subscribers(alice) == 1


def test_a_subscription_that_had_ended_is_not_ended_again(api, hers):
    new = browser(THERE)
    id_ = api.subscribed(201, new)
    expire(row(hers[1]))
    ended = row(hers[1])

    proof = {"previous_endpoint": HERE, "previous_subscription_id": hers[1]}
    assert api.subscribed(200, new | proof) == id_

    after = row(hers[1])
    assert (after.expired_at, after.expired_code) == (ended.expired_at, "endpoint_gone")


# --- phones ---

PHONES = [
    ("android", ANDROID_TOKEN, f"{ANDROID_TOKEN}-2"),
    ("android", ANDROID_TOKEN, FID),
    ("ios", IOS_TOKEN, "ab" * 32),
]


@pytest.mark.parametrize(("platform", "token", "other"), PHONES)
def test_a_client_that_knows_only_a_token_learns_the_id_and_cannot_move_the_subscription(
    api, platform, token, other
):
    id_ = api.subscribed(201, phone(platform, token, attributes=GOLD))
    assert api.subscribed(200, phone(platform, token)) == id_

    proof = {"previous_subscription_id": id_, "previous_auth": browser_keys()["auth"]}
    theirs = api.subscribed(201, phone(platform, other, previous_endpoint=token, **proof))

    assert theirs != id_
    assert row(theirs).attributes == {}
    assert (row(id_).address, row(id_).attributes) == (token, GOLD)


@pytest.mark.parametrize(("platform", "token", "other"), PHONES)
def test_a_phone_with_its_own_auth_keeps_its_subscription(api, platform, token, other):
    auth = {"auth": browser_keys()["auth"]}
    id_ = api.subscribed(201, phone(platform, token, attributes=GOLD, **auth))
    assert api.subscribed(200, phone(platform, token, **auth)) == id_

    moved = phone(platform, other, previous_endpoint=token, **auth)
    assert api.subscribed(200, moved) == id_

    assert (row(id_).address, row(id_).attributes) == (other, GOLD)


@pytest.mark.parametrize("theirs", [{}, {"auth": base64url.encode(b"0" * 16)}])
def test_a_token_with_an_auth_gives_nothing_to_a_client_with_another_or_none(api, alice, theirs):
    auth = {"auth": browser_keys()["auth"]}
    id_ = api.subscribed(201, phone("ios", IOS_TOKEN, attributes=GOLD, **auth))

    told = api.subscribed(201, phone("ios", IOS_TOKEN, **theirs))

    assert told != id_
    assert api.gold()["ios"] == 0
    assert api.subscribed(200, phone("ios", IOS_TOKEN, **auth)) == id_
    assert api.gold()["ios"] == 1
    assert (Subscription.objects.count(), subscribers(alice)) == (1, 1)

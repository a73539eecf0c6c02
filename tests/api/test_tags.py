"""Tags that a device says of itself with `POST /subscribe`, and how long they stay."""

import pytest

from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from subscriptions_app.devices.services import subscription_forget
from subscriptions_app.models import Subscription, Tag
from subscriptions_app.tags.services import MAX_TAGS
from tests import factories
from tests.api.support import errors
from tests.pipeline.support import in_threads, statements

ENDPOINT = "https://fcm.googleapis.com/fcm/send/tagged"


def subscribed(owner, device, **fields):
    answer = owner.subscribe(device | fields)
    assert answer.status_code in (200, 201), answer.content
    return answer.json()["subscriptionId"]


def tags_of(subscription_id):
    return sorted(Tag.objects.filter(subscription=subscription_id).values_list("tag", flat=True))


@pytest.fixture
def device():
    return factories.browser(ENDPOINT)


def test_a_device_brings_its_tags(alice, device):
    id_ = subscribed(alice, device, tags=["team-7", "City:Bern_1.0", "team-7"])

    assert tags_of(id_) == ["City:Bern_1.0", "team-7"]
    row = Tag.objects.filter(tag="team-7").get()
    assert (row.channel_id, row.platform) == (alice.channel.id, "web")


def test_tags_replace_and_others_add_and_remove(alice, device):
    id_ = subscribed(alice, device, tags=["a", "b"])
    subscribed(alice, device, add_tags=["c"], remove_tags=["a", "never-had"])
    assert tags_of(id_) == ["b", "c"]
    subscribed(alice, device)
    assert tags_of(id_) == ["b", "c"]
    subscribed(alice, device, tags=["c", "d"])
    assert tags_of(id_) == ["c", "d"]
    subscribed(alice, device, tags=[])
    assert tags_of(id_) == []


def test_a_phone_has_tags_too(db, everywhere):
    phone = factories.phone("ios", "ab" * 32, auth=factories.browser_keys()["auth"])
    id_ = subscribed(everywhere, phone, add_tags=["team-7"])
    assert list(Tag.objects.values_list("platform", "tag")) == [("ios", "team-7")]
    assert tags_of(id_) == ["team-7"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tags": "a"}, [("tags", "not_a_list")]),
        ({"tags": ["a", 5]}, [("tags.1", "not_a_string")]),
        ({"tags": [""]}, [("tags.0", "blank")]),
        ({"tags": ["a b"]}, [("tags.0", "not_a_tag")]),
        ({"add_tags": ["ä"]}, [("add_tags.0", "not_a_tag")]),
        ({"add_tags": ["a\n"]}, [("add_tags.0", "not_a_tag")]),
        ({"remove_tags": ["x" * 65]}, [("remove_tags.0", "not_a_tag")]),
        ({"tags": [str(n) for n in range(101)]}, [("tags", "too_many")]),
        ({"tags": ["a"], "add_tags": ["b"]}, [("tags", "not_combinable")]),
        ({"tags": [], "remove_tags": []}, [("tags", "not_combinable")]),
        ({"add_tags": ["a"], "remove_tags": ["a"]}, [("remove_tags", "given_twice")]),
    ],
)
def test_what_are_no_tags_is_refused_and_nothing_is_stored(alice, device, fields, expected):
    answer = alice.subscribe(device | fields)
    assert errors(answer) == expected
    assert not Subscription.objects.exists()


@pytest.mark.parametrize("is_known", [False, True])
def test_a_device_has_at_most_a_hundred_tags(alice, device, is_known):
    hundred = [f"t{n}" for n in range(MAX_TAGS)]
    id_ = subscribed(alice, device, tags=hundred)
    if not is_known:  # a subscription that has to be moved takes the long way
        device = factories.browser(ENDPOINT + "2", previous_endpoint=ENDPOINT) | {
            "previous_auth": device["keys"]["auth"]
        }

    answer = alice.subscribe(device | {"add_tags": ["one-more"]})

    assert errors(answer) == [("add_tags", "too_many")]
    assert tags_of(id_) == sorted(hundred)
    assert Subscription.objects.get().address == ENDPOINT
    subscribed(alice, device, add_tags=["one-more"], remove_tags=["t0"])
    assert len(tags_of(id_)) == MAX_TAGS


@pytest.mark.django_db(transaction=True)
def test_the_bound_holds_when_a_device_registers_many_times_at_once(alice, device):
    id_ = subscribed(alice, device, tags=[f"t{n}" for n in range(MAX_TAGS - 2)])
    more = [{"add_tags": [f"more-{n}"]} for n in range(8)]

    answers = in_threads(*(lambda each=each: alice.subscribe(device | each) for each in more))

    assert sorted(each.status_code for each in answers) == [200] * 2 + [400] * 6
    assert len(tags_of(id_)) == MAX_TAGS


def test_tags_stay_when_the_device_moves_and_when_it_returns(alice, device):
    id_ = subscribed(alice, device, tags=["team-7"])
    moved = factories.browser(ENDPOINT + "2", previous_endpoint=ENDPOINT)
    moved["previous_auth"] = device["keys"]["auth"]
    assert subscribed(alice, moved) == id_
    assert alice.device("/unsubscribe", moved).status_code == 200
    del moved["previous_endpoint"], moved["previous_auth"]
    assert subscribed(alice, moved) == id_
    assert tags_of(id_) == ["team-7"]


@pytest.mark.parametrize(("tags", "kept"), [([], ["team-7"]), (["team-8"], ["team-8"])])
def test_a_device_with_two_subscriptions_keeps_the_tags_of_one(alice, device, tags, kept):
    """Those of its present one, or else of the one before; none of other devices."""
    first = subscribed(alice, device, tags=["team-7"])
    subscribed(alice, factories.browser(ENDPOINT + "3"), tags=["stranger"])
    other = factories.browser(ENDPOINT + "2")
    second = subscribed(alice, other, tags=tags)
    proof = {"previous_endpoint": ENDPOINT, "previous_auth": device["keys"]["auth"]}
    assert subscribed(alice, other, **proof) == second != first
    assert tags_of(second) == kept


def test_another_device_at_the_address_has_no_tags_of_the_first(alice, device):
    subscribed(alice, device, tags=["team-7"])
    stranger = subscribed(alice, factories.browser(ENDPOINT))
    assert tags_of(stranger) == []


def test_tags_go_with_the_subscription(alice, device):
    id_ = subscribed(alice, device, tags=["team-7"])
    subscription_forget(subscription=Subscription.objects.get(id=id_))
    assert not Tag.objects.exists()
    id_ = subscribed(alice, device, tags=["team-7"])
    sql.execute("DELETE FROM subscriptions_app_subscription WHERE id = %(id)s", {"id": id_})
    assert not Tag.objects.exists()


def test_a_subscribe_without_tags_makes_no_statement_about_them(alice, device):
    """Neither of a new device nor of a known one, nor of one that moves."""
    moved = factories.browser(ENDPOINT + "2", previous_endpoint=ENDPOINT)
    moved["previous_auth"] = device["keys"]["auth"]
    with statements() as made:
        for each in (device, device, moved):
            subscribed(alice, each, attributes={"n": str(uuid7())})
    assert not [each for each in made if "subscriptions_app_tag" in each]

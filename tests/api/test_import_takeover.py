"""The first registration after an import: what the phone keeps, and what a stranger gains."""

from datetime import timedelta

import pytest
from django.utils import timezone

from pushsvc.common.endpoints import TOKEN_SERVICES
from pushsvc.common.platforms import Platform
from subscriptions_app.addresses import Address
from subscriptions_app.importing.services import subscriptions_import
from subscriptions_app.importing.values import Options, Row
from subscriptions_app.models import Person, Subscription
from tests.api.devices import ANDROID_TOKEN
from tests.api.people import new_key, token
from tests.api.support import owner_of
from tests.factories import browser_keys, make_category, make_channel, phone
from tests.pipeline.support import assert_people_exact

pytestmark = pytest.mark.django_db

OTHER_TOKEN = f"{ANDROID_TOKEN}-other"


@pytest.fixture
def alice(db):
    owner = owner_of(make_channel(android_enabled=True, identity="token"))
    make_category(owner.channel)
    return owner


def bring(owner, days=30, **fields):
    """Imports a phone without `auth`. Returns its result."""
    row = Row(
        Address.of(Platform.ANDROID, ANDROID_TOKEN),
        TOKEN_SERVICES[Platform.ANDROID],
        **{
            "external_id": "user-1",
            "attributes": {"plan": "gold"},
            "tags": ["news"],
            "choices": {"offers": False},
            **fields,
        },
    )
    options = Options(takeover_days=days)
    (result,) = subscriptions_import(channel=owner.channel, rows=[row], options=options)
    return result.code or result.outcome


def auth():
    return browser_keys()["auth"]


def registered(owner, address=ANDROID_TOKEN, status=200, **fields):
    answer = owner.subscribe(phone("android", address, **fields))
    assert answer.status_code == status, answer.content
    return answer.json()


def person_at(token):
    row = Subscription.objects.get(address=token, is_set_aside=False)
    return row.person and row.person.external_id


def test_the_first_phone_with_an_auth_keeps_everything(alice):
    bring(alice)
    before = Subscription.objects.get()
    own = auth()
    found = registered(alice, auth=own)
    row = Subscription.objects.get()
    assert (found["subscriptionId"], row.auth) == (str(before.pk), own)
    assert (row.person.external_id, row.attributes) == ("user-1", {"plan": "gold"})
    assert (row.choices, row.tags.get().tag) == ({"offers": False}, "news")
    assert_people_exact(alice.channel)


def test_a_phone_without_auth_leaves_the_takeover_to_the_one_that_has_one(alice):
    bring(alice)
    registered(alice)
    registered(alice, auth=auth())
    assert person_at(ANDROID_TOKEN) == "user-1"


def test_only_the_first_phone_takes_over(alice):
    bring(alice)
    registered(alice, auth=auth())
    registered(alice, auth=auth(), status=201)
    assert person_at(ANDROID_TOKEN) is None


@pytest.mark.parametrize("is_over", [True, False])
def test_without_a_takeover_the_phone_is_another_device(alice, is_over):
    bring(alice, days=30 if is_over else 0)
    if is_over:
        Subscription.objects.update(takeover_until=timezone.now() - timedelta(seconds=1))
    registered(alice, auth=auth(), status=201)
    assert person_at(ANDROID_TOKEN) is None


def end_takeover():
    Subscription.objects.update(takeover_until=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("proof", ["auth", "id"])
def test_a_stranger_cannot_move_the_subscription_to_another_phone(alice, is_over, proof):
    """Neither the person, whose messages it would get, nor attributes and tags. Not by waiting."""
    bring(alice)
    own = auth()
    id_ = registered(alice, auth=own)["subscriptionId"]
    if is_over:
        end_takeover()
    claimed = {"previous_auth": own} if proof == "auth" else {"previous_subscription_id": id_}
    claimed["previous_endpoint"] = ANDROID_TOKEN
    other = registered(alice, OTHER_TOKEN, auth=auth(), status=201, **claimed)
    row = Subscription.objects.get(address=OTHER_TOKEN)
    assert (other["subscriptionId"] != id_, row.person, row.attributes) == (True, None, {})
    assert not row.tags.exists()
    assert person_at(ANDROID_TOKEN) == "user-1"
    assert_people_exact(alice.channel)


def test_a_stranger_cannot_move_what_the_phone_has_replaced(alice):
    bring(alice)
    own = auth()
    registered(alice, auth=own)
    registered(alice, auth=auth(), status=201)
    end_takeover()
    registered(alice, OTHER_TOKEN, auth=own, status=201, previous_endpoint=ANDROID_TOKEN)
    assert person_at(OTHER_TOKEN) is None


def test_a_phone_that_signed_in_moves_with_its_person(alice):
    bring(alice)
    own, key = auth(), new_key(alice)
    registered(alice, auth=own)
    signed = {"external_id": "user-1", "identity_token": token(alice, key, "user-1")}
    registered(alice, auth=own, **signed)
    registered(alice, OTHER_TOKEN, auth=own, previous_endpoint=ANDROID_TOKEN)
    assert person_at(OTHER_TOKEN) == "user-1"
    assert Subscription.objects.get().attributes == {"plan": "gold"}


def test_an_anonymous_phone_moves_after_the_takeover(alice):
    bring(alice, external_id=None)
    own = auth()
    registered(alice, auth=own)
    end_takeover()
    registered(alice, OTHER_TOKEN, auth=own, previous_endpoint=ANDROID_TOKEN)
    assert Subscription.objects.get().attributes == {"plan": "gold"}


def test_a_stranger_neither_reads_nor_changes_what_the_person_chose(alice):
    bring(alice, choices=None)
    Person.objects.update(choices={"offers": True})
    own = auth()
    registered(alice, auth=own)
    device = {"platform": "android", "provider_token": ANDROID_TOKEN, "auth": own}
    answer = alice.device("/preferences", device | {"choices": {"offers": False}})
    assert answer.status_code == 200, answer.content
    assert Person.objects.get().choices == {"offers": True}
    found = alice.device("/preferences", device).json()["categories"][0]
    assert (found["key"], found["chosen"]) == ("offers", False)


def test_a_stranger_cannot_try_external_ids(alice):
    """The answer is the same for the person and for another one: before and after the takeover."""
    bring(alice)
    own = auth()

    def tried():
        return [
            registered(alice, auth=own, external_id=each, status=403)["code"]
            for each in ("user-1", "user-2")
        ]

    assert tried() == ["identity_refused"] * 2
    assert Subscription.objects.get().auth == ""
    registered(alice, auth=own)
    assert tried() == ["identity_refused"] * 2
    end_takeover()
    assert tried() == ["identity_refused"] * 2


def test_a_phone_that_registered_before_the_import_gets_the_person_only_with_a_takeover(alice):
    own = auth()
    registered(alice, auth=own, status=201)
    assert bring(alice, days=0) == "device_unproven"
    assert bring(alice, days=30) == "updated"
    row = Subscription.objects.get()
    assert (row.person.external_id, row.auth) == ("user-1", own)
    registered(alice, OTHER_TOKEN, auth=own, status=201, previous_endpoint=ANDROID_TOKEN)
    assert person_at(OTHER_TOKEN) is None
    assert_people_exact(alice.channel)


def test_importing_again_changes_nothing_that_was_taken_over(alice):
    bring(alice)
    registered(alice, auth=auth(), language="pt")
    before = Subscription.objects.values().get()
    assert bring(alice, language="de") == "unchanged"
    assert Subscription.objects.values().get() == before


def test_another_phones_keys_are_not_replaced(alice):
    registered(alice, auth=auth(), status=201)
    assert bring(alice, auth=auth()) == "other_keys"

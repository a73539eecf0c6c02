"""What devices choose: POST /preferences."""

import pytest

from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.models import Person, Subscription
from tests.api.devices import ANDROID_TOKEN
from tests.api.support import NOWHERE, code, errors
from tests.factories import browser, make_category, phone
from tests.pipeline.support import in_threads, waits_for

ENDPOINT = "https://fcm.googleapis.com/fcm/send/abc"
TOKEN = "a1" * 32


pytestmark = pytest.mark.django_db


@pytest.fixture
def shop(everywhere):
    """With a category that nobody wants by default, and one that all do."""
    make_category(everywhere.channel, "offers", default=False)
    make_category(everywhere.channel, "news", default=True)
    return everywhere


def asked(owner, choices=None, **device):
    body = (device or {"endpoint": ENDPOINT}) | ({} if choices is None else {"choices": choices})
    return owner.device("/preferences", body)


def chosen(owner, choices=None, **device):
    response = asked(owner, choices, **device)
    assert response.status_code == 200, response.content
    return {each["key"]: each["chosen"] for each in response.json()["categories"]}


def stored():
    return Subscription.objects.get().choices


def test_an_unknown_device_gets_the_defaults_and_nothing_is_stored(shop):
    assert chosen(shop) == {"offers": False, "news": True}
    assert chosen(shop, {"offers": True}) == {"offers": False, "news": True}
    assert not Subscription.objects.exists()


def test_the_answer_describes_the_categories(shop):
    shop.subscribe(browser(ENDPOINT))
    answer = asked(shop, {"offers": True}).json()
    assert answer["categories"][0] == {
        "key": "offers",
        "name": "Offers",
        "description": "",
        "chosen": True,
    }


def test_a_device_chooses_and_takes_a_choice_back(shop):
    shop.subscribe(browser(ENDPOINT))

    assert chosen(shop, {"offers": True, "news": False}) == {"offers": True, "news": False}
    assert stored() == {"offers": True, "news": False}
    assert chosen(shop, {"news": None}) == {"offers": True, "news": True}
    assert stored() == {"offers": True}
    assert chosen(shop) == {"offers": True, "news": True}


@pytest.mark.parametrize(
    ("subscribed", "named"),
    [
        (phone("ios", TOKEN), {"platform": "ios", "provider_token": TOKEN.upper()}),
        (phone("android", ANDROID_TOKEN), {"platform": "android", "endpoint": ANDROID_TOKEN}),
    ],
)
def test_a_phone_names_its_token(shop, subscribed, named):
    shop.subscribe(subscribed)
    assert chosen(shop, {"offers": True}, **named)["offers"] is True
    assert stored() == {"offers": True}


def test_choices_stay_when_the_device_returns(shop):
    device = browser(ENDPOINT)
    shop.subscribe(device)
    chosen(shop, {"offers": True})

    shop.subscribe(device)
    subscription_unsubscribe(channel=shop.channel, address=Address.of("web", ENDPOINT))
    shop.subscribe(device)

    assert chosen(shop) == {"offers": True, "news": True}


def test_a_device_with_two_rows_keeps_what_it_chose(shop):
    old, new = browser(ENDPOINT), browser(f"{ENDPOINT}2")
    for device in (old, new):
        shop.subscribe(device)
    chosen(shop, {"offers": True})

    moved = {"previous_endpoint": ENDPOINT, "previous_auth": old["keys"]["auth"]}
    shop.subscribe(new | moved)

    assert chosen(shop, endpoint=new["endpoint"])["offers"] is True


def test_another_device_at_the_address_does_not_inherit_choices(shop):
    shop.subscribe(browser(ENDPOINT))
    chosen(shop, {"offers": True})
    shop.subscribe(browser(ENDPOINT))
    assert chosen(shop) == {"offers": False, "news": True}


@pytest.mark.parametrize(
    ("choices", "error"),
    [
        ([], ("choices", "not_an_object")),
        ({"offers": "yes"}, ("choices.offers", "not_a_boolean")),
        ({f"c{n}": True for n in range(31)}, ("choices", "too_many")),
        ({"other": True}, ("choices.other", "category_unknown")),
    ],
)
def test_an_error_is_named_and_changes_nothing(shop, choices, error):
    shop.subscribe(browser(ENDPOINT))
    response = shop.device("/preferences", {"endpoint": ENDPOINT, "choices": choices})
    assert errors(response) == [error]
    assert stored() == {}


def test_an_archived_category_cannot_be_chosen(shop):
    shop.call("DELETE", f"/channel/{shop.channel.id}/categories/offers")
    assert errors(asked(shop, {"offers": True})) == [("choices.offers", "category_unknown")]
    assert chosen(shop) == {"news": True}


def test_a_device_of_another_channel_is_unknown(shop, bob):
    make_category(bob.channel, "offers", default=False)
    shop.subscribe(browser(ENDPOINT))

    assert chosen(bob, {"offers": True}) == {"offers": False}
    assert stored() == {}
    assert code(shop.device("/preferences", {}, **{"X-Channel-ID": NOWHERE}), 404)


@pytest.mark.django_db(transaction=True)
def test_two_choices_at_once_are_both_kept(shop):
    shop.subscribe(browser(ENDPOINT))
    in_threads(lambda: asked(shop, {"offers": True}), lambda: asked(shop, {"news": False}))
    assert stored() == {"offers": True, "news": False}


# --- a device of a person -------------------------------------------------------------------------


def linked(owner, device, **choices):
    person = Person.objects.create(
        channel=owner.channel, external_id="user-42", active_devices=1, choices=choices
    )
    owner.subscribe(device)
    Subscription.objects.update(person=person)
    return person


@pytest.mark.parametrize(
    "device", [browser(ENDPOINT), phone("ios", TOKEN, auth=browser()["keys"]["auth"])]
)
def test_a_device_of_a_person_has_the_persons_choices(shop, device):
    person = linked(shop, device, offers=True)

    assert chosen(shop, **device) == {"offers": True, "news": True}
    assert chosen(shop, {"news": False}, **device) == {"offers": True, "news": False}

    person.refresh_from_db()
    assert person.choices == {"offers": True, "news": False}
    assert stored() == {}


@pytest.mark.django_db(transaction=True)
def test_a_choice_during_a_sign_in_is_the_persons(shop):
    device = browser(ENDPOINT)
    person = linked(shop, device)
    Subscription.objects.update(person=None)

    def sign_in():
        Subscription.objects.update(person=person)

    with waits_for(sign_in, lambda: asked(shop, {"news": False}, **device)):
        pass

    person.refresh_from_db()
    assert person.choices == {"news": False}
    assert stored() == {}


@pytest.mark.parametrize("choices", [None, {"offers": True, "news": False}])
@pytest.mark.parametrize(
    ("subscribed", "without_proof"),
    [
        (browser(ENDPOINT), [{"endpoint": ENDPOINT}, browser(ENDPOINT)]),
        (phone("ios", TOKEN, auth=browser()["keys"]["auth"]), [phone("ios", TOKEN)]),
        (phone("ios", TOKEN), [phone("ios", TOKEN)]),
    ],
    ids=["a browser", "a phone", "a phone without auth"],
)
def test_without_proof_a_device_of_a_person_answers_and_stores_like_an_anonymous_one(
    shop, subscribed, without_proof, choices
):
    person = linked(shop, subscribed, offers=True, news=True)
    answers = [asked(shop, choices, **each).content for each in without_proof]
    assert stored() == (choices or {})

    Subscription.objects.update(person=None, choices={})
    assert [asked(shop, choices, **each).content for each in without_proof] == answers
    assert stored() == (choices or {})
    person.refresh_from_db()
    assert person.choices == {"offers": True, "news": True}


def test_what_was_chosen_without_proof_counts_for_the_device_until_the_person_chooses(shop):
    device = browser(ENDPOINT)
    person = linked(shop, device)
    chosen(shop, {"offers": True, "news": False}, endpoint=ENDPOINT)
    assert chosen(shop, **device) == {"offers": True, "news": False}

    assert chosen(shop, {"news": True}, **device) == {"offers": True, "news": True}
    assert chosen(shop, {"news": None}, **device) == {"offers": True, "news": True}

    assert stored() == {"offers": True}
    person.refresh_from_db()
    assert person.choices == {}

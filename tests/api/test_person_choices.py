"""What a person chooses: what links of devices do to it, and a token of the person's own."""

import pytest
from auditlog.models import LogEntry

from channels_app.models import Channel
from notifications_app import retention
from subscriptions_app.models import Person
from tests.api.people import new_key, token
from tests.api.persons import USER, change, is_active, read, row, sign_in
from tests.api.support import code, errors
from tests.factories import browser, phone

pytestmark = pytest.mark.django_db

ELSEWHERE = "https://fcm.googleapis.com/fcm/send"


def preferences(owner, **body):
    return owner.device("/preferences", body)


def choose(owner, device, **choices):
    response = preferences(owner, **device, choices=choices)
    assert response.status_code == 200, response.content


# --- links and choices ----------------------------------------------------------------------------


def test_a_person_takes_over_choices_that_they_have_not_made(shop):
    sign_in(shop, browser("https://fcm.googleapis.com/1"))
    change(shop, choices={"news": False})
    device = browser("https://fcm.googleapis.com/2")
    shop.subscribe(device)
    choose(shop, device, offers=True, news=True)

    sign_in(shop, device)

    assert read(shop)["choices"] == {"offers": True, "news": False}
    assert row(device).choices == {}


def test_a_device_that_is_unlinked_has_no_choices(shop):
    device = browser()
    shop.subscribe(device)
    choose(shop, device, offers=True)
    sign_in(shop, device)
    shop.subscribe(device | {"external_id": None})

    assert row(device).choices == {}
    assert read(shop)["choices"] == {"offers": True}
    wanted = preferences(shop, **device).json()["categories"]
    assert {each["key"]: each["chosen"] for each in wanted} == {"offers": False, "news": True}


def test_a_device_that_chooses_as_ever_other_people_keeps_only_as_many(shop):
    """As the channel may have subscribers, where nobody proves who they are."""
    device = browser()
    for number in range(6):
        shop.subscribe(device | {"external_id": f"user-{number}"})
        choose(shop, device, offers=True)
    shop.subscribe(device | {"external_id": None})
    Channel.objects.update(max_subscriptions=2)

    retention.purge()

    kept = Person.objects.order_by("external_id").values_list("external_id", flat=True)
    assert list(kept) == ["user-4", "user-5"]
    Channel.objects.update(max_subscriptions=1, identity="proof")
    retention.purge()
    assert Person.objects.count() == 2


def test_a_backend_that_links_devices_moves_their_choices_too(shop):
    device = browser()
    shop.subscribe(device)
    choose(shop, device, offers=True)

    def link(external_id):
        links = [{"subscription_id": str(row(device).id), "external_id": external_id}]
        shop.call("POST", f"/channel/{shop.channel.id}/people/devices", {"links": links})

    link(USER)
    assert read(shop)["choices"] == {"offers": True}
    link("another")
    assert read(shop, "another")["choices"] == {}
    link(None)
    assert row(device).choices == {}


# --- choices without proof ------------------------------------------------------------------------


def wanted(owner, device):
    answer = preferences(owner, **device).json()["categories"]
    return {each["key"]: each["chosen"] for each in answer}


def by_link(owner, device):
    links = [{"subscription_id": str(row(device).id), "external_id": USER}]
    owner.call("POST", f"/channel/{owner.channel.id}/people/devices", {"links": links})


@pytest.mark.parametrize("link", [sign_in, by_link])
def test_who_knows_only_the_endpoint_changes_no_choice_of_the_person_who_signs_in(shop, link):
    """It stays with the device until the person chooses, and no other device has it."""
    device, other = browser(f"{ELSEWHERE}/1"), browser(f"{ELSEWHERE}/2")
    sign_in(shop, other)
    shop.subscribe(device)
    choose(shop, {"endpoint": device["endpoint"]}, offers=True, news=False)

    link(shop, device)

    assert read(shop)["choices"] == {}
    assert wanted(shop, other) == {"offers": False, "news": True}
    assert wanted(shop, device) == {"offers": True, "news": False}
    choose(shop, device, news=True)
    change(shop, choices={"offers": None})
    assert read(shop)["choices"] == {"news": True}
    assert wanted(shop, device) == wanted(shop, other) == {"offers": False, "news": True}
    shop.subscribe(device | {"external_id": None})
    assert row(device).choices == {}


def test_a_choice_with_proof_goes_along_unless_somebody_without_proof_has_changed_it(shop):
    device = browser()
    shop.subscribe(device)
    choose(shop, device, offers=True, news=False)
    choose(shop, {"endpoint": device["endpoint"]}, news=True)

    sign_in(shop, device)

    assert read(shop)["choices"] == {"offers": True}
    assert row(device).choices == {"news": True}
    assert row(device).proven_choices == {}


def test_who_signs_a_phone_without_auth_out_changes_no_choice_of_its_person(shop):
    """Such a phone cannot prove itself, so everyone who knows its token can do what it can."""
    known = phone("ios", "a1" * 32)
    sign_in(shop, known)
    shop.subscribe(known | {"external_id": None})
    choose(shop, known, offers=True)

    sign_in(shop, known)

    assert read(shop)["choices"] == {}
    assert wanted(shop, known) == {"offers": True, "news": True}


def test_who_knows_the_id_of_a_subscription_chooses_nothing_for_the_browser_that_returns(shop):
    """The id moves the subscription to other keys, whose owner then chooses with proof."""
    own, theirs = browser(), browser()
    shop.subscribe(own)
    proof = {"previous_subscription_id": str(row(own).id)}
    shop.subscribe(theirs | proof)
    choose(shop, theirs, offers=True)

    sign_in(shop, own | proof)

    assert read(shop)["choices"] == {}
    assert row(own).choices == {"offers": True}


def test_choices_with_proof_move_along_with_the_device(shop):
    old, new = browser(f"{ELSEWHERE}/1"), browser(f"{ELSEWHERE}/2")
    shop.subscribe(old)
    choose(shop, old, offers=True)
    moved = {"previous_endpoint": old["endpoint"], "previous_auth": old["keys"]["auth"]}

    shop.subscribe(new | moved)
    sign_in(shop, new)

    assert read(shop)["choices"] == {"offers": True}


# --- a person's own preferences -------------------------------------------------------------------


@pytest.fixture
def proven(shop):
    shop.channel.identity = "proof"
    shop.channel.save()
    return new_key(shop)


def chosen(response):
    assert response.status_code == 200, response.content
    answer = response.json()
    return {each["key"]: each["chosen"] for each in answer["categories"]}, answer["opted_out"]


def test_a_token_reads_and_changes_what_the_person_wants(shop, proven):
    sent = token(shop, proven, USER)

    assert chosen(preferences(shop, identity_token=sent)) == (
        {"offers": False, "news": True},
        False,
    )
    assert not Person.objects.exists()
    told = preferences(shop, identity_token=sent, choices={"offers": True})
    assert chosen(told) == ({"offers": True, "news": True}, False)
    assert Person.objects.get().choices == {"offers": True}
    assert read(shop)["choices"] == {"offers": True}


def test_a_token_opts_out_and_in(shop, proven):
    sent = token(shop, proven, USER)
    device = browser()
    shop.subscribe(device | {"external_id": USER, "identity_token": sent})

    assert chosen(preferences(shop, identity_token=sent, opted_out=True))[1] is True
    assert not is_active(device)
    assert chosen(preferences(shop, identity_token=sent, opted_out=False))[1] is False
    shop.subscribe(device)
    assert is_active(device)
    assert not LogEntry.objects.filter(content_type__model="person").exists()


def test_somebody_may_opt_out_before_they_have_a_device(shop, proven):
    sent = token(shop, proven, USER)
    preferences(shop, identity_token=sent, opted_out=True)
    device = browser()
    shop.subscribe(device | {"external_id": USER, "identity_token": sent})
    assert not is_active(device)


def test_a_token_that_proves_nobody_is_refused(shop, proven, bob):
    foreign = token(bob, new_key(bob), USER)
    for text in ("x.y.z", foreign, token(shop, proven, USER, exp=1), token(shop, proven, "null")):
        response = preferences(shop, identity_token=text, opted_out=True)
        assert code(response, 403) == "identity_refused"
    assert not Person.objects.exists()


def test_a_device_alone_cannot_opt_a_person_out(shop):
    device = sign_in(shop, browser())
    response = preferences(shop, **device, opted_out=True)
    assert errors(response) == [("opted_out", "not_combinable")]
    assert is_active(device)


def test_a_channel_that_knows_no_people_has_no_preferences_of_them(shop, proven):
    shop.channel.identity = "off"
    shop.channel.save()
    sent = token(shop, proven, USER)
    assert errors(preferences(shop, identity_token=sent)) == [("external_id", "identity_off")]

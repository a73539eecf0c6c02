"""What a person chooses: what links of devices do to it, and a token of the person's own."""

import pytest
from auditlog.models import LogEntry

from subscriptions_app.models import Person
from tests.api.people import new_key, token
from tests.api.persons import USER, change, is_active, read, row, sign_in
from tests.api.support import code, faults
from tests.factories import browser

pytestmark = pytest.mark.django_db


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
    assert faults(response) == [("opted_out", "not_combinable")]
    assert is_active(device)


def test_a_channel_that_knows_no_people_has_no_preferences_of_them(shop, proven):
    shop.channel.identity = "off"
    shop.channel.save()
    sent = token(shop, proven, USER)
    assert faults(preferences(shop, identity_token=sent)) == [("external_id", "identity_off")]

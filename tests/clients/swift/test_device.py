"""The core of clients/ios against the service, through a gate that fails on demand."""

import base64
import json
import secrets

import pytest
from django.contrib.auth.models import User

from notifications_app.models import Notification
from subscriptions_app.devices.test_devices import device_names, invite
from subscriptions_app.models import Subscription
from tests.api.people import new_key, token
from tests.clients.swift import chroot
from tests.clients.swift.devices import PNG, delivered, eventually, row_of, tags_of
from tests.factories import make_category

UNREACHABLE = {"code": "unreachable", "problem": "", "will_retry": True}


def new_token():
    return secrets.token_hex(32)


def answer(status, code="some_code", **headers):
    body = json.dumps({"status": status, "code": code}).encode()
    return status, {"Content-Type": "application/problem+json"} | headers, body


def person_of(owner):
    person = row_of(owner).person
    return person and person.external_id


@pytest.fixture
def device(start):
    """A device that is subscribed."""
    device = start()
    assert device("register", token=new_token()) is True
    return device


# --- the subscription -----------------------------------------------------------------------------


def test_a_device_registers_with_its_own_auth(start, gate, owner):
    device, its_token = start(), new_token()

    assert device("register", token=its_token) is True

    row = row_of(owner)
    assert device("state") == {"subscribed": True, "id": str(row.pk)}
    [body] = gate.asked("/subscribe")
    assert len(base64.urlsafe_b64decode(body.pop("auth") + "==")) == 16
    assert body == {"platform": "ios", "provider_token": its_token}
    assert (row.platform, row.expired_at) == ("ios", None)


def test_the_time_zone_and_the_language_are_registered_if_the_app_wants_that(start, owner):
    device = start(LOCALE="yes", TZ="Europe/Berlin")
    assert device("register", token=new_token()) is True
    assert row_of(owner).timezone == "Europe/Berlin"


def test_a_time_zone_that_the_service_does_not_know_does_not_cost_the_subscription(start, gate):
    device = start(LOCALE="yes")
    problem = {"status": 400, "code": "validation_error"}
    refused = problem | {"errors": [{"attr": "timezone", "code": "not_a_timezone"}]}
    gate.answers = [(400, {}, json.dumps(refused).encode())]

    assert device("register", token=new_token()) is True

    assert "timezone" in gate.asked("/subscribe")[0]
    assert "timezone" not in gate.asked("/subscribe")[1]
    assert device.heard("failed")["failed"]["code"] == "refused"


def test_a_changed_token_keeps_the_subscription(device, owner):
    before = row_of(owner)

    assert device("register", token=new_token()) is True

    after = row_of(owner)
    assert after.pk == before.pk
    assert after.address_sha256 != before.address_sha256


def test_a_token_that_changed_while_the_app_was_not_running_keeps_the_subscription(
    device, start, owner
):
    before = row_of(owner)
    device.kill()

    later = start(folder=device.folder)
    assert later("register", token=new_token()) is True

    assert row_of(owner).pk == before.pk
    assert later("state")["id"] == str(before.pk)


def test_the_device_registers_at_every_start_and_not_in_between(device, start, gate):
    its_token = gate.asked("/subscribe")[0]["provider_token"]
    device("register", token=its_token)
    device("resume")
    assert len(gate.asked("/subscribe")) == 1
    device.kill()

    start(folder=device.folder)("register", token=its_token)

    assert len(gate.asked("/subscribe")) == 2


def test_a_device_that_unsubscribed_stays_so_at_the_next_start(device, start, gate, owner):
    assert device("unsubscribe") is True
    assert row_of(owner).expired_code == "unsubscribed"
    assert device("state") == {"subscribed": False, "id": ""}
    before = row_of(owner).pk
    device.kill()

    later = start(folder=device.folder)
    assert later("register", token=new_token()) is True
    assert len(gate.asked("/subscribe")) == 1
    assert row_of(owner).expired_at is not None

    assert later("subscribe") is True
    assert row_of(owner).expired_at is None
    assert later("state") == {"subscribed": True, "id": str(before)}


def test_unsubscribing_without_a_network_is_told_at_the_next_start(device, start, gate, owner):
    gate.is_closed = True
    assert device("unsubscribe") == UNREACHABLE
    assert device("state")["subscribed"] is False
    device.kill()
    gate.is_closed = False

    start(folder=device.folder)("resume")

    assert row_of(owner).expired_code == "unsubscribed"
    assert len(gate.asked("/subscribe")) == 1


def test_unsubscribing_while_the_first_registration_is_under_way_wins(start, gate, owner):
    device = start()
    gate.answers = [None]
    device("register", token=new_token())
    device.heard("pause")
    device.tell({"do": "wake"})
    device.tell({"do": "unsubscribe"})
    eventually(lambda: device.heard("ok") and gate.asked("/unsubscribe"))

    eventually(lambda: not Subscription.objects.filter(channel=owner.channel, expired_at=None))


# --- retries --------------------------------------------------------------------------------------


def test_a_device_without_a_network_registers_as_soon_as_there_is_one(start, gate, owner):
    gate.is_closed = True
    device = start()
    assert device("register", token=new_token()) == UNREACHABLE
    assert 0.5 <= device.heard("pause")["pause"] <= 1

    device("wake")
    assert 1 <= device.heard("pause")["pause"] <= 2
    gate.is_closed = False
    device("wake")

    eventually(lambda: Subscription.objects.filter(channel=owner.channel).exists())


def test_what_was_said_without_a_network_is_sent_at_the_next_start(start, gate, owner):
    key = new_key(owner)
    gate.is_closed = True
    device = start()
    calls = [
        ("register", {"token": new_token()}),
        ("login", {"id": "user-42", "token": token(owner, key)}),
        ("add", {"tags": ["a", "b"]}),
        ("remove", {"tags": ["a"]}),
        ("attributes", {"attributes": {"plan": "gold", "level": 7}}),
    ]
    for do, more in calls:
        assert device(do, **more) == UNREACHABLE
    device.kill()
    gate.is_closed = False

    start(folder=device.folder)("resume")

    assert person_of(owner) == "user-42"
    assert tags_of(owner) == ["b"]
    assert row_of(owner).attributes == {"plan": "gold", "level": 7}
    assert len(gate.asked("/subscribe")) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_temporary_error_is_retried(start, gate, owner, status):
    gate.answers = [answer(status)]
    device = start()
    told = device("register", token=new_token())
    assert told == {"code": "unreachable", "problem": "some_code", "will_retry": True}
    device.heard("pause")

    device("wake")

    eventually(lambda: Subscription.objects.filter(channel=owner.channel).exists())
    assert len(gate.asked("/subscribe")) == 2


def test_the_page_of_a_wireless_network_is_not_taken_for_the_service(start, gate, owner):
    gate.answers = [(200, {"Content-Type": "text/html"}, b"<h1>Sign in to use this network</h1>")]
    device = start()

    assert device("register", token=new_token()) == UNREACHABLE

    device.heard("pause")
    device("wake")
    eventually(lambda: Subscription.objects.filter(channel=owner.channel).exists())


def test_nothing_is_sent_before_retry_after_has_passed(start, gate):
    gate.answers = [answer(429, **{"Retry-After": "70"})]
    device = start()
    device("register", token=new_token())

    assert device.heard("pause")["pause"] == 70
    assert device("add", tags=["a"]) == UNREACHABLE
    device("resume")

    assert len(gate.asked("/subscribe")) == 1


def test_a_pause_is_never_longer_than_an_hour(start, gate):
    gate.answers = [answer(503, **{"Retry-After": "9999999"})]
    device = start()
    device("register", token=new_token())
    assert device.heard("pause")["pause"] == 3600


@pytest.mark.parametrize("status", [400, 404, 413])
def test_a_refusal_is_thrown_and_not_retried(start, gate, owner, status):
    gate.answers = [answer(status, "channel_not_found")]
    device = start()

    told = device("register", token=new_token())

    assert told == {"code": "refused", "problem": "channel_not_found", "will_retry": False}
    device("state")
    assert not any("pause" in line for line in device.unread)
    assert not Subscription.objects.filter(channel=owner.channel).exists()


# --- the user, tags, attributes -------------------------------------------------------------------


def test_a_login_is_proved_once_and_a_logout_unlinks(device, gate, owner):
    key = new_key(owner)
    login = {"id": "user-42", "token": token(owner, key)}
    assert device("login", **login) is True
    assert person_of(owner) == "user-42"
    calls = len(gate.asked("/subscribe"))
    assert device("login", **login) is True
    assert len(gate.asked("/subscribe")) == calls

    assert device("logout") is True

    assert person_of(owner) is None


def test_a_login_before_the_first_token_waits_for_it(start, gate, owner):
    device = start()
    assert device("login", id="user-42", token=token(owner, new_key(owner))) is True
    assert gate.requests == []

    assert device("register", token=new_token()) is True

    assert person_of(owner) == "user-42"


def test_a_login_that_is_refused_does_not_cost_the_subscription(start, gate, owner):
    new_key(owner)
    device = start()
    device("login", id="user-42", token="not.a.token")

    assert device("register", token=new_token()) is True

    failed = device.heard("failed")["failed"]
    assert failed == {"code": "refused", "problem": "identity_refused", "will_retry": False}
    assert person_of(owner) is None
    assert device("add", tags=["a"]) is True  # and the login is not sent again
    assert "external_id" not in gate.asked("/subscribe")[-1]
    refused = device("login", id="user-42", token="not.a.token")
    assert refused["problem"] == "identity_refused"


def test_a_tag_that_is_refused_is_thrown_and_the_rest_is_stored(device, gate, owner):
    told = device("add", tags=["not a tag"])
    assert (told["code"], told["problem"]) == ("refused", "validation_error")

    assert device("add", tags=["fine"]) is True

    assert tags_of(owner) == ["fine"]


def test_tags_and_attributes_change(device, owner):
    device("add", tags=["a", "b"])
    device("remove", tags=["a"])
    device("attributes", attributes={"city": "Köln"})
    assert tags_of(owner) == ["b"]
    assert row_of(owner).attributes == {"city": "Köln"}


# --- preferences ----------------------------------------------------------------------------------


def test_preferences_are_read_and_changed(device, gate, owner):
    make_category(owner.channel, "offers", default=False)
    make_category(owner.channel, "news", default=True)
    assert device("preferences") == {"offers": False, "news": True}

    assert device("prefer", choices={"offers": True}) == {"offers": True, "news": True}
    assert device("prefer", choices={"offers": None}) == {"offers": False, "news": True}

    gate.is_closed = True
    assert device("preferences") == UNREACHABLE | {"will_retry": False}


def test_preferences_of_a_person_are_read_with_the_devices_proof(device, owner):
    make_category(owner.channel, "offers", default=False)
    device("login", id="user-42", token=token(owner, new_key(owner)))
    device("prefer", choices={"offers": True})
    assert row_of(owner).person.choices == {"offers": True}


def test_a_device_that_is_not_subscribed_has_no_preferences(start):
    assert start()("preferences")["code"] == "notSubscribed"


def test_the_invitation_of_a_qr_code_makes_the_device_a_test_device(start, gate, owner):
    sender = User.objects.create_user("sender", is_staff=True)
    owner.channel.account.memberships.create(user=sender, role="sender")
    invitation = invite(channel=owner.channel, name="the kitchen phone", user=sender)
    device = start()
    assert device("join", id=invitation)["code"] == "notSubscribed"

    device("register", token=new_token())
    assert device("join", id=invitation + "x")["problem"] == "forbidden"
    gate.is_closed = True
    assert device("join", id=invitation) == UNREACHABLE | {"will_retry": False}
    gate.is_closed = False
    assert device("join", id=invitation) is True
    assert device_names(owner.channel.pk) == {row_of(owner).pk: "the kitchen phone"}


# --- notifications --------------------------------------------------------------------------------


@pytest.fixture
def iphone(device, apple, gate):
    """The device with a token that Apple knows."""
    phone = apple.register()
    device("register", token=phone.token)
    device.token = phone.token
    return device


def test_reports_are_counted_once(iphone, owner, apple):
    payload, sent = delivered(owner, apple, iphone.token)

    for _ in range(2):
        iphone("report", payload=payload, event="received")
        iphone("report", payload=payload, event="clicked")

    eventually(lambda: Notification.objects.get(pk=sent.pk).clicked_count == 1)


def test_reports_without_a_network_are_sent_later_in_one_call(iphone, start, gate, owner, apple):
    payload, sent = delivered(owner, apple, iphone.token)
    gate.is_closed = True
    iphone("report", payload=payload, event="received")
    iphone("report", payload=payload, event="clicked")
    iphone("report", payload=payload, event="clicked")
    iphone.kill()
    gate.is_closed = False

    start(folder=iphone.folder)("resume")

    [body] = gate.asked("/events")
    assert [each["event"] for each in body["events"]] == ["received", "clicked"]
    eventually(lambda: Notification.objects.get(pk=sent.pk).clicked_count == 1)


def test_reports_wait_for_retry_after_and_are_dropped_if_refused(iphone, gate, owner, apple):
    payload, _ = delivered(owner, apple, iphone.token)
    gate.answers = [answer(429, **{"Retry-After": "70"}), answer(400)]
    iphone("report", payload=payload, event="received")
    assert iphone.heard("pause")["pause"] == 70
    iphone("report", payload=payload, event="clicked")
    assert len(gate.asked("/events")) == 1

    iphone("wake")
    eventually(lambda: len(gate.asked("/events")) == 2)
    iphone("resume")

    assert len(gate.asked("/events")) == 2


def test_a_link_is_the_buttons_if_it_has_one(iphone, owner, apple):
    actions = [
        {"id": "track", "title": "Track it", "url": "https://shop.example/track"},
        {"id": "later", "title": "Later"},
    ]
    content = {"url": "https://shop.example/", "ios": {"url": "shop://orders"}, "actions": actions}
    payload, _ = delivered(owner, apple, iphone.token, **content)

    links = [iphone("link", payload=payload, button=each) for each in (None, "track", "later")]

    assert links == ["shop://orders", "https://shop.example/track", "shop://orders"]


def test_a_notification_of_others_is_not_reported(device, gate):
    others = json.dumps({"aps": {"alert": "Hello"}, "token": "abc"})
    assert device("report", payload=others, event="clicked") == "foreign"
    assert gate.asked("/events") == []


# --- images ---------------------------------------------------------------------------------------


def test_an_image_is_downloaded_with_the_ending_of_its_type(start, images):
    path = start()("image", url=f"{images}/rain.png")
    assert path.endswith(".png")
    assert (chroot.ROOT / path.lstrip("/")).read_bytes() == PNG


@pytest.mark.parametrize("name", ["page", "gone.png", "large.jpg", "empty.gif"])
def test_what_ios_cannot_attach_is_no_image(start, images, name):
    assert start()("image", url=f"{images}/{name}") == ""


def test_an_image_that_cannot_be_reached_is_none(start):
    assert start()("image", url="http://127.0.0.1:9/rain.png") == ""

"""The app and the extension of docs/apns.md run, on stubs that play iOS, against the service."""

import json

import pytest

from notifications_app.models import Notification
from subscriptions_app.models import Subscription
from tests.clients.swift.devices import delivered, eventually, row_of, tags_of

BANNER_LIST_SOUND_BADGE = 1 << 4 | 1 << 3 | 1 << 1 | 1 << 0
DISMISS = "com.apple.UNNotificationDismissActionIdentifier"


@pytest.fixture
def app(start, apple):
    """The app, with a token that Apple knows."""
    phone = apple.register()
    app = start("app", TOKEN=phone.token)
    app.token = phone.token
    app.heard("started")
    return app


def press(app, title):
    app.tell({"do": "press", "title": title})
    app.heard("pressed")


def is_subscribed(owner):
    return Subscription.objects.filter(channel=owner.channel, expired_at=None).exists()


@pytest.fixture
def subscribed(app, owner):
    press(app, "Notify me")
    eventually(lambda: is_subscribed(owner))
    return app


def test_the_app_asks_subscribes_tags_and_unsubscribes(subscribed, owner, gate):
    assert gate.asked("/subscribe")[0]["provider_token"] == subscribed.token
    press(subscribed, "Follow team 7")
    eventually(lambda: tags_of(owner) == ["team-7"])

    press(subscribed, "Stop")

    eventually(lambda: row_of(owner).expired_code == "unsubscribed")


def test_a_user_who_gives_no_permission_is_not_subscribed(start, gate):
    app = start("app", PERMISSION="denied")
    app.heard("started")
    press(app, "Notify me")
    app.tell({"do": "activate"})
    app.heard("active")
    app.kill()

    again = start("app", folder=app.folder)
    again.heard("started")
    again.tell({"do": "activate"})
    again.heard("active")

    assert gate.requests == []


def test_the_next_start_registers_with_what_is_in_the_keychain(subscribed, start, gate, owner):
    before = row_of(owner).pk
    subscribed.kill()

    start("app", folder=subscribed.folder, TOKEN="ab" * 32)

    eventually(lambda: len(gate.asked("/subscribe")) == 2)
    first, second = gate.asked("/subscribe")
    assert second["auth"] == first["auth"]
    assert second["previous_endpoint"] == subscribed.token
    assert eventually(lambda: row_of(owner)).pk == before


def test_a_locked_keychain_is_not_taken_for_an_empty_one(subscribed, start, gate, owner):
    first = gate.asked("/subscribe")[0]
    subscribed.kill()
    lock = subscribed.folder[0] / "locked"
    lock.touch()
    app = start("app", folder=subscribed.folder, TOKEN=subscribed.token)
    app.heard("started")
    eventually(lambda: (app.folder[0] / "refused").exists())
    lock.unlink()

    press(app, "Follow team 7")

    eventually(lambda: tags_of(owner) == ["team-7"])
    assert {each["auth"] for each in gate.asked("/subscribe")} == {first["auth"]}


def test_an_app_that_starts_without_a_network_registers_later(app, start, gate, owner):
    gate.is_closed = True
    press(app, "Notify me")
    eventually(lambda: (app.folder[0] / f"pushsvc.subscription-{owner.channel.pk}").exists())
    app.kill()
    start("app", folder=app.folder, TOKEN=app.token).heard("started")

    gate.is_closed = False

    eventually(lambda: is_subscribed(owner))


def test_a_click_without_a_network_is_reported_when_the_app_becomes_active(
    subscribed, start, owner, apple, gate
):
    payload, sent = delivered(owner, apple, subscribed.token)
    gate.is_closed = True
    subscribed.tell({"do": "tap", "payload": json.loads(payload)})
    subscribed.heard("done")
    subscribed.kill()
    gate.is_closed = False
    again = start("app", folder=subscribed.folder, TOKEN=subscribed.token)
    again.heard("started")

    again.tell({"do": "activate"})

    eventually(lambda: Notification.objects.get(pk=sent.pk).clicked_count == 1)


def test_a_notification_in_the_foreground_is_shown_and_reported(subscribed, owner, apple, gate):
    payload, _ = delivered(owner, apple, subscribed.token)

    subscribed.tell({"do": "present", "payload": json.loads(payload)})

    assert subscribed.heard("presented")["presented"] == BANNER_LIST_SOUND_BADGE
    [body] = eventually(lambda: gate.asked("/events"))
    assert [each["event"] for each in body["events"]] == ["received"]


@pytest.mark.parametrize(
    ("action", "opened", "event", "clicks", "of_button"),
    [
        (None, ["shop://orders"], "clicked", 1, 0),
        ("track", ["https://shop.example/track"], "clicked", 1, 1),
        (DISMISS, [], "dismissed", 0, 0),
    ],
    ids=["tap", "button", "dismissal"],
)
def test_a_tap_opens_the_link_and_is_counted(
    subscribed, owner, apple, gate, action, opened, event, clicks, of_button
):
    actions = [{"id": "track", "title": "Track it", "url": "https://shop.example/track"}]
    content = {"ios": {"url": "shop://orders"}, "actions": actions}
    payload, sent = delivered(owner, apple, subscribed.token, **content)

    subscribed.tell({"do": "tap", "payload": json.loads(payload), "action": action})

    assert subscribed.heard("done")["done"] is True  # on the main thread
    assert [each["opened"] for each in subscribed.unread if "opened" in each] == opened
    [body] = gate.asked("/events")
    assert [each["event"] for each in body["events"]] == [event]
    details = owner.call("GET", f"/notification/{sent.pk}/details").json()
    assert (details["clicked_count"], details["actions_clicked"]) == (clicks, {"track": of_button})


def test_a_notification_of_others_is_shown_and_not_reported(app, gate):
    app.tell({"do": "present", "payload": {"aps": {"alert": "Hello"}}})
    assert app.heard("presented")["presented"] == BANNER_LIST_SOUND_BADGE
    app.tell({"do": "tap", "payload": {"aps": {"alert": "Hello"}}})
    app.heard("done")
    assert gate.requests == []


# --- the extension --------------------------------------------------------------------------------


def test_the_extension_reports_and_attaches_the_image(
    subscribed, start, owner, apple, gate, images
):
    image = "https://shop.example/rain.png"
    payload, _ = delivered(owner, apple, subscribed.token, image=image)
    extension = start("extension")

    extension.tell(json.loads(payload) | {"image": f"{images}/rain.png"})

    [attached] = extension.heard("attached")["attached"]
    assert attached.endswith(".png")
    [body] = gate.asked("/events")
    assert [each["event"] for each in body["events"]] == ["received"]


def test_the_extension_shows_what_it_has_when_its_time_ends(
    start, subscribed, owner, apple, images
):
    payload, _ = delivered(owner, apple, subscribed.token)
    extension = start("extension")

    extension.tell(json.loads(payload) | {"image": f"{images}/slow.png", "late": True})

    assert extension.heard("attached")["attached"] == []  # the image came later


def test_the_categories_of_the_guide_are_registered(start):
    assert start("extension").heard("categories")["categories"] == ["orders"]


def test_the_extension_leaves_the_notifications_of_others_alone(start, gate):
    extension = start("extension")
    extension.tell({"aps": {"alert": "Hello"}, "image": "https://shop.example/rain.png"})
    assert extension.heard("attached")["attached"] == []
    assert gate.requests == []

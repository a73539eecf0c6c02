"""Android and iOS through the pipeline, with real credentials and sandboxes that check every
message."""

import json
from uuid import UUID, uuid5

import pytest

from notifications_app.content.tracking import read_token
from notifications_app.models import Batch
from notifications_app.pipeline import dispatch
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.models import Subscription
from subscriptions_app.people.linking import devices_link
from tests import factories
from tests.api.support import owner_of
from tests.pipeline import phones, support

INTENT = "intent://orders/17#Intent;scheme=myshop;end"
PICTURE = "https://shop.example/bread.jpg"
ICON = "https://shop.example/icon.png"


@pytest.fixture
def google(fcm, channel):
    phones.store_google(fcm, channel)
    return fcm


@pytest.fixture
def apple(apns, channel):
    phones.store_apple(apns, channel)
    return apns


def message_to(fcm, channel, **fields):
    """What one Android phone got, its subscription and the notification."""
    ((device, subscription),) = factories.subscribe_androids(fcm, channel)
    notification = phones.send(channel, "android", **fields)
    return device.receipts[0].message, subscription, notification


def receipt_of(apns, channel, **fields):
    """What one iPhone got, its subscription and the notification."""
    ((device, subscription),) = factories.subscribe_iphones(apns, channel)
    notification = phones.send(channel, "ios", **fields)
    return device.receipts[0], subscription, notification


def test_one_notification_reaches_every_platform_once(sandbox, google, apple, channel):
    browsers = factories.subscribe_browsers(sandbox, channel, 3)
    androids = factories.subscribe_androids(google, channel, 4)
    iphones = factories.subscribe_iphones(apple, channel, 5)

    notification = phones.send(channel, "web", "android", "ios", title="Bread")

    assert support.counts(notification) == ("sent", 12, 12, 0)
    assert [len(device.receipts) for device, _ in browsers] == [1] * 3
    assert phones.received(androids) == [1] * 4
    assert phones.received(iphones) == [1] * 5


def test_each_platform_gets_what_is_for_it_alone(sandbox, google, apple, channel):
    ((browser, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    ((android, _),) = factories.subscribe_androids(google, channel)
    ((iphone, _),) = factories.subscribe_iphones(apple, channel)
    extras = {
        "actions": [
            {"id": "buy", "title": "Buy", "web_url": "/buy", "android_url": "myshop://buy"},
        ],
        "web": {"title": "For browsers", "tag": "score", "url": "/orders/17"},
        "android": {
            "title": None, "image": PICTURE, "channel_id": "orders", "url": INTENT,
        },
        "ios": {
            "body": "For iPhones", "badge": 3, "sound": {"name": "ding", "critical": True},
            "url": "myshop://orders/17",
        },
    }  # fmt: skip

    notification = phones.send(channel, "web", "android", "ios", title="Bread", extras=extras)

    assert support.counts(notification) == ("sent", 3, 3, 0)
    shown = json.loads(browser.receipts[0].plaintext)
    assert (shown["title"], shown["options"]) == ("For browsers", {"tag": "score"})
    message = android.receipts[0].message
    assert message["notification"] == {"body": "Fresh bread", "image": PICTURE}
    assert message["android"]["notification"] == {
        "tag": str(notification.id),
        "channel_id": "orders",
    }
    button = {"id": "buy", "title": "Buy"}
    assert (shown["url"], shown["actions"]) == ("/orders/17", [button | {"url": "/buy"}])
    assert message["data"]["url"] == INTENT
    assert json.loads(message["data"]["actions"]) == [button | {"url": "myshop://buy"}]
    payload = json.loads(iphone.receipts[0].payload)
    assert (payload["url"], payload["actions"]) == ("myshop://orders/17", [button])
    aps = payload["aps"]
    assert aps["alert"] == {"title": "Bread", "body": "For iPhones"}
    assert (aps["badge"], aps["sound"]) == (3, {"name": "ding", "critical": 1})


def test_an_android_phone_gets_the_documented_message(google, channel):
    message, subscription, notification = message_to(
        google,
        channel,
        title="Bread",
        body="Fresh",
        url="https://shop.example/bread",
        icon=ICON,
        data={"order": "7"},
        ttl=600,
        topic="bread",
    )

    assert read_token(message["data"].pop("token")) == (notification.id, subscription.id)
    assert message["notification"] == {"title": "Bread", "body": "Fresh", "image": ICON}
    assert message["data"] == {
        "notification_id": str(notification.id),
        "url": "https://shop.example/bread",
        "icon": ICON,
        "order": "7",
    }
    android = message["android"]
    assert 500 <= int(android["ttl"].removesuffix("s")) <= 600
    assert android["collapse_key"] == "bread"
    assert android["notification"]["tag"] == str(notification.id)


def test_an_iphone_gets_the_documented_message(apple, channel):
    receipt, subscription, notification = receipt_of(
        apple,
        channel,
        title="Bread",
        body="Fresh",
        url="https://shop.example/bread",
        icon=ICON,
        image=PICTURE,
        data={"order": "7"},
        topic="bread",
    )

    content = json.loads(receipt.payload)
    assert read_token(content.pop("token")) == (notification.id, subscription.id)
    assert content == {
        "aps": {
            "alert": {"title": "Bread", "body": "Fresh"},
            "mutable-content": 1,
            "sound": "default",
        },
        "notification_id": str(notification.id),
        "url": "https://shop.example/bread",
        "icon": ICON,
        "image": PICTURE,
        "data": {"order": "7"},
    }
    assert receipt.headers["apns-push-type"] == "alert"
    assert receipt.headers["apns-topic"] == "com.example.app"
    assert receipt.headers["apns-collapse-id"] == "bread"
    assert receipt.headers["apns-id"] == str(uuid5(notification.id, str(subscription.id)))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, None),
        ({"icon": ICON}, ICON),
        ({"image": PICTURE}, PICTURE),
        ({"icon": ICON, "image": PICTURE}, PICTURE),
    ],
)
def test_an_android_phone_shows_the_image_or_otherwise_the_icon(given, shown, google, channel):
    message, _, _ = message_to(google, channel, **given)

    assert message["notification"].get("image") == shown


@pytest.mark.parametrize(
    ("urgency", "android", "ios"),
    [
        ("very-low", "NORMAL", "1"),
        ("low", "NORMAL", "5"),
        ("normal", "HIGH", "10"),
        ("high", "HIGH", "10"),
    ],
)
def test_urgency_becomes_each_platforms_priority(urgency, android, ios, google, apple, channel):
    ((phone, _),) = factories.subscribe_androids(google, channel)
    ((iphone, _),) = factories.subscribe_iphones(apple, channel)

    phones.send(channel, "android", "ios", urgency=urgency)

    assert phone.receipts[0].message["android"]["priority"] == android
    assert iphone.receipts[0].headers["apns-priority"] == ios


def test_an_android_notification_without_a_topic_replaces_nothing(google, channel):
    message, _, _ = message_to(google, channel)

    assert "collapse_key" not in message["android"]


def test_an_ios_notification_without_a_topic_replaces_only_its_repetition(apple, channel):
    receipt, _, notification = receipt_of(apple, channel)

    assert receipt.headers["apns-collapse-id"] == str(notification.id)


def test_ttl_zero_is_delivered_now_or_never_on_both_platforms(google, apple, channel):
    ((phone, _),) = factories.subscribe_androids(google, channel)
    ((iphone, _),) = factories.subscribe_iphones(apple, channel)

    phones.send(channel, "android", "ios", ttl=0)

    assert phone.receipts[0].message["android"]["ttl"] == "0s"
    assert iphone.receipts[0].headers["apns-expiration"] == "0"


def test_apns_keeps_a_notification_until_the_deadline(apple, channel):
    receipt, _, notification = receipt_of(apple, channel, ttl=600)

    deadline = notification.deadline_at.timestamp()
    assert abs(int(receipt.headers["apns-expiration"]) - deadline) < 10


def test_every_attempt_has_the_same_identifiers(google, apple, channel):
    """APNs and the phones recognise a repetition by them."""
    ((phone, _),) = factories.subscribe_androids(google, channel)
    ((iphone, _),) = factories.subscribe_iphones(apple, channel)
    for device in (phone, iphone):
        device.behave("unavailable", times=2)

    notification = phones.send(channel, "android", "ios")
    for _ in range(2):
        phones.send_again(notification, "android", "ios")

    assert support.counts(notification) == ("sent", 2, 2, 0)
    assert len(iphone.receipts) == len(phone.receipts) == 3
    for name in ("apns-id", "apns-collapse-id"):
        assert len({receipt.headers[name] for receipt in iphone.receipts}) == 1
    messages = [receipt.message for receipt in phone.receipts]
    assert len({message["android"]["notification"]["tag"] for message in messages}) == 1
    assert len({message["data"]["token"] for message in messages}) == 1


def test_a_project_of_a_domain_has_its_own_quota(fcm, channel):
    project = "example.com:my-project"
    phones.store_google(fcm, channel, project)
    phones.prove(fcm, channel, project)
    factories.subscribe_androids(fcm, channel, 2, project)

    assert support.counts(phones.send(channel, "android")) == ("sent", 2, 2, 0)
    assert redis_client().exists(f"pushsvc:quota:fcm_v1:{project}")


# --- Android apps that are registered by their installation ids ---

AUTH = {"auth": factories.browser_keys()["auth"]}
GOLD = {"plan": "gold"}


def register_app(channel, device, status, **fields):
    """The app's own call; the id of the subscription."""
    body = factories.phone("android", device.address, **fields)
    answer = owner_of(channel).subscribe(body)
    assert answer.status_code == status, answer.content
    return answer.json()["subscriptionId"]


def move(google, channel, device):
    """An update makes the app register by its installation id."""
    token = device.address
    google.register_by_fid(device)
    return register_app(channel, device, 200, previous_endpoint=token, **AUTH)


def test_apps_with_tokens_and_with_installation_ids_are_reached_side_by_side(google, channel):
    by_token = factories.subscribe_androids(google, channel, 3)
    by_fid = factories.subscribe_androids(google, channel, 3, by_fid=True)

    notification = phones.send(channel, "android")

    assert support.counts(notification) == ("sent", 6, 6, 0)
    assert phones.received(by_token) == phones.received(by_fid) == [1] * 3
    assert [row.address for _, row in by_fid] == [device.fid for device, _ in by_fid]
    assert {receipt.message["fid"] for device, _ in by_fid for receipt in device.receipts} == {
        device.fid for device, _ in by_fid
    }


def test_an_installation_id_of_a_removed_app_expires(google, channel):
    ((device, subscription),) = factories.subscribe_androids(google, channel, by_fid=True)
    google.unregister(device)

    notification = phones.send(channel, "android")

    assert support.counts(notification) == ("sent", 1, 0, 1)
    subscription.refresh_from_db()
    assert subscription.expired_code == "unregistered"


def test_an_app_that_moves_to_its_installation_id_keeps_its_subscription(google, channel):
    device = google.register(factories.GOOGLE_PROJECT)
    known_as = register_app(channel, device, 201, attributes=GOLD, **AUTH)
    devices_link(channel=channel, links={UUID(known_as): "user-42"})
    first = phones.send(channel, "android")
    waiting = phones.plan(channel, "android")

    assert move(google, channel, device) == known_as
    phones.deliver(waiting, "android")
    last = phones.send(channel, "android")

    [row] = Subscription.objects.filter(channel=channel)
    assert (str(row.id), row.address, row.attributes) == (known_as, device.fid, GOLD)
    assert row.person.external_id == "user-42"
    assert [support.counts(each) for each in (first, waiting, last)] == [("sent", 1, 1, 0)] * 3
    messages = [receipt.message for receipt in device.receipts]
    assert [each.get("token") or each["fid"] for each in messages] == [
        device.token,
        device.fid,
        device.fid,
    ]


def test_an_app_whose_token_expired_before_it_registered_its_installation_id_comes_back(
    google, channel
):
    device = google.register(factories.GOOGLE_PROJECT)
    known_as = register_app(channel, device, 201, attributes=GOLD, **AUTH)
    token = device.address
    google.register_by_fid(device)
    assert support.codes(phones.send(channel, "android")) == ["unregistered"]

    moved = register_app(channel, device, 200, previous_endpoint=token, **AUTH)

    assert moved == known_as
    assert support.counts(phones.send(channel, "android")) == ("sent", 1, 1, 0)
    assert device.totals().taken == 1


def test_an_answer_about_the_token_does_not_expire_an_app_that_has_moved_meanwhile(google, channel):
    device = google.register(factories.GOOGLE_PROJECT)
    register_app(channel, device, 201, **AUTH)
    notification = phones.plan(channel, "android")
    google.register_by_fid(device)
    token = device.token
    lease = support.claim("android")

    with (
        phones.meanwhile(lambda: dispatch.deliver_batches([lease])),
        phones.held(Batch.objects.get()),
    ):
        support.until(lambda: device.receipts)
        register_app(channel, device, 200, previous_endpoint=token, **AUTH)

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert support.counts(phones.send(channel, "android")) == ("sent", 1, 1, 0)

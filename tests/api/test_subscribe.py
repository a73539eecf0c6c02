import json

import pytest
from django.test import Client

from channels_app.models import VapidKey
from channels_app.selectors import channel_totals, current_vapid_key
from channels_app.services import vapid_key_rotate
from pushsvc.common.ids import uuid7
from subscriptions_app.models import Subscription
from subscriptions_app.services import GoneSubscription, subscriptions_expire
from tests.api.support import at_once, base64url, browser, browser_keys, code, faults, owner_of
from tests.factories import make_channel

HERE = "https://fcm.googleapis.com/fcm/send/here"
THERE = "https://updates.push.services.mozilla.com/wpush/v2/there"
ANDROID_TOKEN = "dF3x:APA91bH_token-of-a-phone"
IOS_TOKEN = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel(android_enabled=True, ios_enabled=True))


def subscribed(owner, body, status=201):
    response = owner.subscribe(body)
    assert response.status_code == status, response.content
    return Subscription.objects.get(id=response.json()["subscriptionId"])


def subscribers(owner):
    return channel_totals(owner.channel.id)


def expire(subscription):
    gone = GoneSubscription(subscription.id, subscription.registered_at, "endpoint_gone")
    assert subscriptions_expire(channel_id=subscription.channel_id, gone=[gone]) == 1


def test_a_new_browser_is_stored_and_counted(alice):
    body = browser(HERE, attributes={"plan": "pro", "visits": 3, "score": 0.5})

    response = alice.subscribe(body)

    assert response.status_code == 201
    assert list(response.json()) == ["message", "subscriptionId"]
    row = Subscription.objects.get()
    assert str(row.id) == response.json()["subscriptionId"]
    assert (row.channel, row.platform, row.address) == (alice.channel, "web", HERE)
    assert (row.p256dh, row.auth) == (body["keys"]["p256dh"], body["keys"]["auth"])
    assert row.attributes == {"plan": "pro", "visits": 3, "score": 0.5}
    assert row.push_service == "fcm"
    assert row.vapid_key == current_vapid_key(alice.channel)
    assert subscribers(alice).web_subscribers == 1


def test_a_known_browser_keeps_its_id_and_gets_its_new_keys(alice):
    first = subscribed(alice, browser(HERE))
    body = browser(HERE)

    again = subscribed(alice, body, status=200)

    assert again.id == first.id
    assert again.p256dh == body["keys"]["p256dh"]
    assert again.registered_at > first.registered_at
    assert subscribers(alice).web_subscribers == 1


def test_attributes_that_are_left_out_are_kept_and_given_ones_replace_all(alice):
    subscribed(alice, browser(HERE, attributes={"plan": "pro", "city": "Bern"}))

    kept = subscribed(alice, browser(HERE), status=200)
    assert kept.attributes == {"plan": "pro", "city": "Bern"}

    replaced = subscribed(alice, browser(HERE, attributes={"plan": "free"}), status=200)
    assert replaced.attributes == {"plan": "free"}


def test_an_expired_subscription_comes_back_with_its_id(alice):
    first = subscribed(alice, browser(HERE))
    expire(first)
    assert subscribers(alice).web_subscribers == 0

    again = subscribed(alice, browser(HERE), status=200)

    assert again.id == first.id
    assert (again.expired_at, again.expired_code) == (None, "")
    assert subscribers(alice).web_subscribers == 1


def test_one_endpoint_is_another_subscription_on_another_channel(alice, bob):
    assert subscribed(alice, browser(HERE)).id != subscribed(bob, browser(HERE)).id
    assert subscribers(alice).web_subscribers == subscribers(bob).web_subscribers == 1


def test_what_a_browser_adds_is_ignored(alice):
    body = browser(HERE, expirationTime=None, options={"userVisibleOnly": True})
    body["keys"]["other"] = 1
    body["provider_token"] = None

    subscribed(alice, body)


@pytest.mark.parametrize("spelling", [str.upper, str.lower])
@pytest.mark.parametrize("path", ["/subscribe", "/subscribe/"])
def test_the_channel_id_may_be_of_either_case_and_the_path_end_in_a_slash(alice, path, spelling):
    channel_id = spelling(str(alice.channel.id))
    response = alice.device(path, browser(), **{"X-Channel-ID": channel_id})
    assert response.status_code == 201


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe"])
@pytest.mark.parametrize("given", ["", "abc", uuid7().hex, f"{uuid7()},{uuid7()}"])
def test_without_a_channel_id_nothing_is_done(alice, path, given):
    faults(alice.device(path, browser(), **{"X-Channel-ID": given}), 400)
    assert not Subscription.objects.exists()


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe"])
def test_an_unknown_channel_is_not_found(alice, path):
    faults(alice.device(path, browser(), **{"X-Channel-ID": str(uuid7())}), 404)


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe"])
def test_other_methods_are_refused(alice, path):
    response = Client().get(path, headers={"X-Channel-ID": str(alice.channel.id)})
    assert response.status_code == 405
    assert "POST" in response.headers["Allow"]


# --- what is checked ------------------------------------------------------------------------------


def with_keys(**keys):
    return browser(HERE) | {"keys": browser_keys() | keys}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("endpoint", "required"), ("keys", "required")]),
        ({"provider_token": "abc"}, [("endpoint", "required"), ("keys", "required")]),
        (browser("") , [("endpoint", "blank")]),
        (browser(None), [("endpoint", "null")]),
        (browser(5), [("endpoint", "not_a_string")]),
        (browser(["x"]), [("endpoint", "not_a_string")]),
        (browser(platform="windows"), [("platform", "not_a_choice")]),
        (browser(platform="Web"), [("platform", "not_a_choice")]),
        (browser(platform=None), [("platform", "null")]),
        (browser(platform=["ios"]), [("platform", "not_a_string")]),
        (browser(keys=None), [("keys", "null")]),
        (browser(keys="x"), [("keys", "not_an_object")]),
        (browser(keys={}), [("keys.p256dh", "required"), ("keys.auth", "required")]),
        (browser(vapid_public_key=1), [("vapid_public_key", "not_a_string")]),
        (browser(previous_endpoint=None), [("previous_endpoint", "null")]),
        (browser(attributes=None), [("attributes", "null")]),
        (browser(attributes=[]), [("attributes", "not_an_object")]),
    ],
)  # fmt: skip
def test_every_fault_of_the_shape_is_named(alice, body, expected):
    response = alice.subscribe(body)
    assert faults(response) == expected
    assert response.json()["code"] == "validation_error"
    assert not Subscription.objects.exists()


GOOD = browser_keys()
OFF_CURVE = base64url(b"\x04" + b"\x01" * 64)
COMPRESSED = base64url(b"\x02" + b"\x01" * 32)
HYBRID = base64url(b"\x06" + b"\x01" * 64)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("p256dh", OFF_CURVE, "not_a_p256_point"),
        ("p256dh", COMPRESSED, "not_a_p256_point"),
        ("p256dh", HYBRID, "not_a_p256_point"),
        ("p256dh", GOOD["p256dh"][:-4], "not_a_p256_point"),
        ("p256dh", GOOD["p256dh"] + "AAAA", "not_a_p256_point"),
        ("p256dh", "+" + GOOD["p256dh"][1:], "not_a_p256_point"),
        ("p256dh", " " + GOOD["p256dh"], "not_a_p256_point"),
        ("p256dh", "é" * 87, "not_a_p256_point"),
        ("p256dh", "A", "not_a_p256_point"),
        ("p256dh", "", "blank"),
        ("p256dh", "A" * 256, "too_long"),
        ("p256dh", 7, "not_a_string"),
        ("auth", GOOD["auth"][:-2], "not_16_bytes"),
        ("auth", GOOD["auth"] + "AA", "not_16_bytes"),
        ("auth", "A" * 21, "not_16_bytes"),
        ("auth", "", "blank"),
        ("auth", "A" * 256, "too_long"),
        ("auth", None, "null"),
    ],
)
def test_keys_that_no_message_could_be_encrypted_for_are_refused(alice, name, value, expected):
    assert faults(alice.subscribe(with_keys(**{name: value}))) == [(f"keys.{name}", expected)]
    assert not Subscription.objects.exists()


def test_padded_keys_are_stored_as_the_others_are(alice):
    keys = browser_keys()
    row = subscribed(
        alice,
        browser(HERE) | {"keys": {"p256dh": keys["p256dh"] + "=", "auth": keys["auth"] + "=="}},
    )
    assert (row.p256dh, row.auth) == (keys["p256dh"], keys["auth"])


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://fcm.googleapis.com/fcm/send/x",
        "https://fcm.googleapis.com:8443/x",
        "https://user@fcm.googleapis.com/x",
        "https://fcm.googleapis.com/x#fragment",
        "https://127.0.0.1/x",
        "https://2130706433/x",
        "https://[::1]/x",
        "https://localhost/x",
        "https://printer.local/x",
        "ftp://fcm.googleapis.com/x",
        "not a url",
        "https://fcm.googleapis.com/" + "x" * 2000,
    ],
)
def test_an_endpoint_that_is_no_public_push_service_is_refused(alice, endpoint):
    response = alice.subscribe(browser(endpoint))
    assert faults(response) == [("endpoint", "endpoint_not_allowed")]
    assert response.json()["code"] == "endpoint_not_allowed"
    assert not Subscription.objects.exists()


def test_a_trusted_origin_is_exempt(alice, settings):
    settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({"http://127.0.0.1:8030"})
    row = subscribed(alice, browser("http://127.0.0.1:8030/push/1"))
    assert row.push_service == "127.0.0.1:8030"


def test_only_allowed_hosts_are_taken_where_there_is_a_list(alice, settings):
    settings.WEBPUSH_ALLOWED_HOSTS = ("push.services.mozilla.com",)
    subscribed(alice, browser(THERE))
    assert code(alice.subscribe(browser(HERE)), 400) == "endpoint_not_allowed"


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {f"k{n}": n for n in range(10)},
        {"k" * 50: "v" * 255},
        {"😀" * 50: "😀" * 255},
        {"e\u0301" * 25: "e\u0301" * 127 + "x"},
        {"n": 1e22, "m": -0.5, "i": 10**300, "zero": 0},
        {"": "an empty name is a name"},
    ],
)
def test_attributes_up_to_their_limits_are_stored_as_sent(alice, attributes):
    assert subscribed(alice, browser(attributes=attributes)).attributes == attributes


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({f"k{n}": n for n in range(11)}, [("attributes", "too_many")]),
        ({"k" * 51: "v"}, [("attributes." + "k" * 51, "too_long")]),
        ({"😀" * 51: 1}, [("attributes." + "😀" * 51, "too_long")]),
        ({"plan": "v" * 256}, [("attributes.plan", "too_long")]),
        ({"plan": "😀" * 256}, [("attributes.plan", "too_long")]),
        ({"plan": True}, [("attributes.plan", "not_a_string_or_number")]),
        ({"plan": None}, [("attributes.plan", "null")]),
        ({"plan": []}, [("attributes.plan", "not_a_string_or_number")]),
        (
            {"a": {}, "b": "ok", "k" * 51: "v"},
            [("attributes.a", "not_a_string_or_number"), ("attributes." + "k" * 51, "too_long")],
        ),
    ],
)
def test_attributes_beyond_their_limits_are_refused(alice, attributes, expected):
    assert faults(alice.subscribe(browser(attributes=attributes))) == expected


# --- phones ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "token", "service"),
    [
        ("android", ANDROID_TOKEN, "fcm"),
        ("android", "x", "fcm"),
        ("android", "x" * 4096, "fcm"),
        ("ios", IOS_TOKEN, "apns"),
        ("ios", "a" * 32, "apns"),
        ("ios", "a" * 200, "apns"),
    ],
)
@pytest.mark.parametrize("name", ["endpoint", "provider_token"])
def test_a_phone_is_known_by_its_token(alice, platform, token, service, name):
    row = subscribed(alice, {"platform": platform, name: token})
    assert (row.platform, row.address, row.push_service) == (platform, token, service)
    assert row.vapid_key is None
    assert getattr(subscribers(alice), f"{platform}_subscribers") == 1
    assert subscribers(alice).web_subscribers == 0


def test_the_provider_token_wins_over_the_endpoint(alice):
    body = {"platform": "ios", "endpoint": "not a token", "provider_token": IOS_TOKEN, "keys": {}}
    assert subscribed(alice, body).address == IOS_TOKEN


def test_an_ios_token_is_the_same_in_either_case(alice):
    first = subscribed(alice, {"platform": "ios", "provider_token": IOS_TOKEN})
    again = subscribed(alice, {"platform": "ios", "provider_token": IOS_TOKEN.upper()}, status=200)
    assert again.id == first.id


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"platform": "android"}, [("provider_token", "required")]),
        ({"platform": "android", "provider_token": ""}, [("provider_token", "blank")]),
        ({"platform": "android", "provider_token": "a b"}, [("provider_token", "not_a_token")]),
        ({"platform": "android", "endpoint": "a\nb"}, [("endpoint", "not_a_token")]),
        ({"platform": "android", "endpoint": "x" * 4097}, [("endpoint", "not_a_token")]),
        ({"platform": "ios", "endpoint": "a" * 31}, [("endpoint", "not_a_token")]),
        ({"platform": "ios", "endpoint": "a" * 201}, [("endpoint", "not_a_token")]),
        ({"platform": "ios", "endpoint": "g" * 64}, [("endpoint", "not_a_token")]),
        ({"platform": "ios", "endpoint": "\uff11" * 64}, [("endpoint", "not_a_token")]),
        (
            {"platform": "ios", "endpoint": IOS_TOKEN, "provider_token": None},
            [("provider_token", "null")],
        ),
    ],
)
def test_what_is_no_token_is_refused(alice, body, expected):
    assert faults(alice.subscribe(body)) == expected


@pytest.mark.parametrize(
    "body",
    [
        {"platform": "android", "provider_token": ANDROID_TOKEN},
        {"platform": "ios", "provider_token": IOS_TOKEN},
    ],
)
def test_a_platform_that_is_not_enabled_is_refused(bob, body):
    response = bob.subscribe(body)
    assert faults(response) == [("platform", "platform_not_enabled")]
    assert response.json()["code"] == "platform_not_enabled"


def test_web_can_be_disabled_too():
    owner = owner_of(make_channel(web_enabled=False))
    assert code(owner.subscribe(browser()), 400) == "platform_not_enabled"


# --- an endpoint that changed ---------------------------------------------------------------------


def test_a_changed_endpoint_keeps_id_and_attributes(alice):
    old = subscribed(alice, browser(HERE, attributes={"plan": "pro"}))
    body = browser(THERE, previous_endpoint=HERE)

    moved = subscribed(alice, body, status=200)

    assert (moved.id, moved.address, moved.push_service) == (old.id, THERE, "mozilla")
    assert moved.attributes == {"plan": "pro"}
    assert moved.p256dh == body["keys"]["p256dh"]
    assert moved.created_at == old.created_at
    assert subscribers(alice).web_subscribers == 1
    assert subscribed(alice, browser(THERE), status=200).id == old.id
    assert subscribed(alice, browser(HERE)).id != old.id


def test_an_expired_subscription_may_move_and_is_active_then(alice):
    old = subscribed(alice, browser(HERE))
    expire(old)

    moved = subscribed(alice, browser(THERE, previous_endpoint=HERE), status=200)

    assert (moved.id, moved.expired_at) == (old.id, None)
    assert subscribers(alice).web_subscribers == 1


def test_an_unknown_previous_endpoint_changes_nothing(alice):
    subscribed(alice, browser(THERE, previous_endpoint=HERE), status=201)
    assert subscribers(alice).web_subscribers == 1


def test_the_previous_endpoint_may_be_the_same(alice):
    old = subscribed(alice, browser(HERE))
    assert subscribed(alice, browser(HERE, previous_endpoint=HERE), status=200).id == old.id


def test_where_both_endpoints_are_known_the_old_one_expires(alice):
    old = subscribed(alice, browser(HERE))
    new = subscribed(alice, browser(THERE))

    stays = subscribed(alice, browser(THERE, previous_endpoint=HERE), status=200)

    old.refresh_from_db()
    assert stays.id == new.id
    assert old.expired_at is not None
    assert old.expired_code == "replaced"
    assert subscribers(alice).web_subscribers == 1


def test_an_expired_new_endpoint_takes_over_from_an_active_old_one(alice):
    old = subscribed(alice, browser(HERE))
    new = subscribed(alice, browser(THERE))
    expire(new)

    stays = subscribed(alice, browser(THERE, previous_endpoint=HERE), status=200)

    old.refresh_from_db()
    assert (stays.id, stays.expired_at) == (new.id, None)
    assert old.expired_at is not None
    assert subscribers(alice).web_subscribers == 1


def test_a_previous_endpoint_of_another_channel_is_unknown(alice, bob):
    theirs = subscribed(bob, browser(HERE))
    assert subscribed(alice, browser(THERE, previous_endpoint=HERE)).id != theirs.id
    theirs.refresh_from_db()
    assert theirs.address == HERE


# --- VAPID keys -----------------------------------------------------------------------------------


def test_a_known_endpoint_keeps_its_key_when_the_channel_rotates(alice):
    first = subscribed(alice, browser(HERE))
    new_key = vapid_key_rotate(channel=alice.channel)

    assert subscribed(alice, browser(HERE), status=200).vapid_key_id == first.vapid_key_id
    assert subscribed(alice, browser(THERE)).vapid_key_id == new_key.id


def test_the_key_that_the_browser_names_is_taken(alice):
    old_key = current_vapid_key(alice.channel)
    new_key = vapid_key_rotate(channel=alice.channel)

    row = subscribed(alice, browser(HERE, vapid_public_key=old_key.public_key))
    assert row.vapid_key == old_key
    named = browser(HERE, vapid_public_key=new_key.public_key + "=")
    assert subscribed(alice, named, status=200).vapid_key == new_key


def test_a_key_that_is_not_the_channels_is_refused(alice, bob):
    theirs = VapidKey.objects.get(channel=bob.channel)
    for key in (theirs.public_key, "x" * 87):
        response = alice.subscribe(browser(HERE, vapid_public_key=key))
        assert faults(response) == [("vapid_public_key", "vapid_key_unknown")]
        assert response.json()["code"] == "vapid_key_unknown"
    assert not Subscription.objects.exists()


# --- unsubscribe ----------------------------------------------------------------------------------


def test_unsubscribe_expires_the_subscription_and_may_be_repeated(alice):
    row = subscribed(alice, browser(HERE))

    for _ in range(2):
        response = alice.device("/unsubscribe", {"endpoint": HERE})
        assert response.status_code == 200
        assert list(response.json()) == ["message"]

    row.refresh_from_db()
    assert (row.expired_at is not None, row.expired_code) == (True, "unsubscribed")
    assert subscribers(alice).web_subscribers == 0


def test_unsubscribe_of_a_phone_needs_its_platform(alice):
    row = subscribed(alice, {"platform": "ios", "provider_token": IOS_TOKEN})

    alice.device("/unsubscribe", {"endpoint": IOS_TOKEN})
    assert subscribers(alice).ios_subscribers == 1

    alice.device("/unsubscribe", {"platform": "ios", "provider_token": IOS_TOKEN.upper()})
    row.refresh_from_db()
    assert row.expired_code == "unsubscribed"
    assert subscribers(alice).ios_subscribers == 0


def test_unsubscribe_of_an_unknown_device_is_answered_the_same(alice):
    assert alice.device("/unsubscribe", {"endpoint": HERE}).status_code == 200
    assert alice.device("/unsubscribe/", {"endpoint": "not a url"}).status_code == 200


def test_another_channels_subscription_is_not_touched(alice, bob):
    subscribed(bob, browser(HERE))
    alice.device("/unsubscribe", {"endpoint": HERE})
    assert subscribers(bob).web_subscribers == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("endpoint", "required")]),
        ({"platform": "ios"}, [("provider_token", "required")]),
        ({"endpoint": 1}, [("endpoint", "not_a_string")]),
        ({"endpoint": HERE, "platform": "tv"}, [("platform", "not_a_choice")]),
    ],
)
def test_unsubscribe_needs_to_know_which_device(alice, body, expected):
    assert faults(alice.device("/unsubscribe", body)) == expected


# --- browsers of other origins, and too many ------------------------------------------------------


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe", "/subscribe/"])
def test_any_web_page_may_call(alice, path):
    preflight = Client().options(
        path,
        headers={
            "Origin": "https://shop.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,x-channel-id",
        },
    )
    assert preflight.status_code == 200
    assert preflight.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    allowed = preflight.headers["Access-Control-Allow-Headers"].lower()
    assert "content-type" in allowed
    assert "x-channel-id" in allowed
    assert "Access-Control-Allow-Credentials" not in preflight.headers

    for body in (browser(), {}):
        response = alice.device(path, body, Origin="https://shop.example")
        assert response.headers["Access-Control-Allow-Origin"] == "*"


def test_the_owners_calls_are_not_open_to_web_pages(alice):
    response = alice.send({"body": "x"}, Origin="https://shop.example")
    assert "Access-Control-Allow-Origin" not in response.headers


def test_an_address_that_subscribes_too_often_has_to_wait():
    owner = owner_of(make_channel(subscribes_per_minute=3))
    for number in range(3):
        subscribed(owner, browser(f"{HERE}{number}"))

    refused = owner.subscribe(browser(HERE))
    assert code(refused, 429) == "rate_limited"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60

    assert owner.subscribe(browser(HERE), address="203.0.113.8").status_code == 201
    assert owner.device("/unsubscribe", {"endpoint": HERE}).status_code == 200


def test_the_installations_limit_is_counted_for_all_channels_together(alice, bob, settings):
    settings.SUBSCRIBES_PER_MINUTE = 2
    address = "203.0.113.99"
    assert alice.subscribe(browser(), address=address).status_code == 201
    assert bob.subscribe(browser(), address=address).status_code == 201
    assert code(alice.subscribe(browser(), address=address), 429) == "rate_limited"


# --- at the same time -----------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_same_device_at_the_same_time_is_one_subscription(alice):
    body = browser(HERE)

    responses = at_once(*[lambda: alice.subscribe(body)] * 8)

    assert sorted(r.status_code for r in responses) == [200] * 7 + [201]
    assert len({r.json()["subscriptionId"] for r in responses}) == 1
    assert Subscription.objects.count() == 1
    assert subscribers(alice).web_subscribers == 1


@pytest.mark.django_db(transaction=True)
def test_devices_that_come_move_and_go_at_the_same_time_are_counted_exactly(alice):
    endpoints = [f"{HERE}{number}" for number in range(3)]

    def visit(number):
        here, there = endpoints[number % 3], endpoints[(number + 1) % 3]
        if number % 4 == 0:
            return alice.device("/unsubscribe", {"endpoint": here})
        return alice.subscribe(browser(here, previous_endpoint=there))

    for _ in range(4):
        responses = at_once(*[lambda n=n: visit(n) for n in range(8)])
        assert {r.status_code for r in responses} <= {200, 201}

    active = Subscription.objects.filter(expired_at=None).count()
    assert subscribers(alice).web_subscribers == active


@pytest.mark.django_db(transaction=True)
def test_a_key_that_is_no_json_number_of_ours_never_reaches_the_database(alice):
    raw = json.dumps(browser(HERE)).replace('"keys"', '"attributes": {"n": 1e400}, "keys"')
    response = Client().post(
        "/subscribe",
        raw,
        content_type="application/json",
        headers={"X-Channel-ID": str(alice.channel.id)},
    )
    faults(response, 400)
    assert not Subscription.objects.exists()

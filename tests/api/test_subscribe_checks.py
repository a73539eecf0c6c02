"""POST /subscribe: which endpoints, keys and attributes are accepted."""

import base64
import json

import pytest
from django.test import Client

from pushsvc.common import base64url
from subscriptions_app.api.serializers import SubscribeInput
from subscriptions_app.models import Subscription, Tag
from tests.api.devices import ANDROID_TOKEN, HERE, THERE, subscribed
from tests.api.support import code, errors, owner_of
from tests.factories import browser, browser_keys, make_channel, phone

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel(android_enabled=True, ios_enabled=True))


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
        (browser(platform=["ios"]), [("platform", "not_a_string")]),
        (browser(keys=None), [("keys", "null")]),
        (browser(keys="x"), [("keys", "not_an_object")]),
        (browser(keys={}), [("keys.p256dh", "required"), ("keys.auth", "required")]),
        (browser(vapid_public_key=1), [("vapid_public_key", "not_a_string")]),
        (browser(previous_auth=1), [("previous_auth", "not_a_string")]),
        (browser(previous_auth="x" * 256), [("previous_auth", "too_long")]),
        (browser(previous_subscription_id="x"), [("previous_subscription_id", "not_a_uuid")]),
        (browser(attributes=[]), [("attributes", "not_an_object")]),
    ],
)  # fmt: skip
def test_every_error_of_the_shape_is_named(alice, body, expected):
    response = alice.subscribe(body)
    assert errors(response) == expected
    assert response.json()["code"] == "validation_error"
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("atributes", "attributes"),
        ("timezonne", "timezone"),
        ("Attributes", "attributes"),
        ("external_Id", "external_id"),
        ("externalId", "external_id"),
        ("external-id", "external_id"),
        ("external_ids", "external_id"),
        ("provider_Token", "provider_token"),
        ("providerToken", "provider_token"),
        ("provider_tokem", "provider_token"),
        ("tag", "tags"),
        ("key", "keys"),
        ("timeZone", "timezone"),
        ("addTags", "add_tags"),
        ("previousEndpoint", "previous_endpoint"),
    ],
)
@pytest.mark.parametrize("platform", ["web", "android"])
def test_a_misspelt_field_is_refused_with_its_right_name(alice, platform, given, meant):
    body = browser(HERE) if platform == "web" else phone("android", ANDROID_TOKEN)
    refused = alice.subscribe(body | {given: "x"})

    assert errors(refused) == [(given, "unknown_field")]
    assert f"`{meant}`" in refused.json()["detail"]
    assert not Subscription.objects.exists()


def test_a_misspelt_field_of_the_keys_or_the_preferences_is_refused(alice):
    assert errors(alice.subscribe(with_keys(P256DH="x"))) == [("keys.P256DH", "unknown_field")]
    asked = alice.device("/preferences", browser(HERE) | {"choice": {"news": False}})
    assert errors(asked) == [("choice", "unknown_field")]
    left = alice.device("/unsubscribe", {"endPoint": HERE, "endpoint": HERE})
    assert errors(left) == [("endPoint", "unknown_field")]


def test_null_is_no_value(alice):
    """All optional fields but `external_id`, of which null is a logout."""
    body = browser(HERE, attributes={"plan": "pro"}, tags=["a"], timezone="UTC", language="de")
    before = subscribed(alice, body)
    optional = dict.fromkeys(set(SubscribeInput().fields) - {"endpoint", "keys", "external_id"})

    after = subscribed(alice, body | optional, status=200)

    assert (after.id, after.attributes) == (before.id, {"plan": "pro"})
    assert (after.timezone, after.language) == ("UTC", "de")
    assert list(Tag.objects.values_list("tag", flat=True)) == ["a"]
    named = subscribed(alice, body | {"attributes": {"plan": None, "visits": 2}}, status=200)
    assert named.attributes == {"visits": 2}


@pytest.mark.parametrize("name", ["endpoint", "provider_token"])
def test_a_phone_may_send_null_for_the_other_name_of_its_token(alice, name):
    names = {"endpoint": None, "provider_token": None, "keys": None} | {name: ANDROID_TOKEN}
    row = subscribed(alice, {"platform": "android"} | names)
    assert (row.platform, row.address) == ("android", ANDROID_TOKEN)
    asked = alice.device("/preferences", {"platform": "android", "identity_token": None} | names)
    assert asked.status_code == 200
    assert alice.device("/unsubscribe", {"platform": "android"} | names).status_code == 200


def test_what_browsers_and_pages_add_is_ignored(alice):
    more = {
        "expirationTime": None,
        "options": {"userVisibleOnly": True},
        "userAgent": "x",
        "lang": "de",
        "locale": "de",
        "auth": "of a phone",
        "": 1,
        "é" * 5_000: 1,
        "attribute_names": [],
    }
    body = with_keys(extra=1)
    names = {f"x{number}": number for number in range(4_000)}
    attributes = {"tag": "x", "Attributes": "x", "keys": "x"}
    subscribed(alice, body | more)
    subscribed(alice, body | names, status=200)
    row = subscribed(alice, body | {"attributes": attributes}, status=200)
    assert row.attributes == attributes


GOOD = {  # of RFC 8291, section 5
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyP"
    "js7Vd8pZGH6SRpkNtoIAiw4",
    "auth": "BTBZMqHH6r4Tts7J_aSIgg",
}
OFF_CURVE = base64url.encode(b"\x04" + b"\x01" * 64)
COMPRESSED = base64url.encode(b"\x02" + b"\x01" * 32)
HYBRID = base64url.encode(b"\x06" + b"\x01" * 64)


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
def test_keys_that_no_message_can_be_encrypted_for_are_refused(alice, name, value, expected):
    assert errors(alice.subscribe(with_keys(**{name: value}))) == [(f"keys.{name}", expected)]
    assert not Subscription.objects.exists()


def test_padded_keys_are_stored_without_padding(alice):
    keys = browser_keys()
    row = subscribed(
        alice,
        browser(HERE) | {"keys": {"p256dh": keys["p256dh"] + "=", "auth": keys["auth"] + "=="}},
    )
    assert (row.p256dh, row.auth) == (keys["p256dh"], keys["auth"])


# Both hold characters that the two alphabets of base64 spell differently.
STANDARD = {
    "p256dh": base64.b64encode(base64url.decode(GOOD["p256dh"])).decode(),
    "auth": "+//7BTBZMqHH6r4Tts7J/Q==",
}


def test_keys_in_the_standard_alphabet_of_base64_are_stored_as_base64url(alice):
    """As `btoa` spells them."""
    row = subscribed(alice, browser(HERE) | {"keys": STANDARD})
    assert (row.p256dh, row.auth) == (GOOD["p256dh"], "-__7BTBZMqHH6r4Tts7J_Q")

    moved = {"previous_endpoint": HERE, "previous_auth": STANDARD["auth"]}
    assert subscribed(alice, browser(THERE, **moved), status=200).id == row.id


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
    assert errors(response) == [("endpoint", "endpoint_not_allowed")]
    assert response.json()["code"] == "endpoint_not_allowed"
    assert not Subscription.objects.exists()


SENTINEL = "https://permanently-removed.invalid/fcm/send/here"


@pytest.mark.parametrize(
    "dead",
    [
        SENTINEL,
        "https://push.test/x",
        "https://push.example/x",
        "https://push.onion/x",
        "https://push.localhost/x",
        "https://push.local/x",
        "https://push/x",
    ],
)
def test_an_endpoint_that_never_resolves_replaces_no_live_one(alice, dead):
    live = subscribed(alice, browser(HERE, attributes={"plan": "pro"}))
    before = Subscription.objects.values().get()
    proof = {"previous_auth": live.auth, "previous_subscription_id": str(live.id)}

    for body in (browser(dead), browser(dead, previous_endpoint=HERE, **proof)):
        response = alice.subscribe(body)
        assert errors(response) == [("endpoint", "endpoint_not_allowed")]

    assert Subscription.objects.values().get() == before


def test_a_browser_recovers_from_an_endpoint_that_never_resolves(alice):
    """The SDK names the last endpoint that it saw."""
    row = subscribed(alice, browser(HERE, previous_endpoint=SENTINEL), status=201)
    assert row.address == HERE


def test_a_trusted_origin_is_accepted(alice, settings):
    settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({"http://127.0.0.1:8030"})
    row = subscribed(alice, browser("http://127.0.0.1:8030/push/1"))
    assert row.push_service == "127.0.0.1:8030"


def test_only_allowed_hosts_are_accepted_if_there_is_a_list(alice, settings):
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
def test_attributes_of_the_greatest_size_are_stored_as_sent(alice, attributes):
    assert subscribed(alice, browser(attributes=attributes)).attributes == attributes


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({f"k{n}": n for n in range(11)}, [("attributes", "too_many")]),
        ({"k" * 51: "v"}, [("attributes." + "k" * 51, "too_long")]),
        ({"é" * 51: 1}, [("attributes." + "é" * 51, "too_long")]),
        ({"plan": "v" * 256}, [("attributes.plan", "too_long")]),
        ({"plan": "😀" * 256}, [("attributes.plan", "too_long")]),
        ({"plan": True}, [("attributes.plan", "not_a_string_or_number")]),
        ({"plan": []}, [("attributes.plan", "not_a_string_or_number")]),
        (
            {"a": {}, "b": "ok", "k" * 51: "v"},
            [("attributes.a", "not_a_string_or_number"), ("attributes." + "k" * 51, "too_long")],
        ),
    ],
)
def test_attributes_beyond_their_limits_are_refused(alice, attributes, expected):
    assert errors(alice.subscribe(browser(attributes=attributes))) == expected


@pytest.mark.django_db(transaction=True)
def test_an_attribute_that_is_no_valid_json_number_never_reaches_the_database(alice):
    raw = json.dumps(browser(HERE)).replace('"keys"', '"attributes": {"n": 1e400}, "keys"')
    response = Client().post(
        "/subscribe",
        raw,
        content_type="application/json",
        headers={"X-Channel-ID": str(alice.channel.id)},
    )
    errors(response, 400)
    assert not Subscription.objects.exists()

"""POST /subscribe: who may subscribe, and with what."""

from functools import partial

import pytest
from django.test import Client

from channels_app.selectors import current_vapid_key
from pushsvc.common.store import sql
from subscriptions_app.api.serializers import SubscribeInput
from subscriptions_app.models import Subscription
from tests.api.devices import (
    ANDROID_TOKEN,
    FID,
    HERE,
    IOS_TOKEN,
    expire,
    subscribed,
    subscribers,
)
from tests.api.support import NOWHERE, NOWHERE_BARE, code, errors, owner_of
from tests.factories import add_crowd, browser, make_channel, phone
from tests.pipeline.support import in_threads, most_rows_read

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel(android_enabled=True, ios_enabled=True))


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe"])
def test_a_known_browser_is_found_without_reading_a_channel_that_grew_lately(alice, path):
    """PostgreSQL knows of no device of the channel."""
    add_crowd(make_channel(), 3_000)
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    add_crowd(alice.channel, 300)
    device = browser(HERE)
    alice.subscribe(device)
    body = device if path == "/subscribe" else {"endpoint": HERE}

    assert most_rows_read(lambda: alice.device(path, body), as_if_large=True) < 10


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


@pytest.mark.parametrize(
    ("more", "names_key", "statements"),
    [({}, False, 2), ({"attributes": {"plan": "pro"}}, False, 2), ({}, True, 3)],
    ids=["as it was", "with attributes", "with its VAPID key, as the SDK"],
)
def test_the_visit_of_a_known_browser_takes_one_statement_after_channel_and_key_are_read(
    alice, more, names_key, statements, django_assert_num_queries
):
    if names_key:
        more["vapid_public_key"] = current_vapid_key(alice.channel).public_key
    body = browser(HERE, **more)
    alice.subscribe(body)
    before = Subscription.objects.get()

    with django_assert_num_queries(statements):
        assert alice.subscribe(body).status_code == 200

    after = Subscription.objects.get()
    assert after.registered_at > before.registered_at
    assert (after.id, after.attributes) == (before.id, before.attributes)


def test_a_vapid_key_may_be_named_in_the_standard_base64_alphabet(alice):
    key = current_vapid_key(alice.channel).public_key
    standard = key.translate(str.maketrans("-_", "+/")) + "="

    assert alice.subscribe(browser(HERE, vapid_public_key=standard)).status_code == 201
    assert Subscription.objects.get().vapid_key.public_key == key


def test_devices_of_all_kinds_that_subscribe_simultaneously_are_stored_separately():
    def checked(data):
        return [SubscribeInput.checked(data) for _ in range(20)]

    phones = [phone("android", ANDROID_TOKEN), phone("ios", IOS_TOKEN)]
    found = in_threads(*(partial(checked, data) for data in [browser(HERE), *phones] * 2))

    kinds = [{(a["address"].platform, a["address"].text) for a in inputs} for inputs in found]
    assert kinds == [{("web", HERE)}, {("android", ANDROID_TOKEN)}, {("ios", IOS_TOKEN)}] * 2


def test_a_known_browser_keeps_its_id_and_gets_its_new_keys(alice):
    first = subscribed(alice, browser(HERE))
    body = browser(HERE, previous_auth=first.auth)

    again = subscribed(alice, body, status=200)

    assert again.id == first.id
    assert again.p256dh == body["keys"]["p256dh"]
    assert again.registered_at > first.registered_at
    assert subscribers(alice).web_subscribers == 1


def test_omitted_attributes_are_kept_and_given_ones_replace_all(alice):
    body = browser(HERE)
    subscribed(alice, body | {"attributes": {"plan": "pro", "city": "Bern"}})

    kept = subscribed(alice, body, status=200)
    assert kept.attributes == {"plan": "pro", "city": "Bern"}

    replaced = subscribed(alice, body | {"attributes": {"plan": "free"}}, status=200)
    assert replaced.attributes == {"plan": "free"}


def test_an_expired_subscription_becomes_active_again_with_its_id(alice):
    body = browser(HERE)
    first = subscribed(alice, body)
    expire(first)
    assert subscribers(alice).web_subscribers == 0

    again = subscribed(alice, body, status=200)

    assert again.id == first.id
    assert (again.expired_at, again.expired_code) == (None, "")
    assert subscribers(alice).web_subscribers == 1


def test_one_endpoint_has_a_subscription_for_each_channel(alice, bob):
    assert subscribed(alice, browser(HERE)).id != subscribed(bob, browser(HERE)).id
    assert subscribers(alice).web_subscribers == subscribers(bob).web_subscribers == 1


@pytest.mark.parametrize("spelling", [str.upper, str.lower])
@pytest.mark.parametrize("path", ["/subscribe", "/subscribe/"])
def test_the_channel_id_is_read_in_either_case_and_the_path_may_end_in_a_slash(
    alice, path, spelling
):
    channel_id = spelling(str(alice.channel.id))
    response = alice.device(path, browser(), **{"X-Channel-ID": channel_id})
    assert response.status_code == 201


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe"])
@pytest.mark.parametrize("given", ["", "abc", NOWHERE_BARE, f"{NOWHERE},{NOWHERE}"])
def test_a_request_without_a_channel_id_is_refused(alice, path, given):
    errors(alice.device(path, browser(), **{"X-Channel-ID": given}), 400)
    assert not Subscription.objects.exists()


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe"])
def test_an_unknown_channel_is_not_found(alice, path):
    errors(alice.device(path, browser(), **{"X-Channel-ID": NOWHERE}), 404)


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe"])
def test_other_methods_are_refused(alice, path):
    response = Client().get(path, headers={"X-Channel-ID": str(alice.channel.id)})
    assert response.status_code == 405
    assert "POST" in response.headers["Allow"]


# --- phones ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "token", "service"),
    [
        ("android", ANDROID_TOKEN, "fcm_v1"),
        ("android", FID, "fcm_v1"),
        ("android", "e_-9012345678901234567:APA91b", "fcm_v1"),
        ("android", "APA91b" + "x" * 140, "fcm_v1"),
        ("android", "x:" + "x" * 4094, "fcm_v1"),
        ("ios", IOS_TOKEN, "apns"),
        ("ios", "a" * 32, "apns"),
        ("ios", "a" * 200, "apns"),
    ],
)
@pytest.mark.parametrize("name", ["endpoint", "provider_token"])
def test_a_phone_is_identified_by_its_token(alice, platform, token, service, name):
    row = subscribed(alice, {"platform": platform, name: token})
    assert (row.platform, row.address, row.push_service) == (platform, token, service)
    assert row.vapid_key is None
    assert getattr(subscribers(alice), f"{platform}_subscribers") == 1
    assert subscribers(alice).web_subscribers == 0


def test_the_provider_token_is_used_where_an_endpoint_is_given_too(alice):
    body = {"platform": "ios", "endpoint": "not a token", "provider_token": IOS_TOKEN, "keys": {}}
    assert subscribed(alice, body).address == IOS_TOKEN


def test_an_ios_token_is_the_same_in_either_case(alice):
    first = subscribed(alice, phone("ios", IOS_TOKEN))
    again = subscribed(alice, phone("ios", IOS_TOKEN.upper()), status=200)
    assert again.id == first.id


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"platform": "android"}, [("provider_token", "required")]),
        ({"platform": "android", "provider_token": ""}, [("provider_token", "blank")]),
        ({"platform": "android", "provider_token": "a b"}, [("provider_token", "not_a_token")]),
        ({"platform": "android", "endpoint": "a\nb"}, [("endpoint", "not_a_token")]),
        ({"platform": "android", "endpoint": "x:" + "x" * 4095}, [("endpoint", "not_a_token")]),
        ({"platform": "android", "endpoint": "é"}, [("endpoint", "not_a_token")]),
        ({"platform": "android", "endpoint": f"{ANDROID_TOKEN}é"}, [("endpoint", "not_a_token")]),
        ({"platform": "android", "endpoint": f"{ANDROID_TOKEN}\n"}, [("endpoint", "not_a_token")]),
        (
            phone("android", ANDROID_TOKEN, auth="x"),
            [("auth", "not_16_bytes")],
        ),
        ({"platform": "ios", "endpoint": "a" * 31}, [("endpoint", "not_a_token")]),
        ({"platform": "ios", "endpoint": "a" * 201}, [("endpoint", "not_a_token")]),
        ({"platform": "ios", "endpoint": "g" * 64}, [("endpoint", "not_a_token")]),
        ({"platform": "ios", "endpoint": "\uff11" * 64}, [("endpoint", "not_a_token")]),
        (
            {"platform": "ios", "endpoint": None, "provider_token": None},
            [("provider_token", "null")],
        ),
    ],
)
def test_an_invalid_token_is_refused(alice, body, expected):
    assert errors(alice.subscribe(body)) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("null", "undefined", "None", "nil", "NaN", "false", "0", "abc", "BLACKLISTED"),
        *("SERVICE_NOT_AVAILABLE", "MISSING_INSTANCEID_SERVICE", "AUTHENTICATION_FAILED"),
        *("TOO_MANY_REGISTRATIONS", "[object-Object]", "{{token}}", "token", "your-fcm-token"),
        *(IOS_TOKEN, HERE, "ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]", NOWHERE),
        *(FID[:-1], f"{FID}x", f"a{FID[1:]}", f"{FID}:", f":{FID}", "APA91b"),
        *(ANDROID_TOKEN.replace(":", "%3A"), f'"{ANDROID_TOKEN}"', f"{FID},{FID}"),
    ],
)
@pytest.mark.parametrize("name", ["endpoint", "provider_token"])
def test_a_text_that_no_android_app_can_have_as_its_address_is_refused(alice, text, name):
    response = alice.subscribe({"platform": "android", name: text})
    assert errors(response) == [(name, "not_a_token")]
    detail = response.json()["errors"][0]["detail"]
    assert "FCM registration token" in detail
    assert "Firebase installation id" in detail
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        phone("android", ANDROID_TOKEN),
        phone("ios", IOS_TOKEN),
    ],
)
def test_a_platform_that_is_not_enabled_is_refused(bob, body):
    response = bob.subscribe(body)
    assert errors(response) == [("platform", "platform_not_enabled")]
    assert response.json()["code"] == "platform_not_enabled"


def test_web_can_be_disabled_too():
    owner = owner_of(make_channel(web_enabled=False))
    assert code(owner.subscribe(browser()), 400) == "platform_not_enabled"

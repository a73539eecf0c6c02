"""POST /send-notification: the payload limit to the byte, and dry runs."""

import pytest

from notifications_app.content.tracking import make_token
from notifications_app.content.values import Content
from notifications_app.delivery.registry import TRANSPORTS
from notifications_app.delivery.types import Message
from notifications_app.models import IdempotencyRecord, Notification
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from tests.api.devices import ANDROID_TOKEN, FID
from tests.api.support import accepted, errors
from tests.factories import browser, phone

pytestmark = pytest.mark.django_db


def payload_bytes(body, platform="web"):
    """What the device would get, tracking token included."""
    content = Content(body=body["body"], data=body["data"], ttl=1)
    message = Message(uuid7(), content, expires_at=0)
    transport = TRANSPORTS[Platform(platform)]
    return len(transport.payload(message, make_token(uuid7(), uuid7())))


@pytest.mark.parametrize("unit", ["x", "😀"])
@pytest.mark.parametrize(("platform", "limit"), [("web", 3993), ("android", 4096), ("ios", 4096)])
def test_a_payload_of_exactly_the_limit_is_accepted(everywhere, platform, limit, unit):
    body = {"body": unit, "data": {"k": ""}, "target_platforms": [platform]}
    body["data"]["k"] = "x" * (limit - payload_bytes(body, platform))
    assert payload_bytes(body, platform) == limit
    accepted(everywhere, body)

    body["data"]["k"] += "x"
    for refused in (everywhere.send(body), everywhere.send(body | {"dry_run": True})):
        assert errors(refused) == [("target_platforms", "payload_too_large")]
        assert refused.json()["code"] == "payload_too_large"
        assert platform in refused.json()["detail"]
    assert Notification.objects.count() == 1


def test_a_dry_run_answers_size_and_audience_and_stores_nothing(alice, bob):
    for number in range(3):
        alice.subscribe(browser(f"https://fcm.googleapis.com/fcm/send/{number}"))
    alice.device("/unsubscribe", {"endpoint": "https://fcm.googleapis.com/fcm/send/0"})
    bob.subscribe(browser())
    body = {"body": "x", "data": {"k": "v"}}

    response = alice.send(body | {"dry_run": True}, **{"Idempotency-Key": "k"})

    assert response.status_code == 200
    assert response.json() == {
        "platforms": {
            "web": {
                "payload_bytes": payload_bytes(body),
                "audience": 2,
                "estimated": False,
                "push_services": {
                    "fcm": {"payload_bytes": payload_bytes(body), "payload_limit": 3993}
                },
            }
        }
    }
    assert not Notification.objects.exists()
    assert not IdempotencyRecord.objects.exists()


def test_a_dry_run_counts_the_audience_of_each_platform(everywhere):
    everywhere.subscribe(browser())
    for token in (ANDROID_TOKEN, FID):
        everywhere.device("/subscribe", phone("android", token))

    response = everywhere.send(
        {"body": "x", "target_platforms": ["web", "android", "ios"], "dry_run": True}
    )

    found = response.json()["platforms"]
    assert {name: trial["audience"] for name, trial in found.items()} == {
        "web": 1,
        "android": 2,
        "ios": 0,
    }


MOZILLA = "https://updates.push.services.mozilla.com/wpush/v2/"


def push_services(owner, **fields):
    body = {"body": "x", "dry_run": True, "target_platforms": ["all"]}
    found = owner.send(body | fields).json()["platforms"]
    assert "push_services" not in found["android"]
    return {
        name: each["payload_limit"] for name, each in found["web"].get("push_services", {}).items()
    }


def test_a_dry_run_names_the_limit_of_each_push_service_of_the_audience(everywhere):
    """Firefox for Android takes less than Firefox on computers, at the same push service."""
    assert push_services(everywhere) == {}
    firefox = everywhere.subscribe(browser(f"{MOZILLA}1", attributes={"plan": "pro"}))
    everywhere.subscribe(browser("https://web.push.apple.com/1"))
    left = everywhere.subscribe(browser("https://push.example.org/1"))
    everywhere.device("/unsubscribe", {"endpoint": "https://push.example.org/1"})

    pro = {"attribute": "plan", "operator": "eq", "value": "pro"}
    assert push_services(everywhere) == {"apple": 3993, "mozilla": 2912}
    assert push_services(everywhere, rule=pro) == {"mozilla": 2912}
    ids = [each.json()["subscriptionId"] for each in (firefox, left)]
    assert push_services(everywhere, subscription_ids=ids) == {"mozilla": 2912}


def test_what_one_push_service_refuses_is_accepted_for_the_others(alice):
    alice.subscribe(browser(f"{MOZILLA}1"))
    accepted(alice, {"body": "x", "data": {"k": "x" * 3_500}})


def test_a_dry_run_counts_the_form_for_browsers_at_apple(alice):
    """Safari gets the texts and the data twice: for itself, and for the site's worker."""
    body = {"body": "x" * 100, "url": "https://shop.example/", "dry_run": True}
    alone = alice.send(body).json()["platforms"]["web"]["payload_bytes"]
    alice.subscribe(browser("https://web.push.apple.com/1"))
    alice.subscribe(browser(f"{MOZILLA}1"))

    web = alice.send(body).json()["platforms"]["web"]

    sizes = {name: each["payload_bytes"] for name, each in web["push_services"].items()}
    assert sizes["mozilla"] == alone
    assert web["payload_bytes"] == sizes["apple"] > alone + 300
    large = body | {"data": {"k": "x" * 3_000}}
    at = alice.send(large).json()["platforms"]["web"]["push_services"]
    assert at["apple"]["payload_bytes"] == at["mozilla"]["payload_bytes"] < 3993

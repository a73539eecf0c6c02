"""The demo page of `make run`: who may see it, who may send, and what it shows."""

import json

import pytest
from django.test import Client

from notifications_app.models import Notification
from subscriptions_app.models import Subscription
from tests.api.support import NOWHERE, code
from tests.browser.sdk.site import PUSH_SERVICE

pytestmark = pytest.mark.django_db(transaction=True)

OWN = "http://testserver"
PATHS = ["/demo", "/demo/sw.js", "/demo/send", f"/demo/notifications/{NOWHERE}"]


def write_record(path, owner):
    path.write_text(json.dumps({"channel_id": str(owner.channel.id), "api_key": owner.key}))


@pytest.fixture
def record(tmp_path, settings, alice):
    """Django's test client sees a demo of Alice's channel."""
    write_record(tmp_path / "demo.json", alice)
    settings.DEMO_RECORD = str(tmp_path / "demo.json")


def send(address="127.0.0.1", content_type="application/json", **headers):
    client = Client(REMOTE_ADDR=address)
    return client.post("/demo/send", {}, content_type, headers={"origin": OWN} | headers)


def ask(path):
    if path == "/demo/send":
        return send()
    return Client().get(path)


@pytest.mark.parametrize("path", PATHS)
def test_without_make_run_there_is_no_demo(path):
    assert code(ask(path), 404) == "not_found"


@pytest.mark.parametrize("path", PATHS)
def test_there_is_no_demo_before_its_channel_is_recorded(path, settings, tmp_path):
    settings.DEMO_RECORD = str(tmp_path / "demo.json")
    assert code(ask(path), 404) == "not_found"


def test_the_page_holds_the_channel_id_and_not_the_key(record, alice):
    page = Client(REMOTE_ADDR="203.0.113.7").get("/demo").content.decode()
    assert str(alice.channel.id) in page
    assert alice.key not in page
    assert "psk_" not in page


def test_the_demos_worker_is_the_one_line_of_the_guide(record):
    worker = Client().get("/demo/sw.js")
    assert worker.content == b'importScripts("/sdk/push-sw.js");\n'
    assert worker["Content-Type"].startswith("text/javascript")


def test_the_demo_page_on_this_machine_may_send(record, alice):
    sent = send()
    assert sent.status_code == 202
    notification = Notification.objects.get(pk=sent.json()["notification_id"])
    assert (notification.channel, notification.target_platforms) == (alice.channel, ["web"])
    assert notification.url == f"{OWN}/demo"


@pytest.mark.parametrize(
    "given",
    [
        {"address": "203.0.113.7"},
        {"address": "::ffff:203.0.113.7"},
        {"x_forwarded_for": "127.0.0.1"},
        {"forwarded": "for=127.0.0.1"},
        {"origin": "https://mallory.example"},
        {"origin": "http://testserver.mallory.example"},
        {"origin": "https://testserver"},
        {"origin": "null"},
        {"origin": ""},
    ],
)
def test_no_other_client_may_send(record, given):
    assert code(send(**given), 403) == "forbidden"
    assert not Notification.objects.exists()


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_form_of_another_site_sends_nothing(record, content_type):
    refused = Client().generic(
        "POST", "/demo/send", "{}", content_type=content_type, headers={"origin": OWN}
    )
    assert code(refused, 415) == "unsupported_media_type"
    assert not Notification.objects.exists()


def test_a_foreign_name_that_resolves_to_this_machine_is_rejected(record):
    """Another site can make its name resolve to this machine (DNS rebinding)."""
    origin = "http://mallory.example"
    assert code(send(host="mallory.example", origin=origin), 400) == "host_not_allowed"


def test_the_counts_are_those_of_the_demo_channel_and_shown_on_this_machine_only(
    record, alice, bob
):
    own = f"/demo/notifications/{send().json()['notification_id']}"
    assert Client().get(own).json() == {
        "status": "pending",
        "recipient_count": 0,
        "delivered_count": 0,
        "bounced_count": 0,
        "stopped_count": 0,
        "opted_out_count": 0,
        "expired_count": 0,
        "received_count": 0,
        "clicked_count": 0,
        "dismissed_count": 0,
    }
    assert code(Client(REMOTE_ADDR="203.0.113.7").get(own), 403) == "forbidden"
    foreign = bob.send({"body": "x"}).json()["notification_id"]
    assert code(Client().get(f"/demo/notifications/{foreign}"), 404) == "not_found"


@pytest.fixture
def page(context, service, demo_record, alice):
    """The demo page in a browser that has allowed notifications."""
    write_record(demo_record, alice)
    context.grant_permissions(["notifications"], origin=service)
    page = context.new_page()
    page.add_init_script(PUSH_SERVICE)
    page.goto(f"{service}/demo")
    page.wait_for_selector("#subscribe:visible")
    return page


def test_a_visitor_subscribes_sends_and_sees_the_counts_change(page):
    page.click("#subscribe")
    page.wait_for_selector("#unsubscribe:visible")
    assert Subscription.objects.get().expired_at is None
    page.click("#send")
    page.wait_for_selector("#log >> text=sent,")
    Notification.objects.update(
        status="sent", recipient_count=2, delivered_count=2, received_count=1, clicked_count=1
    )
    page.wait_for_selector("#log >> text=2 of 2 accepted")
    counts = [page.inner_text(f"#{name}_count") for name in ("delivered", "received", "clicked")]
    assert counts == ["2", "1", "1"]
    page.click("#unsubscribe")
    page.wait_for_selector("#subscribe:visible")
    assert Subscription.objects.get().expired_code == "unsubscribed"


def test_a_browser_that_cannot_reach_its_push_service_shows_what_to_do(page):
    page.evaluate("localStorage.setItem('push-service-fails', 'AbortError')")
    page.click("#subscribe")
    page.wait_for_selector("#problem >> text=Try Firefox, Chrome or Edge.")
    assert "cannot reach its push service" in page.inner_text("#problem")
    assert page.is_disabled("#send")

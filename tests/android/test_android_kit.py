"""clients/android and the Kotlin of docs/fcm.md, on the JVM, against the running service."""

import json
import re
import threading
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from subscriptions_app.devices.test_devices import device_names, invite
from tests.android import build
from tests.android.conftest import until
from tests.factories import make_category

OFFLINE = {"call": "addTags", "result": "waiting"}


def calls(network, path):
    return [body for asked, body in network.requests if asked == path]


# --- registering ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [{}, {"by_fid": True}])
def test_an_app_registers_at_its_first_start(phone, shop, kind):
    device = shop.device(**kind)

    phone.start(device.address)
    phone.do("firebase_calls", address=device.address)
    phone.idle()

    row = shop.row()
    assert row.address == device.address
    assert row.expired_at is None
    assert row.timezone
    assert row.language
    status = phone.status()
    assert (status["is_subscribed"], status["id"]) == (True, str(row.id))


def test_an_app_that_starts_offline_registers_when_there_is_a_network(phone, shop, network):
    network.down()

    phone.start(shop.device(by_fid=True).address)
    first = phone.result("addTags", ["team-7"])

    assert first.items() >= OFFLINE.items()
    assert "ConnectException" in first["reason"]
    [job] = phone.look()["jobs"]
    assert job["network"] == 1  # NETWORK_TYPE_ANY
    assert job["delay"] >= 30_000
    network.up()
    assert phone.do("run_job")
    assert shop.tags() == {"team-7"}
    assert phone.look()["jobs"] == []


def test_an_app_that_never_got_an_address_waits_for_it(phone, shop):
    phone.start(None)
    phone.call("addTags", ["team-7"])
    assert phone.status()["waiting"] == 1
    assert shop.rows() == []

    phone.do("firebase_calls", address=shop.device().address)

    phone.idle()
    assert shop.tags() == {"team-7"}


def test_what_was_called_offline_is_sent_after_a_new_start(phone, shop, network):
    device = shop.device(by_fid=True)
    network.down()
    phone.start(device.address)
    assert phone.result("login", "user-42", shop.identity_token("user-42"))["result"] == "waiting"

    network.up()
    phone.start(None)  # Firebase is still offline; the kit remembers the address

    phone.idle()
    assert shop.person() == "user-42"


def test_the_main_thread_never_waits_for_the_service(phone, shop, network):
    go_on = threading.Event()
    network.answers.append(go_on)
    phone.start(shop.device(by_fid=True).address)
    until(lambda: network.requests, lambda: "nothing is sent")

    for name, *arguments in (["addTags", ["a"]], ["logout"], ["unsubscribe"], ["subscribe"]):
        phone.call(name, *arguments)
    assert phone.look()["results"] == []  # each call returned while the first request waits

    go_on.set()
    phone.idle()
    assert shop.row().expired_at is None


def test_a_changed_address_keeps_the_subscription(phone, shop):
    old, new = shop.device(), shop.device()
    phone.start(old.address)
    phone.do("firebase_calls", address=old.address)
    phone.result("addTags", ["team-7"])
    before = shop.row()

    phone.do("firebase_calls", address=new.address)
    phone.idle()

    assert (shop.row().id, shop.row().address) == (before.id, new.address)
    assert shop.tags() == {"team-7"}


def test_a_token_that_becomes_an_installation_id_keeps_the_subscription(phone, shop):
    device = shop.device()
    phone.start(None)
    phone.do("firebase_calls", address=device.token)
    phone.result("login", "user-42", shop.identity_token("user-42"))
    before = shop.row()

    shop.google.register_by_fid(device)
    phone.start(device.fid)
    phone.idle()

    assert (shop.row().id, shop.row().address) == (before.id, device.fid)
    assert shop.person() == "user-42"


def test_the_secret_is_outside_of_backups(phone, shop):
    phone.start(shop.device(by_fid=True).address)
    phone.idle()

    stored = Path(phone.do("file"))

    assert stored.parent.name == "no_backup"
    assert len(json.loads(stored.read_text())["auth"]) == 22


def test_a_broken_file_makes_a_new_subscription(phone, shop):
    phone.start(shop.device(by_fid=True).address)
    phone.idle()
    Path(phone.do("file")).write_text('{"auth": "')

    phone.start(shop.device(by_fid=True).address)

    phone.idle()
    assert len(shop.rows()) == 2


# --- errors ---------------------------------------------------------------------------------------


def test_a_busy_service_is_left_alone_until_retry_after(phone, shop, network):
    phone.start(shop.device(by_fid=True).address)
    phone.idle()
    network.refuse(429, "rate_limited", Retry_After="120")
    assert phone.result("addTags", ["a"])["reason"] == "HTTP 429 rate_limited"
    sent = len(network.requests)

    assert phone.result("addTags", ["b"])["result"] == "waiting"
    phone.start(shop.device(by_fid=True).address)
    phone.status()

    assert len(network.requests) == sent
    [job] = phone.look()["jobs"]
    assert 60_000 < job["delay"] <= 120_000


@pytest.mark.parametrize("status", [408, 500, 502, 503])
def test_an_error_of_the_service_is_repeated(phone, shop, network, status):
    network.refuse(status, "unavailable", Retry_After="0")
    phone.start(shop.device(by_fid=True).address)
    until(lambda: phone.look()["jobs"], lambda: "no job")

    assert phone.do("run_job")

    assert shop.row().expired_at is None
    assert phone.status()["waiting"] == 0


def test_a_sign_in_page_of_a_wifi_is_no_response(phone, shop, network):
    phone.start(None)
    phone.do("firebase_calls", address=shop.device().address)
    phone.idle()
    network.answers.append((200, {"Content-Type": "text/html"}, b"<html>Sign in"))

    result = phone.result("addTags", ["a"])

    assert result["result"] == "waiting"
    assert phone.status()["waiting"] == 1


def test_a_refused_login_registers_the_device_without_it(phone, shop):
    phone.start(None)
    refused = "x.y.z"
    phone.call("login", "user-42", refused)
    phone.do("firebase_calls", address=shop.device().address)

    result = phone.next_result("login")

    assert (result["result"], result["status"]) == ("refused", 403)
    assert result["code"] == "identity_refused"
    phone.idle()
    assert shop.person() is None


def test_a_refused_tag_is_reported_and_the_next_call_goes_on(phone, shop):
    phone.start(shop.device(by_fid=True).address)

    refused = phone.result("addTags", ["no tag"])

    assert (refused["status"], refused["code"]) == (400, "validation_error")
    assert phone.result("addTags", ["a"])["result"] == "done"
    assert shop.tags() == {"a"}


def test_calls_before_the_start_are_refused(phone, shop, network):
    phone.do("stop")

    assert phone.result("addTags", ["a"])["code"] == "not_started"
    assert phone.status()["is_subscribed"] is False


def test_a_service_address_that_is_none_is_refused(phone, shop, network):
    phone.do("address", address=shop.device().address)
    phone.do("start", service="push.example.com", channel=str(shop.channel.id))
    phone.do("firebase_calls", address=shop.device().address)

    assert phone.result("addTags", ["a"])["code"] == "bad_address"


# --- people, tags and preferences -----------------------------------------------------------------


def test_a_user_signs_in_and_out(phone, shop):
    phone.start(shop.device(by_fid=True).address)

    assert phone.result("login", "user-42", shop.identity_token("user-42"))["result"] == "done"
    assert shop.person() == "user-42"

    assert phone.result("logout")["result"] == "done"
    assert shop.person() is None


def test_the_last_login_counts(phone, shop, network):
    network.down()
    phone.start(shop.device(by_fid=True).address)
    phone.call("login", "user-1", shop.identity_token("user-1"))
    phone.result("login", "user-2", shop.identity_token("user-2"))
    network.up()

    phone.call("logout")
    phone.idle()

    assert shop.person() is None
    logins = [body for body in calls(network, "/subscribe") if "external_id" in body]
    assert [body["external_id"] for body in logins] == [None]


def test_tags_and_attributes_change(phone, shop):
    phone.start(shop.device(by_fid=True).address)
    phone.result("addTags", ["a", "b"])
    phone.result("removeTags", ["a"])
    phone.result("setAttributes", {"plan": "pro", "visits": 3})

    assert shop.tags() == {"b"}
    assert shop.row().attributes == {"plan": "pro", "visits": 3}


def test_categories_are_chosen(phone, shop):
    make_category(shop.channel, "offers", default=False)
    phone.start(shop.device(by_fid=True).address)

    assert phone.result("choose", {"offers": True})["result"] == "done"
    assert phone.result("categories")["categories"] == [{"key": "offers", "chosen": True}]
    phone.result("choose", {"offers": None})
    assert phone.result("categories")["categories"] == [{"key": "offers", "chosen": False}]


def test_the_invitation_of_a_qr_code_makes_the_phone_a_test_device(phone, shop):
    sender = User.objects.create_user("sender", is_staff=True)
    shop.channel.account.memberships.create(user=sender, role="sender")
    invitation = invite(channel=shop.channel, name="the kitchen phone", user=sender)
    phone.start(None)
    assert phone.result("joinAsTestDevice", invitation)["code"] == "not_registered"

    phone.start(shop.device(by_fid=True).address)
    assert phone.result("joinAsTestDevice", invitation + "x")["code"] == "forbidden"
    assert phone.result("joinAsTestDevice", invitation)["result"] == "done"
    assert device_names(shop.channel.pk) == {shop.row().pk: "the kitchen phone"}


def test_an_unsubscribed_device_stays_unsubscribed_until_it_subscribes(phone, shop, network):
    device = shop.device(by_fid=True)
    phone.start(device.address)
    phone.idle()
    assert phone.result("unsubscribe")["result"] == "done"

    phone.start(device.address)
    assert phone.result("addTags", ["a"])["code"] == "unsubscribed"
    assert phone.status()["is_subscribed"] is False
    assert shop.row().expired_at is not None

    assert phone.result("subscribe")["result"] == "done"
    assert shop.row().expired_at is None


def test_an_unsubscribe_without_a_network_is_kept(phone, shop, network):
    device = shop.device(by_fid=True)
    phone.start(device.address)
    phone.idle()
    network.down()
    assert phone.result("unsubscribe")["result"] == "waiting"
    network.up()

    phone.start(device.address)

    phone.idle()
    assert shop.row().expired_at is not None


# --- messages -------------------------------------------------------------------------------------


@pytest.fixture
def device(phone, shop):
    device = shop.device(by_fid=True)
    phone.start(device.address)
    phone.idle()
    return device


def test_a_message_is_shown_and_reported(phone, shop, network, device):
    notification, message = shop.send(
        device,
        title="Bakery",
        icon=f"{network.url}/40.png",
        image=f"{network.url}/2048.png",
        url="https://shop.example/bread",
        actions=[{"id": "buy", "title": "Buy", "url": "https://shop.example/buy"}],
        android={"tag": "bread", "count": 3},
    )

    shown = phone.receive(message)

    assert shown["title"] == "Bakery"
    assert shown["text"] == "Fresh bread"
    assert (shown["channel"], shown["channel_name"]) == ("push", "Notifications")
    assert (shown["tag"], shown["count"], shown["buttons"]) == ("bread", 3, ["Buy"])
    assert shown["icon_width"] == 40
    assert 0 < shown["image_width"] < 2048
    phone.idle()
    until(lambda: shop.events(notification) == (1, 0, 0, {"buy": 0}), lambda: "not counted")


def test_a_message_with_data_only_is_shown_and_its_tap_counted(phone, shop, network, device):
    notification, message = shop.send(
        device,
        title="Bakery",
        image=f"{network.url}/40.png",
        url="https://shop.example/bread",
        android={"data_only": True},
    )
    assert "notification" not in message

    shown = phone.receive(message)
    assert (shown["title"], shown["text"], shown["image_width"]) == ("Bakery", "Fresh bread", 40)
    phone.do("tap", tag=shown["tag"], action=None)

    phone.idle()
    seen = phone.look()
    assert seen["opened"] == ["https://shop.example/bread"]
    assert seen["shown"] == []
    assert shop.events(notification) == (1, 1, 0, {})


def test_a_tap_on_a_button_opens_its_link_and_is_counted(phone, shop, device):
    buttons = [{"id": "buy", "title": "Buy", "url": "https://shop.example/buy"}]
    notification, message = shop.send(device, actions=buttons, android={"data_only": True})
    shown = phone.receive(message)

    phone.do("tap", tag=shown["tag"], action="Buy")

    phone.idle()
    seen = phone.look()
    assert seen["opened"] == ["https://shop.example/buy"]
    assert seen["shown"] == []
    assert shop.events(notification) == (1, 1, 0, {"buy": 1})


def test_a_dismissed_notification_is_counted(phone, shop, device):
    notification, message = shop.send(device)
    shown = phone.receive(message)

    phone.do("dismiss", tag=shown["tag"])

    phone.idle()
    assert shop.events(notification) == (1, 0, 1, {})


def test_a_tap_on_a_notification_of_the_system_is_counted_once(phone, shop, device):
    notification, message = shop.send(device, url="https://shop.example/bread")

    phone.do("tap_of_system", message=message)
    phone.do("tap_of_system", message=message, again=True)  # from the list of recent apps

    phone.idle()
    assert phone.look()["opened"] == ["https://shop.example/bread"]
    assert shop.events(notification) == (1, 1, 0, {})


def test_the_permission_for_notifications_is_requested(phone):
    assert phone.do("ask") == ["android.permission.POST_NOTIFICATIONS"]


def test_reports_without_a_network_are_sent_together_later(phone, shop, network, device):
    sent = [shop.send(device, body=f"Bread {count}") for count in range(3)]
    network.down()
    for _, message in sent:
        shown = phone.receive(message)
        phone.do("dismiss", tag=shown["tag"])
    until(lambda: phone.status()["waiting"] == 6, lambda: phone.status())
    network.up()
    before = len(calls(network, "/events"))

    assert phone.do("run_job")

    [body] = calls(network, "/events")[before:]
    assert len(body["events"]) == 6
    assert [shop.events(notification) for notification, _ in sent] == [(1, 0, 1, {})] * 3


def test_a_message_that_the_person_cannot_see_is_not_received(phone, shop, device):
    notification, message = shop.send(device)
    phone.do("mute")

    phone.do("receive", message=message)
    phone.do("wait_for_messages")

    phone.idle()
    assert phone.look()["shown"] == []
    assert shop.events(notification) == (0, 0, 0, {})


def test_a_broken_image_does_not_keep_a_message_away(phone, shop, network, device):
    network_error = "http://127.0.0.1:1/image.png"
    _, message = shop.send(device, image=network_error, android={"data_only": True})

    shown = phone.receive(message)

    assert shown["text"] == "Fresh bread"
    assert "image_width" not in shown


def test_messages_of_other_senders_are_left_alone(phone, shop, network, device):
    before = len(network.requests)

    phone.do("receive", message={"data": {"campaign": "1"}, "notification": {"title": "Other"}})
    phone.do("wait_for_messages")

    phone.idle()
    assert phone.look()["shown"] == []
    assert len(network.requests) == before


# --- the package ----------------------------------------------------------------------------------


def test_the_build_and_the_kit_have_one_version():
    built = re.search(r'^version = "(.+)" ', (build.KIT / "build.gradle.kts").read_text(), re.M)
    known = re.search(
        r'VERSION = "(.+)"', (build.SOURCES / "pushsvc/android/Values.kt").read_text()
    )

    assert built[1] == known[1]


def test_the_manifest_declares_every_component():
    manifest = (build.KIT / "src/main/AndroidManifest.xml").read_text()
    text = "\n".join(path.read_text() for path in build.SOURCES.rglob("*.kt"))

    components = re.findall(
        r"^class (\w+) : (?:Activity|BroadcastReceiver|JobService)\(", text, re.M
    )

    declared = re.findall(r'android:name="pushsvc.android.(\w+)"', manifest)
    assert sorted(components) == sorted(declared)

"""POST /send-notification: buttons, and what is for one platform alone."""

import pytest

from notifications_app.models import Notification
from tests.api.support import accepted, errors

pytestmark = pytest.mark.django_db
URL = "https://shop.example/"
EVERYWHERE = ["web", "android", "ios"]
FULL = {
    "actions": [
        {"id": "buy", "title": "Buy", "url": f"{URL}buy", "icon": f"{URL}buy.png",
         "web_url": "/buy", "android_url": "intent:#Intent;end", "ios_url": "myshop://buy"},
        {"id": "later-1", "title": "L" * 50},
    ],
    "web": {
        "title": "On the web", "body": "b", "url": f"{URL}web", "image": f"{URL}web.png",
        "badge": f"{URL}badge.png", "require_interaction": True, "silent": False,
        "renotify": True, "tag": "score-991", "lang": "de-AT", "dir": "auto", "app_badge": 0,
        "click": "focus",
    },
    "android": {
        "title": None, "url": "myshop://orders/17", "channel_id": "orders", "sound": "ding",
        "color": "#ff8800", "small_icon": "ic_box", "click_action": "OPEN", "tag": "order",
        "count": 3, "visibility": "private", "notification_priority": "max", "ticker": "Order 17",
        "direct_boot_ok": True, "analytics_label": "spring-sale_1.~%", "data_only": False,
    },
    "ios": {
        "url": "myshop://orders/17", "subtitle": "Order 17",
        "sound": {"name": "ding.wav", "critical": True, "volume": 0.8},
        "badge": 0, "category": "ORDER", "thread_id": "orders",
        "interruption_level": "time-sensitive", "relevance_score": 0.5,
        "target_content_id": "order", "content_available": True,
    },
}  # fmt: skip


def send(owner, **fields):
    return owner.send({"body": "Fresh bread", "target_platforms": EVERYWHERE} | fields)


def test_every_field_is_stored_as_sent_and_told_in_the_details(everywhere):
    row = accepted(everywhere, {"body": "x", "target_platforms": EVERYWHERE} | FULL)

    assert row.extras == FULL
    content = everywhere.call("GET", f"/notification/{row.id}/details").json()["content"]
    assert {name: content[name] for name in FULL} == FULL


@pytest.mark.parametrize(
    ("given", "stored"),
    [({}, {"click": "navigate"}), ({"click": "open"}, {"click": "open"})],
)
def test_what_a_click_does_is_the_channels_setting_unless_the_send_has_its_own(
    alice, given, stored
):
    alice.channel.web_click = "navigate"
    alice.channel.save()
    assert accepted(alice, {"body": "x", "web": given}).extras == {"web": stored}


def test_a_send_without_them_stores_nothing_of_them(alice):
    assert accepted(alice, {"body": "x", "web": {}, "ios": {}}).extras is None


def test_a_platform_that_is_no_target_may_be_described(alice):
    assert accepted(alice, {"body": "x", "ios": {"badge": 1}}).extras == {"ios": {"badge": 1}}


@pytest.mark.parametrize(
    ("fields", "attr", "code"),
    [
        ({"ios": {"soung": "ding"}}, "ios.soung", "unknown_field"),
        ({"ios": {"sound": {"name": "a", "volum": 1}}}, "ios.sound.volum", "unknown_field"),
        ({"ios": {"sound": {"volume": 1}}}, "ios.sound.name", "required"),
        ({"ios": {"sound": {"name": "a", "volume": 1.1}}}, "ios.sound.volume", "out_of_range"),
        ({"ios": {"sound": 5}}, "ios.sound", "not_a_string"),
        ({"ios": {"sound": ""}}, "ios.sound", "blank"),
        ({"ios": {"badge": -1}}, "ios.badge", "out_of_range"),
        ({"web": {"click": "close"}}, "web.click", "not_a_choice"),
        ({"web": {"app_badge": -1}}, "web.app_badge", "out_of_range"),
        ({"web": {"app_badge": 2**31}}, "web.app_badge", "out_of_range"),
        ({"web": {"app_badge": 1.5}}, "web.app_badge", "not_a_number"),
        ({"web": {"app_badge": True}}, "web.app_badge", "not_a_number"),
        ({"ios": {"badge": 2**31}}, "ios.badge", "out_of_range"),
        ({"ios": {"badge": "1"}}, "ios.badge", "not_a_number"),
        ({"ios": {"interruption_level": "urgent"}}, "ios.interruption_level", "not_a_choice"),
        ({"ios": {"relevance_score": True}}, "ios.relevance_score", "not_a_number"),
        ({"ios": {"relevance_score": -0.1}}, "ios.relevance_score", "out_of_range"),
        ({"ios": {"content_available": 1}}, "ios.content_available", "not_a_boolean"),
        ({"ios": []}, "ios", "not_an_object"),
        ({"android": {"color": "#fff"}}, "android.color", "malformed"),
        ({"android": {"count": 1.5}}, "android.count", "not_a_number"),
        ({"android": {"visibility": "PRIVATE"}}, "android.visibility", "not_a_choice"),
        (
            {"android": {"notification_priority": "urgent"}},
            "android.notification_priority", "not_a_choice",
        ),
        ({"android": {"ticker": "t" * 256}}, "android.ticker", "too_long"),
        ({"android": {"direct_boot_ok": "yes"}}, "android.direct_boot_ok", "not_a_boolean"),
        ({"android": {"analytics_label": "a b"}}, "android.analytics_label", "malformed"),
        ({"android": {"analytics_label": "a" * 51}}, "android.analytics_label", "malformed"),
        ({"android": {"analytics_label": ""}}, "android.analytics_label", "blank"),
        ({"android": {"title": "t" * 101}}, "android.title", "too_long"),
        ({"android": {"channel_id": ""}}, "android.channel_id", "blank"),
        ({"url": "myshop://orders/17"}, "url", "not_a_url"),
        ({"url": "/orders/17"}, "url", "not_a_url"),
        ({"url": "https://shop.example\\@bob.example/"}, "url", "not_a_url"),
        ({"icon": "/icon.png"}, "icon", "not_a_url"),
        ({"web": {"url": "javascript:alert(1)"}}, "web.url", "not_a_url"),
        ({"web": {"url": "//bob.example/"}}, "web.url", "not_a_url"),
        ({"web": {"url": "myshop://orders/17"}}, "web.url", "not_a_url"),
        ({"web": {"image": "/a.png"}}, "web.image", "not_a_url"),
        ({"web": {"url": "/" + "a" * 2_000}}, "web.url", "too_long"),
        ({"android": {"url": "%6aavascript:alert(1)"}}, "android.url", "not_a_url"),
        ({"android": {"url": "/orders/17"}}, "android.url", "not_a_url"),
        ({"android": {"url": "intent:#Intent;scheme=file;end"}}, "android.url", "not_a_url"),
        ({"android": {"image": "myshop://a.png"}}, "android.image", "not_a_url"),
        ({"android": {"url": "myshop://" + "a" * 2_000}}, "android.url", "too_long"),
        ({"android": {"url": ""}}, "android.url", "blank"),
        ({"ios": {"url": "Data:text/html,x"}}, "ios.url", "not_a_url"),
        ({"ios": {"url": "myshop://a%0d%0ab"}}, "ios.url", "not_a_url"),
        ({"translations": {"de": {"url": "myshop://a"}}}, "translations.de.url", "not_a_url"),
        ({"web": {"lang": "german language"}}, "web.lang", "not_a_language"),
        ({"web": {"dir": "up"}}, "web.dir", "not_a_choice"),
        ({"web": {"body": "b" * 256}}, "web.body", "too_long"),
        ({"web": {"body": None}}, "web.body", "blank"),
        ({"actions": [{"id": "a", "title": "A"}] * 4}, "actions", "too_many"),
        ({"actions": [{"id": "a", "title": "A"}] * 2}, "actions.1.id", "given_twice"),
        ({"actions": [{"id": "a b", "title": "A"}]}, "actions.0.id", "malformed"),
        ({"actions": [{"id": "a" * 33, "title": "A"}]}, "actions.0.id", "malformed"),
        ({"actions": [{"id": "a", "title": "A" * 51}]}, "actions.0.title", "too_long"),
        ({"actions": [{"id": "a"}]}, "actions.0.title", "required"),
        ({"actions": [{"id": "a", "title": "A", "link": "x"}]}, "actions.0.link", "unknown_field"),
        ({"actions": [{"id": "a", "title": "A", "url": "/"}]}, "actions.0.url", "not_a_url"),
        ({"actions": [{"id": "a", "title": "A", "url": "x:y"}]}, "actions.0.url", "not_a_url"),
        *(
            ({"actions": [{"id": "a", "title": "A", name: url}]}, f"actions.0.{name}", "not_a_url")
            for name, url in (
                ("web_url", "//bob.example"), ("web_url", "myshop://a"), ("android_url", "/a"),
                ("android_url", "file:///a"), ("ios_url", "blob:a"), ("ios_url", "myshop://a\\b"),
            )
        ),
    ],
)  # fmt: skip
def test_an_error_is_named_with_its_path(everywhere, fields, attr, code):
    assert errors(send(everywhere, **fields)) == [(attr, code)]
    assert not Notification.objects.exists()


def test_a_platform_needs_a_title_or_a_body(everywhere):
    without = {"android": {"title": None, "body": None}}

    assert errors(send(everywhere, title="Bread", **without)) == [("android.body", "blank")]
    assert send(everywhere, title="Bread", android={"body": None}).status_code == 202


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"actions": [{"id": "a", "title": "A"}]}, "actions"),
        ({"android": {"data_only": True}}, "title"),
        ({"android": {"data_only": True}}, "image"),
    ],
)
def test_data_may_use_a_name_on_android_unless_the_send_needs_it(everywhere, fields, name):
    data = {"data": {name: "theirs"}}

    assert send(everywhere, **data).status_code == 202
    assert errors(send(everywhere, **data, **fields)) == [(f"data.{name}", "reserved_name")]


def sizes(owner, **fields):
    platforms = send(owner, dry_run=True, **fields).json()["platforms"]
    return {name: each["payload_bytes"] for name, each in platforms.items()}


def test_a_dry_run_counts_what_each_platform_gets_alone(everywhere):
    plain = sizes(everywhere)
    for platform in EVERYWHERE:
        more = sizes(everywhere, **{platform: {"body": "Fresh bread" + "!" * 100}})
        assert more == plain | {platform: plain[platform] + 100}
    action = {"id": "a", "title": "A"}
    assert all(sizes(everywhere, actions=[action])[each] > plain[each] for each in EVERYWHERE)


def test_a_payload_that_is_too_large_on_one_platform_is_refused(everywhere):
    data = {"k": "x" * 3_700}

    assert send(everywhere, data=data).status_code == 202
    too_large = send(everywhere, data=data, ios={"url": URL + "u" * 400})
    assert errors(too_large) == [("target_platforms", "payload_too_large")]
    assert "on ios;" in too_large.json()["detail"]


def test_an_edit_replaces_or_removes_a_platforms_object_as_a_whole(everywhere):
    at = "2999-01-01T00:00:00Z"
    body = {"body": "x", "target_platforms": EVERYWHERE, "scheduled_at": at}
    row = accepted(everywhere, body | FULL)

    edited = everywhere.call("PATCH", f"/notification/{row.id}", {"ios": {"badge": 2}, "web": None})
    assert edited.status_code == 200
    row.refresh_from_db()
    assert row.extras == {
        "actions": FULL["actions"],
        "android": FULL["android"],
        "ios": {"badge": 2},
    }
    row_before = row.edited_at

    everywhere.call("PATCH", f"/notification/{row.id}", {"ios": {"badge": 2}})
    row.refresh_from_db()
    assert row.edited_at == row_before
    wrong = everywhere.call("PATCH", f"/notification/{row.id}", {"ios": {"soung": 2}})
    assert errors(wrong) == [("ios.soung", "unknown_field")]

"""The payload for browsers that show a message also without our worker."""

import json
import time

import pytest

from notifications_app.content.personal import values_of
from notifications_app.content.values import CONTENT, Content
from notifications_app.delivery.messages import Messages
from notifications_app.delivery.types import Site
from notifications_app.delivery.webpush.payload import MAX_PAYLOAD, payload
from pushsvc.common.platforms import Platform
from sandbox.webpush.declarative import declared
from tests.delivery.support import make_message

SITE = Site.of("https://shop.example/start", "Alice's shop")
NOWHERE = Site.of("", "Alice's shop")


def read(site=SITE, token="t" * 64, **content):
    """The payload, and what a browser without our worker makes of it."""
    made = payload(make_message(site=site, **content), token)
    return json.loads(made), declared(made)


def plain(**content):
    return json.loads(payload(make_message(**content), "t" * 64))


def test_a_browser_reads_the_notification_and_our_worker_everything():
    content = {
        "url": "https://shop.example/orders/17",
        "data": {"order": "17"},
        "actions": [{"id": "buy", "title": "Buy"}],
        "web": {"lang": "de", "dir": "rtl", "silent": True, "tag": "order-17", "app_badge": 3},
    }
    fields, shown = read(**content)

    assert (shown.title, shown.body) == ("Rain", "It rains.")
    assert shown.navigate == "https://shop.example/orders/17"
    assert (shown.lang, shown.direction, shown.silent) == ("de", "rtl", True)
    assert (shown.tag, shown.app_badge, shown.mutable) == ("order-17", 3, True)
    beside = {name: fields.pop(name) for name in ("web_push", "mutable", "notification")}
    assert (beside["web_push"], beside["mutable"]) == (8030, True)
    assert fields == plain(**content)
    told = {name: fields.pop(name) for name in ("title", "body", "url")}
    assert shown.data == fields
    assert told["url"] == shown.navigate


def test_without_a_tag_a_repeat_replaces_the_notification():
    fields, shown = read()
    assert shown.tag == fields["notification_id"]


@pytest.mark.parametrize(
    ("url", "site", "opens"),
    [
        ("https://shop.example/a", NOWHERE, "https://shop.example/a"),
        ("HTTP://shop.example/a", SITE, "HTTP://shop.example/a"),
        ("", SITE, "https://shop.example/start"),
        ("/orders/17", SITE, "https://shop.example/orders/17"),
    ],
)
def test_a_click_opens_the_url_or_else_the_channels_site(url, site, opens):
    assert read(site, url=url)[1].navigate == opens


@pytest.mark.parametrize("url", ["", "/orders/17"])
def test_without_an_address_to_open_the_payload_is_as_for_others(url):
    assert read(NOWHERE, url=url) == (plain(url=url), None)


@pytest.mark.parametrize(
    ("site", "title"), [(SITE, "shop.example"), (Site.of("", "Alice's shop"), "Alice's shop")]
)
def test_a_notification_without_a_title_has_the_sites_name(site, title):
    fields, shown = read(site, title="", url="https://e.example/")
    assert shown.title == title
    assert "title" not in fields


def test_what_a_click_does_is_for_the_worker_alone():
    fields, _ = read(web={"click": "focus"}, url="https://shop.example/orders/17")
    assert fields["click"] == plain(web={"click": "focus"})["click"] == "focus"
    assert "click" not in plain()


def test_a_badge_of_zero_removes_it():
    fields, shown = read(web={"app_badge": 0})
    assert fields["app_badge"] == shown.app_badge == 0
    assert plain(web={"app_badge": 0})["app_badge"] == 0
    assert "app_badge" not in read()[0]


def test_what_would_be_too_large_is_sent_as_to_others():
    spare = MAX_PAYLOAD - len(payload(make_message(site=SITE, data={"k": ""}), "t" * 64))
    fits = {"k": "x" * (spare // 2)}  # `data` is there twice
    assert read(data=fits)[1] is not None
    over = {"k": "x" * (spare // 2 + 1)}
    assert read(data=over) == (plain(data=over), None)


def personal(name, **content):
    content = {"body": "Hi", "ttl": 60, "personalize": True} | content
    assert content.keys() <= set(CONTENT)
    site = content.pop("site", SITE)
    messages = Messages(
        make_message().notification_id,
        Content(**content),
        Platform.WEB,
        expires_at=time.monotonic() + 60,
        site=site,
    )
    values = values_of(
        platform=Platform.WEB, notification_id="x", attributes={"name": name}, sent_vars={}
    )
    made = payload(messages.filled("", values), "t" * 64)
    return json.loads(made), declared(made)


@pytest.mark.parametrize("name", ['Zo"ë', "Al\\ice", ""])
def test_each_recipient_reads_its_own_texts(name):
    fields, shown = personal(
        name,
        title="Hi {{ name }}",
        body="For {{ name | default: 'you' }}",
        url="https://shop.example/?for={{ name }}",
        data={"who": "{{ name }}"},
    )
    assert (shown.title, shown.body) == (fields["title"], fields["body"])
    assert name in shown.title
    assert shown.navigate == fields["url"]
    assert shown.data["data"] == fields["data"] == {"who": name}
    assert shown.data["token"] == fields["token"] == "t" * 64


def test_a_path_of_the_site_is_resolved_with_the_recipients_values():
    fields, shown = personal("Zoë", web={"url": "/orders/{{ name }}"})
    assert fields["url"] == "/orders/Zo%C3%AB"
    assert shown.navigate == "https://shop.example/orders/Zo%C3%AB"


def test_a_title_that_is_empty_for_a_recipient_is_the_sites_name():
    fields, shown = personal("", title="{{ name }}")
    assert shown.title == "shop.example"
    assert "title" not in fields

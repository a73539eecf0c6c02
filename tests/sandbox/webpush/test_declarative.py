"""Declarative messages: what a browser shows by itself, and what it cannot read."""

import json

import pytest

from sandbox.responses import RejectedError
from sandbox.webpush.declarative import declared
from tests.sandbox.webpush.sender import encoded

SHOWN = {"title": "Rain", "navigate": "https://shop.example/"}


def message(**members):
    return json.dumps({"web_push": 8030, "notification": SHOWN} | members).encode()


def test_the_example_of_the_specification_is_shown():
    example = (
        b'{"web_push": 8030, "notification": {"title": "Ada emailed", "lang": "en-US",'
        b' "dir": "ltr", "body": "Did you hear?", "navigate": "https://email.example/12"}}'
    )
    shown = declared(example)
    assert (shown.title, shown.body, shown.lang) == ("Ada emailed", "Did you hear?", "en-US")
    assert (shown.direction, shown.navigate) == ("ltr", "https://email.example/12")
    assert (shown.mutable, shown.app_badge, shown.silent) == (False, None, None)


@pytest.mark.parametrize("text", [b"", b"Hi", b"[]", b"8030", b"{}", b'{"title": "Rain"}', b"\xff"])
def test_another_message_is_none(text):
    assert declared(text) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"web_push": "8030"},
        {"web_push": 8031},
        {"notification": None},
        {"notification": "Rain"},
        *({"notification": SHOWN | each} for each in (
            {"title": None}, {"title": 7}, {"title": ""},
            {"navigate": None}, {"navigate": 5}, {"navigate": "/orders/1"},
            {"navigate": "https://[bad"}, {"navigate": "myshop://orders/1"},
            {"body": 5}, {"tag": 5}, {"lang": 5}, {"dir": "up"}, {"icon": "icon.png"},
            {"silent": "yes"}, {"renotify": True}, {"mutable": 1}, {"app_badge": -1},
        )),
        {"mutable": "yes"},
        {"app_badge": -1},
        {"app_badge": 1.5},
        {"app_badge": True},
        {"app_badge": 2**31},
        {"app_badge": 3},  # and another one, or none, in the notification
    ],
)  # fmt: skip
def test_a_message_that_no_browser_can_show_is_rejected(broken):
    with pytest.raises(RejectedError):
        declared(message(**broken))


def test_the_push_service_checks_and_keeps_what_a_browser_would_show(sandbox, sender, device):
    assert sender.send(device, encoded(device, message(mutable=True))).status == 201
    assert sender.send(device, encoded(device, b"Hi")).status == 201
    assert sender.send(device, encoded(device, message(notification={}))).status == 400
    kept = [receipt.declared for receipt in sandbox.messages(device.id)]
    assert [each and each.title for each in kept] == ["Rain", None, None]

"""Devices get what a template said when the send was accepted."""

import json

from notifications_app.sends.templates import template_delete, template_update
from tests import factories
from tests.api.support import accepted, owner_of
from tests.pipeline import phones, support

CONTENT = {
    "title": "Your order",
    "body": "It left our warehouse.",
    "data": {"order": "4711", "a": "1"},
    "android": {"sound": "ding"},
    "ios": {"badge": 3},
}
OTHER = {"title": "Other", "body": "Something else.", "ios": {"badge": 9}}


def test_a_template_that_changes_before_the_delivery_changes_nothing(sandbox, fcm, apns, channel):
    phones.store_google(fcm, channel)
    phones.store_apple(apns, channel)
    ((browser, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    ((android, _),) = factories.subscribe_androids(fcm, channel)
    ((iphone, _),) = factories.subscribe_iphones(apns, channel)
    named = {"channel_id": channel.pk}
    template = factories.make_template(channel, content=CONTENT)
    named["template_id"] = template.pk

    body = {"template_id": str(template.pk), "title": "Order 4711", "target_platforms": ["all"]}
    notification = accepted(owner_of(channel), body)
    template_update(**named, name="Other", content=OTHER)
    support.plan(notification)
    template_delete(**named)
    phones.deliver(notification, "web", "android", "ios")

    shown = json.loads(browser.receipts[0].plaintext)
    assert (shown["title"], shown["body"]) == ("Order 4711", CONTENT["body"])
    assert [name for name in shown["data"] if name in CONTENT["data"]] == ["order", "a"]
    alert = {"title": "Order 4711", "body": CONTENT["body"]}
    assert android.receipts[0].message["notification"] == alert
    assert android.receipts[0].message["android"]["notification"]["sound"] == "ding"
    aps = json.loads(iphone.receipts[0].payload)["aps"]
    assert (aps["alert"], aps["badge"]) == (alert, 3)

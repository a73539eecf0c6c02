"""push.js in Chromium, on a site of another origin, against the real web process.

Only the push service is a replacement (site.py), because Chromium has none without Google's keys.
"""

import pytest

from channels_app.services import vapid_key_rotate
from subscriptions_app.models import Subscription
from tests.api.devices import expire
from tests.browser.sdk.site import HTML, PUSH_SERVICE, attempt, visit
from tests.browser.sdk.support import next_event, refusal, with_events

pytestmark = pytest.mark.django_db(transaction=True)

PUSH = "https://updates.push.services.mozilla.com/wpush"


def subscription():
    return Subscription.objects.get()


def subscribe(page, options="{}"):
    value, error = attempt(page, f"push.subscribe({options})")
    assert error is None
    return value


def note_events(page):
    page.evaluate(
        """() => {
          window.events = [];
          for (const type of ["subscribed", "unsubscribed", "changed", "error"])
            push.addEventListener(type, ({detail}) => events.push([type, detail.code ?? detail]));
        }"""
    )


def calls_of(page, site):
    """The paths that the page calls at the service from now on."""
    seen = []
    page.on(
        "request",
        lambda request: (
            seen.append(request.url.removeprefix(site.service))
            if request.url.startswith(site.service)
            else None
        ),
    )
    return seen


def test_a_click_on_the_guides_button_subscribes_the_browser(allowed, site):
    page = visit(allowed, site)
    assert attempt(page, "push.isSubscribed()") == (False, None)
    note_events(page)
    page.click("#push-subscribe")
    kind, detail = next_event(page)
    assert kind == "subscribed"
    assert detail == {"subscriptionId": str(subscription().id), "endpoint": f"{PUSH}/1"}
    assert subscription().address == f"{PUSH}/1"
    assert attempt(page, "push.isSubscribed()") == (True, None)
    assert page.evaluate("push.permission") == "granted"


def test_attributes_are_stored_replaced_and_kept(allowed, site):
    page = visit(allowed, site)
    subscribe(page, "{attributes: {plan: 'free', visits: 3}}")
    assert subscription().attributes == {"plan": "free", "visits": 3}
    subscribe(page)
    assert subscription().attributes == {"plan": "free", "visits": 3}
    assert attempt(page, "push.setAttributes({plan: 'pro'})") == (None, None)
    assert subscription().attributes == {"plan": "pro"}


def test_unsubscribing_ends_the_subscription_in_browser_and_service(allowed, site):
    page = visit(allowed, site)
    subscribe(page)
    note_events(page)
    assert attempt(page, "push.unsubscribe()") == (None, None)
    assert next_event(page) == ["unsubscribed", {}]
    assert subscription().expired_code == "unsubscribed"
    assert page.evaluate("localStorage.getItem('push-service')") == "null"
    assert attempt(page, "push.isSubscribed()") == (False, None)


def test_after_a_rotation_the_browser_subscribes_again_and_keeps_its_id(allowed, site, alice):
    page = visit(allowed, site)
    first = subscribe(page, "{attributes: {plan: 'pro'}}")
    new_key = vapid_key_rotate(channel=alice.channel)
    note_events(page)
    second = subscribe(page)
    assert second == {"subscriptionId": first["subscriptionId"], "endpoint": f"{PUSH}/2"}
    assert next_event(page) == ["changed", {**second, "previousEndpoint": f"{PUSH}/1"}]
    moved = subscription()
    assert (moved.address, moved.vapid_key_id) == (f"{PUSH}/2", new_key.id)
    assert moved.attributes == {"plan": "pro"}


def posted(page, site):
    """The texts that the page sends to the service from now on."""
    sent = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    return sent


def without_address(page, until):
    page.evaluate(f"localStorage.setItem('push-service-without-until', {until})")


def test_a_rotation_waits_for_a_browser_that_has_no_address_for_a_moment(allowed, site, alice):
    page = visit(allowed, site)
    first = subscribe(page)
    vapid_key_rotate(channel=alice.channel)
    without_address(page, until=3)
    sent = posted(page, site)

    second = subscribe(page)

    assert second == {"subscriptionId": first["subscriptionId"], "endpoint": f"{PUSH}/4"}
    assert subscription().address == f"{PUSH}/4"
    assert not any(".invalid" in text for text in sent)


def test_a_browser_that_gets_no_address_keeps_its_row_and_tries_again_at_a_visit(
    allowed, site, alice
):
    page = visit(with_events(allowed), site)
    subscribe(page)
    vapid_key_rotate(channel=alice.channel)
    without_address(page, until=6)
    sent = posted(page, site)

    error = refusal(page)

    assert (error["code"], error["willRetry"]) == ("no_address", False)
    assert (subscription().address, subscription().expired_at) == (f"{PUSH}/1", None)
    assert not any(".invalid" in text for text in sent)
    assert attempt(page, "push.isSubscribed()") == (False, None)
    page.reload()
    assert next_event(page)[0] == "changed"
    assert subscription().address == f"{PUSH}/7"


def test_an_address_that_is_none_is_replaced_and_never_unsubscribed_at_the_service(allowed, site):
    """An earlier version of push.js kept it."""
    page = visit(allowed, site)
    first = subscribe(page)
    sent = posted(page, site)

    page.evaluate("moveTo('https://permanently-removed.invalid/fcm/send/x')")
    assert subscribe(page)["subscriptionId"] == first["subscriptionId"]
    assert subscription().address == f"{PUSH}/2"
    page.evaluate("moveTo('https://permanently-removed.invalid/fcm/send/x')")
    assert attempt(page, "push.unsubscribe()") == (None, None)

    assert subscription().expired_code == "unsubscribed"
    assert not any(".invalid" in text for text in sent)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_browser_whose_key_a_push_service_rejects_subscribes_again(allowed, site, is_known):
    page = visit(with_events(allowed), site)
    first = subscribe(page, "{attributes: {plan: 'pro'}}")
    expire(subscription(), "vapid_refused")
    if not is_known:
        page.evaluate(f"localStorage.removeItem('pushsvc:{site.channel_id}')")
        page.reload()

    second = subscribe(page)

    assert second == {"subscriptionId": first["subscriptionId"], "endpoint": f"{PUSH}/2"}
    moved = subscription()
    assert (moved.address, moved.expired_at) == (f"{PUSH}/2", None)
    assert moved.attributes == {"plan": "pro"}
    kind, detail = next_event(page, 2 if is_known else 1)
    assert kind == "changed"
    assert detail["endpoint"] == f"{PUSH}/2"


def test_a_changed_endpoint_is_reported_at_the_next_visit_and_keeps_the_id(allowed, site):
    page = visit(with_events(allowed), site)
    first = subscribe(page)
    page.evaluate(f"moveTo('{PUSH}/elsewhere')")
    page.reload()
    kind, detail = next_event(page)
    assert (kind, detail["previousEndpoint"]) == ("changed", f"{PUSH}/1")
    assert str(subscription().id) == first["subscriptionId"]
    assert subscription().address == f"{PUSH}/elsewhere"


def test_a_visit_soon_after_makes_no_request_and_one_the_next_day_registers_again(allowed, site):
    page = visit(allowed, site)
    subscribe(page)
    before = subscription().registered_at
    calls = calls_of(page, site)
    page.reload()
    assert attempt(page, "push.isSubscribed()") == (True, None)
    page.wait_for_load_state("networkidle")
    assert [path for path in calls if not path.startswith("/sdk/")] == []
    page.evaluate(
        """() => {
          const [name] = Object.keys(localStorage).filter((key) => key.startsWith("pushsvc:"));
          const record = JSON.parse(localStorage[name]);
          localStorage[name] = JSON.stringify({...record, settledAt: record.settledAt - 864e5});
        }"""
    )
    with page.expect_response(lambda answer: answer.url.endswith("/subscribe")):
        page.reload()
    assert subscription().registered_at > before


def test_a_subscribe_while_offline_is_completed_when_the_network_is_back(allowed, site):
    page = visit(allowed, site)
    note_events(page)
    allowed.set_offline(True)
    error = refusal(page, "push.subscribe({attributes: {plan: 'pro'}})")
    assert (error["code"], error["willRetry"]) == ("offline", True)
    assert attempt(page, "push.isSubscribed()") == (False, None)
    allowed.set_offline(False)
    assert next_event(page)[0] == "subscribed"
    assert subscription().attributes == {"plan": "pro"}


def test_a_subscribe_while_offline_is_completed_at_the_next_visit(allowed, site):
    page = visit(with_events(allowed), site)
    allowed.set_offline(True)
    assert refusal(page)["code"] == "offline"
    page.close()
    allowed.set_offline(False)
    assert next_event(visit(allowed, site))[0] == "subscribed"
    assert subscription().address == f"{PUSH}/1"


def test_an_unsubscribe_while_offline_is_reported_at_the_next_visit(allowed, site):
    page = visit(allowed, site)
    subscribe(page)
    allowed.set_offline(True)
    assert attempt(page, "push.unsubscribe()") == (None, None)
    assert page.evaluate("localStorage.getItem('push-service')") == "null"
    assert subscription().expired_at is None
    page.close()
    allowed.set_offline(False)
    later = allowed.new_page()
    with later.expect_response(lambda answer: answer.url.endswith("/unsubscribe")):
        later.goto(site.origin)
    assert subscription().expired_code == "unsubscribed"


def test_attributes_set_while_offline_are_stored_when_the_network_is_back(allowed, site):
    page = visit(allowed, site)
    subscribe(page)
    allowed.set_offline(True)
    error = refusal(page, "push.setAttributes({plan: 'pro'})")
    assert (error["code"], error["willRetry"]) == ("offline", True)
    with page.expect_response(lambda answer: answer.url.endswith("/subscribe")):
        allowed.set_offline(False)
    assert subscription().attributes == {"plan": "pro"}


def test_a_service_that_returned_an_error_is_called_again_at_the_next_visit(allowed, site):
    page = visit(with_events(allowed), site)
    away = '{"code": "database_unavailable", "detail": "Nothing was stored."}'
    headers = {"Access-Control-Allow-Origin": "*"}
    allowed.route(
        f"{site.service}/subscribe",
        lambda route: route.fulfill(status=503, body=away, headers=headers),
    )
    error = refusal(page)
    assert (error["code"], error["willRetry"]) == ("refused", True)
    assert error["problem"]["code"] == "database_unavailable"
    allowed.unroute(f"{site.service}/subscribe")
    page.reload()
    assert next_event(page)[0] == "subscribed"


def test_a_permanently_rejected_call_is_not_repeated_at_the_next_visit(allowed, site, alice):
    page = visit(allowed, site)
    alice.channel.delete()
    assert refusal(page)["problem"]["code"] == "channel_not_found"
    calls = calls_of(page, site)
    page.reload()
    assert attempt(page, "push.isSubscribed()") == (False, None)
    page.wait_for_load_state("networkidle")
    assert [path for path in calls if not path.startswith("/sdk/")] == []


def test_two_tabs_that_open_after_a_rotation_subscribe_once(allowed, site, alice):
    page = visit(allowed, site)
    subscribe(page)
    vapid_key_rotate(channel=alice.channel)
    other = visit(allowed, site)
    for tab in (page, other):
        tab.evaluate("() => { window.done = push.subscribe(); }")
    endpoints = [tab.evaluate("done")["endpoint"] for tab in (page, other)]
    assert endpoints == [f"{PUSH}/2", f"{PUSH}/2"]
    assert subscription().address == f"{PUSH}/2"


def test_only_subscribe_asks_for_permission(context, site):
    context.add_init_script(
        """
        window.asked = 0;
        Object.defineProperty(Notification, "permission", {get: () => "default"});
        Notification.requestPermission = async () => { asked += 1; return "default"; };
        """
    )
    page = visit(context, site)
    assert attempt(page, "push.isSubscribed()") == (False, None)
    assert attempt(page, "push.unsubscribe()") == (None, None)
    assert page.evaluate("push.permission") == "default"
    assert page.evaluate("asked") == 0
    assert refusal(page)["code"] == "permission_dismissed"
    assert page.evaluate("asked") == 1


def test_a_revoked_permission_ends_the_background_work(allowed, site):
    page = visit(allowed, site)
    subscribe(page)
    allowed.clear_permissions()
    page.evaluate(f"moveTo('{PUSH}/elsewhere')")
    allowed.add_init_script(
        'Object.defineProperty(Notification, "permission", {get: () => "denied"});'
    )
    calls = calls_of(page, site)
    page.reload()
    assert attempt(page, "push.isSubscribed()") == (False, None)
    page.wait_for_load_state("networkidle")
    assert [path for path in calls if not path.startswith("/sdk/")] == []


def test_the_es_module_exports_what_the_script_defines(allowed, site):
    site.files["/module"] = (
        HTML,
        f"""<!DOCTYPE html><script type="module">
        import {{ init, PushError }} from "{site.service}/sdk/push.mjs";
        window.push = init({{channel: "{site.channel_id}", serviceWorker: "/push-sw.js"}});
        window.isSame = init === pushsvc.init && PushError === pushsvc.PushError;
        </script>""",
    )
    page = visit(allowed, site, "/module")
    page.wait_for_function("window.push")
    assert page.evaluate("isSame") is True
    subscribe(page)
    assert subscription().address == f"{PUSH}/1"


def test_the_page_has_every_name_of_the_types(allowed, site):
    page = visit(allowed, site)
    kinds = page.evaluate(
        """() => ({
          init: typeof pushsvc.init, PushError: typeof pushsvc.PushError, origin: pushsvc.origin,
          ...Object.fromEntries(["isSubscribed", "subscribe", "setAttributes", "unsubscribe",
            "addEventListener", "permission"].map((name) => [name, typeof push[name]])),
          isTarget: push instanceof EventTarget,
          isError: new pushsvc.PushError("offline") instanceof Error,
        })"""
    )
    functions = ("init", "PushError", "isSubscribed", "subscribe", "setAttributes", "unsubscribe")
    assert {name for name in functions if kinds[name] != "function"} == set()
    assert kinds["permission"] == "string"
    assert kinds["origin"] == site.service
    assert (kinds["isTarget"], kinds["isError"]) == (True, True)


def test_the_sdk_works_for_one_page_if_localstorage_is_blocked(allowed, site):
    page = allowed.new_page()
    page.add_init_script(
        PUSH_SERVICE.replace("localStorage", "sessionStorage")
        + "Object.defineProperty(window, 'localStorage', {get: () => { throw new Error('no'); }});"
    )
    page.goto(site.origin)
    subscribe(page)
    assert attempt(page, "push.isSubscribed()") == (True, None)


def test_an_unsubscribe_and_a_subscribe_while_offline_keep_the_subscription(allowed, site):
    """The service never heard of the unsubscribe, so it must not count the browser twice."""
    page = visit(allowed, site)
    first = subscribe(page, "{attributes: {plan: 'pro'}}")
    allowed.set_offline(True)
    assert attempt(page, "push.unsubscribe()") == (None, None)
    assert attempt(page, "push.isSubscribed()") == (False, None)
    note_events(page)
    allowed.route(f"{site.service}/unsubscribe", lambda route: route.abort())
    with page.expect_request(f"{site.service}/unsubscribe"):
        allowed.set_offline(False)  # the page tries to report it to the service

    second = subscribe(page)

    assert second == {"subscriptionId": first["subscriptionId"], "endpoint": f"{PUSH}/2"}
    assert next_event(page) == ["error", "offline"]
    assert next_event(page, 2) == ["subscribed", second]
    assert subscription().attributes == {"plan": "pro"}
    assert attempt(page, "push.isSubscribed()") == (True, None)


def test_a_subscribe_after_a_completed_unsubscribe_makes_a_new_subscription(allowed, site):
    page = visit(allowed, site)
    first = subscribe(page, "{attributes: {plan: 'pro'}}")
    assert attempt(page, "push.unsubscribe()") == (None, None)

    second = subscribe(page)

    assert second["subscriptionId"] != first["subscriptionId"]
    assert Subscription.objects.get(expired_at=None).attributes == {}


def test_the_worker_remembers_the_subscription_when_the_page_has_lost_its_record(allowed, site):
    page = visit(allowed, site)
    first = subscribe(page, "{attributes: {plan: 'pro'}}")
    page.evaluate(
        """() => {
          for (const name of Object.keys(localStorage))
            if (name.startsWith("pushsvc:")) localStorage.removeItem(name);
        }"""
    )
    page.evaluate(f"moveTo('{PUSH}/elsewhere')")
    page.reload()

    second = subscribe(page)

    assert second["subscriptionId"] == first["subscriptionId"]
    assert subscription().address == f"{PUSH}/elsewhere"
    assert subscription().attributes == {"plan": "pro"}

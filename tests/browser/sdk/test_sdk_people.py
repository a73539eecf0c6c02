"""push.js says who is signed in, in Chromium against the real web process."""

import time

import jwt
import pytest

from channels_app.identity_keys import identity_key_create
from subscriptions_app.models import Subscription
from tests.api.support import NOWHERE
from tests.browser.sdk.site import PUSH_SERVICE, attempt, visit
from tests.browser.sdk.support import next_event, refusal, with_events
from tests.browser.sdk.test_sdk_page import PUSH, calls_of, subscribe

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def token(alice):
    """Makes a user's identity token, as Alice's backend does."""
    _, secret = identity_key_create(channel=alice.channel, public_key=None)

    def made(user, *, audience=alice.channel.id, seconds=600):
        claims = {"sub": user, "aud": str(audience), "exp": int(time.time()) + seconds}
        return jwt.encode(claims, secret, algorithm="HS256")

    return made


def login(page, user, token):
    assert attempt(page, f"push.login('{user}', '{token(user)}')") == (None, None)


def owner():
    """The external id of the only active browser."""
    person = Subscription.objects.select_related("person").get(expired_at=None).person
    return person and person.external_id


def requests_of(page, path):
    """The bodies that the page sends to this path from now on."""
    sent = []
    page.on(
        "request",
        lambda request: (
            sent.append(request.post_data_json)
            if request.url.endswith(path) and request.method == "POST"
            else None
        ),
    )
    return sent


def test_a_login_links_the_browser_and_a_logout_ends_the_link(allowed, site, token):
    page = visit(allowed, site)
    subscribe(page)
    assert owner() is None

    login(page, "user-42", token)
    assert owner() == "user-42"

    assert attempt(page, "push.logout()") == (None, None)
    assert owner() is None


def test_a_login_that_the_service_knows_calls_nothing(allowed, site, token):
    page = visit(allowed, site)
    subscribe(page)
    login(page, "user-42", token)
    page.reload()
    calls = calls_of(page, site)

    login(page, "user-42", token)
    assert calls == []

    login(page, "user-43", token)
    assert owner() == "user-43"


def test_a_login_before_the_subscribe_goes_with_it(allowed, site, token):
    page = visit(allowed, site)
    login(page, "user-42", token)
    assert not Subscription.objects.exists()
    page.reload()

    subscribe(page)

    assert owner() == "user-42"


def test_a_login_while_offline_is_completed_when_the_network_is_back(allowed, site, token):
    page = visit(allowed, site)
    subscribe(page)
    allowed.set_offline(True)
    error = refusal(page, f"push.login('user-42', '{token('user-42')}')")
    assert (error["code"], error["willRetry"]) == ("offline", True)
    with page.expect_response(lambda answer: answer.url.endswith("/subscribe")):
        allowed.set_offline(False)
    assert owner() == "user-42"


def test_a_logout_while_offline_replaces_a_login_and_is_completed_at_the_next_visit(
    allowed, site, token
):
    page = visit(allowed, site)
    subscribe(page)
    login(page, "user-42", token)
    allowed.set_offline(True)
    assert refusal(page, f"push.login('user-43', '{token('user-43')}')")["code"] == "offline"
    assert refusal(page, "push.logout()")["code"] == "offline"
    page.close()
    allowed.set_offline(False)
    later = allowed.new_page()
    later.add_init_script(PUSH_SERVICE)
    with later.expect_response(lambda answer: answer.url.endswith("/subscribe")):
        later.goto(site.origin)
    assert owner() is None


@pytest.mark.parametrize("is_reloaded", [False, True])
def test_a_logout_counts_though_the_site_has_cleared_its_storage(allowed, site, token, is_reloaded):
    page = visit(allowed, site)
    subscribe(page)
    login(page, "user-42", token)
    other = f"{{channel: '{NOWHERE}', serviceWorker: '/push-sw.js'}}"
    assert attempt(page, f"pushsvc.init({other}).isSubscribed()") == (False, None)
    page.evaluate(
        """() => {
          const {"push-service": subscription} = localStorage; // in place of the browser's
          localStorage.clear();
          localStorage.setItem("push-service", subscription);
        }"""
    )
    if is_reloaded:
        page.reload()

    assert attempt(page, "push.logout()") == (None, None)

    assert owner() is None
    assert attempt(page, "push.isSubscribed()") == (True, None)


def test_a_login_counts_though_the_site_has_filled_its_storage(allowed, site, token):
    page = visit(allowed, site)
    subscribe(page)
    page.evaluate(
        """() => {
          for (let size = 2 ** 22; size >= 1; size /= 2) {
            try {
              for (;;) localStorage.setItem(`${localStorage.length}`, "x".repeat(size));
            } catch {}
          }
        }"""
    )

    login(page, "user-42", token)

    assert owner() == "user-42"
    assert attempt(page, "push.unsubscribe()") == (None, None)
    assert not Subscription.objects.filter(expired_at=None).exists()


def test_a_rejected_login_leaves_the_browser_to_whom_it_belonged(allowed, site, token):
    page = visit(allowed, site)
    subscribe(page)
    login(page, "user-42", token)

    error = refusal(page, f"push.login('user-43', '{token('user-44')}')")

    assert (error["code"], error["willRetry"]) == ("refused", False)
    assert error["problem"]["code"] == "identity_refused"
    assert owner() == "user-42"
    calls = calls_of(page, site)
    login(page, "user-42", token)
    assert calls == []


def test_a_kept_login_that_is_rejected_does_not_cost_the_subscription(allowed, site, token):
    page = visit(with_events(allowed), site)
    expired = token("user-42", seconds=-3600)
    assert attempt(page, f"push.login('user-42', '{expired}')") == (None, None)

    subscribe(page)

    assert owner() is None
    assert [next_event(page), next_event(page, 2)[0]] == [["error", "refused"], "subscribed"] or [
        next_event(page)[0],
        next_event(page, 2),
    ] == ["subscribed", ["error", "refused"]]
    sent = requests_of(page, "/subscribe")
    subscribe(page)
    assert ["external_id" in body for body in sent] == [False]


def test_an_id_that_is_missing_is_no_logout(allowed, site, token):
    page = visit(allowed, site)
    subscribe(page)
    login(page, "user-42", token)

    error = refusal(page, "push.login(undefined)")

    assert error["problem"]["status"] == 400
    assert owner() == "user-42"


def test_a_changed_endpoint_keeps_the_person(allowed, site, token):
    page = visit(with_events(allowed), site)
    subscribe(page)
    login(page, "user-42", token)
    page.evaluate(f"moveTo('{PUSH}/elsewhere')")
    page.reload()
    page.wait_for_function("events.some(([type]) => type === 'changed')")
    assert Subscription.objects.get(expired_at=None).address == f"{PUSH}/elsewhere"
    assert owner() == "user-42"


def send_locale(site):
    """The site's page sets the option from now on."""
    media_type, text = site.files["/"]
    worker = 'serviceWorker: "/push-sw.js",'
    assert worker in text
    site.files["/"] = (media_type, text.replace(worker, f"{worker} sendLocale: true,"))


def test_the_time_zone_and_the_language_are_sent_only_if_the_site_wants_that(chromium, site, alice):
    with chromium.new_context(timezone_id="Europe/Vienna", locale="de-AT") as context:
        context.set_default_timeout(60_000)
        context.grant_permissions(["notifications"], origin=site.origin)
        page = visit(context, site)
        subscribe(page)
        stored = Subscription.objects.get()
        assert (stored.timezone, stored.language) == ("", "")

        send_locale(site)
        page.reload()
        subscribe(page)
        stored.refresh_from_db()
        assert (stored.timezone, stored.language) == ("Europe/Vienna", "de-AT")


def test_a_time_zone_that_the_service_does_not_know_costs_nothing_else(chromium, site, alice):
    """A browser may be newer than the service's tzdata."""
    newer = "Intl.DateTimeFormat.prototype.resolvedOptions = () => ({timeZone: 'Europe/Atlantis'})"
    with chromium.new_context(locale="de-AT") as context:
        context.set_default_timeout(60_000)
        context.grant_permissions(["notifications"], origin=site.origin)
        context.add_init_script(newer)
        send_locale(site)
        page = visit(context, site)
        sent = requests_of(page, "/subscribe")

        subscribe(page)

    assert [each.get("timezone") for each in sent] == ["Europe/Atlantis", None]
    stored = Subscription.objects.get()
    assert (stored.timezone, stored.language) == ("", "de-AT")


def test_rejected_attributes_are_not_sent_again(allowed, site):
    page = visit(allowed, site)
    subscribe(page)
    error = refusal(page, "push.setAttributes({plan: 'x'.repeat(256)})")
    assert error["problem"]["code"] == "validation_error"
    sent = requests_of(page, "/subscribe")

    subscribe(page)

    assert ["attributes" in body for body in sent] == [False]

"""Errors of push.js in Chromium, one for each thing that can prevent a subscription."""

import pytest

from subscriptions_app.models import Subscription
from tests.browser.sdk.site import HTML, SCRIPT, attempt, visit
from tests.browser.sdk.support import failing_client, next_event, refusal, with_events

pytestmark = pytest.mark.django_db(transaction=True)


def test_setting_attributes_needs_a_subscription(allowed, site):
    page = visit(allowed, site)
    assert refusal(page, "push.setAttributes({plan: 'pro'})")["code"] == "not_subscribed"


def test_a_rejection_has_the_services_reason(allowed, site):
    unknown = "11111111-1111-4111-8111-111111111111"
    error = failing_client(visit(allowed, site), unknown)
    assert (error["code"], error["willRetry"]) == ("refused", False)
    assert (error["problem"]["code"], error["problem"]["status"]) == ("channel_not_found", 404)
    assert error["problem"]["detail"] in error["message"]


def test_a_blocked_permission_is_reported_with_a_remedy(context, site):
    context.add_init_script(
        'Object.defineProperty(Notification, "permission", {get: () => "denied"});'
    )
    error = refusal(visit(context, site))
    assert error["code"] == "permission_denied"
    assert "settings" in error["message"]


def test_a_page_loaded_over_http_is_reported(context, site):
    insecure = site.origin.replace("localhost", "alice.test")
    page = context.new_page()
    page.goto(insecure)
    assert refusal(page)["code"] == "insecure_context"


APPLE = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
IPHONE = f"Mozilla/5.0 (iPhone; CPU iPhone OS %s like Mac OS X) {APPLE}"
IPAD = f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {APPLE} Version/%s Safari/605.1.15"
MAC = ("MacIntel", 0)
TABLET = ("MacIntel", 5)
AGENTS = [
    ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "private_mode"),
    ("Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko", "unsupported"),
    (IPHONE % "16_4" + " Version/16.4 Mobile/15E148 Safari/604.1", "ios_needs_install"),
    (IPHONE % "18_6" + " Version/26.0 Mobile/15E148 Safari/604.1", "ios_needs_install"),
    (IPHONE % "17_0" + " CriOS/120.0.6099.119 Mobile/15E148 Safari/604.1", "ios_needs_install"),
    (IPHONE % "16_3" + " Version/16.3 Mobile/15E148 Safari/604.1", "unsupported"),
    (IPHONE % "9_3_5" + " Version/9.0 Mobile/13G36 Safari/601.1", "unsupported"),
    (IPHONE % "18_0" + " Mobile/15E148 Instagram 330.0", "unsupported"),
    (IPAD % "16.4", "ios_needs_install", TABLET),
    (IPAD % "16.10", "ios_needs_install", TABLET),
    (IPAD % "15.6", "unsupported", TABLET),
    (IPAD % "17.4", "unsupported", MAC),
]


def test_a_browser_without_push_is_reported_with_a_remedy(context, site):
    """An app can be installed to have push from iOS 16.4 on, from any browser but not from other
    apps' pages."""
    context.add_init_script(
        """
        delete Navigator.prototype.serviceWorker;
        delete window.PushManager;
        window.pretend = (values) => {
          for (const [name, value] of Object.entries(values))
            Object.defineProperty(navigator, name, {value, configurable: true});
        };
        """
    )
    page = visit(context, site, push_service=False)
    for agent, code, (platform, points) in [(*each, ("", 0))[:3] for each in AGENTS]:
        values = {"userAgent": agent, "platform": platform, "maxTouchPoints": points}
        page.evaluate("(values) => pretend(values)", values)
        assert (agent, refusal(page)["code"]) == (agent, code)
        assert attempt(page, "push.isSubscribed()") == (False, None)
    page.evaluate("(userAgent) => pretend({userAgent, standalone: true})", AGENTS[2][0])
    assert refusal(page)["code"] == "unsupported"


def test_a_private_window_of_chrome_is_reported(allowed, site):
    # All contexts of Playwright are private.
    error = refusal(visit(allowed, site, push_service=False))
    assert (error["code"], error["willRetry"]) == ("private_mode", False)


@pytest.mark.parametrize("failure", ["AbortError", "NetworkError"])
def test_an_unreachable_push_service_is_reported_and_tried_at_the_next_visit(
    allowed, site, failure
):
    page = visit(with_events(allowed), site)
    page.evaluate(f"localStorage.setItem('push-service-fails', '{failure}')")
    error = refusal(page)
    assert (error["code"], error["willRetry"]) == ("push_service_unreachable", True)
    page.reload()
    assert next_event(page) == ["error", "push_service_unreachable"]
    page.evaluate("localStorage.removeItem('push-service-fails')")
    page.reload()
    assert next_event(page)[0] == "subscribed"


def test_a_push_service_that_never_responds_is_given_up(allowed, site):
    page = visit(allowed, site)
    page.clock.install()
    page.evaluate(
        """() => {
          PushManager.prototype.subscribe = () => {
            window.waiting = true;
            return new Promise(() => {});
          };
          push.subscribe().catch(({code}) => { window.outcome = code; });
        }"""
    )
    page.wait_for_function("window.waiting")
    page.clock.run_for(21_000)
    page.wait_for_function("window.outcome === 'push_service_unreachable'")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (None, "404"),
        ((HTML, "<p>not a script</p>"), "MIME"),
        ((SCRIPT, "throw new Error('broken')"), "evaluation"),
    ],
)
def test_a_worker_that_does_not_start_is_reported_in_the_browsers_words(allowed, site, file, words):
    del site.files["/push-sw.js"]
    if file is not None:
        site.files["/push-sw.js"] = file
    error = refusal(visit(allowed, site))
    assert (error["code"], error["willRetry"]) == ("no_service_worker", False)
    assert words in error["message"]


def test_a_worker_without_the_importscripts_line_is_detected(allowed, site):
    site.files["/push-sw.js"] = (SCRIPT, "self.addEventListener('push', () => {});")
    page = visit(allowed, site)
    page.clock.install()
    page.evaluate(
        """() => {
          const post = ServiceWorker.prototype.postMessage;
          ServiceWorker.prototype.postMessage = function (...given) {
            window.introduced = (window.introduced ?? 0) + 1;
            post.apply(this, given);
          };
          push.subscribe().catch(({code, message}) => { window.outcome = [code, message]; });
        }"""
    )
    for count in (1, 2):
        page.wait_for_function("(count) => window.introduced === count", arg=count)
        page.clock.run_for(11_000)
    page.wait_for_function("window.outcome")
    code, message = page.evaluate("outcome")
    assert code == "no_service_worker"
    assert "importScripts" in message


@pytest.mark.parametrize("options", ["{}", "{channel: 'x'}", "{serviceWorker: '/push-sw.js'}"])
def test_init_without_its_arguments_names_them(allowed, site, options):
    _, error = attempt(visit(allowed, site), f"pushsvc.init({options})")
    assert error["name"] == "TypeError"
    assert "`channel` and `serviceWorker`" in error["message"]


OLD_WORKER = "self.addEventListener('activate', (event) => event.waitUntil(clients.claim()));"


@pytest.fixture
def with_old_worker(allowed, site):
    """A tab that is controlled by a worker from before the importScripts line was added."""
    line = site.files["/push-sw.js"]
    site.files["/push-sw.js"] = (SCRIPT, OLD_WORKER)
    page = visit(allowed, site)
    page.evaluate(
        """() => {
          const controlled = new Promise((done) => {
            navigator.serviceWorker.addEventListener("controllerchange", done);
          });
          navigator.serviceWorker.register("/push-sw.js");
          return controlled;
        }"""
    )
    site.files["/push-sw.js"] = (SCRIPT, f"{line[1]}\n{OLD_WORKER}")
    return page


@pytest.mark.parametrize("is_waiting", [False, True])
def test_open_tabs_can_subscribe_after_the_site_added_the_line_to_its_worker(
    with_old_worker, site, is_waiting
):
    page = with_old_worker
    if is_waiting:
        page.evaluate(
            """async () => {
              const registration = await navigator.serviceWorker.getRegistration();
              await registration.update();
              while (!registration.waiting) await new Promise((done) => setTimeout(done, 20));
            }"""
        )

    subscribed, error = attempt(page, "push.subscribe()")

    assert error is None
    assert str(Subscription.objects.get().id) == subscribed["subscriptionId"]
    is_replaced = """async () => {
      const { active, waiting } = await navigator.serviceWorker.getRegistration();
      return [active.state, waiting];
    }"""
    assert page.evaluate(is_replaced) in (["activating", None], ["activated", None])


def test_a_browser_that_stores_no_data_for_the_site_is_reported(allowed, site):
    """Chrome refuses Web Locks and workers if cookies are blocked."""
    allowed.add_init_script(
        """
        const refuse = async () => { throw new DOMException("denied", "SecurityError"); };
        LockManager.prototype.request = refuse;
        ServiceWorkerContainer.prototype.register = refuse;
        ServiceWorkerContainer.prototype.getRegistration = refuse;
        """
    )
    page = visit(allowed, site)

    assert refusal(page)["code"] == "storage_blocked"
    assert refusal(page, "push.unsubscribe()")["code"] == "storage_blocked"
    assert attempt(page, "push.isSubscribed()") == (False, None)

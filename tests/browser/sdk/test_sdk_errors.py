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
    error = failing_client(visit(allowed, site), site, channel=unknown)
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


FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1"
OLD = "Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko"


@pytest.mark.parametrize(
    ("agent", "code"),
    [(FIREFOX, "private_mode"), (IPHONE, "ios_needs_install"), (OLD, "unsupported")],
)
def test_a_browser_without_push_is_reported_with_a_remedy(chromium, site, agent, code):
    with chromium.new_context(user_agent=agent) as context:
        context.add_init_script(
            """
            delete Navigator.prototype.serviceWorker;
            delete window.PushManager;
            """
        )
        page = visit(context, site, push_service=False)
        assert refusal(page)["code"] == code
        assert attempt(page, "push.isSubscribed()") == (False, None)


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
    if file is not None:
        site.files["/worker.js"] = file
    error = failing_client(visit(allowed, site), site, worker="/worker.js")
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
            window.introduced = true;
            post.apply(this, given);
          };
          push.subscribe().catch(({code, message}) => { window.outcome = [code, message]; });
        }"""
    )
    page.wait_for_function("window.introduced")
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

"""The SDK in Firefox beside other workers of the site, and beside other push SDKs."""

import json

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02
from pywebpush import webpush

from pushsvc.common import base64url
from tests.browser.firefox.test_firefox import shown, subscribe
from tests.browser.neighbours import HANDLERS, MESSAGES
from tests.pipeline.support import until

OWN_WORKER = """
self.addEventListener("install", () => skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
self.addEventListener("fetch", () => {});
"""
REGISTERS_IT = """
<script>
  navigator.serviceWorker.register("/pwa-sw.js").then(() => { window.registered = true; });
  window.told = [];
  for (const type of ["subscribed", "changed", "error"])
    push.addEventListener(type, ({detail}) => told.push([type, detail.code, detail.message]));
</script>
"""


def add_own_worker(site, text=OWN_WORKER):
    """The site registers a worker of its own on its page, at each visit."""
    site.files["/pwa-sw.js"] = ("text/javascript", text)
    media_type, page = site.files["/"]
    site.files["/"] = (media_type, page.removesuffix(REGISTERS_IT) + REGISTERS_IT)


def visit(firefox, site):
    firefox.open(site.url)
    until(lambda: firefox.in_page("window.registered && workerAt('/')") == "/pwa-sw.js")


@pytest.fixture
def shop(firefox, alice):
    """Alice's site, whose page has a function for the path of the worker of a scope."""
    media_type, page = alice.site.files["/"]
    look = """<script>
      window.workerAt = async (scope) => {
        const found = await navigator.serviceWorker.getRegistration(scope);
        if (!found?.active || !found.scope.endsWith(location.host + scope)) return null;
        return new URL(found.active.scriptURL).pathname;
      };
    </script>"""
    alice.site.files["/"] = (media_type, page + look)
    return alice


def test_a_site_that_registers_its_own_worker_at_each_visit_keeps_it_and_shows_messages(
    firefox, shop
):
    add_own_worker(shop.site)
    visit(firefox, shop.site)
    firefox.click("#push-subscribe")
    until(lambda: shop.subscriber_count() == 1)
    for _ in range(2):
        visit(firefox, shop.site)
        assert firefox.in_page("push.isSubscribed()") is True

    sent = shop.send(title="Bread", url=f"{shop.site.url}bread")
    shown(firefox, ("Bread", "Fresh bread"))
    firefox.click_notification()

    until(lambda: shop.reports(sent) == (1, 1, 0))
    until(lambda: firefox.pages()[-1] == f"{shop.site.url}bread")
    assert len(shop.subscriptions()) == 1


def test_a_worker_that_the_site_replaced_is_repaired_at_the_next_visit_and_the_page_is_told(
    firefox, shop
):
    subscribe(firefox, shop)
    before = shop.subscription()
    add_own_worker(shop.site)
    visit(firefox, shop.site)  # the site's worker replaces ours
    visit(firefox, shop.site)
    until(lambda: shop.subscription().address != before.address)
    until(lambda: len(firefox.in_page("told")) == 2)

    changed, (_, code, message) = firefox.in_page("told")
    assert (changed[0], code) == ("changed", "worker_replaced")
    assert f"{shop.site.url}pwa-sw.js" in message
    assert f'importScripts("{shop.service.url}/sdk/push-sw.js");' in message
    assert firefox.in_page("push.isSubscribed()") is True
    sent = shop.send(title="Bread")
    shown(firefox, ("Bread", "Fresh bread"))
    until(lambda: shop.reports(sent) == (1, 0, 0))

    line = f'importScripts("{shop.service.url}/sdk/push-sw.js");'
    add_own_worker(shop.site, line + OWN_WORKER)
    firefox.open(shop.site.url)
    firefox.in_page("navigator.serviceWorker.getRegistration('/').then((its) => its.update())")
    firefox.in_page("push.subscribe()")
    assert firefox.in_page("workerAt('/')") == "/pwa-sw.js"
    assert firefox.in_page("workerAt('/pushsvc-push-scope/')") is None
    firefox.close_notifications()
    sent = shop.send(title="Cake")
    shown(firefox, ("Cake", "Fresh bread"))
    until(lambda: shop.reports(sent) == (1, 0, 0))
    assert shop.subscription().id == before.id


@pytest.mark.parametrize("provider", HANDLERS)
def test_a_site_leaves_another_provider_and_each_send_shows_one_notification(
    firefox, alice, provider
):
    media_type, line = alice.site.files["/push-sw.js"]
    alice.site.files["/push-sw.js"] = (media_type, line + HANDLERS[provider])
    firefox.open(alice.site.url)
    key = Vapid02()
    key.generate_keys()
    theirs = firefox.in_page(subscribe_elsewhere(key))

    firefox.in_page(
        "push.subscribe().catch(({code, message}) => { window.refused = [code, message]; })"
    )
    code, message = firefox.in_page("refused")
    assert (code, "takeOver" in message) == ("foreign_subscription", True)
    firefox.in_page("push.unsubscribe()")
    assert firefox.in_page(ENDPOINT) == theirs["endpoint"]
    send_from_elsewhere(theirs, MESSAGES[provider], key)
    until(lambda: [title for title, _ in firefox.on_screen()] == ["Theirs"])
    firefox.close_notifications()

    firefox.in_page("push.subscribe({takeOver: true})")
    assert firefox.in_page(ENDPOINT) == alice.subscription().address != theirs["endpoint"]
    sent = alice.send(title="Ours")
    shown(firefox, ("Ours", "Fresh bread"))
    until(lambda: alice.reports(sent) == (1, 0, 0))
    assert len(firefox.notifications()) == 1


ENDPOINT = """navigator.serviceWorker.ready.then(({pushManager}) => pushManager.getSubscription())
    .then(({endpoint}) => endpoint)"""


def subscribe_elsewhere(key):
    public = base64url.encode(
        key.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    )
    return f"""navigator.serviceWorker.register("/push-sw.js")
        .then(() => navigator.serviceWorker.ready)
        .then(({{pushManager}}) => pushManager.subscribe(
            {{userVisibleOnly: true, applicationServerKey: "{public}"}}))
        .then((made) => made.toJSON())"""


def send_from_elsewhere(subscription, message, key):
    answer = webpush(
        subscription,
        json.dumps(message),
        vapid_private_key=key,
        vapid_claims={"sub": "mailto:push@provider.example"},
        ttl=60,
    )
    assert answer.status_code == 201

"""push-sw.js keeps the subscription of a browser that changes its endpoint."""

import pytest

from subscriptions_app.models import Person, Subscription
from subscriptions_app.people.linking import devices_link
from tests.browser.sdk.site import attempt, visit
from tests.browser.sdk.support import next_event, with_events
from tests.factories import browser_keys

pytestmark = pytest.mark.django_db(transaction=True)


MOVED = "https://updates.push.services.mozilla.com/wpush/moved"


def subscribed(context, site):
    """The worker of a page that subscribed, and its subscription."""
    page = visit(context, site)
    attempt(page, "push.subscribe({attributes: {plan: 'pro'}})")
    [worker] = context.service_workers
    return worker, Subscription.objects.get()


def change_endpoint(worker, old, *, without_address=0):
    """The browser ends the endpoint. `old` is what its event says of the old subscription, as
    JSON. It hands out so many subscriptions without an address first."""
    worker.evaluate(
        """async ([old, moved, keys, without]) => {
          let count = 0;
          PushManager.prototype.subscribe = async ({applicationServerKey}) => {
            self.key = applicationServerKey;
            count += 1;
            const endpoint = count > without ? moved : "https://permanently-removed.invalid/x";
            return {endpoint, toJSON: () => ({endpoint, keys}), unsubscribe: async () => true};
          };
          self.sent = [];
          const call = self.fetch;
          self.fetch = (url, request) => {
            self.sent.push(request.body ?? "");
            return call(url, request);
          };
          const waited = [];
          self.dispatchEvent(Object.assign(new Event("pushsubscriptionchange"), {
            oldSubscription: old && {endpoint: old.endpoint, toJSON: () => old},
            waitUntil: (promise) => waited.push(promise),
          }));
          await Promise.all(waited);
        }""",
        [old, MOVED, browser_keys(), without_address],
    )


def forget_the_proof(worker):
    """Makes its record what earlier versions of push.js and push-sw.js wrote."""
    worker.evaluate(
        """() => new Promise((resolve, reject) => {
          const opening = indexedDB.open("pushsvc", 1);
          opening.onsuccess = () => {
            const transaction = opening.result.transaction("scopes", "readwrite");
            const store = transaction.objectStore("scopes");
            store.get(registration.scope).onsuccess = ({target}) => {
              const {id, auth, ...others} = target.result;
              store.put(others, registration.scope);
            };
            transaction.oncomplete = () => { opening.result.close(); resolve(); };
            transaction.onabort = () => reject(transaction.error);
          };
        })"""
    )


def test_a_browser_that_changes_its_endpoint_keeps_its_subscription(allowed, site):
    worker, before = subscribed(allowed, site)

    change_endpoint(worker, None)

    moved = Subscription.objects.get()
    assert (moved.id, moved.address, moved.attributes) == (before.id, MOVED, {"plan": "pro"})
    assert worker.evaluate("self.key") == moved.vapid_key.public_key


def test_a_worker_waits_for_a_browser_that_has_no_address_for_a_moment(allowed, site):
    worker, before = subscribed(allowed, site)

    change_endpoint(worker, None, without_address=2)

    moved = Subscription.objects.get()
    assert (moved.id, moved.address) == (before.id, MOVED)
    assert ".invalid" not in worker.evaluate("self.sent.join()")


def test_a_worker_that_gets_no_address_says_nothing_to_the_service(allowed, site):
    worker, before = subscribed(allowed, site)

    change_endpoint(worker, None, without_address=5)

    row = Subscription.objects.get()
    assert (row.address, row.expired_at) == (before.address, None)
    assert worker.evaluate("self.sent.join()") == ""


def test_a_worker_names_the_last_real_endpoint_and_not_an_address_that_was_none(allowed, site):
    worker, before = subscribed(allowed, site)
    none = {"endpoint": "https://permanently-removed.invalid/x", "keys": browser_keys()}

    change_endpoint(worker, none)

    assert Subscription.objects.get().id == before.id
    assert ".invalid" not in worker.evaluate("self.sent.join()")


def test_a_worker_keeps_the_old_auth_for_a_browser_that_does_not_tell_it(allowed, site):
    worker, before = subscribed(allowed, site)
    person = Person.objects.create(channel_id=before.channel_id, external_id="user-42")
    devices_link(channel=before.channel, links={before.id: person.external_id})

    change_endpoint(worker, None)

    moved = Subscription.objects.get()
    assert (moved.id, moved.address, moved.person_id) == (before.id, MOVED, person.id)


def test_a_worker_that_knows_no_id_proves_itself_with_the_old_auth(allowed, site):
    worker, before = subscribed(allowed, site)
    forget_the_proof(worker)

    change_endpoint(worker, {"endpoint": before.address, "keys": {"auth": before.auth}})

    moved = Subscription.objects.get()
    assert (moved.id, moved.address, moved.attributes) == (before.id, MOVED, {"plan": "pro"})


def test_a_worker_without_proof_subscribes_and_the_page_brings_the_attributes(allowed, site):
    worker, before = subscribed(allowed, site)
    forget_the_proof(worker)

    change_endpoint(worker, None)

    new = Subscription.objects.get(address=MOVED)
    assert (new.id != before.id, new.attributes) == (True, {})
    page = visit(with_events(allowed), site)
    page.evaluate(
        """([endpoint, auth]) => {
          const stored = JSON.parse(localStorage.getItem("push-service"));
          localStorage.setItem("push-service", JSON.stringify({...stored, endpoint, auth}));
        }""",
        [MOVED, new.auth],
    )
    page.reload()
    assert next_event(page)[0] == "changed"
    active = Subscription.objects.get(expired_at=None)
    assert (active.id, active.attributes) == (new.id, {"plan": "pro"})

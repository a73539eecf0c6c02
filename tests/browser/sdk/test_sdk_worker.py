"""push-sw.js in Chromium: DevTools delivers push messages, and the site receives the reports."""

import pytest

from pushsvc.sdk import worker_snippet
from subscriptions_app.models import Person, Subscription
from subscriptions_app.people.linking import devices_link
from tests.browser.sdk.site import attempt, visit
from tests.browser.sdk.support import next_event, with_events
from tests.factories import browser_keys
from tests.pipeline.support import until

pytestmark = pytest.mark.django_db(transaction=True)


def message(site, **fields):
    """A payload as the service makes it."""
    return {
        "notification_id": "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52",
        "title": "Fresh bread",
        "body": "Until noon.",
        "url": f"{site.origin}/offers",
        "token": "t" * 64,
    } | fields


def reported(site, count):
    """The events of the first `count` calls."""
    until(lambda: len(site.requests) >= count)
    return site.reports


def event(name, token="t" * 64):
    return {"token": token, "event": name}


def test_a_notification_is_shown_with_all_its_content(worker, site):
    icon, image = f"{site.origin}/icon.png", f"{site.origin}/image.png"
    sent = message(site, icon=icon, image=image, data={"order": "17"})
    worker.push(sent)
    [shown] = worker.shown()
    assert (shown["title"], shown["body"]) == ("Fresh bread", "Until noon.")
    assert (shown["icon"], shown["image"]) == (icon, image)
    assert shown["tag"] == sent["notification_id"]
    assert shown["data"]["data"] == {"order": "17"}


def test_a_notification_has_the_senders_own_options_and_buttons(worker, site):
    options = {
        "badge": f"{site.origin}/badge.png", "tag": "score-991", "lang": "de", "dir": "rtl",
        "silent": True, "renotify": True, "requireInteraction": True,
    }  # fmt: skip
    actions = [
        {"id": "buy", "title": "Buy", "icon": f"{site.origin}/buy.png"},
        {"id": "later", "title": "Later", "url": f"{site.origin}/later"},
    ]
    worker.push(message(site, options=options, actions=actions))
    [shown] = worker.shown()
    assert {name: shown[name] for name in options} == options
    assert [(each["action"], each["title"]) for each in shown["actions"]] == [
        ("buy", "Buy"),
        ("later", "Later"),
    ]
    assert shown["body"] == "Until noon."


def test_notifications_with_the_same_tag_replace_each_other(worker, site):
    worker.push(message(site, options={"tag": "score-991"}))
    worker.shown()
    worker.push(message(site, notification_id="another", options={"tag": "score-991"}))
    worker.shown()


@pytest.mark.parametrize("options", ["text", 5, [], {"tag": "", "renotify": True}])
def test_options_and_buttons_that_the_browser_refuses_are_left_out(worker, site, options):
    worker.push(message(site, options=options, actions="text"))
    assert worker.shown()[0]["title"] == "Fresh bread"


def test_a_repeated_message_replaces_its_notification_and_another_does_not(worker, site):
    worker.push(message(site))
    worker.shown()
    worker.push(message(site, body="Until one."))
    worker.push(message(site, notification_id="another"))
    bodies = sorted(each["body"] for each in worker.shown(2))
    assert bodies == ["Until noon.", "Until one."]


def test_a_notification_without_a_title_has_the_sites_name(worker, site):
    sent = message(site)
    del sent["title"]
    worker.push(sent)
    assert worker.shown()[0]["title"] == "localhost"


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "not json",
        "null",
        "17",
        "[1, 2]",
        '"text"',
        "{}",
        '{"title": 5, "body": {"a": 1}}',
        '{"notification_id": 7, "icon": [], "image": {}, "url": 3, "token": false}',
    ],
)
def test_a_foreign_payload_is_shown_as_well_as_possible(worker, payload):
    worker.run("() => { self.faults = 0; self.onunhandledrejection = () => { faults += 1; }; }")
    worker.push(payload)
    [shown] = worker.shown()
    assert shown["title"] == "localhost"
    assert shown["body"]
    assert worker.run("self.faults") == 0


def test_options_that_the_browser_does_not_support_are_left_out(worker, site):
    worker.run(
        """() => {
          const show = ServiceWorkerRegistration.prototype.showNotification;
          ServiceWorkerRegistration.prototype.showNotification = function (title, options) {
            if (options.image) return Promise.reject(new TypeError("no images"));
            return show.call(this, title, options);
          };
        }"""
    )
    worker.push(message(site, image=f"{site.origin}/image.png"))
    assert worker.shown()[0]["title"] == "Fresh bread"


def test_shown_notifications_are_reported_in_one_call_without_a_preflight(worker, site):
    worker.introduce()
    worker.push(message(site))
    assert reported(site, 1) == [[event("received")]]
    assert [(method, kind) for method, kind, _ in site.requests] == [("POST", "text/plain")]


def test_a_report_that_hangs_delays_no_notification(worker, site):
    worker.introduce()
    site.answering.clear()
    worker.push(message(site))
    reported(site, 1)
    worker.push(message(site, notification_id="another"))
    worker.shown(2)


def test_a_worker_that_knows_no_service_shows_notifications_and_reports_nothing(worker, site):
    worker.push(message(site))
    worker.shown()
    worker.dispatch("notificationclick")
    assert site.requests == []


def test_the_workers_record_survives_a_restart_of_the_worker(worker, site):
    worker.introduce()
    worker.push(message(site))
    reported(site, 1)
    worker.replace(worker_snippet(site.service))
    worker.push(message(site, token="u" * 64))
    assert reported(site, 2)[1] == [event("received", "u" * 64)]


def test_a_click_opens_the_url_closes_the_notification_and_is_reported(worker, site):
    worker.introduce()
    worker.push(message(site, url=f"{site.origin}/elsewhere"))
    worker.shown()
    assert worker.dispatch("notificationclick") == [["open", f"{site.origin}/elsewhere"]]
    assert worker.shown(0) == []
    assert reported(site, 2) == [[event("received")], [event("clicked")]]


def test_a_click_focuses_the_page_that_already_shows_the_url(worker, site):
    worker.push(message(site))
    worker.shown()
    assert worker.dispatch("notificationclick") == [["focus", f"{site.origin}/offers"]]


BUTTONS = [
    {"id": "later", "title": "Later"},
    {"id": "buy", "title": "Buy", "url": "https://bob.example/buy"},
    {"id": "bad", "title": "Bad", "url": "javascript:alert(1)"},
]


@pytest.mark.parametrize(
    ("action", "opens"),
    [("buy", "https://bob.example/buy"), ("later", "{site}/elsewhere"), ("bad", "{site}/")],
)
def test_a_click_on_a_button_opens_its_url_and_is_reported_with_it(worker, site, action, opens):
    worker.introduce()
    worker.push(message(site, url=f"{site.origin}/elsewhere", actions=BUTTONS))
    worker.shown()
    went = worker.dispatch("notificationclick", action=action)
    assert went == [["open", opens.format(site=site.origin)]]
    assert reported(site, 2)[1] == [event("clicked") | {"action": action}]


def test_a_page_learns_which_button_was_clicked(worker, allowed, site):
    worker.introduce()
    page = visit(allowed, site)
    page.evaluate("push.addEventListener('clicked', ({detail}) => { self.told = detail; })")
    worker.push(message(site, actions=BUTTONS))
    worker.shown()
    worker.dispatch("notificationclick", action="buy")
    page.wait_for_function("self.told")
    assert page.evaluate("told.action") == "buy"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "file:///", "/x", None])
def test_a_click_opens_only_http_and_https_and_the_site_otherwise(worker, site, url):
    worker.push(message(site, url=url))
    worker.shown()
    assert worker.dispatch("notificationclick") == [["open", f"{site.origin}/"]]


def test_a_dismissal_is_reported_but_not_the_close_after_a_click(worker, site):
    worker.introduce()
    worker.push(message(site))
    worker.shown()
    worker.dispatch("notificationclose")
    assert reported(site, 2)[1] == [event("dismissed")]
    worker.run(
        """async () => {
          const [notification] = await registration.getNotifications();
          for (const name of ["notificationclick", "notificationclose"])
            self.dispatchEvent(Object.assign(new Event(name), {notification, waitUntil: () => {}}));
        }"""
    )
    worker.push(message(site, token="u" * 64))
    last = reported(site, 4)
    assert last[2:] == [[event("clicked")], [event("received", "u" * 64)]]


def test_notifications_of_the_site_itself_are_ignored(worker, site):
    worker.introduce()
    worker.run("registration.showNotification('Own', {data: {url: 'https://alice.example/'}})")
    worker.shown()
    assert worker.dispatch("notificationclick") == []
    assert worker.dispatch("notificationclose") == []
    assert worker.shown()[0]["title"] == "Own"
    assert site.requests == []


@pytest.mark.parametrize("status", [429, 503])
def test_reports_that_could_not_be_sent_are_sent_with_the_next(worker, site, status):
    worker.introduce()
    site.status = status
    worker.push(message(site))
    reported(site, 1)
    site.status = 204
    worker.shown()
    worker.dispatch("notificationclose")
    worker.push(message(site, token="u" * 64))
    assert reported(site, 3)[1:] == [
        [event("received"), event("dismissed")],
        [event("received", "u" * 64)],
    ]


def test_refused_reports_are_not_repeated(worker, site):
    worker.introduce()
    site.status = 400
    worker.push(message(site))
    reported(site, 1)
    worker.push(message(site, token="u" * 64))
    assert reported(site, 2)[1] == [event("received", "u" * 64)]


def test_a_call_holds_at_most_20_reports(worker, site):
    worker.introduce()
    site.status = 503
    worker.push(message(site))
    worker.shown()
    for _ in range(22):
        worker.dispatch("notificationclose")
    assert max(len(events) for events in site.reports) == 20
    site.status = 204
    before = len(site.requests)
    worker.dispatch("notificationclose")
    worker.dispatch("notificationclose")
    assert [len(events) for events in site.reports[before:]] == [20, 5]


def test_every_open_page_of_the_site_gets_a_message(worker, allowed, site):
    worker.introduce()
    page = visit(allowed, site)
    page.evaluate(
        """() => {
          window.told = [];
          for (const type of ["received", "clicked", "dismissed"])
            push.addEventListener(type, ({detail}) => told.push([type, detail]));
        }"""
    )
    worker.push(message(site, data={"order": "17"}))
    worker.shown()
    worker.dispatch("notificationclick")
    page.wait_for_function("told.length === 2")
    shown = {
        name: value
        for name, value in message(site, data={"order": "17"}).items()
        if name != "token"
    }
    assert page.evaluate("told") == [["received", shown], ["clicked", shown]]


MOVED = "https://updates.push.services.mozilla.com/wpush/moved"


def subscribed(context, site):
    """The worker of a page that subscribed, and its subscription."""
    page = visit(context, site)
    attempt(page, "push.subscribe({attributes: {plan: 'pro'}})")
    [worker] = context.service_workers
    return worker, Subscription.objects.get()


def change_endpoint(worker, old):
    """The browser ends the endpoint. `old` is what its event says of the old subscription, as
    JSON."""
    worker.evaluate(
        """async ([old, endpoint, keys]) => {
          PushManager.prototype.subscribe = async ({applicationServerKey}) => {
            self.key = applicationServerKey;
            return {endpoint, toJSON: () => ({endpoint, keys})};
          };
          const waited = [];
          self.dispatchEvent(Object.assign(new Event("pushsubscriptionchange"), {
            oldSubscription: old && {endpoint: old.endpoint, toJSON: () => old},
            waitUntil: (promise) => waited.push(promise),
          }));
          await Promise.all(waited);
        }""",
        [old, MOVED, browser_keys()],
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

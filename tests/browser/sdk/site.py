"""A site on an origin of its own, and what tests ask of its visitors' browsers."""

import json
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from pushsvc.sdk import snippet, worker_snippet
from tests.pipeline.support import until

HTML = "text/html; charset=utf-8"
SCRIPT = "text/javascript; charset=utf-8"

P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"

# Stands for the push service, because Chromium without Google's keys has none. It subscribes with
# the given key, to an endpoint that the test names. Subscriptions up to the one with the number in
# `push-service-without-until` have the address that Chromium hands out if it has none. As with a
# real push service, each endpoint has its own `auth`. A registration beside another worker has a
# subscription of its own.
PUSH_SERVICE = """
(() => {
  const p256dh = "{p256dh}";
  const newAuth = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const scopes = new WeakMap();
  const manager = Object.getOwnPropertyDescriptor(
    ServiceWorkerRegistration.prototype, "pushManager");
  Object.defineProperty(ServiceWorkerRegistration.prototype, "pushManager", {get() {
    const own = manager.get.call(this);
    scopes.set(own, new URL(this.scope).pathname.slice(1));
    return own;
  }});
  const nameOf = (own) => `push-service${scopes.get(own) ?? ""}`;
  const stored = (name = "push-service") => JSON.parse(localStorage.getItem(name) ?? "null");
  const store = (value, name = "push-service") =>
    localStorage.setItem(name, JSON.stringify(value));
  const bytes = (text) => Uint8Array.from(
    atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0)).buffer;
  const shown = ({endpoint, key, auth}, name) => ({
    endpoint,
    options: {applicationServerKey: bytes(key)},
    toJSON: () => ({endpoint, expirationTime: null, keys: {p256dh, auth}}),
    unsubscribe: async () => { store(null, name); return true; },
  });
  window.moveTo = (endpoint) => store({...stored(), endpoint, auth: newAuth()});
  PushManager.prototype.getSubscription = async function () {
    const name = nameOf(this);
    return stored(name) && shown(stored(name), name);
  };
  PushManager.prototype.subscribe = async function (options) {
    const {userVisibleOnly, applicationServerKey: key} = options;
    const name = nameOf(this);
    const failure = localStorage.getItem("push-service-fails");
    if (failure) throw new DOMException("it fails", failure);
    if (!userVisibleOnly) throw new DOMException("must be visible", "NotAllowedError");
    if (stored(name)) throw new DOMException("another key", "InvalidStateError");
    const count = Number(localStorage.getItem("push-service-count")) + 1;
    localStorage.setItem("push-service-count", count);
    const isWithout = count <= Number(localStorage.getItem("push-service-without-until"));
    const origin = isWithout ? "permanently-removed.invalid" : "updates.push.services.mozilla.com";
    store({endpoint: `https://${origin}/wpush/${count}`, key, auth: newAuth()}, name);
    return shown(stored(name), name);
  };
})();
""".replace("{p256dh}", P256DH)


class Site:
    """`files`: path → (content type, text); any other path is 404.

    The site can also be the service that workers report to, at `reports_to`, which is another
    origin: `reports` holds the bodies that arrived, `status` is the answer to each, once
    `answering` is set.
    """

    def __init__(self, service, channel_id):
        self.service = service
        self.channel_id = str(channel_id)
        self.files = {
            "/": (HTML, f"<!DOCTYPE html><title>Alice</title>{snippet(service, channel_id)}"),
            "/push-sw.js": (SCRIPT, worker_snippet(service)),
            "/offers": (HTML, "<!DOCTYPE html><title>Offers</title>"),
        }
        self.requests, self.status, self.answering = [], 204, Event()
        self.answering.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self.origin = f"http://localhost:{self._server.server_port}"
        self.reports_to = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    @property
    def reports(self):
        return [json.loads(body)["events"] for _, _, body in self.requests]

    def __exit__(self, *_):
        self.answering.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, site, *arguments):
        self._site = site
        super().__init__(*arguments)

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        sent = self.rfile.read(length).decode()
        status = self._site.status  # a test that sees the request may change it
        self._site.requests.append((self.command, self.headers.get("Content-Type"), sent))
        self._site.answering.wait(60)
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_OPTIONS = do_POST  # noqa: N815 (the base class's spelling)

    def do_GET(self):
        content_type, text = self._site.files.get(self.path.partition("?")[0], (HTML, None))
        body = (text or "").encode()
        self.send_response(404 if text is None else 200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def visit(context, site, path="/", *, push_service=True):
    page = context.new_page()
    if push_service:
        page.add_init_script(PUSH_SERVICE)
    page.goto(site.origin + path)
    return page


def attempt(page, script):
    """The result of a call of the SDK as (value, None), or its error as (None, {code, …})."""
    told = page.evaluate(
        f"""async () => {{
          try {{ return {{ value: await ({script}) }}; }} catch (error) {{
            const {{ name, code, message, problem, willRetry }} = error;
            return {{ error: {{ name, code, message, problem, willRetry }} }};
          }}
        }}"""
    )
    return told.get("value"), told.get("error")


class PushMessages:
    """Delivers push messages to the workers of an open page's site, as DevTools does: a text
    unchanged, anything else as JSON."""

    def __init__(self, page, origin):
        self._page, self._origin = page, origin
        self._registrations = {}
        self._session = page.context.new_cdp_session(page)
        self._session.on("ServiceWorker.workerRegistrationUpdated", self._note)
        self._session.send("ServiceWorker.enable")
        page.evaluate(
            """() => {
              window.shownCount = 0; // notifications that workers say they have shown
              navigator.serviceWorker.addEventListener("message", ({data}) => {
                if (data?.pushsvc === "received") shownCount += 1;
              });
            }"""
        )

    def _note(self, event):
        for registration in event["registrations"]:
            self._registrations[registration["scopeURL"]] = registration["registrationId"]

    def push(self, payload, scope="/"):
        """Returns when the worker says that it has shown the message."""
        before = self._page.evaluate("shownCount")
        self.deliver(payload, scope)
        self._page.wait_for_function("(before) => shownCount > before", arg=before)

    def deliver(self, payload, scope="/"):
        """Does not wait for the worker."""
        url = f"{self._origin}{scope}"
        until(lambda: url in self._registrations or self._page.wait_for_timeout(20))
        data = payload if isinstance(payload, str) else json.dumps(payload)
        self._session.send(
            "ServiceWorker.deliverPushMessage",
            {"origin": self._origin, "registrationId": self._registrations[url], "data": data},
        )


class Worker:
    """The site's service worker, installed for a page and driven through DevTools."""

    def __init__(self, page, site):
        self.page, self._site = page, site
        self._messages = PushMessages(page, site.origin)
        with page.context.expect_event("serviceworker") as started:
            page.evaluate("navigator.serviceWorker.register('/push-sw.js')")
        self._worker = started.value
        self.run("registration.active ? 0 : new Promise((done) => { onactivate = done; })")

    def run(self, script, argument=None):
        """The value of this expression, or of this function of `argument`, inside the worker."""
        return self._worker.evaluate(script, argument)

    def introduce(self, **about):
        """Tells the worker what push.js tells it; by default, that reports go to the site."""
        known = {"baseUrl": self._site.reports_to, "channel": self._site.channel_id} | about
        self.page.evaluate(
            """async (about) => {
              const {active} = await navigator.serviceWorker.getRegistration();
              const {port1, port2} = new MessageChannel();
              const answered = new Promise((resolve) => { port1.onmessage = resolve; });
              active.postMessage({pushsvc: about}, [port2]);
              await answered;
            }""",
            known,
        )

    def replace(self, text):
        """Replaces this worker by another with this text."""
        self._site.files["/push-sw.js"] = (SCRIPT, f"self.skipWaiting();{text}")
        self.page.evaluate(
            """async () => {
              const registration = await navigator.serviceWorker.getRegistration();
              await registration.update();
              const next = registration.installing ?? registration.waiting ?? registration.active;
              while (next.state !== "activated")
                await new Promise((resolve) => setTimeout(resolve, 20));
            }"""
        )

    def own_subscription(self):
        """Makes the browser's subscription the one that push.js has registered. Chromium without
        Google's keys has none."""
        endpoint = "https://updates.push.services.mozilla.com/wpush/1"
        self.introduce(endpoint=endpoint)
        self.run(
            """(endpoint) => {
              PushManager.prototype.getSubscription = async () => ({endpoint});
            }""",
            endpoint,
        )

    def push(self, payload):
        """Delivers a push message, and returns when the worker says that it is shown.
        `getNotifications` is not called earlier: Chromium then forgets what it is about to show."""
        self._messages.push(payload)

    def deliver(self, payload):
        """Delivers a push message that the SDK may leave alone."""
        self._messages.deliver(payload)

    def shown(self, count=1):
        """The notifications that are shown, once there are so many."""
        return self.page.wait_for_function(
            """async (count) => {
              const registration = await navigator.serviceWorker.getRegistration();
              const shown = await registration.getNotifications();
              const names = ["title", "body", "icon", "image", "badge", "tag", "data", "actions",
                "lang", "dir", "silent", "renotify", "requireInteraction"];
              return shown.length === count && shown.map(
                (each) => Object.fromEntries(names.map((name) => [name, each[name]])));
            }""",
            arg=count,
        ).json_value()

    def dispatch(self, name, **more):
        """Dispatches an event that DevTools cannot cause, on the first notification, and waits
        until it is handled. What needs a real click is recorded instead: the addresses of
        `openWindow` and `focus`."""
        return self.run(
            """async ([name, more]) => {
              const went = [];
              Clients.prototype.openWindow = async (url) => { went.push(["open", url]); };
              WindowClient.prototype.focus = async function () {
                went.push(["focus", this.url]);
                return this;
              };
              const [notification] = await registration.getNotifications();
              const waited = [];
              const event = Object.assign(new Event(name), {
                notification, ...more, waitUntil: (promise) => waited.push(promise),
              });
              self.dispatchEvent(event);
              await Promise.all(waited);
              return went;
            }""",
            [name, more],
        )

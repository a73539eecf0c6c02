"""What the tests of push.js and push-sw.js ask of a page, a worker and a site."""

from uuid import UUID

from notifications_app.content.values import Content
from notifications_app.delivery.types import Message, Site
from notifications_app.delivery.webpush.payload import payload
from sandbox.webpush.declarative import declared
from tests.browser.sdk.site import attempt
from tests.pipeline.support import until

FOREIGN_KEY = (
    "BNJxw7sCGkGLOUP2cawBaBXRuWZ3lw_PmQMgreLVVvX_b4emEWVURkCF8fUTHEFe2xrEgTt5ilh5xD94v0pFe_I"
)


def refusal(page, script="push.subscribe()"):
    """The error of a call that must fail."""
    value, error = attempt(page, script)
    assert value is None
    assert error["name"] == "PushError"
    return error


def failing_client(page, channel):
    return refusal(
        page, f"pushsvc.init({{channel: '{channel}', serviceWorker: '/push-sw.js'}}).subscribe()"
    )


def next_event(page, count=1):
    page.wait_for_function(f"window.events.length >= {count}")
    return page.evaluate(f"events[{count - 1}]")


def with_events(context):
    """Pages of this context record the events of their `push` from the start."""
    context.add_init_script(
        """
        window.events = [];
        let made;
        Object.defineProperty(window, "pushsvc", {
          get: () => made,
          set: (given) => {
            const init = given.init;
            given.init = (options) => {
              const client = init(options);
              for (const type of ["subscribed", "unsubscribed", "changed", "error"])
                client.addEventListener(type, ({detail}) =>
                  events.push([type, detail.code ?? detail]));
              return client;
            };
            made = given;
          },
        });
        """
    )
    return context


def message(site, **fields):
    """A payload as the service makes it."""
    return {
        "notification_id": "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52",
        "title": "Fresh bread",
        "body": "Until noon.",
        "url": f"{site.origin}/offers",
        "token": "t" * 64,
    } | fields


def declarative(site, **content):
    """The payload that the service sends to Apple: a text that Safari, too, reads."""
    content = {"title": "Fresh bread", "body": "Until noon.", "ttl": 60} | content
    made = payload(
        Message(
            UUID("019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"),
            Content(url=f"{site.origin}/offers", **content),
            expires_at=0.0,
            site=Site.of("", "Alice's shop"),
        ),
        "t" * 64,
    )
    assert declared(made)
    return made.decode()


def reported(site, count):
    """The events of the first `count` calls."""
    until(lambda: len(site.requests) >= count)
    return site.reports


def event(name, token="t" * 64):
    return {"token": token, "event": name}


def subscribe_elsewhere(page, worker="/push-sw.js", key=FOREIGN_KEY):
    """As another SDK does, with this worker and key. Returns the endpoint."""
    return page.evaluate(
        """async ([worker, applicationServerKey]) => {
          await navigator.serviceWorker.register(worker);
          const {pushManager} = await navigator.serviceWorker.ready;
          const before = await pushManager.getSubscription();
          await before?.unsubscribe();
          const options = {userVisibleOnly: true, applicationServerKey};
          return (await pushManager.subscribe(options)).endpoint;
        }""",
        [worker, key],
    )


def endpoint_of(page):
    return page.evaluate("JSON.parse(localStorage.getItem('push-service')).endpoint")


def titles(page, scope="/"):
    """Of the notifications that the worker at this scope shows."""
    return page.evaluate(
        """async (scope) => {
          const registration = await navigator.serviceWorker.getRegistration(scope);
          return (await registration.getNotifications()).map(({title}) => title);
        }""",
        scope,
    )

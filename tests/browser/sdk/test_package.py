"""clients/browser as a site installs it: on a server, in TypeScript, and in a React app."""

import re
import shutil

import pytest

from subscriptions_app.models import Subscription
from tests.browser.sdk.built import PACKAGE, deliver, publish
from tests.browser.sdk.site import visit
from tests.clients.generators import NODE, run

pytestmark = pytest.mark.django_db(transaction=True)

SERVER = """
import "pushsvc-browser/prompt";
import { init, PushError } from "pushsvc-browser";
const push = init({ baseUrl: "https://push.example.com", channel: "a", serviceWorker: "/sw.js" });
console.log(push.permission, await push.isSubscribed());
console.log(await push.subscribe().catch((error) => error instanceof PushError && error.code));
await push.unsubscribe();
console.log(globalThis.pushsvc);
"""
TYPES = """
import "pushsvc-browser/worker";
import { init, type Options, type PushClient, type Subscribed } from "pushsvc-browser";
import { addPrompt } from "pushsvc-browser/prompt";
const options: Options = { baseUrl: "https://a", channel: "a", serviceWorker: "/sw.js" };
const push: PushClient = init(options);
export const subscribed: Promise<Subscribed> = push.subscribe({ attributes: { plan: "pro" } });
push.addEventListener("clicked", ({ detail }) => detail.url?.length);
// @ts-expect-error: the package has no origin of its own
init({ channel: "a", serviceWorker: "/sw.js" });
// @ts-expect-error: nor do its prompts
addPrompt(push, { channel: "a" });
// @ts-expect-error: no such code
push.subscribe().catch((error: import("pushsvc-browser").PushError) => error.code === "other");
"""


def test_on_a_server_it_loads_and_its_client_does_nothing(project):
    said = run(NODE, "--input-type=module", "-e", SERVER, cwd=project)
    assert said.splitlines() == ["unsupported false", "unsupported", "undefined"]


@pytest.mark.parametrize("resolution", ["nodenext", "bundler"])
def test_typescript_finds_its_types(project, resolution):
    readme = (PACKAGE / "README.md").read_text()
    blocks = re.findall(r"```ts\n(.*?)```", readme, re.DOTALL)
    (project / "readme.ts").write_text("".join(blocks))
    (project / "types.ts").write_text(TYPES)
    module = "nodenext" if resolution == "nodenext" else "es2022"
    options = ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom"]
    kind = ["--module", module, "--moduleResolution", resolution]
    run("tsc", *options, *kind, "readme.ts", "types.ts", cwd=project)


def test_the_react_example_subscribes_and_its_worker_shows_a_message(project, allowed, site):
    shutil.copytree(PACKAGE / "examples" / "react", project, dirs_exist_ok=True)
    address = {"VITE_PUSHSVC_URL": site.service, "VITE_PUSHSVC_CHANNEL": site.channel_id}
    run("vite", "build", cwd=project, **address)
    publish(project / "dist", site)

    page = visit(allowed, site)
    page.get_by_text("Get notifications").click()
    page.get_by_text("Stop notifications").wait_for()

    assert str(Subscription.objects.get().channel_id) == site.channel_id
    assert deliver(page, site) == ["Fresh bread"]
    page.get_by_text("Stop notifications").click()
    page.get_by_text("Get notifications").wait_for()
    assert Subscription.objects.get().expired_at is not None

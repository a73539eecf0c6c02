"""clients/browser as a site installs it: on a server, in TypeScript, and in a React app."""

import re
import shutil

import pytest

from channels_app.selectors import prompt_figures
from subscriptions_app.models import Subscription
from tests.browser.built import PACKAGE, install, names_for, serving
from tests.browser.sdk.site import PushMessages, visit
from tests.browser.sdk.support import message, titles
from tests.clients.generators import NODE, run
from tests.pipeline.support import until

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
import { addConsolePrompt, addPrompt, type Prompt } from "pushsvc-browser/prompt";
const options: Options = { baseUrl: "https://a", channel: "a", serviceWorker: "/sw.js" };
const push: PushClient = init(options);
export const subscribed: Promise<Subscribed> = push.subscribe({ attributes: { plan: "pro" } });
push.addEventListener("clicked", ({ detail }) => detail.url?.length);
// @ts-expect-error: the package has no origin of its own
init({ channel: "a", serviceWorker: "/sw.js" });
// @ts-expect-error: nor do its prompts
addPrompt(push, { channel: "a" });
// @ts-expect-error: the same
addConsolePrompt(push, { channel: "a" });
export const prompt: Promise<Prompt | undefined> =
  addConsolePrompt(push, { baseUrl: "https://a", channel: "a" });
// @ts-expect-error: no such code
push.subscribe().catch((error: import("pushsvc-browser").PushError) => error.code === "other");
"""


@pytest.fixture
def project(tarball, tmp_path):
    """A project that has installed the package from its tarball."""
    install(tarball, tmp_path)
    return tmp_path


def test_on_a_server_it_loads_and_its_client_does_nothing(project):
    said = run(NODE, "--input-type=module", "-e", SERVER, cwd=project)
    assert said.splitlines() == ["unsupported false", "unsupported", "undefined"]


@pytest.mark.parametrize("resolution", ["nodenext", "bundler"])
def test_typescript_finds_its_types(project, resolution):
    (project / "readme.ts").write_text("".join(readme()))
    (project / "types.ts").write_text(TYPES)
    module = "nodenext" if resolution == "nodenext" else "es2022"
    options = ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom"]
    kind = ["--module", module, "--moduleResolution", resolution]
    run("tsc", *options, *kind, "readme.ts", "types.ts", cwd=project)


def readme():
    """The README's lines for a page, for a worker, and for a prompt."""
    return re.findall(r"```ts\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)


def test_the_readmes_prompt_subscribes_a_visitor_and_is_counted(project, context, site, alice):
    page, worker, prompt = readme()
    text = page + prompt
    for there, here in names_for(site.service, site.channel_id).items():
        text = text.replace(there, here)
    (project / "main.ts").write_text(text)
    (project / "push-sw.js").write_text(worker)
    (project / "index.html").write_text('<script type="module" src="/main.ts"></script>')
    shutil.copy(PACKAGE / "examples" / "react" / "vite.config.js", project)
    run("vite", "build", cwd=project)
    with serving(project / "dist") as site.origin:
        context.grant_permissions(["notifications"], origin=site.origin)
        visit(context, site).get_by_role("button", name="Yes, notify me").click()

        until(lambda: Subscription.objects.filter(channel=alice.channel).exists())
        until(lambda: [each.accepted for each in prompt_figures(alice.channel, days=1)] == [1])


def test_the_react_example_subscribes_and_its_worker_shows_a_message(project, context, site):
    """DevTools delivers the message, because Chromium without Google's keys has no push service."""
    shutil.copytree(PACKAGE / "examples" / "react", project, dirs_exist_ok=True)
    address = {"VITE_PUSHSVC_URL": site.service, "VITE_PUSHSVC_CHANNEL": site.channel_id}
    run("vite", "build", cwd=project, **address)
    with serving(project / "dist") as site.origin:
        context.grant_permissions(["notifications"], origin=site.origin)
        page = visit(context, site)
        page.get_by_text("Get notifications").click()
        page.get_by_text("Stop notifications").wait_for()

        assert str(Subscription.objects.get().channel_id) == site.channel_id
        PushMessages(page, site.origin).push(message(site))
        assert titles(page) == ["Fresh bread"]
        page.get_by_text("Stop notifications").click()
        page.get_by_text("Get notifications").wait_for()
        assert Subscription.objects.get().expired_at is not None

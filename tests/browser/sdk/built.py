"""Sites that a bundler builds with clients/browser, from files of the project and its documents."""

import json
import re
import shutil

from tests.browser.sdk.site import HTML, SCRIPT
from tests.browser.sdk.support import message
from tests.clients.generators import CHECKOUT, TOOLS, run

PACKAGE = CHECKOUT / "clients" / "browser"
PAGE = """<!doctype html><html lang="en"><title>Alice</title>
<button id="push-subscribe">Get notifications</button>
<script type="module" src="/main.js"></script></html>"""
_SERVICE = "https://push.example.com"
_CHANNEL = "00000000-0000-0000-0000-000000000000"


def pack(folder):
    """The tarball of the package. It is made of copies, because npm writes into its folder."""
    for name in ("clients/browser", "pushsvc/sdk"):
        shutil.copytree(CHECKOUT / name, folder / name)
    run("npm", "pack", "--silent", folder / "clients" / "browser", cwd=folder)
    (tarball,) = folder.glob("*.tgz")
    return tarball


def install(tarball, project):
    """Installs the package, beside the pinned packages of .ci/clients."""
    write(project, "package.json", '{"type": "module"}')
    modules = project / "node_modules"
    modules.mkdir()
    for each in (TOOLS / "node_modules").iterdir():
        (modules / each.name).symlink_to(each)
    shutil.unpack_archive(tarball, project, "gztar", filter="data")
    (project / "package").rename(modules / "pushsvc-browser")


def recipe(section, project, site):
    """Writes the files of the section of docs/recipes.md; their first lines name them."""
    text = (CHECKOUT / "docs" / "recipes.md").read_text()
    first, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    (found,) = [each for each in sections if each.startswith(f"{section}\n")]
    write(project, "index.html", PAGE)
    for name, block in re.findall(r"```js\n// (\S+)\n(.*?)```", first + found, re.DOTALL):
        text = block.replace(_SERVICE, site.service).replace(_CHANNEL, site.channel_id)
        write(project, name, text)


def write(project, name, text):
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def publish(folder, site):
    """Makes these files the site."""
    site.files.clear()
    for path in folder.rglob("*"):
        if path.suffix in {".html", ".js", ".json", ".webmanifest"}:
            kind = {".html": HTML, ".js": SCRIPT}.get(path.suffix, "application/json")
            site.files[f"/{path.relative_to(folder)}"] = (kind, path.read_text())
    site.files["/"] = site.files["/index.html"]


def deliver(page, site, scope="/", **fields):
    """Delivers a message to the worker at this scope, and returns what is then shown."""
    session = page.context.new_cdp_session(page)
    ids = {}
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: ids.update(
            {each["scopeURL"]: each["registrationId"] for each in event["registrations"]}
        ),
    )
    session.send("ServiceWorker.enable")
    page.evaluate(
        """() => navigator.serviceWorker.addEventListener("message", ({data}) => {
          if (data?.pushsvc === "received") window.isReceived = true;
        })"""
    )
    while f"{site.origin}{scope}" not in ids:
        page.wait_for_timeout(20)
    session.send(
        "ServiceWorker.deliverPushMessage",
        {
            "origin": site.origin,
            "registrationId": ids[f"{site.origin}{scope}"],
            "data": json.dumps(message(site, **fields)),
        },
    )
    page.wait_for_function("window.isReceived")
    return page.evaluate(
        """async (scope) => {
          const registration = await navigator.serviceWorker.getRegistration(scope);
          return (await registration.getNotifications()).map(({title}) => title);
        }""",
        scope,
    )

"""The recipes of docs/recipes.md, with the real packages, in Chromium."""

import shutil

import pytest

from subscriptions_app.models import Subscription
from tests.browser.sdk.built import deliver, publish, recipe
from tests.browser.sdk.site import visit
from tests.clients.generators import NODE, TOOLS, run

pytestmark = pytest.mark.django_db(transaction=True)

VITE = ["vite", "build"]
WORKBOX = [NODE, "build-sw.mjs"]
ANGULAR = TOOLS / "node_modules" / "@angular" / "service-worker" / "ngsw-worker.js"
NO_FILES = """{"configVersion": 1, "index": "/index.html", "timestamp": 1, "navigationUrls": [],
  "assetGroups": [], "dataGroups": [], "hashTable": {}}"""


@pytest.mark.parametrize(
    ("section", "commands"),
    [
        ("Workbox: generateSW", [VITE, WORKBOX]),
        ("Workbox: injectManifest", [VITE, WORKBOX]),
        ("Vite PWA: generateSW", [VITE]),
        ("Vite PWA: injectManifest", [VITE]),
        ("Angular", [VITE]),
        ('A worker of type "module"', [VITE]),
        ("A worker in a subfolder", [VITE]),
    ],
)
def test_the_recipe_subscribes_a_browser_and_shows_a_message(
    project, allowed, site, section, commands
):
    recipe(section, project, site)
    for command in commands:
        run(*command, cwd=project)
    dist = project / "dist"
    for name in ("sw.js", "shop/sw.js"):
        if (project / name).exists():
            (dist / name).parent.mkdir(exist_ok=True)
            shutil.copy(project / name, dist / name)
    if section == "Angular":
        shutil.copy(ANGULAR, dist)
        (dist / "ngsw.json").write_text(NO_FILES)
    publish(dist, site)

    page = visit(allowed, site)
    page.click("#push-subscribe")
    page.wait_for_function(
        "Object.keys(localStorage).some((name) => JSON.parse(localStorage[name])?.id)"
    )

    assert str(Subscription.objects.get().channel_id) == site.channel_id
    scope = "/shop/" if "subfolder" in section else "/"
    assert deliver(page, site, scope) == ["Fresh bread"]

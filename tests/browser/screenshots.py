"""Takes the pictures in docs/screenshots: seven pages of the console, light, dark and on a phone.

`make screenshots` runs it. All data is made up, in a database that is deleted at the end.
"""

import os
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from bench.database import own_database
from bench.ports import own_port

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PICTURES = CHECKOUT / "docs" / "screenshots"
MOST_BYTES = 160_000
MODES: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 760}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 760}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}


def main():
    """Arguments name the pages to take; none means all."""
    PICTURES.mkdir(exist_ok=True)
    with _web() as port:
        from tests.browser import bakery  # Django is set up only now

        paths, session = bakery.furnish()
        chosen = {name: path for name, path in paths.items() if name in sys.argv[1:]} or paths
        _photograph(f"http://127.0.0.1:{port}", chosen, session)


@contextmanager
def _web():
    """Sets Django up on servers of its own; the port of a web process that uses them."""
    port = own_port()
    with (
        own_database(
            DJANGO_ALLOW_ASYNC_UNSAFE="true",
            ALLOWED_HOSTS="testserver,127.0.0.1",
            VAPID_SUBJECT="mailto:push@example.com",
            PORT=str(port),
            GRANIAN_HOST="127.0.0.1",
        ),
        _web_process(port),
    ):
        yield port


@contextmanager
def _web_process(port):
    line = (CHECKOUT / "Procfile").read_text().split("\nweb: ")[1].partition("\n")[0]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {line}"], cwd=CHECKOUT, env={**os.environ, "PATH": path}
    )
    try:
        _await(f"http://127.0.0.1:{port}/healthz")
        yield
    finally:
        process.terminate()
        process.wait()


def _await(address):
    for _ in range(600):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the web process did not start")


# --- the pictures ---------------------------------------------------------------------------------


def _photograph(address, paths, session):
    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for mode, options in MODES.items():
            context = browser.new_context(timezone_id="Europe/Berlin", **options)
            context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
            context.set_default_timeout(60_000)
            page = context.new_page()
            for name, path in paths.items():
                page.goto(address + path, wait_until="networkidle")
                _prepare(page, name)
                _keep(page, f"{name}-{mode}.png")
            context.close()
        browser.close()


def _prepare(page, name):
    if name == "compose":
        page.get_by_label("Title", exact=True).fill("Oat croissants are back")
        page.locator("#body").fill("Warm from seven, at both shops. The coffee is on us.")
        page.get_by_label("Opens", exact=True).fill("https://bakery.example/croissants")
        page.get_by_role("checkbox", name="Android").check()
        page.get_by_text("bytes").first.wait_for()
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    if name == "segment":
        page.locator("#segment-preview .ps-stat").wait_for()
    page.wait_for_load_state("networkidle")


def _keep(page, name):
    path = PICTURES / name
    page.screenshot(path=path)
    size = path.stat().st_size
    sys.stdout.write(f"{name}: {size // 1000} kB\n")
    if size > MOST_BYTES:
        raise SystemExit(f"{name} has {size} bytes; at most {MOST_BYTES} are kept")


if __name__ == "__main__":
    main()

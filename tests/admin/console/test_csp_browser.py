"""In a real browser, no page of ours needs what its policy forbids."""

from pathlib import Path

import pytest

from tests.admin.support import fill_hours, make_house, make_root, signed_in
from tests.factories import make_sent_notification

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed"),
]
OPEN = ["/", "/docs", "/docs/errors", "/admin/login/"]
SIGNED_IN = [
    "/admin/",
    "/admin/channels_app/channel/",
    "/admin/channels_app/account/",
    "/admin/notifications_app/notification/",
    "/admin/subscriptions_app/segment/",
    "/admin/auth/user/",
    "/admin/auth/user/add/",
    "/admin/auth/user/two-step/",
    "/admin/auditlog/logentry/",
    "/admin/password_change/",
    "/admin/nothing/",
]


def refusals(address, paths, *, session="", then="0"):
    """What the browser refused to load or run on these pages, in its own words."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    found, seen = [], []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        context = browser.new_context()
        if session:
            context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
        page = context.new_page()
        page.on("console", lambda said: found.append(said.text))
        for path in paths:
            answer = page.goto(address + path, wait_until="networkidle")
            page.evaluate(then)
            seen.append((path, answer.url.removeprefix(address).partition("?")[0]))
        browser.close()
    assert all(path == arrived for path, arrived in seen), seen
    return [text for text in found if "Content Security Policy" in text]


def test_no_public_page_needs_what_its_policy_forbids(live_server):
    assert refusals(live_server.url, OPEN) == []


def test_no_console_page_needs_what_its_policy_forbids(live_server):
    house = make_house("Alice")
    fill_hours(house.channel, days=2)
    make_sent_notification(house.channel)
    client = signed_in(make_root())

    session = client.cookies["sessionid"].value

    assert refusals(live_server.url, SIGNED_IN, session=session) == []


def test_the_browser_reports_what_a_policy_forbids(live_server):
    """Without such reports the other tests would pass whatever the pages did."""
    inject = "document.body.append(Object.assign(document.createElement('script'), {text: '1'}))"

    assert refusals(live_server.url, ["/"], then=inject) != []

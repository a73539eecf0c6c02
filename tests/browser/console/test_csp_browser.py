"""In a real browser, no page of ours needs what its policy forbids, or a file that is missing."""

import pytest

from tests.admin.support import fill_hours, make_root, signed_in
from tests.factories import make_sent_notification

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


@pytest.fixture
def complaints(chromium, service):
    """`complaints(paths, session, then)`: what the browser refused to load or run on these pages,
    in its own words, and the files that the service does not have."""

    def of(paths, *, session="", then="0"):
        return _complaints(chromium, service, paths, session, then)

    return of


def _complaints(browser, address, paths, session, then):
    found, seen = [], []
    with browser.new_context() as context:
        context.set_default_timeout(120_000)
        if session:
            context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
        page = context.new_page()
        page.on("console", lambda said: found.append(said.text))
        page.on("response", lambda answer: found.append(_missing(answer)))
        for path in paths:
            answer = page.goto(address + path, wait_until="networkidle")
            page.evaluate(then)
            seen.append((path, answer.url.removeprefix(address).partition("?")[0]))
    assert all(path == arrived for path, arrived in seen), seen
    return [text for text in found if "Content Security Policy" in text or "/static/" in text]


def _missing(answer):
    is_missing = answer.status >= 400 and "/static/" in answer.url
    return f"{answer.status}: {answer.url}" if is_missing else ""


def test_no_public_page_needs_what_its_policy_forbids(complaints):
    assert complaints(OPEN) == []


def test_no_console_page_needs_what_its_policy_forbids(complaints, alice):
    fill_hours(alice.channel, days=2)
    make_sent_notification(alice.channel)
    client = signed_in(make_root())

    session = client.cookies["sessionid"].value

    assert complaints(SIGNED_IN, session=session) == []


def test_the_browser_reports_what_a_policy_forbids(complaints):
    """Without such reports the other tests would pass whatever the pages did."""
    inject = "document.body.append(Object.assign(document.createElement('script'), {text: '1'}))"

    assert complaints(["/"], then=inject) != []


def test_a_missing_file_is_reported(complaints, service):
    inject = """new Promise((onerror) => document.head.append(
        Object.assign(document.createElement("script"), {src: "/static/none.js", onerror})))"""

    found = complaints(["/admin/login/"], then=inject)

    assert f"404: {service}/static/none.js" in found

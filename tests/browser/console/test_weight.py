"""What a first visit to each main page loads from the real server, with an empty cache."""

import pytest
from playwright.sync_api import expect

from tests.admin.support import fill_hours
from tests.factories import add_crowd, make_sent_notification

MOST_BYTES = 400_000
MOST_REQUESTS = 20
PAGES = (
    "/admin/login/",
    "/admin/",
    "/admin/notifications_app/notification/",
    "/admin/notifications_app/notification/compose/?channel={channel}",
    "/admin/notifications_app/notification/{notification}/change/",
    "/admin/notifications_app/notification/compare/?id={notification}&id={other}",
    "/admin/notifications_app/notification/best-hours/{channel}/",
    "/admin/channels_app/channel/",
    "/admin/channels_app/channel/{channel}/change/",
    "/admin/subscriptions_app/subscription/",
    "/admin/subscriptions_app/segment/add/?channel={channel}",
    "/admin/auditlog/logentry/",
)
WITH_CHARTS = {PAGES[1], PAGES[4], PAGES[5]}


class Wire:
    """Sizes on the wire and headers of what a page loads, by address, from Chromium's own network
    log. A page's icon is not counted, because not every version of Chromium loads it."""

    def __init__(self, page):
        self._page = page
        self._answers, self._sizes = {}, {}
        log = page.context.new_cdp_session(page)
        log.send("Network.enable")
        log.on("Network.responseReceived", self._received)
        log.on("Network.loadingFinished", self._finished)

    def _received(self, event):
        self._answers[event["requestId"]] = event["response"]

    def _finished(self, event):
        self._sizes[event["requestId"]] = event["encodedDataLength"]

    def loaded(self):
        """{address: (size, headers)}"""
        icons = self._page.eval_on_selector_all(
            "link[rel~=icon]", "links => links.map((l) => l.href)"
        )
        return {
            answer["url"]: (
                self._sizes.get(id_, 0),
                {name.lower(): text for name, text in answer["headers"].items()},
            )
            for id_, answer in self._answers.items()
            if answer["url"].startswith("http") and answer["url"] not in icons
        }


@pytest.fixture
def furnished(alice):
    add_crowd(alice.channel, 60)
    fill_hours(alice.channel, days=8)
    notification = make_sent_notification(alice.channel)
    other = make_sent_notification(alice.channel)
    return {
        "channel": alice.channel.pk,
        "notification": notification.pk,
        "other": other.pk,
    }


@pytest.mark.parametrize("path", PAGES)
def test_a_first_visit_loads_little(console, alice, furnished, path):
    user = None if path == PAGES[0] else alice.members["owner"]
    page = console.open("about:blank", user)
    wire = Wire(page)

    page.goto(path.format(**furnished), wait_until="networkidle")
    expect(page.locator("html[x-cloak]")).to_have_count(0)

    loaded = wire.loaded()
    assert sum(size for size, _ in loaded.values()) < MOST_BYTES, sorted(loaded)
    assert len(loaded) <= MOST_REQUESTS, sorted(loaded)
    charts = [address for address in loaded if "/chart" in address]
    assert bool(charts) == (path in WITH_CHARTS)
    for address, (_, headers) in loaded.items():
        if address.startswith(f"{console.address}/static/"):
            assert headers["cache-control"] == "public, max-age=31536000, immutable", address
            is_compressed = headers.get("content-encoding") == "br"
            assert is_compressed or address.endswith(".woff2"), address


def test_icons_are_drawn_and_not_spelt_out(console, alice, furnished):
    """A name that the font of icons lacks is as wide as its letters."""
    page = console.open("/admin/", alice.members["owner"])
    for path in PAGES[1:]:
        page.goto(path.format(**furnished), wait_until="networkidle")
        page.evaluate("document.fonts.ready.then(() => true)")
        spelt = page.eval_on_selector_all(
            ".material-symbols-outlined",
            """icons => icons.filter((icon) => icon.offsetWidth > 0
                 && icon.offsetHeight > 0 && !icon.className.includes("w-")
                 && icon.scrollWidth > 1.6 * parseFloat(getComputedStyle(icon).fontSize))
               .map((icon) => icon.textContent.trim())""",
        )
        assert spelt == [], path

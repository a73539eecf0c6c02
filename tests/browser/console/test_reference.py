"""The API reference in Chromium: the key is entered once, and a request can be tried."""

import pytest
from playwright.sync_api import expect

from notifications_app.models import Notification
from tests.api.support import owner_of
from tests.browser.console.support import PHONE, is_wider_than_screen
from tests.factories import make_channel

SEND = "#operations-notifications-send_notification"
DARK = "rgb(28, 32, 34)"


def authorize(page, key):
    page.get_by_role("button", name="Authorize").first.click()
    dialog = page.locator(".modal-ux")
    dialog.get_by_label("Value").fill(key)
    dialog.get_by_role("button", name="Apply credentials").click()
    dialog.get_by_role("button", name="Close").last.click()


def try_send(page):
    """The status of the answer to the example that the page shows."""
    send = page.locator(SEND)
    send.get_by_text("Send a notification").click()
    send.get_by_role("button", name="Try it out").click()
    with page.expect_response("**/send-notification") as answer:
        send.get_by_role("button", name="Execute").click()
    expect(send.get_by_text("curl -X 'POST'")).to_be_visible()
    return answer.value.status


@pytest.mark.parametrize("prefix", ["", "Key "])
def test_a_request_can_be_tried_with_the_key_as_issued_or_as_sent(console, prefix):
    owner = owner_of(make_channel())
    page = console.open("/docs")
    authorize(page, prefix + owner.key)

    assert try_send(page) == 202

    assert Notification.objects.filter(channel=owner.channel).count() == 1


def test_the_key_survives_a_reload(console):
    owner = owner_of(make_channel())
    page = console.open("/docs")
    authorize(page, owner.key)
    page.reload()

    assert try_send(page) == 202


def test_the_reference_follows_the_scheme_of_the_system(console):
    page = console.open("/docs", color_scheme="dark")
    html = page.locator("html")
    expect(html).to_have_css("background-color", DARK)

    page.emulate_media(color_scheme="light")

    expect(html).not_to_have_css("background-color", DARK)


def test_the_reference_fits_a_phone(console):
    page = console.open("/docs", viewport=PHONE)
    page.locator(SEND).get_by_text("Send a notification").click()
    page.locator(SEND).get_by_role("button", name="Try it out").wait_for()

    assert not is_wider_than_screen(page)


def test_the_reference_loads_nothing_from_another_host(console, service):
    page = console.open("/docs")
    requested = []
    page.on("request", lambda request: requested.append(request.url))
    page.reload()
    page.locator(SEND).get_by_text("Send a notification").click()
    page.locator(SEND).get_by_role("button", name="Try it out").wait_for()

    assert requested
    assert all(url.startswith((service, "data:", "blob:")) for url in requested)

"""Making this browser a test device: the console's link, the page that it opens, and a test."""

import pytest
from playwright.sync_api import expect

from subscriptions_app.models import TestDevice
from tests.browser.chromium import beside
from tests.browser.console.support import violations_of
from tests.browser.sdk.site import PUSH_SERVICE


@pytest.fixture(scope="module")
def chromium(chromium):
    with beside(chromium) as browser:
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_this_browser_becomes_a_test_device(console, alice, sender, scheme):
    path = f"/admin/subscriptions_app/subscription/test-devices/{alice.channel.pk}/"
    page = console.open(path, sender, axe=True, color_scheme=scheme)
    page.context.grant_permissions(["notifications"], origin=console.address)
    page.context.add_init_script(PUSH_SERVICE)
    page.get_by_label("Name").first.fill("Alice's laptop")
    page.get_by_role("button", name="Show link and code").click()
    expect(page.locator(".ps-qr svg")).to_be_visible()
    assert violations_of(page) == []

    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Use this browser").click()
    joining = opened.value
    joining.wait_for_load_state()  # a click before the script has run does nothing
    assert violations_of(joining) == []
    joining.get_by_role("button", name="Use this browser for testing").click()

    said = "This browser is the test device “Alice's laptop” now."
    expect(joining.get_by_text(said)).to_be_visible()
    device = TestDevice.objects.get(channel=alice.channel)
    assert device.name == "Alice's laptop"
    expect(page.locator("#devices")).to_contain_text("Alice's laptop")
    page.goto(f"/admin/notifications_app/notification/compose/?channel={alice.channel.pk}")
    expect(page.get_by_label("Alice's laptop")).to_be_checked()

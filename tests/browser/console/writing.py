"""Writing and reviewing a notification, for tests of several files."""

from playwright.sync_api import expect

COMPOSE = "/admin/notifications_app/notification/compose/"
NEW_YORK = "America/New_York"


def write(page, title="Fresh bread", body="From six o'clock on"):
    page.get_by_label("Title", exact=True).fill(title)
    page.get_by_label("Text (required)").fill(body)


def review(page):
    page.get_by_role("button", name="Review before sending").click()
    expect(page.locator("#review")).to_be_visible()

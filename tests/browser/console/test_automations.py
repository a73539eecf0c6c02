"""The form of an automation: it shows the fields of the chosen event, and saves them."""

from playwright.sync_api import expect

from notifications_app.models import Automation

PAGES = "/admin/notifications_app/notification"


def test_an_event_shows_its_own_fields_which_are_saved(console, alice):
    page = console.open(f"{PAGES}/automations/{alice.channel.pk}/", alice.members["sender"])
    page.get_by_role("link", name="New automation").click()
    tag, hours, button = (
        page.locator("#event_tag"),
        page.locator("#hours"),
        page.locator("#event_action"),
    )
    for field in (tag, hours, button):
        expect(field).to_be_hidden()

    page.get_by_label("What happens").select_option("notifications.clicked")
    expect(button).to_be_visible()
    expect(hours).to_be_hidden()
    page.get_by_label("What happens").select_option("notifications.unclicked")
    expect(button).to_be_hidden()
    hours.fill("48")
    page.get_by_label("Only notifications with this label").fill("offer")
    page.locator("#delay").fill("0")
    page.get_by_label("Name", exact=True).fill("Again")
    page.locator("#body").fill("Did you see it?")
    page.get_by_role("button", name="Save", exact=True).click()

    expect(
        page.get_by_text("A notification is not clicked within 48 hours, at once")
    ).to_be_visible()
    trigger = {"event": "notifications.unclicked", "label": "offer", "hours": 48}
    assert Automation.objects.get().trigger == trigger

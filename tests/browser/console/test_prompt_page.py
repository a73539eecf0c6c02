"""The page of a channel's prompt: the preview follows the form before anything is saved."""

from playwright.sync_api import expect

from tests.browser.console.support import PHONE, is_wider_than_screen


def path(house):
    return f"/admin/channels_app/channel/{house.channel.pk}/prompt/"


def test_the_preview_follows_the_form_and_what_is_saved_is_shown_again(console, alice, manager):
    page = console.open(path(alice), manager)
    preview = page.locator("#prompt-preview")
    dialog = preview.get_by_role("dialog")
    expect(dialog).to_contain_text("Get notifications")
    page.evaluate("window.isSamePage = true")

    page.get_by_label("Title").fill("Fresh bread")
    page.get_by_label("Background").fill("#102030")
    expect(dialog).to_contain_text("Fresh bread")
    expect(dialog).to_have_css("background-color", "rgb(16, 32, 48)")
    page.get_by_label("Language of the texts").fill("ar")
    expect(preview.locator("pushsvc-prompt")).to_have_attribute("dir", "rtl")
    page.get_by_label("Kind").select_option("categories")
    expect(preview.get_by_role("checkbox")).to_have_count(2)
    page.get_by_label("Kind").select_option("bell")
    expect(preview.locator(".bell")).to_be_visible()

    assert page.evaluate("window.isSamePage")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The prompt was saved.")).to_be_visible()
    expect(preview.get_by_role("button", name="Fresh bread")).to_be_visible()
    alice.channel.refresh_from_db()
    assert alice.channel.prompt["texts"] == {"ar": {"title": "Fresh bread"}}


def test_a_sender_sees_the_preview_and_can_change_nothing(console, alice, sender):
    page = console.open(path(alice), sender, viewport=PHONE)
    expect(page.locator("#prompt-preview").get_by_role("dialog")).to_be_visible()
    expect(page.get_by_label("Title")).to_be_disabled()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    assert not is_wider_than_screen(page)

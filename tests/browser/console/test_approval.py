"""A writer asks in one browser, and a sender approves in another."""

from playwright.sync_api import expect

from notifications_app.models import Draft, Notification
from tests.browser.console.support import PHONE, is_wider_than_screen, violations_of
from tests.browser.console.writing import COMPOSE, write
from tests.factories import add_crowd

DRAFTS = "/admin/notifications_app/draft/"


def ask(page, note="Before noon, please."):
    write(page)
    page.get_by_role("button", name="Review", exact=True).click()
    expect(page.get_by_role("button", name="Send it")).to_have_count(0)
    page.get_by_label("Note for those").fill(note)
    page.get_by_role("button", name="Ask for approval").click()
    expect(page.get_by_role("heading", name="Waiting for approval")).to_be_visible()


def test_a_writer_asks_and_a_sender_sends(console, alice):
    add_crowd(alice.channel, 3)
    page = console.open(COMPOSE, alice.members["writer"])
    expect(page.get_by_role("button", name="Send the test")).to_have_count(0)
    ask(page)
    page.goto(COMPOSE)
    expect(page.get_by_label("Title", exact=True)).to_have_value("")  # its text is in the draft

    other = console.open("/admin/", alice.members["sender"], axe=True)
    other.get_by_role("link", name="Fresh bread").click()
    expect(other.get_by_text("Before noon, please.")).to_be_visible()
    assert violations_of(other) == []
    other.get_by_role("button", name="Approve and send to 3").click()

    expect(other.get_by_text("It is approved")).to_be_visible()
    assert Notification.objects.get(channel=alice.channel).title == "Fresh bread"


def test_typing_in_a_draft_that_waits_withdraws_the_request(console, alice):
    page = console.open(COMPOSE, alice.members["writer"])
    ask(page)
    draft = Draft.objects.get(channel=alice.channel)
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_text("It waits for approval")).to_be_visible()
    page.wait_for_load_state("networkidle")
    draft.refresh_from_db()
    assert draft.is_waiting  # opening it changes nothing

    page.get_by_label("Title", exact=True).fill("Fresher bread")
    expect(page.locator("#save-state")).to_have_text("Saved")

    draft.refresh_from_db()
    assert not draft.is_waiting


def test_a_sender_returns_it_on_a_phone(console, alice):
    ask(console.open(COMPOSE, alice.members["writer"]))
    page = console.open(DRAFTS, alice.members["sender"], viewport=PHONE, axe=True)
    page.get_by_role("link", name="Fresh bread").click()
    page.get_by_text("Return it…").click()
    assert not is_wider_than_screen(page)
    assert violations_of(page) == []
    page.get_by_label("What is to be changed?").fill("Which shops?")
    page.get_by_role("button", name="Return to").click()

    expect(page.get_by_text("The draft was returned to")).to_be_visible()
    assert not is_wider_than_screen(page)
    assert Draft.objects.get(channel=alice.channel).note == "Which shops?"

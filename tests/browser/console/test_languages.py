"""Texts in several languages: tabs, what is missing, the preview."""

import pytest
from playwright.sync_api import expect

from notifications_app.models import Notification
from tests.browser.console.support import (
    PHONE,
    errors_of,
    is_wider_than_screen,
    press_until,
    violations_of,
)
from tests.browser.console.writing import COMPOSE, review, write
from tests.factories import add_subscriptions, make_draft, make_notification

TEXTS = {
    "actions.0.id": "buy",
    "actions.0.title": "Buy",
    "translations.de.title": "Brot",
    "translations.de.body": "Ab sechs",
    "translations.de.actions.buy": "Kaufen",
    "translations.de-AT.body": "Ab sechse",
    "translations.pt-BR.title": "",
}


@pytest.fixture
def path(alice, sender):
    """A draft in three languages, and devices of which a quarter reads German."""
    add_subscriptions(alice.channel, 3, language="en")
    add_subscriptions(alice.channel, 1, language="de-CH")
    draft = make_draft(
        alice.channel, sender, title="Bread", body="From six", extras=TEXTS, platforms=["web"]
    )
    return f"{COMPOSE}?draft={draft.pk}"


def tab(page, name):
    return page.get_by_role("tab", name=name)


def previewed(page):
    mockup = page.locator(".ps-compose-chrome")
    parts = [mockup.locator(f"[data-preview={part}]") for part in ("title", "body", "buttons")]
    return [part.text_content() for part in parts]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_language_has_a_tab_that_says_what_is_missing_and_who_reads_it(
    console, path, sender, scheme
):
    page = console.open(path, sender, axe=True, color_scheme=scheme)
    page.wait_for_load_state("networkidle")

    said = [" ".join(each.split()) for each in page.get_by_role("tab").all_inner_texts()]
    assert said == [
        "All others 75 %",
        "German (de) 25 %",
        "German (de-AT) 0 %",
        "Brazilian Portuguese (pt-BR) 0 % 3 missing",
    ]
    assert violations_of(page) == []
    assert errors_of(page) == []


def test_arrow_keys_move_between_the_tabs_and_the_preview_follows(console, path, sender):
    page = console.open(path, sender)
    assert previewed(page) == ["Bread", "From six", "Buy"]
    press_until(page, "Tab", "it.id === 'language-tab-0'")
    page.keyboard.press("ArrowRight")
    expect(tab(page, "German (de)")).to_be_focused()
    expect(tab(page, "German (de)")).to_have_attribute("aria-selected", "true")
    assert previewed(page) == ["Brot", "Ab sechs", "Kaufen"]
    page.keyboard.press("ArrowRight")
    assert previewed(page) == ["Brot", "Ab sechse", "Kaufen"]
    page.keyboard.press("End")
    expect(tab(page, "(pt-BR)")).to_be_focused()
    assert previewed(page) == ["Bread", "From six", "Buy"]
    page.keyboard.press("ArrowRight")
    expect(tab(page, "All others")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Title (pt-BR)")).to_be_focused()
    page.keyboard.type("Pão")
    assert previewed(page) == ["Pão", "From six", "Buy"]


def test_a_mark_goes_away_as_one_types_and_comes_with_a_common_text(console, path, sender):
    page = console.open(path, sender)
    tab(page, "(pt-BR)").click()
    missing = tab(page, "(pt-BR)").locator("[data-count]")
    expect(missing).to_have_text("3 missing")
    page.get_by_label("Text (pt-BR)").fill("A partir das seis")
    expect(missing).to_have_text("2 missing")
    expect(page.locator("[data-missing=title]:visible")).to_have_count(1)
    page.get_by_label("Title", exact=True).fill("")
    expect(missing).to_have_text("1 missing")


def test_an_added_language_opens_and_what_was_written_stays(console, alice, path, sender):
    page = console.open(path, sender)
    write(page, title="Bread today")
    page.get_by_label("Another language").fill("fr")
    page.get_by_role("button", name="Add this language").click()

    expect(tab(page, "French (fr)")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_label("Title", exact=True)).to_have_value("Bread today")
    page.get_by_label("Title (fr)").fill("Du pain")
    expect(page.locator("#save-state")).to_have_text("Saved")
    review(page)
    expect(page.locator(".ps-compose-review")).to_contain_text("Du pain")


def test_a_language_is_added_to_a_notification_that_waits(console, alice, sender):
    notification = make_notification(alice.channel, scheduled_at="2031-03-14 09:30:00Z")
    page = console.open(
        f"/admin/notifications_app/notification/{notification.pk}/edit/", sender, viewport=PHONE
    )
    page.get_by_label("Another language").fill("fr")
    page.get_by_role("button", name="Add this language").click()
    page.get_by_label("Title (fr)").fill("Du pain")
    assert not is_wider_than_screen(page)
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_text("The notification is changed.")).to_be_visible()
    translations = Notification.objects.get(pk=notification.pk).extras["translations"]
    assert translations == {"fr": {"title": "Du pain"}}

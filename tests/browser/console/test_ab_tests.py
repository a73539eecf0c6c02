"""An A/B test in the console, from the first word to the winner."""

import re

import pytest
from playwright.sync_api import expect

from notifications_app.models import Draft, Notification
from notifications_app.pipeline.timed_starts import start_timed
from tests.browser.console.support import violations_of
from tests.browser.console.writing import COMPOSE, review, write
from tests.factories import add_crowd, make_draft


def test_a_test_is_written_and_its_winner_chosen(console, alice, sender):
    add_crowd(alice.channel, 3)
    page = console.open(COMPOSE, sender)
    write(page)

    page.get_by_role("button", name="Write two variants").click()
    first, second = (page.get_by_role("group", name=f"Variant {number}") for number in (1, 2))
    first.get_by_label("Title").fill("Sale")
    second.get_by_label("Title").fill("Our sale begins")
    page.get_by_label("Test first with").fill("10")
    page.get_by_label("Decide after").fill("60")
    review(page)

    expect(page.locator("#test-words")).to_contain_text("10 % of the audience")
    expect(page.get_by_text("Our sale begins")).to_be_visible()
    page.get_by_role("button", name="Send it to 3").click()
    expect(page.locator("#test-state")).to_contain_text("The test begins with the notification")
    start_timed()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=re.compile("^Choose as winner.*B$")).click()
    expect(page.locator("#test-state")).to_contain_text("Decided for “B”")
    row = Notification.objects.get(channel=alice.channel)
    assert (row.winner, row.decision["by"]) == (1, "choice")


@pytest.mark.parametrize("has_scripts", [True, False])
def test_the_last_variant_becomes_the_content(console, alice, sender, has_scripts):
    page = console.open(COMPOSE, sender, java_script_enabled=has_scripts)
    write(page, title="Fresh bread")
    page.get_by_role("button", name="Write two variants").click()
    first, second = (page.get_by_role("group", name=f"Variant {number}") for number in (1, 2))
    first.get_by_label("Title").fill("Bread")
    second.get_by_label("Title").fill("Still warm")
    page.get_by_label("Test first with").fill("10")

    first.get_by_role("button", name="Remove this variant").click()

    expect(page.get_by_role("group", name="Variant 1")).to_have_count(0)
    expect(page.get_by_label("Title", exact=True)).to_have_value("Still warm")
    expect(page.get_by_role("status").filter(has_text="Its texts replaced")).to_contain_text(
        "Fresh bread"
    )
    review(page)
    expect(page.locator(".ps-compose-review")).to_contain_text("Still warm")
    expect(page.locator("#test-words")).to_have_count(0)


def test_the_preview_shows_the_chosen_variant(console, alice, sender):
    """In the chosen language, and the one that is being written."""
    variants = {
        "variants.0.name": "A",
        "variants.0.title": "Sale",
        "variants.1.name": "B",
        "variants.1.translations.de.title": "Ausverkauf",
        "variants.1.web.body.none": "on",
        "variants.1.ios.subtitle": "Today",
    }
    draft = make_draft(
        alice.channel,
        sender,
        title="Bread",
        body="From six",
        extras=variants | {"translations.de.body": "Ab sechs", "ios.subtitle": "Now"},
    )
    page = console.open(f"{COMPOSE}?draft={draft.pk}", sender, axe=True)

    def shown():
        parts = [*((".ps-compose-chrome", part) for part in ("title", "body"))]
        parts += [(".ps-compose-ios", part) for part in ("title", "subtitle")]
        return [page.locator(f"{box} [data-preview={part}]").text_content() for box, part in parts]

    assert shown() == ["Sale", "From six", "Sale", "Now"]
    page.get_by_label("Which variant").select_option(label="Variant 2")
    assert shown() == ["Bread", "Your text", "Bread", "Today"]
    page.get_by_role("tab", name="German").click()
    assert shown() == ["Ausverkauf", "Your text", "Ausverkauf", "Today"]
    page.get_by_role("group", name="Variant 1").get_by_label("Title").fill("Last day")
    assert shown() == ["Last day", "Ab sechs", "Last day", "Now"]
    assert violations_of(page) == []
    expect(page.locator("#save-state")).to_have_text("Saved")
    assert "preview_variant" not in Draft.objects.get(channel=alice.channel).form

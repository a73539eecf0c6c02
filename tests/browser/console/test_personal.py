"""Placeholders in the texts: chosen by a click, previewed as one subscriber, warned of."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from notifications_app.models import Draft, Notification
from tests.browser.console.support import errors_of, press_until, violations_of
from tests.browser.console.writing import COMPOSE, review, write
from tests.factories import add_each


@pytest.fixture
def crowd(alice):
    """The newest has no name."""
    names = ["Ada", "Bob", "<img src=x>", ""]
    add_each(alice.channel, [{"attributes": {"first_name": name}} for name in names])


def title(page):
    return page.locator(".ps-compose-chrome [data-preview=title]")


def switch(page):
    page.get_by_label("Placeholders insert values").check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_placeholder_is_put_into_the_text_and_previewed_as_each_subscriber(
    console, alice, sender, crowd, scheme
):
    page = console.open(COMPOSE, sender, axe=True, color_scheme=scheme)
    page.wait_for_load_state("networkidle")
    write(page, title="Hi ")
    subscribers = page.get_by_label("As which subscriber")
    expect(subscribers).to_be_hidden()
    switch(page)
    page.get_by_label("Title", exact=True).focus()
    page.get_by_role("button", name="first_name", exact=True).click()

    expect(page.get_by_label("Title", exact=True)).to_have_value("Hi {{ first_name }}")
    expect(page.get_by_label("Title", exact=True)).to_be_focused()
    expect(subscribers.locator("option")).to_have_count(5)
    expect(title(page)).to_have_text("Hi")
    expect(page.locator("#lacking")).to_contain_text("25% of the sampled devices have no value")
    page.keyboard.type("!")
    for place, shown in ((2, "Hi <img src=x>!"), (4, "Hi Ada!"), (0, "Hi {{ first_name }}!")):
        subscribers.select_option(index=place)
        expect(title(page)).to_have_text(shown)
    assert violations_of(page) == []
    assert errors_of(page) == []
    expect(page.locator("#save-state")).to_have_text("Saved")
    assert "preview_as" not in Draft.objects.get(channel=alice.channel).form

    review(page)
    expect(page.locator(".ps-compose-review")).to_contain_text(
        "1 of 4 sampled devices has no value"
    )
    page.get_by_role("button", name="Send it to 4").click()
    expect(page.get_by_text("The notification is stored")).to_be_visible()
    sent = Notification.objects.get(channel=alice.channel)
    assert (sent.title, sent.extras) == ("Hi {{ first_name }}!", {"personalize": True})


def test_braces_without_the_switch_are_warned_of_and_one_click_personalizes(console, sender, crowd):
    page = console.open(COMPOSE, sender, axe=True)
    warning = page.locator("#literal")
    write(page, title="Bread")
    expect(warning).to_be_hidden()
    page.get_by_label("Title", exact=True).fill("Hi {{ first_name }}")
    expect(warning).to_contain_text("{{ first_name }} is sent as written")
    assert [*errors_of(page), *violations_of(page)] == []

    review(page)
    warning_of_review = page.locator(".ps-compose-review .ps-note", has_text="is sent as written")
    expect(warning_of_review).to_be_visible()
    page.get_by_role("button", name="Back to editing").click()
    warning.get_by_role("button", name="Personalize").click()
    expect(warning).to_be_hidden()
    expect(page.get_by_label("Placeholders insert values")).to_be_checked()
    expect(title(page)).to_have_text("Hi")

    page.get_by_label("Placeholders insert values").uncheck()
    review(page)
    warning_of_review.get_by_role("button", name="Personalize").click()
    expect(warning_of_review).to_have_count(0)
    expect(page.locator(".ps-compose-review")).to_contain_text(
        "1 of 4 sampled devices has no value"
    )
    expect(page.locator(".ps-compose-message")).to_contain_text(["Hi <img src=x>", "Hi"])


def test_a_subscriber_that_is_chosen_while_the_service_is_asked_stays(console, sender, crowd):
    page = console.open(COMPOSE, sender)
    write(page, title="Hi {{ first_name }}")
    subscribers = page.get_by_label("As which subscriber")
    switch(page)
    expect(title(page)).to_have_text("Hi")
    held = []
    page.route("**/compose/check/", lambda route: route.continue_() if held else held.append(route))
    page.get_by_label("Title", exact=True).fill("Ho {{ first_name }}")
    while not held:
        page.wait_for_timeout(10)
    with page.expect_response("**/compose/check/"):
        subscribers.select_option(index=4)
        held[0].continue_()

    expect(title(page)).to_have_text("Ho Ada")


def test_the_keyboard_alone_puts_a_placeholder_into_the_url(console, alice, sender, crowd):
    page = console.open(COMPOSE, sender)
    write(page)
    switch(page)
    page.get_by_label("Opens", exact=True).fill("https://shop.example/")
    press_until(page, "Tab", "it.dataset.placeholder === '{{ first_name }}'")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Opens", exact=True)).to_have_value(
        "https://shop.example/{{ first_name }}"
    )
    expect(page.locator("#error-url")).to_be_empty()


def test_an_error_names_the_place_in_its_text_and_the_preview_shows_what_is_written(
    console, alice, sender, crowd
):
    page = console.open(COMPOSE, sender)
    switch(page)
    write(page, title="Hi {{ first_name")
    expect(page.locator("#error-title")).to_contain_text("Character 4:")
    expect(title(page)).to_have_text("Hi {{ first_name")
    page.get_by_label("Title", exact=True).fill("Hi {{ first_name }}")
    expect(page.locator("#error-title")).to_be_empty()
    expect(title(page)).to_have_text("Hi")


def test_without_the_switch_nothing_of_it_is_shown(console, alice, sender, crowd):
    page = console.open(COMPOSE, sender)
    write(page, title="Hi {{ first_name }}")
    expect(page.locator("#check")).to_contain_text("4 subscribers")
    expect(title(page)).to_have_text("Hi {{ first_name }}")
    expect(page.get_by_role("button", name="first_name", exact=True)).to_be_hidden()


def test_placeholders_of_a_newsfeeds_entries_are_chosen_and_not_warned_of(console, alice, sender):
    page = console.open(reverse("admin:newsfeed_new", args=[alice.channel.pk]), sender)
    text = page.get_by_label("Text (required)")
    expect(text).to_have_value("{{ entry.summary }}")
    text.fill("")
    page.get_by_role("button", name="{{ entry.author }}").click()

    expect(text).to_have_value("{{ entry.author }}")
    expect(page.locator("#literal")).to_be_hidden()
    page.keyboard.type(" {{ first_name }}")
    expect(page.locator("#literal")).to_contain_text("{{ first_name }}")
    expect(page.locator("#literal")).not_to_contain_text("entry")

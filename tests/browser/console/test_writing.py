"""Help at the form that writes a notification: emoji, the check of images, the preview, editing."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from notifications_app.models import Notification
from tests.admin.support import subscriber
from tests.browser.console.support import PHONE, press_until, violations_of
from tests.browser.console.writing import COMPOSE, NEW_YORK, review, write
from tests.factories import add_crowd, make_device, make_sent_notification

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8cf"
    "c0f01f00050001ff89993d1d0000000049454e44ae426082"
)
IMAGE = "https://shop.example/bread.png"


def test_a_test_device_that_was_added_in_another_tab_is_offered(console, alice, sender):
    add_crowd(alice.channel, 1)
    page = console.open(COMPOSE, sender)
    write(page, title="Half of a thought")
    expect(page.get_by_text("There are none yet.")).to_be_visible()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Add this browser or a phone").click()
    expect(opened.value.get_by_role("heading", level=1)).to_be_visible()
    make_device(alice.channel, subscriber(alice.channel), sender, name="The kitchen iPhone")

    page.evaluate("dispatchEvent(new Event('focus'))")  # headless tabs do not lose theirs

    expect(page.get_by_label("The kitchen iPhone")).to_be_checked()
    expect(page.get_by_label("Title", exact=True)).to_have_value("Half of a thought")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_emoji_is_chosen_with_the_keyboard_and_stands_at_the_cursor(
    console, alice, sender, scheme
):
    page = console.open(COMPOSE, sender, axe=True, color_scheme=scheme)
    page.wait_for_load_state("networkidle")
    write(page, title="Fresh bread", body="x")
    title = page.get_by_label("Title", exact=True)
    title.focus()
    title.evaluate("(field) => field.setSelectionRange(5, 5)")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="party popper")).to_be_focused()
    assert violations_of(page) == []
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="fire", exact=True)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="explosion")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")

    expect(title).to_have_value("Fresh🔥 bread")
    expect(title).to_be_focused()
    expect(page.locator("#count-title")).to_have_text("12 of 100 characters")
    expect(page.locator("#emoji")).to_be_hidden()


def test_an_emoji_takes_no_text_away_that_the_tab_key_selected(console, alice, sender):
    page = console.open(COMPOSE, sender)
    write(page, title="Fresh bread")
    page.locator("#channel").focus()
    press_until(page, "Tab", "it.dataset.emoji === 'title'")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="fire", exact=True).click()
    expect(page.get_by_label("Title", exact=True)).to_have_value("Fresh bread🔥")


def test_escape_closes_the_emoji_and_leaves_the_text(console, alice, sender):
    page = console.open(COMPOSE, sender)
    write(page)
    button = page.locator("[data-emoji=body]")
    button.click()

    page.keyboard.press("Escape")

    expect(page.locator("#emoji")).to_be_hidden()
    expect(button).to_be_focused()
    expect(page.get_by_label("Text (required)")).to_have_value("From six o'clock on")


def test_what_is_wrong_with_an_image_is_said_and_the_preview_shows_none(console, alice, sender):
    page = console.open(COMPOSE, sender)
    for address, words in (
        ("http://shop.example/bread.png", "must begin with https://"),
        ("https://localhost/bread.png", "Only addresses of public names"),
    ):
        page.get_by_label("Large image", exact=True).fill(address)
        page.get_by_label("Large image", exact=True).blur()
        expect(page.locator("[data-image=image]")).to_contain_text(words)
    expect(page.locator(".ps-compose-chrome .ps-compose-picture")).to_have_text("No picture")
    expect(page.locator("#mockups img")).to_have_count(0)

    page.get_by_label("Large image", exact=True).fill("")
    expect(page.locator("[data-image=image]")).to_be_hidden()


def test_the_preview_shows_an_image_once_it_is_checked(console, alice, sender):
    """The shop and the answer of the check are the test's own: no server has the name."""
    page = console.open(COMPOSE, sender)
    asked = []
    page.route(IMAGE, lambda route: route.fulfill(body=PIXEL, content_type="image/png"))
    page.route("**/compose/image/", lambda route: asked.append(route))

    with page.expect_request("**/compose/image/"):
        page.get_by_label("Large image", exact=True).fill(IMAGE)
        page.get_by_label("Large image", exact=True).blur()
    expect(page.locator("#mockups img")).to_have_count(0)
    asked[0].fulfill(json={"error": "", "found": "PNG, 1 KB"})

    expect(page.locator("[data-image=image]")).to_have_text("Picture found: PNG, 1 KB.")
    expect(page.locator(f"#mockups img[src='{IMAGE}']")).to_have_count(2)
    write(page)
    expect(page.locator("#mockups img")).to_have_count(2)
    assert len(asked) == 1


def test_on_a_phone_the_preview_folds_out_above_the_button(console, alice, sender):
    page = console.open(COMPOSE, sender, viewport=PHONE)
    write(page)
    fold = page.locator("#preview-fold summary")
    mockup = page.locator(".ps-compose-chrome")
    expect(mockup).to_be_hidden()

    fold.click()

    expect(mockup).to_be_visible()
    top = mockup.bounding_box()["y"]
    button = page.get_by_role("button", name="Review before sending").bounding_box()["y"]
    fields = page.get_by_label("Stop delivering after").bounding_box()["y"]
    assert fields < top < button


def test_beside_the_form_the_preview_is_open_and_the_button_is_below_the_fields(
    console, alice, sender
):
    page = console.open(COMPOSE, sender)
    expect(page.locator(".ps-compose-chrome")).to_be_visible()
    button = page.get_by_role("button", name="Review before sending").bounding_box()
    field = page.get_by_label("Stop delivering after").bounding_box()
    preview = page.locator("#preview-fold").bounding_box()
    assert field["y"] < button["y"]
    assert button["x"] < preview["x"]
    assert preview["y"] < field["y"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_preview_begins_in_the_colours_of_the_page(console, alice, sender, scheme):
    page = console.open(COMPOSE, sender, color_scheme=scheme)
    expect(page.locator("#mockups")).to_have_attribute("data-theme", scheme)
    page.get_by_role("button", name="Dark").click()
    other = "light" if scheme == "dark" else "dark"
    expect(page.locator("#mockups")).to_have_attribute("data-theme", other)


def test_an_edit_is_made_in_the_browsers_time(console, alice, sender):
    due = timezone.now().replace(year=2031, month=3, day=14, hour=17, minute=30, microsecond=0)
    nothing = dict.fromkeys(("recipient_count", "delivered_count", "bounced_count"), 0)
    notification = make_sent_notification(
        alice.channel, status="pending", started_at=None, scheduled_at=due, **nothing
    )
    page = console.open(
        f"/admin/notifications_app/notification/{notification.pk}/edit/",
        sender,
        timezone_id=NEW_YORK,
    )
    expect(page.get_by_label(f"Day and time, {NEW_YORK}")).to_have_value("2031-03-14T13:30")
    expect(page.locator("#moment")).to_contain_text("13:30")

    page.get_by_label("Title", exact=True).fill("Later")
    page.get_by_label("Stop delivering after").fill("2031-03-14T20:00")
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_text("The notification is changed.")).to_be_visible()
    after = Notification.objects.get(pk=notification.pk)
    assert (after.title, after.scheduled_at) == ("Later", due)
    assert f"{after.expires_at:%Y-%m-%d %H:%M}" == "2031-03-15 00:00"


def test_errors_use_the_words_of_the_form_as_one_types(console, alice, sender):
    page = console.open(COMPOSE, sender)
    page.get_by_label("Opens", exact=True).fill("ftp://shop.example")
    expect(page.locator("#error-url")).to_have_text(re.compile("^Enter a web address"))
    page.get_by_role("checkbox", name="Web").uncheck()
    expect(page.locator("#error-target_platforms")).to_have_text("Choose at least one platform.")


def test_lines_count_as_the_service_counts_them(console, alice, sender):
    page = console.open(COMPOSE, sender)
    count, error = page.locator("#count-body"), page.locator("#error-body")

    write(page, body="\n" * 100 + "🥐" * 156)
    expect(count).to_have_text("256 of 255 characters")
    expect(error).to_have_text("Must be at most 255 characters long.")
    write(page, body="\n" * 100 + "🥐" * 155)
    expect(count).to_have_text("255 of 255 characters")
    expect(error).to_be_empty()


def test_a_review_that_the_browser_stopped_can_be_asked_for_again(console, alice, sender):
    page = console.open(COMPOSE, sender)
    write(page)
    expect(page.locator("#save-state")).to_have_text("Saved")
    address = re.compile(r"/compose/\?")
    page.route(address, lambda route: None)
    with page.expect_request(address):
        page.evaluate("setTimeout(() => document.querySelector('#compose').requestSubmit())")

    page.context.new_cdp_session(page).send("Page.stopLoading")  # as the key Esc does
    page.unroute(address)

    review(page)


def test_a_double_click_on_review_does_not_send(console, alice, sender):
    """Its second click can come after the review has loaded, with a button under the pointer."""
    page = console.open(COMPOSE, sender)
    write(page)
    review(page)
    page.get_by_role("button", name="Send it to 0").hover()

    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)
    page.get_by_role("button", name="Back to editing").click()

    expect(page.get_by_label("Title", exact=True)).to_have_value("Fresh bread")
    assert not Notification.objects.filter(channel=alice.channel).exists()


def test_a_trial_that_fails_says_why(console, alice, sender):
    console.answers.add(429)
    page = console.open(COMPOSE, sender)
    page.get_by_label("Who would get it?").fill("user-1")
    button = page.get_by_role("button", name="Try", exact=True)
    result = page.locator("#try-result")

    page.route("**/try/", lambda route: route.fulfill(status=429))
    button.click()
    expect(result).to_have_text("The service responded with 429.")
    page.unroute("**/try/")
    page.route("**/try/", lambda route: route.abort())
    button.click()
    expect(result).to_have_text("The service cannot be reached.")
    console.complaints.clear()  # the browser's, of the cut network
    page.unroute("**/try/")
    page.context.clear_cookies(name="sessionid")
    button.click()
    expect(result).to_have_text("Sign in again in another tab.")

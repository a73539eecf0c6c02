"""Images of notifications: uploaded and chosen in the form, and kept in the tab of the channel."""

import pytest
from playwright.sync_api import expect

from notifications_app.models import Image
from tests.browser.console.support import PHONE, violations_of
from tests.images import file_of

COMPOSE = "/admin/notifications_app/notification/compose/"
LOOKS = [
    {"color_scheme": "light"},
    {"color_scheme": "dark"},
    {"color_scheme": "light", "viewport": PHONE},
]


def given(name="bread.png", **options):
    return {"name": name, "mimeType": "image/png", "buffer": file_of(**options)}


@pytest.mark.parametrize("look", LOOKS)
def test_an_image_is_uploaded_and_chosen_in_the_form(console, alice, sender, look):
    page = console.open(f"{COMPOSE}?channel={alice.channel.pk}", sender, axe=True, **look)
    field, chooser = page.locator("#image"), page.locator("#images")

    page.locator("[data-choose=image]").click()
    expect(chooser.get_by_text("No images yet.")).to_be_visible()
    assert violations_of(page) == []
    chooser.locator("input[type=file]").set_input_files(given("page.html", size=(1, 1)))
    chooser.get_by_role("button", name="Upload", exact=True).click()
    expect(chooser).to_be_hidden()
    image = Image.objects.get(channel=alice.channel)
    expect(field).to_have_value(f"{console.address}/images/{image}")

    page.locator("[data-choose=icon]").click()
    chooser.locator("input[type=file]").set_input_files(given(size=(900, 900)))
    chooser.get_by_role("button", name="Upload", exact=True).click()
    expect(chooser).to_be_hidden()
    icon = Image.objects.get(channel=alice.channel, width=256)
    expect(page.locator("#icon")).to_have_value(f"{console.address}/images/{icon}")

    page.locator("[data-choose=image]").click()
    expect(chooser.get_by_role("button", name="Image of")).to_have_count(2)
    assert violations_of(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    chooser.get_by_role("button", name="Image of 256 by 256").click()
    expect(field).to_have_value(f"{console.address}/images/{icon}")
    assert Image.objects.filter(channel=alice.channel).count() == 2


def test_what_is_no_image_is_an_error_in_the_chooser(console, alice, sender):
    page = console.open(f"{COMPOSE}?channel={alice.channel.pk}", sender)
    chooser = page.locator("#images")
    page.locator("[data-choose=image]").click()
    text = {"name": "x.png", "mimeType": "image/png", "buffer": b"<svg>"}
    chooser.locator("input[type=file]").set_input_files(text)
    chooser.get_by_role("button", name="Upload", exact=True).click()
    expect(chooser.get_by_text("This is not a complete image")).to_be_visible()

    large = {"name": "x.png", "mimeType": "image/png", "buffer": bytes(5 * 1024 * 1024 + 1)}
    chooser.locator("input[type=file]").set_input_files(large)
    expect(chooser.get_by_text("The file has more than 5 MB.")).to_be_visible()
    chooser.get_by_role("button", name="Upload", exact=True).click()
    assert not Image.objects.filter(channel=alice.channel).exists()


@pytest.mark.parametrize("look", LOOKS)
def test_the_tab_shows_adds_and_deletes_images(console, alice, sender, look):
    path = f"/admin/notifications_app/notification/images/{alice.channel.pk}/"
    page = console.open(path, sender, axe=True, **look)
    for name, size in (("a.png", (1_200, 600)), ("b.png", (300, 300))):
        page.get_by_label("Image", exact=True).set_input_files(given(name, size=size))
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_text("The image was added")).to_be_visible()
    loaded = "each => each.complete && each.naturalWidth > 0"
    for picture in page.locator(".ps-images img").all():
        page.wait_for_function(loaded, arg=picture.element_handle())
    assert violations_of(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").first.click()
    expect(page.get_by_text("The image was deleted.")).to_be_visible()
    assert Image.objects.filter(channel=alice.channel).count() == 1

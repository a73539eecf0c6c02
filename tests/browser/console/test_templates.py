"""A template's way: from the compose page into the list, and back into a draft."""

from playwright.sync_api import expect

from notifications_app.models import Template
from tests.factories import make_template

COMPOSE = "/admin/notifications_app/notification/compose/"


def test_what_is_composed_is_saved_as_a_template_and_used(console, alice):
    path = f"{COMPOSE}?channel={alice.channel.pk}"
    page = console.open(path, alice.members["manager"])
    page.get_by_label("Title").first.fill("Spring sale")
    page.locator("#body").fill("Twenty per cent off.")

    page.get_by_role("button", name="Save as template").click()
    expect(page.get_by_label("Name", exact=True).first).to_have_value("Spring sale")
    expect(page.locator("#body")).to_have_value("Twenty per cent off.")
    page.locator("#template-name").fill("Spring")
    page.locator("#url").fill("shop")
    expect(page.locator("#error-url")).to_contain_text("Enter a web address")
    page.locator("#url").fill("https://shop.example/sale")
    expect(page.locator("#error-url")).to_be_empty()
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("heading", name="Spring")).to_be_visible()
    expect(page.locator("#mockups figure").first).to_contain_text("Twenty per cent off.")
    template = Template.objects.get(channel=alice.channel)
    assert template.content["url"] == "https://shop.example/sale"

    page.get_by_role("link", name="Back").click()
    page.get_by_label("Part of the name").fill("SPRING")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("button", name="Use Spring").click()
    expect(page.get_by_text("This draft has the content of “Spring”.")).to_be_visible()
    expect(page.locator("#body")).to_have_value("Twenty per cent off.")
    expect(page.locator("#url")).to_have_value("https://shop.example/sale")

    page.goto(f"/admin/notifications_app/notification/templates/{template.pk}/edit/")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("The template “Spring” was deleted.")).to_be_visible()
    assert not Template.objects.filter(pk=template.pk).exists()


def test_who_may_not_check_images_sees_nothing_of_them(console, alice):
    address = "https://shop.example/image.png"
    template = make_template(alice.channel, content={"body": "Hi", "image": address})
    path = f"/admin/notifications_app/notification/templates/{template.pk}/edit/"
    for role, checks in (("viewer", False), ("sender", True)):
        page = console.open(path, alice.members[role])
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.clock.install()
        page.reload()
        page.clock.run_for(2_000)
        expect(page.locator("#mockups figure").first).to_contain_text("Hi")
        assert any("compose/image" in url for url in asked) == checks, role
        picture = page.locator(".ps-compose-chrome .ps-compose-picture")
        expect(picture).to_be_visible(visible=checks)
        expect(page.locator("[data-image=image]")).to_be_visible(visible=checks)

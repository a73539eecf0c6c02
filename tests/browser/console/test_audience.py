"""Choosing who gets a notification: conditions, a tag."""

import pytest
from playwright.sync_api import expect

from notifications_app.models import Notification
from subscriptions_app.admin.conditions import MOST_TAGS
from tests.browser.console.support import PHONE, is_wider_than_screen, violations_of
from tests.browser.console.writing import COMPOSE, review, write
from tests.factories import add_each, add_subscriptions, add_tags, make_notification

PRO = {"attribute": "plan", "operator": "eq", "value": "pro"}


@pytest.fixture
def crowd(alice):
    """Three of plan pro, and two of plan free."""
    plans = ["pro"] * 3 + ["free"] * 2
    add_each(alice.channel, [{"attributes": {"plan": plan}} for plan in plans])


def choose(page, audience):
    page.get_by_label("Recipients", exact=True).select_option(audience)


def total(page):
    return page.locator(".ps-compose-total")


def sent_to(house):
    return Notification.objects.get(channel=house.channel).rule


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_conditions_are_built_counted_kept_in_the_draft_and_sent(
    console, alice, sender, crowd, scheme
):
    page = console.open(COMPOSE, sender, axe=True, color_scheme=scheme)
    page.wait_for_load_state("networkidle")
    write(page)
    choose(page, "rule")
    expect(page.locator("#check")).to_contain_text("Choose an audience")
    expect(page.locator(".ps-rule .ps-error")).to_have_count(0)
    expect(page.get_by_label("Conditions, as JSON")).to_be_hidden()

    condition = page.locator(".ps-rule").first
    condition.get_by_label("Attribute", exact=True).fill("plan")
    condition.get_by_label("Value", exact=True).fill("pro")
    expect(total(page)).to_have_text("3 subscribers")
    assert violations_of(page) == []
    expect(page.locator("#save-state")).to_have_text("Saved")
    page.wait_for_function("document.querySelector('[name=draft]').value")
    page.reload()
    expect(condition.get_by_label("Value", exact=True)).to_have_value("pro")
    expect(total(page)).to_have_text("3 subscribers")
    review(page)
    expect(page.locator(".ps-compose-review .ps-words")).to_contain_text("plan")
    page.get_by_role("button", name="Back to editing").click()
    expect(condition.get_by_label("Value", exact=True)).to_have_value("pro")
    review(page)
    page.get_by_role("button", name="Send it to 3").click()

    expect(page.get_by_text("The notification is stored")).to_be_visible()
    assert sent_to(alice) == {"all": [PRO]}


def test_an_error_is_shown_beside_its_condition(console, alice, sender, crowd):
    console.answers.add(400)
    page = console.open(COMPOSE, sender)
    write(page)
    choose(page, "rule")
    rules = page.locator(".ps-rule")
    rules.nth(0).get_by_label("Value", exact=True).fill("pro")
    page.get_by_role("button", name="Add condition").click()
    expect(rules.nth(0).locator(".ps-error")).to_have_text("Name the attribute.")
    expect(rules.nth(1).locator(".ps-error")).to_have_count(0)
    rules.nth(0).get_by_label("Attribute", exact=True).fill("plan")
    expect(rules.nth(0).locator(".ps-error")).to_have_count(0)

    page.get_by_role("button", name="Review before sending").click()

    expect(page.get_by_role("alert").first).to_contain_text("Nothing was sent")
    expect(rules.nth(0).locator(".ps-error")).to_have_count(0)
    expect(rules.nth(1).locator(".ps-error")).to_have_text("Name the attribute.")
    rules.nth(1).get_by_role("button", name="Remove condition").click()
    expect(total(page)).to_have_text("3 subscribers")


def test_unsent_conditions_are_restored_after_a_reload(console, alice, sender, crowd):
    console.answers.add(503)
    page = console.open(COMPOSE, sender)
    page.route("**/draft/save/", lambda route: route.fulfill(status=503))
    choose(page, "rule")
    page.locator(".ps-rule").get_by_label("Attribute", exact=True).fill("plan")
    page.locator(".ps-rule").get_by_label("Value", exact=True).fill("free")
    expect(page.locator("#save-state")).to_have_text("Not saved: The service responded with 503.")
    page.unroute("**/draft/save/")

    page.reload()

    expect(page.get_by_text("Your unsent changes were restored")).to_be_visible()
    expect(page.locator(".ps-rule").get_by_label("Value", exact=True)).to_have_value("free")
    expect(total(page)).to_have_text("2 subscribers")


def test_conditions_are_edited_in_the_builder_and_stay_what_they_are(console, alice, sender, crowd):
    notification = make_notification(alice.channel, rule=PRO, scheduled_at="2031-03-14 09:30:00Z")
    page = console.open(
        f"/admin/notifications_app/notification/{notification.pk}/edit/", sender, viewport=PHONE
    )
    expect(page.locator(".ps-rule").get_by_label("Value", exact=True)).to_have_value("pro")
    assert not is_wider_than_screen(page)
    page.get_by_label("Title", exact=True).fill("Another")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The notification is changed.")).to_be_visible()
    notification.refresh_from_db()
    assert (notification.title, notification.rule) == ("Another", PRO)

    page.goto(f"/admin/notifications_app/notification/{notification.pk}/edit/")
    page.get_by_label("How the conditions are combined").select_option("none")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The notification is changed.")).to_be_visible()
    notification.refresh_from_db()
    assert notification.rule == {"not": {"any": [PRO]}}


def test_a_tag_is_offered_counted_and_sent_to(console, alice, sender):
    fans = add_subscriptions(alice.channel, 4)
    add_tags(fans[:3], "team-7")
    add_tags(fans, "match-991")
    page = console.open(COMPOSE, sender)
    write(page)
    choose(page, "tag")
    offered = page.eval_on_selector_all(
        "#rule-tags option", "(all) => all.map((each) => each.value)"
    )
    assert offered == ["match-991", "team-7"]
    tag = page.get_by_label("Tag", exact=True)
    tag.fill("team 7")
    expect(page.locator("#error-tag")).to_contain_text("Enter a tag")
    tag.fill("team-7")
    expect(page.locator("#error-tag")).to_be_empty()
    expect(total(page)).to_have_text("3 subscribers")

    review(page)
    page.get_by_role("button", name="Send it to 3").click()

    expect(page.get_by_text("The notification is stored")).to_be_visible()
    assert sent_to(alice) == {"tag": "team-7"}
    page.get_by_role("button", name="Duplicate").click()
    expect(page.get_by_label("Recipients", exact=True)).to_have_value("tag")
    expect(tag).to_have_value("team-7")


@pytest.mark.parametrize("is_full", [True, False])
def test_tags_that_the_page_does_not_have_are_offered_as_one_types(console, alice, sender, is_full):
    own = [f"a{number:03}" for number in range(MOST_TAGS if is_full else 3)]
    for at in range(0, len(own), 100):  # a device has no more
        add_tags(add_subscriptions(alice.channel, 1), *own[at : at + 100])
    add_tags(add_subscriptions(alice.channel, 1), "team-7")
    page = console.open(COMPOSE, sender)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    offered = page.locator("#rule-tags option")
    expect(offered).to_have_count(MOST_TAGS if is_full else 4)
    choose(page, "tag")

    page.get_by_label("Tag", exact=True).press_sequentially("team")

    if is_full:
        expect(offered).to_have_count(1)
        expect(offered).to_have_attribute("value", "team-7")
    else:
        expect(page.locator("#check")).to_contain_text("0 subscribers")
    assert any("/names/?prefix=team" in url for url in asked) == is_full

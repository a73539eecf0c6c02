"""What is written is saved as a draft, and kept over reloads, errors and colleagues' changes."""

import re

from playwright.sync_api import expect

from channels_app.sign_in.sessions import sessions_end
from notifications_app.models import Draft
from tests.browser.console.test_signing_in import sign_in
from tests.browser.console.writing import COMPOSE, NEW_YORK, review, write
from tests.factories import make_channel, make_draft, make_segment


def draft_of(house):
    return Draft.objects.get(channel=house.channel)


def test_what_is_written_is_saved_as_a_draft_as_one_types(console, alice, sender):
    page = console.open(COMPOSE, sender)
    write(page, title="Half of a thought")
    expect(page.locator("#save-state")).to_have_text("Saved")
    page.wait_for_url(re.compile(r"\?draft="))
    write(page, title="A whole thought")
    expect(page.locator("#save-state")).to_have_text("Saved")

    page.reload()

    expect(page.get_by_label("Title", exact=True)).to_have_value("A whole thought")
    assert draft_of(alice).form["title"] == "A whole thought"
    page.goto("/admin/notifications_app/notification/")
    page.get_by_role("link", name="Drafts").click()
    page.get_by_role("link", name="A whole thought").click()
    expect(page.get_by_label("Title", exact=True)).to_have_value("A whole thought")


def test_saved_is_said_of_the_newest_text_alone(console, alice, sender):
    page = console.open(COMPOSE, sender)
    held = []
    page.route("**/draft/save/", lambda route: held.append(route))
    with page.expect_request("**/draft/save/"):
        write(page, title="Half of a thought")
    page.get_by_label("Title", exact=True).fill("A whole thought")

    with page.expect_request("**/draft/save/"):
        held[0].continue_()  # it does not contain the newest text

    expect(page.locator("#save-state")).to_have_text("Saving…")
    held[1].continue_()
    expect(page.locator("#save-state")).to_have_text("Saved")
    assert draft_of(alice).form["title"] == "A whole thought"


def test_what_could_not_be_saved_is_said_and_outlives_a_reload(console, alice, sender):
    console.answers.add(503)
    page = console.open(COMPOSE, sender)
    page.route("**/draft/save/", lambda route: route.fulfill(status=503))

    write(page, title="Half of a thought")
    expect(page.locator("#save-state")).to_have_text("Not saved: The service responded with 503.")
    page.unroute("**/draft/save/")
    page.reload()

    expect(page.get_by_text("Your unsent changes were restored")).to_be_visible()
    expect(page.get_by_label("Title", exact=True)).to_have_value("Half of a thought")
    expect(page.locator("#save-state")).to_have_text("Saved")


def test_two_people_do_not_overwrite_one_another_unseen(console, alice, sender):
    console.answers.add(409)
    draft = make_draft(alice.channel, sender, title="Ours")
    path = f"{COMPOSE}?draft={draft.pk}"
    first, second = console.open(path, sender), console.open(path, alice.members["owner"])

    write(first, title="Mine")
    expect(first.locator("#save-state")).to_have_text("Saved")
    write(second, title="Mine as well")

    said = f"Not saved: {sender.username} has changed this draft. Reload the page to see it."
    expect(second.locator("#save-state")).to_have_text(said)
    assert draft_of(alice).form["title"] == "Mine"

    second.reload()
    expect(second.get_by_label("Title", exact=True)).to_have_value("Mine")
    offer = second.get_by_role("button", name="Replace it with your text")
    expect(offer).to_be_visible()
    write(second, title="Mine", body="And more")
    expect(second.locator("#save-state")).to_have_text("Saved")
    second.reload()
    assert draft_of(alice).form["title"] == "Mine"
    offer.click()
    expect(second.get_by_label("Title", exact=True)).to_have_value("Mine as well")
    expect(second.locator("#save-state")).to_have_text("Saved")
    expect(offer).to_be_hidden()
    assert draft_of(alice).form["title"] == "Mine as well"


def test_a_review_waits_until_a_draft_is_saved(console, alice, sender):
    """Otherwise it names an earlier version, and the draft stays after it was sent."""
    draft = make_draft(alice.channel, sender, title="Ours", platforms=["web"])
    page = console.open(f"{COMPOSE}?draft={draft.pk}", sender)
    held = []
    page.route("**/draft/save/", lambda route: held.append(route))
    with page.expect_request("**/draft/save/"):
        page.get_by_label("Title", exact=True).fill("Mine")

    page.get_by_role("button", name="Review before sending").click()
    expect(page.get_by_label("Title", exact=True)).to_have_value("Mine")
    held[0].continue_()
    expect(page.locator("#review")).to_be_visible()
    expect(page.locator("[name=version]")).to_have_value("2")
    page.get_by_role("button", name="Send it to 0").click()

    expect(page.get_by_text("The notification is stored")).to_be_visible()
    assert not Draft.objects.filter(channel=alice.channel).exists()


def test_a_save_that_gets_no_answer_ends_and_is_tried_again(console, alice, sender):
    draft = make_draft(alice.channel, sender, title="Ours", platforms=["web"])
    page = console.open(f"{COMPOSE}?draft={draft.pk}", sender)
    page.clock.install()
    page.route("**/draft/save/", lambda route: None)
    with page.expect_request("**/draft/save/"):
        write(page, title="Mine")
    page.clock.fast_forward(30_000)
    said = "Not saved: The service did not respond. Your input is kept. The next change retries."
    expect(page.locator("#save-state")).to_have_text(said)
    page.unroute("**/draft/save/")
    write(page, title="Mine again")
    expect(page.locator("#save-state")).to_have_text("Saved")
    assert draft_of(alice).form["title"] == "Mine again"

    page.route("**/draft/save/", lambda route: None)
    with page.expect_request("**/draft/save/"):
        write(page, title="Mine at last")
    page.get_by_role("button", name="Review before sending").click()
    page.clock.fast_forward(30_000)

    expect(page.locator("#review")).to_be_visible()
    expect(page.locator(".ps-compose-message")).to_contain_text("Mine at last")


def test_a_draft_goes_along_to_another_channel(console, alice, sender):
    other = make_channel("Another", account=alice.account)
    page = console.open(f"{COMPOSE}?channel={alice.channel.pk}", sender)
    write(page, title="For the others")

    page.get_by_label("Channel", exact=True).select_option(label="Another")

    page.wait_for_url(re.compile(r"\?draft="))
    expect(page.get_by_label("Channel", exact=True).locator("option:checked")).to_have_text(
        "Another"
    )
    expect(page.get_by_label("Title", exact=True)).to_have_value("For the others")
    assert [each.channel for each in Draft.objects.filter(owner=sender)] == [other]


def test_a_draft_is_deleted_after_a_question(console, alice, sender):
    draft = make_draft(alice.channel, sender, title="A bad idea")
    page = console.open(f"{COMPOSE}?draft={draft.pk}", sender)
    button = page.get_by_role("button", name="Delete draft")

    page.once("dialog", lambda asked: asked.dismiss())
    button.click()
    assert draft_of(alice) == draft
    page.once("dialog", lambda asked: asked.accept())
    button.click()

    expect(page.get_by_text("The draft “A bad idea” was deleted.")).to_be_visible()
    assert not Draft.objects.filter(channel=alice.channel).exists()


def test_a_draft_keeps_its_time_in_its_own_zone(console, alice, sender):
    zone, time_ = "Asia/Tokyo", "2027-03-01T09:00"
    draft = make_draft(alice.channel, sender, when="later", local_time=time_, time_zone=zone)

    page = console.open(f"{COMPOSE}?draft={draft.pk}", sender, timezone_id=NEW_YORK)

    expect(page.get_by_label(f"Day and time, {zone}")).to_have_value(time_)
    expect(page.locator("#moment")).to_contain_text(f"19:00 in {NEW_YORK}")


def test_a_sent_notification_takes_only_its_own_text_out_of_the_tab(console, alice, sender):
    """The text of another draft, which could not be saved, stays."""
    console.answers.add(503)
    other = make_draft(alice.channel, sender, title="Other", platforms=["web"])
    page = console.open(f"{COMPOSE}?draft={other.pk}", sender)
    page.route("**/draft/save/", lambda route: route.fulfill(status=503))
    write(page, title="Not saved yet")
    expect(page.locator("#save-state")).to_have_text("Not saved: The service responded with 503.")

    page.goto(f"{COMPOSE}?channel={alice.channel.pk}")
    write(page, title="Sent")
    expect(page.locator("#save-state")).to_have_text("Not saved: The service responded with 503.")
    review(page)
    page.get_by_role("button", name="Send it to 0").click()
    expect(page.get_by_text("The notification is stored")).to_be_visible()
    page.unroute("**/draft/save/")

    page.goto(f"{COMPOSE}?channel={alice.channel.pk}")
    expect(page.get_by_label("Title", exact=True)).to_have_value("")
    page.goto(f"{COMPOSE}?draft={other.pk}")
    expect(page.get_by_label("Title", exact=True)).to_have_value("Not saved yet")


def test_text_that_could_not_be_saved_stays_where_another_channel_is_chosen(console, alice, sender):
    console.answers.add(503)
    make_channel("Another", account=alice.account)
    page = console.open(f"{COMPOSE}?channel={alice.channel.pk}", sender)
    page.route("**/draft/save/", lambda route: route.fulfill(status=503))
    write(page, title="For the others")
    channel = page.get_by_label("Channel", exact=True)

    with page.expect_response("**/draft/save/"):
        channel.select_option(label="Another")

    expect(channel).to_have_value(str(alice.channel.pk))
    expect(page.get_by_label("Title", exact=True)).to_have_value("For the others")


def test_a_segment_that_was_deleted_meanwhile_does_not_become_all_subscribers(
    console, alice, sender
):
    console.answers |= {400, 503}
    segment = make_segment(alice.channel, {"tag": "vip"})
    page = console.open(f"{COMPOSE}?channel={alice.channel.pk}", sender)
    page.route("**/draft/save/", lambda route: route.fulfill(status=503))
    write(page, title="For a few")
    page.get_by_label("Subscribers").select_option(str(segment.pk))
    segment.delete()

    page.reload()
    page.get_by_role("button", name="Review").click()

    expect(page.get_by_text("This segment no longer exists. Choose another.")).to_be_visible()


def test_a_draft_whose_text_is_no_rule_shows_it_and_can_be_written(console, alice, sender):
    rule = '{"all": {"tag": "x"}}'
    draft = make_draft(alice.channel, sender, audience="rule", rule=rule)

    page = console.open(f"{COMPOSE}?draft={draft.pk}", sender)

    expect(page.locator("#rule")).to_have_value(rule)
    write(page, title="Written")
    expect(page.locator("#save-state")).to_have_text("Saved")


def test_saving_goes_on_after_a_new_sign_in_in_another_tab(console, alice, carol):
    console.answers.add(403)
    page = console.open(COMPOSE, carol)
    write(page, title="Half of a thought")
    expect(page.locator("#save-state")).to_have_text("Saved")
    sessions_end(carol)
    write(page, title="Signed out")
    expect(page.locator("#save-state")).to_have_text("Not saved: Sign in again in another tab.")
    expect(page.get_by_text("Sign in again in another tab.")).to_have_count(2)

    tab = page.context.new_page()
    tab.goto("/admin/login/")
    sign_in(tab, carol)
    expect(tab.get_by_role("button", name=carol.username)).to_be_visible()
    write(page, title="A whole thought")

    expect(page.locator("#save-state")).to_have_text("Saved")
    expect(page.get_by_text("Sign in again in another tab.")).to_have_count(0)
    assert draft_of(alice).form["title"] == "A whole thought"

"""The segment builder, and the search for subscribers."""

import re

import pytest
from playwright.sync_api import expect

from subscriptions_app.models import Segment, Subscription
from tests.admin.support import subscriber
from tests.factories import (
    add_crowd,
    add_each,
    add_subscriptions,
    add_tags,
    make_segment,
    make_sent_notification,
)
from tests.segments import field


@pytest.fixture
def crowd(alice):
    """12 subscribers on the web, 6 of them of plan pro, aged 20 to 31; and two phones without
    attributes."""
    web = [
        {"attributes": {"plan": "pro" if n % 2 else "free", "age": 20 + n, "size": "12"}}
        for n in range(12)
    ]
    add_each(alice.channel, [*web, {"platform": "android"}, {"platform": "ios"}])


def count(page):
    return page.locator("#segment-preview .ps-stat dd")


def parts(rule):
    """The fields of the builder in their order."""
    return {
        "attribute": rule.get_by_label("Attribute", exact=True),
        "kind": rule.get_by_label("Kind of value"),
        "operator": rule.get_by_label("Comparison"),
        "value": rule.get_by_label("Value", exact=True),
    }


def rule_shown(page):
    return page.evaluate("JSON.parse(document.querySelector('#segment-rule').value)")


@pytest.fixture
def edited(console, alice, manager):
    """Opens the builder with a rule: the segment and the page."""

    def opened(rule, **options):
        segment = make_segment(alice.channel, rule)
        path = f"/admin/subscriptions_app/segment/{segment.pk}/change/"
        return segment, console.open(path, manager, **options)

    return opened


@pytest.fixture
def page(console, manager):
    """The builder of a new segment."""
    return console.open("/admin/subscriptions_app/segment/add/", manager)


def save(page):
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("was saved")).to_be_visible()


def fill(rule, attribute, kind, operator, value):
    parts(rule)["attribute"].fill(attribute)
    parts(rule)["attribute"].press("Tab")
    parts(rule)["kind"].select_option(kind)
    parts(rule)["operator"].select_option(operator)
    parts(rule)["value"].fill(value)


def test_a_nested_rule_is_built_counted_saved_and_shown_again(page, alice, crowd):
    page.get_by_label("Name").fill("Loyal and grown up")
    rules = page.locator(".ps-rule")

    fill(rules.nth(0), "plan", "text", "eq", "pro")
    expect(count(page)).to_have_text("6")
    page.get_by_role("button", name="Add group").click()
    fill(rules.nth(1), "age", "number", "gte", "28")
    expect(count(page)).to_have_text("2")
    inner = page.get_by_role("group", name="Group of conditions").nth(1)
    inner.get_by_role("button", name="Add condition").click()
    rules.nth(2).get_by_label("What is tested").select_option("last_seen_at")
    rules.nth(2).get_by_label("Comparison").select_option("gte-days")
    rules.nth(2).get_by_label("Days").fill("7")
    expect(count(page)).to_have_text("6")
    inner.get_by_label("How the conditions are combined").select_option("all")
    expect(count(page)).to_have_text("2")
    expect(page.locator(".ps-samples > li")).to_have_count(2)
    save(page)

    rule = {
        "all": [
            {"attribute": "plan", "operator": "eq", "value": "pro"},
            {
                "all": [
                    {"attribute": "age", "operator": "gte", "value": 28},
                    {"field": "last_seen_at", "operator": "gte", "value": {"days_ago": 7}},
                ]
            },
        ]
    }
    assert Segment.objects.get(channel=alice.channel).rule == rule
    page.reload()
    expect(count(page)).to_have_text("2")
    assert rule_shown(page) == rule
    expect(parts(rules.nth(1))["value"]).to_have_value("28")


def test_an_attribute_matches_as_text_and_as_a_number_differently(page, crowd):
    rule = page.locator(".ps-rule").first

    fill(rule, "size", "text", "eq", "12")
    expect(count(page)).to_have_text("12")
    parts(rule)["kind"].select_option("number")
    expect(count(page)).to_have_text("0")


def test_conditions_on_tags_people_and_earlier_notifications_are_built_and_shown_again(page, alice):
    sent = make_sent_notification(alice.channel)
    members = add_subscriptions(alice.channel, 3, language="de-AT", timezone="Europe/Vienna")
    add_tags(members, "team-7")
    page.get_by_label("Name").fill("Austrian followers")
    rules = page.locator(".ps-rule")
    subjects = ("tag", "language", "timezone", "external_id", "notification")
    for place, subject in enumerate(subjects):
        if place:
            page.get_by_role("button", name="Add condition").click()
        rules.nth(place).get_by_label("What is tested").select_option(subject)
    page.get_by_label("How the conditions are combined").select_option("any")
    rules.nth(0).get_by_label("Tag").fill("team-7")
    rules.nth(1).get_by_label("Comparison").select_option("starts_with")
    rules.nth(1).get_by_label("Language").fill("de")
    rules.nth(2).get_by_label("Comparison").select_option("in")
    rules.nth(2).get_by_label("Time zone", exact=True).fill("Europe/Vienna\nEurope/Berlin\n")
    rules.nth(3).get_by_label("Comparison").select_option("exists")
    rules.nth(4).get_by_label("Notification id").fill(str(sent.pk))
    rules.nth(4).get_by_label("Outcome").select_option("clicked")
    expect(count(page)).to_have_text("3")
    save(page)

    rule = {
        "any": [
            {"tag": "team-7"},
            {"field": "language", "operator": "starts_with", "value": "de"},
            {
                "field": "timezone",
                "operator": "in",
                "value": ["Europe/Vienna", "Europe/Berlin"],
            },
            {"field": "external_id", "operator": "exists", "value": True},
            {"notification": str(sent.pk), "outcome": "clicked"},
        ]
    }
    assert Segment.objects.get(channel=alice.channel).rule == rule
    page.reload()
    expect(count(page)).to_have_text("3")
    assert rule_shown(page) == rule


def test_the_values_of_a_list_stay_as_they_are_when_the_segment_is_edited(edited):
    values = ["Bern, Zürich", "Basel", " blank ", 'a "b', '"quoted"', "two\nlines", "", "\\n"]
    values.append("\u2028")  # a line in JavaScript, and not in a form
    rule = {
        "all": [
            {"attribute": "places", "operator": "in", "value": values},
            {"attribute": "sizes", "operator": "in", "value": [5, 7.5]},
            {"field": "language", "operator": "in", "value": ["de", "pt-BR"]},
        ]
    }
    segment, page = edited(rule)
    shown = page.get_by_label("Value", exact=True).first
    expect(shown).to_have_value(
        'Bern, Zürich\nBasel\n" blank "\na "b\n"\\"quoted\\""\n"two\\nlines"\n""\n\\n\n"\u2028"'
    )

    shown.press("Control+End")
    shown.press_sequentially("\n  Genf, Vevey \n\n")
    save(page)

    rule["all"][0]["value"].append("Genf, Vevey")
    segment.refresh_from_db()
    assert segment.rule == rule
    assert rule_shown(page) == rule


def test_a_list_survives_another_comparison_that_is_only_tried(edited):
    rule = {"all": [{"attribute": "city", "operator": "in", "value": ["Bern, CH", "Basel"]}]}
    _, page = edited(rule)
    condition = parts(page.locator(".ps-rule").first)

    condition["operator"].select_option("contains")
    expect(condition["value"]).to_have_value("Bern, CH, Basel")
    condition["operator"].select_option("starts_with")
    condition["operator"].select_option("in")
    expect(condition["value"]).to_have_value("Bern, CH\nBasel")
    assert rule_shown(page) == rule

    condition["operator"].select_option("eq")
    condition["value"].fill("Bern, CH")
    condition["operator"].select_option("in")
    expect(condition["value"]).to_have_value("Bern, CH")
    expect(page.locator("#segment-rule")).to_have_value(re.compile(r'"value":\["Bern, CH"\]'))


def test_a_text_survives_a_list_that_is_only_tried(edited):
    rule = {"all": [{"attribute": "city", "operator": "eq", "value": '"Bern" '}]}
    _, page = edited(rule)
    condition = parts(page.locator(".ps-rule").first)

    condition["operator"].select_option("in")
    expect(condition["value"]).to_have_value('"\\"Bern\\" "')
    condition["operator"].select_option("eq")

    expect(condition["value"]).to_have_value('"Bern" ')
    assert rule_shown(page) == rule


@pytest.mark.parametrize("tried", [[], ["contains"]], ids=["from the list", "from its text"])
def test_an_attribute_with_a_list_can_be_asked_for_as_missing(edited, tried):
    rule = {"all": [{"attribute": "city", "operator": "in", "value": ["Bern", "Basel"]}]}
    _, page = edited(rule)
    comparison = parts(page.locator(".ps-rule").first)["operator"]

    for operator in [*tried, "missing"]:
        comparison.select_option(operator)

    expect(comparison).to_have_value("missing")
    missing = {"attribute": "city", "operator": "exists", "value": False}
    assert rule_shown(page) == {"all": [missing]}


def test_a_moment_is_on_the_readers_clock_and_one_that_browsers_cannot_read_is_asked_for(edited):
    moments = ("2026-01-01T09:30", "2026-W01-4T09:30Z")
    rule = {"any": [{"field": "created_at", "operator": "gte", "value": each} for each in moments]}

    segment, page = edited(rule, timezone_id="Asia/Tokyo")

    rules = page.locator(".ps-rule")
    moment = page.get_by_label("Date and time (Asia/Tokyo)")
    expect(rules.nth(1).locator(".ps-error")).to_have_text("Enter a date and a time.")
    expect(moment.nth(1)).to_have_value("")
    rules.nth(1).get_by_role("button", name="Remove condition").click()
    save(page)
    expect(moment).to_have_value("2026-01-01T18:30")
    segment.refresh_from_db()
    assert segment.rule["any"][0]["value"] == "2026-01-01T09:30:00Z"
    moment.fill("2026-01-01T06:15")
    save(page)
    expect(moment).to_have_value("2026-01-01T06:15")
    segment.refresh_from_db()
    assert segment.rule["any"][0]["value"] == "2025-12-31T21:15:00Z"


def test_a_moment_that_a_clock_shows_twice_stays_as_it_was(edited):
    rule = {"field": "created_at", "operator": "gte", "value": "2026-11-01T09:30:00Z"}
    segment, page = edited(rule, timezone_id="America/Los_Angeles")
    expect(page.get_by_label("Date and time (America/Los_Angeles)")).to_have_value(
        "2026-11-01T01:30"
    )
    save(page)
    segment.refresh_from_db()
    assert "2026-11-01T09:30:00Z" in str(segment.rule)


def test_a_moment_that_clocks_skip_becomes_the_one_that_the_rule_has(edited):
    rule = {"field": "created_at", "operator": "gte", "value": "2026-01-01T09:30:00Z"}
    segment, page = edited(rule, timezone_id="America/Los_Angeles")
    moment = page.get_by_label("Date and time (America/Los_Angeles)")

    moment.fill("2026-03-08T02:30")
    moment.blur()

    expect(moment).to_have_value("2026-03-08T01:30")
    save(page)
    segment.refresh_from_db()
    assert "2026-03-08T09:30:00Z" in str(segment.rule)


def test_an_unfinished_rule_is_not_saved_and_its_error_is_shown_beside_it(console, page, alice):
    console.answers.add(400)
    page.get_by_label("Name").fill("Nothing yet")

    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("alert")).to_contain_text("Not saved")
    expect(page.get_by_label("Name")).to_have_value("Nothing yet")
    expect(page.locator(".ps-rule .ps-error")).to_have_text("Name the attribute.")
    assert not Segment.objects.filter(channel=alice.channel).exists()


def test_an_unfinished_number_is_not_saved_as_text_and_stays_a_number(console, page, alice):
    console.answers.add(400)
    page.get_by_label("Name").fill("Grown up")
    rules = page.locator(".ps-rule")
    fill(rules.nth(0), "plan", "text", "eq", "pro")
    page.get_by_role("button", name="Add condition").click()
    fill(rules.nth(1), "age", "number", "gte", "")

    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("alert")).to_contain_text("Not saved")
    expect(rules.nth(1).locator(".ps-error")).to_have_text("Enter a number.")
    expect(rules.nth(0).locator(".ps-error")).to_have_count(0)
    expect(parts(rules.nth(1))["kind"]).to_have_value("number")
    assert not Segment.objects.filter(channel=alice.channel).exists()

    parts(rules.nth(1))["value"].fill("18")
    expect(rules.nth(1).locator(".ps-error")).to_have_count(0)
    save(page)
    rule = Segment.objects.get(channel=alice.channel).rule
    assert rule["all"][1] == {"attribute": "age", "operator": "gte", "value": 18}


def test_a_condition_shows_its_error_only_after_it_was_left(page):
    page.wait_for_load_state("networkidle")
    expect(page.locator("#segment-preview")).to_contain_text("Add a condition")
    expect(page.locator(".ps-rule .ps-error")).to_have_count(0)
    rule = page.locator(".ps-rule").first

    parts(rule)["value"].fill("pro")
    expect(page.locator("#segment-preview")).to_contain_text("Incomplete")
    expect(rule.locator(".ps-error")).to_have_count(0)

    page.get_by_label("Name").focus()
    expect(rule.locator(".ps-error")).to_have_text("Name the attribute.")
    expect(parts(rule)["attribute"]).to_have_attribute("aria-invalid", "true")


def test_a_subscriber_is_found_by_its_token_hash_expired_and_deleted(console, alice, manager):
    add_crowd(alice.channel, 30)
    one = subscriber(alice.channel)
    page = console.open("/admin/subscriptions_app/subscription/", manager)
    page.locator("#searchbar").fill(one.address_sha256.hex())
    page.locator("#searchbar").press("Enter")
    page.locator("#result_list tbody th a").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert one.address not in page.content()

    page.once("dialog", lambda asked: asked.accept())
    page.get_by_role("button", name="Expire").click()
    expect(page.locator(".ps-facts").first).to_contain_text("expired")
    page.once("dialog", lambda asked: asked.accept())
    page.get_by_role("button", name="Delete permanently").click()
    page.wait_for_url(re.compile(r"/subscription/($|\?)"))

    assert Subscription.objects.filter(channel=alice.channel).count() == 29


def test_conditions_on_clicks_countries_and_versions_are_built_and_shown_again(page, alice):
    add_subscriptions(
        alice.channel, 3, timezone="Europe/Vienna", attributes={"app_version": "2.10.1"}
    )
    page.get_by_role("link", name="Did not click in the last 30 days").click()
    rules = page.locator(".ps-rule")
    expect(count(page)).to_have_text("3")
    rules.first.get_by_label("Days").fill("7")
    page.get_by_role("button", name="Add condition").click()
    rules.nth(1).get_by_label("What is tested").select_option("country")
    rules.nth(1).get_by_label("Country").fill("AT")
    page.get_by_role("button", name="Add condition").click()
    rules.nth(2).get_by_label("What is tested").select_option("app_version")
    rules.nth(2).get_by_label("Comparison").select_option("gte")
    rules.nth(2).get_by_label("App version").fill("2.9")
    expect(count(page)).to_have_text("3")
    save(page)

    rule = {
        "all": [
            {"not": field("last_clicked_at", "gte", {"days_ago": 7})},
            field("country", "eq", "AT"),
            field("app_version", "gte", "2.9"),
        ]
    }
    assert Segment.objects.get(channel=alice.channel).rule == rule
    page.reload()
    expect(count(page)).to_have_text("3")
    assert rule_shown(page) == rule

    rules.first.get_by_label("Comparison").select_option("missing")
    rules.nth(2).get_by_label("Comparison").select_option("exists")
    expect(count(page)).to_have_text("3")
    assert rule_shown(page)["all"] == [
        field("last_clicked_at", "exists", False),
        field("country", "eq", "AT"),
        field("app_version", "exists", True),
    ]


def test_values_of_the_channel_are_offered_with_their_counts(console, alice, manager, crowd):
    add_tags(Subscription.objects.filter(channel=alice.channel)[:2], "team-7")
    page = console.open(f"/admin/subscriptions_app/segment/new/{alice.channel.pk}/", manager)
    first = page.locator(".ps-rule").first
    first.get_by_label("Attribute").fill("plan")
    value = first.get_by_label("Value", exact=True)
    value.focus()

    def offered():
        return page.evaluate(
            "() => [...document.activeElement.list.options].map((o) => [o.value, o.label])"
        )

    expect(page.locator("#rule-values-0 option")).to_have_count(2)
    assert offered() == [["free", "6 devices"], ["pro", "6 devices"]]
    first.get_by_label("What is tested").select_option("tag")
    first.get_by_label("Tag", exact=True).focus()
    expect(page.locator("#rule-tags option[label='2 devices']")).to_have_count(1)


def test_the_list_shows_sizes_after_it_has_opened(console, alice, manager, crowd):
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    segment = make_segment(alice.channel, rule)
    page = console.open("/admin/subscriptions_app/segment/", manager)
    expect(page.locator(f"#size-{segment.pk}")).to_have_text("6")


def test_values_of_a_list_are_suggested_and_added_as_lines(console, alice, manager, crowd):
    in_list = {"attribute": "plan", "operator": "in", "value": ["gold"]}
    segment = make_segment(alice.channel, in_list)
    path = f"/admin/subscriptions_app/segment/{segment.pk}/change/"
    page = console.open(path, manager)
    rule = page.locator(".ps-rule")
    adding = rule.get_by_label("Add: Value")

    adding.focus()
    offered = page.locator("datalist[id^=rule-values] option")
    expect(offered).to_have_count(2)
    assert {each.get_attribute("value") for each in offered.all()} == {"pro", "free"}
    adding.fill("pro")
    adding.press("Enter")
    expect(rule.get_by_label("Value", exact=True)).to_have_value("gold\npro")
    expect(adding).to_have_value("")
    adding.fill("pro")
    adding.press("Tab")
    expect(rule.get_by_label("Value", exact=True)).to_have_value("gold\npro")

    save(page)
    segment.refresh_from_db()
    [saved] = segment.rule["all"]
    assert saved["value"] == ["gold", "pro"]


def test_a_preview_that_fails_is_said_and_the_rule_stays(console, page):
    """A cut network, then the end of the session: the sign-in page is not shown as the preview."""
    rule = page.locator(".ps-rule")
    preview = page.locator("#segment-preview")
    page.route("**/preview/**", lambda route: route.abort())
    fill(rule, "plan", "text", "eq", "pro")
    expect(preview).to_have_text("The service could not be reached. The next change retries.")
    console.complaints.clear()  # the browser's, of the cut network
    page.unroute("**/preview/**")

    page.context.clear_cookies(name="sessionid")
    parts(rule)["value"].fill("free")

    expect(preview).to_have_text("Sign in again in another tab.")
    expect(parts(rule)["value"]).to_have_value("free")

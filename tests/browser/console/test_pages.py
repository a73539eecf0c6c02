"""Every main page is readable in light and dark, on a phone, and with poor sight."""

import json
import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from channels_app.services import api_key_issue, provider_credentials_store
from channels_app.webhooks import webhook_create
from notifications_app.models import ActionCount, EventHour
from subscriptions_app.models import MAX_TAG
from subscriptions_app.people.linking import devices_link
from subscriptions_app.segments.services import segment_create
from tests.admin.console.test_scope import addresses
from tests.admin.support import fill_hours, stocked, subscriber
from tests.api.credentials import APPLE, GOOGLE
from tests.browser.console.support import (
    PHONE,
    choose_scheme,
    errors_of,
    is_wider_than_screen,
    press_until,
    violations_of,
)
from tests.factories import (
    add_crowd,
    add_tags,
    make_automation,
    make_category,
    make_device,
    make_draft,
    make_newsfeed,
    make_schedule,
    make_sent_notification,
    make_template,
)

EXTRAS = {
    "actions": [{"id": "track", "title": "Track it"}, {"id": "later", "title": "Later"}],
    "translations": {"de": {"title": "Frühling", "body": "Zwanzig Prozent."}},
    "android": {"channel_id": "offers", "image": None},
}
OF_COLOURS = ("color-contrast", "link-in-text-block")  # axe-core's rules
RULE = {
    "all": [
        {"attribute": "plan", "operator": "eq", "value": "pro"},
        {
            "any": [
                {"field": "last_seen_at", "operator": "gte", "value": {"days_ago": 30}},
                {"attribute": "age", "operator": "gt", "value": 40},
            ]
        },
    ]
}


@pytest.fixture
def furnished(alice):
    """Content for every page; the paths of the pages."""
    channel = alice.channel
    add_crowd(channel, 120)
    fill_hours(channel, days=8)
    provider_credentials_store(
        channel=channel, fcm_service_account=json.dumps(GOOGLE), apns_key=json.dumps(APPLE)
    )
    api_key_issue(channel=channel, name="The shop's own program with a long name")
    segment = segment_create(channel=channel, name="Loyal", rule=RULE)
    sent = make_sent_notification(
        channel, data={"colour": "green"}, segment_id=segment.id, extras=EXTRAS
    )
    ActionCount.objects.create(notification=sent, action="track", count=5)
    other = make_sent_notification(
        channel, title="Two words", target_platforms=["web", "android", "ios"]
    )
    EventHour.objects.create(notification=other, hour=other.started_at, platform="web", clicked=12)
    due = make_sent_notification(channel, status="pending", started_at=None, finished_at=None)
    draft = make_draft(channel, alice.members["owner"], title="Half of a thought")
    template = make_template(channel, content={"title": "Your order", "body": "It left.", **EXTRAS})
    own, one = f"channels_app/channel/{channel.pk}", subscriber(channel)
    devices_link(channel=channel, links={one.pk: "user-42 with a long id"})
    one.refresh_from_db()
    make_device(channel, one, alice.members["owner"])
    add_tags([one], "team-7", "m" * MAX_TAG)
    make_category(channel)
    schedule = make_schedule(channel)
    automation = make_automation(channel)
    newsfeed = make_newsfeed(channel)
    webhook, _ = webhook_create(
        channel=channel, url="https://hooks.example.com/", events=["notifications.finished"]
    )
    return [
        "",
        "notifications_app/notification/",
        "notifications_app/notification/compose/",
        "notifications_app/notification/?show=scheduled",
        "notifications_app/notification/calendar/",
        "notifications_app/notification/labels/",
        "notifications_app/notification/?sort=clicked_rate",
        "notifications_app/draft/",
        f"notifications_app/notification/compose/?draft={draft.pk}",
        f"notifications_app/notification/{sent.pk}/change/",
        f"notifications_app/notification/{other.pk}/change/",
        f"notifications_app/notification/compare/?id={sent.pk}&id={other.pk}",
        "notifications_app/notification/compare/",
        f"notifications_app/notification/best-hours/{channel.pk}/",
        f"notifications_app/notification/delivery/{channel.pk}/",
        f"notifications_app/notification/delete-channel/{channel.pk}/",
        f"notifications_app/notification/schedules/{channel.pk}/",
        f"notifications_app/notification/schedules/{channel.pk}/new/",
        f"notifications_app/notification/schedules/{schedule.pk}/edit/",
        f"notifications_app/notification/automations/{channel.pk}/",
        f"notifications_app/notification/automations/{channel.pk}/new/",
        f"notifications_app/notification/automations/{automation.pk}/edit/",
        f"notifications_app/notification/newsfeeds/{channel.pk}/",
        f"notifications_app/notification/newsfeeds/{channel.pk}/new/",
        f"notifications_app/notification/newsfeeds/{newsfeed.pk}/edit/",
        f"notifications_app/notification/{due.pk}/edit/",
        "channels_app/channel/",
        "channels_app/channel/add/",
        f"{own}/change/",
        f"{own}/credentials/",
        f"{own}/keys/",
        f"{own}/snippet/",
        f"{own}/prompt/",
        f"notifications_app/notification/templates/{channel.pk}/",
        f"notifications_app/notification/templates/{channel.pk}/new/",
        f"notifications_app/notification/templates/{template.pk}/edit/",
        f"subscriptions_app/subscription/test-devices/{channel.pk}/",
        f"subscriptions_app/subscription/identity/{channel.pk}/",
        f"subscriptions_app/subscription/tags/{channel.pk}/",
        f"subscriptions_app/subscription/categories/{channel.pk}/",
        f"{own}/web-push-key/",
        f"{own}/settings/",
        f"{own}/webhooks/",
        f"{own}/webhooks/{webhook.pk}/",
        "subscriptions_app/segment/",
        f"subscriptions_app/segment/{segment.pk}/change/",
        f"subscriptions_app/segment/file/{channel.pk}/",
        "subscriptions_app/subscription/",
        f"subscriptions_app/subscription/{one.pk}/change/",
        f"subscriptions_app/subscription/import/{channel.pk}/",
        "subscriptions_app/person/",
        f"subscriptions_app/person/{one.person_id}/change/",
        "channels_app/account/",
        f"channels_app/account/{alice.account.pk}/change/",
        "auditlog/logentry/",
        "password_change/",
        "auth/user/two-step/",
        "auth/user/alerts/",
        "auth/user/time-zone/",
    ]


def each(page, paths):
    for path in paths:
        answer = page.goto(f"/admin/{path}", wait_until="networkidle")
        assert answer.status == 200, path
        # Until the page's scripts have run, the whole page is hidden.
        page.locator("html:not([x-cloak])").wait_for(state="attached")
        yield path


def test_axe_finds_no_violation_and_contrast_suffices_on_every_page(console, alice, furnished):
    """Only colours differ by scheme. Each page is loaded in the scheme that the page before was
    changed to."""
    page = console.open("/admin/", alice.members["owner"], axe=True, color_scheme="light")
    found, schemes = [], ("light", "dark")

    for path in each(page, furnished):
        found += [f"{path}: {error}" for error in (*errors_of(page), *violations_of(page))]
        schemes = schemes[::-1]
        choose_scheme(page, schemes[0])
        errors = (*errors_of(page), *violations_of(page, *OF_COLOURS))
        found += [f"{path}, changed to {schemes[0]}: {error}" for error in errors]

    assert "\n".join(found) == ""


def test_no_page_of_the_console_has_an_error_of_a_script(console, alice):
    """Every address of the site, so that new pages are opened as well. Forms that are checked while
    they are filled in are changed once."""
    page = console.open("/admin/", alice.members["owner"])
    opened, checked = 0, 0

    for name, path in addresses(stocked(alice)):
        answer = page.request.get(path, max_redirects=0) if name != "logout" else None
        if (
            answer is None
            or answer.status != 200
            or "text/html" not in answer.headers["content-type"]
        ):
            continue
        page.goto(path)
        opened += 1
        if page.locator("form[data-check] #body").count():
            with page.expect_response(re.compile("/check/")):
                page.locator("#body").fill("Hello")
            page.locator("#mockups").get_by_text("Hello").first.wait_for()
            checked += 1

    assert (opened > 40, checked > 3) == (True, True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_on_the_sign_in_and_on_pages_of_errors(console, bob, scheme):
    console.answers |= {403, 404}
    found = []
    for path, user, status in (
        ("login/", None, 200),
        ("nowhere/", bob.members["viewer"], 404),
        ("notifications_app/notification/compose/", bob.members["viewer"], 403),
    ):
        page = console.open("/admin/login/", user, axe=True, color_scheme=scheme)
        assert page.goto(f"/admin/{path}", wait_until="networkidle").status == status
        found += [f"{path}: {error}" for error in (*errors_of(page), *violations_of(page))]

    assert "\n".join(found) == ""


def test_the_keyboard_skips_the_side_bar(console, alice):
    page = console.open("/admin/", alice.members["viewer"])

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_role("main")).to_be_focused()


def test_no_page_scrolls_sideways_on_a_phone(console, alice, furnished):
    page = console.open("/admin/", alice.members["owner"], viewport=PHONE)

    assert [path for path in each(page, furnished) if is_wider_than_screen(page)] == []


def test_a_row_of_notifications_on_a_phone_has_what_matters(console, alice, furnished):
    page = console.open(
        "/admin/notifications_app/notification/", viewport=PHONE, user=alice.members["owner"]
    )
    row = page.locator("#result_list tbody tr").first
    for name in ("message", "state", "when", "channel", "to", "progress", "clicked"):
        expect(row.locator(f".field-{name}")).to_be_visible()
    expect(row.locator(".field-to")).to_contain_text("Web")


def test_titles_of_a_list_are_whole_on_a_phone(console, alice):
    """They were cut to twelve characters."""
    title = "Twenty per cent off everything green"
    make_sent_notification(alice.channel, title=title, target_platforms=["web", "android", "ios"])
    path = "/admin/notifications_app/notification/"
    page = console.open(path, alice.members["owner"], viewport=PHONE)

    link = page.get_by_role("link", name=title)
    expect(link).to_be_visible()
    assert link.evaluate("it => it.scrollWidth <= it.clientWidth")
    assert link.evaluate("it => it.scrollHeight <= it.clientHeight")


def test_values_of_a_list_have_their_headings_on_a_phone(console, alice):
    """An account was "5 3 optional"."""
    page = console.open("/admin/channels_app/account/", alice.members["owner"], viewport=PHONE)
    headings = page.locator("#result_list td").evaluate_all(
        "cells => cells.map((it) => getComputedStyle(it, '::before')).map("
        "(before) => before.display === 'none' ? '' : before.content)"
    )
    assert headings == ['"Members"', '"Channels"', '"Two-step sign-in"', '"Created"']


@pytest.mark.parametrize(
    ("path", "most"), [("notifications_app/notification", 100), ("notifications_app/draft", 90)]
)
def test_a_row_of_a_list_has_few_lines_on_a_phone(console, alice, furnished, path, most):
    page = console.open(f"/admin/{path}/", alice.members["owner"], viewport=PHONE)

    page.locator("html:not([x-cloak])").wait_for(state="attached")
    heights = page.eval_on_selector_all(
        "#result_list tbody tr", "rows => rows.map((row) => row.offsetHeight).filter(Boolean)"
    )

    assert heights
    assert max(heights) < most


def test_side_bar_and_user_menu_work_on_a_phone_with_the_keyboard(console, alice):
    page = console.open("/admin/", alice.members["owner"], viewport=PHONE)
    link = page.get_by_role("link", name="Segments")
    expect(link).to_be_hidden()

    press_until(page, "Tab", "it.ariaLabel === 'Side bar'")
    page.keyboard.press("Enter")
    expect(link).to_be_visible()
    press_until(page, "Shift+Tab", "it.classList.contains('ps-user-name')")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Log out")).to_be_hidden()
    page.get_by_role("button", name="Close the side bar").press("Enter")
    expect(link).to_be_hidden()


def test_the_filters_of_a_list_open_with_the_keyboard(console, alice):
    page = console.open("/admin/notifications_app/notification/", alice.members["viewer"])
    first = page.get_by_label("By channel")
    expect(first).to_be_hidden()

    press_until(page, "Tab", "it.textContent.startsWith('Filters')")
    page.keyboard.press("Enter")
    expect(first).to_be_focused()
    page.keyboard.press("Escape")

    expect(first).to_be_hidden()
    expect(page.get_by_role("button", name="Filters", expanded=False)).to_be_focused()


def test_the_chosen_colours_stay_on_the_next_page(console, alice):
    user = alice.members["viewer"]
    page = console.open("/admin/", user, color_scheme="light")
    page.get_by_role("button", name=user.username).click()

    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_class(re.compile(r"\bdark\b"))
    page.goto("/admin/channels_app/channel/")

    expect(page.locator("html")).to_have_class(re.compile(r"\bdark\b"))
    page.get_by_role("button", name=user.username).click()
    page.get_by_role("button", name="System").click()
    expect(page.locator("html")).not_to_have_class(re.compile(r"\bdark\b"))


def test_choosing_a_comparison_with_the_arrow_keys_keeps_the_focus(console, alice):
    page = console.open("/admin/subscriptions_app/segment/add/", alice.members["manager"])
    comparison = page.get_by_label("Comparison")
    comparison.focus()

    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")

    expect(comparison).to_be_focused()
    expect(comparison).to_have_value("in")


def test_times_are_in_the_readers_time_zone_which_is_shown_at_the_top(console, alice):
    moment = datetime(2026, 11, 24, 7, 30, tzinfo=UTC)
    make_sent_notification(alice.channel, title="Late", scheduled_at=moment)
    path = "/admin/notifications_app/notification/"
    page = console.open(
        path, alice.members["viewer"], timezone_id="America/Los_Angeles", viewport=PHONE
    )
    zone = page.get_by_role("link", name="Time zone:")

    expect(zone).to_contain_text("America/Los_Angeles")
    expect(page.get_by_text("23 Nov 2026, 23:30")).to_be_visible()
    zone.click()
    page.get_by_label("Time zone", exact=True).select_option("Asia/Tokyo")
    page.get_by_role("button", name="Save").click()
    page.goto(path)
    expect(page.get_by_text("24 Nov 2026, 16:30")).to_be_visible()


def test_a_button_copies_also_without_https(console, alice, sender):
    """As on another machine's address, where browsers have no navigator.clipboard."""
    page = console.open(user=sender)
    site = "http://console.test"

    def answer(route):
        found = route.fetch(url=route.request.url.replace(site, console.address))
        headers = {each: text for each, text in found.headers.items() if "opener" not in each}
        route.fulfill(response=found, headers=headers)  # the browser reports that it ignores it

    page.route(f"{site}/**", answer)
    page.goto(f"{site}/admin/channels_app/channel/{alice.channel.pk}/change/")
    assert not page.evaluate("isSecureContext")
    button = page.locator("[data-copy='#channel-id']")

    button.click()

    expect(button).to_have_text("Copied")
    expect(button).to_be_focused()
    page.goto(f"{site}/admin/notifications_app/notification/")
    page.locator("#searchbar").focus()
    page.keyboard.press("Control+V")
    expect(page.locator("#searchbar")).to_have_value(str(alice.channel.pk))


def test_a_button_that_copies_gets_its_label_back_after_two_clicks(console, alice, sender):
    page = console.open(user=sender, permissions=["clipboard-write"])
    page.clock.install()
    page.goto(f"/admin/channels_app/channel/{alice.channel.pk}/change/")
    button = page.locator("[data-copy='#channel-id']")

    button.dblclick()
    expect(button).to_have_text("Copied")
    page.clock.run_for(5000)

    expect(button).to_have_text("Copy id")

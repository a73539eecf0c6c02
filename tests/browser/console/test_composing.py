"""Composing a notification, testing it, sending it and watching its progress, with all
processes."""

import csv
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from channels_app.models import Channel
from notifications_app.models import Delivery, Notification
from subscriptions_app.segments.services import segment_create
from tests import factories
from tests.browser.chromium import skip_without_chromium
from tests.browser.console.support import PHONE, path_of, press_until
from tests.browser.console.writing import COMPOSE, NEW_YORK, review, write
from tests.factories import (
    add_crowd,
    add_each,
    make_device,
)
from tests.pipeline import phones, support
from tests.pipeline.processes import running_web


@pytest.fixture(scope="module")
def service(transactional_db, to_sandboxes, tmp_path_factory):
    """The address of a web process of its own, with all processes that send."""
    skip_without_chromium()
    log_path = tmp_path_factory.mktemp("composing") / "log"
    names = ("worker-plan", "worker-web", "worker-android", "worker-ios", "beat")
    with to_sandboxes(), running_web(log_path, *names) as address:
        yield address


@pytest.fixture
def devices(alice, to_sandboxes, _sandbox, _fcm, _apns):
    """By platform: a subscribed browser, Android phone and iPhone."""
    with to_sandboxes():
        phones.store_google(_fcm, alice.channel)
        phones.store_apple(_apns, alice.channel)
        return {
            "web": factories.subscribe_browsers(_sandbox, alice.channel)[0],
            "android": factories.subscribe_androids(_fcm, alice.channel)[0],
            "ios": factories.subscribe_iphones(_apns, alice.channel)[0],
        }


def messages_of(devices):
    """How many messages each device was sent."""
    return [device.totals().taken for device, _ in devices.values()]


def only_one(house):
    return Notification.objects.get(channel=house.channel)


# --- composing ------------------------------------------------------------------------------------


def test_characters_bytes_and_preview_follow_the_input(console, alice, sender):
    add_crowd(alice.channel, 7)
    page = console.open(COMPOSE, sender)

    write(page, title="Brötchen 🥐", body="Frisch")
    page.get_by_label("Opens", exact=True).fill("https://shop.example/bread")

    expect(page.locator("#count-title")).to_have_text("10 of 100 characters")
    expect(page.locator("#count-body")).to_have_text("6 of 255 characters")
    expect(page.locator("#check")).to_contain_text("7 subscribers")
    expect(page.locator("#check")).to_contain_text(re.compile(r"\d+ of 3,993 bytes"))
    for device in ("chrome", "android", "ios"):
        preview = page.locator(f".ps-compose-{device}")
        expect(preview.locator("[data-preview=title]")).to_have_text("Brötchen 🥐")
        expect(preview.locator("[data-preview=body]")).to_have_text("Frisch")
    expect(page.locator(".ps-compose-chrome [data-preview=host]")).to_have_text("shop.example")


def test_the_audience_follows_platforms_and_segment(console, alice, sender, devices):
    add_each(alice.channel, [{"attributes": {"plan": "pro"}}] * 3)
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    segment_create(channel=alice.channel, name="Pro", rule=rule)
    page = console.open(COMPOSE, sender)

    total = page.locator(".ps-compose-total")
    expect(total).to_have_text("6 subscribers")
    page.get_by_role("checkbox", name="Android").uncheck()
    expect(total).to_have_text("5 subscribers")
    page.get_by_label("Subscribers", exact=True).select_option(label="Segment: Pro")
    expect(total).to_have_text("3 subscribers")


def test_an_address_as_people_write_it_gets_its_https(console, alice, sender):
    page = console.open(COMPOSE, sender)
    opens = page.get_by_label("Opens", exact=True)

    for typed, kept in (
        ("shop.example/sale?a=b", "https://shop.example/sale?a=b"),
        ("http://shop.example", "http://shop.example"),
        ("half a thought", "half a thought"),
    ):
        opens.fill(typed)
        opens.blur()
        expect(opens).to_have_value(kept)


def test_a_schedule_is_entered_in_the_channels_time_zone_if_it_has_one(console, alice, sender):
    Channel.objects.filter(pk=alice.channel.pk).update(timezone="Asia/Tokyo")
    day = timezone.now().date() + timedelta(days=30)
    page = console.open(COMPOSE, sender, timezone_id=NEW_YORK)
    write(page)
    page.get_by_label("At a set time").check()
    page.get_by_label("Day and time, Asia/Tokyo").fill(f"{day:%Y-%m-%d}T18:30")

    there = datetime(day.year, day.month, day.day, 9, 30, tzinfo=UTC).astimezone(ZoneInfo(NEW_YORK))
    expect(page.locator("#moment")).to_contain_text("18:30 =")
    expect(page.locator("#moment")).to_contain_text(f"{there:%H:%M} in {NEW_YORK}")
    review(page)
    expect(page.locator(".ps-compose-review")).to_contain_text(f"{there:%H:%M} in {NEW_YORK}")


def test_a_schedule_is_entered_in_the_browsers_time_and_stored_in_utc(console, alice, sender):
    add_crowd(alice.channel, 3)
    day = timezone.now().date() + timedelta(days=30)
    page = console.open(COMPOSE, sender, timezone_id=NEW_YORK)
    write(page)
    page.get_by_label("At a set time").check()
    page.get_by_label(f"Day and time, {NEW_YORK}").fill(f"{day:%Y-%m-%d}T18:30")
    meant = datetime(day.year, day.month, day.day, 18, 30, tzinfo=ZoneInfo(NEW_YORK))
    expect(page.locator("#moment")).to_have_text(re.compile(r"18:30$"))

    review(page)
    expect(page.locator("#review")).to_have_text("Schedule this notification?")
    expect(page.locator(".ps-compose-review")).to_contain_text("18:30")
    expect(page.locator(".ps-compose-review")).to_contain_text("3 subscribers")
    page.get_by_role("button", name="Schedule").click()

    expect(page.get_by_text("It is scheduled.")).to_be_visible()
    stored = only_one(alice)
    assert stored.scheduled_at == meant
    assert stored.status == "pending"
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_text("Cancel for good…").click()
    page.get_by_role("button", name="Cancel this notification").click()
    expect(page.get_by_text("Cancelled; it was not sent")).to_be_visible()
    assert only_one(alice).status == "cancelled"


def test_a_double_click_on_the_confirmation_sends_once(console, alice, sender, devices):
    page = console.open(COMPOSE, sender)
    write(page)
    review(page)

    page.get_by_role("button", name="Send it to 3").dblclick()

    expect(page.get_by_text("The notification is stored")).to_be_visible()
    expect(page.locator(".ps-notification-figures dd:not(.ps-stat-note)")).to_have_text(
        ["3", "3", "0", "0"]
    )
    assert only_one(alice).recipient_count == 3
    assert messages_of(devices) == [1, 1, 1]


def test_a_notification_is_composed_with_the_keyboard_alone(console, alice, sender):
    add_crowd(alice.channel, 2)
    page = console.open("/admin/notifications_app/notification/", sender)
    keys = page.keyboard

    press_until(page, "Tab", "it.textContent.trim() === 'New notification'")
    keys.press("Enter")
    page.wait_for_url(re.compile("compose"))
    press_until(page, "Tab", "it.name === 'title'")
    keys.type("By hand")
    press_until(page, "Tab", "it.name === 'body'")
    keys.type("Without a mouse")
    press_until(page, "Tab", "it.name === 'when'")
    keys.press("ArrowDown")
    expect(page.get_by_label("At a set time")).to_be_checked()
    keys.press("ArrowUp")
    press_until(page, "Tab", "it.value === 'review'")
    keys.press("Enter")
    expect(page.locator("#review")).to_be_visible()
    press_until(page, "Tab", "it.value === 'send'")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    keys.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("By hand")
    assert only_one(alice).body == "Without a mouse"


# --- sending --------------------------------------------------------------------------------------


def test_a_test_message_reaches_only_the_chosen_subscriber(console, alice, sender, devices):
    make_device(alice.channel, devices["web"][1], sender, name="A laptop")
    make_device(alice.channel, devices["android"][1], sender, name="The shop's phone")
    page = console.open(COMPOSE, sender)
    write(page)

    _, subscription = devices["android"]
    page.get_by_label("The shop's phone").check()
    page.get_by_role("button", name="Send the test").click()

    expect(page.get_by_text("The push service accepted the test.")).to_be_visible()
    assert messages_of(devices) == [0, 1, 0]
    assert only_one(alice).only_subscription_id == subscription.id


def test_a_test_reaches_the_own_phone_five_clicks_after_the_dashboard(
    console, alice, sender, devices
):
    """Although there is another test device, and one looks back before the phone is added."""
    make_device(alice.channel, devices["web"][1], sender, name="A laptop")
    _, phone = devices["android"]
    page = console.open("/admin/", sender)
    presses = []
    page.context.expose_binding("pressed", lambda source: presses.append(source["page"].url))
    page.context.add_init_script("addEventListener('pointerdown', () => pressed(), true)")
    page.reload()

    page.get_by_role("link", name="New notification").first.click()
    write(page)
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Add this browser or a phone").click()
    page.evaluate("dispatchEvent(new Event('focus'))")  # headless tabs do not lose theirs
    finding = opened.value
    row = finding.get_by_role("row").filter(has_text=str(phone.pk)[-6:])
    row.get_by_role("link", name="Use as test device").click()
    finding.get_by_label("Name").fill("My phone")
    finding.get_by_role("button", name="Save").click()
    expect(finding.locator("#devices")).to_contain_text("My phone")
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.get_by_label("My phone")).to_be_checked()
    page.get_by_role("button", name="Send the test").click()

    expect(page.get_by_text("The push service accepted the test.")).to_be_visible()
    assert messages_of(devices) == [0, 1, 0]
    assert len(presses) == 5, presses


def test_progress_is_shown_until_the_end_and_the_log_is_downloaded(console, alice, sender, devices):
    browser, _ = devices["web"]
    browser.behave("throttled", retry_after=600)
    page = console.open(COMPOSE, sender, viewport=PHONE)
    write(page)
    review(page)
    page.get_by_role("button", name="Send it to 3").click()

    figures = page.locator(".ps-notification-figures dd:not(.ps-stat-note)")
    expect(figures).to_have_text(["3", "2", "0", "0"])
    expect(page.get_by_text("wait for another attempt")).to_be_visible()
    assert messages_of(devices) == [0, 1, 1]
    browser.behave("accept")
    support.make_due(only_one(alice))

    expect(figures).to_have_text(["3", "3", "0", "0"])
    expect(page.locator("#progress[hx-get]")).to_have_count(0)  # the page has stopped asking
    assert only_one(alice).status == "sent"
    page.reload()
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Log as CSV").click()
    with open(downloading.value.path(), newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["subscription_id"] for row in rows} == {
        str(each)
        for each in Delivery.objects.values_list("subscription_id", flat=True).filter(
            notification_id=only_one(alice).id
        )
    }
    assert {row["outcome"] for row in rows} == {"delivered"}
    assert path_of(page).endswith("/change/")

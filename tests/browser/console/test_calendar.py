"""The calendar: a scheduled notification is dragged to another day, or moved by its link."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from notifications_app.models import Notification
from tests.browser.console.support import PHONE, is_wider_than_screen, press_until, violations_of
from tests.factories import make_notification

CALENDAR = "/admin/notifications_app/notification/calendar/?month=2031-06"
JUNE = datetime(2031, 6, 10, 7, 30, tzinfo=UTC)
BERLIN = {"timezone_id": "Europe/Berlin"}


@pytest.fixture
def planned(alice):
    return make_notification(alice.channel, body="Sale", scheduled_at=JUNE)


def start():
    return Notification.objects.latest("id").scheduled_at


@pytest.mark.parametrize("handle", ["li[data-move] small", "li[data-move] > a >> nth=0"])
def test_dragging_it_to_another_day_asks_and_moves_it(console, alice, sender, planned, handle):
    page = console.open(CALENDAR, sender, axe=True, **BERLIN)
    assert violations_of(page) == []

    page.locator(handle).drag_to(page.locator('[data-day="2031-06-12"]'))

    expect(page.get_by_label("New day and time")).to_have_value("2031-06-12T09:30")
    assert start() == JUNE
    page.get_by_role("button", name="Move").click()
    expect(page.get_by_text("is scheduled for Thursday, 12 June 2031, 09:30")).to_be_visible()
    expect(page.locator('[data-day="2031-06-12"]')).to_contain_text("Sale")
    assert start() == JUNE.replace(day=12)


def test_a_drop_on_its_own_day_does_nothing(console, alice, sender, planned):
    page = console.open(CALENDAR, sender, **BERLIN)
    page.locator("li[data-move] small").drag_to(page.locator('[data-day="2031-06-10"]'))
    expect(page).to_have_url(f"{console.address}{CALENDAR}")


def test_the_keyboard_moves_it_by_its_link(console, alice, sender, planned):
    page = console.open(CALENDAR, sender, axe=True, **BERLIN)
    press_until(page, "Tab", "it.matches('.ps-calendar-move')")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Move “Sale”")).to_be_visible()
    assert violations_of(page) == []
    page.get_by_label("New day and time").fill("2031-07-01T10:00")
    page.get_by_role("button", name="Move").click()
    expect(page.get_by_role("heading", name="July 2031")).to_be_visible()
    assert start() == datetime(2031, 7, 1, 8, 0, tzinfo=UTC)


def test_on_a_phone_the_agenda_has_the_link(console, alice, sender, planned):
    page = console.open(CALENDAR, sender, viewport=PHONE, **BERLIN)
    expect(page.get_by_text("Tuesday 10 June")).to_be_visible()
    assert not is_wider_than_screen(page)
    page.get_by_role("link", name="Move Sale").click()
    expect(page.get_by_label("New day and time")).to_have_value("2031-06-10T09:30")
    assert not is_wider_than_screen(page)

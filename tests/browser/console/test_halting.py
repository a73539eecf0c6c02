"""Stopping a send that has gone on since its page was loaded, and deciding about it afterwards."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import expect

from notifications_app.models import Notification
from tests.browser.console.support import PHONE, errors_of, is_wider_than_screen, violations_of
from tests.factories import make_plan, make_sent_notification

HALTED = "Nobody else gets it while it is paused"


def page_of(notification):
    return f"/admin/notifications_app/notification/{notification.pk}/change/"


def running(channel, **fields):
    counts = {"recipient_count": 300, "delivered_count": 200, "bounced_count": 0}
    started = counts | {"status": "processing", "finished_at": None}
    notification = make_sent_notification(channel, title="Spring sale", **started | fields)
    make_plan(notification, status="delivering")
    return notification


def goes_on(notification, **fields):
    """What planners and workers have written since the page was loaded."""
    Notification.objects.filter(pk=notification.pk).update(recipient_count=38_708, **fields)


def now(notification):
    return Notification.objects.get(pk=notification.pk)


def test_stop_halts_a_send_that_became_large_and_asks_for_its_name_afterwards(
    console, alice, sender
):
    notification = running(alice.channel)
    page = console.open(page_of(notification), sender, axe=True, viewport=PHONE)
    goes_on(notification, delivered_count=20_515)

    page.get_by_role("button", name="Stop", exact=True).click()

    expect(page.get_by_role("heading", name=HALTED)).to_be_visible()
    expect(page.locator("#progress")).to_contain_text("53.0 % done; 18,193 wait")
    assert now(notification).is_paused
    page.get_by_text("Stop for good…").click()
    page.get_by_label("type its name").fill("Spring sale")
    assert not is_wider_than_screen(page)
    assert [*errors_of(page), *violations_of(page)] == []
    page.get_by_role("button", name="Stop this notification").click()
    expect(page.get_by_text("The notification is stopped.")).to_be_visible()
    assert now(notification).is_stopped


def test_cancel_halts_a_send_that_has_started_since(console, alice, sender):
    later = timezone.now() + timedelta(days=1)
    nothing = dict.fromkeys(("recipient_count", "delivered_count", "bounced_count"), 0)
    due = {"status": "pending", "scheduled_at": later, "started_at": None}
    notification = running(alice.channel, **nothing | due)
    page = console.open(page_of(notification), sender)
    cancel = page.get_by_role("button", name="Cancel", exact=True)
    expect(cancel).to_be_visible()
    goes_on(notification, status="processing", started_at=timezone.now())

    # Even if the page has just loaded itself again, and its button reads Stop.
    cancel.or_(page.get_by_role("button", name="Stop", exact=True)).click()

    expect(page.get_by_role("heading", name=HALTED)).to_be_visible()
    assert now(notification).is_paused
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert not now(notification).is_halted

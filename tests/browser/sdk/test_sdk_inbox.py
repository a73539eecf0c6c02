"""push.js lists what a browser was sent, and docs/inbox.md's page for it works."""

import pytest
from django.db.models.functions import Now
from playwright.sync_api import expect

from notifications_app.models import Delivery, Notification
from notifications_app.states import DeliveryStatus
from tests.browser.sdk.site import HTML, attempt, visit
from tests.browser.sdk.support import refusal
from tests.browser.sdk.test_sdk_files import code_blocks
from tests.browser.sdk.test_sdk_page import subscribe
from tests.factories import make_notification
from tests.pipeline.support import plan

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def with_inbox(alice):
    alice.channel.inbox_days = 7
    alice.channel.save()
    return alice


def sent(owner, body, *, status=DeliveryStatus.BOUNCED, **fields):
    """A notification whose only recipient has this outcome."""
    notification = make_notification(owner.channel, body=body, **fields)
    plan(notification)
    outcome = Delivery.objects.filter(notification_id=notification.pk)
    outcome.update(status=status, finished_at=Now(), code="expired" if status == 2 else "")
    return notification


def visit_guide(context, site):
    """The page of docs/inbox.md."""
    (html,) = code_blocks("html", "inbox.md")
    site.files["/inbox"] = (HTML, site.files["/"][1] + html)
    site.files["/orders"] = (HTML, "Orders")
    return visit(context, site, "/inbox")


def test_the_guides_page_lists_what_was_missed_and_counts_what_is_read(allowed, site, with_inbox):
    subscribe(visit(allowed, site))
    sent(with_inbox, "It is on its way", title="Your order", url=f"{site.origin}/orders")
    sent(with_inbox, "We have moved")
    page = visit_guide(allowed, site)

    expect(page.locator("#unread")).to_have_text("2")
    links = page.locator("#inbox a")
    expect(links).to_have_text(["We have moved", "Your order: It is on its way"])
    page.wait_for_function("document.querySelectorAll('#inbox a').length == 2")
    links.nth(1).click()
    page.wait_for_url("**/orders")

    page.goto(f"{site.origin}/inbox")
    expect(page.locator("#unread")).to_have_text("1")
    rows = Notification.objects.order_by("created_at")
    assert [(each.received_count, each.clicked_count) for each in rows] == [(1, 1), (1, 0)]


def test_a_link_of_the_guides_page_opens_though_its_report_fails(allowed, site, with_inbox):
    subscribe(visit(allowed, site))
    sent(with_inbox, "It is on its way", url=f"{site.origin}/orders")
    allowed.route(f"{site.service}/events", lambda route: route.abort())
    page = visit_guide(allowed, site)

    page.locator("#inbox a").click()

    page.wait_for_url("**/orders")


def test_the_badge_shows_how_many_are_unread(allowed, site, with_inbox):
    page = visit(allowed, site)
    subscribe(page)
    sent(with_inbox, "One", status=DeliveryStatus.DELIVERED)
    sent(with_inbox, "Two")
    page.evaluate("navigator.setAppBadge = (count) => { window.badge = count; }")
    page.evaluate("navigator.clearAppBadge = () => { window.badge = 0; }")
    assert attempt(page, "push.badge()") == (2, None)
    assert page.evaluate("window.badge") == 2
    shown = page.evaluate("push.inbox({ limit: 50 })")
    for each in shown["messages"]:
        assert attempt(page, f"push.report('{each['token']}', 'dismissed')") == (None, None)
    assert attempt(page, "push.badge()") == (0, None)
    assert page.evaluate("window.badge") == 0


def test_without_an_inbox_the_page_learns_why(allowed, site):
    page = visit(allowed, site)
    assert refusal(page, "push.inbox()")["code"] == "not_subscribed"
    subscribe(page)
    refused = refusal(page, "push.inbox()")
    assert (refused["code"], refused["problem"]["code"]) == ("refused", "inbox_off")

"""What each role is not shown."""

import pytest
from playwright.sync_api import expect

from subscriptions_app.segments.services import segment_create
from tests.factories import make_sent_notification

NOTIFICATIONS = "/admin/notifications_app/notification/"
RULE = {"attribute": "plan", "operator": "eq", "value": "pro"}


def channel_path(house, tab="change"):
    return f"/admin/channels_app/channel/{house.channel.pk}/{tab}/"


@pytest.fixture
def scheduled(alice):
    return make_sent_notification(
        alice.channel, title="Next week", status="pending", started_at=None, finished_at=None
    )


def test_a_viewer_sees_everything_and_is_offered_nothing_that_sends(console, alice, scheduled):
    page = console.open(NOTIFICATIONS, alice.members["viewer"])
    expect(page.get_by_role("link", name="Next week")).to_be_visible()
    expect(page.get_by_role("link", name="New notification")).to_have_count(0)

    page.get_by_role("link", name="Next week").click()
    expect(page.get_by_role("heading", name="Next week")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(page.get_by_role("link", name="Duplicate")).to_have_count(0)

    page.goto(channel_path(alice))
    expect(page.get_by_role("link", name="Compose")).to_have_count(0)


def test_a_sender_is_offered_no_form_for_keys_credentials_or_segments(console, alice):
    segment = segment_create(channel=alice.channel, name="Pro", rule=RULE)
    page = console.open(channel_path(alice, "keys"), alice.members["sender"])
    expect(page.get_by_text("need the role “manager”")).to_be_visible()
    expect(page.get_by_role("button", name="Issue")).to_have_count(0)

    page.goto(channel_path(alice, "credentials"))
    expect(page.get_by_role("button", name="Store")).to_have_count(0)
    page.goto(channel_path(alice, "settings"))
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    page.goto(f"/admin/subscriptions_app/segment/{segment.pk}/change/")
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    expect(page.get_by_label("Name")).to_be_disabled()

"""What each role is not shown, and is refused if it posts it anyway."""

import pytest
from playwright.sync_api import expect

from channels_app.models import ApiKey, ProviderCredential
from notifications_app.models import Notification
from subscriptions_app.models import Segment, Subscription
from subscriptions_app.segments.services import segment_create
from tests.admin.support import subscriber
from tests.browser.console.support import post
from tests.factories import add_crowd, make_sent_notification

NOTIFICATIONS = "/admin/notifications_app/notification/"
RULE = {"attribute": "plan", "operator": "eq", "value": "pro"}


def channel_path(house, tab="change"):
    return f"/admin/channels_app/channel/{house.channel.pk}/{tab}/"


@pytest.fixture
def scheduled(alice):
    return make_sent_notification(
        alice.channel, title="Next week", status="pending", started_at=None, finished_at=None
    )


def draft(house):
    return {
        "channel": str(house.channel.pk),
        "platforms": "web",
        "body": "Not mine to send",
        "when": "now",
        "ttl_number": "1",
        "ttl_unit": "days",
        "urgency": "normal",
        "key": "console 1",
        "step": "send",
    }


def test_a_viewer_sees_everything_and_is_offered_nothing_that_sends(console, alice, scheduled):
    page = console.open(NOTIFICATIONS, alice.members["viewer"])
    expect(page.get_by_role("link", name="Next week")).to_be_visible()
    expect(page.get_by_role("link", name="New notification")).to_have_count(0)

    page.get_by_role("link", name="Next week").click()
    expect(page.get_by_role("heading", name="Next week")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel notification")).to_have_count(0)
    expect(page.get_by_role("link", name="Duplicate")).to_have_count(0)

    page.goto(channel_path(alice))
    expect(page.get_by_role("link", name="Compose")).to_have_count(0)


def test_a_viewer_who_posts_anyway_is_refused(console, alice, scheduled):
    page = console.open(NOTIFICATIONS, alice.members["viewer"])

    refused = [
        post(page, f"{NOTIFICATIONS}compose/", **draft(alice)),
        post(page, f"{NOTIFICATIONS}compose/check/", **draft(alice)),
        post(page, f"{NOTIFICATIONS}compose/test/", **draft(alice)),
        post(page, f"{NOTIFICATIONS}{scheduled.pk}/cancel/"),
    ]

    assert refused == [403] * 4
    scheduled.refresh_from_db()
    assert scheduled.status == "pending"
    assert Notification.objects.filter(channel=alice.channel).count() == 1


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


def test_a_sender_who_posts_anyway_is_refused(console, alice):
    add_crowd(alice.channel, 1)
    segment = segment_create(channel=alice.channel, name="Pro", rule=RULE)
    one = subscriber(alice.channel)
    page = console.open(channel_path(alice), alice.members["sender"])

    refused = [
        post(page, channel_path(alice, "keys"), name="Mine", scopes="send"),
        post(page, channel_path(alice, "credentials"), platform="android"),
        post(page, channel_path(alice, "web-push-key")),
        post(page, channel_path(alice, "settings"), name="Mine"),
        post(page, f"{NOTIFICATIONS}remove-segment/{segment.pk}/"),
        post(page, f"/admin/subscriptions_app/segment/{segment.pk}/change/", name="Mine"),
        post(page, f"/admin/subscriptions_app/subscription/{one.pk}/forget/"),
    ]

    assert refused == [403] * 7
    assert not ApiKey.objects.filter(channel=alice.channel).exists()
    assert not ProviderCredential.objects.filter(channel=alice.channel).exists()
    assert Segment.objects.get(pk=segment.pk).name == "Pro"
    assert Subscription.objects.filter(pk=one.pk).exists()


def test_a_manager_cannot_choose_who_belongs_to_the_account(console, alice):
    page = console.open("/admin/", alice.members["manager"])
    expect(page.get_by_role("link", name="Accounts")).to_have_count(0)

    members = f"/admin/channels_app/account/{alice.account.pk}/change/"

    assert page.request.get(members).status == 403
    added = post(page, members, do="add", username="friend", role="owner")
    assert added == 403

"""What a notification that is being sent does or waits for: the same words in the list, on its page
and on the dashboard, and no rate while nothing moves."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from channels_app.models import ProviderCredential
from notifications_app.models import Batch, OutcomeMinute, SendRate
from notifications_app.reporting.activity import states_of
from tests.admin.notifications.dashboards import running
from tests.factories import make_sent_notification

pytestmark = pytest.mark.django_db
NOW = timezone.now()
LONG_AGO = NOW - timedelta(minutes=10)
OVERDUE = {"due_at": LONG_AGO}
FROZEN = {"status": "leased", "lease_until": NOW + timedelta(seconds=10)}


def refuse(channel):
    ProviderCredential.objects.create(
        channel=channel, platform="android", secret_encrypted="x", paused_at=timezone.now()
    )


def ended(notification, count, ago):
    minute = (timezone.now() - ago).replace(second=0, microsecond=0)
    OutcomeMinute.objects.create(
        notification=notification, minute=minute, platform="web", code="", count=count
    )


def shown(client, notification):
    """The badge in the list, on the page, in its live part and on the dashboard."""
    page = reverse("admin:notifications_app_notification_change", args=[notification.pk])
    part = reverse("admin:notification_progress", args=[notification.pk])
    seen = {"seen": client.get(page).context["seen"]}
    return [
        client.get(reverse("admin:notifications_app_notification_changelist")).content.decode(),
        client.get(page).content.decode(),
        client.get(part, seen).content.decode(),
        client.get(reverse("admin:dashboard_live")).content.decode(),
    ]


@pytest.mark.parametrize(
    ("batches", "fields", "words"),
    [
        ([{}], {}, "sending"),
        ([{"status": "leased"}], {}, "sending"),
        ([OVERDUE], {}, "no worker"),
        ([OVERDUE, FROZEN], {}, "no worker"),
        ([OVERDUE, {"status": "leased"}], {}, "sending"),
        ([{"status": "parked"}], {}, "waiting for credentials"),
        ([{"due_at": NOW + timedelta(days=1)}], {}, "waiting for the next attempt"),
        ([OVERDUE], {"paused_at": NOW}, "paused"),
        ([OVERDUE], {"stopped_at": NOW}, "stopping"),
    ],
)
def test_list_page_and_dashboard_show_one_state(viewer, alice, batches, fields, words):
    notification = running(alice.channel, batches=batches, **fields)
    assert [f">{words}</span>" in page for page in shown(viewer, notification)] == [True] * 4


def test_a_platform_whose_credentials_were_refused_has_no_rate_and_no_end(viewer, alice):
    notification = running(alice.channel, batches=[{}, {"status": "leased"}])
    Batch.objects.update(platform="android")
    ended(notification, 1_000, timedelta(minutes=1))
    assert states_of([notification])[notification.pk].pace.seconds_left is not None

    refuse(alice.channel)

    found = states_of([notification])[notification.pk]
    assert (found.stage, found.pace.rate, found.pace.seconds_left) == ("parked", 0, None)
    assert found.held == 20
    for page in shown(viewer, notification)[1:]:
        assert "20 wait for credentials" in page
        assert "a second" not in page


def test_the_remaining_time_leaves_out_who_waits_for_credentials(alice):
    notification = running(alice.channel, batches=[{}, {"status": "parked"}])
    ended(notification, 100, timedelta(minutes=1))
    found = states_of([notification])[notification.pk]
    assert (found.stage, found.held) == ("sending", 10)
    assert found.pace.seconds_left == pytest.approx(10 / found.pace.rate)


def test_a_send_that_ends_recipients_is_not_stalled_between_two_claims(alice):
    notification = running(alice.channel, batches=[OVERDUE])
    ended(notification, 100, timedelta())
    assert states_of([notification])[notification.pk].stage == "sending"


def test_a_send_that_waits_for_its_turn_by_its_rate_is_not_stalled(alice):
    notification = running(alice.channel, batches=[OVERDUE])
    SendRate.objects.create(
        notification_id=notification.pk, next_at=timezone.now() + timedelta(minutes=5)
    )
    assert states_of([notification])[notification.pk].stage == "sending"


@pytest.mark.parametrize(("ago", "stage"), [(0, "planning"), (60, "stalled")])
def test_counting_is_stalled_if_no_worker_counts(alice, ago, stage):
    notification = running(alice.channel, is_planning=True)
    notification.plans.update(sliced_at=timezone.now() - timedelta(seconds=ago))
    assert states_of([notification])[notification.pk].stage == stage


def test_a_send_whose_next_part_begins_later_waits_for_it(viewer, alice):
    notification = running(alice.channel, is_planning=True)
    later = timezone.now() + timedelta(hours=3)
    notification.plans.update(release_at=later, due_at=later)
    pages = shown(viewer, notification)
    assert [">waiting for the next release</span>" in page for page in pages] == [True] * 4


def test_a_due_notification_that_no_worker_starts_waits_for_one(viewer, alice):
    notification = make_sent_notification(
        alice.channel, status="pending", started_at=None, finished_at=None, scheduled_at=LONG_AGO
    )
    pages = shown(viewer, notification)
    assert [">no worker</span>" in page for page in pages] == [True] * 4


def test_the_states_of_a_list_are_read_in_one_statement(alice, django_assert_num_queries):
    notifications = [running(alice.channel, batches=[{}]) for _ in range(5)]
    with django_assert_num_queries(1):
        assert len(states_of(notifications)) == 5

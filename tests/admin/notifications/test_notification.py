"""A notification's page and the list of notifications: content, scope and cost."""

import re
from datetime import timedelta
from itertools import pairwise

import pytest
from auditlog.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from channels_app.models import Channel, ProviderCredential
from notifications_app.delivery.apns import responses as apns_responses
from notifications_app.delivery.fcm import responses as fcm_responses
from notifications_app.delivery.responses import ResponseClass
from notifications_app.delivery.webpush import responses as webpush_responses
from notifications_app.models import Batch, Notification, OutcomeMinute
from notifications_app.reporting import bounce_reasons
from notifications_app.reporting.progress import MOST_POINTS, progress_of
from pushsvc.common.ids import uuid7
from tests.admin.support import signed_in
from tests.factories import make_plan, make_sent_notification

LIST = reverse("admin:notifications_app_notification_changelist")


def page_of(notification):
    return reverse("admin:notifications_app_notification_change", args=[notification.pk])


def part_of(notification):
    return reverse("admin:notification_progress", args=[notification.pk])


def end_of(notification):
    return reverse("admin:notification_end", args=[notification.pk])


def pending(channel, **fields):
    later = timezone.now() + timedelta(days=1)
    nothing = dict.fromkeys(("recipient_count", "delivered_count", "bounced_count"), 0)
    return make_sent_notification(
        channel,
        **{"status": "pending", "scheduled_at": later, "started_at": None, "finished_at": None}
        | nothing
        | {"clicked_count": 0}
        | fields,
    )


def running(channel, **fields):
    """A notification of two hundred recipients; half of them have their outcome."""
    now = timezone.now()
    notification = make_sent_notification(
        channel,
        **{
            "status": "processing",
            "started_at": now - timedelta(seconds=60),
            "finished_at": None,
            "recipient_count": 200,
            "delivered_count": 90,
            "bounced_count": 10,
        }
        | fields,
    )
    add_plan(notification, recipient_count=200)
    ended(notification, "", 90)
    ended(notification, "endpoint_gone", 10)
    return notification


def add_plan(notification, *, platform="web", status="delivering", recipient_count=100):
    return make_plan(
        notification,
        platform=platform,
        status=status,
        recipient_count=recipient_count,
        sliced_at=notification.started_at,
    )


def add_batch(notification, **fields):
    plan = notification.plans.first()
    Batch.objects.create(
        plan=plan,
        notification=notification,
        channel=notification.channel,
        platform=plan.platform,
        push_service="fcm",
        **fields,
    )


def words_of(answer):
    return " ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split())


def ended(notification, code, count, *, minutes=0, platform="web"):
    first = notification.started_at.replace(second=0, microsecond=0)
    OutcomeMinute.objects.create(
        notification=notification,
        minute=first + timedelta(minutes=minutes),
        platform=platform,
        code=code,
        count=count,
    )


# --- page -----------------------------------------------------------------------------------------


def test_a_page_shows_outcomes_and_bounce_reasons(viewer, alice):
    notification = make_sent_notification(alice.channel, data={"campaign": "<spring>"})
    add_plan(notification)
    ended(notification, "", 97)
    ended(notification, "endpoint_gone", 2)
    ended(notification, "payload_too_large", 1)

    page = viewer.get(page_of(notification)).content.decode()

    assert "97.0 % of recipients" in page
    assert "12.4 % of delivered" in page
    assert "Browser unsubscribed" in page
    assert "Message too large" in page
    assert "&lt;spring&gt;" in page
    assert "<spring>" not in page
    assert "every 2s" not in page  # nothing is left to wait for


def test_bounces_from_before_codes_were_kept_are_shown_without_a_reason(viewer, alice):
    notification = make_sent_notification(alice.channel)
    page = viewer.get(page_of(notification))
    (reason,) = page.context["reasons"]
    assert reason.reason.recipients == 3
    assert reason.words.title == "Reason not recorded"


def test_the_page_of_a_running_notification_shows_progress_and_asks_again(viewer, alice):
    notification = running(alice.channel)
    add_batch(notification, recipient_count=100)

    page = viewer.get(page_of(notification)).content.decode()
    part = viewer.get(part_of(notification), {"seen": "processing"}).content.decode()

    for shown in (page, part):
        assert "50.0 % done" in shown
        assert "a second" in shown
        assert "left" in shown
        assert 'hx-trigger="every 2s"' in shown


def test_the_live_part_reloads_the_page_when_the_status_changes(viewer, alice):
    notification = make_sent_notification(alice.channel)
    answer = viewer.get(part_of(notification), {"seen": "processing"})
    assert answer.headers["HX-Refresh"] == "true"


def test_no_remaining_time_is_shown_while_recipients_are_being_counted(viewer, alice):
    notification = running(alice.channel)
    notification.plans.update(status="planning")
    page = viewer.get(page_of(notification))
    assert "Counting recipients" in page.content.decode()
    assert page.context["sending"].pace.seconds_left is None


def test_recipients_that_wait_for_another_attempt_are_shown(viewer, alice):
    notification = running(alice.channel)
    later = timezone.now() + timedelta(minutes=5)
    add_batch(notification, recipient_count=60, delivered_count=20, due_at=later)
    page = viewer.get(page_of(notification)).content.decode()
    assert "40 on Web wait for another attempt" in page


def test_a_pause_is_shown_in_the_push_services_words(viewer, alice):
    notification = running(alice.channel, target_platforms=["ios"])
    notification.plans.update(platform="ios")
    add_batch(notification, recipient_count=100, status="parked", parked_at=timezone.now())
    ProviderCredential.objects.create(
        channel=alice.channel,
        platform="ios",
        secret_encrypted="sealed",
        paused_at=timezone.now(),
        paused_code="key_refused",
        paused_detail="403 InvalidProviderToken <b>",
    )

    page = viewer.get(page_of(notification)).content.decode()

    assert "iOS is paused" in page
    assert "403 InvalidProviderToken &lt;b&gt;" in page
    assert reverse("admin:channel_credentials", args=[alice.channel.pk]) in page
    assert "sealed" not in page


def test_a_pause_is_shown_before_the_start_and_not_after_the_end(viewer, alice):
    Channel.objects.update(ios_enabled=True)
    scheduled = pending(alice.channel, target_platforms=["web", "ios"])
    ended = make_sent_notification(alice.channel, target_platforms=["ios"])

    assert "iOS has no credentials" in viewer.get(page_of(scheduled)).content.decode()
    assert "iOS has no" not in viewer.get(page_of(ended)).content.decode()


def test_the_timeline_of_a_cancelled_notification_ends_with_the_cancel(viewer, alice):
    now = timezone.now()
    notification = pending(alice.channel, status="cancelled", finished_at=now)
    steps = viewer.get(page_of(notification)).context["steps"]
    assert [step.name for step in steps] == ["Accepted", "Cancelled"]


def test_the_page_of_a_test_message_names_its_subscriber(viewer, alice):
    device = uuid7()
    page = viewer.get(page_of(make_sent_notification(alice.channel, only_subscription_id=device)))
    assert str(device) in page.content.decode()
    assert ">test</span>" in page.content.decode()


def test_the_page_says_that_its_segment_was_deleted(viewer, alice):
    page = viewer.get(page_of(make_sent_notification(alice.channel, segment_id=uuid7())))
    assert "A segment that was deleted" in page.content.decode()


@pytest.mark.parametrize("days", [0, 3, 27])
def test_outcomes_over_time_are_complete_in_a_bounded_number_of_points(alice, days):
    notification = make_sent_notification(alice.channel)
    ended(notification, "", 50)
    ended(notification, "expired", 3, minutes=days * 24 * 60)

    progress = progress_of(notification, now=timezone.now())

    assert len(progress.points) <= MOST_POINTS
    assert sum(point.delivered for point in progress.points) == 50
    assert sum(point.expired for point in progress.points) == 3
    assert sum(point.bounced for point in progress.points) == 0
    starts = [point.start for point in progress.points]
    assert all(b - a == progress.step for a, b in pairwise(starts))


@pytest.mark.parametrize(
    ("platform", "answers"),
    [("web", webpush_responses), ("android", fcm_responses), ("ios", apns_responses)],
)
def test_every_answer_that_bounces_a_recipient_has_a_description(platform, answers):
    rejecting = {ResponseClass.REJECTED, ResponseClass.GONE, ResponseClass.SUSPECT}
    rows = [*answers.TABLE.values(), *answers.FALLBACK.values()]
    for code in {code for response_class, code in rows if response_class in rejecting}:
        words = bounce_reasons.words_for(platform, code)
        assert words.title != code.replace("_", " ").capitalize()
        assert words.meaning


def test_an_unknown_bounce_reason_is_shown_as_its_code():
    assert bounce_reasons.words_for("web", "brand_new").title == "Brand new"


# --- cancelling -----------------------------------------------------------------------------------


def test_a_sender_cancels_a_pending_notification(sender, alice):
    notification = pending(alice.channel)
    answer = sender.post(end_of(notification), follow=True)

    notification.refresh_from_db()
    assert notification.status == "cancelled"
    assert "It will not be sent" in answer.content.decode()
    entry = LogEntry.objects.get(object_pk=str(notification.pk))
    assert entry.changes == {"status": ["pending", "cancelled"]}
    assert entry.actor == alice.members["sender"]


def test_a_viewer_cancels_nothing(viewer, alice):
    notification = pending(alice.channel)
    assert viewer.post(end_of(notification)).status_code == 403
    notification.refresh_from_db()
    assert notification.status == "pending"


def test_a_get_request_cancels_nothing(sender, alice):
    notification = pending(alice.channel)
    assert sender.get(end_of(notification)).status_code == 405


def test_the_admins_own_pages_neither_change_nor_delete_a_notification(alice, root):
    notification = pending(alice.channel)
    client = signed_in(root)
    client.post(page_of(notification), {"title": "Changed"})
    client.post(reverse("admin:notifications_app_notification_delete", args=[notification.pk]))
    assert Notification.objects.get().title == "Spring sale"


# --- the list -------------------------------------------------------------------------------------


def listed(client, **query):
    return [row.title for row in client.get(LIST, query).context["cl"].result_list]


def test_the_list_filters_by_status_and_kind(viewer, alice):
    make_sent_notification(alice.channel, title="fine")
    make_sent_notification(alice.channel, title="bad", delivered_count=89, bounced_count=11)
    make_sent_notification(alice.channel, title="at ten", delivered_count=90, bounced_count=10)
    make_sent_notification(alice.channel, title="trial", only_subscription_id=uuid7())
    running(alice.channel, title="running", delivered_count=0, bounced_count=0)
    pending(alice.channel, title="scheduled")

    assert listed(viewer, show="running") == ["running"]
    assert listed(viewer, show="scheduled") == ["scheduled"]
    assert listed(viewer, show="bounces") == ["bad"]
    assert listed(viewer, kind="test") == ["trial"]
    assert len(listed(viewer, kind="send")) == 5
    assert len(listed(viewer)) == 6
    assert listed(viewer, status__exact="pending") == ["scheduled"]


@pytest.mark.parametrize(("apart", "is_listed"), [(0, True), (49, True), (50, False)])
@pytest.mark.parametrize("name", ["stopped", "opted_out", "expired"])
def test_recipients_that_nobody_refused_are_no_bounces(viewer, alice, name, apart, is_listed):
    counts = {"delivered_count": 45, "bounced_count": 55, f"{name}_count": apart}
    make_sent_notification(alice.channel, title="sent", **counts)

    assert listed(viewer, show="bounces") == ["sent"] * is_listed


def test_a_stopped_send_has_no_bounces_on_its_page_and_in_the_list(viewer, alice):
    """Bounced 97.7 % was what a stop showed."""
    sent = make_sent_notification(
        alice.channel, delivered_count=2, bounced_count=98, stopped_count=96, expired_count=1
    )
    make_plan(sent, status="done", recipient_count=100)
    ended(sent, "", 2)
    ended(sent, "stopped", 96)
    ended(sent, "expired", 1)
    ended(sent, "endpoint_gone", 1)
    address = reverse("admin:notifications_app_notification_change", args=[sent.pk])
    page, row = (words_of(viewer.get(each)) for each in (address, LIST))

    assert "Bounced 1 1.0 % of recipients Stopped 96 96.0 % of recipients Expired 1" in page
    assert "Opted out" not in page
    assert "Web 100 2 1 96 1 0" in page
    assert "2.0 % of 100 · 1.0 % · 96.0 % stopped · 1.0 % expired" in row


def test_a_notification_is_found_by_its_id_or_its_words(viewer, alice, bob):
    mine = make_sent_notification(alice.channel, title="Winter boots", body="Half price")
    make_sent_notification(alice.channel, title="Other", body="Else")
    theirs = make_sent_notification(bob.channel, title="Winter coats")

    assert listed(viewer, q=str(mine.pk)) == ["Winter boots"]
    assert listed(viewer, q=str(mine.pk).upper()) == ["Winter boots"]
    assert listed(viewer, q="WINTER") == ["Winter boots"]
    assert listed(viewer, q="half") == ["Winter boots"]
    assert listed(viewer, q=str(theirs.pk)) == []
    assert listed(viewer, q="%") == []


def test_only_a_sender_is_offered_to_compose(viewer, sender, alice):
    compose = reverse("admin:notification_compose")
    assert compose in sender.get(LIST).content.decode()
    assert compose not in viewer.get(LIST).content.decode()


def test_list_and_page_take_few_queries(viewer, alice, django_assert_max_num_queries):
    for number in range(120):
        make_sent_notification(
            alice.channel, title=f"n{number}", bounced_count=50, delivered_count=50
        )
    busy = running(alice.channel)
    add_batch(busy, recipient_count=100, status="parked", parked_at=timezone.now())
    for query in ({}, {"q": "n"}, {"show": "bounces"}, {"p": "2"}):
        with django_assert_max_num_queries(25):
            assert viewer.get(LIST, query).status_code == 200
    with django_assert_max_num_queries(25):
        viewer.get(page_of(busy))
    with django_assert_max_num_queries(25):
        viewer.get(part_of(busy), {"seen": "processing"})

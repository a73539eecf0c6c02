"""What the dashboard lists as needing attention, and what it does not."""

import time
from datetime import timedelta

import pytest
import redis
from django.db import OperationalError
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from channels_app.counters import counter_add
from channels_app.models import ApiKey, Channel, ProviderCredential, Webhook
from channels_app.services import api_key_issue
from channels_app.webhooks import webhook_create, webhook_disable
from notifications_app import tasks
from notifications_app.models import Automation, Delivery, Newsfeed, Plan, Schedule
from notifications_app.pipeline import breakers
from notifications_app.reporting import unshown
from notifications_app.reporting.attention import attention
from notifications_app.reporting.installation import open_batches
from notifications_app.sends.services import notification_pause, notification_resume
from pushsvc.common.findings import Kind
from pushsvc.common.ids import uuid7
from pushsvc.common.store.redis_client import redis_client
from tests.admin.notifications.dashboards import all_of, everything_lives, html, running, stat
from tests.admin.support import fill_hours
from tests.factories import (
    make_automation,
    make_channel,
    make_newsfeed,
    make_schedule,
    make_sent_notification,
)
from tests.pipeline.support import cancelled_statements


def found(house, *kinds):
    """The findings of these kinds about the house's channels."""
    everything = attention(all_of(house), now=timezone.now())
    return [each for each in everything if each.code in {kind.code for kind in kinds}]


def test_a_healthy_account_has_no_findings(alice):
    everything_lives()
    fill_hours(alice.channel, days=9)
    running(alice.channel, batches=[{}, {"status": "leased"}])

    assert attention(all_of(alice), now=timezone.now()) == []
    assert "No problems" in html(alice.members["viewer"])


def test_a_pause_is_shown_with_the_push_services_words_and_its_remedy(alice):
    ProviderCredential.objects.create(
        channel=alice.channel,
        platform="ios",
        secret_encrypted="x",
        paused_at=timezone.now(),
        paused_code="invalid_provider_token",
        paused_detail="InvalidProviderToken <b>",
    )

    text = html(alice.members["viewer"])

    assert "iOS is paused" in text
    assert "InvalidProviderToken &lt;b&gt;" in text
    assert reverse("admin:channel_credentials", args=[alice.channel.pk]) in text


def test_webhooks_that_fail_or_were_disabled_are_found_and_their_missing_worker(alice, bob):
    everything_lives()
    given = {"url": "https://backend.shop.com/x?key=secret", "events": ["notifications.finished"]}
    good, failing, gone, off = (
        webhook_create(channel=alice.channel, description=name, **given)[0]
        for name in ("good", "failing", "gone", "off")
    )
    del good
    Webhook.objects.filter(pk=failing.pk).update(
        failing_since=timezone.now() - timedelta(hours=2), last_answer="500"
    )
    webhook_disable(gone.pk, "gone")
    Webhook.objects.filter(pk=off.pk).update(is_enabled=False)
    kinds = (Kind.HOOKS_MISSING, Kind.WEBHOOK_DISABLED, Kind.WEBHOOK_FAILING)

    assert [each.code for each in found(alice, *kinds)] == ["webhook_disabled", "webhook_failing"]
    assert found(alice, Kind.WEBHOOK_FAILING)[0].quote == "500"
    assert found(bob, *kinds) == []
    redis_client().delete("pushsvc:workers:hooks")
    assert len(found(alice, Kind.HOOKS_MISSING)) == 1
    assert found(bob, Kind.HOOKS_MISSING) == []  # it has no webhook
    assert "key=secret" not in html(alice.members["viewer"])


def test_a_disabled_schedule_is_found_and_leads_to_its_page(alice):
    schedule = make_schedule(alice.channel, "Digest")
    Schedule.objects.update(is_enabled=False, disabled_code="category_unknown")

    page = html(alice.members["viewer"])

    finding = page.partition('data-code="schedule_disabled"')[2].partition("</li>")[0]
    assert f'href="{reverse("admin:schedule_edit", args=[schedule.pk])}"' in finding


def test_a_disabled_automation_is_found_and_leads_to_its_page(alice):
    automation = make_automation(alice.channel)
    Automation.objects.update(is_enabled=False, disabled_code="category_unknown")

    page = html(alice.members["viewer"])

    finding = page.partition('data-code="automation_disabled"')[2].partition("</li>")[0]
    assert f'href="{reverse("admin:automation_edit", args=[automation.pk])}"' in finding


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        ({"is_enabled": False, "disabled_code": "gone"}, "newsfeed_disabled"),
        ({"failures": 5, "failing_since": timezone.now()}, "newsfeed_failing"),
    ],
)
def test_a_newsfeed_in_trouble_is_found_and_leads_to_its_page(alice, trouble, code):
    newsfeed = make_newsfeed(alice.channel)
    Newsfeed.objects.update(**trouble)

    page = html(alice.members["viewer"])

    finding = page.partition(f'data-code="{code}"')[2].partition("</li>")[0]
    assert f'href="{reverse("admin:newsfeed_edit", args=[newsfeed.pk])}"' in finding


def test_a_platform_without_credentials_is_found(alice):
    Channel.objects.update(android_enabled=True)

    (finding,) = found(alice, Kind.CREDENTIALS_MISSING)

    assert finding.platform == "android"


@pytest.mark.parametrize(
    ("platform", "days", "is_old"),
    [("android", 91, True), ("android", 89, False), ("ios", 900, False)],
)
def test_only_googles_keys_are_called_old(alice, platform, days, is_old):
    ProviderCredential.objects.create(
        channel=alice.channel,
        platform=platform,
        secret_encrypted="x",
        updated_at=timezone.now() - timedelta(days=days),
    )

    assert bool(found(alice, Kind.CREDENTIALS_OLD)) is is_old


@pytest.mark.parametrize(
    ("days", "is_used", "is_told"), [(5, True, True), (5, False, False), (40, True, False)]
)
def test_a_used_key_that_expires_soon_is_found(alice, days, is_used, is_told):
    now = timezone.now()
    key, _ = api_key_issue(channel=alice.channel, expires_at=now + timedelta(days=days))
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=now if is_used else None)

    assert bool(found(alice, Kind.API_KEY_ENDS)) is is_told


@pytest.mark.parametrize(
    ("before", "lately", "is_jump"),
    [
        ((990, 10), (900, 100), True),  # 1 % → 10 %
        ((990, 10), (2, 3), False),  # 3 of 5: too few to judge
        ((900, 100), (830, 170), False),  # 10 % → 17 %: not twice
        ((990, 10), (960, 40), False),  # 1 % → 4 %: less than five points more
        ((0, 0), (700, 300), True),  # nothing to compare with, but a high rate
        ((0, 0), (900, 100), False),
        ((500, 500), (10, 990), False),  # it was as bad before: 50 % → 99 %
    ],
)
def test_only_a_jump_in_bounces_is_found(alice, before, lately, is_jump):
    stat(alice.channel, back=72, delivered=before[0], bounced=before[1])
    stat(alice.channel, back=2, delivered=lately[0], bounced=lately[1])

    assert bool(found(alice, Kind.BOUNCES_MANY)) is is_jump


def sent_days_ago(channel, days, delivered, received, **fields):
    at = timezone.now() - timedelta(days=days)
    counts = {"recipient_count": delivered, "bounced_count": 0, "delivered_count": delivered}
    times = {"started_at": at, "finished_at": at}
    make_sent_notification(channel, **(counts | times | {"received_count": received} | fields))


@pytest.mark.parametrize(
    ("before", "lately", "is_fallen"),
    [
        ((1000, 400), (1000, 50), True),  # 40 % → 5 %
        ((1000, 400), (1000, 140), False),  # → 14 %: a holiday, or a short time to live
        ((1000, 120), (1000, 0), False),  # few were shown before, by computers seldom on
        ((1000, 0), (1000, 0), False),  # no browser reports
        ((400, 160), (1000, 0), False),  # too few to compare with
        ((1000, 400), (400, 0), False),  # too few to judge
    ],
)
def test_only_a_fall_in_what_browsers_show_is_found(alice, bob, before, lately, is_fallen):
    stat(alice.channel, back=72, delivered=lately[0])
    sent_days_ago(alice.channel, 12, *before)
    sent_days_ago(alice.channel, 3, *lately)

    assert bool(found(alice, Kind.WEB_UNSHOWN)) is is_fallen
    assert found(bob, Kind.WEB_UNSHOWN) == []


def test_sends_of_the_last_day_and_to_phones_are_not_compared(alice):
    stat(alice.channel, back=72, delivered=5000)
    sent_days_ago(alice.channel, 12, 1000, 400)
    sent_days_ago(alice.channel, 3, 1000, 400)
    sent_days_ago(alice.channel, 0.5, 9000, 0)
    sent_days_ago(alice.channel, 3, 9000, 0, target_platforms=["web", "android"])

    assert found(alice, Kind.WEB_UNSHOWN) == []


def test_direct_sends_hide_no_fall_in_what_browsers_show(alice, monkeypatch):
    monkeypatch.setattr(unshown, "_LOOKED_AT", 1)
    stat(alice.channel, back=72, delivered=1000)
    sent_days_ago(alice.channel, 12, 1000, 400)
    sent_days_ago(alice.channel, 3, 1000, 50)
    sent_days_ago(alice.channel, 0.5, 1, 0, has_targets=True)

    assert found(alice, Kind.WEB_UNSHOWN)


@pytest.mark.parametrize(("received", "is_low"), [(400, False), (40, True)])
def test_a_channels_dashboard_shows_what_browsers_showed(alice, received, is_low):
    stat(alice.channel, back=72, delivered=1000)
    sent_days_ago(alice.channel, 12, 1000, 500)
    sent_days_ago(alice.channel, 3, 1000, received)

    text = html(alice.members["viewer"], channel=alice.channel.pk)

    shown = text.partition('id="web-shown"')[2].partition("</p>")[0]
    assert f"reported {received} of them as shown" in shown
    assert ("another service worker" in shown) is is_low
    finding = text.partition('data-code="web_unshown"')[2].partition("</li>")[0]
    assert ("/docs/browser#a-second-service-worker" in finding) is is_low
    assert "web-shown" not in html(alice.members["viewer"])


@pytest.mark.parametrize("name", ["stopped", "opted_out", "expired"])
@pytest.mark.parametrize(
    ("before", "lately", "is_told"),
    [
        (0, 900, False),  # all of the last day's bounces are of the stop
        (0, 800, True),  # 100 of 200 are not
        (900, 0, True),  # without the stop 0 % bounced in the week before
    ],
)
def test_recipients_that_nobody_refused_are_no_bounces(alice, name, before, lately, is_told):
    stat(alice.channel, back=72, delivered=900, bounced=before + 5, **{name: before})
    stat(alice.channel, back=2, delivered=100, bounced=900, **{name: lately})

    assert bool(found(alice, Kind.BOUNCES_MANY)) is is_told


def test_bounces_are_compared_within_a_channel_and_platform(alice):
    other = make_channel("Quiet", account=alice.account)
    stat(alice.channel, back=72, delivered=990, bounced=10)
    stat(alice.channel, back=1, delivered=100_000, bounced=1000)
    stat(other, back=72, delivered=990, bounced=10)
    stat(other, back=1, delivered=400, bounced=100)

    (finding,) = found(alice, Kind.BOUNCES_MANY)

    assert finding.channel_id == other.id
    assert "20.0%" in finding.remedy


@pytest.mark.parametrize(
    ("seconds", "severities"), [(30, []), (120, ["warning"]), (1200, ["error"])]
)
def test_a_finding_about_unclaimed_batches_says_how_long_they_wait(alice, seconds, severities):
    due_at = timezone.now() - timedelta(seconds=seconds)
    running(alice.channel, batches=[{"due_at": due_at}, {"status": "leased", "due_at": due_at}])

    queue = found(alice, Kind.QUEUE_LATE)

    assert [each.severity for each in queue] == severities
    assert all(each.title.startswith("10 recipients wait") for each in queue)


@pytest.mark.parametrize(
    ("batch", "is_told"),
    [
        ({"lease_losses": 3}, True),
        ({"lease_losses": 100, "status": "leased"}, True),
        ({"lease_losses": 3, "status": "parked"}, True),
        ({"lease_losses": 2}, False),
        (
            {"lease_losses": 3, "status": "done", "finished_at": Now(), "delivered_count": 10},
            False,
        ),
    ],
)
def test_a_notification_that_crashes_workers_is_shown(alice, batch, is_told):
    running(alice.channel, title="", body="Sale <today>", batches=[batch, {}])

    breaking = found(alice, Kind.WORKERS_BREAK)

    assert [(each.title, each.channel_id) for each in breaking] == [
        ("Workers fail on “Sale <today>”", alice.channel.pk)
    ] * is_told
    assert all(each.remedy.startswith("10 of its recipients") for each in breaking)


def test_a_notification_that_starts_late_is_found(alice):
    for minutes in (-3, 3):
        make_sent_notification(
            alice.channel,
            status="pending",
            scheduled_at=timezone.now() + timedelta(minutes=minutes),
        )

    (finding,) = found(alice, Kind.START_LATE)

    assert finding.title.endswith("late to start: 1")


def test_what_is_paused_or_stopped_is_neither_late_nor_in_the_way(alice):
    long_ago = timezone.now() - timedelta(hours=1)
    halted = running(alice.channel, batches=[{"due_at": long_ago}])
    halted.plans.update(halted_at=long_ago)
    make_sent_notification(
        alice.channel, status="pending", scheduled_at=long_ago, paused_at=long_ago
    )

    assert found(alice, Kind.QUEUE_LATE, Kind.START_LATE) == []


def test_a_resumed_notification_is_late_from_the_end_of_its_pause_on(alice):
    long_ago, lately = (timezone.now() - timedelta(minutes=each) for each in (60, 2))
    resumed = running(alice.channel, batches=[{"due_at": long_ago}])
    notification_pause(channel_id=alice.channel.pk, notification_id=resumed.pk)
    notification_resume(channel_id=alice.channel.pk, notification_id=resumed.pk)

    assert found(alice, Kind.QUEUE_LATE) == []
    assert open_batches()["web", "ready"].lateness < timedelta(minutes=30)

    resumed.plans.update(due_at=lately)
    assert [each.severity for each in found(alice, Kind.QUEUE_LATE)] == ["warning"]
    assert open_batches()["web", "ready"].lateness >= timedelta(minutes=2)


@pytest.mark.parametrize("queue", ["plan", "tick", "web"])
def test_a_missing_kind_of_worker_is_found(alice, queue):
    everything_lives()
    kinds = (Kind.PLANNER_MISSING, Kind.WORKERS_MISSING)
    assert found(alice, *kinds) == []

    redis_client().hset(f"pushsvc:workers:{queue}", "node", f"{time.time() - 60}:2")

    (finding,) = found(alice, *kinds)
    assert "Start worker-" in finding.remedy


def test_a_worker_of_a_platform_that_no_channel_uses_is_not_called_missing(alice):
    everything_lives()
    redis_client().delete("pushsvc:workers:android")
    assert found(alice, Kind.WORKERS_MISSING) == []

    Channel.objects.update(android_enabled=True)

    assert [each.platform for each in found(alice, Kind.WORKERS_MISSING)] == ["android"]


@pytest.mark.parametrize(
    ("stored", "severities"), [(899, []), (900, ["warning"]), (1000, ["error"])]
)
def test_a_channel_that_is_nearly_full_is_found(alice, bob, stored, severities):
    Channel.objects.filter(pk=alice.channel.pk).update(max_subscriptions=1000)
    for channel in (alice.channel, bob.channel):
        counter_add(channel.pk, stored_subscriptions=stored)

    told = found(alice, Kind.CHANNEL_FULL)

    assert [each.severity for each in told] == severities
    assert all(f"{stored:,} of at most 1,000" in each.title for each in told)


def test_beat_is_called_missing_until_a_tick_ends(alice):
    everything_lives()
    redis_client().delete("pushsvc:ticked")
    assert len(found(alice, Kind.BEAT_MISSING)) == 1

    tasks.tick()

    assert found(alice, Kind.BEAT_MISSING) == []


@pytest.mark.django_db(transaction=True)
def test_a_tick_that_the_database_ended_does_not_count(alice):
    everything_lives()
    redis_client().delete("pushsvc:ticked")

    waits = cancelled_statements("notifications_app_notification", "lock_timeout")
    with waits, pytest.raises(OperationalError):
        tasks.tick()

    assert len(found(alice, Kind.BEAT_MISSING)) == 1


@pytest.fixture
def failing(alice):
    """A notification of yesterday with one batch, whose recipient has another attempt to come."""

    def fail(code="connection_failed", **batch):
        values = {"due_at": timezone.now() + timedelta(minutes=1), "lease_number": 3}
        counts = {"recipient_count": 1, "push_service": "mozilla"}
        notification = running(alice.channel, batches=[values | counts | batch])
        Delivery.objects.create(
            notification_id=notification.pk,
            subscription_id=uuid7(),
            batch_id=notification.batches.get().pk,
            attempts=3,
            code=code,
            detail="ConnectionRefusedError" if code else "",
        )
        return notification

    return fail


def test_calls_that_all_fail_are_found_though_no_breaker_is_open(alice, bob, failing):
    everything_lives()
    failing()
    failing()

    (finding,) = found(alice, Kind.CALLS_FAIL)

    assert finding.title == "Calls for 2 recipients on Web fail"
    assert finding.quote == "connection_failed: ConnectionRefusedError"
    assert finding.severity == "error"
    assert found(bob, Kind.CALLS_FAIL) == []


@pytest.mark.parametrize(("minutes", "severities"), [(0, []), (5, ["warning"]), (11, ["error"])])
def test_calls_that_fail_are_found_after_a_minute_and_get_worse(
    alice, failing, minutes, severities
):
    due_at = timezone.now() - timedelta(minutes=minutes)
    Plan.objects.filter(notification=failing()).update(due_at=due_at)

    assert [each.severity for each in found(alice, Kind.CALLS_FAIL)] == severities


@pytest.mark.parametrize(
    "batch",
    [
        {"push_service": "other"},
        {"recipient_count": 2, "delivered_count": 1},
        {"lease_number": 0},
        {"code": ""},
    ],
    ids=["a host that anybody may name", "reached somebody", "not called", "no call failed"],
)
def test_other_batches_that_wait_are_not_found(alice, failing, batch):
    failing(**batch)

    assert found(alice, Kind.CALLS_FAIL) == []


def test_a_failing_push_service_is_shown_to_all_staff_and_one_that_fails_a_channel_to_its_own(
    alice, bob
):
    everything_lives()
    breakers.record("mozilla", alice.channel.id, responded=0, outages=50)
    for _ in range(2):
        breakers.record("fcm", uuid7(), responded=0, outages=10)

    whole, own = found(alice, Kind.SERVICE_FAILING)
    assert ("fcm" in whole.title, whole.channel_id) == (True, None)
    assert ("mozilla" in own.title, own.channel_name) == (True, alice.channel.name)
    assert found(bob, Kind.SERVICE_FAILING) == [whole]


def test_no_worker_is_called_missing_while_redis_is_unreachable(alice, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    with pytest.raises(redis.RedisError):
        redis_client().ping()
    codes = {each.code for each in attention(all_of(alice), now=timezone.now())}

    assert codes == {Kind.REDIS_UNAVAILABLE.code}

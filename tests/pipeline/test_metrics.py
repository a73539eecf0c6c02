"""What real processes report of requests and of a send."""

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db.models.functions import Now

from notifications_app.delivery.types import Accepted
from notifications_app.models import Batch, Delivery, Notification
from notifications_app.pipeline import outcomes
from notifications_app.timing import Quiet, Timing
from pushsvc.common import metrics
from subscriptions_app.audiences.windows import LAST_ID
from tests import factories
from tests.calls import standing_still
from tests.pipeline import halting, phones, support
from tests.pipeline.processes import kill, running_web
from tests.pipeline.test_transitions import judged
from tests.scrape import scrape

PLATFORMS = ("web", "android", "ios")
SECONDS = 120
LONG_AGO = Now() - timedelta(hours=10)


def handed_over():
    """How many recipients of each platform the histogram has."""
    found = scrape().get("pushsvc_hand_over_seconds_count", {})
    return [found.get((platform,), 0) for platform in PLATFORMS]


def test_histograms_count_every_recipient_of_a_send_over_three_platforms(
    sandbox, fcm, apns, channel, processes
):
    phones.store_google(fcm, channel)
    phones.store_apple(apns, channel)
    factories.subscribe_browsers(sandbox, channel, 7)
    factories.subscribe_androids(fcm, channel, 5)
    factories.subscribe_iphones(apns, channel, 3)
    notification = factories.make_notification(channel, target_platforms=list(PLATFORMS))
    for name in ("worker-plan", "worker-web", "worker-android", "worker-ios", "beat"):
        processes.start(name)
    support.until(lambda: support.is_sent(notification), seconds=SECONDS)

    # What a process counts last comes with its next report.
    support.until(lambda: ended(scrape()), seconds=SECONDS)
    support.until(lambda: handed_over() == [7, 5, 3], seconds=SECONDS)

    found = scrape()
    service = {"web": urlsplit(sandbox.origin).netloc, "android": "fcm_v1", "ios": "apns"}
    assert found["pushsvc_outcomes_total"] == {
        ("accepted", "web", service["web"]): 7,
        ("accepted", "android", "fcm_v1"): 5,
        ("accepted", "ios", "apns"): 3,
    }
    calls = found["pushsvc_call_duration_seconds_count"]
    assert [calls[each, service[each]] for each in PLATFORMS] == [7, 5, 3]
    sizes = found["pushsvc_flush_outcomes_sum"]
    assert [sizes[each,] for each in PLATFORMS] == [7, 5, 3]
    for which in ("first", "last"):
        assert found[f"pushsvc_notification_{which}_hand_over_seconds_count"] == {(): 1}


def ended(found):
    """Whether the processes have reported all that they do for a send, the tasks' end included."""
    sent = {platform for platform, _ in found.get("pushsvc_push_bytes_total", {})}
    busy = {queue for (queue,) in found.get("pushsvc_worker_busy_seconds_total", {})}
    return sent == set(PLATFORMS) and busy >= {"plan", *PLATFORMS}


def test_a_killed_worker_loses_only_what_it_had_not_reported(processes, sandbox, channel):
    devices = [device for device, _ in factories.subscribe_browsers(sandbox, channel, 150)]
    factories.make_notification(channel)
    support.plan()
    victim = processes.start("worker-web")
    support.until(lambda: handed_over()[0] == 150, seconds=SECONDS)
    # More than are called at once, so that some are answered.
    with standing_still(devices, nth=settings.CALLS_IN_FLIGHT + 10) as called:
        interrupted = factories.make_notification(channel)
        support.plan()
        called()
        batch = Batch.objects.filter(notification=interrupted)
        support.until(lambda: batch.get().delivered_count > 0)
        kill(victim)
    written = batch.get().delivered_count
    support.lose_lease(batch.get().pk)
    support.tick()
    processes.start("worker-web")
    support.until(lambda: support.is_sent(interrupted), seconds=SECONDS)

    # The killed worker may have reported all, some or none of what it had written.
    support.until(lambda: handed_over()[0] >= 300 - written, seconds=SECONDS)
    assert handed_over()[0] <= 300


def test_a_flush_that_is_repeated_is_counted_once(channel):
    factories.add_subscriptions(channel, 3)
    factories.make_notification(channel)
    support.plan()
    lease = support.claim()
    changes = [judged(Accepted(), each) for each in support.due_rows(lease)[:2]]
    metrics.take()

    for _ in range(2):  # as if the answer to the first commit was lost
        outcomes.record([lease], changes)

    counted = metrics.take()
    assert counted["pushsvc_flush_outcomes\tweb\tsum"] == 2 * metrics.MILLIONTHS
    name = metrics.FIRST_HAND_OVER.name
    buckets = [f"{name}\t{part}" for part in metrics.FIRST_HAND_OVER.parts]
    assert sum(counted.get(bucket, 0) for bucket in buckets) == 1


def test_a_pause_is_no_part_of_the_time_to_the_first_delivery(channel):
    notification = halting.planned(channel, 1)
    Notification.objects.update(scheduled_at=LONG_AGO, created_at=LONG_AGO)
    halting.pause(notification)
    halting.began(notification, timedelta(hours=9, minutes=50))
    halting.resume(notification)
    lease = support.claim()
    metrics.take()

    outcomes.record([lease], [judged(Accepted(), *support.due_rows(lease))])

    seconds = metrics.take()[f"{metrics.FIRST_HAND_OVER.name}\tsum"] / metrics.MILLIONTHS
    assert timedelta(seconds=seconds) < timedelta(hours=1)


def test_a_pause_before_the_start_makes_no_notification_late(channel):
    factories.add_subscriptions(channel, 1)
    notification = factories.make_notification(channel, scheduled_at=LONG_AGO)
    halting.pause(notification)
    Notification.objects.update(created_at=LONG_AGO)
    halting.began(notification, timedelta(hours=11))
    halting.resume(notification)
    support.plan(notification)
    lease = support.claim()
    metrics.take()

    outcomes.record([lease], [judged(Accepted(), *support.due_rows(lease))])

    counted = metrics.take()
    for histogram in (metrics.FIRST_HAND_OVER, metrics.LAST_HAND_OVER):
        seconds = counted[f"{histogram.name}\tsum"] / metrics.MILLIONTHS
        assert timedelta(seconds=seconds) < timedelta(hours=1)


def test_a_notification_that_is_resumed_before_its_time_was_not_held_up(channel):
    notification = factories.make_notification(channel, scheduled_at=Now() + timedelta(hours=1))
    halting.pause(notification)
    halting.began(notification, timedelta(hours=1))
    assert halting.resume(notification).paused_seconds == 0


def observed(counted, histogram, *labels):
    """How many observations of the histogram were counted."""
    names = ["\t".join([histogram.name, *labels, part]) for part in histogram.parts]
    return sum(counted.get(name, 0) for name in names)


def by_its_owner(**fields):
    return Timing(timezone="UTC", quiet_from="send", **fields).stored()


NIGHT = Quiet("22:00", "08:00")


@pytest.mark.parametrize(
    ("fields", "plan", "times"),
    [
        ({}, {}, 1),
        ({"rate_per_minute": 0}, {}, 1),
        ({"rate_per_minute": 600}, {}, 0),
        ({"timing": by_its_owner(quiet=NIGHT)}, {}, 1),
        ({"timing": by_its_owner(quiet=NIGHT)}, {"part": 1}, 0),
        ({"timing": by_its_owner(quiet=NIGHT)}, {"part": 1, "until": LAST_ID}, 1),
        ({"timing": by_its_owner(local_at="09:00")}, {"part": 1}, 0),
        ({"timing": by_its_owner(quiet=NIGHT), "has_targets": True}, {}, 0),
        ({"has_targets": True}, {}, 1),
        ({"has_targets": True}, {"part": 1}, 0),
        ({"stopped_at": Now()}, {}, 0),
    ],
)
def test_what_waits_for_its_time_is_no_late_notification(channel, fields, plan, times):
    notification = halting.planned(channel, 1)
    Notification.objects.update(**fields)
    notification.plans.update(**{"part": 0} | plan)
    lease = support.claim()
    metrics.take()

    outcomes.record([lease], [judged(Accepted(), *support.due_rows(lease))])

    assert support.counts(notification) == ("sent", 1, 1, 0)
    counted = metrics.take()
    assert observed(counted, metrics.FIRST_HAND_OVER) == times
    assert observed(counted, metrics.LAST_HAND_OVER) == times


def test_the_time_to_a_hand_over_begins_when_quiet_hours_end(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 1)
    notification = factories.make_notification(channel)
    support.plan(notification)
    Notification.objects.update(scheduled_at=LONG_AGO, created_at=LONG_AGO)
    Delivery.objects.update(code="quiet_hours", due_at=Now())
    metrics.take()

    support.deliver(notification)

    counted = metrics.take()
    assert observed(counted, metrics.HAND_OVER, "web") == 1
    assert counted[f"{metrics.HAND_OVER.name}\tweb\tsum"] < 3600 * metrics.MILLIONTHS


def test_a_web_process_reports_its_requests(channel, tmp_path):
    with running_web(tmp_path / "web.log"):
        support.until(lambda: positive(scrape()) >= HEALTH, seconds=SECONDS)
        assert scrape()["pushsvc_reporting_processes"]["web",] == 1


# What a web process counts for a probe. A report may fall between any two of them.
HEALTH = {
    ("pushsvc_requests_total", ("GET", "healthz", "2xx")),
    ("pushsvc_web_thread_seconds_total", ("health",)),
    ("pushsvc_web_bytes_total", ("sent",)),
}


def positive(found):
    return {
        (name, labels)
        for name, samples in found.items()
        for labels, number in samples.items()
        if number > 0
    }

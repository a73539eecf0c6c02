"""The hourly rows of events add up to the counts of their notifications and channels."""

import json
import random
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from django.db import transaction
from django.db.models import Sum

from notifications_app.content.tracking import make_token
from notifications_app.events import Event, EventKind, events_record
from notifications_app.models import EventHour, HourlyStat, Notification
from tests import factories
from tests.hours import stay_in_one_hour
from tests.pipeline import support
from tests.pipeline.clicks import planned, planned_on_every_platform, reported
from tests.pipeline.processes import running_web

SEED = 20261121


def test_clicks_are_in_the_hourly_rows_of_their_platform(channel):
    notification, clicks = planned(channel, 2)
    (phone,) = factories.add_subscriptions(channel, 1, platform="ios", push_service="apns")
    to_phones = factories.make_notification(channel, target_platforms=["ios"])
    support.plan(to_phones)

    events_record([*clicks, Event(to_phones.id, phone.id, EventKind.CLICKED)])

    clicked = HourlyStat.objects.values_list("platform").annotate(clicked=Sum("clicked"))
    assert dict(clicked) == {"ios": 1, "web": 2}
    assert (reported(notification), reported(to_phones)) == ((2, 2, 0), (1, 1, 0))


def test_hours_add_up_to_the_counts_after_any_events_in_any_order(channel, record):
    notification, events = planned_on_every_platform(channel, 8)
    chance = random.Random(SEED)  # noqa: S311 (a test's order)

    def report(some):
        for start in range(0, len(some), 7):
            record(some[start : start + 7])

    chosen = [chance.choices(events, k=60) for _ in range(6)]
    support.in_threads(*[lambda some=some: report(some) for some in chosen])

    hours = support.event_hours(notification)
    reported_by_kind = [
        sum(count for (_, kind), count in hours.items() if kind == wanted)
        for wanted in ("received", "clicked", "dismissed")
    ]
    assert reported_by_kind == list(reported(notification))
    assert {platform for platform, _ in hours} == {"web", "android", "ios"}


def test_hours_add_up_after_a_web_process_was_killed_between_clicks(channel, tmp_path):
    notification, events = planned_on_every_platform(channel, 20)
    clicks = [each for each in events if each.kind == EventKind.CLICKED]

    def post(click):
        """As a browser does: it repeats later what was not answered."""
        token = make_token(click.notification_id, click.subscription_id)
        body = json.dumps({"events": [{"token": token, "event": "clicked"}]})
        request = urllib.request.Request(f"{address}/events", body.encode())
        request.add_header("Content-Type", "text/plain")
        try:
            with urllib.request.urlopen(request, timeout=60):
                return True
        except OSError:
            return False

    with ThreadPoolExecutor(8) as pool:
        with transaction.atomic(), running_web(tmp_path / "killed.log") as address:
            assert all(pool.map(post, clicks[:20]))
            # Each write needs this row, so the next one stays half done until the process is dead.
            Notification.objects.select_for_update().get(pk=notification.pk)
            unanswered = [pool.submit(post, each) for each in clicks[20:]]
            support.until(support.waiting_sessions)
        assert not any(each.result() for each in unanswered)
        assert reported(notification)[1] >= 20
        with running_web(tmp_path / "next.log") as address:
            assert all(pool.map(post, clicks))

    assert reported(notification) == (60, 60, 0)
    assert support.event_hours(notification) == {
        (platform, kind): 20
        for platform in ("web", "android", "ios")
        for kind in ("received", "clicked")
    }


def test_a_notification_has_one_row_for_each_hour_and_platform(channel):
    stay_in_one_hour()
    notification, events = planned_on_every_platform(channel, 3)

    for each in events:
        events_record([each])

    rows = EventHour.objects.filter(notification=notification)
    assert sorted(rows.values_list("platform", "received", "clicked", "dismissed")) == [
        ("android", 3, 3, 3),
        ("ios", 3, 3, 3),
        ("web", 3, 3, 3),
    ]

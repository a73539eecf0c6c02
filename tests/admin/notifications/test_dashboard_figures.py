"""The figures and charts of the dashboard are right, and link to their lists."""

import json
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse
from django.utils import timezone

from channels_app.counters import counter_add
from channels_app.models import Channel, ChannelHour
from notifications_app.models import HourlyStat
from notifications_app.reporting.statistics import Changes, Outcomes, statistics_of
from pushsvc.common.periods import period
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from tests import factories
from tests.admin.notifications.dashboards import all_of, hour, html, page, stat
from tests.admin.support import signed_in
from tests.hours import stay_in_one_hour


@pytest.mark.parametrize(("days", "unit", "entries"), [(1, "hour", 24), (7, "day", 7)])
def test_a_period_ends_with_the_current_hour_or_day(days, unit, entries):
    now = timezone.now()

    of = period(now, days)

    assert (of.unit, len(of.starts)) == (unit, entries)
    assert of.starts[-1] <= now < of.end
    assert of.starts[0] - of.read_from == (of.end - of.starts[-1]) * entries


def test_days_are_those_of_the_readers_time_zone(alice):
    """Also the day on which clocks are put back, which has 25 hours."""
    zone = ZoneInfo("America/Los_Angeles")
    now = datetime(2026, 11, 2, 6, tzinfo=UTC)  # ten in the evening of 1 November

    of = period(now, 7, zone)

    assert [start.date().isoformat() for start in of.starts[-2:]] == ["2026-10-31", "2026-11-01"]
    assert of.starts[-1].astimezone(UTC) == datetime(2026, 11, 1, 7, tzinfo=UTC)
    assert of.end.astimezone(UTC) == datetime(2026, 11, 2, 8, tzinfo=UTC)


def test_a_figure_of_days_counts_the_hours_of_the_readers_days(alice):
    client = signed_in(alice.members["viewer"])
    client.cookies["browser-time-zone"] = "Asia/Tokyo"
    begin = (
        timezone.now()
        .astimezone(ZoneInfo("Asia/Tokyo"))
        .replace(hour=0, minute=0, second=0, microsecond=0)
    )
    for hours, delivered in ((0, 5), (-1, 3)):
        HourlyStat.objects.create(
            channel=alice.channel,
            platform="web",
            hour=begin + timedelta(hours=hours),
            delivered=delivered,
        )

    context = client.get(reverse("admin:index"), {"days": 7}).context

    assert [each.delivered for each in context["statistics"].outcomes.entries[-2:]] == [3, 5]
    assert context["charts"].heading == "Day (Asia/Tokyo)"
    assert context["charts"].labels[-1] == begin.date()


def test_figures_are_sums_over_the_period_and_over_the_one_before(alice):
    stay_in_one_hour()
    stat(alice.channel, back=0, recipients=10, delivered=8, bounced=2, clicked=1)
    stat(alice.channel, back=0, platform="ios", recipients=5, delivered=5)
    stat(alice.channel, back=23, recipients=1, delivered=1, clicked=1)
    stat(alice.channel, back=24, recipients=7, delivered=6, bounced=1)
    stat(alice.channel, back=47, recipients=3, delivered=3)
    stat(alice.channel, back=48, recipients=100, delivered=100)

    outcomes = statistics_of(all_of(alice), period(timezone.now(), 1)).outcomes

    assert outcomes.total == Outcomes(recipients=16, delivered=14, bounced=2, clicked=2)
    assert outcomes.before == Outcomes(recipients=10, delivered=9, bounced=1, clicked=0)
    assert outcomes.entries[-1] == Outcomes(15, 13, 2, 1)
    assert outcomes.entries[0] == Outcomes(1, 1, 0, 1)
    assert outcomes.total.share_of("undeliverable") == 2 / 16
    assert outcomes.total.share_of("clicked") == 2 / 14


def test_a_long_period_neither_compares_with_nor_reads_the_one_before():
    of = period(timezone.now(), 90)

    assert (len(of.starts), of.is_compared, of.read_from) == (90, False, of.starts[0])


def test_a_share_of_zero_is_not_shown(alice):
    total = statistics_of(all_of(alice), period(timezone.now(), 30)).outcomes.total

    assert {total.share_of(name) for name in ("delivered", "undeliverable", "clicked")} == {None}


def test_recipients_that_nobody_refused_are_told_apart_from_bounces(alice):
    apart = {"stopped": 5, "opted_out": 2, "expired": 1}
    stat(alice.channel, recipients=20, delivered=10, bounced=10, **apart)
    context = page(alice.members["viewer"], days=1).context
    figures = {figure["name"]: figure for figure in context["figures"]}
    (web,) = context["platforms"]

    assert [figures[name]["value"] for name in ("Bounced", "Stopped", "Opted out", "Expired")] == [
        2, 5, 2, 1,
    ]  # fmt: skip
    assert figures["Bounced"]["share"] == 2 / 20
    assert [each["value"] for each in web["ended"]] == [10, 2, 5, 2, 1, 0]


def test_the_chart_of_subscribers_is_computed_back_from_the_current_total(alice):
    stay_in_one_hour()
    Channel.objects.update(android_enabled=True)
    alice.channel.refresh_from_db()
    for number in range(3):
        factories.register(alice.channel, "android", f"phone-{number}")
    subscription_unsubscribe(channel=alice.channel, address=Address.of("android", "phone-0"))
    # All of them came five hours ago; an hour ago 10 came and 4 left.
    ChannelHour.objects.update(hour=hour(back=5))
    ChannelHour.objects.create(
        channel=alice.channel, hour=hour(back=1), shard=0, android_gained=10, android_lost=4
    )
    counter_add(alice.channel.id, android_subscribers=6)
    ChannelHour.objects.filter(hour=hour()).delete()

    of = statistics_of(all_of(alice), period(timezone.now(), 1))

    assert of.subscribers["android"] == [0] * 18 + [2] * 4 + [8] * 2
    assert of.subscribers["web"] == [0] * 24
    assert of.changes.total == Changes(gained=13, lost=5)
    assert of.totals.subscribers_on("android") == 8


@pytest.mark.parametrize("days", ["1", "7", "30", "90", "8", "-1", "x", "9" * 400])
def test_an_unknown_period_becomes_a_week(alice, days):
    shown = page(alice.members["viewer"], days=days).context["selection"].days

    assert shown == (int(days) if days in {"1", "7", "30", "90"} else 7)


def test_charts_are_sent_as_data_and_as_tables(alice):
    stat(alice.channel, back=3, recipients=40, delivered=37, bounced=3, clicked=5)

    text = html(alice.members["viewer"], days=1)

    (data,) = re.findall(r'<script id="chart-data" type="application/json">(.*?)</script>', text)
    drawn = {chart["name"]: chart for chart in json.loads(data)["charts"]}
    delivered = drawn["deliveries"]["lines"][1]
    assert (delivered["label"], sum(delivered["values"])) == ("Delivered", 37)
    assert '<td class="ps-number">37</td>' in text
    assert "<canvas" in text


@pytest.mark.parametrize(("days", "unit"), [(1, "hour"), (7, "day")])
def test_charts_are_captioned_by_the_length_of_their_steps(alice, days, unit):
    stat(alice.channel, recipients=1, delivered=1)
    charts = page(alice.members["viewer"], days=days).context["charts"].charts

    helps = " ".join(chart.help for chart in charts)

    assert f"Recipients by the {unit} of their outcome" in helps
    assert {"hour": "day", "day": "hour"}[unit] not in helps

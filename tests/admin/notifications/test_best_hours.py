"""The heat map of a channel's clicks: hours of the week in any time zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse

from channels_app.models import Role
from notifications_app import retention
from notifications_app.models import HourlyStat
from notifications_app.reporting.best_hours import best_hours
from tests.admin.notifications.dashboards import hour, stat
from tests.admin.support import fill_hours, signed_in
from tests.hours import stay_in_one_hour

NOW = datetime(2026, 4, 1, 12, 30, tzinfo=UTC)  # a Wednesday; clocks changed in Berlin on 29 March


def page_of(client, channel, **query):
    return client.get(reverse("admin:channel_best_hours", args=[channel.pk]), query)


def clicked_at(channel, moment, clicked=1, **fields):
    HourlyStat.objects.create(
        channel=channel, **({"platform": "web"} | fields), hour=moment, clicked=clicked
    )


def cells(channel, *, weeks=4, zone="UTC", now=NOW):
    """{(weekday, hour): clicks} of the hours with clicks."""
    found = best_hours(channel, weeks=weeks, zone=ZoneInfo(zone), now=now)
    return {(c.weekday, c.hour): c.clicked for day in found.days for c in day if c.clicked}


def test_a_click_counts_in_the_local_hour_also_across_a_change_of_clocks(alice):
    clicked_at(alice.channel, datetime(2026, 3, 24, 17, tzinfo=UTC), 3)  # 18:00 in winter
    clicked_at(alice.channel, datetime(2026, 3, 31, 16, tzinfo=UTC), 4)  # 18:00 in summer
    clicked_at(alice.channel, datetime(2026, 3, 28, 23, tzinfo=UTC), 5)  # Sunday already

    assert cells(alice.channel, zone="Europe/Berlin") == {(1, 18): 7, (6, 0): 5}
    assert cells(alice.channel) == {(1, 17): 3, (1, 16): 4, (5, 23): 5}
    assert cells(alice.channel, zone="America/Lima") == {(1, 12): 3, (1, 11): 4, (5, 18): 5}


def test_an_hour_that_clocks_repeat_or_skip_loses_no_click(alice):
    for at in range(48):
        clicked_at(alice.channel, datetime(2026, 3, 28, tzinfo=UTC) + timedelta(hours=at))

    found = cells(alice.channel, zone="Europe/Berlin")

    assert sum(found.values()) == 48
    assert (6, 2) not in found  # 02:00 on 29 March 2026 did not exist there
    repeated = datetime(2026, 10, 25, tzinfo=UTC)
    for at in (0, 1):  # both are 02:00
        clicked_at(alice.channel, repeated + timedelta(hours=at))
    later = datetime(2026, 10, 28, tzinfo=UTC)
    assert cells(alice.channel, zone="Europe/Berlin", now=later) == {(6, 2): 2}


def test_in_zones_of_half_hours_a_click_counts_where_the_hour_of_utc_begins(viewer, alice):
    clicked_at(alice.channel, datetime(2026, 3, 31, 18, tzinfo=UTC))

    assert cells(alice.channel, zone="Asia/Kolkata") == {(1, 23): 1}
    clicked_at(alice.channel, hour(back=3))
    note = "count for the hour in which the hour of UTC begins"
    assert note in page_of(viewer, alice.channel, zone="Asia/Kolkata").content.decode()
    assert note not in page_of(viewer, alice.channel, zone="Asia/Tokyo").content.decode()


def test_whole_weeks_count_each_hour_of_the_week_equally_often(alice):
    for back in range(-1, 5 * 168):
        clicked_at(alice.channel, datetime(2026, 4, 1, 12, tzinfo=UTC) - timedelta(hours=back))

    found = cells(alice.channel, weeks=4)

    assert len(found) == 168
    assert set(found.values()) == {4}


def test_platforms_are_summed_and_other_channels_are_not(alice, bob):
    at = datetime(2026, 3, 30, 9, tzinfo=UTC)
    for platform in ("web", "android", "ios"):
        clicked_at(alice.channel, at, 2, platform=platform)
    clicked_at(bob.channel, at, 50)

    assert cells(alice.channel) == {(0, 9): 6}


def test_the_sum_of_the_map_is_the_sum_of_the_hourly_rows(viewer, alice):
    stay_in_one_hour()
    fill_hours(alice.channel, days=84)

    shown = page_of(viewer, alice.channel, weeks=12, zone="Australia/Lord_Howe").context["heat"]

    since = hour(back=12 * 168)
    rows = HourlyStat.objects.filter(hour__gte=since, hour__lt=hour())
    assert shown.clicked == sum(rows.values_list("clicked", flat=True)) > 0
    assert max(cell.level for day in shown.days for cell in day) == 5


def test_the_best_hours_are_listed_with_their_share(viewer, alice):
    stay_in_one_hour()
    stat(alice.channel, back=2, clicked=30, delivered=200)
    stat(alice.channel, back=5, clicked=10)

    answer = page_of(viewer, alice.channel)

    best = answer.context["best"]
    assert [(cell.clicked, share) for _, cell, share in best] == [(30, 0.75), (10, 0.25)]
    assert best[0][0] == hour(back=2).strftime("%A")
    assert "30 clicked, 200 delivered" in answer.content.decode()
    assert "75.0 %" in answer.content.decode()


def test_a_channel_without_clicks_says_so(viewer, alice):
    assert "No clicks in the last 4 weeks" in page_of(viewer, alice.channel).content.decode()


def test_a_zone_that_is_not_known_is_utc_and_said(viewer, alice):
    for zone in ("Mars/Olympus", "../etc/passwd", "a" * 5_000, "<b>"):
        answer = page_of(viewer, alice.channel, zone=zone)
        assert answer.context["zone"] == "UTC"
        assert "is unknown" in answer.content.decode()
        assert "<b>" not in answer.content.decode()


@pytest.mark.parametrize("weeks", ["", "0", "-4", "53", "x", "4" * 400])
def test_another_number_of_weeks_becomes_four(viewer, alice, weeks):
    assert page_of(viewer, alice.channel, weeks=weeks).context["weeks"] == 4


@pytest.mark.parametrize("role", Role.values)
def test_every_role_of_the_account_and_no_other_account_sees_the_map(alice, bob, role):
    client = signed_in(alice.members[role])

    assert page_of(client, alice.channel).status_code == 200
    assert page_of(client, bob.channel).status_code == 404


def test_the_map_stays_after_retention(viewer, alice, settings):
    stay_in_one_hour()
    settings.DELIVERY_RETENTION_DAYS = 0
    fill_hours(alice.channel, days=28)
    before = page_of(viewer, alice.channel).context["heat"].days

    retention.purge()

    assert page_of(viewer, alice.channel).context["heat"].days == before

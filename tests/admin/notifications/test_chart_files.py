"""*Download* under each chart of the console."""

import csv
import re
from datetime import timedelta
from html import unescape

import pytest
from django.urls import reverse
from django.utils import timezone

from channels_app.models import ChannelHour
from notifications_app.models import EventHour, Notification, OutcomeMinute
from tests.admin.notifications.dashboards import hour, stat
from tests.admin.support import signed_in
from tests.factories import make_sent_notification
from tests.hours import stay_in_one_hour

COMPARE = reverse("admin:notification_compare")


def links(client, page, **query):
    """The addresses of the files that a page offers, by the names of its charts."""
    html = client.get(page, query).content.decode()
    found = re.findall(r'href="([^"]+chart\.csv\?[^"]+)" download', html)
    return {unescape(each).rpartition("chart=")[2]: unescape(each) for each in found}


def rows(client, address):
    response = client.get(address)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join(response.streaming_content).decode()
    return list(csv.reader(text.splitlines()))


def sent(channel, **fields):
    """A notification that took 2 s to its first delivery and 8 s in all, in this hour."""
    now = timezone.now()
    made = make_sent_notification(channel, **fields)
    due = now - timedelta(seconds=8)
    times = {"scheduled_at": due, "created_at": due, "finished_at": now}
    first = {"first_hand_over_at": due + timedelta(seconds=2), "status": "sent"}
    Notification.objects.filter(pk=made.pk).update(**times | first)
    hours = ChannelHour.objects.filter(channel=channel, hour=hour(), shard=0)
    if not hours.update(notifications_sent=2):
        ChannelHour.objects.create(channel=channel, hour=hour(), shard=0, notifications_sent=1)
    return made


@pytest.fixture
def viewer(alice):
    stay_in_one_hour()
    return signed_in(alice.members["viewer"])


def test_each_chart_of_the_dashboard_has_a_file_with_its_numbers(viewer, alice, bob):
    stat(alice.channel, recipients=17, delivered=8, bounced=7, stopped=4, expired=1, clicked=1)
    stat(bob.channel, recipients=90, delivered=90)
    gains = {"web_gained": 5, "web_lost": 3}
    ChannelHour.objects.create(channel=alice.channel, hour=hour(back=1), shard=0, **gains)
    sent(alice.channel)
    found = links(viewer, reverse("admin:index"), days=1, channel=alice.channel.pk)

    files = {name: rows(viewer, address) for name, address in found.items()}

    assert {name: (each[0], each[-1][1:]) for name, each in files.items()} == {
        "deliveries": (
            ["From (UTC)", "Clicked", "Delivered", "Bounced", "Stopped", "Opted out", "Expired"],
            ["1", "8", "2", "4", "0", "1"],
        ),
        "shares": (["From (UTC)", "Bounced", "Clicked"], ["13.33", "12.5"]),
        "subscribers": (["From (UTC)", "Web", "Android", "iOS"], ["0", "0", "0"]),
        "growth": (["From (UTC)", "Gained", "Lost"], ["0", "0"]),
        "sent": (["From (UTC)", "Sent"], ["1"]),
        "hand-over": (
            ["From (UTC)", "First, p50", "First, p95", "Last, p50", "Last, p95"],
            ["2.0", "2.0", "8.0", "8.0"],
        ),
    }
    assert files["growth"][-2] == [f"{hour(back=1):%Y-%m-%d %H:%M:%S}", "5", "3"]
    assert files["hand-over"][-2][1:] == [""] * 4
    assert {len(each) for each in files.values()} == {25}


def test_a_file_without_a_channel_is_of_the_users_channels(viewer, alice, bob):
    stat(alice.channel, delivered=8)
    stat(bob.channel, delivered=90)

    (*_, last) = rows(viewer, links(viewer, reverse("admin:index"))["deliveries"])

    assert last[1:] == ["0", "8", "0", "0", "0", "0"]


def test_both_charts_of_a_notification_have_a_file(viewer, alice):
    one = sent(alice.channel)
    minute = one.started_at.replace(second=0, microsecond=0)
    values = {"notification": one, "platform": "web", "count": 7}
    OutcomeMinute.objects.create(minute=minute, code="", **values)
    start = minute.replace(minute=0)
    EventHour.objects.create(notification=one, hour=start, platform="web", clicked=4)
    page = reverse("admin:notifications_app_notification_change", args=[one.pk])

    found = {name: rows(viewer, address) for name, address in links(viewer, page).items()}

    assert found["outcomes"][:2] == [
        ["From (UTC)", "Delivered", "Bounced", "Stopped", "Opted out", "Expired"],
        [f"{minute:%Y-%m-%d %H:%M:%S}", "7", "0", "0", "0", "0"],
    ]
    assert found["clicks"][1] == [f"{start:%Y-%m-%d %H:%M:%S}", "4"]
    assert len(found) == 2


def test_a_title_in_a_comparison_is_no_formula_of_a_spreadsheet(viewer, alice):
    both = [sent(alice.channel, title=title) for title in ("Bread;=1+1", "Milk")]
    for one in both:
        at = one.started_at.replace(minute=0, second=0, microsecond=0)
        EventHour.objects.create(notification=one, hour=at, platform="web", clicked=1)

    found = links(viewer, COMPARE, id=[each.pk for each in both])
    heading, first, *_ = rows(viewer, found["since"])

    assert heading == ["Hour", "A: Bread;'=1+1", "B: Milk"]
    assert first == ["0", "0.0", "0.0"]
    assert len(found) == 1


@pytest.mark.parametrize(
    "address",
    [
        reverse("admin:dashboard_chart") + "?chart=none",
        reverse("admin:notification_compare_chart") + "?chart=since",
    ],
)
def test_a_chart_that_a_page_does_not_have_is_not_found(viewer, address):
    assert viewer.get(address).status_code == 404

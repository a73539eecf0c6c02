"""Which notification was best: the orders and filters of the list, the newest campaigns on the
dashboard, and the results of labels."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse
from django.utils import timezone

from channels_app.services import api_key_issue
from notifications_app.models import Occurrence
from notifications_app.reporting import campaigns
from pushsvc.common.console.zones import CHOSEN
from pushsvc.common.ids import uuid7
from pushsvc.common.periods import SPAN_NAMES, span
from tests.admin.support import signed_in
from tests.factories import (
    make_channel,
    make_schedule,
    make_segment,
    make_sent_notification,
    make_template,
)

LIST = reverse("admin:notifications_app_notification_changelist")
LABELS = reverse("admin:notification_labels")


@pytest.fixture
def viewer(alice):
    return signed_in(alice.members["viewer"])


def sent(channel, title, recipients=0, delivered=0, clicked=0, **fields):
    return make_sent_notification(
        channel,
        title=title,
        recipient_count=recipients,
        delivered_count=delivered,
        bounced_count=recipients - delivered,
        clicked_count=clicked,
        **fields,
    )


def listed(client, **query):
    return [row.title for row in client.get(LIST, query).context["cl"].result_list]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("", "tiny few many"),
        ("reach", "many few tiny"),
        ("delivered", "many few tiny"),
        ("delivered_rate", "few many tiny"),
        ("clicked", "many few tiny"),
        ("clicked_rate", "few many tiny"),
        ("latest", "tiny many few"),
        ("earliest", "few many tiny"),
        ("unknown", "tiny few many"),
    ],
)
def test_the_list_is_sorted_as_asked(viewer, alice, sort, order):
    """A rate of a handful of recipients is last, because it says little."""
    now = timezone.now()
    sent(alice.channel, "many", 1000, 900, 50, scheduled_at=now - timedelta(hours=2))
    sent(alice.channel, "few", 200, 190, 40, scheduled_at=now - timedelta(hours=3))
    sent(alice.channel, "tiny", 2, 2, 2, scheduled_at=now - timedelta(hours=1))

    assert listed(viewer, sort=sort) == order.split()


def test_an_order_keeps_the_filters_and_says_what_is_sorted(viewer, alice):
    sent(alice.channel, "first", 500, 500, 5, labels=["sale"])
    sent(alice.channel, "second", 500, 500, 50, labels=["sale"])
    sent(alice.channel, "other", 500, 500, 500)

    answer = viewer.get(LIST, {"label": "sale", "sort": "clicked"})
    text = answer.content.decode()

    assert listed(viewer, label="sale", sort="clicked") == ["second", "first"]
    assert 'href="?label=sale&amp;sort=clicked_rate"' in text
    assert "Most clicks first, of the newest 10,000 notifications." in text
    assert "50 <small" in text


def test_a_notification_that_waits_has_no_rate_and_is_last(viewer, alice):
    sent(alice.channel, "sent", 500, 500, 1)
    sent(alice.channel, "waits", status="pending", started_at=None, finished_at=None)

    assert listed(viewer, sort="clicked_rate") == ["sent", "waits"]


def test_the_list_filters_by_kind(viewer, alice):
    segment = make_segment(alice.channel, {"tag": "a"})
    schedule = make_schedule(alice.channel)
    sent(alice.channel, "to all")
    sent(alice.channel, "to a segment", segment_id=segment.pk)
    sent(alice.channel, "direct", has_targets=True)
    sent(alice.channel, "test", only_subscription_id=uuid7())
    repeated = sent(alice.channel, "repeated")
    Occurrence.objects.create(
        schedule=schedule, occurs_at=timezone.now(), notification_id=repeated.pk, code="sent"
    )

    assert listed(viewer, kind="campaign") == ["repeated", "to a segment", "to all"]
    assert listed(viewer, kind="direct") == ["direct"]
    assert listed(viewer, kind="scheduled") == ["repeated"]
    assert listed(viewer, kind="test") == ["test"]


def test_the_list_filters_by_author_segment_and_template(viewer, alice):
    key, _ = api_key_issue(channel=alice.channel, name="Shop backend")
    segment = make_segment(alice.channel, {"tag": "a"}, name="Regulars")
    template = make_template(alice.channel, "Order ready")
    actor = f"psk_{key.public_id}"
    sent(alice.channel, "by a key", sent_by=actor)
    sent(alice.channel, "by mia", sent_by="mia", segment_id=segment.pk)
    sent(alice.channel, "copied", template_id=template.pk)

    text = viewer.get(LIST).content.decode()

    for offered in ("API key “Shop backend”", ">mia<", ">Regulars<", ">Order ready<"):
        assert offered in text
    assert listed(viewer, author=actor) == ["by a key"]
    assert listed(viewer, author="mia") == ["by mia"]
    assert listed(viewer, segment=segment.pk) == ["by mia"]
    assert listed(viewer, template=template.pk) == ["copied"]
    assert listed(viewer, segment="nonsense") == []


def test_filters_offer_nothing_of_another_account(viewer, alice, zebra):
    sent(zebra.channel, "theirs", sent_by="zebra-mia", segment_id=zebra.rows["segment"].pk)
    sent(alice.channel, "own")

    assert "zebra" not in viewer.get(LIST).content.decode()
    assert listed(viewer, author="zebra-mia") == []
    assert listed(viewer, segment=zebra.rows["segment"].pk) == []


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("today", (11, 25), (11, 26)),
        ("yesterday", (11, 24), (11, 25)),
        ("this_week", (11, 23), (11, 30)),
        ("last_week", (11, 16), (11, 23)),
        ("this_month", (11, 1), (12, 1)),
        ("last_month", (10, 1), (11, 1)),
    ],
)
def test_a_span_has_the_days_of_the_readers_calendar(name, first, last):
    berlin = ZoneInfo("Europe/Berlin")
    now = datetime(2026, 11, 24, 23, 30, tzinfo=UTC)  # Wednesday in Berlin

    begin, end = (each.astimezone(berlin) for each in span(now, name, berlin))

    assert ((begin.month, begin.day), (end.month, end.day)) == (first, last)
    assert (begin.hour, end.hour) == (0, 0)


def test_every_span_begins_before_it_ends():
    for day in range(800):
        now = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(days=day)
        for name in SPAN_NAMES:
            begin, end = span(now, name, UTC)
            assert begin < end, (name, now)


def test_the_list_filters_by_last_week_in_the_readers_zone(viewer, alice):
    viewer.cookies[CHOSEN] = "America/Los_Angeles"
    begin, end = span(timezone.now(), "last_week", ZoneInfo("America/Los_Angeles"))
    second = timedelta(seconds=1)
    for title, at in (
        ("before", begin - second),
        ("first", begin),
        ("last", end - second),
        ("after", end),
    ):
        sent(alice.channel, title, scheduled_at=at)

    assert listed(viewer, span="last_week") == ["last", "first"]
    assert len(listed(viewer, span="unknown")) == 4


# --- the dashboard --------------------------------------------------------------------------------


def recent(client, **query):
    return client.get(reverse("admin:index"), query).context["recent"]


def test_the_dashboard_shows_the_newest_campaigns_with_their_rates(viewer, alice, zebra):
    now = timezone.now()
    for place in range(8):
        at = now - timedelta(hours=place)
        sent(alice.channel, f"campaign {place}", 200, 100, 25, started_at=at)
    sent(alice.channel, "test", 1, 1, only_subscription_id=uuid7())
    sent(alice.channel, "direct", 1, 1, has_targets=True)
    sent(alice.channel, "waits", status="pending", started_at=None, finished_at=None)
    sent(zebra.channel, "theirs", 1, 1)

    found = recent(viewer)

    assert [each["notification"].title for each in found] == [f"campaign {n}" for n in range(6)]
    assert (found[0]["delivered_share"], found[0]["clicked_share"]) == (0.5, 0.25)
    assert (
        "Highest click rate of the last 7 days"
        in viewer.get(reverse("admin:index")).content.decode()
    )


def test_direct_sends_hide_no_campaign_from_the_dashboard(viewer, alice, root, monkeypatch):
    monkeypatch.setattr(campaigns, "_CAMPAIGNS_AMONG", 1)
    sent(alice.channel, "to all", 1, 1)
    for title in ("direct", "another"):
        sent(alice.channel, title, 1, 1, has_targets=True)

    of_channel = recent(viewer, channel=alice.channel.pk)

    for found in (of_channel, recent(viewer), recent(signed_in(root))):
        assert [each["notification"].title for each in found] == ["to all"]


def test_the_dashboard_of_a_channel_shows_its_campaigns_alone(viewer, alice, root):
    other = make_channel("Other", account=alice.account)
    sent(alice.channel, "own", 1, 1)
    sent(other, "other", 1, 1)

    of_channel = recent(viewer, channel=other.pk)

    assert [each["notification"].title for each in of_channel] == ["other"]
    assert len(recent(viewer)) == len(recent(signed_in(root))) == 2


# --- labels ---------------------------------------------------------------------------------------


def labels(client, **query):
    return {each.label: each for each, _ in client.get(LABELS, query).context["rows"]}


def test_results_add_up_by_label_and_week(viewer, alice, zebra):
    now = timezone.now()
    sent(alice.channel, "a", 100, 80, 8, labels=["sale", "news"], scheduled_at=now)
    sent(alice.channel, "b", 50, 40, 1, labels=["sale"], scheduled_at=now - timedelta(days=7))
    sent(alice.channel, "c", 70, 70, 7, labels=["sale"], scheduled_at=now - timedelta(days=100))
    sent(alice.channel, "test", 9, 9, labels=["sale"], only_subscription_id=uuid7())
    sent(zebra.channel, "theirs", 9, 9, labels=["zebra-label"])

    found = labels(viewer)
    sale = found["sale"]

    assert list(found) == ["sale", "news"]
    assert (sale.total.notifications, sale.total.recipients) == (2, 150)
    assert (sale.total.delivered, sale.total.clicked) == (120, 9)
    assert sorted(week.delivered for week in sale.weeks.values()) == [40, 80]
    assert labels(viewer, weeks=52)["sale"].total.notifications == 3
    assert labels(viewer, channel__id__exact=alice.channel.pk) == found


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati", "UTC"])
def test_weeks_of_labels_are_those_of_the_reader(viewer, alice, zone):
    """Also around the change of clocks."""
    viewer.cookies[CHOSEN] = zone
    for week in range(12):
        at = timezone.now() - timedelta(weeks=week)
        sent(alice.channel, "weekly", 10, 10, 1, labels=["weekly"], scheduled_at=at)

    charts = viewer.get(LABELS, {"weeks": 12}).context["charts"]
    rates, delivered = (chart.lines[0].values for chart in charts.charts)

    assert delivered == [10] * 12
    assert rates == [10.0] * 12
    assert {start.hour for start in charts.starts} == {0}


def test_the_chart_of_labels_is_a_file(viewer, alice):
    sent(alice.channel, "a", 100, 80, 8, labels=["sale"], scheduled_at=timezone.now())

    answer = viewer.get(LABELS, {"weeks": 4})
    files = answer.context["charts"].files
    text = b"".join(viewer.get(f"{files}label-delivered").streaming_content).decode()

    assert text.splitlines()[0].endswith(",sale")
    assert text.splitlines()[-1].endswith(",80")


def test_without_labels_the_page_says_where_they_are_written(viewer, alice):
    assert "has a label" in viewer.get(LABELS).content.decode()
    assert viewer.get(reverse("admin:notification_labels_chart")).status_code == 404

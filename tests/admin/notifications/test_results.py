"""What recipients did: the funnel and clicks of a notification's page, and comparisons."""

import json
import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.urls import reverse
from django.utils import timezone

from channels_app.models import Role
from notifications_app import retention
from notifications_app.events import Event, events_record
from notifications_app.models import (
    ActionCount,
    Batch,
    Delivery,
    EventHour,
    Notification,
    OutcomeMinute,
)
from notifications_app.reporting.comparing import probability_of_chance
from notifications_app.reporting.event_hours import curves_of, events_of
from tests.admin.support import signed_in
from tests.factories import add_subscriptions, make_notification, make_plan, make_sent_notification
from tests.pipeline.support import plan

COMPARE = reverse("admin:notification_compare")


def page_of(client, notification):
    address = reverse("admin:notifications_app_notification_change", args=[notification.pk])
    return client.get(address).content.decode()


def compare(client, *notifications):
    ids = [getattr(each, "pk", each) for each in notifications]
    return client.get(f"{COMPARE}?{urlencode([('id', each) for each in ids])}")


def add_events(notification, *, hours=0, platform="web", **counts):
    """Events of a clock hour after the start, also in the notification's counts."""
    start = notification.started_at.replace(minute=0, second=0, microsecond=0)
    EventHour.objects.create(
        notification=notification,
        hour=start + timedelta(hours=hours),
        platform=platform,
        **counts,
    )
    for kind, count in counts.items():
        name = f"{kind}_count"
        setattr(notification, name, getattr(notification, name) + count)
    notification.save()
    return notification


def on_two_platforms(channel):
    """80 browsers and 20 iPhones, of which 75 and 20 got it."""
    notification = make_sent_notification(
        channel, target_platforms=["web", "ios"], delivered_count=95, bounced_count=5,
        clicked_count=0,
    )  # fmt: skip
    for platform, recipients, delivered in (("web", 80, 75), ("ios", 20, 20)):
        make_plan(notification, platform=platform, status="done", recipient_count=recipients)
        OutcomeMinute.objects.create(
            notification=notification,
            minute=notification.started_at,
            platform=platform,
            code="",
            count=delivered,
        )
    return notification


def chart_of(page):
    found = re.search(r'<script id="chart-data" type="application/json">(.*?)</script>', page)
    return json.loads(found[1])


def words(page):
    """The page's text, with single spaces."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


# --- a notification's page ------------------------------------------------------------------------


def test_the_funnel_has_counts_and_rates_of_each_platform(viewer, alice):
    notification = on_two_platforms(alice.channel)
    add_events(notification, platform="web", received=60, clicked=15, dismissed=30)
    add_events(notification, platform="ios", received=5, clicked=4)

    page = words(page_of(viewer, notification))

    assert "Recipients 100 80 20" in page
    assert "Delivered of recipients 95 95.0 % 75 93.8 % 20 100.0 %" in page
    assert "Shown of delivered 65 68.4 % 60 80.0 % 5 25.0 %" in page
    assert "Clicked of delivered 19 20.0 % 15 20.0 % 4 20.0 %" in page
    assert "Dismissed of shown 30 46.2 % 30 50.0 % 0 0.0 %" in page


def test_the_page_shows_what_the_sender_wrote_beside_the_common_texts(viewer, alice):
    extras = {
        "actions": [{"id": "track", "title": "Track <it>"}, {"id": "later", "title": "Later"}],
        "translations": {"de": {"title": "Ihre Bestellung"}},
        "ios": {"subtitle": "Order 17", "image": None},
    }
    notification = make_sent_notification(alice.channel, extras=extras)
    ActionCount.objects.create(notification=notification, action="track", count=12)

    page = words(page_of(viewer, notification))

    assert "Buttons Track &lt;it&gt;, Later" in page
    assert "Clicks by button Button Recipients Track &lt;it&gt; 12 Later 0" in page
    assert "In de Ihre Bestellung" in page
    assert "Only on iOS Large image: none Subtitle: Order 17" in page


def test_clicks_over_time_are_drawn_by_hour_and_platform_and_as_a_table(viewer, alice):
    notification = on_two_platforms(alice.channel)
    add_events(notification, platform="web", received=60, clicked=15)
    add_events(notification, platform="ios", hours=2, received=5, clicked=4)

    page = page_of(viewer, notification)

    chart = chart_of(page)
    assert {line["label"]: line["values"] for line in chart["charts"][0]["lines"]} == {
        "Web": [15, 0, 0],
        "iOS": [0, 0, 4],
    }
    assert len(chart["starts"]) == 3
    rows = re.findall(r"<tr><th scope=\"row\"><time.*?</tr>", page, re.DOTALL)
    assert [words(row).rpartition("UTC ")[2] for row in rows] == ["15 0", "0 0", "0 4"]


def test_a_notification_that_has_not_started_has_no_funnel(viewer, alice):
    notification = make_sent_notification(
        alice.channel,
        status="pending",
        started_at=None,
        finished_at=None,
        recipient_count=0,
        delivered_count=0,
        bounced_count=0,
        clicked_count=0,
    )

    assert "From recipients to clicks" not in page_of(viewer, notification)


@pytest.mark.parametrize("hours", [0, 1, 119, 120, 400, 28 * 24])
def test_clicks_over_time_are_complete_in_a_bounded_number_of_steps(alice, hours):
    notification = make_sent_notification(
        alice.channel, started_at=timezone.now() - timedelta(days=29)
    )
    for at in {0, hours // 2, hours}:
        add_events(notification, hours=at, clicked=at + 1)

    clicks = events_of(notification).clicks

    assert len(clicks.starts) <= 121
    assert sum(clicks.by_platform["web"]) == sum(at + 1 for at in {0, hours // 2, hours})
    steps = {later - start for start, later in zip(clicks.starts, clicks.starts[1:], strict=False)}
    assert steps <= {clicks.step}
    assert clicks.starts[0] <= notification.started_at


def test_the_page_shows_the_same_after_retention(viewer, alice, settings):
    settings.DELIVERY_RETENTION_DAYS = 0
    rows = add_subscriptions(alice.channel, 3)
    notification = make_notification(alice.channel)
    plan(notification)
    events_record([Event(notification.pk, row.id, "clicked") for row in rows[:2]])
    hour_ago = timezone.now() - timedelta(hours=1)
    ended = {"delivered_count": 3, "finished_at": hour_ago}
    Notification.objects.filter(pk=notification.pk).update(status="sent", **ended)
    Batch.objects.update(status="done", **ended)
    before = words(page_of(viewer, notification))

    retention.purge()

    assert not Delivery.objects.exists()
    assert "Clicked of delivered 2 66.7 %" in before
    assert words(page_of(viewer, notification)) == before


# --- comparing ------------------------------------------------------------------------------------


def ago(channel, title, hours, **fields):
    """A notification that started so many hours ago."""
    began = timezone.now() - timedelta(hours=hours)
    return make_sent_notification(
        channel,
        **{
            "title": title,
            "started_at": began,
            "finished_at": began + timedelta(seconds=40),
            "clicked_count": 0,
        }
        | fields,
    )


def test_a_comparison_counts_up_to_the_age_of_the_youngest(viewer, alice):
    """A campaign of twelve hours was drawn for 17 more, and *highest* was an older one."""
    first = ago(alice.channel, "Rye", 30)
    second = ago(alice.channel, "Oats", 12.5)
    add_events(first, hours=1, clicked=10, received=40)
    add_events(first, hours=20, clicked=25, received=25)
    add_events(second, hours=2, clicked=20, received=60, dismissed=6)

    answer = compare(viewer, first, second)

    page = words(answer.content.decode())
    assert re.search(r"A Rye .*? 97.0 % 3 3.0 % 40 41.2 % 10 10.3 % 35 until now", page)
    assert re.search(r"B Oats .*? 97.0 % 3 3.0 % 60 61.9 % 20 20.6 % highest 6 10.0 %", page)
    assert "12 h 30 min" in page
    drawn = chart_of(answer.content.decode())
    assert len(drawn["starts"]) <= 13
    ends = [line["values"][-1] for line in drawn["charts"][0]["lines"]]
    assert ends == [10.31, 20.62]


@pytest.mark.parametrize(
    ("clicks", "verdicts"),
    [
        ((300, 200), ["highest", None]),
        ((212, 200), [None, "difference may be chance"]),
        ((4, 2), [None, "too few clicks to tell"]),
        ((0, 0), [None, None]),
        ((300, 295, 100), [None, "difference may be chance", None]),
        ((300, 250), ["highest", None]),
        ((300, 230, 230, 230, 230), ["highest", *[None] * 4]),
        ((300, 256), ["highest", None]),
        ((300, 256, 256), [None, *["difference may be chance"] * 2]),
    ],
)
def test_only_a_difference_that_chance_does_not_explain_is_called_one(
    viewer, alice, clicks, verdicts
):
    """The last two: three pairs need stronger evidence than one."""
    counts = {"recipient_count": 2_000, "delivered_count": 2_000, "bounced_count": 0}
    some = [ago(alice.channel, "One", 20, **counts) for _ in clicks]
    for each, clicked in zip(some, clicks, strict=True):
        add_events(each, hours=1, clicked=clicked)

    rows = compare(viewer, *some).context["rows"]

    assert [row.verdict and row.verdict[0] for row in rows] == verdicts


def test_a_notification_that_is_being_sent_is_not_judged(viewer, alice):
    counts = {"recipient_count": 3_000, "delivered_count": 2_000, "bounced_count": 0}
    some = [
        ago(alice.channel, "One", 20, status=status, finished_at=None, **counts | more)
        for status, more in (("processing", {}), ("sent", {"bounced_count": 1_000}))
    ]
    for each, clicked in zip(some, (900, 100), strict=True):
        add_events(each, hours=1, clicked=clicked)

    rows = compare(viewer, *some).context["rows"]

    assert [row.verdict for row in rows] == [None, None]


@pytest.mark.parametrize(("minutes", "is_compared"), [(4 * 60, True), (6 * 60, False)])
def test_what_was_sent_over_a_longer_time_is_not_judged(viewer, alice, minutes, is_compared):
    """The age of the comparison is 20 hours."""
    counts = {"recipient_count": 2_000, "delivered_count": 2_000, "bounced_count": 0}
    slow, quick = (ago(alice.channel, "One", 20, **counts) for _ in range(2))
    slow.finished_at = slow.started_at + timedelta(minutes=minutes)
    slow.save(update_fields=["finished_at"])
    for each, clicked in ((slow, 300), (quick, 100)):
        add_events(each, hours=1, clicked=clicked)

    rows = compare(viewer, slow, quick).context["rows"]

    judged = ["highest", None] if is_compared else ["sent over a longer time: not compared", None]
    assert [row.verdict and row.verdict[0] for row in rows] == judged


def test_events_within_an_hour_are_taken_as_evenly_spread(alice):
    one = ago(alice.channel, "One", 10)
    begin = one.started_at.replace(minute=0, second=0, microsecond=0)
    add_events(one, hours=2, clicked=60)
    curve = curves_of([one], timezone.now())[one.pk]
    into = begin + timedelta(hours=2) - one.started_at

    found = [curve.at(into + timedelta(minutes=each)).clicked for each in (-30, 0, 20, 60, 90)]

    assert found == [0, 0, 20, 60, 60]


@pytest.mark.parametrize(
    ("one", "other", "probability"),
    [((50, 1000), (50, 1000), 1.0), ((60, 1000), (40, 1000), 0.0402), ((9, 20), (1, 20), 0.0035)],
)
def test_the_probability_of_chance_is_the_z_tests(one, other, probability):
    assert round(probability_of_chance(one, other), 4) == probability


@pytest.mark.parametrize("count", [0, 1, 6])
def test_a_comparison_of_too_few_or_too_many_says_how_to_choose(viewer, alice, count):
    some = [make_sent_notification(alice.channel) for _ in range(count)]

    answer = compare(viewer, *some)

    assert answer.status_code == 200
    assert "Choose 2 to 5 notifications" in answer.content.decode()


def test_the_same_notification_twice_is_one(viewer, alice):
    one = make_sent_notification(alice.channel)

    assert "Choose 2 to 5 notifications" in compare(viewer, one, one).content.decode()


@pytest.mark.parametrize("id_", ["x", "0", "\x00", "01a20000-0000-7000-8000-000000000000"])
def test_what_is_no_notification_is_not_compared(viewer, alice, id_):
    assert compare(viewer, make_sent_notification(alice.channel), id_).status_code == 404


@pytest.mark.parametrize("role", Role.values)
def test_every_role_compares(alice, role):
    some = [make_sent_notification(alice.channel) for _ in range(5)]

    assert compare(signed_in(alice.members[role]), *some).status_code == 200


def test_the_list_offers_to_compare_what_has_started(viewer, alice):
    sent = make_sent_notification(alice.channel)
    waiting = make_sent_notification(alice.channel, status="pending", started_at=None)

    page = viewer.get(reverse("admin:notifications_app_notification_changelist")).content.decode()

    assert re.search(rf'type="checkbox" name="id" value="{sent.pk}" form="compare"', page)
    assert f'value="{waiting.pk}"' not in page
    assert f'<form class="ps-card ps-row ps-compare-bar" id="compare" action="{COMPARE}">' in page

"""The dashboard's numbers link to lists that hold exactly what was counted."""

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.urls import reverse
from django.utils import timezone

from channels_app.counters import counter_add
from channels_app.models import ChannelHour
from notifications_app.models import OutcomeMinute
from pushsvc.common.ids import uuid7, uuid7_at
from subscriptions_app.models import Subscription
from tests.admin.notifications.dashboards import hour, page, running, stat
from tests.admin.support import signed_in
from tests.factories import add_crowd, make_sent_notification

NOTIFICATIONS = reverse("admin:notifications_app_notification_changelist")


def ended(notification, *, back, platform="web", **counts):
    """Recipients that ended so many hours ago, in the minutes and in the row of the hour."""
    codes = {"delivered": "", "bounced": "endpoint_gone", "stopped": "stopped"}
    for outcome, code in codes.items():
        if outcome in counts:
            OutcomeMinute.objects.create(
                notification=notification,
                minute=hour(back=back),
                platform=platform,
                code=code,
                count=counts[outcome],
            )
    counts["bounced"] = counts.get("bounced", 0) + counts.get("stopped", 0)
    stat(notification.channel, back=back, platform=platform, **counts)


def sent(channel, *, began, over, title, **fields):
    """A notification that started and finished so many hours ago."""
    now = timezone.now()
    times = {
        "started_at": now - timedelta(hours=began),
        "finished_at": now - timedelta(hours=over),
    }
    return make_sent_notification(channel, title=title, **times, **fields)


@pytest.fixture
def busy_day(alice):
    """Notifications that started before the last 24 hours, ran in them, ended before them, or
    still run."""
    channel = alice.channel
    today = sent(channel, began=3, over=2, title="today", target_platforms=["web", "ios"])
    ended(today, back=3, delivered=40, bounced=5)
    ended(today, back=2, platform="ios", delivered=7, bounced=1)
    across = sent(channel, began=30, over=20, title="across")
    ended(across, back=30, delivered=100, bounced=50)
    ended(across, back=20, delivered=10)
    ended(sent(channel, began=40, over=39, title="before"), back=39, delivered=900, bounced=90)
    ended(running(channel, title="goes on", recipient_count=50), back=1, delivered=20, bounced=2)
    make_sent_notification(
        channel,
        title="cancelled",
        status="cancelled",
        started_at=None,
        recipient_count=0,
        delivered_count=0,
        bounced_count=0,
        finished_at=timezone.now(),
    )
    return alice


def listed(client, link):
    answer = client.get(link)
    assert answer.status_code == 200
    return answer.context["cl"].result_list


def sums(rows):
    return tuple(sum(row.ended_since[name] for row in rows) for name in ("delivered", "bounced"))


def figures(context):
    return {figure["name"]: figure for figure in context["figures"]}


def titles(rows):
    return {row.title for row in rows}


def test_the_lists_behind_delivered_and_bounced_add_up_to_their_figures(busy_day):
    client = signed_in(busy_day.members["viewer"])
    shown = figures(page(busy_day.members["viewer"], days=1).context)
    delivered = listed(client, shown["Delivered"]["url"])
    bounced = listed(client, shown["Bounced"]["url"])

    assert (shown["Delivered"]["value"], shown["Bounced"]["value"]) == (77, 8)
    assert sums(delivered) == (77, 8)
    assert titles(delivered) == {"today", "across", "goes on"}
    assert sums(bounced)[1] == 8
    assert titles(bounced) == {"today", "goes on"}


def test_the_list_behind_the_stopped_adds_up_to_their_figure(busy_day):
    channel = busy_day.channel
    ended(sent(channel, began=5, over=4, title="stopped"), back=4, delivered=1, stopped=60)
    sent(channel, began=5, over=4, title="test", only_subscription_id=uuid7())
    client = signed_in(busy_day.members["viewer"])
    shown = figures(page(busy_day.members["viewer"], days=1).context)
    found = listed(client, shown["Stopped"]["url"])

    assert (shown["Bounced"]["value"], shown["Stopped"]["value"]) == (8, 60)
    assert [(row.title, row.ended_since["stopped"]) for row in found] == [("stopped", 60)]
    assert "test" not in titles(listed(client, shown["Delivered"]["url"]))
    assert "Opted out" not in shown


def test_the_lists_behind_a_platforms_numbers_count_only_that_platform(busy_day):
    user = busy_day.members["viewer"]
    rows = page(user, channel=busy_day.channel.pk, days=1).context["platforms"]
    (ios,) = [row for row in rows if row["name"] == "ios"]

    found = listed(signed_in(user), ios["ended"][0]["url"])

    assert [each["value"] for each in ios["ended"]] == [7, 1, 0]
    assert titles(found) == {"today"}
    assert sums(found) == (7, 1)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"outcome": "bounced", "platform": "ios"}, {"today"}),
        ({"outcome": "bounced", "platform": "web"}, {"today", "across", "before", "goes on"}),
        ({"outcome": "delivered", "platform": "android"}, set()),
    ],
)
def test_an_outcome_on_a_platform_is_searched_without_a_period(busy_day, query, expected):
    client = signed_in(busy_day.members["viewer"])

    assert titles(listed(client, f"{NOTIFICATIONS}?{urlencode(query)}")) == expected


def test_a_longer_period_lists_more_notifications(busy_day):
    user = busy_day.members["viewer"]
    shown = figures(page(user, days=7).context)

    found = listed(signed_in(user), shown["Delivered"]["url"])

    assert titles(found) == {"today", "across", "before", "goes on"}
    assert sums(found) == (shown["Delivered"]["value"], shown["Bounced"]["value"])


def test_the_list_behind_sent_holds_notifications_that_ended_in_the_period(busy_day):
    user = busy_day.members["viewer"]
    url = figures(page(user, days=1).context)["Notifications sent"]["url"]

    assert titles(listed(signed_in(user), url)) == {"today", "across"}


def test_the_list_says_what_its_columns_count(busy_day):
    user = busy_day.members["viewer"]
    shown = figures(page(user, days=1).context)

    text = signed_in(user).get(shown["Bounced"]["url"]).content.decode()
    assert "45 delivered" not in text
    assert re.search(r"47 delivered, 6 bounced", text)
    assert "Notifications that were being sent at some time since" in text
    assert "Clicks are counted for each notification" not in text
    clicked = signed_in(user).get(shown["Clicked"]["url"]).content.decode()
    assert "Clicks are counted for each notification" in clicked
    assert "being sent at some time" not in signed_in(user).get(NOTIFICATIONS).content.decode()


def test_the_lists_behind_gained_and_lost_hold_the_subscribers_of_the_period(alice):
    user = alice.members["viewer"]
    add_crowd(alice.channel, 30)
    now, rows = timezone.now(), Subscription.objects.order_by("id")
    old, new, gone, long_gone = rows[0], rows[1], rows[2], rows[3]
    rows.update(created_at=now - timedelta(days=40), expired_at=None)
    Subscription.objects.filter(pk=new.pk).update(created_at=now - timedelta(hours=2))
    Subscription.objects.filter(pk=gone.pk).update(expired_at=now - timedelta(hours=2))
    Subscription.objects.filter(pk=long_gone.pk).update(expired_at=now - timedelta(days=30))

    context = page(user, channel=alice.channel.pk, days=7).context
    (web,), in_all = context["platforms"], figures(context)["Subscribers"]

    for links in (web, in_all):
        assert [row.pk for row in listed(signed_in(user), links["gained_url"])] == [new.pk]
        assert [row.pk for row in listed(signed_in(user), links["lost_url"])] == [gone.pk]
    assert old in listed(signed_in(user), web["url"])


def test_the_first_id_of_a_period_sorts_before_all_ids_made_in_it():
    now = timezone.now()
    assert uuid7_at(now - timedelta(seconds=1)) < Subscription().id < uuid7_at(now + timedelta(1))


def test_figures_of_all_channels_link_to_no_list_of_subscribers(alice):
    add_crowd(alice.channel, 3)
    counter_add(alice.channel.id, ios_subscribers=4)
    ChannelHour.objects.all().delete()
    user = alice.members["viewer"]
    context = page(user).context

    links = {figures(context)["Subscribers"]["url"], *(row["url"] for row in context["platforms"])}
    assert links == {reverse("admin:channels_app_channel_changelist")}
    assert {row["gained_url"] + row["lost_url"] for row in context["platforms"]} == {""}
    text = signed_in(user).get(links.pop()).content.decode()
    assert "Web 3 · iOS 4" in text


def test_every_figure_links_to_its_list_for_the_chosen_channel(alice):
    counter_add(alice.channel.id, web_subscribers=5)
    context = page(alice.members["viewer"], channel=alice.channel.pk).context
    client = signed_in(alice.members["viewer"])

    links = [each["url"] for each in context["figures"]]
    for platform in context["platforms"]:
        links += [platform[f"{name}url"] for name in ("", "gained_", "lost_", "recipients_")]
        links += [each["url"] for each in platform["ended"]]

    assert len(links) == 12
    for link in links:
        assert parse_qs(urlsplit(link).query)["channel__id__exact"] == [str(alice.channel.pk)]
        assert client.get(link).status_code == 200


@pytest.mark.parametrize("within", ["8", "-1", "x", "9" * 400, ""])
def test_an_unknown_period_hides_no_rows(busy_day, within):
    client = signed_in(busy_day.members["viewer"])

    assert len(listed(client, f"{NOTIFICATIONS}?within={within}")) == 5


def test_lists_of_a_period_take_few_queries(alice, root, django_assert_max_num_queries):
    for number in range(60):
        one = sent(alice.channel, began=3, over=2, title=f"{number}")
        OutcomeMinute.objects.create(
            notification=one, minute=hour(back=2), platform="web", code="", count=9
        )
    client = signed_in(root)
    for query in (
        "within=1",
        "within=90&outcome=delivered",
        "within=7&platform=web&outcome=bounced",
    ):
        with django_assert_max_num_queries(25):
            assert client.get(f"{NOTIFICATIONS}?{query}").status_code == 200

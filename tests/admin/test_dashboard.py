"""The dashboard: whose figures it shows, that they are right, and what it says needs attention."""

import json
import re
import time
from datetime import UTC, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
import redis
from django.urls import reverse
from django.utils import timezone

from channels_app.counters import counter_add
from channels_app.models import ApiKey, Channel, ChannelHour, ProviderCredential
from channels_app.services import api_key_issue, channel_create
from notifications_app import breakers, tasks
from notifications_app.attention import Kind, concerns
from notifications_app.models import Batch, HourlyStat, Notification, OutcomeMinute, Plan
from notifications_app.statistics import Changes, Outcomes, report, window
from notifications_app.under_way import due_next, sending
from pushsvc.common.redis_client import redis_client
from subscriptions_app.services import subscription_register, subscription_unsubscribe
from tests.admin.support import fill_hours, fill_subscribers, make_notification, signed_in

QUEUES = ("plan", "tick", "web", "android", "ios")


def page(user, **query):
    return signed_in(user).get(reverse("admin:index"), query)


def html(user, **query):
    answer = page(user, **query)
    assert answer.status_code == 200
    return answer.content.decode()


def everything_lives():
    for queue in QUEUES:
        redis_client().hset(f"pushsvc:workers:{queue}", "node", f"{time.time()}:2")
    redis_client().set("pushsvc:ticked", 1)


def hour(*, back=0):
    now = timezone.now().astimezone(UTC)
    return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=back)


def stat(channel, *, back=0, platform="web", **counts):
    HourlyStat.objects.create(channel=channel, platform=platform, hour=hour(back=back), **counts)


def all_of(house):
    return Channel.objects.filter(account=house.account)


def found(house, *kinds):
    """The concerns about a house's channels, of the kinds."""
    everything = concerns(all_of(house), now=timezone.now())
    return [each for each in everything if each.kind in kinds]


def running(channel, *, batches=(), is_planning=False, **fields):
    """A notification that is being sent, with a batch of each given status."""
    values = {
        "status": "processing",
        "started_at": timezone.now() - timedelta(seconds=100),
        "deadline_at": timezone.now() + timedelta(hours=1),
        "finished_at": None,
        "delivered_count": 0,
        "bounced_count": 0,
    }
    notification = make_notification(channel, **(values | fields))
    status = "planning" if is_planning else "delivering"
    plan = Plan.objects.create(
        notification=notification, channel=channel, platform="web", status=status
    )
    for each in batches:
        values = {"status": "ready", "recipient_count": 10, "push_service": "mozilla"} | each
        Batch.objects.create(
            plan=plan, notification=notification, channel=channel, platform="web", **values
        )
    return notification


# --- Whose figures --------------------------------------------------------------------------------


def test_a_member_sees_the_figures_of_the_own_account_and_root_those_of_all(alice, bob, root):
    counter_add(alice.channel.id, web_subscribers=111)
    counter_add(bob.channel.id, web_subscribers=222)

    assert page(alice.members["viewer"]).context["report"].totals.all_subscribers == 111
    assert page(bob.members["viewer"]).context["report"].totals.all_subscribers == 222
    assert page(root).context["report"].totals.all_subscribers == 333


@pytest.mark.parametrize("part", ["index", "dashboard_live", "dashboard_attention"])
def test_another_accounts_channel_cannot_be_chosen(alice, bob, part):
    client = signed_in(alice.members["owner"])
    address = reverse(f"admin:{part}")

    assert client.get(address, {"channel": bob.channel.pk}).status_code == 404
    assert client.get(address, {"channel": "nonsense"}).status_code == 404
    assert client.get(address, {"channel": alice.channel.pk}).status_code == 200


def test_nothing_of_another_account_is_on_any_part_of_it(alice, bob):
    running(bob.channel, title="Secret sale")
    make_notification(bob.channel, title="Secret plan", status="pending", started_at=None)
    ProviderCredential.objects.create(
        channel=bob.channel, platform="ios", secret_encrypted="x", paused_at=timezone.now()
    )
    client = signed_in(alice.members["owner"])

    for part in ("index", "dashboard_live", "dashboard_attention"):
        text = client.get(reverse(f"admin:{part}")).content.decode()
        assert "Secret" not in text
        assert str(bob.channel.pk) not in text
        assert bob.channel.name not in text


def test_staff_of_no_account_see_a_dashboard_without_figures(alice):
    loner = alice.members["owner"]
    loner.memberships.all().delete()
    counter_add(alice.channel.id, web_subscribers=111)

    answer = page(loner)

    assert answer.context["report"].totals.all_subscribers == 0
    assert answer.context["offered_channels"] == []
    assert "Ask an owner" in answer.content.decode()


@pytest.mark.parametrize("part", ["dashboard_live", "dashboard_attention"])
def test_who_is_not_signed_in_is_sent_to_sign_in(client, db, part):
    answer = client.get(reverse(f"admin:{part}"))

    assert answer.status_code == 302
    assert "login" in answer["Location"]


# --- Figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "unit", "entries"), [(1, "hour", 24), (7, "day", 7)])
def test_a_window_ends_with_the_hour_or_day_that_is_running(days, unit, entries):
    now = timezone.now()

    of = window(now, days)

    assert (of.unit, len(of.starts)) == (unit, entries)
    assert of.starts[-1] <= now < of.starts[-1] + of.step
    assert of.starts[0] - of.read_from == of.step * entries


def test_figures_are_the_sums_of_the_hours_of_the_window_and_of_the_one_before(alice):
    stat(alice.channel, back=0, recipients=10, delivered=8, bounced=2, clicked=1)
    stat(alice.channel, back=0, platform="ios", recipients=5, delivered=5)
    stat(alice.channel, back=23, recipients=1, delivered=1, clicked=1)
    stat(alice.channel, back=24, recipients=7, delivered=6, bounced=1)
    stat(alice.channel, back=47, recipients=3, delivered=3)
    stat(alice.channel, back=48, recipients=100, delivered=100)

    outcomes = report(all_of(alice), window(timezone.now(), 1)).outcomes

    assert outcomes.total == Outcomes(recipients=16, delivered=14, bounced=2, clicked=2)
    assert outcomes.before == Outcomes(recipients=10, delivered=9, bounced=1, clicked=0)
    assert outcomes.entries[-1] == Outcomes(15, 13, 2, 1)
    assert outcomes.entries[0] == Outcomes(1, 1, 0, 1)
    assert outcomes.total.bounced_share == 2 / 16
    assert outcomes.total.clicked_share == 2 / 14


def test_a_long_window_is_not_compared_and_does_not_read_what_was_before_it():
    of = window(timezone.now(), 90)

    assert (len(of.starts), of.is_compared, of.read_from) == (90, False, of.starts[0])


def test_shares_of_nothing_are_not_told(alice):
    total = report(all_of(alice), window(timezone.now(), 30)).outcomes.total

    assert (total.delivered_share, total.bounced_share, total.clicked_share) == (None,) * 3


def test_the_history_of_subscribers_leads_back_from_what_there_is_now(alice):
    Channel.objects.update(android_enabled=True)
    alice.channel.refresh_from_db()
    for number in range(3):
        subscription_register(channel=alice.channel, platform="android", address=f"phone-{number}")
    subscription_unsubscribe(channel=alice.channel, platform="android", address="phone-0")
    # All of it was five hours ago; an hour ago 10 came and 4 went.
    ChannelHour.objects.update(hour=hour(back=5))
    ChannelHour.objects.create(
        channel=alice.channel, hour=hour(back=1), shard=0, android_gained=10, android_lost=4
    )
    counter_add(alice.channel.id, android_subscribers=6)
    ChannelHour.objects.filter(hour=hour()).delete()

    of = report(all_of(alice), window(timezone.now(), 1))

    assert of.subscribers["android"] == [0] * 18 + [2] * 4 + [8] * 2
    assert of.subscribers["web"] == [0] * 24
    assert of.changes.total == Changes(gained=13, lost=5)
    assert of.totals.subscribers["android"] == 8


def test_every_figure_leads_to_its_list_of_the_chosen_channel(alice):
    counter_add(alice.channel.id, web_subscribers=5)
    context = page(alice.members["viewer"], channel=alice.channel.pk).context
    client = signed_in(alice.members["viewer"])

    links = [each["url"] for each in context["figures"]]
    for platform in context["platforms"]:
        links += [platform[name] for name in ("url", "gone_url", "notifications_url")]

    assert len(links) == 8
    for link in links:
        assert parse_qs(urlsplit(link).query)["channel__id__exact"] == [str(alice.channel.pk)]
        assert client.get(link).status_code == 200


@pytest.mark.parametrize("days", ["1", "7", "30", "90", "8", "-1", "x", "9" * 400])
def test_a_window_that_is_not_offered_is_a_week(alice, days):
    shown = page(alice.members["viewer"], days=days).context["scope"].days

    assert shown == (int(days) if days in {"1", "7", "30", "90"} else 7)


def test_charts_come_as_data_and_as_tables(alice):
    stat(alice.channel, back=3, recipients=40, delivered=37, bounced=3, clicked=5)

    text = html(alice.members["viewer"], days=1)

    (data,) = re.findall(
        r'<script id="dashboard-data" type="application/json">(.*?)</script>', text
    )
    drawn = {chart["name"]: chart for chart in json.loads(data)["charts"]}
    delivered = drawn["deliveries"]["lines"][1]
    assert (delivered["label"], sum(delivered["values"])) == ("Delivered", 37)
    assert '<td class="ps-number">37</td>' in text
    assert "<canvas" in text


def test_titles_and_names_are_escaped(alice):
    Channel.objects.filter(pk=alice.channel.pk).update(name="<script>alert(1)</script>")
    running(alice.channel, title="<img src=x onerror=alert(2)>")

    text = html(alice.members["viewer"])

    assert "<script>alert" not in text
    assert "<img src=x" not in text


# --- Under way ------------------------------------------------------------------------------------


def one_running(house):
    (only,) = sending(all_of(house))
    return only


def ended_lately(notification, count):
    minute = notification.started_at.replace(second=0, microsecond=0)
    OutcomeMinute.objects.create(
        notification=notification, minute=minute, platform="web", code="", count=count
    )


def test_while_recipients_are_counted_no_end_is_promised(alice):
    notification = running(
        alice.channel, is_planning=True, recipient_count=5000, delivered_count=500, batches=[{}]
    )
    ended_lately(notification, 500)

    only = one_running(alice)

    assert (only.stage, only.pace.seconds_left) == ("planning", None)
    assert only.pace.rate > 0
    assert "counting recipients" in html(alice.members["viewer"])


def test_the_time_left_follows_from_what_ended_lately(alice):
    notification = running(
        alice.channel, recipient_count=3000, delivered_count=900, bounced_count=100, batches=[{}]
    )
    ended_lately(notification, 1000)

    only = one_running(alice)

    assert only.stage == "sending"
    assert only.pace.rate == pytest.approx(10, rel=0.1)
    assert only.pace.seconds_left == pytest.approx(200, rel=0.1)
    assert (only.done, only.delivered_share) == (1000, 0.3)


def test_what_waits_says_what_for(alice):
    soon = timezone.now() + timedelta(minutes=5)
    retrying = running(alice.channel, batches=[{"due_at": soon}, {"status": "parked"}])
    parked = running(alice.channel, batches=[{"status": "parked"}])
    busy = running(alice.channel, batches=[{"due_at": soon}, {"status": "leased"}])

    stages = {each.notification.id: each.stage for each in sending(all_of(alice))}

    assert stages == {retrying.id: "retrying", parked.id: "parked", busy.id: "sending"}


def test_what_is_due_comes_soonest_first(alice):
    now = timezone.now()
    for hours in (5, 1, 3):
        make_notification(
            alice.channel,
            title=f"in {hours}",
            status="pending",
            scheduled_at=now + timedelta(hours=hours),
        )

    assert [str(each) for each in due_next(all_of(alice))] == ["in 1", "in 3", "in 5"]


def live(house):
    answer = signed_in(house.members["viewer"]).get(reverse("admin:dashboard_live"))
    return answer.content.decode()


def test_the_live_part_asks_again_while_something_is_sent_and_then_stops(alice):
    notification = running(alice.channel, batches=[{}])
    assert "every 2s" in live(alice)

    Notification.objects.filter(pk=notification.pk).update(
        status="sent", delivered_count=100, finished_at=timezone.now()
    )
    assert "hx-get" not in live(alice)


def test_the_live_part_wakes_when_the_next_is_due(alice):
    make_notification(
        alice.channel, status="pending", scheduled_at=timezone.now() + timedelta(seconds=90)
    )

    (seconds,) = re.findall(r"load delay:(\d+)s", live(alice))

    assert 80 < int(seconds) <= 93


# --- Attention ------------------------------------------------------------------------------------


def test_nothing_needs_attention_where_all_is_well(alice):
    everything_lives()
    fill_hours(alice.channel, days=9)
    running(alice.channel, batches=[{}, {"status": "leased"}])

    assert concerns(all_of(alice), now=timezone.now()) == []
    assert "All is well" in html(alice.members["viewer"])


def test_a_pause_is_told_in_the_push_services_words_with_the_way_to_mend_it(alice):
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


def test_a_platform_without_credentials_is_told(alice):
    Channel.objects.update(android_enabled=True)

    (concern,) = found(alice, Kind.CREDENTIALS_MISSING)

    assert concern.platform == "android"


@pytest.mark.parametrize(
    ("platform", "days", "is_old"),
    [("android", 91, True), ("android", 89, False), ("ios", 900, False)],
)
def test_only_googles_keys_grow_old(alice, platform, days, is_old):
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
def test_a_key_in_use_that_ends_soon_is_told(alice, days, is_used, is_told):
    now = timezone.now()
    key, _ = api_key_issue(channel=alice.channel, expires_at=now + timedelta(days=days))
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=now if is_used else None)

    assert bool(found(alice, Kind.API_KEY_ENDS)) is is_told


@pytest.mark.parametrize(
    ("before", "lately", "is_jump"),
    [
        ((990, 10), (900, 100), True),  # 1 % → 10 %
        ((990, 10), (2, 3), False),  # 3 of 5: too few to say anything
        ((900, 100), (830, 170), False),  # 10 % → 17 %: not twice
        ((990, 10), (960, 40), False),  # 1 % → 4 %: less than five points
        ((0, 0), (700, 300), True),  # nothing to compare with, but much
        ((0, 0), (900, 100), False),
        ((500, 500), (10, 990), False),  # it was as bad: 50 % → 99 %
    ],
)
def test_a_jump_in_bounces_is_told_and_no_other_change(alice, before, lately, is_jump):
    stat(alice.channel, back=72, delivered=before[0], bounced=before[1])
    stat(alice.channel, back=2, delivered=lately[0], bounced=lately[1])

    assert bool(found(alice, Kind.BOUNCES)) is is_jump


def test_bounces_are_compared_within_a_channel_and_platform(alice):
    other = channel_create(name="Quiet", account=alice.account)
    stat(alice.channel, back=72, delivered=990, bounced=10)
    stat(alice.channel, back=1, delivered=100_000, bounced=1000)
    stat(other, back=72, delivered=990, bounced=10)
    stat(other, back=1, delivered=400, bounced=100)

    (concern,) = found(alice, Kind.BOUNCES)

    assert concern.channel_id == other.id
    assert "20.0%" in concern.detail


@pytest.mark.parametrize(("seconds", "tones"), [(30, []), (120, ["warn"]), (1200, ["bad"])])
def test_batches_that_nobody_takes_are_told_by_how_long_they_wait(alice, seconds, tones):
    due_at = timezone.now() - timedelta(seconds=seconds)
    running(alice.channel, batches=[{"due_at": due_at}, {"status": "leased", "due_at": due_at}])

    queue = found(alice, Kind.QUEUE)

    assert [each.tone for each in queue] == tones
    assert all(each.title.startswith("10 recipients wait") for each in queue)


def test_a_notification_that_is_late_to_start_is_told(alice):
    for minutes in (-3, 3):
        make_notification(
            alice.channel,
            status="pending",
            scheduled_at=timezone.now() + timedelta(minutes=minutes),
        )

    (concern,) = found(alice, Kind.LATE_START)

    assert concern.title.endswith("late to start: 1")


@pytest.mark.parametrize("queue", ["plan", "tick", "web"])
def test_a_kind_of_worker_that_is_missing_is_told(alice, queue):
    everything_lives()
    assert found(alice, Kind.WORKERS_MISSING) == []

    redis_client().hset(f"pushsvc:workers:{queue}", "node", f"{time.time() - 60}:2")

    assert len(found(alice, Kind.WORKERS_MISSING)) == 1


def test_a_worker_of_a_platform_that_no_channel_uses_is_not_missed(alice):
    everything_lives()
    redis_client().delete("pushsvc:workers:android")
    assert found(alice, Kind.WORKERS_MISSING) == []

    Channel.objects.update(android_enabled=True)

    assert [each.platform for each in found(alice, Kind.WORKERS_MISSING)] == ["android"]


def test_beat_is_missed_until_a_tick_is_heard(alice):
    everything_lives()
    redis_client().delete("pushsvc:ticked")
    assert len(found(alice, Kind.BEAT_MISSING)) == 1

    tasks.tick()

    assert found(alice, Kind.BEAT_MISSING) == []


def test_a_push_service_that_fails_is_told(alice):
    everything_lives()
    breakers.record("mozilla", answered=0, outages=50)

    (concern,) = found(alice, Kind.SERVICE_AILING)

    assert "mozilla" in concern.title


def test_while_redis_is_away_no_worker_is_said_to_be_missing(alice, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    with pytest.raises(redis.RedisError):
        redis_client().ping()
    kinds = {each.kind for each in concerns(all_of(alice), now=timezone.now())}

    assert kinds == {Kind.REDIS_AWAY}


# --- First steps ----------------------------------------------------------------------------------


def steps(user, **query):
    return [step["is_done"] for step in page(user, **query).context["steps"]]


def test_a_new_installation_is_led_from_channel_to_snippet_to_test(root, db):
    assert steps(root) == [False, False, False]
    assert reverse("admin:channels_app_channel_add") in html(root)

    channel = channel_create(name="First")
    assert steps(root) == [True, False, False]
    assert reverse("admin:channel_snippet", args=[channel.pk]) in html(root)

    counter_add(channel.id, web_subscribers=1)
    assert steps(root) == [True, True, False]
    assert f"{reverse('admin:notification_compose')}?channel={channel.pk}" in html(root)

    counter_add(channel.id, notifications_sent=1)
    assert steps(root) == []


def test_a_viewer_is_not_offered_what_only_a_sender_may(alice):
    counter_add(alice.channel.id, web_subscribers=1)
    compose = reverse("admin:notification_compose") + "?channel="

    assert compose in html(alice.members["sender"])
    assert compose not in html(alice.members["viewer"])


# --- Cost -----------------------------------------------------------------------------------------


def many(house):
    """Channels, notifications in every state, and hours: much more than fits on the page."""
    everything_lives()
    channels = [house.channel] + [
        channel_create(name=f"Channel {number}", account=house.account) for number in range(15)
    ]
    Channel.objects.update(android_enabled=True, ios_enabled=True)
    for channel in channels:
        fill_subscribers(channel, 20)
        fill_hours(channel, days=4)
        running(channel, batches=[{"due_at": timezone.now() - timedelta(minutes=3)}] * 5)
        make_notification(channel, status="pending", scheduled_at=timezone.now())
        ProviderCredential.objects.create(
            channel=channel, platform="ios", secret_encrypted="x", paused_at=timezone.now()
        )


@pytest.mark.parametrize("part", ["index", "dashboard_live", "dashboard_attention"])
@pytest.mark.parametrize("who", ["root", "owner"])
def test_queries_stay_few_however_much_there_is(
    alice, root, django_assert_max_num_queries, part, who
):
    many(alice)
    client = signed_in(root if who == "root" else alice.members["owner"])

    with django_assert_max_num_queries(25):
        answer = client.get(reverse(f"admin:{part}"), {"days": 90})

    assert answer.status_code == 200

"""GET /channel/:id/statistics."""

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from urllib.parse import urlencode

import pytest
from django.conf import settings as django_settings
from django.db.models import BigIntegerField, F
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels_app.counters import counter_add
from channels_app.models import Channel, ChannelCounter, ChannelHour
from notifications_app.models import HourlyStat, Notification, Plan
from notifications_app.pipeline import counting
from notifications_app.reporting import hand_overs
from notifications_app.timing import Quiet, Timing
from pushsvc.common.platforms import Platform
from tests.api.support import code, errors
from tests.factories import make_sent_notification

pytestmark = pytest.mark.django_db
DAY = datetime(2024, 11, 20, tzinfo=UTC)
ZEROS = dict.fromkeys(
    (
        "recipients",
        "delivered",
        "bounced",
        "stopped",
        "opted_out",
        "expired",
        "deferred",
        "clicked",
    ),
    0,
)


def answer(owner, **query):
    return owner.call("GET", f"/channel/{owner.channel.id}/statistics?{urlencode(query)}")


def read(owner, **query):
    response = answer(owner, **query)
    assert response.status_code == 200, response.content
    return response.json()


def text(moment):
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def starts(entries):
    return list(dict.fromkeys(each["at"] for each in entries))


def ended(channel, at, *, first, last, **fields):
    """A notification with a first and a last hand-over these seconds after its time."""
    due = at - timedelta(seconds=last)
    times = {
        "created_at": due - timedelta(days=1),
        "scheduled_at": due,
        "first_hand_over_at": due + timedelta(seconds=first),
        "finished_at": at,
    }
    notification = make_sent_notification(channel, **fields)
    Notification.objects.filter(pk=notification.pk).update(**times | fields)
    hour, _ = ChannelHour.objects.get_or_create(channel=channel, hour=_hour(at), shard=0)
    ChannelHour.objects.filter(pk=hour.pk).update(notifications_sent=F("notifications_sent") + 1)


def _hour(moment):
    return moment.replace(minute=0, second=0, microsecond=0)


def test_each_hour_has_an_entry_for_each_platform(alice):
    noon = DAY.replace(hour=12)
    counts = {"recipients": 5, "delivered": 3, "bounced": 2, "deferred": 4, "clicked": 1}
    counts |= {"stopped": 1, "opted_out": 0, "expired": 1}
    HourlyStat.objects.create(channel=alice.channel, platform="ios", hour=noon, **counts)
    gains = {"android_gained": 7, "android_lost": 2, "notifications_sent": 3}
    ChannelHour.objects.create(channel=alice.channel, hour=noon, shard=1, **gains)
    ChannelHour.objects.create(channel=alice.channel, hour=noon, shard=2, **gains)

    found = read(alice, **{"from": text(noon), "to": text(noon + timedelta(hours=1))})

    at = text(noon)
    assert found == {
        "outcomes": [
            {"at": at, "platform": "web"} | ZEROS,
            {"at": at, "platform": "android"} | ZEROS,
            {"at": at, "platform": "ios"} | counts,
        ],
        "subscribers": [
            {"at": at, "platform": "web", "gained": 0, "lost": 0},
            {"at": at, "platform": "android", "gained": 14, "lost": 4},
            {"at": at, "platform": "ios", "gained": 0, "lost": 0},
        ],
        "notifications": [{"at": at, "sent": 6}],
        "hand_over": [],
    }


def test_a_platform_limits_the_entries_of_platforms(alice):
    found = read(alice, platform="android", interval="day", to=text(DAY))

    assert {each["platform"] for each in found["outcomes"] + found["subscribers"]} == {"android"}
    assert len(found["outcomes"]) == len(found["notifications"]) == 30


@pytest.mark.parametrize(
    ("interval", "since", "until", "first", "last"),
    [
        ("hour", "10:00", "12:00", "10:00", "11:00"),
        ("hour", "10:59", "12:01", "10:00", "12:00"),
        ("day", "10:59", "12:01", "00:00", "00:00"),
    ],
)
def test_steps_are_whole_hours_or_days_of_utc(alice, interval, since, until, first, last):
    query = {"from": f"2024-11-20T{since}", "to": f"2024-11-20T{until}", "interval": interval}

    at = starts(read(alice, **query)["outcomes"])

    assert (at[0], at[-1]) == (f"2024-11-20T{first}:00.000Z", f"2024-11-20T{last}:00.000Z")


def test_without_a_period_it_is_the_last_24_hours_or_30_days(alice):
    hours, days = read(alice), read(alice, interval="day")

    now = _hour(timezone.now().astimezone(UTC))
    assert starts(hours["outcomes"])[0] <= text(now - timedelta(days=1))
    assert len(starts(hours["outcomes"])) in {24, 25}
    assert len(starts(days["outcomes"])) in {30, 31}


def test_there_are_no_steps_of_the_future(alice):
    now = timezone.now().astimezone(UTC).replace(microsecond=0)
    far = now + timedelta(days=300)

    found = read(alice, **{"from": text(now - timedelta(hours=1)), "to": text(far)})

    assert len(starts(found["outcomes"])) in {2, 3}
    empty = read(alice, **{"from": text(far - timedelta(days=1)), "to": text(far)})
    assert not any(empty.values())
    assert not any(read(alice, **{"from": text(far)}).values())


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"from": "2024-11-20T10:00", "to": "2024-11-20T10:00"}, ("to", "out_of_range")),
        ({"from": "2026-01-01T00:00", "to": "2026-03-25T08:00:01"}, ("from", "out_of_range")),
        ({"from": "0001-01-01T00:00", "interval": "day"}, ("from", "out_of_range")),
        ({"to": "0001-01-01T00:00"}, ("to", "out_of_range")),
        ({"from": "yesterday"}, ("from", "not_a_timestamp")),
        ({"interval": "week"}, ("interval", "not_a_choice")),
        ({"platform": "windows"}, ("platform", "not_a_choice")),
        ({"form": "2024-11-20T10:00"}, ("form", "unknown_field")),
    ],
)
def test_a_query_that_cannot_be_answered_is_an_error(alice, query, error):
    response = answer(alice, **query)

    assert code(response, 400) == "validation_error"
    assert errors(response) == [error]


def test_a_response_has_2000_steps(alice):
    found = read(alice, **{"from": "2026-01-01T00:00", "to": "2026-03-25T08:00"})

    assert len(starts(found["outcomes"])) == 2_000


def test_hand_overs_are_percentiles_of_the_notifications_that_ended_in_a_step(alice):
    for number in range(21):
        ended(alice.channel, DAY.replace(hour=3, minute=number), first=number, last=10 * number)

    found = read(alice, **{"from": text(DAY), "to": text(DAY + timedelta(days=1))})

    at = text(DAY.replace(hour=3))
    assert found["hand_over"] == [
        {"at": at, "which": "first", "p50_seconds": 10, "p95_seconds": 19, "notifications": 21},
        {"at": at, "which": "last", "p50_seconds": 100, "p95_seconds": 190, "notifications": 21},
    ]


def test_the_time_of_a_notification_that_was_sent_too_late_begins_with_its_send(alice):
    at = DAY.replace(hour=3)
    ended(alice.channel, at, first=1, last=2)
    Notification.objects.update(
        created_at=at - timedelta(seconds=2), scheduled_at=at - timedelta(days=9)
    )

    found = read(alice, **{"from": text(at), "to": text(at + timedelta(hours=1))})["hand_over"]

    assert [each["p50_seconds"] for each in found] == [1, 2]


@pytest.mark.parametrize(
    "fields",
    [
        {"paused_seconds": 1},
        {"stopped_at": DAY},
        {"first_hand_over_at": None},
        {"status": "failed"},
    ],
)
def test_what_staff_paused_or_nobody_got_is_not_counted(alice, fields):
    ended(alice.channel, DAY.replace(hour=3), first=1, last=2)
    Notification.objects.update(**fields)

    found = read(alice, **{"from": text(DAY), "to": text(DAY + timedelta(days=1))})

    assert found["hand_over"] == []
    assert sum(each["sent"] for each in found["notifications"]) == 1


QUIET = {"from": "22:00", "to": "08:00"}


def by_its_owner(*, quiet=None, local_at=None):
    return Timing(
        timezone="UTC", local_at=local_at, quiet=Quiet.of(quiet), quiet_from="send"
    ).stored()


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"rate_per_minute": 60}, 0),
        ({"timing": by_its_owner(local_at="09:00")}, 1),
        ({"timing": by_its_owner(quiet=QUIET)}, 2),
        ({"timing": by_its_owner(quiet=QUIET), "has_targets": True}, 0),
    ],
    ids=["rate", "local time", "after quiet hours", "targets with quiet hours"],
)
def test_what_waited_for_its_time_is_not_counted(alice, fields, part):
    ended(alice.channel, DAY.replace(hour=3), first=1, last=2)
    Notification.objects.update(**fields)
    _planned(Notification.objects.get(), part)

    found = read(alice, **{"from": text(DAY), "to": text(DAY + timedelta(days=1))})

    assert found["hand_over"] == []


@pytest.mark.parametrize(
    "fields",
    [
        {"rate_per_minute": 0},
        {"timing": by_its_owner(local_at="09:00")},
        {"timing": by_its_owner(quiet=QUIET)},
        {"timing": by_its_owner(), "has_targets": True},
        {"has_targets": True},
    ],
    ids=["without a rate", "local time at once", "quiet hours by day", "ignored", "targets"],
)
def test_what_was_sent_at_once_is_counted(alice, fields):
    ended(alice.channel, DAY.replace(hour=3), first=1, last=2)
    Notification.objects.update(**fields)
    _planned(Notification.objects.get(), 0)

    found = read(alice, **{"from": text(DAY), "to": text(DAY + timedelta(days=1))})

    assert [each["notifications"] for each in found["hand_over"]] == [1, 1]


def _planned(notification, part):
    Plan.objects.create(
        notification=notification,
        channel=notification.channel,
        platform="web",
        part=part,
        release_at=DAY,
        deadline_at=DAY,
    )


def test_hand_overs_are_read_of_the_newest_steps_with_a_bounded_number(alice, monkeypatch):
    monkeypatch.setattr(hand_overs, "MOST_READ", 2)
    for hour in (1, 5, 7):
        ended(alice.channel, DAY.replace(hour=hour), first=1, last=2)

    query = {"from": text(DAY), "to": text(DAY + timedelta(days=1))}
    assert starts(read(alice, **query)["hand_over"]) == [
        text(DAY.replace(hour=hour)) for hour in (5, 7)
    ]
    monkeypatch.setattr(hand_overs, "MOST_READ", 0)
    assert read(alice, **query)["hand_over"] == []


COUNTS = ("recipients", "delivered", "bounced", "clicked")
HOURS = 48


@st.composite
def changes(draw):
    """An hour, and what happens in it: the name of a counter, its platform, how often."""
    platform = draw(st.sampled_from(list(Platform)))
    counters = (*COUNTS, "notifications_sent", f"{platform}_subscribers")
    name, least = draw(st.sampled_from(counters)), 0
    if name.endswith("_subscribers"):
        least = -9
    return draw(st.integers(0, HOURS - 1)), name, platform, draw(st.integers(least, 9))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    made=st.lists(changes(), max_size=12),
    cuts=st.sets(st.integers(1, HOURS - 1), max_size=3),
    interval=st.sampled_from(["hour", "day"]),
    platforms=st.sampled_from([[""], list(Platform)]),
)
def test_the_sums_of_all_steps_are_the_totals(alice, made, cuts, interval, platforms):
    """However requests divide the time and the platforms."""
    for model in (HourlyStat, ChannelHour, ChannelCounter):
        model.objects.all().delete()
    for change in made:
        _happen(alice.channel, *change)
    step = 24 if interval == "day" else 1
    bounds = sorted({0, HOURS, *(cut // step * step for cut in cuts)})

    parts = [
        read(
            alice,
            **{"from": text(_at(first)), "to": text(_at(last)), "interval": interval},
            **({"platform": platform} if platform else {}),
        )
        for first, last in pairwise(bounds)
        for platform in platforms
    ]

    totals = alice.call("GET", f"/channel/{alice.channel.id}").json()
    stats = totals["notification_stats"]
    for name in COUNTS:
        sums = sum(each[name] for part in parts for each in part["outcomes"])
        assert sums == stats[f"total_{name}"]
    net = sum(each["gained"] - each["lost"] for part in parts for each in part["subscribers"])
    assert net == totals["subscriber_count"]
    sent = sum(each["sent"] for part in parts for each in part["notifications"])
    assert sent == stats["total_notifications_sent"] * len(platforms)


def _happen(channel, hour, name, platform, count):
    """As the service counts it, but in another hour than this one."""
    counter_add(channel.id, **{name: count})
    if name == "clicked":  # events.py adds it in a longer statement
        values = {"channel": channel, "platform": platform, "hour": _hour(timezone.now())}
        HourlyStat.objects.create(**values, clicked=count)
    elif name in COUNTS:
        counting.hourly_add({(channel.id, platform): Counter({name: count})})
    _move(HourlyStat, "platform", _at(hour))
    _move(ChannelHour, "shard", _at(hour))


def _move(model, key, to):
    """Adds the rows of this hour to those of another."""
    names = [each.name for each in model._meta.fields if isinstance(each, BigIntegerField)]
    for row in model.objects.filter(hour__gte=_at(HOURS)):
        known = {"channel": row.channel, key: getattr(row, key), "hour": to}
        counts = {name: getattr(row, name) for name in names}
        if not model.objects.filter(**known).update(
            **{name: F(name) + count for name, count in counts.items()}
        ):
            model.objects.create(**known, **counts)
        row.delete()


def _at(hour):
    return DAY + timedelta(hours=hour)


def test_figures_of_other_channels_are_not_added(alice, bob):
    at = DAY.replace(hour=3)
    HourlyStat.objects.create(channel=bob.channel, platform="web", hour=at, recipients=5)
    ended(bob.channel, at, first=1, last=2)
    assert Channel.objects.count() == 2

    found = read(alice, **{"from": text(DAY), "to": text(DAY + timedelta(days=1))})

    assert not any(each["recipients"] for each in found["outcomes"])
    assert not any(each["sent"] for each in found["notifications"])
    assert found["hand_over"] == []


def of_the_docs(name):
    """The object with this field among those that docs/statistics.md shows."""
    page = (django_settings.BASE_DIR / "docs" / "statistics.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return next(each for each in map(json.loads, shown) if name in each)


def as_infinity(owner, query, since, until):
    """The rows that Grafana's data source Infinity makes of the response: it fills in the range of
    the dashboard, selects the list and the columns, and converts each by its type. What it cannot
    convert is null there, and an error here."""
    address = query["url"].replace("CHANNEL", str(owner.channel.id))
    for macro, moment in (("${__from:date:iso}", since), ("${__to:date:iso}", until)):
        assert macro in address
        address = address.replace(macro, text(moment))
    response = owner.call("GET", address.removeprefix("https://push.example.com"))
    assert response["Content-Type"] == "application/json"
    rows = response.json()[query["root_selector"]]
    return [{each["text"]: _converted(row, each) for each in query["columns"]} for row in rows]


def _converted(row, column):
    value = row[column["selector"]]
    if column["type"] == "timestamp":
        return datetime.fromisoformat(value)
    assert (column["type"], type(value)) in {("number", int), ("number", float), ("string", str)}
    return value


def test_grafana_draws_the_figures_with_the_query_of_the_docs(alice):
    for hour, delivered in ((3, 8), (5, 13)):
        at = {"platform": "web", "hour": DAY.replace(hour=hour)}
        HourlyStat.objects.create(channel=alice.channel, **at, delivered=delivered, clicked=2)
    # The range of a dashboard begins and ends at any moment.
    since, until = DAY.replace(hour=3, minute=7, second=9, microsecond=5000), DAY.replace(hour=6)

    drawn = as_infinity(alice, of_the_docs("refId"), since, until)

    assert drawn == [
        {"Time": DAY.replace(hour=3), "Delivered": 8, "Bounced": 0, "Clicked": 2},
        {"Time": DAY.replace(hour=4), "Delivered": 0, "Bounced": 0, "Clicked": 0},
        {"Time": DAY.replace(hour=5), "Delivered": 13, "Bounced": 0, "Clicked": 2},
    ]


def test_the_example_of_the_docs_is_a_response(alice):
    """It has the fields of a real one, in their order."""
    ended(alice.channel, DAY, first=1, last=2)
    query = {"from": text(DAY), "to": text(DAY + timedelta(days=1)), "interval": "day"}
    found = read(alice, **query, platform="web")

    example = of_the_docs("outcomes")

    assert [list(each) for each in _entries(example)] == [list(each) for each in _entries(found)]
    assert list(example) == list(found)


def _entries(response):
    return [entry for entries in response.values() for entry in entries]

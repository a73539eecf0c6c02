"""POST /send-notification: the schedule."""

from datetime import timedelta

import pytest

from notifications_app.models import Notification
from pushsvc.common.ids import uuid7
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.models import Subscription
from tests import factories
from tests.api.support import accepted, errors

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("2031-01-02T03:04:05.678Z", "2031-01-02T03:04:05.678Z"),
        ("2031-01-02T03:04:05", "2031-01-02T03:04:05.000Z"),
        ("2031-01-02T03:04:05.678901Z", "2031-01-02T03:04:05.678Z"),
        ("2031-01-02T03:04+02:00", "2031-01-02T01:04:00.000Z"),
        ("20310102T030405Z", "2031-01-02T03:04:05.000Z"),
        ("2031-W01-4T03:04:05Z", "2031-01-02T03:04:05.000Z"),
        ("2031-002T03:04:05Z", "2031-01-02T03:04:05.000Z"),
        ("2031-01-01T24:00:00Z", "2031-01-02T00:00:00.000Z"),
        ("1999-12-31T23:59:59Z", "1999-12-31T23:59:59.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_the_scheduled_time_is_stored_and_answered(alice, given, shown):
    response = alice.send({"body": "x", "scheduled_at": given})
    assert response.json()["scheduled_at"] == shown
    read = alice.call("GET", f"/notification/{response.json()['notification_id']}").json()
    assert read["scheduled_at"] == shown


@pytest.mark.parametrize(
    "given",
    [
        "",
        "tomorrow",
        "2031-01-02",
        "2031-02-30T00:00:00Z",
        "2031-01-02T25:00:00Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "2031-01-02T03:04:05Z\n",
        "1925000000",
        1_925_000_000,
        [],
    ],
)
def test_an_invalid_time_is_refused(alice, given):
    error = "not_a_timestamp" if isinstance(given, str) else "not_a_string"
    assert errors(alice.send({"body": "x", "scheduled_at": given})) == [("scheduled_at", error)]


def test_the_time_of_acceptance_is_the_same_in_every_answer(alice):
    sent = alice.send({"body": "x"}).json()
    read = alice.call("GET", f"/notification/{sent['notification_id']}").json()
    assert read["scheduled_at"] == read["created_at"] == sent["scheduled_at"]


def waiting_wakeups():
    return redis_client().llen("plan")


@pytest.mark.django_db(transaction=True)
def test_the_planner_is_woken_up_only_for_a_send_that_is_due(alice):
    alice.send({"body": "x", "scheduled_at": "2031-01-01T00:00:00Z"})
    assert waiting_wakeups() == 0
    alice.send({"body": "x", "scheduled_at": "2001-01-01T00:00:00Z"})
    assert waiting_wakeups() == 1


@pytest.mark.django_db(transaction=True)
def test_no_wakeup_is_sent_for_a_refused_request(alice):
    alice.send({"body": "x", "segment_id": str(uuid7())})
    alice.send({"body": "x", "dry_run": True})
    assert waiting_wakeups() == 0


# By local time

EAST, WEST = "Etc/GMT-3", "Etc/GMT+5"  # three hours east, five hours west of UTC


def local(alice, local_at, **fields):
    return alice.send({"body": "x", "local_at": local_at, **fields})


def with_zones(channel, *zones):
    return factories.add_each(channel, [{"timezone": each} for each in zones])


def test_a_send_by_local_time_is_scheduled_for_its_first_time_zone(alice):
    with_zones(alice.channel, EAST, WEST, WEST)
    sent = local(alice, "09:00", scheduled_at="2031-01-02T00:00:00Z").json()
    assert sent["scheduled_at"] == "2031-01-02T06:00:00.000Z"
    of_a_day = local(alice, "2031-12-24T18:00").json()
    assert of_a_day["scheduled_at"] == "2031-12-24T15:00:00.000Z"
    details = alice.call("GET", f"/notification/{sent['notification_id']}/details").json()
    assert details["timing"]["local_at"] == "09:00"
    assert details["timing"]["zones_too_late"] == 0


def test_devices_without_a_time_zone_have_that_of_the_channel(alice):
    with_zones(alice.channel, "")
    alice.channel.timezone = "America/New_York"
    alice.channel.save()
    assert local(alice, "2031-12-24T18:00").json()["scheduled_at"] == "2031-12-24T23:00:00.000Z"


def test_a_dry_run_shows_the_releases(alice):
    alice.channel.android_enabled = True
    alice.channel.save()
    with_zones(alice.channel, EAST, "Asia/Riyadh", WEST)
    factories.add_each(alice.channel, [{"platform": "android", "timezone": WEST}])
    found = local(
        alice, "2031-12-24T18:00", dry_run=True, target_platforms=["web", "android"]
    ).json()
    assert found["releases"] == [
        {"release_at": "2031-12-24T15:00:00.000Z", "timezones": 2, "platforms": ["web"]},
        {"release_at": "2031-12-24T23:00:00.000Z", "timezones": 1, "platforms": ["web", "android"]},
    ]
    assert "releases" not in alice.send({"body": "x", "dry_run": True}).json()


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"local_at": ""}, ("local_at", "blank")),
        ({"local_at": "9:00"}, ("local_at", "not_a_local_time")),
        ({"local_at": "2031-12-24T18:00Z"}, ("local_at", "not_a_local_time")),
        ({"local_at": "2031-02-29T18:00"}, ("local_at", "not_a_local_time")),
        ({"local_at": 900}, ("local_at", "not_a_string")),
        ({"local_at": "9999-12-24T18:00"}, ("local_at", "out_of_range")),
        ({"local_at": "0001-12-24T18:00"}, ("local_at", "out_of_range")),
        (
            {"local_at": "2031-12-24T18:00", "scheduled_at": "2031-01-01T00:00:00Z"},
            ("local_at", "not_combinable"),
        ),
        (
            {"local_at": "18:00", "scheduled_at": "9999-01-01T00:00:00Z"},
            ("scheduled_at", "out_of_range"),
        ),
        (
            {"local_at": "2031-12-24T18:00", "expires_at": "2031-12-24T15:00:00Z"},
            ("expires_at", "out_of_range"),
        ),
    ],
)
def test_an_invalid_local_time_is_refused(alice, fields, error):
    with_zones(alice.channel, EAST, WEST)
    for dry_run in (False, True):
        assert errors(alice.send({"body": "x", "dry_run": dry_run, **fields})) == [error]


def test_sends_by_local_time_count_as_waiting(alice, settings):
    settings.PENDING_PER_CHANNEL = 1
    assert local(alice, "2031-12-24T18:00").status_code == 202
    assert local(alice, "09:00").json()["code"] == "too_many_pending"


def edited(alice, sent, **changes):
    path = f"/notification/{sent['notification_id']}"
    response = alice.call("PATCH", path, changes)
    assert response.status_code == 200, response.json()
    return Notification.objects.get()


def test_the_local_time_can_be_edited_and_other_edits_keep_it(alice):
    with_zones(alice.channel, EAST, WEST)
    sent = local(alice, "09:00", scheduled_at="2031-01-02T00:00:00Z").json()
    before = Notification.objects.get()

    same = edited(alice, sent, local_at="09:00", scheduled_at="2031-01-02T00:00:00Z")
    assert same.edited_at is None
    assert edited(alice, sent, body="y").timing == before.timing

    later = edited(alice, sent, local_at="10:00")
    assert later.scheduled_at - before.scheduled_at == timedelta(hours=1)
    moved = edited(alice, sent, scheduled_at="2031-01-03T00:00:00Z")
    assert moved.scheduled_at - later.scheduled_at == timedelta(days=1)
    of_a_day = edited(alice, sent, local_at="2031-12-24T18:00")
    assert of_a_day.scheduled_at.isoformat() == "2031-12-24T15:00:00+00:00"
    at_once = edited(alice, sent, local_at=None, scheduled_at="2031-01-03T00:00:00Z")
    assert at_once.timing is None
    assert at_once.scheduled_at.isoformat() == "2031-01-03T00:00:00+00:00"
    again = edited(alice, sent, local_at="09:00")
    assert again.scheduled_at.isoformat() == "2031-01-03T06:00:00+00:00"


def test_the_zones_of_targets_alone_count(alice):
    rows = with_zones(alice.channel, EAST, WEST)
    sent = local(alice, "2031-12-24T18:00", subscription_ids=[str(rows[1].id)]).json()
    assert sent["scheduled_at"] == "2031-12-24T23:00:00.000Z"
    changed = edited(alice, sent, subscription_ids=[str(rows[0].id)])
    assert changed.scheduled_at.isoformat() == "2031-12-24T15:00:00+00:00"


# Quiet hours

AFTERNOON = {"from": "12:00", "to": "18:00"}


def test_a_dry_run_and_the_details_show_quiet_hours(alice):
    with_zones(alice.channel, EAST, WEST)
    fields = {"scheduled_at": "2031-12-24T12:00:00Z", "quiet_hours": AFTERNOON}  # 15:00, 07:00
    assert alice.send({"body": "x", "dry_run": True, **fields}).json()["releases"] == [
        {"release_at": "2031-12-24T12:00:00.000Z", "timezones": 1, "platforms": ["web"]},
        {"release_at": "2031-12-24T15:00:00.000Z", "timezones": 1, "platforms": ["web"]},
    ]
    sent = alice.send({"body": "x", **fields}).json()["notification_id"]
    details = alice.call("GET", f"/notification/{sent}/details").json()
    assert details["timing"]["quiet_hours"] == AFTERNOON


def test_a_send_in_the_last_year_that_dates_have_is_answered(alice):
    with_zones(alice.channel, "", "Pacific/Kiritimati", "Pacific/Niue")
    at = "9999-12-31T23:59:59.999Z"
    body = {"body": "x", "scheduled_at": at, "quiet_hours": {"from": "22:00", "to": "08:00"}}
    dry = alice.call("POST", "/send-notification", {**body, "dry_run": True})
    assert [each["release_at"] for each in dry.json()["releases"]] == [at]
    explained = alice.call(
        "POST",
        f"/channel/{alice.channel.id}/explain",
        {"send": body, "subscription_id": str(Subscription.objects.first().pk)},
    )
    assert explained.status_code == 200, explained.content


def test_quiet_hours_of_the_channel_are_those_of_a_send_that_does_not_ignore_them(alice):
    with_zones(alice.channel, EAST)
    settings = {"timezone": "UTC", "rate_per_minute": None, "category_required": False}
    address = f"/channel/{alice.channel.id}/delivery-settings"
    alice.call("PUT", address, {**settings, "quiet_hours": AFTERNOON})
    body = {"body": "x", "dry_run": True, "scheduled_at": "2031-12-24T12:00:00Z"}
    for quiet_hours in (None, "channel"):
        (release,) = alice.send({**body, "quiet_hours": quiet_hours}).json()["releases"]
        assert release["release_at"] == "2031-12-24T15:00:00.000Z"
    assert "releases" not in alice.send({**body, "quiet_hours": "ignore"}).json()


@pytest.mark.parametrize(
    ("quiet_hours", "error"),
    [
        ("never", ("quiet_hours", "not_a_choice")),
        (22, ("quiet_hours", "not_a_choice")),
        ({}, ("quiet_hours.from", "required")),
        ({"from": "22:00"}, ("quiet_hours.to", "required")),
        ({"from": "10pm", "to": "08:00"}, ("quiet_hours.from", "not_a_local_time")),
        ({"from": "22:00", "to": "24:00"}, ("quiet_hours.to", "not_a_local_time")),
        ({"from": "22:00", "to": "2031-12-24T08:00"}, ("quiet_hours.to", "not_a_local_time")),
        ({"from": "", "to": "08:00"}, ("quiet_hours.from", "not_a_local_time")),
        ({"from": "22:00", "to": "22:00"}, ("quiet_hours.to", "out_of_range")),
        ({"from": "22:00", "to": "08:00", "on": "SA"}, ("quiet_hours.on", "unknown_field")),
    ],
)
def test_invalid_quiet_hours_are_refused(alice, quiet_hours, error):
    for dry_run in (False, True):
        body = {"body": "x", "dry_run": dry_run, "quiet_hours": quiet_hours}
        assert error in errors(alice.send(body))


# --- caps -----------------------------------------------------------------------------------------


def test_a_send_says_whether_caps_count(alice):
    type(alice.channel).objects.filter(pk=alice.channel.pk).update(caps=CAPS)
    kept = [
        accepted(alice, {"body": "Hello", **given}).caps
        for given in ({}, {"cap": "respect"}, {"cap": None}, {"cap": "ignore"})
    ]
    assert kept == [CAPS, CAPS, CAPS, []]
    assert errors(alice.send({"body": "Hello", "cap": "on"})) == [("cap", "not_a_choice")]


def test_a_dry_run_says_how_many_are_capped(alice):
    assert "capped" not in alice.send({"body": "Hello", "dry_run": True}).json()
    type(alice.channel).objects.filter(pk=alice.channel.pk).update(caps=CAPS)
    found = alice.send({"body": "Hello", "dry_run": True}).json()
    assert found["capped"] == {"size": 0, "estimated": False}
    assert "capped" not in alice.send({"body": "Hello", "dry_run": True, "cap": "ignore"}).json()


CAPS = [{"limit": 3, "hours": 24}]

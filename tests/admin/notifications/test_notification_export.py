"""The list of notifications, filtered by date, and its CSV export."""

import csv
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse

from notifications_app.admin.export import COLUMNS
from pushsvc.common.http.csv_files import zoned
from tests.admin.support import signed_in
from tests.factories import make_sent_notification

LIST = reverse("admin:notifications_app_notification_changelist")
EXPORT = reverse("admin:notification_export")


@pytest.fixture
def viewer(alice):
    return signed_in(alice.members["viewer"])


def due(channel, day, **fields):
    """A notification due at the first moment of a day, and one at the last."""
    for clock in ((0, 0, 0), (23, 59, 59)):
        moment = datetime(2026, 11, day, *clock, tzinfo=UTC)
        make_sent_notification(channel, title=f"day {day}", scheduled_at=moment, **fields)


def exported(client, **query):
    answer = client.get(EXPORT, query)
    assert answer.status_code == 200
    text = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(text.splitlines()))


def test_the_list_filters_by_days_in_utc(viewer, alice):
    for day in (19, 20, 21):
        due(alice.channel, day)

    def listed(**query):
        return sorted({row.title for row in viewer.get(LIST, query).context["cl"].result_list})

    assert listed() == ["day 19", "day 20", "day 21"]
    assert listed(**{"from": "2026-11-20"}) == ["day 20", "day 21"]
    assert listed(until="2026-11-20") == ["day 19", "day 20"]
    assert len(exported(viewer, **{"from": "2026-11-20", "until": "2026-11-20"})) == 2
    for wrong in ("x", "2026-02-30", "9999-12-31", "٢"):
        assert viewer.get(LIST, {"until": wrong}).status_code == 200
    assert 'type="date" name="from"' in viewer.get(LIST).content.decode()


def test_the_list_filters_by_days_of_the_readers_time_zone(viewer, alice):
    """The filter *24 Nov* returned *23 Nov, 23:30*."""
    for title, hour in (("23 Nov, 23:30", 7), ("24 Nov, 00:30", 8), ("24 Nov, 23:30", 31)):
        moment = datetime(2026, 11, 24, tzinfo=UTC) + timedelta(hours=hour, minutes=30)
        make_sent_notification(alice.channel, title=title, scheduled_at=moment)
    viewer.cookies["browser-time-zone"] = "America/Los_Angeles"

    def listed():
        query = {"from": "2026-11-24", "until": "2026-11-24"}
        return {row.title for row in viewer.get(LIST, query).context["cl"].result_list}

    assert listed() == {"24 Nov, 00:30", "24 Nov, 23:30"}
    answer = viewer.post(reverse("admin:time_zone"), {"zone": "Asia/Tokyo"}, follow=True)
    assert 'data-zone="Asia/Tokyo" data-zone-is-chosen' in answer.content.decode()
    assert listed() == {"23 Nov, 23:30", "24 Nov, 00:30"}
    viewer.post(reverse("admin:time_zone"), {"zone": "x"})
    assert listed() == {"24 Nov, 00:30", "24 Nov, 23:30"}


@pytest.mark.parametrize("name", ["", "x", "../UTC", "europe/berlin"])
def test_an_unknown_time_zone_of_a_cookie_is_utc(viewer, name):
    viewer.cookies["browser-time-zone"] = name

    assert 'data-zone="UTC"' in viewer.get(LIST).content.decode()


def test_times_of_the_export_are_on_the_clock_that_its_headings_name(viewer, alice):
    moment = datetime(2026, 11, 24, 7, 30, tzinfo=UTC)
    make_sent_notification(alice.channel, scheduled_at=moment, started_at=None)
    viewer.cookies["browser-time-zone"] = "America/Los_Angeles"

    (row,) = exported(viewer)

    assert row["scheduled_at (America/Los_Angeles)"] == "2026-11-23 23:30:00"
    assert row["started_at (America/Los_Angeles)"] == ""


def test_the_export_has_the_rows_of_the_list(viewer, alice, bob):
    due(bob.channel, 20)
    row = make_sent_notification(alice.channel, title="=1+1", body="two\nlines", clicked_count=7)
    make_sent_notification(alice.channel, status="failed")

    found = exported(viewer, status__exact="sent")

    assert [list(each) for each in found] == [zoned(COLUMNS, ZoneInfo("UTC"))]
    assert found[0] | {"body": ""} == {
        "notification_id": str(row.id),
        "channel": alice.channel.name,
        "name": "",
        "labels": "",
        "title": "'=1+1",
        "body": "",
        "status": "sent",
        "target_platforms": "web",
        "segment_id": "",
        "scheduled_at (UTC)": f"{row.scheduled_at:%Y-%m-%d %H:%M:%S}",
        "started_at (UTC)": f"{row.started_at:%Y-%m-%d %H:%M:%S}",
        "finished_at (UTC)": f"{row.finished_at:%Y-%m-%d %H:%M:%S}",
        "recipient_count": "100",
        "delivered_count": "97",
        "is_test": "False",
        "bounced_count": "3",
        "stopped_count": "0",
        "opted_out_count": "0",
        "expired_count": "0",
        "received_count": "0",
        "clicked_count": "7",
        "dismissed_count": "0",
    }


def test_the_export_link_keeps_the_filters(viewer, alice):
    page = viewer.get(LIST, {"from": "2026-11-20", "p": "1"}).content.decode()

    assert f'href="{EXPORT}?from=2026-11-20"' in page


def test_the_export_continues_over_several_pages(viewer, alice, monkeypatch):
    monkeypatch.setattr("notifications_app.admin.export._PAGE", 2)
    rows = [make_sent_notification(alice.channel) for _ in range(5)]

    found = [each["notification_id"] for each in exported(viewer)]

    assert found == [str(row.id) for row in reversed(rows)]


@pytest.mark.parametrize("query", [{"x": "1"}, {"from": "\x00"}, {"status__exact": "\x00"}])
def test_an_export_with_an_unknown_filter_is_refused(viewer, query):
    assert viewer.get(EXPORT, query).status_code == 400

"""`sql.insert` leaves out what the database stores by itself, and writes the same row as `save`."""

import re
from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from notifications_app.models import Notification
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from tests.factories import make_channel

pytestmark = pytest.mark.django_db

MOMENT = datetime(2026, 11, 20, 15, 11, tzinfo=UTC)
USUAL = {"body": "Fresh bread", "ttl": 60, "target_platforms": ["web"]}
OWN = {"id", "created_at"}  # not the same in two rows
ROWS = {
    "usual": {},
    "every kind of value": {
        "title": "Bread",
        "data": {"a": "b"},
        "data_names": ["a"],
        "category": "offers",
        "has_targets": True,
        "segment_id": uuid7(),
        "scheduled_at": MOMENT,
        "expires_at": MOMENT,
        "paused_seconds": 5,
        "received_count": 7,
        "request_id": "abc",
    },
}


def stored(row):
    values = Notification.objects.filter(pk=row.pk).values().get()
    return {name: value for name, value in values.items() if name not in OWN}


def insert(**fields):
    values = {"id": uuid7(), "channel_id": make_channel().pk, "data": {}, **USUAL, **fields}
    return sql.insert(Notification, values)


@pytest.mark.parametrize("fields", ROWS.values(), ids=ROWS)
def test_a_row_is_stored_as_save_stores_it(fields):
    given = {"scheduled_at": MOMENT, **USUAL, **fields}
    inserted = insert(**given)
    saved = Notification(channel=inserted.channel, **given)
    saved.save(force_insert=True)

    assert stored(inserted) == stored(saved)


def test_the_row_that_is_returned_is_as_it_is_stored():
    row = insert(**ROWS["every kind of value"])

    read = Notification.objects.get(pk=row.pk)
    assert vars(row) | {"_state": None} == vars(read) | {"_state": None}


def test_what_most_sends_leave_as_it_is_is_left_to_the_database():
    with CaptureQueriesContext(connection) as captured:
        insert(title="", urgency="normal")

    named = re.search(r"notification \((.*?)\) VALUES", captured[-1]["sql"])[1].split(", ")
    assert set(named) == {"id", "channel_id", "body", "data", "ttl", "target_platforms"}


def test_what_the_database_adds_is_read():
    row = insert()

    assert row.scheduled_at == stored(row)["scheduled_at"]
    assert not row._state.adding


def test_a_value_that_must_be_there_is_not_left_out():
    with pytest.raises(DatabaseError, match="ttl"):
        insert(ttl=None)

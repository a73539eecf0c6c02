"""Moments of the database, as Python reads them."""

from datetime import UTC, datetime

import psycopg
import pytest
from django.db import DataError, connection
from psycopg.pq import Format

from pushsvc.common.store import sql
from pushsvc.common.store.postgresql.base import UtcLoader

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-20 15:11:00.123456+00", datetime(2026, 11, 20, 15, 11, 0, 123456, UTC)),
        ("2026-07-01 12:00:00+02", datetime(2026, 7, 1, 10, tzinfo=UTC)),
        ("0001-01-01 00:00:00+00", datetime.min.replace(tzinfo=UTC)),
        ("9999-12-31 23:59:59.999999+00", datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_a_moment_is_read_in_utc(text, moment):
    [(read,)] = sql.rows("SELECT %(text)s::timestamptz", {"text": text})
    assert read == moment
    assert read.tzinfo is UTC


def test_a_moment_that_python_cannot_hold_is_an_error():
    with pytest.raises(DataError):
        sql.rows("SELECT 'infinity'::timestamptz", {})


def test_every_cursor_reads_moments_with_the_quick_loader():
    with connection.cursor() as cursor:
        loader = cursor.adapters.get_loader(psycopg.adapters.types["timestamptz"].oid, Format.TEXT)
    assert loader is UtcLoader

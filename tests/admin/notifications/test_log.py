"""The log of recipients: complete, and safe to open in a spreadsheet."""

import csv
from io import StringIO

import pytest
from auditlog.models import LogEntry
from django.db import connection
from django.urls import reverse

from notifications_app.admin import log
from notifications_app.models import Batch, Delivery
from pushsvc.common.ids import uuid7
from tests.factories import make_plan, make_sent_notification


def log_of(notification):
    return reverse("admin:notification_log", args=[notification.pk])


def rows_of(answer):
    return list(csv.DictReader(StringIO(b"".join(answer).decode())))


@pytest.fixture
def notification(alice):
    made = make_sent_notification(alice.channel)
    plan = make_plan(made)
    made.batch = Batch.objects.create(
        plan=plan, notification=made, channel=alice.channel, platform="web", push_service="fcm"
    )
    return made


def deliver(notification, **fields):
    return Delivery.objects.create(
        notification_id=notification.pk,
        batch_id=notification.batch.pk,
        **{"subscription_id": uuid7()} | fields,
    )


def test_each_recipient_has_a_row_with_its_outcome(viewer, notification):
    at = notification.finished_at
    # Recipients of one millisecond have no order.
    one, two, three = sorted(uuid7() for _ in range(3))
    ended = {"finished_at": at, "clicked_at": at}
    deliver(notification, subscription_id=one, status=1, attempts=1, **ended)
    gone = {"status": 2, "code": "endpoint_gone", "detail": "410", "attempts": 2}
    deliver(notification, subscription_id=two, **gone)
    deliver(notification, subscription_id=three)
    deliver_elsewhere = Delivery.objects.create(
        notification_id=uuid7(), subscription_id=uuid7(), batch_id=notification.batch.pk
    )

    rows = rows_of(viewer.get(log_of(notification)))

    assert [row["subscription_id"] for row in rows] == [str(one), str(two), str(three)]
    assert str(deliver_elsewhere.subscription_id) not in str(rows)
    assert [row["outcome"] for row in rows] == ["delivered", "bounced", "waiting"]
    assert rows[0]["finished_at (UTC)"] == rows[0]["clicked_at (UTC)"] != ""
    assert (rows[1]["code"], rows[1]["detail"], rows[1]["attempts"]) == (
        "endpoint_gone",
        "410",
        "2",
    )
    assert (rows[2]["platform"], rows[2]["finished_at (UTC)"]) == ("web", "")


def test_every_recipient_is_read_once_over_all_pages(viewer, notification, monkeypatch):
    monkeypatch.setattr(log, "_PAGE", 3)
    made = {str(deliver(notification).subscription_id) for _ in range(10)}
    found = [row["subscription_id"] for row in rows_of(viewer.get(log_of(notification)))]
    assert len(found) == 10
    assert set(found) == made


def test_rows_are_read_while_they_are_sent(viewer, notification, monkeypatch):
    monkeypatch.setattr(log, "_PAGE", 1)
    for _ in range(3):
        deliver(notification)
    answer = viewer.get(log_of(notification))
    parts = iter(answer)
    assert next(parts).startswith(b"subscription_id,")
    before = len(connection.queries_log)
    connection.force_debug_cursor = True
    next(parts)
    assert len(connection.queries_log) == before + 1
    connection.force_debug_cursor = False
    assert len(list(parts)) == 2


@pytest.mark.parametrize(
    "words",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")', "=1,2\n3"),
        *("\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)"),
    ],
)
def test_no_cell_is_a_formula(viewer, notification, words):
    deliver(notification, status=2, code="refused", detail=words)
    (row,) = rows_of(viewer.get(log_of(notification)))
    assert row["detail"].startswith("'")
    assert row["detail"][1:].replace("\r\n", "\n") == words.replace("\r\n", "\n")


@pytest.mark.parametrize("sign", ["=", "\uff1d"])
@pytest.mark.parametrize("separator", [";", "\t", "|", "\n", ';"', "; "])
def test_no_part_of_a_cell_is_a_formula_for_another_separator(
    viewer, notification, separator, sign
):
    """Spreadsheets of many countries separate cells by semicolons."""
    deliver(notification, status=2, code="refused", detail=f"x{separator}{sign}1+1")
    (row,) = rows_of(viewer.get(log_of(notification)))
    assert row["detail"] == f"x{separator}'{sign}1+1"


@pytest.mark.parametrize("words", ["1 - 2", "a=b", "x;y", "mail me@example.com"])
def test_a_cell_without_a_formula_stays_as_it_is(viewer, notification, words):
    deliver(notification, status=2, code="refused", detail=words)
    (row,) = rows_of(viewer.get(log_of(notification)))
    assert row["detail"] == words


def test_a_download_has_a_file_name_and_an_entry_in_the_audit_log(viewer, notification, alice):
    answer = viewer.get(log_of(notification))
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert f'filename="notification-{notification.pk}.csv"' in answer.headers["Content-Disposition"]
    rows_of(answer)
    entry = LogEntry.objects.get(object_pk=str(notification.pk))
    assert entry.actor == alice.members["viewer"]

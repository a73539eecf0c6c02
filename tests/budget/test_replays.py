"""Thousands of repeated reports with one valid token, and thousands of invalid tokens."""

import json
from base64 import urlsafe_b64encode
from os import urandom

import pytest
from django.test import Client

from pushsvc.common.store import sql
from pushsvc.common.store.redis_client import redis_client
from tests.api.events import counts, reached

pytestmark = pytest.mark.django_db(transaction=True)

EVENTS = ("received", "clicked", "dismissed")
# Who wrote or locked a row last: both change if a report as much as locks it.
MARKS = """
SELECT 'batch', id::text, xmin::text, xmax::text FROM notifications_app_batch
UNION ALL SELECT 'delivery', subscription_id::text, xmin::text, xmax::text
  FROM notifications_app_delivery
UNION ALL SELECT 'notification', id::text, xmin::text, xmax::text
  FROM notifications_app_notification
ORDER BY 1, 2
"""


def report(tokens, address="203.0.113.7"):
    events = [{"token": token, "event": event} for token in tokens for event in EVENTS][:20]
    return Client().post(
        "/events",
        json.dumps({"events": events}),
        content_type="application/json",
        headers={"X-Forwarded-For": address},
    )


@pytest.fixture
def tokens(alice):
    """Tokens of several notifications, so that a report locks several rows in order."""
    return [token for _ in range(6) for token in reached(alice, 1, url="https://a.example/")[1]]


def test_a_token_replayed_thousands_of_times_counts_once_and_writes_nothing_more(
    alice, tokens, django_assert_max_num_queries
):
    notification, (token,) = reached(alice, 1, url="https://a.example/")
    assert report([token]).status_code == report(tokens).status_code == 204
    before = sql.rows(MARKS, {})

    for _ in range(50):  # 18 and 3 events each
        with django_assert_max_num_queries(5):
            assert report(tokens).status_code == 204
        with django_assert_max_num_queries(1):
            assert report([token]).status_code == 204
    for _ in range(50):
        with django_assert_max_num_queries(2):
            assert Client().get(f"/c/{token}").status_code == 302

    assert counts(notification) == (1, 1, 1)
    assert sql.rows(MARKS, {}) == before


def test_thousands_of_forged_tokens_leave_only_keys_that_expire(
    tokens, settings, django_assert_num_queries
):
    settings.TRUSTED_PROXIES = 1
    before = sql.rows(MARKS, {})
    redis_client().flushdb()

    with django_assert_num_queries(0):
        for number in range(50):  # 20 events each, from a network of its own for each request
            forged = [urlsafe_b64encode(urandom(48)).decode() for _ in range(20)]
            answer = report(forged, address=f"198.51.100.{number}")
            assert answer.status_code == 204
        for _ in range(200):
            assert Client().get(f"/c/{forged[0]}").status_code in {404, 429}

    keys = redis_client().keys("*")
    assert len(keys) <= 51
    assert [key for key in keys if redis_client().ttl(key) == -1] == []
    assert sql.rows(MARKS, {}) == before

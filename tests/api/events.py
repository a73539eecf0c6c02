"""Notifications that have reached browsers, and the events that these report."""

import json

from django.test import Client

from notifications_app.content.tracking import make_token
from tests.factories import add_subscriptions, make_notification
from tests.pipeline.support import plan


def reached(owner, count, **fields):
    rows = add_subscriptions(owner.channel, count)
    notification = make_notification(owner.channel, **fields)
    plan(notification)
    return notification, [make_token(notification.id, row.id) for row in rows]


def report(*events, address="203.0.113.7", content_type="application/json", **headers):
    """Each event is (token, event)."""
    body = {"events": [{"token": token, "event": event} for token, event in events]}
    return Client(REMOTE_ADDR=address).post(
        "/events", json.dumps(body), content_type=content_type, headers=headers
    )


def counts(notification):
    notification.refresh_from_db()
    return (
        notification.received_count,
        notification.clicked_count,
        notification.dismissed_count,
    )


def without_id(answer):
    """The answer's headers, without the id of its request."""
    return {name: value for name, value in answer.headers.items() if name != "X-Request-ID"}

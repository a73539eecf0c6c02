"""Notifications whose recipients click, and what runs meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from django.db import transaction

from notifications_app.events import Event, EventKind
from notifications_app.pipeline.transitions import Transition
from notifications_app.states import DeliveryStatus
from tests import factories
from tests.pipeline import support


def planned(channel, count, **fields):
    """A notification to devices that are never called, and a click of each."""
    rows = factories.add_subscriptions(channel, count)
    notification = factories.make_notification(channel, **fields)
    support.plan(notification)
    return notification, [Event(notification.id, row.id, EventKind.CLICKED) for row in rows]


def planned_on_every_platform(channel, count):
    """A notification to so many devices of each platform that are never called; its events."""
    services = {"web": "mozilla", "android": "fcm_v1", "ios": "apns"}
    rows = [
        row
        for platform, service in services.items()
        for row in factories.add_subscriptions(
            channel, count, platform=platform, push_service=service
        )
    ]
    notification = factories.make_notification(channel, target_platforms=list(services))
    support.plan(notification)
    return notification, [
        Event(notification.id, row.id, kind) for row in rows for kind in EventKind.values
    ]


def claimed(notification):
    """The lease of its batch, and what a worker would write for each recipient."""
    transitions = [
        Transition(support.due(row), DeliveryStatus.DELIVERED, attempts=1)
        for row in support.deliveries(notification)
    ]
    return support.claim(), transitions


def reported(notification):
    notification.refresh_from_db()
    return (
        notification.received_count,
        notification.clicked_count,
        notification.dismissed_count,
    )


@contextmanager
def meanwhile(call):
    """Runs `call` beside a transaction that is open in the test and ends with the block. The
    call must wait for that transaction, and must not fail."""

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            yield
            called = pool.submit(support.closing_connection(call))
            support.until(support.waiting_sessions)
        called.result(timeout=60)

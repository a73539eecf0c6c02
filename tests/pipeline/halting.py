"""Notifications that are planned, paused and stopped."""

from datetime import timedelta

from django.db.models import F
from django.db.models.functions import Now

from notifications_app.delivery.types import Accepted
from notifications_app.models import Delivery, Notification, Plan
from notifications_app.pipeline import outcomes, plan_queue
from notifications_app.pipeline.transitions import Limits, transition_of
from notifications_app.sends.services import (
    notification_pause,
    notification_resume,
    notification_stop,
)
from tests import factories
from tests.pipeline import support

HOUR = timedelta(hours=1)


def pause(notification):
    return notification_pause(channel_id=notification.channel_id, notification_id=notification.id)


def resume(notification):
    return notification_resume(channel_id=notification.channel_id, notification_id=notification.id)


def stop(notification):
    return notification_stop(channel_id=notification.channel_id, notification_id=notification.id)


def planned(channel, subscribers=4, **fields):
    factories.add_subscriptions(channel, subscribers)
    notification = factories.make_notification(channel, **fields)
    support.plan(notification)
    return notification


def half_planned(channel, settings):
    """A notification of which two of four subscriptions are planned."""
    settings.PLAN_WINDOW = 2
    factories.add_subscriptions(channel, 4)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    lease = support.claim_plan()
    assert support.plan_window(lease)
    return notification, lease


def began(notification, ago):
    """Moves the beginning of its pause so far into the past, and with it the release of its
    parts."""
    Notification.objects.filter(pk=notification.pk).update(paused_at=Now() - ago)
    plans = Plan.objects.filter(notification=notification)
    plans.update(halted_at=Now() - ago, release_at=F("release_at") - ago)


def record(lease):
    """Records one outcome, as a worker does. Returns whether the worker is told to make no more
    calls."""
    row = Delivery.objects.filter(batch_id=lease.batch_id, status=0).first()
    due = support.due(row)
    limits = Limits(lease.claimed_at + HOUR, 12, 3600)
    change = transition_of(
        due, Accepted(), registered_at=lease.claimed_at, now=lease.now(), limits=limits
    )
    return outcomes.record([lease], [change]).is_halted

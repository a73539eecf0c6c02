"""Notifications in two parts, which no feature of today makes: tests make them as a start would."""

from datetime import timedelta

from django.db.models.functions import Now

from notifications_app.models import Plan
from notifications_app.pipeline import plan_queue
from tests import factories, segments

PRO = segments.attribute("plan", "eq", "pro")


def subscribers(channel, pro, free):
    return factories.add_each(
        channel,
        [{"attributes": {"plan": plan}} for plan in ["pro"] * pro + ["free"] * free],
    )


def in_parts(channel, *, later=timedelta(), **fields):
    """A notification that has started, and its parts: `pro` at once, everybody `later`."""
    notification = factories.make_notification(channel, **fields)
    plan_queue.start_due()
    first = notification.plans.get()
    Plan.objects.filter(pk=first.pk).update(rule=PRO)
    rest = Plan.objects.create(
        notification=notification,
        channel=channel,
        platform=first.platform,
        part=1,
        release_at=first.release_at + later,
        due_at=first.release_at + later,
        deadline_at=first.deadline_at + later,
    )
    notification.refresh_from_db()
    return notification, first, rest


def release(plan):
    Plan.objects.filter(pk=plan.pk).update(release_at=Now(), due_at=Now())

"""Notifications that a planner starts, claims and plans."""

from django.db.models.functions import Now

from notifications_app.models import Batch, Delivery, Notification, Plan
from notifications_app.pipeline import plan_queue, planning
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support

_TABLES = ", ".join(each._meta.db_table for each in (Batch, Notification, Plan))


def planned_for_one(channel, count):
    """Planned notifications with one recipient each."""
    factories.add_subscriptions(channel, 1)
    for _ in range(count):
        factories.make_notification(channel)
    support.plan()


def quiet_hours():
    """PostgreSQL may believe from now on that nothing waits, and that whatever was there was
    done."""
    planned_for_one(factories.make_channel(), 240)
    Batch.objects.update(status="done", finished_at=Now(), delivered_count=1)
    Plan.objects.update(status="done")
    ended = {"status": "sent", "finished_at": Now(), "recipient_count": 1, "delivered_count": 1}
    Notification.objects.update(**ended)
    sql.execute(f"ANALYZE {_TABLES}", {})
    Notification.objects.all().delete()
    Delivery.objects.all().delete()
    sql.execute(f"ANALYZE {_TABLES}", {})


def started(channel, count, **fields):
    notifications = [factories.make_notification(channel, **fields) for _ in range(count)]
    plan_queue.start_due()
    return notifications


def noted_calls(monkeypatch, name):
    """The positional arguments of each call of planning's function, in a list that grows."""
    noted = []
    call = getattr(planning, name)

    def note(*arguments, **options):
        noted.append(arguments)
        return call(*arguments, **options)

    monkeypatch.setattr(planning, name, note)
    return noted


def claim(most=100):
    return plan_queue.claim_plans(most=most)


def planned(leases):
    return {lease.notification_id for lease in leases}


def recipients(notifications):
    return [len(support.planned_ids(each)) for each in notifications]

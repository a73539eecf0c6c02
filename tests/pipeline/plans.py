"""Notifications that a planner starts, claims and plans."""

from notifications_app.pipeline import plan_queue, planning
from tests import factories
from tests.pipeline import support


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

"""Automations that are fired, their days, and who waits for them."""

from datetime import timedelta

from django.db.models import F
from django.db.models.functions import Now

from notifications_app.models import (
    Automation,
    AutomationDay,
    AutomationEntry,
    Notification,
    Plan,
)
from notifications_app.sends import firing
from notifications_app.sends.automations import automation_update
from notifications_app.sends.stored_sends import loaded
from tests import factories
from tests.pipeline import support

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def fire():
    """Fires as a worker does, until nothing is due. The minute has passed."""
    Automation.objects.update(fire_at=Now())
    assert firing.work(seconds=60) is False


def send():
    support.plan()
    support.deliver()


def automated(channel, **changes):
    automation = factories.make_automation(channel)
    return changed(automation, **changes) if changes else automation


def changed(automation, **changes):
    given = {
        "name": automation.name,
        "send": loaded(automation.send),
        "trigger": automation.trigger,
        "delay_minutes": automation.delay_minutes,
        "recipient": automation.recipient,
        "once_per_days": automation.once_per_days,
    }
    own = {"channel_id": automation.channel_id, "automation_id": automation.pk}
    return automation_update(**own, **given | changes)


def waiting():
    return AutomationEntry.objects.count()


def days(automation):
    """[{count: number}] without zeros."""
    own = AutomationDay.objects.filter(automation=automation).order_by("begins_at")
    counted = [each.skipped | {"fired": each.fired} for each in own]
    return [{name: count for name, count in each.items() if count} for each in counted]


def made(channel):
    return list(Notification.objects.filter(channel=channel).order_by("pk"))


def passed(by=DAY):
    """Lets the time pass for the days and keepers of automations."""
    AutomationDay.objects.update(begins_at=F("begins_at") - by, ends_at=F("ends_at") - by)
    keepers = Plan.objects.filter(driver="slice", part=0)
    keepers.update(release_at=F("release_at") - by, due_at=F("due_at") - by)


def ended_day(sandbox, channel):
    """The day's notification, which one browser got, and which ended with the day."""
    factories.subscribe_browsers(sandbox, channel, 1)
    fire()
    send()
    passed()
    send()
    (notification,) = made(channel)
    return notification

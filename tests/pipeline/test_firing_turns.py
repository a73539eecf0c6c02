"""Whose turn it is when automations and newsfeeds of several channels have much to do."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from notifications_app.models import Automation, AutomationEntry, Notification
from notifications_app.sends import automation_firing, firing
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline.support import logged, most_rows_read, tick

pytestmark = pytest.mark.django_db
SLICE = 2


@pytest.fixture(autouse=True)
def slices(monkeypatch):
    monkeypatch.setattr(automation_firing, "SLICE_TARGETS", SLICE)


@pytest.fixture
def turns(monkeypatch):
    """The names of the automations in the order in which they were fired, and "newsfeeds"."""
    own, fire, publish = [], automation_firing._fire, firing.publish_next

    def noting_fire(automation):
        own.append(automation.name)
        return fire(automation)

    def noting_publish():
        own.append("newsfeeds")
        return publish()

    monkeypatch.setattr(automation_firing, "_fire", noting_fire)
    monkeypatch.setattr(firing, "publish_next", noting_publish)
    return own


def automated(name, *, waiting=0, ago):
    """An automation that has been due for these minutes, in a channel of its own."""
    automation = factories.make_automation(factories.make_channel(name), name)
    fire_at = Now() - timedelta(minutes=ago)
    Automation.objects.filter(pk=automation.pk).update(fire_at=fire_at)
    AutomationEntry.objects.bulk_create(
        AutomationEntry(automation=automation, subscription_id=uuid7(), due_at=Now())
        for _ in range(waiting)
    )
    return automation


def fire():
    assert firing.work(seconds=60) is False


def of_automations(turns):
    return [each for each in turns if each != "newsfeeds"]


def test_automations_with_more_take_turns(turns):
    automated("Large", waiting=3 * SLICE, ago=3)
    automated("Also large", waiting=2 * SLICE, ago=2)
    automated("Small", waiting=1, ago=1)
    fire()
    first = ["Large", "Also large", "Small"]
    assert of_automations(turns)[:5] == [*first, "Large", "Also large"]
    assert not AutomationEntry.objects.exists()


def test_a_tick_does_not_read_who_waits_for_one_automation_for_each_of_the_others(channel):
    """PostgreSQL knows that everybody who waits is due."""
    for _ in range(40):
        factories.make_automation(factories.make_channel())
    crowded = factories.make_automation(channel)
    AutomationEntry.objects.bulk_create(
        AutomationEntry(automation=crowded, subscription_id=uuid7(), due_at=Now())
        for _ in range(3000)
    )
    sql.execute("ANALYZE notifications_app_automation, notifications_app_automationentry", {})
    Automation.objects.filter(pk=crowded.pk).update(fire_at=Now() + timedelta(minutes=1))

    assert most_rows_read(tick) < 100


def test_an_automation_with_many_notifications_to_read_takes_turns(turns):
    follower = automated("Follower", ago=2)
    automated("Small", waiting=1, ago=1)
    trigger = {"event": "notifications.unclicked", "about": {"hours": 24}}
    own = Automation.objects.filter(pk=follower.pk)
    own.update(**trigger, read_until=Now() - timedelta(hours=26))
    for _ in range(3):
        factories.make_notification(follower.channel)
    Notification.objects.update(status="sent", finished_at=Now() - timedelta(hours=25))
    fire()
    assert of_automations(turns) == ["Follower", "Small", "Follower", "Follower", "Follower"]


def test_an_automation_whose_statement_is_cancelled_delays_no_other(turns, monkeypatch, caplog):
    automated("Slow", waiting=1, ago=2)
    automated("Small", waiting=1, ago=1)
    judge = automation_firing._judge

    def judge_slowly(automation, *arguments, **named):
        if automation.name == "Slow":
            sql.rows("SET LOCAL statement_timeout = 1; SELECT pg_sleep(60)", {})
        return judge(automation, *arguments, **named)

    with monkeypatch.context() as slow:
        slow.setattr(automation_firing, "_judge", judge_slowly)
        fire()
    assert of_automations(turns) == ["Slow", "Small"]
    assert AutomationEntry.objects.get().automation.is_enabled
    (warning,) = logged(caplog, "automation.cancelled")
    assert "statement_timeout" in warning.remedy

    Automation.objects.update(fire_at=Now())
    fire()
    assert not AutomationEntry.objects.exists()


def test_newsfeeds_have_a_turn_after_each_slice(turns):
    automated("Large", waiting=3 * SLICE, ago=1)
    fire()
    assert turns[:4] == ["Large", "newsfeeds"] * 2

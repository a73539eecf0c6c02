"""Which events of devices an automation follows: tags, clicks, and clicks that are missing."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from notifications_app.content.values import Content, SendRequest
from notifications_app.events import Event, events_record
from notifications_app.models import Automation, AutomationEntry, Delivery, Notification
from notifications_app.sends import unclicked as unclicked_module
from notifications_app.sends.services import notification_accept
from notifications_app.states import DeliveryStatus
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from subscriptions_app.tags.services import TagChange, device_tags_change, tag_members_change
from tests import factories
from tests.pipeline import support
from tests.pipeline.automations import (
    HOUR,
    automated,
    changed,
    ended_day,
    fire,
    send,
    waiting,
)


def test_a_tag_is_followed_when_a_device_gets_it_and_not_when_it_has_it(channel):
    automation = automated(channel, trigger={"event": "subscriptions.tagged", "tag": "cart"})
    device, other = factories.add_subscriptions(channel, 2)
    with transaction.atomic():
        device_tags_change(device.pk, TagChange(added=["cart", "news"]))
    named = {"external_ids": [], "subscription_ids": [device.pk, other.pk], "remove": False}
    tag_members_change(channel=channel, tag="cart", **named)
    tag_members_change(channel=channel, tag="news", **named)
    entries = AutomationEntry.objects.filter(automation=automation).order_by("pk")
    assert list(entries.values_list("subscription_id", flat=True)) == [device.pk, other.pk]


@pytest.mark.parametrize(
    ("about", "is_followed"),
    [
        ({}, True),
        ({"label": "sale"}, True),
        ({"label": "sal"}, False),
        ({"name": "June"}, True),
        ({"name": "July", "label": "sale"}, False),
        ({"action": "buy"}, True),
        ({"action": "later"}, False),
    ],
)
def test_the_first_click_of_a_notification_is_followed(channel, about, is_followed):
    automated(channel, trigger={"event": "notifications.clicked", **about})
    (device,) = factories.add_subscriptions(channel, 1)
    buttons = [{"id": "buy", "title": "Buy"}]
    campaign = factories.make_notification(
        channel, name="June", labels=["sale"], extras={"actions": buttons}
    )
    support.plan()
    for _ in range(2):
        events_record([Event(campaign.pk, device.pk, "clicked", "buy")])
    assert waiting() == is_followed
    AutomationEntry.objects.all().delete()


def ended(sandbox, channel, ago=timedelta(hours=25), **fields):
    """A campaign that ended so long ago, and its four devices. The first clicked it, and it could
    not be delivered to the second."""
    devices = factories.subscribe_browsers(sandbox, channel, 4)
    devices[1][0].behave("gone")
    campaign = factories.make_notification(channel, **fields)
    support.plan()
    support.deliver()
    rows = [row for _, row in devices]
    events_record([Event(campaign.pk, rows[0].pk, "clicked")])
    finished(campaign, ago)
    return campaign, rows


def finished(notification, ago):
    own = Notification.objects.filter(pk=notification.pk)
    own.update(finished_at=Now() - ago, first_hand_over_at=Now() - ago)


def noted():
    return set(AutomationEntry.objects.values_list("subscription_id", flat=True))


def unclicked(channel, **about):
    """An automation that follows what was not clicked within a day, and is an hour old."""
    trigger = {"event": "notifications.unclicked", "hours": 24, **about}
    automation = automated(channel, trigger=trigger, delay_minutes=60)
    Automation.objects.update(read_until=F("read_until") - timedelta(hours=2))
    return automation


@pytest.mark.parametrize("most", [1, 2, 100])
def test_who_got_a_notification_and_did_not_click_it_in_time_is_noted_once(
    sandbox, channel, monkeypatch, most
):
    _, rows = ended(sandbox, channel)
    ended(sandbox, channel, ago=timedelta(hours=23))
    ended(sandbox, channel, ago=timedelta(hours=30))
    unclicked(channel)
    monkeypatch.setattr(unclicked_module, "SLICE_TARGETS", most)
    for _ in range(2):
        fire()
        assert noted() == {rows[2].pk, rows[3].pk}
        assert waiting() == 2


def unclicked_recipients():
    delivered = Delivery.objects.filter(status=DeliveryStatus.DELIVERED, clicked_at=None)
    return set(delivered.values_list("subscription_id", flat=True))


def test_notifications_that_ended_at_one_moment_are_each_read_once(sandbox, channel):
    for _ in range(2):
        ended(sandbox, channel)
    Notification.objects.update(finished_at=sql.now() - timedelta(hours=25))
    unclicked(channel)
    fire()
    assert noted() == unclicked_recipients()
    AutomationEntry.objects.all().delete()
    fire()
    assert waiting() == 0


def test_a_notification_that_is_not_followed_is_looked_at_once(sandbox, channel):
    other, _ = ended(sandbox, channel, name="Other")
    automation = unclicked(channel, name="June")
    fire()
    automation.refresh_from_db()
    other.refresh_from_db()
    assert automation.read_until > other.finished_at


def test_a_notification_that_ends_after_later_ones_is_read_once_too(sandbox, channel):
    _, rows = ended(sandbox, channel, ago=timedelta(hours=23))
    ended(sandbox, channel)
    unclicked(channel)
    fire()
    assert waiting() > 0
    AutomationEntry.objects.all().delete()
    fire()  # looks until a day ago, and finds none
    assert waiting() == 0

    earlier = {name: F(name) - HOUR for name in ("first_hand_over_at", "finished_at")}
    Notification.objects.update(**earlier)
    Automation.objects.update(read_until=F("read_until") - HOUR)
    fire()
    assert noted() == {rows[2].pk, rows[3].pk}
    AutomationEntry.objects.all().delete()
    fire()
    assert waiting() == 0


@pytest.mark.parametrize(
    ("about", "is_followed"),
    [
        ({"label": "sale"}, True),
        ({"label": "other"}, False),
        ({"name": "June"}, True),
        ({"name": "July"}, False),
        ({}, True),
    ],
)
def test_a_name_or_a_label_tells_which_notifications_were_not_clicked(
    sandbox, channel, about, is_followed
):
    ended(sandbox, channel, name="June", labels=["sale"])
    unclicked(channel, **about)
    fire()
    assert waiting() == (2 if is_followed else 0)


def test_what_an_automation_sent_is_followed_only_by_name_or_label_and_never_by_itself(
    sandbox, channel
):
    first = automated(channel)
    welcome = ended_day(sandbox, channel)
    finished(welcome, timedelta(hours=25))
    unclicked(channel)
    fire()
    assert waiting() == 0
    trigger = {"event": "notifications.unclicked", "hours": 24, "name": "Welcome"}
    changed(first, trigger=trigger)
    Automation.objects.update(read_until=Now() - timedelta(hours=48))
    fire()
    assert waiting() == 0
    unclicked(channel, name="Welcome")
    fire()
    assert waiting() == 1


def corrected(channel, notification, **fields):
    """A correction of the notification, which ended a day ago."""
    request = SendRequest(
        content=Content(body="Mended"), target_platforms=(), replaces=notification.pk, **fields
    )
    correction = notification_accept(channel=channel, request=request)
    send()
    finished(correction, timedelta(hours=25))
    return correction


@pytest.mark.parametrize(("about", "is_followed"), [({}, False), ({"name": "Mended"}, True)])
def test_a_correction_is_followed_only_by_name_or_label(sandbox, channel, about, is_followed):
    factories.subscribe_browsers(sandbox, channel, 1)
    direct = factories.make_direct_notification(channel, subscriptions=Subscription.objects.all())
    send()
    corrected(channel, direct, name="Mended")
    unclicked(channel, **about)
    fire()
    assert waiting() == is_followed


def test_an_automation_does_not_follow_the_correction_of_its_own_notification(sandbox, channel):
    automation = automated(channel)
    welcome = ended_day(sandbox, channel)
    corrected(channel, welcome, name="Mended")
    trigger = {"event": "notifications.unclicked", "hours": 24, "name": "Mended"}
    changed(automation, trigger=trigger, delay_minutes=60)
    Automation.objects.update(read_until=Now() - timedelta(hours=48))
    fire()
    assert waiting() == 0


def test_who_clicked_the_correction_of_a_notification_has_clicked_it(sandbox, channel):
    campaign, rows = ended(sandbox, channel)
    correction = corrected(channel, campaign)
    events_record([Event(correction.pk, rows[2].pk, "clicked")])
    unclicked(channel)
    fire()
    assert noted() == {rows[3].pk}

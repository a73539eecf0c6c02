"""Editing a notification that starts, or that is paused in the middle; and the end of its time."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import transaction

from notifications_app.errors import NotEditable, StillSending
from notifications_app.models import Notification
from notifications_app.pipeline import plan_queue
from notifications_app.pipeline.lease import HeldLeases
from notifications_app.sends.editing import notification_edit
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support
from tests.pipeline.halting import began, pause, resume

HOUR = timedelta(hours=1)


def edit(notification, **changes):
    return notification_edit(
        channel=notification.channel, notification_id=notification.id, changes=changes
    )


def texts(device):
    """[(notification id, body, when)] of what the device received."""
    found = [(json.loads(receipt.plaintext), receipt.at) for receipt in device.receipts]
    return [(text["notification_id"], text["body"], at) for text, at in found]


def paused_in_the_middle(channel):
    factories.add_subscriptions(channel, 1)
    notification = factories.make_notification(channel, ttl=7200)
    support.plan(notification)
    return pause(notification)


# Expiry


@pytest.mark.parametrize(("ttl", "is_expiry"), [(60, False), (7200, True)])
def test_the_deadline_is_what_comes_first_of_time_to_live_and_expiry(channel, ttl, is_expiry):
    expires_at = sql.now() + HOUR
    notification = factories.make_notification(channel, ttl=ttl, expires_at=expires_at)
    support.plan(notification)
    by_ttl = notification.started_at + timedelta(seconds=ttl)
    assert notification.deadline_at == (expires_at if is_expiry else by_ttl)


def test_nobody_is_sent_what_has_expired(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    notification = factories.make_notification(channel, expires_at=sql.now() - HOUR)
    support.plan()
    support.deliver(notification)
    support.tick()
    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert support.codes(notification) == ["expired"]
    assert device.receipts == []


def test_the_push_service_keeps_a_message_until_it_expires_and_no_longer(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    support.send(channel, ttl=7200, expires_at=sql.now() + timedelta(minutes=10))
    (receipt,) = device.receipts
    headers = {name.lower(): value for name, value in receipt.headers.items()}
    assert 0 < int(headers["ttl"]) <= 600


def test_a_pause_moves_the_deadline_no_further_than_the_expiry(channel):
    factories.add_subscriptions(channel, 1)
    expires_at = sql.now() + HOUR
    notification = factories.make_notification(channel, ttl=3000, expires_at=expires_at)
    support.plan(notification)
    pause(notification)
    began(notification, timedelta(minutes=30))
    assert resume(notification).deadline_at == expires_at


# A notification that is about to start


def test_either_the_edit_or_the_start_is_first_and_the_device_gets_what_was_answered(
    sandbox, channel
):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    answered = {}
    for _ in range(1000 if os.environ.get("FAULTS_LONG") else 100):
        notification = factories.make_notification(channel, body="old")
        answered[str(notification.id)] = support.in_threads(
            plan_queue.start_due, lambda n=notification: _edited(n, body="new")
        )[1]
        plan_queue.start_due()
    while Notification.objects.exclude(status="sent").exists():
        support.plan()
        support.deliver()
    received = {id_: text for id_, text, _ in texts(device)}
    assert received == {id_: "new" if was_edited else "old" for id_, was_edited in answered.items()}
    assert len(device.receipts) == len(answered)
    print(f"{sum(answered.values())} of {len(answered)} edits were first")  # noqa: T201 (a figure)


def _edited(notification, **changes):
    try:
        edit(notification, **changes)
    except NotEditable:
        return False
    return True


def test_a_planner_passes_over_what_is_being_edited(channel):
    notification = factories.make_notification(channel)
    with sql.brief_transaction():
        Notification.objects.filter(pk=notification.pk).locked()
        assert support.in_threads(plan_queue.start_due) == [0]
    assert plan_queue.start_due() == 1


def test_an_edit_that_waits_for_a_start_is_too_late(channel):
    notification = factories.make_notification(channel, body="old")
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert plan_queue.start_due() == 1
            edit_it = support.closing_connection(lambda: _edited(notification, body="new"))
            edited = pool.submit(edit_it)
            support.until(support.waiting_sessions)
        assert not edited.result(60)
    assert Notification.objects.get().body == "old"
    support.plan()


def test_a_test_is_not_editable(channel):
    notification = factories.make_notification(channel, only_subscription_id=channel.id)
    with pytest.raises(NotEditable, match="a test"):
        edit(notification, body="new")


# A notification that is paused in the middle


def test_whoever_is_sent_it_after_the_edit_gets_the_new_text(sandbox, channel, settings):
    settings.BATCH_SIZE = 5
    settings.CALLS_IN_FLIGHT = 1
    devices = [device for device, _ in factories.subscribe_browsers(sandbox, channel, 40)]
    notification = factories.make_notification(channel, body="old")
    support.plan()
    edited_at = []

    def change():
        support.until(lambda: sum(len(device.receipts) for device in devices) >= 7)
        pause(notification)
        support.until(lambda: _is_edited(notification))
        edited_at.append(time.time())
        resume(notification)

    support.in_threads(change, lambda: support.until(lambda: _is_sent(notification), seconds=120))

    assert support.counts(notification) == ("sent", 40, 40, 0)
    received = [(text, at) for device in devices for _, text, at in texts(device)]
    assert len(received) == 40
    assert {text for text, at in received if at > edited_at[0]} == {"new"}
    assert {text for text, at in received if at < edited_at[0]} == {"old"}


def _is_edited(notification):
    try:
        return edit(notification, body="new")
    except StillSending:
        return None


def _is_sent(notification):
    support.deliver(notification)
    return notification.status == "sent"


def test_while_a_worker_ends_its_calls_an_edit_is_to_be_repeated(channel):
    factories.add_subscriptions(channel, 1)
    notification = factories.make_notification(channel)
    support.plan()
    held = HeldLeases([support.claim()])
    pause(notification)

    with pytest.raises(StillSending) as refused:
        edit(notification, body="new")
    assert refused.value.headers == {"Retry-After": "5"}
    assert Notification.objects.get().body != "new"

    held.hand_back(finished_pass=False)
    assert edit(notification, body="new").body == "new"


@pytest.mark.parametrize("name", ["scheduled_at", "segment_id", "target_platforms"])
def test_time_and_audience_of_what_is_being_sent_are_fixed(channel, name):
    notification = paused_in_the_middle(channel)
    with pytest.raises(NotEditable, match=name):
        edit(notification, **{name: None})


def test_resumed_or_stopped_it_is_no_longer_editable(channel):
    notification = paused_in_the_middle(channel)
    resume(notification)
    with pytest.raises(NotEditable, match="Pause it first"):
        edit(notification, body="new")


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({"ttl": 600}, 600),
        ({"ttl": 0}, None),
        ({"expires_at": 1200}, 1200),
        ({"ttl": 9000, "expires_at": None}, 9000),
        ({"body": "new"}, 7200),
    ],
)
def test_an_edit_of_its_time_moves_the_deadline_and_a_pause_still_costs_nothing(
    channel, settings, changes, seconds
):
    notification = paused_in_the_middle(channel)
    start = Notification.objects.get().started_at
    expires_at = changes.get("expires_at")
    if expires_at:
        changes = {"expires_at": (start + timedelta(seconds=expires_at)).isoformat()}
    edited = edit(notification, **changes)

    seconds = settings.TTL_ZERO_SECONDS if seconds is None else seconds
    assert edited.deadline_at == start + timedelta(seconds=seconds)
    began(notification, timedelta(minutes=5))
    moved = resume(notification).deadline_at - edited.deadline_at
    assert moved == timedelta() if expires_at else moved >= timedelta(minutes=5)

"""Corrections: they reach who has the notification, and take its place on the device."""

import json
import os
import signal
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection

from notifications_app.content.values import Content, SendRequest
from notifications_app.models import Delivery, Notification, Plan
from notifications_app.pipeline import planning
from notifications_app.reporting.explaining import devices_asked, notification_explained
from notifications_app.retention import purge
from notifications_app.sends.editing import notification_edit
from notifications_app.sends.services import notification_accept
from pushsvc.common.ids import uuid7_at
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.people.linking import devices_link
from tests import factories
from tests.pipeline import halting, phones, support

_ALL = ("web", "android", "ios")


def correct(channel, notification, **content):
    request = SendRequest(
        content=Content(**{"body": "The right score"} | content),
        target_platforms=(),
        replaces=notification.pk,
    )
    return notification_accept(channel=channel, request=request)


def delivered(channel, notification, **content):
    """A correction that was delivered."""
    correction = correct(channel, notification, **content)
    support.plan(correction)
    phones.deliver(correction, *correction.target_platforms)
    return correction


def sent_long_ago(channel, **fields):
    """A direct message that ended before the retention of deliveries, which it still has."""
    long_ago = sql.now() - timedelta(days=settings.DELIVERY_RETENTION_DAYS + 1)
    notification = factories.make_direct_notification(channel, id=uuid7_at(long_ago), **fields)
    support.plan(notification)
    support.deliver(notification)
    Notification.objects.filter(pk=notification.pk).update(
        first_hand_over_at=long_ago, finished_at=long_ago
    )
    return notification


@pytest.fixture
def devices(sandbox, fcm, apns, channel):
    """One of each platform."""
    phones.store_google(fcm, channel)
    phones.store_apple(apns, channel)
    ((browser, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    ((android, _),) = factories.subscribe_androids(fcm, channel)
    ((iphone, _),) = factories.subscribe_iphones(apns, channel)
    return browser, android, iphone


def folds(devices):
    """By what each device finds the notification that a message replaces: of all its messages."""
    browser, android, iphone = devices
    shown = [json.loads(receipt.plaintext) for receipt in browser.receipts]
    return (
        [each.get("options", {}).get("tag", each["notification_id"]) for each in shown],
        [receipt.message["android"]["notification"]["tag"] for receipt in android.receipts],
        [receipt.headers["apns-collapse-id"] for receipt in iphone.receipts],
    )


def test_a_correction_takes_the_place_of_the_notification_on_every_platform(channel, devices):
    wrong = phones.send(channel, *_ALL, title="1:0")
    right = delivered(channel, wrong, title="0:1")
    again = delivered(channel, right, title="0:2")

    assert support.counts(again) == ("sent", 3, 3, 0)
    assert folds(devices) == ([str(wrong.pk)] * 3,) * 3
    assert [json.loads(each.plaintext)["title"] for each in devices[0].receipts] == [
        "1:0",
        "0:1",
        "0:2",
    ]
    assert (right.replaces, again.replaces) == (wrong.pk, right.pk)


def test_a_correction_has_the_tags_and_the_topic_of_the_notification(channel, devices):
    own = {"web": {"tag": "score"}, "android": {"tag": "goal"}}
    wrong = phones.send(channel, *_ALL, topic="match", extras=own)
    right = delivered(channel, wrong, android={"tag": "goal"})

    assert support.counts(right) == ("sent", 3, 3, 0)
    assert folds(devices) == (["score"] * 2, ["goal"] * 2, ["match"] * 2)
    assert right.topic == "match"


def test_a_personal_correction_takes_the_place_too(channel, devices):
    wrong = phones.send(channel, *_ALL)
    delivered(channel, wrong, body='{{ attributes.name | default: "you" }}', personalize=True)
    assert folds(devices) == ([str(wrong.pk)] * 2,) * 3


def test_only_who_was_delivered_it_and_is_still_active_gets_the_correction(
    sandbox, channel, settings, monkeypatch
):
    """Exactly once, though the planner is killed in the middle of a window and between windows."""
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3
    had_it = factories.subscribe_browsers(sandbox, channel, 10)
    refused, gone = had_it[2:4], had_it[4:5]
    for device, _ in refused:
        device.behave("too_large", times=1)
    wrong = support.send(channel)
    assert support.counts(wrong) == ("sent", 10, 8, 2)
    for _, row in gone:
        address = Address.of(row.platform, row.address)
        subscription_unsubscribe(channel=channel, address=address)
    newcomers = factories.subscribe_browsers(sandbox, channel, 3)

    right = correct(channel, wrong)
    for undone in (True, False) * 2:
        _killed(monkeypatch, undone=undone)
    support.plan(right)
    support.deliver(right)

    assert support.counts(right) == ("sent", 7, 7, 0)
    expected = [device for device, row in had_it if (device, row) not in refused + gone]
    assert [len(device.receipts) for device in expected] == [2] * 7
    others = [device for device, _ in refused + gone + newcomers]
    assert [len(device.receipts) for device in others] == [1] * 3 + [0] * 3


def _killed(monkeypatch, *, undone):
    """A separate planner process, killed before (`undone`) or after its window's commit."""
    connection.close()  # the child has one of its own
    child = os.fork()
    if not child:
        name = "counters_add" if undone else "_report"
        monkeypatch.setattr(planning, name, _die)
        planning.work(seconds=30)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    Plan.objects.update(lease_until=None)


def _die(*_arguments, **_options):
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_explanation_knows_that_the_next_person_gets_no_correction(sandbox, channel):
    ((_, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    devices_link(channel=channel, links={row.pk: "ada"})
    wrong = factories.make_direct_notification(channel, people=["ada"])
    support.plan(wrong)
    support.deliver(wrong)
    right = correct(channel, wrong)

    def explained():
        _, devices = devices_asked(channel.pk, subscription_id=row.pk)
        (found,) = notification_explained(channel, right.pk, devices).devices
        return found.verdict, found.because

    assert explained() == ("gets", "")
    devices_link(channel=channel, links={row.pk: "bob"})
    assert explained() == ("bounces", "audience")


@pytest.mark.parametrize("has_left", [False, True])
def test_a_message_to_a_person_is_corrected_only_on_devices_of_the_person(
    sandbox, channel, has_left
):
    """Also by the correction of a correction. The next person on the device has not got it."""
    ((device, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    devices_link(channel=channel, links={row.pk: "ada"})
    wrong = factories.make_direct_notification(channel, people=["ada"], body="Ada, you owe 12")
    support.plan(wrong)
    support.deliver(wrong)
    right = delivered(channel, wrong, body="Ada, you owe 21")
    if has_left:
        devices_link(channel=channel, links={row.pk: "bob"})

    again = delivered(channel, right, body="Ada, you owe nothing")

    assert support.counts(again) == ("sent", 1, int(not has_left), int(has_left))
    codes = Delivery.objects.filter(notification_id=again.pk).values_list("code", flat=True)
    assert list(codes) == (["person_changed"] if has_left else [""])
    assert len(device.receipts) == (2 if has_left else 3)


def test_retention_leaves_a_person_the_corrections_of_an_old_message(sandbox, channel):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel, 1)
    devices_link(channel=channel, links={row.pk: "ada"})
    wrong = sent_long_ago(channel, people=["ada"], body="Ada, you owe 12")
    right = delivered(channel, wrong, body="Ada, you owe 21")

    purge()

    again = delivered(channel, right, body="Ada, you owe nothing")
    assert support.counts(again) == ("sent", 1, 1, 0)
    assert len(device.receipts) == 3


def test_a_running_correction_is_edited_after_the_deliveries_that_it_corrects_are_deleted(
    sandbox, tampered_channel
):
    factories.subscribe_browsers(sandbox, tampered_channel, 1)
    notification = support.send(tampered_channel)
    correction = correct(tampered_channel, notification)
    support.plan(correction)
    halting.pause(correction)
    long_ago = sql.now() - timedelta(days=settings.DELIVERY_RETENTION_DAYS + 1)
    Notification.objects.filter(pk=notification.pk).update(
        first_hand_over_at=long_ago, finished_at=long_ago
    )
    notification.batches.update(finished_at=long_ago)
    purge()

    notification_edit(
        channel=tampered_channel, notification_id=correction.pk, changes={"body": "Mended"}
    )

    halting.resume(correction)
    support.deliver(correction)
    assert (correction.body, *support.counts(correction)) == ("Mended", "sent", 1, 1, 0)

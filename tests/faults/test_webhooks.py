"""Webhooks while their workers and PostgreSQL are killed: each fact is in exactly one message, and
each message arrives."""

import json
import time
from collections import Counter

import pytest

from local.supervisor.http import UnreachableError
from tests.faults import database
from tests.faults.exactness import wait_ended
from tests.faults.processes import HOOKS, until
from tests.faults.support import many, meanwhile
from tests.pipeline.receivers import running_receiver

EVENTS = ["notifications.finished", "notifications.clicked", "subscriptions.expired"]


@pytest.fixture
def receiver(system):
    with running_receiver(system.receiver_port) as running:
        system.start(HOOKS)
        yield running
        system.kill(HOOKS)


def test_each_fact_is_in_one_message_although_workers_and_postgresql_are_killed(
    system, channel, receiver
):
    channel.subscribe(many(120))
    made = channel._call(
        "POST", f"/channel/{channel.id}/webhooks", {"url": receiver.origin, "events": EVENTS}
    )
    assert made.status == 201, made
    notifications = [channel.send() for _ in range(3)]
    wait_ended(channel, notifications)
    clicks = [
        {"token": json.loads(receipt.plaintext)["token"], "event": "clicked"}
        for device in channel.devices.values()
        for receipt in device.receipts
    ]
    gone = system.random.sample(sorted(channel.devices), 20)
    acts = iter(
        [
            *([clicks[at : at + 10] for at in range(0, len(clicks), 10)]),
            *gone,
        ]
    )

    def act():
        each = next(acts)
        if isinstance(each, list):
            _until_taken(lambda: channel._public("/events", {"events": each}), 204)
        else:
            channel.unsubscribe(each)

    receiver.answer = lambda _: time.sleep(0.2) or 204  # so that calls are in flight
    with meanwhile(act, times=len(clicks) // 10):
        for crash in (None, database.crash, None, database.cut):
            time.sleep(system.random.uniform(0.3, 1.5))
            if crash:
                crash(system)
            system.kill(HOOKS)
            system.start(HOOKS)
    for each in acts:
        channel.unsubscribe(each)

    until(lambda: _is_all_sent(system), "all messages arrive")
    told = _told(system, channel)
    assert told["notifications.clicked"].total() == len(clicks)
    assert told["subscriptions.expired"].total() == len(gone)
    assert set(told["notifications.finished"]) == {str(each) for each in notifications}
    assert [fact for facts in told.values() for fact, count in facts.items() if count != 1] == []
    clicked = sum(channel.read(each)["clicked_count"] for each in notifications)
    assert clicked == len(clicks)
    arrived = {each.message_id: each.body for each in receiver.requests}
    assert arrived == {f"msg_{id_.hex}": bytes(body) for id_, body in _messages(system, channel)}
    assert len({each.body for each in receiver.requests}) == len(arrived)


def _until_taken(ask, status):
    def is_taken():
        try:
            return ask().status == status
        except UnreachableError:
            return False

    until(is_taken, "the events are taken")


def _is_all_sent(system):
    """What a killed worker held is free at once, instead of after a minute."""
    system.rows(
        "UPDATE channels_app_webhookattempt SET due_at = now(),"
        " lease_until = CASE WHEN lease_until < now() + interval '55 s' THEN now()"
        " ELSE lease_until END WHERE state = 'waiting' RETURNING 1"
    )
    return system.rows(
        "SELECT NOT EXISTS (SELECT FROM channels_app_feed) AND NOT EXISTS"
        " (SELECT FROM channels_app_webhookattempt WHERE state <> 'delivered')"
    ) == [(True,)]


def _messages(system, channel):
    return system.rows(
        "SELECT id, body FROM channels_app_webhookmessage WHERE channel_id = %s", [channel.id]
    )


def _told(system, channel):
    """How often each fact is in a message, by kind."""
    told = {kind: Counter() for kind in EVENTS}
    for _, body in _messages(system, channel):
        said = json.loads(bytes(body))
        (facts,) = (each for each in said["data"].values() if isinstance(each, list))
        for fact in facts:
            ids = [fact[name] for name in ("notification_id", "subscription_id") if name in fact]
            told[said["type"]]["".join(ids)] += 1
    return told

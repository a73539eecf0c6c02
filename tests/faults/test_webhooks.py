"""Webhooks while their workers and PostgreSQL are killed: each fact is in exactly one message, and
each message arrives."""

import json
import time

from local.supervisor.http import UnreachableError
from tests.faults import database, webhooks
from tests.faults.exactness import wait_ended
from tests.faults.processes import HOOKS, until
from tests.faults.support import many, meanwhile

EVENTS = ["notifications.finished", "notifications.clicked", "subscriptions.expired"]


def test_each_fact_is_in_one_message_although_workers_and_postgresql_are_killed(
    system, channel, receiver
):
    channel.subscribe(many(120))
    webhooks.create(channel, receiver, EVENTS)
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

    webhooks.wait_until_sent(channel)
    told = webhooks.told(channel, EVENTS)
    assert told["notifications.clicked"].total() == len(clicks)
    assert told["subscriptions.expired"].total() == len(gone)
    assert set(told["notifications.finished"]) == {str(each) for each in notifications}
    clicked = sum(channel.read(each)["clicked_count"] for each in notifications)
    assert clicked == len(clicks)
    webhooks.assert_arrived(channel, receiver)


def _until_taken(ask, status):
    def is_taken():
        try:
            return ask().status == status
        except UnreachableError:
            return False

    until(is_taken, "the events are taken")

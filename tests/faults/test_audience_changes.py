"""Subscriptions that are made, end and return while a send to them runs."""

import time

from tests.faults.database import EVERYBODY
from tests.faults.exactness import active, assert_exact, outcomes
from tests.faults.processes import PLATFORMS, until
from tests.faults.support import audience, many, planned, standing_still_early


def test_a_device_that_unsubscribes_during_a_send_is_counted_once(system, channel):
    pairs = audience(channel, many(200)) + channel.subscribe(many(1_000))
    leaving = system.random.sample([id_ for id_, _ in pairs], many(60))
    with standing_still_early(channel, PLATFORMS) as wait_until_called:
        notification = channel.send(*PLATFORMS)
        wait_until_called()
        for subscription_id in leaving[::2]:
            channel.unsubscribe(subscription_id)
        for subscription_id in leaving[1::2]:
            _delete(channel, subscription_id)

    assert_exact(channel, [notification])
    ended = outcomes(channel, notification)
    unsubscribed = {id_ for id_, row in ended.items() if row[1] == "unsubscribed"}
    assert unsubscribed
    assert unsubscribed <= set(leaving)
    assert active(channel) == channel.devices.keys() - set(leaving)
    print(f"{len(unsubscribed)} of {len(leaving)} left in time")  # noqa: T201 (a figure)


def test_a_device_that_subscribes_during_a_send_gets_it_at_most_once(channel, gate):
    channel.subscribe(many(900))
    notification = channel.send()
    for windows in range(3):
        count = many(300) * windows
        gate(count)
        until(lambda count=count: planned(channel, notification) == count, "windows follow")
        channel.subscribe(many(20))
    gate(EVERYBODY)
    channel.subscribe(many(40))
    assert_exact(channel, [notification])
    assert many(900) <= channel.read(notification)["recipient_count"] <= many(1_000)


def test_a_device_that_registered_again_is_not_expired_by_an_old_gone(system, channel):
    """The device registers again at the moment at which the push service answers Gone."""
    audience(channel, many(100))
    old = int((time.time() - 3600) * 1000)
    gone = {"web": ("gone", {}), "android": ("unregistered", {}), "ios": ("unregistered", {})}
    chosen = []
    for platform in PLATFORMS:
        ids = [id_ for id_, of in channel.platform_of.items() if of == platform]
        chosen += system.random.sample(ids, 20)
        mode, options = gone[platform]
        for subscription_id in chosen[-20:]:
            channel.devices[subscription_id].behave(mode, **options)
    before = system.random.sample([id_ for id_ in channel.devices if id_ not in chosen], 10)
    iphones = [id_ for id_ in before if channel.platform_of[id_] == "ios"]
    for subscription_id in iphones:  # Apple's Gone has a timestamp before the registration.
        channel.devices[subscription_id].behave("unregistered", timestamp=old)

    notification = channel.send(*PLATFORMS)
    back = set()
    for subscription_id in chosen:
        device = channel.devices[subscription_id]
        until(lambda device=device: any(r.complete for r in device.receipts), "it is called")
        if system.random.random() < 0.5:
            channel.subscribe_again(subscription_id)
            back.add(subscription_id)

    assert_exact(channel, [notification])
    ended = outcomes(channel, notification)
    assert {id_ for id_, row in ended.items() if row[0] == 2} == set(chosen) | set(iphones)
    assert channel.devices.keys() - active(channel) == set(chosen) - back


def _delete(channel, subscription_id):
    """As retention does it, and staff who delete a device's data."""
    channel.unsubscribe(subscription_id)
    channel.system.rows(
        "DELETE FROM subscriptions_app_subscription WHERE id = %s", [subscription_id]
    )

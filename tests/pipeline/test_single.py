"""A test goes to one subscription, by the same way as everything else."""

import pytest

from notifications_app.content import Content
from notifications_app.models import Plan
from notifications_app.pipeline import planning
from notifications_app.services import notification_test
from pushsvc.common.errors import NotFound
from subscriptions_app.services import subscription_unsubscribe
from tests.pipeline.support import counts, deliver, deliveries, plan, subscribe

CONTENT = Content(body="Fresh bread", ttl=3600)


def send_test(channel, subscription):
    test = notification_test(channel=channel, content=CONTENT, subscription_id=subscription.id)
    return channel.notifications.get(pk=test)


def test_a_test_reaches_its_subscription_and_nobody_else(sandbox, channel):
    (one, _), (mine, subscription), (other, _) = subscribe(sandbox, channel, 3)

    test = send_test(channel, subscription)
    plan(test)
    deliver(test)

    assert counts(test) == ("sent", 1, 1, 0)
    assert deliveries(test).get().subscription_id == subscription.id
    assert [len(device.receipts) for device in (one, mine, other)] == [0, 1, 0]
    assert test.target_platforms == ["web"]


def test_one_window_finds_it_however_large_the_channel(sandbox, channel, settings):
    settings.PLAN_WINDOW = 2
    *_, (_, last) = subscribe(sandbox, channel, 7)
    test = send_test(channel, last)
    planning.start_due()
    lease = planning.claim_plan()

    assert planning.plan_window(lease) is False
    assert Plan.objects.get(notification=test).recipient_count == 1


def test_who_unsubscribes_before_the_test_starts_does_not_get_it(sandbox, channel):
    ((device, subscription),) = subscribe(sandbox, channel)
    test = send_test(channel, subscription)
    subscription_unsubscribe(channel=channel, platform="web", address=device.endpoint)

    plan(test)

    assert counts(test) == ("sent", 0, 0, 0)


def test_nobody_is_tested_who_is_not_there(sandbox, channel, other_channel):
    ((device, mine),) = subscribe(sandbox, channel)
    subscription_unsubscribe(channel=channel, platform="web", address=device.endpoint)
    ((_, theirs),) = subscribe(sandbox, other_channel)
    for subscription in (mine, theirs):
        with pytest.raises(NotFound):
            send_test(channel, subscription)

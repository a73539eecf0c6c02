"""A test message goes to one subscription, through the same pipeline as every send."""

import pytest

from notifications_app.content.values import Content
from notifications_app.models import Plan
from notifications_app.pipeline import plan_queue
from notifications_app.sends.services import notification_test
from pushsvc.common.errors import NotFound
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from tests.factories import subscribe_browsers
from tests.pipeline import support
from tests.pipeline.support import counts, deliver, deliveries, plan

CONTENT = Content(body="Fresh bread", ttl=3600)


def send_test(channel, subscription):
    return notification_test(channel=channel, content=CONTENT, subscription_id=subscription.id)


def test_a_test_message_reaches_only_its_subscription(sandbox, channel):
    (one, _), (mine, subscription), (other, _) = subscribe_browsers(sandbox, channel, 3)

    test = send_test(channel, subscription)
    plan(test)
    deliver(test)

    assert counts(test) == ("sent", 1, 1, 0)
    assert deliveries(test).get().subscription_id == subscription.id
    assert [len(device.receipts) for device in (one, mine, other)] == [0, 1, 0]
    assert test.target_platforms == ["web"]


def test_one_window_finds_the_subscription_in_a_channel_of_any_size(sandbox, channel, settings):
    settings.PLAN_WINDOW = 2
    *_, (_, last) = subscribe_browsers(sandbox, channel, 7)
    test = send_test(channel, last)
    plan_queue.start_due()
    lease = support.claim_plan()

    assert support.plan_window(lease) is False
    assert Plan.objects.get(notification=test).recipient_count == 1


def test_a_device_that_unsubscribes_before_the_start_does_not_get_the_test_message(
    sandbox, channel
):
    ((device, subscription),) = subscribe_browsers(sandbox, channel)
    test = send_test(channel, subscription)
    subscription_unsubscribe(channel=channel, address=Address.of("web", device.endpoint))

    plan(test)

    assert counts(test) == ("sent", 0, 0, 0)


def test_a_test_message_to_a_missing_subscription_is_refused(sandbox, channel, other_channel):
    ((device, mine),) = subscribe_browsers(sandbox, channel)
    subscription_unsubscribe(channel=channel, address=Address.of("web", device.endpoint))
    ((_, theirs),) = subscribe_browsers(sandbox, other_channel)
    for subscription in (mine, theirs):
        with pytest.raises(NotFound):
            send_test(channel, subscription)

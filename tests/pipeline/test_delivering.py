"""One pass of one worker over a batch."""

import json

import pytest

from notifications_app.pipeline import dispatch
from tests import factories
from tests.pipeline import support


def test_every_subscriber_gets_the_notification_once(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 25)

    notification = support.send(channel, title="Bread", url="https://shop.example/bread")

    assert support.counts(notification) == ("sent", 25, 25, 0)
    for device, _ in devices:
        (receipt,) = device.receipts
        shown = json.loads(receipt.plaintext)
        assert shown["title"] == "Bread"
        assert shown["notification_id"] == str(notification.id)
    support.assert_exact(channel)


@pytest.mark.parametrize(("last_flush", "seconds"), [(0.0, 0.25), (0.1, 0.25), (0.4, 0.8), (30, 2)])
def test_outcomes_are_collected_for_longer_while_flushes_are_slow(settings, last_flush, seconds):
    settings.FLUSH_SECONDS = 0.25

    assert dispatch._collect_seconds(last_flush) == seconds

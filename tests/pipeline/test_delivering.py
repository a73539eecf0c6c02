"""One worker, one pass: what each answer of a push service makes of a recipient."""

import json

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

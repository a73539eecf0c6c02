"""`data` reaches every device with its names in the sender's order."""

import json

import pytest

from tests import factories
from tests.api.support import accepted, owner_of
from tests.pipeline import phones, support

# jsonb sorts names by their length and then by their bytes.
DATA = {"order": "4711", "a": "1", "zone": "b", "amount": "5", "c": "2"}
PLATFORMS = ("web", "android", "ios")


@pytest.fixture
def sent(sandbox, fcm, apns, channel):
    """What a browser, an Android phone and an iPhone got of a send through the API."""
    phones.store_google(fcm, channel)
    phones.store_apple(apns, channel)
    ((browser, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    ((android, _),) = factories.subscribe_androids(fcm, channel)
    ((iphone, _),) = factories.subscribe_iphones(apns, channel)
    body = {"body": "x", "data": DATA, "target_platforms": list(PLATFORMS)}
    notification = accepted(owner_of(channel), body)
    support.plan(notification)
    phones.deliver(notification, *PLATFORMS)
    return {
        "web": json.loads(browser.receipts[0].plaintext)["data"],
        "android": android.receipts[0].message["data"],
        "ios": json.loads(iphone.receipts[0].payload)["data"],
    }


def test_every_device_gets_data_in_the_senders_order(sent):
    got = {platform: [name for name in data if name in DATA] for platform, data in sent.items()}

    assert got == {platform: list(DATA) for platform in PLATFORMS}
    assert {name: sent["web"][name] for name in DATA} == DATA

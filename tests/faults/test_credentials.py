"""Credentials that are refused in the middle of a send, or that do not fit the audience."""

import pytest

from tests.faults.exactness import active, assert_exact, codes
from tests.faults.processes import until
from tests.faults.support import (
    assert_called_once,
    audience,
    each_in_the_middle,
    end_time,
    many,
)

PHONES = ("android", "ios")


@pytest.fixture
def revoked(system, channel):
    """A send to Androids and iPhones, in the middle of which Google's and Apple's credentials
    are revoked."""

    def send():
        account, key = channel.store_google(), channel.store_apple()
        end = {
            "android": lambda: system.sandboxes.fcm.revoke(account),
            "ios": lambda: key.behave("revoked"),
        }
        pairs = [pair for platform in PHONES for pair in channel.subscribe(many(300), platform)]
        for _, device in pairs:
            device.behave("slow", seconds=0.5)
        with each_in_the_middle(channel, PHONES, lambda platform: end[platform]()):
            return channel.send(*PHONES)

    return send


def test_credentials_revoked_during_a_send_park_the_rest_until_they_are_replaced(
    system, channel, revoked
):
    notification = revoked()
    for platform in PHONES:
        until(lambda platform=platform: channel.pause(platform), "the platform is paused")
        assert all(channel.pause(platform))  # a code, and the push service's own words
    until(lambda: _open(channel) == {"parked"}, "what is left is parked")

    channel.store_google()
    channel.store_apple()

    assert_exact(channel, [notification])
    assert codes(channel, notification) == {"": 2 * many(300)}
    assert active(channel) == channel.devices.keys()


def test_the_rest_bounces_if_nobody_replaces_the_credentials(system, channel, revoked):
    notification = revoked()
    until(lambda: _open(channel) == {"parked"}, "what is left is parked")
    end_time(channel, notification)

    assert_exact(channel, [notification])
    ended = codes(channel, notification)
    assert ended.keys() == {"", "credentials_refused"}
    assert active(channel) == channel.devices.keys()


def test_an_audience_of_another_project_or_environment_stays_active(system, channel):
    audience(channel, many(20), PHONES)
    fcm, apns = system.sandboxes.fcm, system.sandboxes.apns
    foreign = [fcm.register("somebody-elses") for _ in range(many(100))]
    channel.add(foreign, "android")
    elsewhere = [apns.register() for _ in range(many(100))]
    for device in elsewhere:
        device.behave("bad_device_token")
    channel.add(elsewhere, "ios")

    notification = channel.send(*PHONES)

    assert_exact(channel, [notification])
    assert codes(channel, notification) == {
        "": 2 * many(20),
        "sender_id_mismatch": many(100),
        "bad_device_token": many(100),
    }
    assert active(channel) == channel.devices.keys()
    for platform in PHONES:  # staff see the reason
        told = [each for each in system.fields("expiry.withheld") if each["platform"] == platform]
        assert [each["devices"] for each in told] == [many(100)]
    assert_called_once(channel, 2 * many(120))


def _open(channel):
    rows = channel.system.rows(
        "SELECT DISTINCT status FROM notifications_app_batch"
        " WHERE channel_id = %s AND status <> 'done'",
        [channel.id],
    )
    return {row[0] for row in rows}

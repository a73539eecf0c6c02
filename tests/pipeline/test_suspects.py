"""Answers that our own mistake may have caused: a few expire their devices, many expire nobody."""

from notifications_app.pipeline import dispatch, expiry
from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import support
from tests.pipeline.halting import stop

APPLE_MISMATCH = {"reason": "VapidPkHashMismatch"}


def test_a_few_suspects_expire_after_the_last_batch(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 6)
    suspect, subscription = devices[0]
    suspect.behave("error", status=400, body=APPLE_MISMATCH)

    notification = support.send(channel)
    assert support.codes(notification).count("vapid_key_mismatch") == 1
    assert support.is_active(subscription)  # held until the platform's batches are done
    support.tick()

    assert not support.is_active(subscription)
    assert support.open_plans() == 0
    assert support.counts(notification) == ("sent", 6, 5, 1)


def test_suspects_wait_for_the_platforms_last_batch(sandbox, channel, settings):
    settings.BATCH_SIZE = 3
    devices = factories.subscribe_browsers(sandbox, channel, 6)
    devices[0][0].behave("error", status=400, body=APPLE_MISMATCH)
    devices[5][0].behave("throttled", times=1)
    notification = support.send(channel)

    support.tick()
    assert support.is_active(devices[0][1])

    support.make_due(notification)
    support.deliver()
    support.tick()
    assert not support.is_active(devices[0][1])


def test_suspects_that_are_a_fifth_of_the_recipients_stay_active_and_cause_a_warning(
    sandbox, channel, caplog
):
    devices = factories.subscribe_browsers(sandbox, channel, 5)
    suspect, subscription = devices[0]
    suspect.behave("error", status=400, body=APPLE_MISMATCH)

    support.send(channel)
    support.tick()

    assert support.is_active(subscription)
    assert support.open_plans() == 0
    (warning,) = support.logged(caplog, "expiry.withheld")
    assert (warning.levelname, warning.devices) == ("WARNING", 1)


def test_suspects_before_a_stop_are_compared_with_the_recipients_that_were_called(
    sandbox, channel, settings
):
    settings.BATCH_SIZE = 2
    for device, _ in factories.subscribe_browsers(sandbox, channel, 12):
        device.behave("error", status=400, body=APPLE_MISMATCH)
    notification = factories.make_notification(channel)
    support.plan()
    dispatch.deliver_batch(support.claim())

    stop(notification)
    support.tick()
    support.tick()

    assert support.codes(notification) == ["stopped"] * 10 + ["vapid_key_mismatch"] * 2
    assert support.open_plans() == 0
    assert Subscription.objects.filter(expired_at=None).count() == 12


def test_a_suspect_that_registers_again_before_the_decision_stays_active(
    sandbox, channel, monkeypatch
):
    monkeypatch.setattr(expiry, "_STEP", 1)
    devices = factories.subscribe_browsers(sandbox, channel, 6)
    suspect, subscription = devices[0]
    suspect.behave("error", status=400, body=APPLE_MISMATCH)
    support.send(channel)

    factories.register_device(channel, suspect)
    support.tick()

    assert support.is_active(subscription)
    assert support.open_plans() == 0


def test_more_suspects_than_a_step_holds_are_all_decided(sandbox, channel, monkeypatch):
    monkeypatch.setattr(expiry, "_STEP", 2)
    devices = factories.subscribe_browsers(sandbox, channel, 30)
    for device, _ in devices[:5]:
        device.behave("error", status=400, body=APPLE_MISMATCH)

    support.send(channel)
    support.tick()

    assert Subscription.objects.filter(expired_code="vapid_key_mismatch").count() == 5
    assert support.open_plans() == 0

"""Answers that our own mistake may have caused: a few expire their devices, many expire nobody."""

import socket
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from channels_app.selectors import current_vapid_key
from notifications_app.models import Plan
from notifications_app.pipeline import dispatch, expiry
from sandbox import MismatchAnswer
from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import support
from tests.pipeline.halting import HOUR, stop
from tests.pipeline.parts import in_parts, release

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


def another_key():
    """The key of another channel."""
    return current_vapid_key(factories.make_channel()).public_key


def send_to(channel, subscription):
    factories.make_direct_notification(channel, subscriptions=[subscription])
    support.plan()
    support.deliver()


@pytest.mark.parametrize("as_at", MismatchAnswer)
def test_a_browser_with_another_vapid_key_expires(sandbox, channel, as_at):
    factories.subscribe_browsers(sandbox, channel, 5)
    device = sandbox.subscribe(another_key(), as_at)
    subscription = factories.register_device(channel, device)

    notification = support.send(channel)
    support.tick()

    code = "vapid_key_mismatch" if as_at == MismatchAnswer.APPLE else "vapid_refused"
    assert support.codes(notification) == ["", "", "", "", "", code]
    subscription.refresh_from_db()
    assert (support.is_active(subscription), subscription.expired_code) == (False, code)


@pytest.mark.parametrize("is_key_proven", [True, False])
def test_a_send_to_one_browser_with_another_key_needs_proof_of_ours(
    sandbox, channel, caplog, is_key_proven
):
    ((_, other),) = factories.subscribe_browsers(sandbox, channel)
    device = sandbox.subscribe(another_key())
    subscription = factories.register_device(channel, device)
    if is_key_proven:
        send_to(channel, other)

    send_to(channel, subscription)
    support.tick()

    assert support.is_active(subscription) != is_key_proven
    assert support.is_active(other)
    assert len(support.logged(caplog, "expiry.withheld")) == (0 if is_key_proven else 1)


def test_a_browser_that_took_messages_needs_more_than_one_send_to_itself(sandbox, channel):
    """Its stored key was right. So the mistake may be ours."""
    (device, subscription), _ = factories.subscribe_browsers(sandbox, channel, 2)
    support.send(channel)
    device.behave("error", status=400, body=APPLE_MISMATCH)

    support.send(channel)
    support.tick()

    assert support.is_active(subscription)


def test_refusals_of_our_token_count_like_suspects(sandbox, channel, caplog):
    """A wrong clock: one service names it, another is not understood."""
    devices = factories.subscribe_browsers(sandbox, channel, 12)
    devices[0][0].behave("error", status=401, body={"errno": 109, "message": "Not now"})
    for device, _ in devices[1:3]:
        device.behave("error", status=403, body="token has expired")

    notification = support.send(channel)
    support.tick()

    assert support.codes(notification)[-3:] == ["unauthorized", "unauthorized", "vapid_refused"]
    assert Subscription.objects.filter(expired_at=None).count() == 12
    (warning,) = support.logged(caplog, "expiry.withheld")
    assert warning.devices == 1


def test_suspects_before_a_stop_are_compared_with_the_recipients_that_were_called(
    sandbox, channel, settings
):
    settings.BATCH_SIZE = 2
    for device, _ in factories.subscribe_browsers(sandbox, channel, 12):
        device.behave("error", status=400, body=APPLE_MISMATCH)
    notification = factories.make_notification(channel)
    support.plan()
    dispatch.deliver_batches([support.claim()])

    stop(notification)
    support.tick()
    support.tick()

    assert support.codes(notification) == ["stopped"] * 10 + ["vapid_key_mismatch"] * 2
    assert support.open_plans() == 0
    assert Subscription.objects.filter(expired_at=None).count() == 12


def test_suspects_are_not_compared_with_recipients_whose_values_made_the_message_too_large(
    sandbox, channel
):
    devices = factories.subscribe_browsers(sandbox, channel, 12)
    for device, _ in devices[:2]:
        device.behave("error", status=400, body=APPLE_MISMATCH)
    large = [subscription.pk for _, subscription in devices[2:]]
    Subscription.objects.filter(pk__in=large).update(attributes={"x": "😀" * 255})
    data = {f"k{number}": "{{ x }}" for number in range(5)}

    notification = support.send(channel, data=data, extras={"personalize": True})
    support.tick()

    codes = ["payload_too_large"] * 10 + ["vapid_key_mismatch"] * 2
    assert support.codes(notification) == codes
    assert Subscription.objects.filter(expired_at=None).count() == 12


def test_suspects_of_a_part_are_compared_with_all_parts_when_the_last_is_done(
    sandbox, channel, caplog
):
    """Of the first part all are suspects; of the platform they are a sixth."""
    devices = factories.subscribe_browsers(sandbox, channel, 6)
    suspect, subscription = devices[0]
    suspect.behave("error", status=400, body=APPLE_MISMATCH)
    Subscription.objects.filter(pk=subscription.pk).update(attributes={"plan": "pro"})
    notification, _, rest = in_parts(channel, later=HOUR)
    support.plan()
    support.deliver()
    support.tick()
    assert support.codes(notification) == ["vapid_key_mismatch"]
    assert support.is_active(subscription)

    release(rest)
    support.plan()
    support.deliver()
    support.tick()

    assert not support.is_active(subscription)
    assert support.logged(caplog, "expiry.withheld") == []
    assert support.open_plans() == 0


def test_too_many_suspects_in_two_parts_cause_one_warning(sandbox, channel, caplog):
    devices = factories.subscribe_browsers(sandbox, channel, 8)
    for suspect, _ in devices[3:5]:
        suspect.behave("error", status=400, body=APPLE_MISMATCH)
    pro = [subscription.pk for _, subscription in devices[:4]]
    Subscription.objects.filter(pk__in=pro).update(attributes={"plan": "pro"})
    in_parts(channel, later=HOUR)
    support.plan()
    support.deliver()
    support.tick()
    Plan.objects.filter(part=1).update(due_at=Now())
    support.plan()
    support.deliver()
    expiry.close_delivered_plans()

    with transaction.atomic():  # another tick decides
        assert expiry._next_settling().part == 0
        assert support.in_threads(expiry.decide_next) == [False]
    support.tick()

    (warning,) = support.logged(caplog, "expiry.withheld")
    assert warning.devices == 2
    assert Subscription.objects.filter(expired_at=None).count() == 8
    assert support.open_plans() == 0


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


# --- names of hosts that do not exist -------------------------------------------------------------

DEAD = "https://push.gone.org/x"


@pytest.fixture
def resolver(monkeypatch):
    """The system's resolver, without a network. It answers `error` for every name."""
    answers = {"error": socket.EAI_NONAME, "asked": 0}
    look_up = socket.getaddrinfo

    def only_loopback(host, *arguments, **options):
        if host in ("127.0.0.1", "localhost", None):
            return look_up(host, *arguments, **options)
        answers["asked"] += 1
        raise socket.gaierror(answers["error"], "no address")

    monkeypatch.setattr(socket, "getaddrinfo", only_loopback)
    return answers


def send_to_the_end(channel):
    """Sends, and makes every attempt that the notification has left."""
    notification = support.send(channel)
    while support.counts(notification)[0] == "processing":
        support.make_due(notification)
        support.deliver()
    support.tick()
    assert support.open_plans() == 0
    return notification


def a_day_passes():
    day = timedelta(days=1)
    Subscription.objects.update(
        registered_at=F("registered_at") - day, not_found_at=F("not_found_at") - day
    )


def with_a_crowd(sandbox, channel, address=DEAD, crowd=5):
    """The subscription at the address, beside others that get their messages."""
    factories.subscribe_browsers(sandbox, channel, crowd)
    return factories.register(channel, address=address)


@pytest.mark.usefixtures("resolver")
def test_a_name_that_several_sends_over_days_do_not_find_expires_its_subscription(sandbox, channel):
    subscription = with_a_crowd(sandbox, channel)

    for _ in range(3):
        notification = send_to_the_end(channel)
        assert support.delivery(notification, subscription).attempts == 3
        assert support.counts(notification) == ("sent", 6, 5, 1)
        send_to_the_end(channel)  # on the same day, so it does not count
        assert support.is_active(subscription)
        a_day_passes()
    send_to_the_end(channel)

    assert not support.is_active(subscription)
    assert subscription.expired_code == "name_not_found"


@pytest.mark.parametrize("error", [socket.EAI_AGAIN, socket.EAI_NODATA])
def test_a_name_of_which_nothing_is_known_is_not_counted(sandbox, channel, resolver, error):
    subscription = with_a_crowd(sandbox, channel)
    resolver["error"] = error

    notification = send_to_the_end(channel)

    delivery = support.delivery(notification, subscription)
    assert (delivery.attempts, delivery.code) == (12, "expired")
    assert support.is_active(subscription)
    assert subscription.not_found_sends is None


@pytest.mark.usefixtures("resolver")
def test_names_are_not_counted_if_a_fifth_of_the_recipients_have_none(sandbox, channel, caplog):
    subscription = with_a_crowd(sandbox, channel, crowd=4)

    for _ in range(5):
        send_to_the_end(channel)
        a_day_passes()

    assert support.is_active(subscription)
    assert subscription.not_found_sends is None
    assert len(support.logged(caplog, "expiry.withheld")) == 5


@pytest.mark.usefixtures("resolver")
@pytest.mark.parametrize(("crowd", "counted"), [(0, None), (1, 1)])
def test_in_a_small_send_a_name_counts_if_another_recipient_got_its_message(
    sandbox, channel, crowd, counted
):
    subscription = with_a_crowd(sandbox, channel, crowd=crowd)

    send_to_the_end(channel)

    subscription.refresh_from_db()
    assert subscription.not_found_sends == counted


@pytest.mark.usefixtures("resolver")
def test_a_visit_of_the_browser_begins_the_count_anew(sandbox, channel):
    subscription = with_a_crowd(sandbox, channel)
    for _ in range(3):
        send_to_the_end(channel)
        a_day_passes()

    keys = {"p256dh": subscription.p256dh, "auth": subscription.auth}
    factories.register(channel, address=DEAD, **keys)
    send_to_the_end(channel)

    assert support.is_active(subscription)
    assert subscription.not_found_sends == 1


def test_an_accepted_message_begins_the_count_anew(sandbox, channel):
    ((_, subscription),) = factories.subscribe_browsers(sandbox, channel)
    counted = {"not_found_at": Now(), "not_found_sends": 3, "is_proven": True}
    Subscription.objects.update(**counted)

    send_to_the_end(channel)

    subscription.refresh_from_db()
    assert (subscription.not_found_at, subscription.not_found_sends) == (None, None)
    assert subscription.is_proven


def test_a_name_that_no_network_has_expires_at_once_and_is_not_looked_up(channel, resolver):
    """Stored by a version that accepted it. Without a crowd, so that suspects would stay."""
    address = "https://permanently-removed.invalid/fcm/send/x"
    subscription = factories.add_subscription(channel, address=address, push_service="other")

    notification = support.send(channel)

    assert support.codes(notification) == ["name_not_found"]
    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert not support.is_active(subscription)
    assert subscription.expired_code == "name_not_found"
    assert resolver["asked"] == 0

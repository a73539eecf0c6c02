"""Push services that fail in every way that a push service can."""

import time

from notifications_app.pipeline import breakers
from tests.faults.exactness import assert_exact, called_again, codes, outcomes
from tests.faults.processes import PLATFORMS, until
from tests.faults.support import audience, end_time, many, meanwhile, seconds_taken, status

OPEN = "pushsvc:breaker:open"
# Each fault happens once, then the push service works again: (mode, options) by sandbox.
WEB = [
    ("throttled", {"retry_after": 1}),
    ("error", {"status": 500}),
    ("error", {"status": 503, "retry_after": 1, "as_date": True}),
    ("slow", {"seconds": 1.0}),
    ("hang", {}),
    ("reset", {}),
    ("garbage", {}),
    ("close_after_accept", {}),
    ("endless_body", {"status": 500}),
]
ANDROID = [
    ("throttled", {"retry_after": 1}),
    ("internal", {}),
    ("unavailable", {"retry_after": 1}),
    ("error", {"status": 307}),
    *WEB[3:],
]
IOS = [
    ("throttled", {"retry_after": 1}),
    ("internal_error", {}),
    ("unavailable", {}),
    ("shutdown", {}),
    ("slow", {"seconds": 1.0}),
    ("hang", {}),
    ("reset", {}),
    ("garbage", {}),
    ("close_after_accept", {}),
    ("rst_stream", {}),
    ("refused_stream", {}),
    ("goaway", {}),
    ("goaway_first", {"seconds": 0.5}),
    ("goaway_unprocessed", {}),
    ("header_only", {"status": 503}),
    ("streams", {"streams": 2}),
]
# Permanent faults: each bounces only its recipient.
FINAL = {
    "web": [("redirect", {"location": "https://push.example/"}), ("error", {"status": 418})],
    "android": [("third_party_auth", {}), ("invalid_argument", {})],
    "ios": [
        ("error", {"status": 413}),
        ("error", {"status": 400, "body": {"reason": "BadMessageId"}}),
    ],
}


def test_every_fault_of_a_push_service_is_retried_or_bounces_only_its_recipient(system, channel):
    count = many(150)  # enough devices that the failing ones open no breaker
    audience(channel, count)
    by_platform = {platform: _devices(channel, platform) for platform in PLATFORMS}
    failing = {}
    for platform, faults in zip(PLATFORMS, (WEB, ANDROID, IOS), strict=True):
        chosen = system.random.sample(list(by_platform[platform]), len(faults) + 2)
        for subscription_id, (mode, options) in zip(chosen, faults, strict=False):
            by_platform[platform][subscription_id].behave(mode, times=1, **options)
        for subscription_id, (mode, options) in zip(chosen[-2:], FINAL[platform], strict=True):
            by_platform[platform][subscription_id].behave(mode, **options)
            failing[subscription_id] = mode

    notification = channel.send(*PLATFORMS)

    assert_exact(channel, [notification])
    bounced = {id_ for id_, row in outcomes(channel, notification).items() if row[0] == 2}
    assert bounced == failing.keys()
    for subscription_id in bounced:
        answered = [receipt.complete for receipt in channel.devices[subscription_id].receipts]
        assert sum(answered) == 1
    # Taken twice only if the answer was lost, and then at most twice.
    taken = {
        id_: sum(receipt.taken and not receipt.unread for receipt in device.receipts)
        for id_, device in channel.devices.items()
    }
    twice = [channel.devices[id_].behaviour.mode for id_, times in taken.items() if times > 1]
    assert set(twice) == {"close_after_accept"}
    assert max(taken.values()) == 2


def test_an_outage_of_one_push_service_does_not_affect_the_others(system, channel):
    count = many(200)
    audience(channel, count)
    healthy = channel.send(*PLATFORMS)
    assert_exact(channel, [healthy])
    failing = system.channel()
    pairs = failing.subscribe(count, sandbox=system.sandboxes.other_web)
    for _, device in pairs:
        device.behave("error", status=503)

    suffering = failing.send()
    until(lambda: system.logged("breaker.opened"), "its breaker opens")
    now = system.redis.time()[0] * 1000
    (breaker,) = system.redis.zrange(OPEN, now, "+inf", byscore=True)

    def keep_open():
        """Keeps the breaker open, so that recipients who wait for it can be observed. Never
        longer than it stays open by itself: a pass that meets it hands its batch back for that
        time."""
        till = system.redis.time()[0] + breakers.WAIT_SECONDS
        system.redis.zadd(OPEN, {breaker: till * 1000})
        time.sleep(0.5)

    with meanwhile(keep_open):
        beside = channel.send(*PLATFORMS)
        assert_exact(channel, [healthy, beside])
        assert system.redis.zscore(OPEN, breaker)
        assert status(failing, suffering) == "processing"
    for _, device in pairs:
        device.behave("accept")
    system.redis.zrem(OPEN, breaker)

    assert_exact(failing, [suffering])
    assert codes(failing, suffering) == {"": count}
    until(lambda: system.logged("breaker.closed"), "its breaker closes")
    called = sum(len(device.receipts) for _, device in pairs)
    print(  # noqa: T201 (figures for who reads the run)
        f"others beside the outage: {seconds_taken(channel, beside):.1f} s,"
        f" before: {seconds_taken(channel, healthy):.1f} s;"
        f" {called - count} calls to the failing service for nothing"
    )


def test_recipients_that_wait_bounce_at_the_deadline(system, channel):
    pairs = channel.subscribe(many(100))
    waiting = dict(system.random.sample(pairs, many(10)))
    for device in waiting.values():
        device.behave("throttled", retry_after=2)

    notification = channel.send()
    until(lambda: called_again(channel, notification) == waiting.keys(), "only these wait")
    end_time(channel, notification)

    assert_exact(channel, [notification])
    ended = outcomes(channel, notification)
    assert {id_ for id_, row in ended.items() if row[1] == "expired"} == waiting.keys()
    assert all(len(device.receipts) == ended[id_][2] for id_, device in waiting.items())


def test_the_deadline_ends_every_delivery_without_a_worker(system, channel):
    audience(channel, many(50))
    names = [f"worker-{platform}" for platform in PLATFORMS]
    assert set(system.tell_to_stop(*names)) == {0}

    notification = channel.send(*PLATFORMS, ttl=2)

    assert_exact(channel, [notification])
    assert codes(channel, notification) == {"expired": 3 * many(50)}


def _devices(channel, platform):
    return {
        subscription_id: device
        for subscription_id, device in channel.devices.items()
        if channel.platform_of[subscription_id] == platform
    }

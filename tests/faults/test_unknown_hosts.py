"""Endpoints at hosts that are no known push service, and that answer anything.

A worker calls no unknown host on the loopback, so no unknown host can run here. Instead the rows
say `other`, which makes their batches those of unknown hosts, and the endpoints are the second
sandbox's. The transport takes that sandbox for a trusted origin, so the worker is started with an
unknown host's time limit for every call. `tests/delivery/webpush/test_transport.py` shows that the
transport chooses this limit, and separate connections, for unknown hosts.
"""

import time
from itertools import pairwise

import pytest

from tests.faults import settings as shortened
from tests.faults.exactness import assert_exact, called_again, codes, outcomes, wait_ended
from tests.faults.processes import until
from tests.faults.support import end_time, many, seconds_taken, status

YEAR = 365 * 24 * 3600
_SHORTEST_FIRST_WAIT = 4.0  # five seconds, less the fifth by which waits differ
ANSWERS = [
    ("error", {"status": 401}),
    ("error", {"status": 403}),
    ("throttled", {"retry_after": 0}),
    ("throttled", {"retry_after": YEAR}),
    ("hang", {}),
]


@pytest.fixture
def brief(system):
    """Each call of the web worker has the time limit of a call to an unknown host."""
    assert set(system.tell_to_stop("worker-web")) == {0}
    system.start("worker-web", FAULTS_CALL_SECONDS=str(shortened.UNKNOWN_HOST_CALL_SECONDS))
    yield system
    system.kill("worker-web")


def test_unknown_hosts_that_refuse_throttle_or_never_answer_slow_no_other_channel(brief, channel):
    system = brief
    channel.subscribe(many(300))
    alone = channel.send()
    assert_exact(channel, [alone])
    other = system.channel()
    pairs = other.subscribe(many(200), sandbox=system.sandboxes.other_web, push_service="other")
    for number, (_, device) in enumerate(pairs):
        mode, options = ANSWERS[number % len(ANSWERS)]
        device.behave(mode, **options)

    began = time.monotonic()
    theirs = other.send()
    until(lambda: any(device.receipts for _, device in pairs), "unknown hosts are called")
    beside = channel.send()
    wait_ended(channel, [beside])
    assert status(other, theirs) == "processing"
    assert_exact(channel, [alone, beside])

    each = many(200) // len(ANSWERS)
    until(lambda: called_again(other, theirs), "all were called")
    # On a busy machine, a refusal may come too late for the first call's time limit.
    until(lambda: codes(other, theirs)["unauthorized"] == 2 * each, "all refusals were read")
    end_time(other, theirs)
    assert_exact(other, [theirs])
    assert codes(other, theirs) == {"unauthorized": 2 * each, "expired": 3 * each}
    assert system.logged("breaker.opened") == []
    _assert_not_hammered(pairs, outcomes(other, theirs), time.monotonic() - began)
    print(  # noqa: T201 (figures for who reads the run)
        f"beside unknown hosts: {seconds_taken(channel, beside):.1f} s,"
        f" alone: {seconds_taken(channel, alone):.1f} s"
    )


def test_invented_hosts_under_a_push_services_name_delay_no_delivery_there(system, channel):
    other = system.channel()
    fakes = [f"https://no{number}-1.push.services.mozilla.com/x" for number in range(25)]
    for endpoint in fakes:
        other.subscribe_endpoint(endpoint)
    channel.subscribe(many(40), push_service="mozilla")

    theirs = other.send()
    until(lambda: _attempts(other, theirs) >= 2 * len(fakes), "they were tried again")
    ours = channel.send(ttl=60)

    assert_exact(channel, [ours])
    assert codes(channel, ours) == {"": many(40)}
    assert system.logged("breaker.opened") == []
    end_time(other, theirs)
    wait_ended(other, [theirs])


def test_a_channel_whose_calls_all_fail_delays_no_other_at_the_same_push_service(system, channel):
    other = system.channel()
    pairs = other.subscribe(many(100))
    for _, device in pairs:
        device.behave("error", status=503)
    channel.subscribe(many(40))

    theirs = other.send()
    until(lambda: system.logged("breaker.opened"), "their breaker opens")
    ours = channel.send(ttl=60)

    wait_ended(channel, [ours])
    assert status(other, theirs) == "processing"
    assert_exact(channel, [ours])
    assert codes(channel, ours) == {"": many(40)}
    end_time(other, theirs)
    wait_ended(other, [theirs])


def _attempts(channel, notification_id):
    return channel.system.value(
        "SELECT coalesce(sum(attempts), 0) FROM notifications_app_delivery"
        " WHERE notification_id = %s",
        [notification_id],
    )


def _assert_not_hammered(pairs, ended, seconds):
    """In so many seconds. A call without an answer takes its whole time, and then waits, each time
    twice as long."""
    for subscription_id, device in pairs:
        times = [receipt.at for receipt in device.receipts]
        assert len(times) == ended[subscription_id][2]
        assert all(later - earlier >= 1.0 for earlier, later in pairwise(times))
        repeats = len(times) - 1
        call = shortened.UNKNOWN_HOST_CALL_SECONDS if device.behaviour.mode == "hang" else 0
        assert repeats * call + _SHORTEST_FIRST_WAIT * (2**repeats - 1) <= seconds
        read = [each for each in device.receipts if each.complete and not each.unread]
        assert len(read) <= 1 or device.behaviour.mode == "throttled"

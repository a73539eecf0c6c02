"""Endpoints that anybody may have subscribed, and that answer as they like.

A stranger's host cannot be had on the loopback, where no worker would dial it: the transport knows
strangers by their address, and the guard of the way out has no exceptions but trusted origins. So
here the rows say `other`, which is what makes a batch a stranger's, and the endpoints are the
second sandbox's. The transport takes them for the operator's own, so the worker is started with a
stranger's time for every call; that it chooses that time for strangers, and connections of their
own, is for `tests/delivery/webpush/test_transport.py`.
"""

from collections import Counter
from itertools import pairwise

import pytest

from tests.faults import settings as shortened
from tests.faults.exactness import assert_exact, called_again, codes, outcomes, wait_ended
from tests.faults.support import end_time, many, seconds_taken, status
from tests.faults.system import until

YEAR = 365 * 24 * 3600
ANSWERS = [
    ("error", {"status": 401}),
    ("error", {"status": 403}),
    ("throttled", {"retry_after": 0}),
    ("throttled", {"retry_after": YEAR}),
    ("hang", {}),
]


@pytest.fixture
def brief(system):
    """Each call of the web worker may take as long as one to a stranger."""
    assert set(system.tell_to_stop("worker-web")) == {0}
    system.start("worker-web", FAULTS_CALL_SECONDS=str(shortened.STRANGER_CALL_SECONDS))
    yield system
    system.kill("worker-web")


def test_strangers_that_refuse_throttle_or_never_answer_slow_nobody_else(brief, channel):
    system = brief
    channel.subscribe(many(300))
    alone = channel.send()
    assert_exact(channel, [alone])
    strange = system.channel()
    pairs = strange.subscribe(many(200), sandbox=system.sandboxes.other_web, push_service="other")
    for number, (_, device) in enumerate(pairs):
        mode, options = ANSWERS[number % len(ANSWERS)]
        device.behave(mode, **options)

    theirs = strange.send()
    until(lambda: any(device.receipts for _, device in pairs), "strangers are called")
    beside = channel.send()
    wait_ended(channel, [beside])
    assert status(strange, theirs) == "processing"
    assert_exact(channel, [alone, beside])

    until(lambda: called_again(strange, theirs), "all were called")
    end_time(strange, theirs)
    assert_exact(strange, [theirs])
    each = many(200) // len(ANSWERS)
    assert codes(strange, theirs) == {"vapid_refused": 2 * each, "expired": 3 * each}
    assert system.logged("breaker.opened") == []
    _assert_not_hammered(pairs, outcomes(strange, theirs))
    print(  # noqa: T201 (figures for who reads the run)
        f"beside strangers: {seconds_taken(channel, beside):.1f} s,"
        f" alone: {seconds_taken(channel, alone):.1f} s"
    )


def test_hosts_made_up_under_a_push_services_name_hold_up_nobody_there(system, channel):
    strange = system.channel()
    fakes = [f"https://no{number}-1.push.services.mozilla.com/x" for number in range(25)]
    for endpoint in fakes:
        strange.subscribe_endpoint(endpoint)
    channel.subscribe(many(40), push_service="mozilla")

    theirs = strange.send()
    until(lambda: _attempts(strange, theirs) >= 2 * len(fakes), "they were tried again")
    ours = channel.send(ttl=60)

    assert_exact(channel, [ours])
    assert codes(channel, ours) == {"": many(40)}
    assert system.logged("breaker.opened") == []
    end_time(strange, theirs)
    wait_ended(strange, [theirs])


def test_a_channel_whose_calls_all_fail_holds_up_no_other_at_the_same_push_service(system, channel):
    strange = system.channel()
    pairs = strange.subscribe(many(100))
    for _, device in pairs:
        device.behave("error", status=503)
    channel.subscribe(many(40))

    theirs = strange.send()
    until(lambda: system.logged("breaker.opened"), "their breaker opens")
    ours = channel.send(ttl=60)

    wait_ended(channel, [ours])
    assert status(strange, theirs) == "processing"
    assert_exact(channel, [ours])
    assert codes(channel, ours) == {"": many(40)}
    end_time(strange, theirs)
    wait_ended(strange, [theirs])


def _attempts(channel, notification_id):
    return channel.system.value(
        "SELECT coalesce(sum(attempts), 0) FROM notifications_app_delivery"
        " WHERE notification_id = %s",
        [notification_id],
    )


def _assert_not_hammered(pairs, ended):
    for subscription_id, device in pairs:
        times = [receipt.at for receipt in device.receipts]
        assert len(times) == ended[subscription_id][2]
        assert all(later - earlier >= 1.0 for earlier, later in pairwise(times))
    most = Counter(device.behaviour.mode for _, device in pairs if len(device.receipts) > 1)
    assert most.keys() <= {"throttled", "hang"}

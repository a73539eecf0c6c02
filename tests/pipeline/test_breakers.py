"""When a breaker opens, lets a worker probe, and closes."""

import socket

import pytest

from notifications_app.pipeline import breakers
from pushsvc.common.endpoints import OTHER
from pushsvc.common.ids import uuid7
from pushsvc.common.store.redis_client import redis_client
from tests.pipeline import support

ALICE, BOB, CHARLIE, DORA = (uuid7() for _ in range(4))

pytestmark = pytest.mark.usefixtures("one_breaker_window")


def at_fcm(*channels):
    return [breakers.of_channel("fcm", each) for each in channels]


def outages(channel, count):
    return breakers.record("fcm", channel, responded=0, outages=count)


def open_for_all():
    for each in (ALICE, BOB):
        outages(each, 20)
    assert sorted(breakers.held()) == sorted(["fcm", *at_fcm(ALICE, BOB)])


def probe(channel, *, responded, outages):
    assert breakers.is_half_open("fcm", channel)
    assert breakers.take_probe("fcm", channel)
    return breakers.end_probe("fcm", channel, responded=responded, outages=outages)


@pytest.mark.parametrize(
    ("responded", "outages", "is_open"),
    [(10, 9, False), (0, 19, False), (0, 20, True), (10, 10, True), (11, 10, False)],
)
def test_a_breaker_opens_when_half_of_at_least_twenty_calls_met_an_outage(
    responded, outages, is_open
):
    wait = breakers.record("fcm", ALICE, responded=responded, outages=outages)

    assert breakers.held() == (at_fcm(ALICE) if is_open else [])
    assert (wait > 0) == is_open


def test_calls_of_several_workers_add_up():
    for _ in range(4):
        breakers.record("fcm", ALICE, responded=2, outages=3)

    assert breakers.held() == at_fcm(ALICE)


def test_outages_of_one_channel_open_only_its_own_breaker():
    for _ in range(50):
        outages(ALICE, 1000)
        support.end_breaker_waits()
        breakers.take_probe("fcm", ALICE)
        breakers.end_probe("fcm", ALICE, responded=0, outages=20)

    assert breakers.held() == at_fcm(ALICE)
    assert not breakers.is_half_open("fcm", BOB)


def test_outages_of_several_channels_open_the_breaker_for_all():
    outages(ALICE, 1000)
    outages(BOB, 9)
    assert breakers.held() == at_fcm(ALICE)

    assert outages(BOB, 1) > 0

    assert sorted(breakers.held()) == sorted(["fcm", *at_fcm(ALICE)])


def test_single_outages_of_many_channels_add_up():
    for _ in range(19):
        outages(uuid7(), 1)
    assert breakers.held() == []

    outages(uuid7(), 1)

    assert breakers.held() == ["fcm"]


def test_the_breaker_for_all_stays_closed_while_half_of_the_channels_are_answered():
    for each in (CHARLIE, DORA):
        breakers.record("fcm", each, responded=1, outages=0)

    for each in (ALICE, BOB):
        outages(each, 20)
    assert sorted(breakers.held()) == sorted(at_fcm(ALICE, BOB))

    outages(DORA, 1)
    assert "fcm" in breakers.held()


def test_a_channel_that_is_answered_again_no_longer_counts():
    outages(ALICE, 10)
    breakers.record("fcm", ALICE, responded=11, outages=0)

    outages(BOB, 20)

    assert breakers.held() == at_fcm(BOB)


def test_a_half_open_breaker_lets_one_worker_of_each_channel_probe():
    open_for_all()
    assert not breakers.is_half_open("fcm", CHARLIE)

    support.end_breaker_waits()

    assert breakers.held() == []
    for each in (ALICE, CHARLIE):
        assert breakers.is_half_open("fcm", each)
        taken = support.in_threads(*[lambda each=each: breakers.take_probe("fcm", each)] * 4)
        assert taken.count(True) == 1
    assert sorted(breakers.held()) == sorted(
        at_fcm(ALICE, CHARLIE)
    )  # until their probes have ended


def test_answers_while_a_breaker_is_open_end_no_pass():
    """They belong to calls that were in flight. A failed call ends its pass."""
    outages(ALICE, 20)

    assert breakers.record("fcm", ALICE, responded=5, outages=0) == 0
    assert outages(ALICE, 1) > 0
    assert breakers.held() == at_fcm(ALICE)


def test_an_answered_probe_closes_the_breaker():
    outages(ALICE, 20)
    support.end_breaker_waits()

    assert probe(ALICE, responded=20, outages=0) == 0

    assert not breakers.is_half_open("fcm", ALICE)
    assert breakers.held() == []


def test_an_answered_probe_of_one_channel_closes_the_breaker_for_all():
    open_for_all()
    support.end_breaker_waits()

    assert probe(CHARLIE, responded=20, outages=0) == 0

    assert not breakers.is_half_open("fcm", DORA)
    assert breakers.is_half_open("fcm", ALICE)  # its own breaker
    assert breakers.held() == []


def test_only_failed_probes_of_several_channels_open_the_breaker_for_all_again():
    open_for_all()
    support.end_breaker_waits()

    probe(ALICE, responded=0, outages=1)
    assert breakers.held() == at_fcm(ALICE)

    assert probe(CHARLIE, responded=0, outages=1) > breakers.WAIT_SECONDS
    assert sorted(breakers.held()) == sorted(["fcm", *at_fcm(ALICE, CHARLIE)])


def test_a_probe_without_evidence_leaves_the_decision_to_the_next():
    outages(ALICE, 20)
    support.end_breaker_waits()

    assert probe(ALICE, responded=0, outages=0) == breakers.WAIT_SECONDS

    assert breakers.held() == []
    assert probe(ALICE, responded=1, outages=0) == 0
    assert not breakers.is_half_open("fcm", ALICE)


def test_outages_from_before_a_breaker_closed_do_not_open_it_again():
    outages(ALICE, 20)
    outages(ALICE, 40)  # calls that were in flight
    support.end_breaker_waits()
    probe(ALICE, responded=5, outages=0)

    breakers.record("fcm", ALICE, responded=15, outages=0)

    assert breakers.held() == []


def test_each_failed_probe_doubles_the_wait_up_to_a_bound():
    waits = [outages(ALICE, 20)]
    for _ in range(5):
        support.end_breaker_waits()
        waits.append(probe(ALICE, responded=0, outages=1))

    assert [round(wait / breakers.WAIT_SECONDS) for wait in waits] == [1, 2, 4, 8, 8, 8]


def test_a_clock_of_redis_that_is_set_back_holds_up_no_channel():
    outages(ALICE, 20)
    set_clock_back(breakers._OPEN)

    assert breakers.held() == []
    assert breakers.states().channels_half_open["fcm"] == 1
    assert breakers.is_half_open("fcm", ALICE)

    assert breakers.take_probe("fcm", ALICE)
    set_clock_back(breakers._PROBES)

    assert breakers.held() == []
    assert 0 < probe(ALICE, responded=0, outages=1) <= breakers.LONGEST_WAIT_SECONDS
    assert breakers.held() == at_fcm(ALICE)


def set_clock_back(key):
    """By an hour: then these times are an hour later."""
    redis_client().zincrby(key, 3_600_000, *at_fcm(ALICE))


def test_an_unused_breaker_is_forgotten():
    outages(ALICE, 20)
    support.end_breaker_waits()

    left = redis_client().ttl(breakers._level(*at_fcm(ALICE)))

    assert breakers.LONGEST_WAIT_SECONDS < left <= 600


def test_unknown_hosts_have_no_breaker():
    for each in (ALICE, BOB):
        breakers.record(OTHER, each, responded=0, outages=1000)

    assert breakers.held() == []


def test_every_breaker_is_closed_while_redis_is_unreachable(settings):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"

    assert outages(ALICE, 1000) == 0.0

    assert breakers.held() == []
    assert not breakers.is_half_open("fcm", ALICE)
    assert breakers.take_probe("fcm", ALICE)

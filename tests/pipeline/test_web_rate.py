"""How the rate that a web push service accepts of a channel is learned, kept and forgotten."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notifications_app.pipeline import breaker_scripts, breakers, web_rate, web_rate_scripts
from notifications_app.pipeline.evidence import Evidence, Throttling
from pushsvc.common.endpoints import OTHER
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store.redis_client import CLOCK, redis_client
from tests.pipeline.rate_model import SERVICE, Bucket, Clock, Sending, Window

ALICE, BOB = uuid7(), uuid7()


@pytest.fixture
def clock(monkeypatch):
    """The scripts read the test's clock."""
    for name in ("BEGIN", "RECORD", "LIMITS"):
        script = getattr(web_rate_scripts, name)
        by_clock = replace(script, body=script.body.replace(CLOCK, Clock.SCRIPT))
        monkeypatch.setattr(web_rate_scripts, name, by_clock)
    held = breaker_scripts.HELD.replace(CLOCK, Clock.SCRIPT)
    monkeypatch.setattr(breaker_scripts, "HELD", held)
    return Clock()


def told(*, accepted=0, throttled=0, retry_after=0.0, is_trial=False, channel=ALICE):
    """Records calls: the accepted ones, then the throttled ones."""
    calls = accepted + throttled
    recent = min(calls, 40)
    throttling = Throttling(accepted, calls, throttled, recent, min(recent, throttled), retry_after)
    evidence = Evidence(calls, 0)
    return web_rate.record(SERVICE, channel, evidence, throttling, is_trial=is_trial)


def asked(wanted=1000, channel=ALICE):
    return web_rate.begin(SERVICE, channel, wanted)


def limit_of(channel=ALICE):
    found = {each.channel_id: each.per_minute for each in web_rate.limits()}
    return found.get(channel)


def learn(clock, *, accepted, retry_after=0.0):
    """A limit, met with so many accepted calls in the last minute, and calls again."""
    told(accepted=accepted, throttled=100)
    assert asked().is_trial
    told(throttled=20, is_trial=True, retry_after=retry_after)
    assert limit_of() == max(60, accepted)


def settle(clock):
    """A limit of 600 that was met a second time, and calls again."""
    learn(clock, accepted=600)
    resume(clock, after=20)
    told(accepted=600, throttled=40)
    resume(clock, after=65)
    assert limit_of() == 600


def resume(clock, *, after):
    """After so many seconds a probe is accepted, of one every five seconds."""
    for _ in range(after // 5 - 1):
        clock.wait(5)
        told(throttled=asked().most, is_trial=True)
    clock.wait(5)
    told(accepted=asked().most, is_trial=True)


def pass_minute(clock, *, throttled=0):
    """A minute in which as much was called as the limit allows."""
    calls = limit_of()
    clock.wait(60)
    mixed(calls - throttled, throttled)


def mixed(accepted, throttled):
    """Calls of which the throttled ones came first."""
    web_rate.record(
        SERVICE,
        ALICE,
        Evidence(accepted + throttled, 0),
        Throttling(accepted, accepted + throttled, throttled, 40, 0, 0.0),
        is_trial=False,
    )


# --- learning -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepted", "throttled", "is_suspected"),
    [(0, 19, False), (0, 20, True), (10, 10, True), (21, 19, False), (500, 20, True)],
)
def test_a_trial_follows_when_half_of_the_last_calls_were_throttled(
    clock, accepted, throttled, is_suspected
):
    verdict = told(accepted=accepted, throttled=throttled)

    assert (verdict.wait_seconds > 0) == is_suspected
    assert asked().is_trial == is_suspected
    assert limit_of() is None


def test_calls_of_several_processes_add_up_within_ten_seconds(clock):
    told(throttled=10)
    clock.wait(11)
    told(throttled=10)
    assert not asked().is_trial

    told(throttled=10)

    assert asked().is_trial


def test_only_one_worker_at_a_time_makes_a_trial(clock):
    told(throttled=20)

    assert (asked().most, asked().most) == (20, 0)
    assert breakers.held(web_rate.HELD) == [breakers.of_channel(SERVICE, ALICE)]


def test_a_throttled_trial_makes_what_was_accepted_in_a_minute_the_limit(clock):
    told(accepted=500)
    clock.wait(70)
    told(accepted=300)
    clock.wait(30)
    told(accepted=320, throttled=20)
    asked()

    told(throttled=20, is_trial=True)

    assert limit_of() == 620


def test_a_limit_is_at_least_sixty_a_minute(clock):
    learn(clock, accepted=3)


def test_calls_that_were_in_flight_before_the_trial_decide_nothing(clock):
    told(throttled=20)
    asked()

    told(throttled=40)

    assert limit_of() is None


def test_an_accepted_trial_ends_the_suspicion(clock):
    told(throttled=20)
    asked()

    assert told(accepted=11, throttled=9, is_trial=True).is_cleared

    assert asked() == web_rate.Standing()
    assert breakers.held(web_rate.HELD) == []


def test_a_suspicion_without_a_trial_is_forgotten(clock):
    told(throttled=20)

    clock.wait(31)

    assert asked() == web_rate.Standing()


def test_each_channel_has_its_own_limit_at_each_push_service(clock):
    learn(clock, accepted=600)

    assert asked(channel=BOB) == web_rate.Standing()
    assert web_rate.begin("mozilla", ALICE, 1000) == web_rate.Standing()
    assert [each.service for each in web_rate.limits_of(ALICE)] == [SERVICE]
    assert web_rate.limits_of(BOB) == []


def test_no_more_limits_are_kept_than_a_thousand(clock, monkeypatch):
    monkeypatch.setattr(web_rate, "MOST_LIMITED", 1)
    learn(clock, accepted=600)

    told(throttled=20, channel=BOB)
    asked(channel=BOB)
    told(throttled=20, is_trial=True, channel=BOB)

    assert limit_of(BOB) is None


@pytest.mark.parametrize(
    ("platform", "service", "is_rated"),
    [
        (Platform.WEB, "fcm", True),
        (Platform.WEB, OTHER, False),
        (Platform.WEB, "push.example:443", False),
        (Platform.ANDROID, "fcm_v1", False),
        (Platform.IOS, "apns", False),
    ],
)
def test_limits_are_learned_of_known_web_push_services_only(platform, service, is_rated):
    assert web_rate.is_rated(platform, service) == is_rated


# --- until calls are accepted again ---------------------------------------------------------------


def test_probes_find_out_when_calls_are_accepted_again(clock):
    learn(clock, accepted=600)
    assert asked().most == 0

    clock.wait(5)
    assert (asked().most, asked().most) == (web_rate.PROBE_CALLS, 0)
    told(throttled=4, is_trial=True)
    assert asked().most == 0
    clock.wait(5)
    assert asked().most == web_rate.PROBE_CALLS
    told(accepted=4, is_trial=True)

    assert asked().most > web_rate.PROBE_CALLS
    assert limit_of() == 600


def test_nothing_is_called_before_the_retry_after_of_all_recent_calls(clock):
    learn(clock, accepted=600, retry_after=50.0)

    clock.wait(49)
    assert asked().most == 0
    assert breakers.held(web_rate.HELD)
    clock.wait(1)

    assert asked().most == web_rate.PROBE_CALLS


def test_a_retry_after_of_single_calls_holds_up_no_others(clock):
    learn(clock, accepted=600)
    resume(clock, after=20)

    verdict = told(accepted=30, throttled=3, retry_after=3600.0)

    assert verdict.wait_seconds == 0
    assert asked(10).most == 10


# --- the limit ------------------------------------------------------------------------------------


def test_an_empty_bucket_holds_the_channel_at_this_push_service(clock):
    learn(clock, accepted=600)
    resume(clock, after=20)

    assert asked(1000).most == 50  # of five seconds

    assert breakers.held(web_rate.HELD) == [breakers.of_channel(SERVICE, ALICE)]
    assert asked(1000).most == 0
    clock.wait(2)
    assert breakers.held(web_rate.HELD) == []
    assert asked(1000).most == 20
    assert asked(1000).is_limited


def test_a_minute_without_a_throttled_call_raises_the_limit_by_a_tenth(clock):
    settle(clock)

    limits = []
    for throttled in (0, 0, 30, 0):
        pass_minute(clock, throttled=throttled)
        limits.append(limit_of())

    assert limits == [660, 726, 726, 798]


def test_an_unused_minute_does_not_raise_the_limit(clock):
    settle(clock)

    clock.wait(600)
    told(accepted=10)

    assert limit_of() == 600


@pytest.mark.parametrize(("accepted", "limit"), [(550, 550), (400, 400), (100, 300)])
def test_a_minute_with_many_throttled_calls_lowers_the_limit_to_the_accepted_by_half_at_most(
    clock, accepted, limit
):
    settle(clock)

    clock.wait(60)
    mixed(accepted, 80)

    assert limit_of() == limit


@pytest.mark.parametrize(("after", "period", "lowered"), [(5, 10, 400), (20, 60, 500)])
def test_a_first_estimate_is_doubled_until_calls_are_throttled_again(clock, after, period, lowered):
    learn(clock, accepted=100)
    resume(clock, after=after)

    limits = []
    for calls, throttled in ((1, 0), (2, 0), (4, 0), (5, 1)):
        clock.wait(period)
        mixed(100 * calls * period // 60, 100 * throttled)
        limits.append(limit_of())

    assert limits == [200, 400, 800, lowered]


def test_a_limit_is_forgotten_after_an_hour_without_a_throttled_call(clock):
    learn(clock, accepted=600)
    resume(clock, after=20)
    state = f"pushsvc:web_rate:of:{breakers.of_channel(SERVICE, ALICE)}"
    redis_client().pexpire(state, 1000)

    told(accepted=100)
    assert redis_client().pttl(state) <= 1000
    told(accepted=100, throttled=1)
    assert 3_500_000 < redis_client().pttl(state) <= 3_600_000

    clock.wait(3601)
    assert web_rate.limits() == []


def test_everything_in_redis_expires(clock):
    learn(clock, accepted=600)
    resume(clock, after=20)
    asked()

    keys = redis_client().keys("pushsvc:web_rate:*")

    assert len(keys) == 4
    assert all(redis_client().pttl(key) > 0 for key in keys)


def test_nothing_is_limited_while_redis_is_unreachable(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert told(throttled=100) == web_rate.Verdict(0.0)

    assert asked() == web_rate.Standing()
    assert web_rate.limits() == web_rate.limits_of(ALICE) == []


# --- whole sends ----------------------------------------------------------------------------------

rates = st.integers(600, 3000)
services = st.one_of(
    st.builds(Window, rates, retry_after=st.booleans()),
    st.builds(Bucket, rates, retry_after=st.booleans(), holds=st.sampled_from([10.0, 30.0, 60.0])),
)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(service=services)
def test_what_a_limit_allows_in_five_minutes_is_delivered_in_six(service, clock):
    """With at most 1.15 calls for each recipient, however the push service counts."""
    redis_client().flushdb()
    clock.wait(0)
    sending = Sending(clock, service, left=5 * service.messages)

    seconds = sending.run(3600)

    assert sending.accepted == 5 * service.messages
    assert seconds <= 360
    assert sending.calls <= 1.15 * sending.accepted


def test_a_send_without_a_limit_is_called_at_once(clock):
    sending = Sending(clock, Window(10_000), left=3000)

    assert sending.run(60) < 10

    assert sending.calls == 3000
    assert web_rate.limits() == []

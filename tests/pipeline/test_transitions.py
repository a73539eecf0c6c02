"""The rules of retries and expiry, without a clock or a database."""

from datetime import UTC, datetime, timedelta

import pytest

from notifications_app.delivery.types import Accepted, Deferred, Gone, Misconfigured, Rejected
from notifications_app.pipeline.transitions import DueDelivery, Limits, out_of_time, transition_of
from notifications_app.states import DeliveryStatus
from pushsvc.common.ids import uuid7

NOW = datetime(2026, 11, 20, 12, 0, 0, 250_000, tzinfo=UTC)
FOREVER = NOW + timedelta(days=28)


def recipient(attempts=0, first_attempt_at=None):
    return DueDelivery(1, uuid7(), attempts, first_attempt_at, 0, NOW)


def judged(outcome, who=None, *, deadline=FOREVER, attempts=12, registered_at=NOW):
    return transition_of(
        who or recipient(),
        outcome,
        registered_at=registered_at,
        now=NOW,
        limits=Limits(deadline, attempts, 3600),
    )


@pytest.mark.parametrize(
    ("outcome", "status", "code", "attempts"),
    [
        (Accepted(), DeliveryStatus.DELIVERED, "", 1),
        (Rejected("bad_request", "no"), DeliveryStatus.BOUNCED, "bad_request", 1),
        (Gone("endpoint_gone"), DeliveryStatus.BOUNCED, "endpoint_gone", 1),
        (Deferred("throttled"), DeliveryStatus.WAITING, "throttled", 1),
        (Misconfigured("refused"), DeliveryStatus.WAITING, "refused", 0),
    ],
)
def test_every_outcome_has_its_transition(outcome, status, code, attempts):
    transition = judged(outcome)

    assert (transition.status, transition.code, transition.attempts) == (status, code, attempts)


@pytest.mark.parametrize("outcome", [Accepted(), Rejected("x"), Deferred("x"), Misconfigured("x")])
def test_only_gone_expires(outcome):
    transition = judged(outcome)

    assert transition.expires_as_of is None
    assert not transition.is_suspect


def test_gone_expires_a_subscription_that_has_not_registered_since_its_call():
    assert judged(Gone("x")).expires_as_of == NOW
    later, earlier = NOW + timedelta(hours=1), NOW - timedelta(hours=1)
    assert judged(Gone("x", as_of=later)).expires_as_of == NOW
    assert judged(Gone("x", as_of=earlier)).expires_as_of == earlier


def test_a_suspect_gone_is_held():
    transition = judged(Gone("x", suspect=True))

    assert transition.expires_as_of is None
    assert transition.is_suspect


@pytest.mark.parametrize(
    ("attempts", "limits", "is_final"),
    [
        (0, {}, False),
        (1, {}, False),
        (2, {}, True),
        (0, {"attempts": 1}, True),
        (0, {"deadline": NOW + timedelta(seconds=2)}, True),
    ],
)
def test_a_gone_that_needs_several_attempts_is_tried_again_while_there_is_time(
    attempts, limits, is_final
):
    transition = judged(Gone("x", "why", suspect=True, attempts=3), recipient(attempts), **limits)

    expected = DeliveryStatus.BOUNCED if is_final else DeliveryStatus.WAITING
    assert (transition.status, transition.code, transition.detail) == (expected, "x", "why")
    assert (transition.due_at is None, transition.is_suspect) == (is_final, is_final)


@pytest.mark.parametrize("attempts", range(11))
def test_the_wait_grows_with_each_attempt_and_is_bounded(attempts):
    expected = min(5 * 2**attempts, 300)

    waits = [
        (judged(Deferred("x"), recipient(attempts)).due_at - NOW).total_seconds() for _ in range(50)
    ]

    assert min(waits) >= 0.8 * expected
    assert max(waits) <= 1.2 * expected * 1.25 + 1


@pytest.mark.parametrize("retry_after", [0.0, 0.4, 17.0, 120.5, 3000.0])
def test_retry_after_is_never_shortened(retry_after):
    wait = (judged(Deferred("x", retry_after=retry_after)).due_at - NOW).total_seconds()

    assert wait >= max(retry_after, 1.0)
    assert wait <= max(retry_after, 6.0) * 1.25 + 1


def test_waits_with_jitter_become_due_together():
    moments = {judged(Deferred("x"), recipient(6)).due_at for _ in range(500)}

    assert len(moments) <= 5  # of a spread of 120 seconds


@pytest.mark.parametrize(
    ("who", "options"),
    [
        (recipient(11), {}),
        (recipient(0), {"attempts": 1}),
        (recipient(1, NOW - timedelta(minutes=59, seconds=59)), {}),
        (recipient(), {"deadline": NOW + timedelta(seconds=2)}),
    ],
    ids=["twelve_attempts", "ttl_zero", "an_hour", "deadline"],
)
def test_a_deferral_that_no_attempt_could_follow_bounces(who, options):
    transition = judged(Deferred("throttled", "slow down"), who, **options)

    assert (transition.status, transition.code) == (DeliveryStatus.BOUNCED, "expired")
    assert transition.detail == "throttled slow down"
    assert transition.due_at is None


def test_only_the_wait_itself_may_take_a_recipient_past_the_end():
    """Its time is rounded up to a grid, but not over its end."""
    transition = judged(Deferred("x", retry_after=300.0), deadline=NOW + timedelta(seconds=301))

    assert transition.status == DeliveryStatus.WAITING
    assert transition.due_at == NOW + timedelta(seconds=300)


@pytest.mark.parametrize(
    ("who", "deadline", "expected"),
    [
        (recipient(), FOREVER, False),
        (recipient(), NOW, True),
        (recipient(12), FOREVER, True),
        (recipient(11, NOW - timedelta(minutes=59)), FOREVER, False),
        (recipient(1, NOW - timedelta(minutes=60)), FOREVER, True),
    ],
)
def test_the_time_is_over_at_the_first_of_three_limits(who, deadline, expected):
    assert out_of_time(who, now=NOW, limits=Limits(deadline, 12, 3600)) is expected

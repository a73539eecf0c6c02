"""What answers say about the push service, and what they do not."""

from typing import NamedTuple

import pytest

from notifications_app.delivery.types import (
    Accepted,
    BrowserDestination,
    Deferred,
    Destination,
    Gone,
    Misconfigured,
    Rejected,
)
from notifications_app.pipeline.evidence import Evidence, evidence_of, sample
from pushsvc.common.ids import uuid7

OUTAGE = Deferred("service_error", outage=True)
AT_MOZILLA = "https://updates.push.services.mozilla.com/wpush/v2/x"
MADE_UP = "https://no1.push.services.mozilla.com/x"


class Called(NamedTuple):
    destination: Destination
    is_first_attempt: bool = True


def browser(endpoint=AT_MOZILLA, **fields):
    return Called(BrowserDestination(uuid7(), endpoint, "", "", "", uuid7()), **fields)


def seen(*answers, service="mozilla"):
    return evidence_of(answers, service=service, trusted_origins=frozenset())


def test_every_answer_except_an_outage_counts_as_answered():
    said = [Accepted(), Gone("endpoint_gone"), Rejected("refused"), Deferred("throttled")]

    assert seen(*((browser(), each) for each in [*said, OUTAGE])) == Evidence(4, 1)


def test_a_retry_is_evidence_only_if_it_is_answered():
    retry = browser(is_first_attempt=False)

    assert seen((retry, OUTAGE)) == Evidence(0, 0)
    assert seen((retry, Accepted())) == Evidence(1, 0)


@pytest.mark.parametrize("outcome", [OUTAGE, Accepted()])
def test_an_unknown_host_is_no_evidence_about_the_push_service_it_resembles(outcome):
    assert seen((browser(MADE_UP), outcome)) == Evidence(0, 0)


@pytest.mark.parametrize(
    "outcome",
    [
        Rejected("payload_too_large", was_called=False),
        Deferred("unexpected_error", was_called=False),
        Misconfigured("key_unreadable", was_called=False),
    ],
)
def test_a_call_that_was_not_made_is_no_evidence(outcome):
    assert seen((browser(), outcome)) == Evidence(0, 0)


def test_tokens_always_belong_to_their_platforms_push_service():
    phone = Called(Destination(uuid7(), "token", ""))

    assert seen((phone, OUTAGE), service="fcm_v1") == Evidence(0, 1)


def test_first_attempts_are_the_sample_and_retries_only_if_there_are_none():
    first = [browser() for _ in range(3)]
    retries = [browser(is_first_attempt=False) for _ in range(3)]

    assert sample([*retries, *first], 2) == first[:2]
    assert sample(retries, 2) == retries[:2]

"""Warnings for staff about what only they can judge."""

import time

import pytest

from notifications_app.delivery.types import Accepted, Rejected
from notifications_app.pipeline.evidence import refused_by_many
from pushsvc.common import worker
from pushsvc.common.store.redis_client import redis_client
from tests import factories
from tests.pipeline import support

EVENT = "vapid.refused_by_many"


@pytest.mark.parametrize(("refusing", "warnings"), [(12, 1), (9, 0)])
def test_many_endpoints_that_refuse_our_vapid_key_cause_a_warning_and_pause_nothing(
    refusing, warnings, sandbox, channel, settings, caplog
):
    settings.FLUSH_SECONDS = 10  # all answers in one flush
    devices = factories.subscribe_browsers(sandbox, channel, 14)
    for device, _ in devices[:refusing]:
        device.behave("error", status=403)

    notification = support.send(channel)

    assert support.counts(notification) == ("sent", 14, 14 - refusing, refusing)
    assert len(support.logged(caplog, EVENT)) == warnings
    again = support.send(channel)
    assert support.counts(again)[1] == 14


@pytest.mark.parametrize(("refused", "of", "warnings"), [(10, 50, 1), (10, 51, 0), (9, 9, 0)])
def test_at_least_ten_refusals_that_are_a_fifth_of_all_outcomes_are_many(refused, of, warnings):
    outcomes = [Rejected("vapid_refused")] * refused + [Accepted()] * (of - refused)

    assert list(refused_by_many(outcomes)) == [(EVENT, refused)] * warnings


def test_a_silent_node_does_not_count_and_is_forgotten_after_a_while():
    now = time.time()
    nodes = {"web@alive": now, "web@silent": now - 60, "web@long-gone": now - 7200}
    for node, at in nodes.items():
        redis_client().hset("pushsvc:workers:web", node, f"{at}:4")

    assert worker.live_processes("web") == 4

    worker._forget_dead("web")
    assert set(redis_client().hgetall("pushsvc:workers:web")) == {"web@alive", "web@silent"}

"""Planning, claims, outcomes, lost leases, flushes, pauses, stops and edits in any order, compared
with a model.

The real functions run on the real database. The model knows which worker holds a batch and each
recipient's outcome. Hypothesis searches for an order of events after which rows and model differ.
The events are in `tests/pipeline/model/`, by subject.
"""

import math
import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from notifications_app.models import Delivery, Notification, Plan
from notifications_app.pipeline import plan_queue, planning, ranges
from tests.pipeline import support
from tests.pipeline.model.changes import Changes
from tests.pipeline.model.delivering import Delivering
from tests.pipeline.model.planning import Planning
from tests.pipeline.model.state import WAITING


class Pipeline(Planning, Delivering, Changes):
    """What is true after every step."""

    @invariant()
    def rows_are_what_the_model_says(self):
        rows = Delivery.objects.values_list(
            "notification_id", "subscription_id", "status", "attempts"
        )
        assert {row[:2]: row[2:] for row in rows} == self.rows

    @invariant()
    def every_sum_is_exact(self):
        support.assert_outcomes_exact(self.channel)  # no device reports an event
        for plan in Plan.objects.all():
            batches = plan.batches.values_list("recipient_count", flat=True)
            assert plan.recipient_count == sum(batches)

    @invariant()
    def only_what_is_complete_has_ended(self):
        for notification in Notification.objects.filter(id__in=self.throughout):
            mine = [row for key, row in self.rows.items() if key[0] == notification.id]
            is_planned = not notification.plans.filter(status="planning").exists()
            is_complete = is_planned and all(status != WAITING for status, _ in mine)
            assert (notification.status != "processing") == is_complete

    @invariant()
    def texts_are_those_of_the_last_edit(self):
        assert dict(Notification.objects.values_list("id", "body")) == self.bodies

    @invariant()
    def the_rest_gets_only_what_was_decided_first(self):
        assert self._decided() == self.decisions


def test_no_order_of_events_makes_the_rows_differ_from_the_model(
    transactional_db, settings_of_a_small_pipeline
):
    is_long = bool(os.environ.get("FAULTS_LONG"))
    run_state_machine_as_test(
        Pipeline,
        settings=settings(
            max_examples=300 if is_long else 10,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def settings_of_a_small_pipeline(settings, monkeypatch):
    """Only events end leases and planning transactions. If the clock did, an example that is
    repeated could differ."""
    settings.LEASE_SECONDS = 86_400
    monkeypatch.setattr(plan_queue, "PLAN_LEASE", timedelta(days=1))
    monkeypatch.setattr(planning, "_TRANSACTION_SECONDS", math.inf)
    monkeypatch.setattr(ranges, "LEAST_SUBSCRIBERS", 4)
    settings.PLAN_WINDOW = 5
    settings.BATCH_SIZE = 3

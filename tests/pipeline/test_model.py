"""Planning, claims, outcomes, lost leases, flushes, pauses and stops in any order, compared with a
model.

The real functions run on the real database. The model knows which worker holds a batch and each
recipient's outcome. Hypothesis searches for an order of events after which rows and model differ.
"""

import os
from contextlib import nullcontext

import pytest
from django.db import connection
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from channels_app.models import ProviderCredential
from notifications_app import services
from notifications_app.delivery.types import Accepted, Deferred, Gone, Misconfigured, Rejected
from notifications_app.errors import NotRunning
from notifications_app.models import Batch, Delivery, Notification, Plan
from notifications_app.pipeline import batches, outcomes, planning
from notifications_app.pipeline.lease import HeldLease, LeaseLost
from notifications_app.pipeline.transitions import DueDelivery, Limits, Transition, transition_of
from notifications_app.states import DeliveryStatus
from subscriptions_app.models import Subscription
from subscriptions_app.services import subscription_unsubscribe
from tests import factories
from tests.factories import make_channel
from tests.pipeline import support

WAITING, DELIVERED, BOUNCED = 0, 1, 2
OUTCOMES = [
    Accepted(),
    Rejected("refused"),
    Gone("unregistered"),
    Deferred("throttled", retry_after=1.0),
    Misconfigured("permission_denied"),
]
_PAST = "UPDATE {table} SET lease_until = now() - interval '1 s' WHERE id = %s"


class Pipeline(RuleBasedStateMachine):
    """`holder`: the attempt under which each leased batch is held. `rows`: (status, attempts) of
    each recipient. `flushes`: everything that was ever written or should have been."""

    @initialize()
    def begin(self):
        self.channel = make_channel("Alice's shop")
        ProviderCredential.objects.create(channel=self.channel, platform="android")
        self.notifications = []
        self.plan_leases = []
        self.leases = []
        self.holder = {}
        self.flushes = []
        self.rows = {}
        # By notification: the subscriptions that have been active since it started.
        self.throughout = {}
        self.over = set()
        self.paused = set()
        self.stopped = set()
        self.subscribe(5)
        self.send()
        self.start()
        self.claim_plan()
        self._plan_window(self.plan_leases[0])

    def teardown(self):
        try:
            self._bring_to_an_end()
        finally:
            with connection.cursor() as cursor:
                cursor.execute(
                    "TRUNCATE notifications_app_notification, notifications_app_delivery,"
                    " notifications_app_hourlystat, subscriptions_app_subscription CASCADE"
                )

    # The audience

    @rule(count=st.integers(1, 7))
    def subscribe(self, count):
        factories.add_subscriptions(self.channel, count, platform="android")

    @rule(data=st.data())
    def unsubscribe(self, data):
        active = list(self._active().order_by("id"))
        if active:
            leaving = data.draw(st.sampled_from(active))
            subscription_unsubscribe(
                channel=self.channel, platform="android", address=leaving.address
            )
            self._left({leaving.id})

    # Planning

    @precondition(lambda self: len(self.notifications) < 3)
    @rule()
    def send(self):
        self.notifications.append(
            factories.make_notification(self.channel, target_platforms=["android"])
        )

    @rule()
    def start(self):
        begun = self.throughout.keys() | self.paused
        pending = [n.id for n in self.notifications if n.id not in begun]
        assert planning.start_due() == len(pending)
        active = set(self._active().values_list("id", flat=True))
        self.throughout |= {notification_id: set(active) for notification_id in pending}

    @rule()
    def claim_plan(self):
        lease = planning.claim_plan()
        if lease is not None:
            assert lease.notification_id not in self.halted
            self.plan_leases.append(lease)

    @precondition(lambda self: self.plan_leases)
    @rule(data=st.data())
    def plan_window(self, data):
        """By the planner that has the plan, or by one that lost it."""
        self._plan_window(data.draw(st.sampled_from(self.plan_leases)))

    def _plan_window(self, lease):
        plan = Plan.objects.get(pk=lease.plan_id)
        may_write = plan.status == "planning" and plan.attempt == lease.attempt
        may_write = may_write and plan.notification_id not in self.halted
        active = set(self._active().values_list("id", flat=True))

        planning.plan_window(lease)

        now = set(support.deliveries(plan.notification).values_list("subscription_id", flat=True))
        before = {id_ for of, id_ in self.rows if of == plan.notification_id}
        assert before <= now
        assert may_write or now == before
        assert now - before <= active
        self.rows |= {(plan.notification_id, id_): (WAITING, 0) for id_ in now - before}
        plan.refresh_from_db()
        if plan.status != "planning" and plan.notification_id not in self.stopped:
            assert self.throughout[plan.notification_id] <= now

    @precondition(lambda self: self.plan_leases)
    @rule(data=st.data())
    def lose_plan(self, data):
        lease = data.draw(st.sampled_from(self.plan_leases))
        self._let_pass("notifications_app_plan", lease.plan_id)

    # Delivering

    @rule()
    def claim(self):
        """After the waits of deferred recipients, because what is due must not depend on how
        fast this runs."""
        Delivery.objects.filter(status=WAITING).update(due_at=None)
        Batch.objects.filter(status="ready").update(due_at=Now())
        lease = support.claim("android")
        if lease is None:
            return
        assert lease.batch_id not in self.holder
        assert lease.notification_id not in self.halted
        self.holder[lease.batch_id] = lease.attempt
        read = [
            DueDelivery(row.subscription_id, row.attempts, row.first_attempt_at, row.solo_attempts)
            for row in Delivery.objects.filter(batch_id=lease.batch_id, status=WAITING)
        ]
        self.leases.append((lease, read))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def flush(self, data):
        """Some outcomes, by the worker that has the batch or by one that had it."""
        lease, read = data.draw(st.sampled_from(self.leases))
        answered = data.draw(st.lists(st.sampled_from(read), unique=True)) if read else []
        transitions = [
            transition_of(
                recipient,
                data.draw(st.sampled_from(OUTCOMES)),
                registered_at=lease.claimed_at,
                now=lease.now(),
                limits=Limits(self._deadline(lease), attempts=12, seconds=3600),
            )
            for recipient in answered
        ]
        self.flushes.append((lease, transitions))
        self._record(lease, transitions)

    @precondition(lambda self: self.holder)
    @rule(data=st.data())
    def flush_too_late(self, data):
        """A worker was paused, its lease ended and another has the batch; now it writes."""
        lease, read = data.draw(
            st.sampled_from([each for each in self.leases if self._holds(each[0])])
        )
        self._lose(lease.batch_id)
        self.claim()
        late = [Transition(recipient, DeliveryStatus.DELIVERED, attempts=1) for recipient in read]
        self._record(lease, late)

    @precondition(lambda self: self.flushes)
    @rule(data=st.data())
    def flush_again(self, data):
        """Repeats a commit whose success the worker did not hear of."""
        self._record(*data.draw(st.sampled_from(self.flushes)))

    @precondition(lambda self: self.leases)
    @rule(
        data=st.data(),
        how=st.sampled_from(
            [
                HeldLease.park,
                HeldLease.hand_back_failed,
                lambda held: held.hand_back(finished_pass=True),
            ]
        ),
    )
    def give_back(self, data, how):
        lease, _ = data.draw(st.sampled_from(self.leases))
        how(HeldLease(lease))
        if self._holds(lease):
            del self.holder[lease.batch_id]

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def renew(self, data):
        lease, _ = data.draw(st.sampled_from(self.leases))
        with nullcontext() if self._holds(lease) else pytest.raises(LeaseLost):
            assert HeldLease(lease).renew() == (lease.notification_id in self.halted)

    @precondition(lambda self: self.holder)
    @rule(data=st.data())
    def lose(self, data):
        self._lose(data.draw(st.sampled_from(sorted(self.holder))))

    def _lose(self, batch_id):
        self._let_pass("notifications_app_batch", batch_id)
        assert batches.free_lost() == 1
        del self.holder[batch_id]

    # Pauses and stops

    @rule(data=st.data())
    def pause(self, data):
        """Also what is paused, stopped or at its end."""
        drawn = self._any(data)
        if self._change(services.notification_pause, drawn):
            self.paused.add(drawn.id)

    @rule(data=st.data())
    def resume(self, data):
        drawn = self._any(data)
        self._change(services.notification_resume, drawn)
        if drawn.id in self.paused and drawn.id in self.over:
            support.end_time(drawn)  # the pause gave it time
        self.paused.discard(drawn.id)

    @rule(data=st.data())
    def stop(self, data):
        drawn = self._any(data)
        if self._change(services.notification_stop, drawn):
            self.stopped.add(drawn.id)
            self.paused.discard(drawn.id)

    def _any(self, data):
        drawn = data.draw(st.sampled_from(self.notifications))
        drawn.refresh_from_db()
        return drawn

    def _change(self, change, drawn):
        """Whether it was allowed, as it should be."""
        is_over = drawn.status not in ("pending", "processing") or drawn.id in self.stopped
        refused = {
            services.notification_pause: is_over,
            services.notification_resume: False,
            services.notification_stop: drawn.status != "processing"
            and drawn.id not in self.stopped,
        }[change]
        with pytest.raises(NotRunning) if refused else nullcontext():
            change(channel_id=self.channel.id, notification_id=drawn.id)
        return not refused

    @property
    def halted(self):
        return self.paused | self.stopped

    # Time

    @precondition(lambda self: self.throughout)
    @rule(data=st.data())
    def pass_deadline(self, data):
        over = data.draw(st.sampled_from(sorted(self.throughout)))
        support.end_time(Notification.objects.get(pk=over))
        self.over.add(over)

    @rule()
    def tick(self):
        self._tick()
        for row in Delivery.objects.exclude(status=WAITING):
            key = (row.notification_id, row.subscription_id)
            # The tick bounces recipients without a call whose notification has no more time.
            if self.rows[key][0] == WAITING:
                is_stopped = row.notification_id in self.stopped
                assert is_stopped or row.notification_id in self.over - self.paused
                assert row.batch_id not in self.holder
                code = "stopped" if is_stopped else "expired"
                assert (row.status, row.code) == (BOUNCED, code)
                self.rows[key] = (BOUNCED, row.attempts)
        ended = self.over - self.paused | self.stopped
        idle = Batch.objects.filter(notification_id__in=ended, status__in=["ready", "parked"])
        assert not idle.exists()

    # What is true after every step

    @invariant()
    def rows_are_what_the_model_says(self):
        rows = Delivery.objects.values_list(
            "notification_id", "subscription_id", "status", "attempts"
        )
        assert {row[:2]: row[2:] for row in rows} == self.rows

    @invariant()
    def every_sum_is_exact(self):
        support.assert_outcomes_exact(self.channel)  # no device reports an event

    @invariant()
    def only_what_is_complete_has_ended(self):
        for notification in Notification.objects.filter(id__in=self.throughout):
            mine = [row for key, row in self.rows.items() if key[0] == notification.id]
            is_planned = not notification.plans.filter(status="planning").exists()
            is_complete = is_planned and all(status != WAITING for status, _ in mine)
            assert (notification.status != "processing") == is_complete

    # The model itself

    def _record(self, lease, transitions):
        if not self._holds(lease):
            with pytest.raises(LeaseLost):
                outcomes.record(lease, transitions)
            return
        assert outcomes.record(lease, transitions) == (lease.notification_id in self.halted)
        for transition in transitions:
            key = (lease.notification_id, transition.subscription_id)
            if self.rows[key] == (WAITING, transition.delivery.attempts):
                self.rows[key] = (
                    int(transition.status),
                    transition.delivery.attempts + transition.attempts,
                )
                if transition.expires_as_of is not None:
                    self._left({transition.subscription_id})
        if Batch.objects.get(pk=lease.batch_id).status == "done":
            del self.holder[lease.batch_id]

    def _holds(self, lease):
        return self.holder.get(lease.batch_id) == lease.attempt

    def _left(self, ids):
        for notification_id in self.throughout:
            self.throughout[notification_id] -= ids

    def _active(self):
        return Subscription.objects.filter(channel=self.channel, expired_at=None)

    def _deadline(self, lease):
        return Notification.objects.get(pk=lease.notification_id).deadline_at

    @staticmethod
    def _let_pass(table, row_id):
        with connection.cursor() as cursor:
            cursor.execute(_PAST.format(table=table), [row_id])

    @staticmethod
    def _tick():
        support.tick()
        while batches.overdue():  # a tick takes a bounded number
            support.tick()

    def _bring_to_an_end(self):
        """As workers and ticks do in the end, whatever was left."""
        for paused in Notification.objects.filter(id__in=self.paused):
            services.notification_resume(channel_id=self.channel.id, notification_id=paused.id)
        Plan.objects.filter(status="planning").update(lease_until=None)
        support.plan()
        Batch.objects.filter(status="leased").update(lease_until=Now())
        batches.free_lost()
        Notification.objects.filter(status="processing").update(deadline_at=Now())
        self._tick()
        left = Notification.objects.exclude(status__in=["sent", "failed"])
        assert not left.exclude(status="cancelled", id__in=self.stopped, recipient_count=0).exists()
        support.assert_exact(self.channel)


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
def settings_of_a_small_pipeline(settings):
    settings.PLAN_WINDOW = 5
    settings.BATCH_SIZE = 3

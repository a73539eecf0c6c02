"""Workers claim batches, record outcomes in time and too late, and give batches back."""

import pytest
from django.db.models.functions import Now
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from notifications_app.delivery.types import Accepted, Deferred, Gone, Misconfigured, Rejected
from notifications_app.models import Batch, Delivery, Notification
from notifications_app.pipeline import outcomes
from notifications_app.pipeline.lease import HeldLeases, LeaseLost
from notifications_app.pipeline.transitions import Limits, Transition, transition_of
from notifications_app.selectors import still_named
from notifications_app.states import DeliveryStatus
from tests.pipeline import support
from tests.pipeline.model.state import NAMED, WAITING, Model

OUTCOMES = [
    Accepted(),
    Rejected("refused"),
    Gone("unregistered"),
    Deferred("throttled", retry_after=1.0),
    Misconfigured("permission_denied"),
]


class Delivering(Model):
    @rule(most=st.integers(1, 4))
    def claim(self, most):
        """After the waits of deferred recipients, because what is due must not depend on how
        fast this runs."""
        Delivery.objects.filter(status=WAITING).update(due_at=None)
        Batch.objects.filter(status="ready").update(due_at=Now())
        leases = support.claim_together("android", most)
        assert len(leases) <= most
        for lease in leases:
            assert lease.batch_id not in self.holder
            assert lease.notification_id not in self.halted
            self.holder[lease.batch_id] = lease.number
            waiting = Delivery.objects.filter(batch_id=lease.batch_id, status=WAITING)
            waiting = waiting.order_by("subscription_id")
            self.leases.append((lease, [support.due(row) for row in waiting]))
            self._assert_named(lease, waiting)

    def _assert_named(self, lease, waiting):
        """Who is signed in now decides whom a send to a person still names."""
        recipients = [(lease.notification_id, row.subscription_id) for row in waiting]
        if recipients and self.kinds[lease.notification_id] == "targets":
            named = {each for each in recipients if self.person_of.get(each[1]) == NAMED}
            assert still_named(recipients).keys() == named

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def flush(self, data):
        """Some outcomes of batches that a worker has or had."""
        drawn = data.draw(
            st.lists(st.sampled_from(range(len(self.leases))), min_size=1, max_size=4)
        )
        # A worker has a batch only once, whichever attempts it knows of.
        known = {self.leases[n][0].batch_id: self.leases[n] for n in drawn}.values()
        transitions = [
            transition_of(
                recipient,
                data.draw(st.sampled_from(OUTCOMES)),
                registered_at=lease.claimed_at,
                now=lease.now(),
                limits=Limits(self._deadline(lease), attempts=12, seconds=3600),
            )
            for lease, read in known
            for recipient in read
            if data.draw(st.booleans())
        ]
        leases = [lease for lease, _ in known]
        self.flushes.append((leases, transitions))
        self._record(leases, transitions)

    @precondition(lambda self: self.holder)
    @rule(data=st.data())
    def flush_too_late(self, data):
        """A worker was paused, its lease ended and another has the batch; now it writes."""
        lease, read = data.draw(
            st.sampled_from([each for each in self.leases if self._holds(each[0])])
        )
        self._lose(lease.batch_id)
        self.claim(1)
        late = [Transition(recipient, DeliveryStatus.DELIVERED, attempts=1) for recipient in read]
        self._record([lease], late)

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
                HeldLeases.park,
                HeldLeases.hand_back_failed,
                lambda held: held.hand_back(finished_pass=True),
            ]
        ),
    )
    def give_back(self, data, how):
        lease, _ = data.draw(st.sampled_from(self.leases))
        how(HeldLeases([lease]))
        if self._holds(lease):
            del self.holder[lease.batch_id]

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def renew(self, data):
        lease, _ = data.draw(st.sampled_from(self.leases))
        self._record([lease], [])

    @precondition(lambda self: self.holder)
    @rule(data=st.data())
    def lose(self, data):
        self._lose(data.draw(st.sampled_from(sorted(self.holder))))

    def _record(self, leases, transitions):
        held = {lease.batch_id: lease for lease in leases if self._holds(lease)}
        if not held:
            with pytest.raises(LeaseLost):
                outcomes.record(leases, transitions)
            return
        renewal = outcomes.record(leases, transitions)
        assert renewal.is_halted == any(
            lease.notification_id in self.halted for lease in held.values()
        )
        assert renewal.lost == {lease.batch_id for lease in leases} - held.keys()
        for transition in transitions:
            if transition.delivery.batch_id in held:
                self._write(held[transition.delivery.batch_id].notification_id, transition)
        done = Batch.objects.filter(pk__in=held, status="done").values_list("pk", flat=True)
        assert renewal.done == set(done)
        for batch_id in done:
            del self.holder[batch_id]

    def _write(self, notification_id, transition):
        key = (notification_id, transition.subscription_id)
        if self.rows[key] == (WAITING, transition.delivery.attempts):
            attempts = transition.delivery.attempts + transition.attempts
            self.rows[key] = (int(transition.status), attempts)
            if transition.expires_as_of is not None:
                self._left({transition.subscription_id})

    def _deadline(self, lease):
        return Notification.objects.get(pk=lease.notification_id).deadline_at

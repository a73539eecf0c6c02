"""Pauses, resumes, stops and edits; deadlines pass, and the tick runs."""

from contextlib import nullcontext

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from notifications_app.errors import NotEditable, NotRunning, StillSending
from notifications_app.models import Batch, Delivery, Plan
from notifications_app.sends import services
from notifications_app.sends.editing import notification_edit
from tests.pipeline import support
from tests.pipeline.model.deciding import Deciding
from tests.pipeline.model.state import BOUNCED, WAITING


class Changes(Deciding):
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
        if drawn.id in self.paused:
            for over in self.over & self._plans_of()[drawn.id]:
                support.end_time_of_part(over)  # the pause gave it time
            if drawn.id in self.ended_tests:
                self._end_test(drawn.id)
        self.paused.discard(drawn.id)

    @rule(data=st.data())
    def stop(self, data):
        drawn = self._any(data)
        if self._change(services.notification_stop, drawn):
            self.stopped.add(drawn.id)
            self.paused.discard(drawn.id)
            self.unreleased -= self._plans_of()[drawn.id]

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

    @rule(data=st.data(), body=st.sampled_from(["Buns", "Rolls"]))
    def edit(self, data, body):
        """Also what is sent, or is being sent by a worker that the pause did not reach yet."""
        drawn = self._any(data)
        with self._refusal_of_edit(drawn) as refused:
            notification_edit(
                channel=self.channel, notification_id=drawn.id, changes={"body": body}
            )
        if not refused:
            self.bodies[drawn.id] = body

    def _refusal_of_edit(self, drawn):
        if drawn.status == "pending":
            return nullcontext()
        if drawn.status != "processing" or drawn.id not in self.paused:
            return pytest.raises(NotEditable)
        held = Batch.objects.filter(pk__in=self.holder, notification=drawn)
        return pytest.raises(StillSending) if held.exists() else nullcontext()

    # Time

    @precondition(lambda self: self.throughout)
    @rule(data=st.data())
    def pass_deadline(self, data):
        """Of one part. The others have time."""
        over = data.draw(st.sampled_from(list(Plan.objects.order_by("pk"))))
        support.end_time_of_part(over.pk)
        self.over.add(over.pk)

    @rule()
    def tick(self):
        self._tick()
        self._note_decisions()
        plan_of = dict(Batch.objects.values_list("pk", "plan_id"))
        for row in Delivery.objects.exclude(status=WAITING):
            key = (row.notification_id, row.subscription_id)
            # The tick bounces recipients without a call whose part has no more time.
            if self.rows[key][0] == WAITING:
                is_stopped = row.notification_id in self.stopped
                is_over = plan_of[row.batch_id] in self.over
                assert is_stopped or (is_over and row.notification_id not in self.paused)
                assert row.batch_id not in self.holder
                code = "stopped" if is_stopped else "expired"
                assert (row.status, row.code) == (BOUNCED, code)
                self.rows[key] = (BOUNCED, row.attempts)
        idle = Batch.objects.filter(status__in=["ready", "parked"])
        idle = idle.exclude(notification_id__in=self.paused)
        assert not idle.filter(notification_id__in=self.stopped).exists()
        assert not idle.filter(plan_id__in=self.over).exists()

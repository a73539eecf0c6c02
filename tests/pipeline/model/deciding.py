"""Tests of variants are decided: by a tick, or because somebody chooses."""

from contextlib import nullcontext

import pytest
from django.db.models.functions import Now
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from notifications_app.errors import AlreadyDecided, NoTest, NotRunning
from notifications_app.models import Notification
from notifications_app.pipeline import splitting
from notifications_app.sends.services import notification_decide
from tests.pipeline import support
from tests.pipeline.model.state import VARIANTS, Model
from tests.pipeline.test_variants import assert_sums, given_to


class Deciding(Model):
    @precondition(lambda self: self._undecided())
    @rule(data=st.data())
    def end_test(self, data):
        """The time of a test, or of its hold, has passed."""
        ended = data.draw(st.sampled_from(sorted(self._undecided())))
        self._end_test(ended)
        self.ended_tests.add(ended)

    @precondition(lambda self: "test" in self.kinds.values())
    @rule(data=st.data(), number=st.sampled_from(range(len(VARIANTS))))
    def choose(self, data, number):
        """Also what has not begun, is paused, stopped or decided, or has no test."""
        drawn = self._any(data)
        is_chosen = drawn.id in self._undecided()
        with nullcontext() if is_chosen else self._refusal_of_choice(drawn, number):
            name = VARIANTS[number]["name"]
            notification_decide(channel_id=self.channel.id, notification_id=drawn.id, name=name)
        if is_chosen:
            self._note_decision(drawn.id, by="choice")
            assert self.decisions[drawn.id]["variant"] == number

    def _refusal_of_choice(self, drawn, number):
        if self.kinds[drawn.id] != "test":
            return pytest.raises(NoTest)
        if drawn.id not in self.decisions:
            return pytest.raises(NotRunning)
        is_same = self.decisions[drawn.id]["variant"] == number
        return nullcontext() if is_same else pytest.raises(AlreadyDecided)

    def _note_decisions(self):
        """Of a tick."""
        for decided in self.ended_tests & self._undecided() - self.paused:
            self.ended_tests.discard(decided)
            word = "leader" if decided in self.held else self.inconclusive[decided]
            if word == "hold":
                self.held.add(decided)
            else:
                self._note_decision(decided, by="leader" if word == "leader" else "default")

    def _note_decision(self, notification_id, *, by):
        decision = Notification.objects.get(pk=notification_id).decision
        assert decision["by"] == by
        self.decisions[notification_id] = decision
        self.ended_tests.discard(notification_id)
        rest = set(
            self._rest_plans().filter(notification_id=notification_id).values_list(flat=True)
        )
        self.unreleased -= rest
        self.over -= rest  # its time to live begins

    def _undecided(self):
        """Tests that have begun, and can still be decided."""
        started = {each for each in self.throughout if self.kinds[each] == "test"}
        return started - self.decisions.keys() - self.stopped

    @staticmethod
    def _end_test(notification_id):
        Notification.objects.filter(pk=notification_id).update(decides_at=Now())

    @staticmethod
    def _decided():
        """The decisions by test. Who is not in a test has only the variant that it found."""
        tests = list(Notification.objects.exclude(test=None))
        for tested in tests:
            batches = tested.batches.values_list("pk", "plan__part", "variant")
            given = {pk: (part, variant) for pk, part, variant in batches}
            had = {row.subscription_id: given[row.batch_id] for row in support.deliveries(tested)}
            rest = splitting.rest_of(tested, list(had))
            assert rest == {id_ for id_, (part, _) in had.items() if part == 1}
            assert {variant for part, variant in had.values() if part == 0} <= {0, 1}
            assert {variant for part, variant in had.values() if part == 1} <= {tested.winner}
        return {each.pk: each.decision for each in tests if each.winner is not None}

    def _bring_to_an_end(self):
        super()._bring_to_an_end()
        assert self.decisions.items() <= self._decided().items()
        for split in Notification.objects.filter(extras__has_key="variants"):
            assert_sums(split)
            given = given_to(split)
            assert given == splitting.variants_of(split, list(given))

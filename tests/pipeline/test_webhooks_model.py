"""Facts, messages, claims, answers and changes of webhooks in any order, compared with a model.

Each fact is in exactly one message, and each message reaches each webhook that wanted it, or fails.
"""

import json
from collections import Counter

from django.db.models import F
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from channels_app import webhooks
from channels_app.feeds import EventKind, Fact, feed_add
from channels_app.models import Feed, Webhook, WebhookAttempt, WebhookMessage
from notifications_app.webhooks import attempts, calls, messages
from pushsvc.common.ids import uuid7
from tests.factories import make_channel
from tests.pipeline.hooks import claim, make_due

KINDS = st.sampled_from([EventKind.CLICKED, EventKind.DISMISSED])
ANSWERS = {
    "204": calls.Answer(is_delivered=True, words="204"),
    "500": calls.Answer(is_delivered=False, words="500"),
    "410": calls.Answer(is_delivered=False, words="410", is_gone=True),
}


class Webhooks(RuleBasedStateMachine):
    """`wanted`: the kinds of each webhook. `waiting`: facts in no message yet, by kind. `told`:
    facts in a message. `states`: what became of each message at each webhook. `newest`: the number
    of the last claim of each. `held`: those whose claim is a lease."""

    calls = Bundle("calls")

    def __init__(self):
        super().__init__()
        self.channel = make_channel()
        self.wanted, self.disabled_by = {}, {}
        self.waiting, self.told = Counter(), Counter()
        self.states, self.newest, self.held = {}, {}, set()

    def teardown(self):
        Webhook.objects.all().delete()
        Feed.objects.all().delete()

    def hears(self, hook):
        return self.disabled_by.get(hook) != "owner"

    # What owners do

    @precondition(lambda self: len(self.wanted) < 3)
    @rule(kinds=st.sets(KINDS, min_size=1))
    def create(self, kinds):
        row, _ = webhooks.webhook_create(
            channel=self.channel, url="https://backend.shop.com/", events=sorted(kinds)
        )
        self.wanted[row.pk] = kinds

    @precondition(lambda self: self.wanted)
    @rule(data=st.data(), kinds=st.sets(KINDS, min_size=1), enabled=st.booleans())
    def change(self, data, kinds, enabled):
        hook = self.any_hook(data)
        webhooks.webhook_update(
            **self.of(hook),
            url="https://backend.shop.com/",
            events=sorted(kinds),
            enabled=enabled,
        )
        self.wanted[hook] = kinds
        self.disabled_by.pop(hook, None)
        if not enabled:
            self.disable(hook, "owner")

    @precondition(lambda self: self.wanted)
    @rule(data=st.data())
    def delete(self, data):
        hook = self.any_hook(data)
        webhooks.webhook_delete(**self.of(hook))
        del self.wanted[hook]
        self.states = {key: state for key, state in self.states.items() if key[1] != hook}

    @precondition(lambda self: self.wanted)
    @rule(data=st.data(), state=st.sampled_from(["failed", "delivered"]))
    def replay(self, data, state):
        hook = self.any_hook(data)
        if hook in self.disabled_by:
            return
        webhooks.webhook_replay(**self.of(hook), since=self.channel.created_at, state=state)
        for key, was in self.states.items():
            if key[1] == hook and was == state:
                self.states[key] = "waiting"
                self.held.discard(key)

    # What happens

    @rule(kind=KINDS, number=st.integers(1, 4))
    def happen(self, kind, number):
        facts = [Fact(kind, uuid7()) for _ in range(number)]
        feed_add(self.channel.pk, facts)
        if any(kind in kinds and self.hears(hook) for hook, kinds in self.wanted.items()):
            self.waiting.update((kind, str(each.subject)) for each in facts)

    @rule()
    def tell(self):
        before = set(WebhookMessage.objects.values_list("pk", flat=True))
        messages.make_messages(lambda: True)
        for message in WebhookMessage.objects.exclude(pk__in=before):
            for hook, kinds in self.wanted.items():
                if message.type in kinds and self.hears(hook):
                    is_sent = hook not in self.disabled_by
                    self.states[message.pk, hook] = "waiting" if is_sent else "failed"
        wanted = {kind for hook, kinds in self.wanted.items() if self.hears(hook) for kind in kinds}
        self.told.update({fact: 1 for fact in self.waiting if fact[0] in wanted})
        self.waiting.clear()

    @rule(target=calls, room=st.integers(1, 5))
    def claim(self, room):
        claimed = claim(room)
        for call in claimed:
            key = call.message_id, call.webhook_id
            assert self.states[key] == "waiting"
            assert key not in self.held
            self.held.add(key)
            self.newest[key] = call.lease_number
        at_once = Counter(hook for _, hook in self.held)
        assert max(at_once.values(), default=0) <= calls.AT_ONCE
        return multiple(*claimed)

    @rule(call=consumes(calls), answer=st.sampled_from(sorted(ANSWERS)))
    def answer(self, call, answer):
        """It changes nothing if the message was claimed again, or waits no longer."""
        attempts.record(call, ANSWERS[answer])
        key = call.message_id, call.webhook_id
        if self.newest[key] != call.lease_number or self.states.get(key) != "waiting":
            return
        self.held.discard(key)
        if answer == "204":
            self.states[key] = "delivered"
        elif answer == "410":
            self.states[key] = "failed"
            if call.webhook_id not in self.disabled_by:
                self.disable(call.webhook_id, "service")
        elif call.attempts == 10:
            self.states[key] = "failed"

    @rule()
    def kill_the_workers(self):
        """Their leases end, and so does the wait of messages whose call failed."""
        WebhookAttempt.objects.filter(lease_until__gte=Now()).update(lease_until=F("due_at"))
        make_due()
        self.held.clear()

    # What is true after every step

    @invariant()
    def each_fact_is_in_one_place(self):
        assert {(row.kind, str(row.subject)) for row in Feed.objects.all()} == set(self.waiting)
        said = [
            json.loads(bytes(row.body))
            for row in WebhookMessage.objects.filter(channel_id=self.channel.pk)
        ]
        told = Counter(
            (each["type"], fact["notification_id"])
            for each in said
            for fact in each["data"]["events"]
        )
        assert told == self.told

    @invariant()
    def each_message_is_where_the_model_says(self):
        rows = WebhookAttempt.objects.filter(webhook__in=self.wanted)
        found = {(row.message_id, row.webhook_id): row.state for row in rows}
        assert found == self.states

    def any_hook(self, data):
        return data.draw(st.sampled_from(sorted(self.wanted)))

    def of(self, hook):
        return {"channel_id": self.channel.pk, "webhook_id": hook}

    def disable(self, hook, by):
        self.disabled_by[hook] = by
        for key, state in self.states.items():
            if key[1] == hook and state == "waiting":
                self.states[key] = "failed"
                self.held.discard(key)


def test_no_order_of_events_loses_or_repeats_a_fact(db):
    run_state_machine_as_test(
        Webhooks,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

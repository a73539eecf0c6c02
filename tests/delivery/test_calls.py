"""Outcomes that two threads hand over: the event loop, and the one that writes them."""

import asyncio
import sys
import threading
from itertools import count

import pytest

from notifications_app.delivery import engine as engines
from notifications_app.delivery.engine import Calls, Engine
from notifications_app.delivery.types import Accepted

RECIPIENTS = 100


def test_outcomes_that_come_while_others_are_collected_are_collected_too():
    engine, gates, numbers = Engine(), [asyncio.Event() for _ in range(RECIPIENTS)], count()

    async def call(recipient):
        await gates[recipient].wait()
        return Accepted()

    async def answer(recipient):
        gates[recipient].set()

    def answer_before_each_line(frame, event, _argument):
        if frame.f_code is not Calls.collect.__code__:
            return None
        if event == "line" and (recipient := next(numbers)) < RECIPIENTS:
            engine.run(answer(recipient))
            engine.run(asyncio.sleep(0))  # until its outcome is noted
        return answer_before_each_line

    calls = made(engine, call, range(RECIPIENTS))
    collected, before = [], sys.gettrace()
    sys.settrace(answer_before_each_line)
    try:
        while not calls.is_over:
            collected += calls.collect(most=RECIPIENTS, seconds=0)
    finally:
        sys.settrace(before)
        engine.stop()

    assert sorted(recipient for recipient, _ in collected) == list(range(RECIPIENTS))


def test_what_is_to_be_done_when_calls_are_over_waits_for_those_in_flight():
    engine, gate, done = Engine(), asyncio.Event(), threading.Event()
    begun = threading.Event()

    async def call(_recipient):
        begun.set()
        await gate.wait()
        return Accepted()

    async def answer():
        gate.set()

    calls = made(engine, call, [1])
    assert begun.wait(60)
    calls.when_over(done.set)
    assert not done.is_set()
    engine.run(answer())

    assert done.wait(60)
    assert calls.collect(most=2, seconds=60) == [(1, Accepted())]
    assert calls.is_over
    engine.stop()


def test_recipients_that_may_not_start_are_left_out():
    engine, called = Engine(), []

    async def call(recipient):
        called.append(recipient)
        return Accepted()

    calls = made(engine, call, range(5), may_start=lambda recipient: recipient % 2)
    while not calls.is_over:
        calls.collect(most=5, seconds=60)
    engine.stop()

    assert called == [1, 3]
    assert not calls.is_whole


def test_no_call_starts_while_one_in_flight_makes_the_others_wait():
    engine, called, waiting = Engine(), [], set()

    def note_the_first(recipient):
        waiting.update({recipient} - {1, 2, 3})
        return True

    async def call(recipient):
        called.append((recipient, sorted(waiting)))
        if recipient == 0:
            await asyncio.sleep(0.3)  # longer than until the loop looks again
            waiting.clear()
        return Accepted()

    calls = made(engine, call, range(4), may_start=note_the_first, must_wait=lambda: bool(waiting))
    while not calls.is_over:
        calls.collect(most=4, seconds=60)
    engine.stop()

    assert called == [(0, [0]), (1, []), (2, []), (3, [])]
    assert calls.is_whole


@pytest.mark.parametrize("limit", ["most_in_flight", "most_unwritten"])
def test_the_next_call_starts_as_soon_as_there_is_room(limit, monkeypatch):
    monkeypatch.setattr(engines, "_LOOK_AGAIN_SECONDS", 3600.0)
    engine, collected = Engine(), []

    async def call(_recipient):
        return Accepted()

    calls = made(engine, call, range(5), **{limit: 1})
    while len(collected) < 5:
        outcomes = calls.collect(most=1, seconds=20)
        assert outcomes
        collected += outcomes
        if limit == "most_unwritten":
            calls.written(len(outcomes))
    engine.stop()

    assert [recipient for recipient, _ in collected] == [0, 1, 2, 3, 4]


def made(engine, call, recipients, **options):
    return Calls(
        engine,
        call,
        recipients,
        may_go_on=lambda: True,
        **{
            "may_start": lambda _: True,
            "must_wait": lambda: False,
            "most_in_flight": RECIPIENTS,
            "most_unwritten": RECIPIENTS,
        }
        | options,
    )

"""Outcomes that two threads hand over: the event loop, and the one that writes them."""

import asyncio
import sys
import threading
from itertools import count

import pytest

from notifications_app.delivery import event_loop
from notifications_app.delivery.event_loop import Calls, EventLoopThread
from notifications_app.delivery.types import Accepted

RECIPIENTS = 100


def test_outcomes_that_come_while_others_are_collected_are_collected_too():
    loop_thread, gates, numbers = (
        EventLoopThread(),
        [asyncio.Event() for _ in range(RECIPIENTS)],
        count(),
    )

    async def call(recipient):
        await gates[recipient].wait()
        return Accepted()

    async def answer(recipient):
        gates[recipient].set()

    def answer_before_each_line(frame, event, _argument):
        if frame.f_code is not Calls.collect.__code__:
            return None
        if event == "line" and (recipient := next(numbers)) < RECIPIENTS:
            loop_thread.run(answer(recipient))
            loop_thread.run(asyncio.sleep(0))  # until its outcome is noted
        return answer_before_each_line

    calls = made(loop_thread, call, range(RECIPIENTS))
    collected, before = [], sys.gettrace()
    sys.settrace(answer_before_each_line)
    try:
        while not calls.is_over:
            collected += calls.collect(most=RECIPIENTS, seconds=0)
    finally:
        sys.settrace(before)
        loop_thread.stop()

    assert sorted(recipient for recipient, _ in collected) == list(range(RECIPIENTS))


def test_what_is_to_be_done_when_calls_are_over_waits_for_those_in_flight():
    loop_thread, gate, done = EventLoopThread(), asyncio.Event(), threading.Event()
    begun = threading.Event()

    async def call(_recipient):
        begun.set()
        await gate.wait()
        return Accepted()

    async def answer():
        gate.set()

    calls = made(loop_thread, call, [1])
    assert begun.wait(60)
    calls.when_over(done.set)
    assert not done.is_set()
    loop_thread.run(answer())

    assert done.wait(60)
    assert calls.collect(most=2, seconds=60) == [(1, Accepted())]
    assert calls.is_over
    loop_thread.stop()


def test_recipients_that_may_not_start_are_left_out():
    loop_thread, called = EventLoopThread(), []

    async def call(recipient):
        called.append(recipient)
        return Accepted()

    calls = made(loop_thread, call, range(5), may_start=lambda recipient: recipient % 2)
    while not calls.is_over:
        calls.collect(most=5, seconds=60)
    loop_thread.stop()

    assert called == [1, 3]
    assert not calls.is_whole


def test_no_call_starts_while_one_in_flight_makes_the_others_wait():
    loop_thread, called, waiting = EventLoopThread(), [], set()

    def note_the_first(recipient):
        waiting.update({recipient} - {1, 2, 3})
        return True

    async def call(recipient):
        called.append((recipient, sorted(waiting)))
        if recipient == 0:
            await asyncio.sleep(0.3)  # longer than until the loop looks again
            waiting.clear()
        return Accepted()

    calls = made(
        loop_thread, call, range(4), may_start=note_the_first, must_wait=lambda: bool(waiting)
    )
    while not calls.is_over:
        calls.collect(most=4, seconds=60)
    loop_thread.stop()

    assert called == [(0, [0]), (1, []), (2, []), (3, [])]
    assert calls.is_whole


@pytest.mark.parametrize("limit", ["most_in_flight", "most_unwritten"])
def test_the_next_call_starts_as_soon_as_there_is_room(limit, monkeypatch):
    monkeypatch.setattr(event_loop, "_LOOK_AGAIN_SECONDS", 3600.0)
    loop_thread, collected = EventLoopThread(), []

    async def call(_recipient):
        return Accepted()

    calls = made(loop_thread, call, range(5), **{limit: 1})
    while len(collected) < 5:
        outcomes = calls.collect(most=1, seconds=20)
        assert outcomes
        collected += outcomes
        if limit == "most_unwritten":
            calls.written(len(outcomes))
    loop_thread.stop()

    assert [recipient for recipient, _ in collected] == [0, 1, 2, 3, 4]


def made(loop_thread, call, recipients, **options):
    return Calls(
        loop_thread,
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

"""Outcomes that two threads hand over: the event loop, and the one that writes them."""

import asyncio
import sys
from itertools import count

from notifications_app.delivery.engine import Engine, Pass
from notifications_app.delivery.types import Accepted

RECIPIENTS = 100


def test_outcomes_that_come_while_others_are_collected_are_collected_too():
    engine, gates, numbers = Engine(), [asyncio.Event() for _ in range(RECIPIENTS)], count()

    async def call(target):
        await gates[target].wait()
        return Accepted()

    async def answer(target):
        gates[target].set()

    def answer_before_each_line(frame, event, _argument):
        if frame.f_code is not Pass.collect.__code__:
            return None
        if event == "line" and (target := next(numbers)) < RECIPIENTS:
            engine.run(answer(target))
            engine.run(asyncio.sleep(0))  # until its outcome is noted
        return answer_before_each_line

    calls = Pass(
        engine,
        call,
        range(RECIPIENTS),
        may_start=lambda _: True,
        most_in_flight=RECIPIENTS,
        most_unwritten=RECIPIENTS,
    )
    collected, before = [], sys.gettrace()
    sys.settrace(answer_before_each_line)
    try:
        while not calls.is_over:
            collected += calls.collect(most=RECIPIENTS, seconds=0)
    finally:
        sys.settrace(before)
        engine.stop()

    assert sorted(target for target, _ in collected) == list(range(RECIPIENTS))

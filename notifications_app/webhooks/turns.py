"""The turn of a worker of webhooks: makes messages, claims them, calls, records.

It checks newsfeeds as well, because it calls addresses of owners, which may hang.
"""

import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Final

from notifications_app.newsfeeds import checks
from notifications_app.newsfeeds.fetching import Check, Fetcher, Result
from notifications_app.pipeline import wakeup
from notifications_app.webhooks import attempts, calls, messages
from notifications_app.webhooks.calls import Answer, Call, Caller
from pushsvc.common import worker

# Of a process. Webhooks whose last call failed or was slow have places of their own, so that they
# take none from the others.
CALLS_IN_FLIGHT: Final = 400
TROUBLED_IN_FLIGHT: Final = 100
NEWSFEEDS_IN_FLIGHT: Final = 20
_LOOK_AGAIN_SECONDS: Final = 0.25
_MAKING_SECONDS: Final = 0.5  # then due messages are claimed


def work(*, seconds: float) -> bool:
    """Collects, sends and fetches until nothing is due or the time is up, then waits for what is in
    flight. Returns whether work is left."""
    until = time.monotonic() + seconds
    turn = _Turn(until - min(calls.CALL_SECONDS, seconds / 2))
    try:
        while time.monotonic() < until and not worker.is_stopping():
            if not turn.step():
                return False
        return True
    finally:
        turn.end()


class _Turn:
    """Begins no calls of troubled webhooks and newsfeeds after `trouble_until`, because the end of
    the turn waits for its calls and makes no others meanwhile."""

    def __init__(self, trouble_until: float) -> None:
        self._trouble_until = trouble_until
        self._calls: dict[Future[Answer], Call] = {}
        self._caller: Caller | None = None
        self._checks: dict[Future[Result], Check] = {}
        self._fetcher: Fetcher | None = None
        self._collector = messages.Collector()

    def step(self) -> bool:
        """Returns whether something was done or is in flight. A call that ended may have kept the
        webhook's next message from being claimed."""
        pause = time.monotonic() + _MAKING_SECONDS
        made = self._collector.make_messages(lambda: time.monotonic() < pause)
        claimed = self._claim(CALLS_IN_FLIGHT, is_troubled=False)
        if time.monotonic() < self._trouble_until:
            claimed += self._claim(TROUBLED_IN_FLIGHT, is_troubled=True)
            self._begin_checks()
        for call in claimed:
            if self._caller is None:
                self._caller = Caller(CALLS_IN_FLIGHT + TROUBLED_IN_FLIGHT)
            self._calls[self._caller.begin(call)] = call
        ended = self._record(_LOOK_AGAIN_SECONDS)
        return bool(made or claimed or ended or self._calls or self._checks)

    def end(self) -> None:
        """Waits for the calls in flight, which end within the time of a call."""
        try:
            while self._calls or self._checks:
                self._record(_LOOK_AGAIN_SECONDS)
        finally:
            for each in (self._caller, self._fetcher):
                if each:
                    each.close()

    def _claim(self, most: int, *, is_troubled: bool) -> list[Call]:
        own = (each for each in self._calls.values() if each.is_troubled == is_troubled)
        in_flight = Counter(each.account_id for each in own)
        return attempts.claim(most, is_troubled=is_troubled, in_flight=in_flight)

    def _record(self, seconds: float) -> int:
        """Returns how many calls have ended."""
        begun: list[Future[Any]] = [*self._calls, *self._checks]
        if not begun:
            return 0
        done, _ = wait(begun, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in done:
            if future in self._calls:
                attempts.record(self._calls.pop(future), future.result())
            elif checks.record(self._checks.pop(future), future.result()):
                wakeup.request_firing()
        return len(done)

    def _begin_checks(self) -> None:
        in_flight = Counter(each.account_id for each in self._checks.values())
        for check in checks.claim(NEWSFEEDS_IN_FLIGHT, in_flight=in_flight):
            if self._fetcher is None:
                self._fetcher = Fetcher(NEWSFEEDS_IN_FLIGHT)
            self._checks[self._fetcher.begin(check)] = check

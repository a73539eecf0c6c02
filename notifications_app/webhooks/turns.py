"""The turn of a worker of webhooks: makes messages, claims them, calls, records."""

import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Final

from notifications_app.webhooks import attempts, messages
from notifications_app.webhooks.calls import Answer, Call, Caller
from pushsvc.common import worker

CALLS_IN_FLIGHT: Final = 100
_LOOK_AGAIN_SECONDS: Final = 0.25
_MAKING_SECONDS: Final = 0.5  # then due messages are claimed


def work(*, seconds: float) -> bool:
    """Collects and sends until nothing is due or the time is up, then waits for the calls in
    flight. Returns whether work is left."""
    until = time.monotonic() + seconds
    turn = _Turn()
    try:
        while time.monotonic() < until and not worker.is_stopping():
            if not turn.step():
                return False
        return True
    finally:
        turn.end()


class _Turn:
    def __init__(self) -> None:
        self._calls: dict[Future[Answer], Call] = {}
        self._caller: Caller | None = None
        self._collector = messages.Collector()

    def step(self) -> bool:
        """Returns whether something was done or is in flight."""
        pause = time.monotonic() + _MAKING_SECONDS
        made = self._collector.make_messages(lambda: time.monotonic() < pause)
        room = CALLS_IN_FLIGHT - len(self._calls)
        claimed = attempts.claim(room) if room else []
        for call in claimed:
            if self._caller is None:
                self._caller = Caller()
            self._calls[self._caller.begin(call)] = call
        self._record(_LOOK_AGAIN_SECONDS)
        return bool(made or claimed or self._calls)

    def end(self) -> None:
        """Waits for the calls in flight, which end within the time of a call."""
        try:
            while self._calls:
                self._record(_LOOK_AGAIN_SECONDS)
        finally:
            if self._caller:
                self._caller.close()

    def _record(self, seconds: float) -> None:
        if not self._calls:
            return
        done, _ = wait(self._calls, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in done:
            call = self._calls.pop(future)
            attempts.record(call, future.result())

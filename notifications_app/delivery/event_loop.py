"""The event loop of a worker process, and the calls of a pass in it.

The loop runs in its own thread as long as the process lives, so that connections stay alive between
batches. The task's thread begins the calls, collects their outcomes and reports how many it has
written. The numbers of calls in flight and of unwritten outcomes are limited.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Generic, TypeVar

import structlog
from typing_extensions import override

from notifications_app.delivery.types import INTERNAL_ERROR, Outcome, Rejected

logger = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")
R = TypeVar("R")

_LOOK_AGAIN_SECONDS = 0.1
_BEAT_SECONDS: Final = 0.25
# If more than this passes between two reads of the clock, the loop was held up.
_HELD_UP_SECONDS: Final = 1.0


class PatientLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stops while the loop is held up, because the process was paused or
    got no processor time.

    Responses that arrived meanwhile are not read yet. With a normal clock, all calls would time out
    as soon as the loop continues, although the push service accepted their messages.
    """

    def __init__(self) -> None:
        self._looked_at = time.monotonic()
        self._held_up = 0.0
        super().__init__()
        self._beat()

    @override
    def time(self) -> float:
        now = time.monotonic()
        if now - self._looked_at > _HELD_UP_SECONDS:
            self._held_up += now - self._looked_at
        self._looked_at = now
        return now - self._held_up

    def _beat(self) -> None:
        """Reads the clock regularly, even if the loop is idle."""
        self.call_later(_BEAT_SECONDS, self._beat)


class EventLoopThread:
    """An event loop in its own thread. Create it after the fork: threads do not survive a fork."""

    def __init__(self) -> None:
        self.loop = PatientLoop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="delivery", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Runs the coroutine in the loop and returns its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Calls(Generic[T]):
    """Calls `call(recipient)` once for each recipient, in order, while `may_go_on()` is true. Skips
    recipients for which `may_start(recipient)` is false. Starts no call while `must_wait()` is
    true, until a call in flight ends.

    `call` returns an Outcome. If it raises, which is a bug, that recipient is Rejected as
    `internal_error` and the others continue.
    """

    def __init__(
        self,
        event_loop: EventLoopThread,
        call: Callable[[T], Awaitable[Outcome]],
        recipients: Sequence[T],
        *,
        may_go_on: Callable[[], bool],
        may_start: Callable[[T], bool],
        must_wait: Callable[[], bool] = lambda: False,
        most_in_flight: int,
        most_unwritten: int,
    ) -> None:
        self._call = call
        self._recipients = recipients
        self._left = deque(recipients)
        self._may_go_on = may_go_on
        self._may_start = may_start
        self._must_wait = must_wait
        self._most_in_flight = most_in_flight
        self._most_unwritten = most_unwritten
        self._loop = event_loop.loop
        self._results: list[tuple[T, Outcome]] = []
        self._wanted = 0
        self._is_enough = threading.Event()
        self._in_flight: set[asyncio.Task[None]] = set()
        self._unwritten = 0
        self._stopped = False
        self._room = asyncio.Event()
        self.started = 0
        self._end = asyncio.run_coroutine_threadsafe(self._run(), self._loop)
        self._end.add_done_callback(lambda _: self._is_enough.set())

    @property
    def is_whole(self) -> bool:
        """Whether a call was started for every recipient."""
        return self.started == len(self._recipients)

    @property
    def is_over(self) -> bool:
        """Whether all calls have ended and all outcomes were collected."""
        return self._end.done() and not self._results

    def collect(self, *, most: int, seconds: float) -> list[tuple[T, Outcome]]:
        """Waits for outcomes and returns them: at most `most`, or fewer after `seconds` or when all
        calls have ended.

        The event loop does not wake the caller for each outcome, because changing threads costs
        more than noting an outcome.
        """
        self._is_enough.clear()
        self._wanted = most
        if len(self._results) < most and not self._end.done():
            self._is_enough.wait(seconds)
        collected = self._results[:most]
        del self._results[: len(collected)]  # the loop may have added others meanwhile
        return collected

    def written(self, count: int) -> None:
        """Reports that `count` outcomes are written, so that as many further calls may start."""
        self._loop.call_soon_threadsafe(self._make_room, count)

    def stop(self) -> None:
        """Starts no further call. Calls in flight still end."""
        self._stopped = True

    def when_over(self, act: Callable[[], object]) -> None:
        """Calls `act()` in the event loop when the last call has ended. If it has ended already,
        calls it at once in the caller's thread."""
        self._end.add_done_callback(lambda _: act())

    async def _run(self) -> None:
        while await self._has_room():
            recipient = self._next()
            if recipient is None:
                break
            self._begin(recipient)
        if self._in_flight:
            await asyncio.wait(self._in_flight)

    def _next(self) -> T | None:
        """The next recipient whose call may start, which counts as started; None if none is
        left."""
        while self._left:
            recipient = self._left.popleft()
            if self._may_start(recipient):
                self.started += 1
                self._unwritten += 1
                return recipient
        return None

    async def _has_room(self) -> bool:
        """Waits until a call may start. Returns False if no further call may start."""
        while self._may_begin_calls():
            if len(self._in_flight) < self._most_in_flight and self._is_ready():
                return True
            self._room.clear()
            try:
                await asyncio.wait_for(self._room.wait(), _LOOK_AGAIN_SECONDS)
            except TimeoutError:
                continue
        return False

    def _may_begin_calls(self) -> bool:
        return bool(self._left) and self._may_go_on() and not self._stopped

    def _is_ready(self) -> bool:
        """Whether a call need not wait for outcomes to be written, nor for a call in flight."""
        return self._unwritten < self._most_unwritten and not self._must_wait()

    def _begin(self, recipient: T) -> None:
        task = self._loop.create_task(self._call_in_turn(recipient))
        self._in_flight.add(task)
        task.add_done_callback(self._leave)

    async def _call_in_turn(self, recipient: T | None) -> None:
        """Calls the recipient, and then the next ones while no call has to wait. A task for each
        call would cost a twentieth of a message."""
        while recipient is not None:
            await self._note_outcome(recipient)
            may_go_on = self._may_begin_calls() and self._is_ready()
            recipient = self._next() if may_go_on else None

    async def _note_outcome(self, recipient: T) -> None:
        try:
            outcome = await self._call(recipient)
        except Exception as error:  # noqa: BLE001 (one recipient must not stop its batch)
            logger.error("delivery.internal_error", error=type(error).__name__)
            outcome = Rejected(INTERNAL_ERROR, type(error).__name__, was_called=False)
        self._results.append((recipient, outcome))
        if len(self._results) >= self._wanted and not self._is_enough.is_set():
            self._is_enough.set()

    def _leave(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        self._room.set()

    def _make_room(self, count: int) -> None:
        self._unwritten -= count
        self._room.set()

"""Group commit: calls that threads make at the same time are carried out as one."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Together(Generic[Item]):
    """Calls `act` with the items of all calls that wait, in one of their threads; the others return
    when that has. While it acts, calls wait for the next time."""

    def __init__(self, act: Callable[[Sequence[Item]], None]) -> None:
        self._act = act
        self._acting = Lock()
        self._waiting: deque[tuple[Sequence[Item], Future[None]]] = deque()

    def __call__(self, items: Sequence[Item]) -> None:
        """Returns when `act` was called with the items among others; raises what it raised."""
        done: Future[None] = Future()
        self._waiting.append((items, done))
        with self._acting:
            if not done.done():  # else a thread before took them along
                self._act_for_all()
        done.result()

    def _act_for_all(self) -> None:
        calls = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            self._act([item for items, _ in calls for item in items])
        except BaseException as error:
            for _, done in calls:
                done.set_exception(error)
            raise
        for _, done in calls:
            done.set_result(None)

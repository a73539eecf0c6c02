"""Group commit: combines concurrent calls of threads into one."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock
from typing import Generic, TypeVar

Item = TypeVar("Item")


def group_size(sizes: Iterable[int], most: int) -> int:
    """How many of the first calls have at most `most` items together, at least one."""
    return max(1, bisect_right(list(accumulate(sizes)), most))


@dataclass(eq=False)
class _Submission(Generic[Item]):
    """`turn`: True if its thread must act, False if another thread acted for it."""

    items: Sequence[Item]
    turn: Future[bool] = field(default_factory=Future)


class GroupCommit(Generic[Item]):
    """Calls `act` with the items of waiting calls, in the thread of one of them. Then all of them
    return. Calls that arrive meanwhile wait for the next turn, and so do calls with which the group
    would have more than `most` items."""

    def __init__(self, act: Callable[[Sequence[Item]], None], *, most: int) -> None:
        self._act = act
        self._most = most
        self._lock = Lock()
        self._waiting: list[_Submission[Item]] = []
        self._is_acting = False

    def __call__(self, items: Sequence[Item]) -> None:
        """Returns after a call of `act` that contains these items. Raises what `act` raises."""
        call = _Submission(items)
        with self._lock:
            self._waiting.append(call)
            if not self._is_acting:
                self._is_acting = True
                call.turn.set_result(True)
        if call.turn.result():
            self._act_for_group(call)

    def _act_for_group(self, own: _Submission[Item]) -> None:
        with self._lock:
            number = group_size((len(call.items) for call in self._waiting), self._most)
            calls, self._waiting = self._waiting[:number], self._waiting[number:]
        others = [call for call in calls if call is not own]  # the first one has the turn
        try:
            self._act([item for call in calls for item in call.items])
        except BaseException as error:
            for call in others:
                call.turn.set_exception(error)
            raise
        else:
            for call in others:
                call.turn.set_result(False)
        finally:
            self._give_turn()

    def _give_turn(self) -> None:
        with self._lock:
            self._is_acting = bool(self._waiting)
            if self._waiting:
                self._waiting[0].turn.set_result(True)

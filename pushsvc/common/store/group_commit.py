"""Group commit: combines concurrent calls of threads into one."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(eq=False)
class _Submission(Generic[Item]):
    """`turn`: True if its thread must act, False if another thread acted for it."""

    items: Sequence[Item]
    turn: Future[bool] = field(default_factory=Future)


class GroupCommit(Generic[Item]):
    """Calls `act` with the items of all waiting calls, in the thread of one of them. Then all of
    them return. Calls that arrive meanwhile wait for the next turn."""

    def __init__(self, act: Callable[[Sequence[Item]], None]) -> None:
        self._act = act
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
            self._act_for_all(call)

    def _act_for_all(self, own: _Submission[Item]) -> None:
        with self._lock:
            calls, self._waiting = self._waiting, []
        others = [call for call in calls if call is not own]
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

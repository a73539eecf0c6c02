"""Rows that nearly every request reads, kept in the process for a moment."""

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from django.conf import settings

_MOST: Final = 1_000  # rows of one kind

Key = TypeVar("Key")
Row = TypeVar("Row")


class Recent(Generic[Key, Row]):
    """Gives what `read` gave for the same key in the last ROWS_KEPT_SECONDS, or reads.

    So a change of a row takes effect after at most that time, counted from its commit. None and
    errors are not kept. Threads share what is kept, so nobody may change it, except for what a
    later read would find too (`last_used_at` of a key).
    """

    def __init__(
        self, read: Callable[[Key], Row], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._kept: dict[Key, tuple[float, Row]] = {}

    def __call__(self, key: Key) -> Row:
        asked_at = self._clock()
        until, row = self._kept.get(key, (asked_at, None))
        if row is not None and asked_at < until:
            return row
        return self._read_anew(key, asked_at)

    def forget(self) -> None:
        """For a process that changed a row: its next request sees the change."""
        self._kept = {}

    def _read_anew(self, key: Key, asked_at: float) -> Row:
        if len(self._kept) >= _MOST:
            self.forget()
        kept = self._kept  # after `forget()` during the read, the row goes to nobody
        row = self._read(key)
        if row is not None:
            kept[key] = (asked_at + settings.ROWS_KEPT_SECONDS, row)
        return row

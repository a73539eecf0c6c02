"""Caches rows that nearly every request reads, in the process, for a short time."""

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from django.conf import settings

_MOST: Final = 1_000  # rows of one kind

Key = TypeVar("Key")
Row = TypeVar("Row")


class Recent(Generic[Key, Row]):
    """Returns the row that `read` returned for the same key in the last ROWS_KEPT_SECONDS, or reads
    it.

    So a change of a row takes effect at most that long after its commit. None and errors are not
    cached. Threads share the rows, so callers must not change them, except as the database was
    changed (`last_used_at` of a key).
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
        """Empties the cache. For a process that changed a row, so that its next request sees it."""
        self._kept = {}

    def _read_anew(self, key: Key, asked_at: float) -> Row:
        if len(self._kept) >= _MOST:
            self.forget()
        kept = self._kept  # after `forget()` during the read, the row is not cached
        row = self._read(key)
        if row is not None:
            kept[key] = (asked_at + settings.ROWS_KEPT_SECONDS, row)
        return row

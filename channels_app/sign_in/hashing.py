"""Limits how many passwords a process hashes at once, so that many sign-ins occupy few threads.

The hasher is the only one in PASSWORD_HASHERS. So the limit applies to every sign-in (including
unknown names), every new password, and every link to set one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Condition
from typing import Final

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from typing_extensions import override

from pushsvc.common.errors import Unavailable
from pushsvc.common.texts import later

HASHES_AT_ONCE: Final = 2
WAITING_AT_ONCE: Final = 1
WAIT_SECONDS: Final = 5.0

_BUSY = later("The service is checking other passwords. Nothing was changed.")
_asking: ContextVar[str] = ContextVar("hashing_for", default="")


class Places:
    """HASHES_AT_ONCE places for hashing, at most one for each `who`, so that one address cannot
    take all places. At most WAITING_AT_ONCE callers wait up to `wait_seconds` for a place."""

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._changed = Condition()
        self._hashing: list[str] = []
        self._waiting = 0

    @contextmanager
    def one_for(self, who: str) -> Iterator[None]:
        """Takes a place. Raises Unavailable if none is free and no more callers may wait."""
        with self._changed:
            if not self._has_room(who):
                self._wait_for_room(who)
            self._hashing.append(who)
        try:
            yield
        finally:
            with self._changed:
                self._hashing.remove(who)
                self._changed.notify_all()

    def _has_room(self, who: str) -> bool:
        return len(self._hashing) < HASHES_AT_ONCE and who not in self._hashing

    def _wait_for_room(self, who: str) -> None:
        if self._waiting >= WAITING_AT_ONCE:
            raise Unavailable(_BUSY)
        self._waiting += 1
        try:
            if not self._changed.wait_for(lambda: self._has_room(who), self._wait_seconds):
                raise Unavailable(_BUSY)
        finally:
            self._waiting -= 1


_places = Places()


@contextmanager
def hashing_for(who: str) -> Iterator[None]:
    """A context in which hashed passwords count for `who`. Outside of it, all count as one."""
    token = _asking.set(who)
    try:
        yield
    finally:
        _asking.reset(token)


class BoundedHasher(PBKDF2PasswordHasher):
    """Django's hasher, limited by the process's places. Raises Unavailable if they are taken."""

    @override
    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Hashes in one of the places. `verify` and `harden_runtime` also call this."""
        with _places.one_for(_asking.get()):
            return super().encode(password, salt, iterations)

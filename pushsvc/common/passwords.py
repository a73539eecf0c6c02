"""Passwords are hashed a few at a time, so that a flood of sign-ins takes few threads and no more
than two processors' time.

The hasher is the only one of PASSWORD_HASHERS: nothing that hashes gets around it, be it a sign-in
(of an unknown name too), a new password or a link to set one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Condition
from typing import Final

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from typing_extensions import override

from pushsvc.common.errors import Unavailable

HASHES_AT_ONCE: Final = 2
WAITING_AT_ONCE: Final = 1
WAIT_SECONDS: Final = 5.0

_BUSY = "The service is checking other passwords. Nothing was changed."
_asking: ContextVar[str] = ContextVar("hashing_for", default="")


class Places:
    """Where one hashes: HASHES_AT_ONCE in all, one for each `who`, so that an address that floods
    leaves another's to the others. WAITING_AT_ONCE wait so many seconds for their turn."""

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._changed = Condition()
        self._hashing: list[str] = []
        self._waiting = 0

    @contextmanager
    def one_for(self, who: str) -> Iterator[None]:
        """Raises Unavailable where there is neither a place nor room to wait."""
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
    """What is hashed within is `who`'s. All that is hashed for nobody known counts as one."""
    token = _asking.set(who)
    try:
        yield
    finally:
        _asking.reset(token)


class BoundedHasher(PBKDF2PasswordHasher):
    """Django's, within the process's places. Raises Unavailable while they are taken."""

    @override
    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Also what `verify` and `harden_runtime` come to."""
        with _places.one_for(_asking.get()):
            return super().encode(password, salt, iterations)

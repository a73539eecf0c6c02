"""How many passwords a process hashes at once, and who waits."""

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from threading import Event

import pytest

from channels_app.sign_in.hashing import HASHES_AT_ONCE, WAITING_AT_ONCE, Places
from pushsvc.common.errors import Unavailable

LIMIT = 60


class Process:
    """A process whose hashes last until the test ends them."""

    def __init__(self, pool):
        self._pool, self.places = pool, Places(LIMIT)
        self.may_end = Event()

    def hash_for(self, who):
        """A future: True if the address got a place, in the end; False if it was refused."""
        begun = Event()
        return self._pool.submit(self._hash, who, begun), begun

    def hashing_for(self, who):
        future, begun = self.hash_for(who)
        assert begun.wait(LIMIT)
        return future

    def _hash(self, who, begun):
        try:
            with self.places.one_for(who):
                begun.set()
                assert self.may_end.wait(LIMIT)
        except Unavailable:
            return False
        return True


@pytest.fixture
def process():
    with ThreadPoolExecutor(32) as pool:
        process = Process(pool)
        yield process
        process.may_end.set()


def answers(process, futures, *, refusals):
    """The answers, once so many of them are refusals; no hash has ended by then."""
    done = set()
    while len(done) < refusals:
        done |= wait(set(futures) - done, LIMIT, FIRST_COMPLETED).done
    assert not any(future.result() for future in done)
    process.may_end.set()
    return sorted(future.result(LIMIT) for future in futures)


def test_two_hash_one_waits_and_the_others_are_refused_at_once(process):
    futures = [process.hash_for(f"address {n}")[0] for n in range(16)]
    inside = HASHES_AT_ONCE + WAITING_AT_ONCE

    found = answers(process, futures, refusals=16 - inside)
    assert found == [False] * (16 - inside) + [True] * inside


def test_an_address_that_floods_leaves_a_place_for_another_address(process):
    flood = [process.hash_for("flood")[0] for _ in range(8)]

    process.hashing_for("somebody")

    assert answers(process, flood, refusals=6) == [False] * 6 + [True] * 2


def test_a_request_that_waited_too_long_is_refused_and_frees_its_place(process):
    process.places = Places(0.01)
    hashing = process.hashing_for("flood")

    for _ in range(3):
        assert process.hash_for("flood")[0].result(LIMIT) is False
    assert not hashing.done()


def test_a_hash_that_fails_frees_its_place(process):
    for _ in range(HASHES_AT_ONCE + 1):
        with pytest.raises(ZeroDivisionError), process.places.one_for("x"):
            _ = 1 / 0
    process.hashing_for("x")

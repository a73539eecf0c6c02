"""Counting in Redis, and what happens while Redis is away."""

import socket
import time
from uuid import uuid4

import pytest
import redis

from pushsvc.common import ratelimit
from pushsvc.common.errors import TooManyRequests
from pushsvc.common.redis_client import BACK_OFF_SECONDS, TIMEOUT_SECONDS, redis_client
from tests.api.support import at_once


@pytest.fixture
def key():
    return str(uuid4())


def test_the_limit_is_allowed_and_one_more_is_told_how_long_to_wait(key):
    assert [ratelimit.take("x", key, 3, 60) for _ in range(3)] == [None] * 3

    wait = ratelimit.take("x", key, 3, 60)

    assert wait is not None
    assert 0 < wait <= 60


def test_names_and_keys_are_counted_apart(key):
    assert ratelimit.take("x", key, 1, 60) is None
    assert ratelimit.take("y", key, 1, 60) is None
    assert ratelimit.take("x", key + "b", 1, 60) is None
    assert ratelimit.take("x", key, 1, 60) is not None


def test_a_limit_of_nothing_allows_nothing(key):
    assert ratelimit.take("x", key, 0, 60) == 60


def test_when_the_window_is_over_counting_starts_anew(key):
    ratelimit.take("x", key, 1, 60)
    assert redis_client().pexpire(f"limit:x:{key}", 1)
    while redis_client().exists(f"limit:x:{key}"):
        time.sleep(0.001)

    assert ratelimit.take("x", key, 1, 60) is None
    assert 0 < redis_client().pttl(f"limit:x:{key}") <= 60_000


def test_a_window_ends_however_often_it_is_asked(key):
    ratelimit.take("x", key, 3, 60)
    redis_client().pexpire(f"limit:x:{key}", 5_000)

    waits = [ratelimit.take("x", key, 3, 60) for _ in range(5)]

    assert waits[:2] == [None, None]
    assert all(wait is not None and wait <= 5 for wait in waits[2:])


def test_from_many_sides_at_once_exactly_the_limit_is_allowed(key):
    def takes():
        return [ratelimit.take("x", key, 25, 60) for _ in range(10)]

    answers = at_once(*[takes] * 4)

    assert sum(answer.count(None) for answer in answers) == 25


def test_who_must_wait_is_told_so_in_whole_seconds(key):
    ratelimit.enforce("x", key, 1, 60)

    with pytest.raises(TooManyRequests) as refusal:
        ratelimit.enforce("x", key, 1, 60)

    assert 1 <= int(refusal.value.headers["Retry-After"]) <= 60


def nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"redis://127.0.0.1:{unused.getsockname()[1]}/0"


def test_while_redis_is_away_all_is_allowed(key, settings):
    settings.REDIS_URL = nobody_listens()

    assert [ratelimit.take("x", key, 1, 60) for _ in range(3)] == [None] * 3


def test_a_redis_that_hangs_is_asked_once_and_then_left_alone(key, settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.REDIS_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        assert TIMEOUT_SECONDS < 1 < BACK_OFF_SECONDS

        for _ in range(50):
            assert ratelimit.take("x", key, 1, 60) is None

        silent.settimeout(1)
        silent.accept()[0].close()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
        with pytest.raises(redis.ConnectionError, match="a moment ago"):
            redis_client().pipeline()

"""Limits counted in Redis, and what happens while Redis is unreachable."""

import socket
import time
from uuid import uuid4

import pytest
import redis

from pushsvc.common.errors import TooManyRequests
from pushsvc.common.http import ratelimit
from pushsvc.common.store.redis_client import BACK_OFF_SECONDS, TIMEOUT_SECONDS, redis_client
from tests.pipeline.support import in_threads


@pytest.fixture
def key():
    return str(uuid4())


def limit(key, quota=1, seconds=60, name="x"):
    return ratelimit.Limit(name, key, quota, seconds)


def test_requests_over_the_limit_are_refused_with_the_time_to_wait(key):
    standings = [ratelimit.take(limit(key, 3)) for _ in range(4)]

    assert [standing.remaining for standing in standings] == [2, 1, 0, -1]
    assert [standing.is_refused for standing in standings] == [False, False, False, True]
    assert all(0 < standing.reset_seconds <= 60 for standing in standings)


def test_names_and_keys_are_counted_separately(key):
    assert not ratelimit.take(limit(key)).is_refused
    assert not ratelimit.take(limit(key, name="y")).is_refused
    assert not ratelimit.take(limit(key + "b")).is_refused
    assert ratelimit.take(limit(key)).is_refused


def test_a_limit_of_zero_allows_nothing(key):
    standing = ratelimit.take(limit(key, 0))

    assert (standing.is_refused, standing.reset_seconds) == (True, 60)


def test_counting_starts_again_after_the_window(key):
    ratelimit.take(limit(key))
    assert redis_client().pexpire(f"limit:x:{key}", 1)
    while redis_client().exists(f"limit:x:{key}"):
        time.sleep(0.001)

    assert not ratelimit.take(limit(key)).is_refused
    assert 0 < redis_client().pttl(f"limit:x:{key}") <= 60_000


def test_further_requests_do_not_extend_the_window(key):
    ratelimit.take(limit(key, 3))
    redis_client().pexpire(f"limit:x:{key}", 5_000)

    standings = [ratelimit.take(limit(key, 3)) for _ in range(5)]

    assert [standing.is_refused for standing in standings] == [False] * 2 + [True] * 3
    assert all(standing.reset_seconds <= 5 for standing in standings)


def test_concurrent_requests_are_allowed_exactly_up_to_the_limit(key):
    def takes():
        return [ratelimit.take(limit(key, 25)).remaining for _ in range(10)]

    answers = [each for answer in in_threads(*[takes] * 4) for each in answer]

    assert sorted(answers, reverse=True) == [*range(24, -1, -1), *[-1] * 15]


def test_retry_after_is_in_whole_seconds(key):
    ratelimit.enforce(limit(key))

    with pytest.raises(TooManyRequests) as refusal:
        ratelimit.enforce(limit(key))

    assert 1 <= int(refusal.value.headers["Retry-After"]) <= 60


def test_the_state_of_a_limit_is_written_as_structured_fields(key):
    standing = ratelimit.Standing(limit(key, 100, 1, name="sends"), 99, 0.2)

    assert standing.headers == {
        "RateLimit-Policy": '"sends";q=100;w=1',
        "RateLimit": '"sends";r=99;t=1',
    }


def nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"redis://127.0.0.1:{unused.getsockname()[1]}/0"


def test_everything_is_allowed_while_redis_is_unreachable(key, settings):
    settings.REDIS_URL = nobody_listens()

    assert [ratelimit.take(limit(key)) for _ in range(3)] == [None] * 3


def test_a_redis_that_hangs_is_asked_once_and_then_not_for_a_moment(key, settings, monkeypatch):
    assert TIMEOUT_SECONDS < 1 < BACK_OFF_SECONDS
    monkeypatch.setattr("pushsvc.common.store.redis_client.BACK_OFF_SECONDS", 600)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.REDIS_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"

        for _ in range(50):
            assert ratelimit.take(limit(key)) is None

        silent.settimeout(1)
        silent.accept()[0].close()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
        with pytest.raises(redis.ConnectionError, match="a moment ago"):
            redis_client().pipeline()

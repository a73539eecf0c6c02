"""GET /readyz: an answer of the last second for any number of requests, over kept connections."""

import http.client
import time
from contextlib import closing
from math import ceil
from threading import Event
from urllib.parse import urlsplit

import pytest
from django.test import Client
from kombu.transport.redis import PRIORITY_STEPS

from pushsvc.common.store.redis_client import redis_client
from pushsvc.ops import health
from tests.api.support import asked_of_redis, code
from tests.pipeline.processes import running_web
from tests.pipeline.support import in_threads


def looks(asked):
    """The connections over which the broker was asked, one entry for each time. For each of its
    priorities, kombu asks Redis for the length of a queue."""
    found = [address for address, command in asked if command == "LLEN"]
    return found[:: len(PRIORITY_STEPS)]


@pytest.fixture
def _for_long(monkeypatch):
    """An answer stays fresh, however slow the machine is."""
    monkeypatch.setattr(health, "_FRESH_SECONDS", 600.0)


@pytest.mark.django_db
@pytest.mark.usefixtures("_for_long")
def test_many_requests_ask_the_database_and_the_broker_once(django_assert_num_queries):
    with asked_of_redis() as asked:
        assert Client().get("/readyz").status_code == 200
        with django_assert_num_queries(0):
            assert {Client().get("/readyz").status_code for _ in range(20)} == {200}

    assert len(looks(asked)) == 1


@pytest.mark.usefixtures("_for_long")
def test_simultaneous_requests_share_an_answer():
    answers = [["the first"], ["a second"]]
    kept = health.Kept(lambda: answers.pop(0))

    assert in_threads(*[kept] * 8) == [["the first"]] * 8


def test_requests_during_a_check_get_the_last_answer_at_once(monkeypatch):
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(health, "_WHILE_CHECKING_SECONDS", 600.0)
    begun, go_on, answers = Event(), Event(), [["old"], ["new"]]

    def ask():
        answer = answers.pop(0)
        if answer == ["new"]:
            begun.set()
            assert go_on.wait(30)
        return answer

    kept = health.Kept(ask)
    assert kept() == ["old"]

    def others():
        assert begun.wait(30)
        found = [kept() for _ in range(5)]
        go_on.set()
        return found

    assert in_threads(kept, others) == [["new"], [["old"]] * 5]


def test_a_check_that_hangs_delays_no_other_check(monkeypatch):
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(health, "_WHILE_CHECKING_SECONDS", 0.0)
    monkeypatch.setattr(health, "_WAIT_SECONDS", 0.01)
    begun, go_on, answers = Event(), Event(), [["broker"], []]

    def check():
        answer = answers.pop(0)
        if not answer:
            begun.set()
            assert go_on.wait(30)
        return answer

    kept = health.Kept(check)
    assert kept() == ["broker"]

    def others():
        assert begun.wait(30)
        found = [kept() for _ in range(5)]
        go_on.set()
        return found

    assert in_threads(kept, others) == [[], [["broker", health._CHECK_HANGS]] * 5]


def test_an_answer_is_not_given_after_its_second(monkeypatch):
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    answers = [["broker"], []]
    kept = health.Kept(lambda: answers.pop(0))

    assert [kept(), kept()] == [["broker"], []]


@pytest.mark.django_db
def test_the_connection_to_the_broker_is_kept_and_opened_again_after_a_cut(monkeypatch):
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    with asked_of_redis() as asked:
        assert [health.missing_now() for _ in range(5)] == [[]] * 5
    (kept, *others) = looks(asked)
    assert others == [kept] * 4

    assert redis_client().client_kill_filter(addr=kept) == 1
    with asked_of_redis() as asked:
        assert health.missing_now() == []
    assert kept not in looks(asked)


def readiness(address):
    """Asks once more over the same connection."""
    web = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)

    def ask():
        web.request("GET", "/readyz", headers={"Host": "localhost"})
        answer = web.getresponse()
        return answer.status, answer.read(), answer.headers["RateLimit-Policy"]

    return web, ask


def test_a_web_process_checks_at_most_once_a_second(transactional_db, tmp_path):
    with running_web(tmp_path / "web.log") as address:
        web, ask = readiness(address)
        with closing(web), asked_of_redis() as asked:
            begun = time.monotonic()
            answers = {ask() for _ in range(200)}
            seconds = ceil(time.monotonic() - begun)

    assert answers == {(200, b'{"status":"ready"}', '"ready";q=6000;w=60')}
    assert 1 <= len(looks(asked)) <= seconds + 1
    assert len(set(looks(asked))) == 1


@pytest.mark.django_db
def test_a_client_that_asks_too_often_has_to_wait(settings):
    settings.READY_PER_MINUTE = 0

    assert code(Client().get("/readyz"), 429) == "rate_limited"

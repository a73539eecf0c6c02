"""Long answers are sent part by part, and end when their client is gone."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from pushsvc.web import application as answering

SCOPE = {
    "type": "http",
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/",
    "query_string": b"",
    "headers": [],
    "client": ("127.0.0.1", 1),
    "server": ("127.0.0.1", 2),
}


PART = b"p" * answering.PART_BYTES


class Parts:
    """A WSGI application's answer that records how much of it was read, and whether it was
    closed."""

    def __init__(self, count):
        self.count, self.made, self.is_closed = count, 0, False

    def __call__(self, environ, start_response):
        start_response("200 OK", [])
        return self

    def __iter__(self):
        for _ in range(self.count):
            self.made += 1
            yield PART

    def close(self):
        self.is_closed = True


def answer(parts, *, send, leaves=None):
    """Runs the application; `leaves`: an event after which the client is gone."""

    async def run():
        asked = iter([{"type": "http.request", "body": b""}])
        left = leaves or asyncio.Event()

        async def receive():
            for message in asked:
                return message
            await left.wait()
            return {"type": "http.disconnect"}

        with ThreadPoolExecutor(2) as threads:
            application = answering.BufferedApplication(parts, threads)
            await asyncio.wait_for(application(SCOPE, receive, send(left)), 30)

    asyncio.run(run())


def test_parts_are_sent_as_they_are_made():
    parts, seen = Parts(5), []

    def sending(_):
        async def send(message):
            seen.append((message.get("body"), parts.made))

        return send

    answer(parts, send=sending)

    assert [body for body, _ in seen] == [None, *[PART] * 5, b""]
    assert seen[1][1] < 5  # the first was sent before the last was made
    assert parts.is_closed


def test_small_parts_are_joined():
    class Small(Parts):
        def __iter__(self):
            yield from (b"one", b"two")

    seen = []

    def sending(_):
        async def send(message):
            seen.append(message)

        return send

    answer(Small(2), send=sending)

    assert seen[1] == {"type": "http.response.body", "body": b"onetwo", "more_body": False}


def test_an_answer_ends_when_its_client_leaves():
    parts = Parts(100_000)

    def sending(left):
        async def send(message):
            if parts.made > 3:
                left.set()
            await asyncio.sleep(0)

        return send

    answer(parts, send=sending)

    assert parts.made < 100_000
    assert parts.is_closed


def test_an_answer_ends_when_its_client_reads_nothing(monkeypatch):
    monkeypatch.setattr(answering, "PART_SECONDS", 0.05)
    parts = Parts(10)

    def sending(_):
        async def send(message):
            await asyncio.Event().wait()

        return send

    answer(parts, send=sending)

    assert parts.made < 10
    assert parts.is_closed


def test_an_error_of_the_application_is_not_taken_for_a_client_that_left():
    class Faulty(Parts):
        def __iter__(self):
            yield PART
            raise ZeroDivisionError

    def sending(_):
        async def send(message):
            pass

        return send

    faulty = Faulty(0)
    with pytest.raises(ZeroDivisionError):
        answer(faulty, send=sending)
    assert faulty.is_closed

"""Everything that a request shows: its response, its statements and its commands to Redis.

Two requests that show the same are the same to whoever sends them, and take the same path. Each is
undone afterwards, so that every one starts from the same state.
"""

import difflib
import re
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote, quote_plus
from uuid import uuid4

import redis
from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.db import connection, transaction
from django.utils.html import escape

from pushsvc.common.store.redis_client import redis_client

_OWN_OF_EACH = [  # differs between any two: savepoints, new ids, the time, CSRF tokens
    (re.compile(r'"?s\d+_x\d+"?'), "<savepoint>"),
    (re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?"), "<moment>"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?\b"), "<time>"),
    (re.compile(r"(csrfmiddlewaretoken\W+value=.|csrftoken=)\w+"), r"\1<token>"),
    (re.compile(r"(nonce-|nonce=.)[\w+/=-]+"), r"\1<nonce>"),
    (re.compile(r"expires=[^;]+;"), "expires=<moment>;"),
    (re.compile(r"messages=[^;]+;"), "messages=<signed>;"),
]


class Trace(NamedTuple):
    """`messages`: of the next page. `statements`: each with the number of its rows."""

    status: int
    headers: list[tuple[str, str]]
    body: str
    messages: list[str]
    statements: list[tuple[str, int]]
    commands: list[str]


def difference(one, other):
    """Lines of one trace that the other lacks, in both directions; equal lines cancel out."""
    if one == other:
        return []
    before, after = (
        [str(line) for part in trace for line in _lines(part)] for trace in (one, other)
    )
    return [line for line in difflib.ndiff(before, after) if line[0] in "+-"]


def _lines(part):
    return part if isinstance(part, list) else str(part).splitlines()


# Any process's: a connection starts in database 0, whichever it will use.
_OF_A_NEW_CONNECTION = ("HELLO ", "AUTH ", "CLIENT ", "SELECT ")


class Witness:
    def __init__(self, monitor):
        self._monitor = monitor

    def of(self, request, named=(), headers=None):
        """The trace of a request; each of the texts that it names becomes <named>."""
        redis_client().flushdb()
        self._commands()
        with _undone(), _statements() as made:
            response = request.ask(**(headers or {}))
        asked = self._commands()
        return Trace(
            response.status_code,
            [(name, plain(value, *named)) for name, value in _headers(response)],
            plain(_text(response), *named),
            [plain(message, *named) for message in _messages(response)],
            [(plain(statement), rows) for statement, rows in made],
            [plain(command, *named) for command in asked],
        )

    def _commands(self):
        """The commands to this database of Redis since the last call."""
        end = uuid4().hex
        redis_client().echo(end)
        return list(self._until(end))

    def _until(self, end):
        own = redis_client().connection_pool.connection_kwargs["db"]
        while True:
            heard = self._monitor.next_command()
            command = heard["command"]
            if int(heard["db"]) != own or command.startswith(_OF_A_NEW_CONNECTION):
                continue
            if end in command:
                return
            yield command


@contextmanager
def watching():
    """A Witness that listens to Redis."""
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=60)
    with client, client.monitor() as monitor:
        yield Witness(monitor)


def plain(text, *named):
    """The text without what is new in each response, and without what was asked for."""
    for each in named:
        for spelling in _spellings(each):
            text = text.replace(spelling, "<named>")
    for pattern, word in _OWN_OF_EACH:
        text = pattern.sub(word, text)
    return text


def _spellings(text):
    """The longest first: in a page, in an address, and in an address within another."""
    quoted = quote_plus(text)
    found = {text, quote(text), quoted, quote_plus(quoted), escape(text)}
    return sorted(found, key=len, reverse=True)


@contextmanager
def _undone():
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def _statements():
    made = []

    def note(execute, statement, parameters, many, context):
        try:
            return execute(statement, parameters, many, context)
        finally:
            made.append((str(statement), context["cursor"].rowcount))

    with connection.execute_wrapper(note):
        yield made


def _headers(response):
    cookies = [("Set-Cookie", each.OutputString()) for each in response.cookies.values()]
    return sorted([*response.headers.items(), *cookies])


def _messages(response):
    cookie = response.cookies.get(CookieStorage.cookie_name)
    given = (
        CookieStorage(response.wsgi_request)._decode(cookie.value)  # type: ignore[attr-defined]
        if cookie
        else None
    )
    return [str(message) for message in given or []]


def _text(response):
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return content.decode(errors="replace")

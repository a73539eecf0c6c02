"""Hostile bodies of at most 64 KiB get few errors and few bytes in answer, on a real socket."""

import http.client
import json
import random
from contextlib import closing
from itertools import count
from urllib.parse import urlsplit

import pytest

from pushsvc.common.errors import MAX_ERRORS
from pushsvc.common.http.strict_json import MAX_BODY_BYTES
from pushsvc.common.store.redis_client import redis_client
from tests.api.support import owner_of
from tests.factories import make_channel
from tests.pipeline.processes import running_web

ANSWER_BYTES = 16 * 1024  # docs/errors.md
MORE = f"{MAX_ERRORS} errors shown; there are more."

# Characters that a name chosen by the client may hold; the last ones take more bytes in an answer.
LETTERS = ["x", "é", "日", "😀", "\\u0001", '\\"', "\\\\", "\\u2028", "\u2028", "\u200b", "\x7f"]
VALUES = ["0", "null", "[]", "{}", '""', '"x"', "-1", "1e300", "true", "[[]]", '{"x":0}']

EVENT = '"token":"x","event":"clicked"'
LEAF = '"attribute":"a","operator":"eq","value":1'
# Templates that can be filled with parts: `%` is a list's entries or an object's members.
BODIES = {
    "events": [
        "{%}",
        '{"events":[%]}',
        '{"events":{%}}',
        '{"events":[{%}]}',
        f'{{"events":[{{{EVENT},%}}]}}',
    ],
    "subscribe": [
        "{%}",
        '{"endpoint":[%]}',
        '{"keys":{%}}',
        '{"attributes":{%}}',
        '{"platform":"ios","attributes":{%}}',
        '{"platform":[%]}',
    ],
    "unsubscribe": [
        "{%}",
        '{"endpoint":[%]}',
        '{"platform":"ios","provider_token":[%]}',
    ],
    "send": [
        "{%}",
        '{"body":"x","data":{%}}',
        '{"body":"x","target_platforms":[%]}',
        '{"body":"x","url":[%]}',
        '{"target_platforms":["android"],"body":"x","data":{%}}',
    ],
    "providers": [
        "{%}",
        '{"providers_config":{%}}',
        '{"providers_config":[%]}',
    ],
    "segments": [
        "{%}",
        '{"name":"x","rule":{%}}',
        '{"name":"x","rule":{"all":[%]}}',
        '{"name":"x","rule":{"any":[{"all":[%]}]}}',
        f'{{"name":"x","rule":{{"all":[{{{LEAF},%}}]}}}}',
        '{"name":"x","rule":{"attribute":"a","operator":"in","value":[%]}}',
        '{"name":"x","rule":{"field":"created_at","operator":"gt","value":{%}}}',
    ],
}
METHODS = {"providers": "PUT"}
SIZES = {"events": 8 * 1024}  # bytes; the other bodies may have the most that any body has


class Site:
    """A running web process, and a channel of it."""

    def __init__(self, address, owner):
        self.address, self.owner = urlsplit(address), owner
        here = f"/channel/{owner.channel.id}"
        self.paths = {
            "send": "/send-notification",
            "providers": f"{here}/providers",
            "segments": f"{here}/segments",
        }

    def ask(self, name, body):
        """Status and body of the answer."""
        headers = {
            "Authorization": f"Key {self.owner.key}",
            "X-Channel-ID": str(self.owner.channel.id),
            "Content-Type": "application/json",
        }
        with closing(http.client.HTTPConnection(self.address.netloc, timeout=60)) as connection:
            method, path = METHODS.get(name, "POST"), self.paths.get(name, f"/{name}")
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()


@pytest.fixture
def site(transactional_db, tmp_path):
    owner = owner_of(make_channel(android_enabled=True, ios_enabled=True))
    with running_web(tmp_path / "web.log") as address:
        yield Site(address, owner)


def filled(template, part, size):
    """The template with as many of part(0), part(1), … as fit into a body of this size."""
    room = size - len(template.encode())
    parts = []
    for number in count():
        text = part(number)
        room -= len(text.encode()) + 1
        if room < 0:
            return template.replace("%", ",".join(parts)).encode()
        parts.append(text)
    raise AssertionError


def member(letter, length, value):
    """The members of an object, with distinct names of this length."""
    return lambda number: f'"{letter * length}{number:x}":{value}'


def assert_bounded(site, name, body):
    status, answer = site.ask(name, body)
    assert status in {200, 201, 202, 204, 400}, (name, body[:200], status)
    if status == 201:  # a segment's rule is repeated as it was sent
        return
    assert len(answer) <= ANSWER_BYTES, (name, body[:200], len(answer))
    assert len(json.loads(answer or b"{}").get("errors", [])) <= MAX_ERRORS


def test_the_answer_to_a_full_body_is_short(site):
    chance = random.Random(7)  # noqa: S311 (the same bodies every time)
    for name, templates in BODIES.items():
        redis_client().flushdb()  # the limits
        for template in templates:
            for part in parts_for(template, chance):
                body = filled(template, part, SIZES.get(name, MAX_BODY_BYTES))
                assert_bounded(site, name, body)


def parts_for(template, chance):
    if "[%]" in template:
        return [lambda _, value=value: value for value in VALUES]
    letters = chance.sample(LETTERS, 3)
    return [
        member(letter, length, chance.choice(VALUES))
        for letter in letters
        for length in (0, 60, 6_000)
    ]


def errors_of(site, name, body):
    status, answer = site.ask(name, body)
    problem = json.loads(answer)
    assert (status, problem["code"]) == (400, "validation_error")
    assert list(problem) == ["type", "title", "status", "code", "detail", "errors", "request_id"]
    return problem["detail"], [(each["attr"], each["code"]) for each in problem["errors"]]


def test_an_answer_lists_fifty_errors_and_says_that_there_are_more(site):
    wrong = [f'{{"field":{number}}}' for number in range(50)]
    rule = f'{{"name":"x","rule":{{"all":[{",".join(wrong)}]}}}}'

    detail, found = errors_of(site, "segments", rule)

    assert detail == MORE
    assert len(found) == MAX_ERRORS
    assert found[0] == ("rule.all.0.operator", "required")

    data = ",".join(f'"{number}":0' for number in range(51))
    detail, found = errors_of(site, "send", f'{{"body":"x","data":{{{data}}}}}')
    assert (detail, len(found)) == (MORE, MAX_ERRORS)


def test_too_many_parts_are_one_error_and_are_not_checked_one_by_one(site):
    zeros, members = ",".join("0" * 999), ",".join(f'"{n}":0' for n in range(999))
    for name, body, error in [
        ("events", f'{{"events":[{zeros}]}}', ("events", "too_many")),
        ("events", f'{{"events":[{{{members}}}]}}', ("events.0", "too_many")),
        ("send", f'{{"body":"x","target_platforms":[{zeros}]}}', ("target_platforms", "too_many")),
        ("send", f'{{"body":"x","data":{{{members}}}}}', ("data", "too_many")),
        ("send", f"{{{members}}}", ("", "too_many")),
        ("providers", f'{{"providers_config":{{{members}}}}}', ("providers_config", "too_many")),
        ("segments", f'{{"name":"x","rule":{{"all":[{zeros}]}}}}', ("rule", "too_many")),
        ("segments", f'{{"name":"x","rule":{{"not":{{}},{members}}}}}', ("rule", "too_many")),
    ]:
        assert errors_of(site, name, body)[1] == [error]

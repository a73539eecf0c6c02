"""Requests that no browser makes are answered like others, and gain no trust."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from axes.models import AccessAttempt
from django.core.wsgi import get_wsgi_application
from django.db import connections

from pushsvc.web import application as answering
from tests.api.support import NOWHERE
from tests.api.test_streaming import SCOPE


def ask(method="GET", path="/healthz", query=b"", headers=(), body=b""):
    """Status and text from the web process's own application."""
    scope = {**SCOPE, "method": method, "path": path, "query_string": query}
    scope["headers"] = [(b"host", b"localhost"), *headers]
    heard = []

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        heard.append(message)

    with ThreadPoolExecutor(1) as threads:  # one thread, so that its connection can be closed
        application = answering.BufferedApplication(get_wsgi_application(), threads)
        asyncio.run(application(scope, receive, send))
        threads.submit(connections.close_all).result()
    return heard[0]["status"], b"".join(each.get("body", b"") for each in heard[1:]).decode()


@pytest.mark.parametrize(
    "request_",
    [
        {"query": "x=é".encode()},
        {"query": b"x=\xff\xfe"},
        {"headers": [(b"x-odd", b"\xff")]},
        {"headers": [(b"x-often", b"1")] * 500},
        {"headers": [(b"cookie", b'sessionid=\xff; csrftoken="')]},
    ],
)
def test_a_request_of_odd_bytes_is_answered_like_others(request_):
    assert ask(**request_)[0] == 200


def test_raw_bytes_in_a_query_are_read_as_utf_8(db):
    _, page = ask(path="/admin/login/", query="next=/admin/é".encode())

    assert 'value="/admin/é"' in page


@pytest.mark.parametrize("path", ["/é", "/\N{GRINNING FACE}", "/\ufffd"])
def test_a_path_beyond_ascii_is_answered_like_others(path):
    status, problem = ask(path=path)

    assert (status, json.loads(problem)["code"]) == (404, "not_found")


def test_a_header_with_an_underscore_does_not_pass_for_one_with_a_hyphen():
    headers = [(b"x_channel_id", NOWHERE.encode()), (b"content-type", b"application/json")]

    status, problem = ask("POST", "/subscribe", headers=headers, body=b"{}")

    assert (status, json.loads(problem)["code"]) == (400, "channel_id_missing")


@pytest.mark.django_db(transaction=True)
def test_a_client_behind_a_proxy_cannot_choose_the_address_that_is_counted(settings):
    """The proxy appends its own entry, and leaves what the client made up."""
    settings.TRUSTED_PROXIES = 1
    token = "a" * 32  # anybody may make one up, for cookie and form alike
    fields = f"login=nobody&password=guess&csrfmiddlewaretoken={token}"
    for made_up in ("198.51.100.1", "198.51.100.2"):
        headers = [
            (b"x-forwarded-for", b"203.0.113.7"),
            (b"x_forwarded_for", made_up.encode()),
            (b"content-type", b"application/x-www-form-urlencoded"),
            (b"cookie", f"csrftoken={token}".encode()),
        ]
        status, _ = ask("POST", "/admin/login/", headers=headers, body=fields.encode())
        assert status == 200

    (attempt,) = AccessAttempt.objects.all()
    assert (attempt.ip_address, attempt.failures_since_start) == ("203.0.113.7", 2)

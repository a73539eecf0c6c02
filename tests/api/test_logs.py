"""Lines of the log, as `pushsvc.common.logs` writes them."""

import logging

from django.test import RequestFactory
from django.urls import resolve

from pushsvc.common.logs import EventFormatter, NoAddresses


def line_of(**extra):
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "request.failed"})
    vars(record).update(extra)
    return EventFormatter().format(record)


def test_an_event_is_followed_by_its_fields_in_order():
    assert line_of(status=500, route="channel").endswith(
        " INFO x request.failed route=channel status=500"
    )


def test_what_a_client_chose_cannot_write_lines_of_its_own():
    line = line_of(title="/x\n2026-11-20 ERROR forged\x1b[31m\u2028")

    assert line.isprintable()
    assert r"title='/x\n2026-11-20 ERROR forged\x1b[31m\u2028'" in line


def refused(name, path="/c/a-token?q=a-query", **extra):
    """The line of what Django logs of a request."""
    request = RequestFactory().get(path)
    request.resolver_match = resolve("/c/a-token")
    values = {"name": name, "levelname": "ERROR", "msg": "Bad: %s", "args": (request.path,)}
    record = logging.makeLogRecord({**values, "request": request, **extra})
    assert NoAddresses().filter(record)
    return EventFormatter().format(record)


def test_a_request_is_named_by_its_route():
    assert refused("django.request").endswith(
        " ERROR django.request Bad: a request route=c/<token>"
    )


def test_a_path_is_left_out_as_django_escapes_it_too():
    line = refused("django.request", "/c/\N{GRINNING FACE}", args=("/c/\\U0001f600",))

    assert "1f600" not in line


def failure():
    try:
        raise ValueError("of ours")
    except ValueError as error:
        return type(error), error, error.__traceback__


def test_a_refused_request_has_no_traceback_and_a_failure_has():
    assert "Traceback" not in refused("django.security.TooManyFieldsSent", exc_info=failure())
    assert "Traceback" in refused("django.request", exc_info=failure())

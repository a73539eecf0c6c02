"""The format of log lines, as `pushsvc.common.logs` writes them."""

import json
import logging
import os
import subprocess
import sys
from uuid import UUID

import pytest
from django.test import RequestFactory
from django.urls import resolve

from pushsvc.common.logs import JsonFormatter, NoAddresses, TextFormatter
from tests.forked import CHECKOUT

WARN = """
import django, logging
from django.conf import settings
django.setup()
logging.getLogger("x").warning("request.failed")
print(*(error.name for error in settings.ENV.errors))
"""


def line_of(**extra):
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "request.failed"})
    vars(record).update(extra)
    return TextFormatter().format(record)


def test_an_event_is_followed_by_its_fields_in_order():
    assert line_of(status=500, route="channel").endswith(
        " INFO x request.failed route=channel status=500"
    )


def test_a_value_chosen_by_a_client_cannot_start_a_line():
    line = line_of(title="/x\n2026-11-20 ERROR forged\x1b[31m\u2028")

    assert line.isprintable()
    assert r'title="/x\n2026-11-20 ERROR forged\u001b[31m\u2028"' in line


@pytest.mark.parametrize("value", ["a code=b", 'a"b', "a'b", "a\\b", "a=b", "", "a\nb"])
def test_an_ambiguous_value_is_quoted(value):
    assert line_of(title=value).endswith(f" request.failed title={json.dumps(value)}")


def test_a_message_of_another_package_cannot_add_fields():
    message = "Forbidden: x code=busy"

    assert line_of(msg=message, status=403).endswith(f" INFO x {json.dumps(message)} status=403")
    assert line_of(msg="Task ready.").endswith(" INFO x Task ready.")


def test_a_traceback_cannot_start_a_line():
    lines = line_of(exc_info=failure("of ours\n2026-11-20 ERROR forged\x1b[31m")).splitlines()

    assert lines[0].endswith(" request.failed")
    assert all(line.startswith("  ") and line.isprintable() for line in lines[1:])
    assert "  2026-11-20 ERROR forged" in lines[-1] or r"forged\x1b" in lines[-1]


def test_a_json_event_is_one_object_on_one_line():
    values = {"name": "x", "levelname": "ERROR", "msg": "request.%s", "args": ("failed",)}
    record = logging.makeLogRecord({**values, "created": 0.5, "exc_info": failure("a\nb")})
    vars(record).update(status=500, title='a "b"\nc', id=UUID(int=0))

    line = JsonFormatter().format(record)

    assert len(line.splitlines()) == 1
    written = json.loads(line)
    assert written.pop("traceback").endswith("ValueError: a\nb")
    assert written == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "ERROR",
        "logger": "x",
        "event": "request.failed",
        "fields": {"id": str(UUID(int=0)), "status": 500, "title": 'a "b"\nc'},
    }


@pytest.mark.parametrize(("chosen", "first"), [("text", "2"), ("json", "{"), ("yaml", "{")])
def test_the_setting_chooses_the_format(chosen, first):
    said = subprocess.run(
        [sys.executable, "-c", WARN],
        cwd=CHECKOUT,
        env=os.environ | {"LOG_FORMAT": chosen},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )

    assert said.stderr.startswith(first)
    assert said.stdout.strip() == ("LOG_FORMAT" if chosen == "yaml" else "")


def refused(name, path="/c/a-token?q=a-query", **extra):
    """The log line that Django writes about a request."""
    request = RequestFactory().get(path)
    request.resolver_match = resolve("/c/a-token")
    values = {"name": name, "levelname": "ERROR", "msg": "Bad: %s", "args": (request.path,)}
    record = logging.makeLogRecord({**values, "request": request, **extra})
    assert NoAddresses().filter(record)
    return TextFormatter().format(record)


def test_a_request_is_logged_with_its_route():
    assert refused("django.request").endswith(
        " ERROR django.request Bad: a request route=c/<token>"
    )


def test_a_path_is_left_out_also_where_django_escapes_it():
    line = refused("django.request", "/c/\N{GRINNING FACE}", args=("/c/\\U0001f600",))

    assert "1f600" not in line


def failure(text="of ours"):
    try:
        raise ValueError(text)
    except ValueError as error:
        return type(error), error, error.__traceback__


def test_only_a_failure_is_logged_with_a_traceback():
    assert "Traceback" not in refused("django.security.TooManyFieldsSent", exc_info=failure())
    assert "Traceback" in refused("django.request", exc_info=failure())


@pytest.mark.parametrize("formatter", [TextFormatter, JsonFormatter])
def test_a_traceback_quotes_no_row_of_the_database(formatter):
    quoting = failure("duplicate key\nDETAIL:  Key (external_id)=(user-42\nx) exists.")
    record = logging.makeLogRecord({"name": "x", "msg": "request.failed", "exc_info": quoting})

    line = formatter().format(record)

    assert "ValueError: duplicate key" in line
    assert "user-42" not in line

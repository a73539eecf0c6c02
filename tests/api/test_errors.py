"""Every error has one shape, whatever caused it."""

import gzip
import json
import logging
import socket
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.management import call_command
from django.db import connection
from django.test import Client

from channels_app.models import VapidKey
from notifications_app.content.tracking import make_token
from tests.api.support import code, errors, owner_of
from tests.factories import browser, make_channel

pytestmark = pytest.mark.django_db

HTML = "text/html; charset=utf-8"
UNKNOWN = "01a1f9f3-2216-7769-a68e-85b6f059c5c7"
KEYS_IN_ORDER = ["type", "title", "status", "code", "detail", "request_id"]
PATHS = [
    ("GET", f"/channel/{UNKNOWN}"),
    ("PUT", f"/channel/{UNKNOWN}/providers"),
    ("POST", "/subscribe"),
    ("POST", "/unsubscribe"),
    ("GET", "/web-push-key"),
    ("POST", "/send-notification"),
    ("DELETE", f"/cancel-notification/{UNKNOWN}"),
    ("GET", f"/notifications/{UNKNOWN}"),
    ("GET", f"/notification/{UNKNOWN}"),
    ("PATCH", f"/notification/{UNKNOWN}"),
    ("GET", f"/notification/{UNKNOWN}/details"),
    ("GET", f"/channel/{UNKNOWN}/platforms"),
    ("GET", "/"),
    ("GET", "/docs"),
    ("GET", "/docs/errors"),
    ("GET", "/openapi.json"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
]


@pytest.fixture
def alice():
    return owner_of(make_channel())


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "/channel",
        "/channel/5",
        "/channel/01a1f9f322167769a68e85b6f059c5c7",
        f"/channel/{UNKNOWN}//",
        f"/channel/{UNKNOWN}/nope",
        "/subscribe/x",
        "/static/nope.css",
        "/%00",
        "/\N{GRINNING FACE}",
    ],
)
def test_an_unknown_path_is_a_problem_for_every_method(path):
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"):
        response = Client().generic(method, path)

        assert code(response, 404) == "not_found"
        assert list(response.json()) == KEYS_IN_ORDER
        assert response.json()["type"] == "/docs/errors#not_found"


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_a_wrong_method_is_refused_before_anything_else(method, path):
    allowed = {each for each, same in PATHS if same == path}
    for wrong in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} - allowed:
        response = Client(enforce_csrf_checks=True).generic(wrong, path, "{", "text/plain")

        assert code(response, 405) == "method_not_allowed"
        heads = {"HEAD"} if "GET" in allowed else set()
        assert set(response.headers["Allow"].split(", ")) == allowed | heads


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_every_path_works_with_and_without_a_trailing_slash(method, path):
    statuses = {Client().generic(method, spelling).status_code for spelling in (path, f"{path}/")}

    assert len(statuses) == 1
    assert statuses.isdisjoint({301, 302, 404, 405, 500}) or path in {"/readyz", "/"}


def test_a_wrong_host_is_a_problem():
    response = Client(headers={"Host": "elsewhere.example"}).get("/healthz")

    assert code(response, 400) == "host_not_allowed"


def test_the_console_keeps_its_own_error_pages():
    for path in ("/admin/", "/admin/nope/"):
        response = Client().get(path)
        assert response.headers["Content-Type"].startswith("text/html")
    refused = Client(headers={"Host": "elsewhere.example"}).get("/admin/")
    assert (refused.status_code, refused.headers["Content-Type"]) == (
        400,
        "text/html; charset=utf-8",
    )
    forged = Client(enforce_csrf_checks=True).post("/admin/login/", {"username": "a"})
    assert (forged.status_code, forged.headers["Content-Type"]) == (403, HTML)


def failing_middleware(get_response):
    """Fails outside of any view, as the query says."""
    failures = {"400": SuspiciousOperation, "403": PermissionDenied, "500": ZeroDivisionError}

    def fail(request):
        raise failures[request.META["QUERY_STRING"]]("a detail of the inside")

    return fail


@pytest.mark.parametrize(
    ("status", "expected"), [(400, "bad_request"), (403, "forbidden"), (500, "internal_error")]
)
def test_a_failing_middleware_is_answered_with_a_problem(settings, status, expected):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.failing_middleware"]
    client = Client(raise_request_exception=False)

    response = client.get(f"/healthz?{status}")

    assert code(response, status) == expected
    assert "inside" not in response.content.decode()
    page = client.get(f"/admin/?{status}")
    assert (page.status_code, page.headers["Content-Type"]) == (status, HTML)


def put(alice, body, content_type="application/json", **extra):
    return Client().put(
        f"/channel/{alice.channel.id}/providers",
        body,
        content_type=content_type,
        headers={"Authorization": f"Key {alice.key}"},
        **extra,
    )


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"a": NaN}', b'{"a": 1, "a": 2}', b" "])
def test_a_body_that_is_not_json_is_refused(alice, body):
    assert code(put(alice, body), 400) == "malformed_json"


def test_an_empty_body_is_refused_with_any_content_type(alice):
    assert code(put(alice, b""), 400) == "malformed_json"
    assert code(put(alice, b"", content_type="text/plain"), 400) == "malformed_json"


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"5", b"true"])
def test_a_body_that_is_not_an_object_is_refused(alice, body):
    assert errors(put(alice, body)) == [("", "not_an_object")]


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "application/*",
        "*/*",
        "text/json",
    ],
)
def test_another_content_type_is_refused(alice, content_type):
    assert code(put(alice, b"{}", content_type), 415) == "unsupported_media_type"


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "identity, gzip", "utf-8"])
def test_an_encoded_body_is_refused_whatever_it_holds(alice, encoding):
    for body in (gzip.compress(b"{}"), b"{}"):
        answer = put(alice, body, HTTP_CONTENT_ENCODING=encoding)

        assert code(answer, 415) == "unsupported_media_type"
        assert "Content-Encoding" in answer.json()["detail"]
        assert answer.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("encoding", ["", "identity", "Identity "])
def test_a_body_that_says_that_it_is_not_encoded_is_read(alice, encoding):
    answer = put(alice, b"{}", HTTP_CONTENT_ENCODING=encoding)

    assert errors(answer) == [("providers_config", "required")]


def test_beacons_may_not_be_encoded_either():
    answer = Client().post(
        "/events", b"{}", content_type="text/plain", headers={"Content-Encoding": "gzip"}
    )

    assert code(answer, 415) == "unsupported_media_type"


def test_no_cache_keeps_an_answer_of_the_api(alice):
    channel = {"X-Channel-ID": str(alice.channel.id)}
    answers = [
        Client().get("/web-push-key", headers=channel),
        Client().get("/web-push-key"),
        alice.call("GET", f"/channel/{alice.channel.id}"),
        alice.call("GET", f"/notification/{UNKNOWN}"),
        alice.send({"body": "x"}),
    ]

    assert [each.status_code for each in answers] == [200, 400, 200, 404, 202]
    assert {each.headers["Cache-Control"] for each in answers} == {"no-store"}


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", "Application/JSON", "application/json ; x=y"],
)
def test_the_json_content_type_is_accepted_in_every_spelling(alice, content_type):
    assert errors(put(alice, b"{}", content_type)) == [("providers_config", "required")]


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "nonsense", ""])
def test_the_answer_is_json_whatever_the_client_accepts(alice, accept):
    response = alice.call("GET", f"/channel/{alice.channel.id}", Accept=accept)

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"


def test_a_body_of_64_kib_is_read_and_one_byte_more_is_refused(alice):
    frame = len(json.dumps({"providers_config": ""}))
    fits = json.dumps({"providers_config": "a" * (64 * 1024 - frame)})

    assert errors(put(alice, fits)) == [("providers_config", "not_an_object")]
    assert code(put(alice, fits + " "), 413) == "body_too_large"


@pytest.fixture
def _no_database(monkeypatch):
    """The next connection is tried at a port where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
    monkeypatch.setitem(connection.settings_dict, "PORT", port)
    yield
    connection.close()


@pytest.mark.django_db(transaction=True)
def test_every_endpoint_answers_503_without_the_database_and_says_when_to_retry(request):
    alice = owner_of(make_channel())
    request.getfixturevalue("_no_database")
    answers = [
        alice.call("GET", f"/channel/{alice.channel.id}"),
        alice.call("PUT", f"/channel/{alice.channel.id}/providers", {}),
        alice.send({"body": "hello"}),
        alice.call("GET", f"/notifications/{alice.channel.id}"),
        alice.subscribe(browser()),
        alice.call("GET", "/metrics"),
    ]

    for response in answers[:5]:
        assert code(response, 503) == "database_unavailable"
        assert int(response.headers["Retry-After"]) > 0
    assert code(Client().get("/metrics"), 503) == "database_unavailable"
    ready = Client().get("/readyz")
    assert code(ready, 503) == "not_ready"
    assert "database" in ready.json()["detail"]
    assert Client().get("/healthz").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_the_console_answers_503_without_the_database_and_logs_it_once(request, caplog):
    request.getfixturevalue("_no_database")
    visitor = Client(raise_request_exception=False)
    visitor.cookies[settings.SESSION_COOKIE_NAME] = "a session"

    response = visitor.get("/admin/?a-query")

    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert "The database cannot be reached" in response.text
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert (record.message, record.code) == ("request.unavailable", "database_unavailable")
    assert "?a-query" not in record.getMessage()


def test_a_database_that_accepts_no_writes_is_one_that_is_away(alice):
    """As a standby is, or a server whose hoster made it read-only because its disk is full."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL transaction_read_only = on")

    response = alice.send({"body": "hello"})

    assert code(response, 503) == "database_unavailable"
    assert int(response.headers["Retry-After"]) > 0


@pytest.mark.django_db(transaction=True)
def test_an_unreachable_database_is_logged_once_and_without_its_address(request, caplog):
    token = make_token(uuid4(), uuid4())
    request.getfixturevalue("_no_database")

    assert code(Client().get(f"/c/{token}?a-query"), 503) == "database_unavailable"

    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert (record.message, record.route) == ("request.unavailable", "c/<token>")
    assert token not in str(vars(record))


def test_an_unexpected_failure_is_logged_with_its_traceback_and_disclosed_to_nobody(alice, caplog):
    VapidKey.objects.all().delete()
    client = Client(raise_request_exception=False)

    with caplog.at_level(logging.ERROR):
        response = client.get("/web-push-key", headers={"X-Channel-ID": str(alice.channel.id)})

    assert code(response, 500) == "internal_error"
    assert list(response.json()) == KEYS_IN_ORDER
    assert "VapidKey" not in response.content.decode()
    (record,) = [record for record in caplog.records if record.message == "request.failed"]
    assert record.exc_info


def test_the_schema_is_valid_and_complete(tmp_path):
    target = tmp_path / "openapi.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(target))

    schema = Client().get("/openapi.json").json()
    described = {(m.upper(), p) for p, item in schema["paths"].items() for m in item}
    expected = {(method, path.replace(UNKNOWN, "{}")) for method, path in PATHS[:10]}
    assert {(method, _anonymous(path)) for method, path in described} >= expected
    for item in schema["paths"].values():
        for operation in item.values():
            assert any("application/problem+json" in r["content"] for r in _errors_of(operation))


def _anonymous(path):
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


def _errors_of(operation):
    return [r for status, r in operation["responses"].items() if status[0] in "45"]

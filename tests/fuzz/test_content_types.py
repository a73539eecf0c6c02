"""With any Content-Type a request is made and its query is read."""

import socket
from io import BytesIO
from urllib.parse import urlsplit

import pytest
from django.core.handlers.wsgi import WSGIRequest
from hypothesis import example, given
from hypothesis import strategies as st

from pushsvc.web.content_type import plain_content_type
from tests.fuzz.content_types import ODD_TYPES
from tests.pipeline.processes import running_web

LATIN1 = st.characters(codec="latin1", exclude_characters="\r\n")
PIECES = st.sampled_from(
    ["text/plain", "multipart/form-data", ";", "=", '"', "\\", "*", "*0", "*1*", "''", "%41", " "]
) | st.sampled_from(
    ["charset", "boundary", "utf-8", "zlib", "undefined", "idna", "hex", "utf-16", "a", "\x00"]
)
ANY = st.lists(PIECES, max_size=12).map("".join) | st.text(LATIN1) | st.sampled_from(ODD_TYPES)


def request_of(content_type):
    return WSGIRequest(
        {
            "REQUEST_METHOD": "POST",
            "QUERY_STRING": "a=%C3%A9",
            "CONTENT_TYPE": content_type,
            "wsgi.input": BytesIO(),
        }
    )


@given(ANY)
@example("a/b; charset=zlib")
@example("a/b; a*=nothing''b")
@example("a/b; a*=undefined''%41")
def test_a_request_with_any_content_type_has_its_query(text):
    request = request_of(plain_content_type(text))

    assert request.GET.dict() == {"a": "\N{LATIN SMALL LETTER E WITH ACUTE}"}
    assert set(request.content_params) <= {"boundary"}


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=200))
@example('a"b\\c')
@example("a; charset=zlib")
def test_a_boundary_is_passed_on_unchanged(boundary):
    quoted = boundary.replace("\\", r"\\").replace('"', r"\"")
    sent = f'multipart/form-data; charset=zlib; boundary="{quoted}"'

    again = request_of(plain_content_type(sent))

    assert again.content_type == "multipart/form-data"
    assert again.content_params == {"boundary": boundary}


@pytest.mark.django_db(transaction=True)
def test_a_web_process_responds_to_requests_with_any_content_type(tmp_path):
    lines = ["GET /healthz?a=%41", "POST /events?a=%41", "POST /admin/login/?next=%2Fadmin%2F"]
    with running_web(tmp_path / "web.log") as address:
        port = urlsplit(address).port
        statuses = {(line, kind): ask(port, line, kind) for line in lines for kind in ODD_TYPES}

    assert {what: status for what, status in statuses.items() if status >= 500} == {}
    assert {statuses[lines[0], kind] for kind in ODD_TYPES} == {200}


def ask(port, line, content_type):
    head = (
        f"{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: 2\r\n\r\n{{}}"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.encode("latin1"))
        with connection.makefile("rb") as file:
            return int(file.readline().split()[1])

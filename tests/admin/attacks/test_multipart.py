"""The response to a malformed multipart form is a page that explains the error, at a low cost."""

import socket
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from channels_app.models import ProviderCredential
from pushsvc.web.content_type import plain_content_type
from tests.admin.support import make_house, signed_in
from tests.fuzz.content_types import ODD_TYPES
from tests.pipeline.processes import running_web

BOUNDARY = "form-7"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
FILENAMES = [
    '"key.p8"',
    '""',
    "",
    '"../../../etc/passwd"',
    '"C:\\\\key.p8"',
    '"a\\"b"',
    '"a\x00b"',
    '"&#0;"',
    '"<script>"',
    '"' + "x" * 5_000 + '"',
    '"unended',
    "\"a\"; filename*=utf-8''%ff%fe",
    "\"a\"; filename*=nothing''x",
    '"a"; filename="b"',
    '"."',
    '".."',
]
NAMES = ["ios-file", "ios-text", "ios-key_id", "android-file", "android-text", "x", "", "\x00"]
FURTHER = [
    "",
    "Content-Type: application/json",
    "Content-Type: text/plain; charset=nothing",
    "Content-Type: multipart/mixed; boundary=inner",
    "Content-Transfer-Encoding: base64",
    "Content-Transfer-Encoding: quoted-printable",
    "Content-Length: -1",
    "Content-Length: 99999999999",
    "Content-Disposition: form-data; name=other",
    "X: " + "y" * 20_000,
    ": nothing",
    "no colon",
    " folded",
]

# As the web process hands them to Django.
TYPES = st.just(TYPE) | st.sampled_from(ODD_TYPES).map(plain_content_type)
names, filenames = st.sampled_from(NAMES), st.none() | st.sampled_from(FILENAMES)
contents = st.binary(max_size=200) | st.sampled_from([b"", b"AAA", b"\xff", b"{" * 40_000])


@st.composite
def parts(draw):
    disposition = f'Content-Disposition: form-data; name="{draw(names)}"'
    filename = draw(filenames)
    if filename is not None:
        disposition += f"; filename={filename}"
    headers = draw(st.permutations([disposition, draw(st.sampled_from(FURTHER))]))
    head = "\r\n".join(line for line in headers if line)
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n" + draw(contents)


@st.composite
def bodies(draw):
    """A body of some parts: whole, cut off, or with a broken boundary."""
    edge = f"--{BOUNDARY}".encode()
    whole = b"".join(
        edge + b"\r\n" + part + b"\r\n" for part in draw(st.lists(parts(), max_size=4))
    )
    body = draw(
        st.sampled_from(
            [
                whole + edge + b"--\r\n",
                whole,
                whole.replace(b"\r\n", b"\n") + edge + b"--\n",
                edge + b"--\r\n" + whole,
                b"preamble" * 100 + whole + edge + b"--",
                whole + edge * 100,
                edge + b"\r\n" * 2_000,
            ]
        )
    )
    return body[: draw(st.none() | st.integers(0, len(body)))]


@pytest.fixture
def manager(alice):
    """The browser of a manager. It returns a response where the test client would raise."""
    client = signed_in(alice.members["manager"])
    client.raise_request_exception = False
    return client


def says_what_is_wrong(response):
    assert response.status_code in {302, 400, 403, 429}
    if response.status_code == 400:
        assert response["Content-Type"].startswith("text/html")
        assert b"</html>" in response.content


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(bodies(), TYPES)
@example(b"", TYPE)
@example(b"--form-7\r\n", TYPE)
def test_the_response_to_any_upload_of_credentials_is_a_page(alice, manager, body, content_type):
    page = reverse("admin:channel_credentials", args=[alice.channel.pk])

    says_what_is_wrong(manager.generic("POST", page, body, content_type=content_type))

    assert not ProviderCredential.objects.exists()


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(bodies(), TYPES)
def test_the_response_to_any_form_of_an_anonymous_visitor_is_a_page(db, body, content_type):
    """Anybody can post to the sign-in page."""
    visitor = Client(raise_request_exception=False)

    response = visitor.generic("POST", "/admin/login/", body, content_type=content_type)

    assert response.status_code in {200, 400, 403, 429}
    assert b"</html>" in response.content


@pytest.mark.parametrize("filename", ["", '; filename="f"'])
def test_a_form_of_more_parts_than_any_form_has_is_refused(alice, manager, filename):
    page = reverse("admin:channel_credentials", args=[alice.channel.pk])
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="a"{filename}\r\n\r\n\r\n'

    response = manager.generic("POST", page, part * 1_100 + f"--{BOUNDARY}--", content_type=TYPE)

    assert response.status_code == 400
    assert b"</html>" in response.content
    assert (
        b"ps-form" not in response.content
    )  # The form was not read, so no errors are shown next to its fields.


@pytest.mark.django_db(transaction=True)
def test_a_web_process_still_serves_after_malformed_forms(tmp_path):
    house = make_house("Alice")
    page = reverse("admin:channel_credentials", args=[house.channel.pk])
    session = signed_in(house.members["manager"]).cookies["sessionid"].value
    token = "t" * 32
    headers = (
        f"Cookie: sessionid={session}; csrftoken={token}\r\nX-CSRFToken: {token}\r\n"
        f"Content-Type: {TYPE}\r\n"
    )
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="ios-file"; filename="f"\r\n'
    bodies_ = {
        "many small parts": part + "\r\n" + (part + "\r\n") * 600,
        "a part's headers without end": part + "X: y\r\n" * 8_000,
        "one endless header": part + "X: " + "y" * 60_000,
        "no boundary": "x" * 60_000,
        "a broken end": part + f"\r\n{'{' * 40_000}\r\n--{BOUNDARY}-",
        "more than fits": part + "\r\n" + "x" * 70_000,
    }
    with running_web(tmp_path / "web.log") as address:
        port = urlsplit(address).port
        statuses = {name: post(port, page, headers, body) for name, body in bodies_.items()}

    assert statuses.pop("more than fits") == 413
    assert set(statuses.values()) == {400}, statuses


def post(port, path, headers, body):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        with connection.makefile("rb") as file:
            return int(file.readline().split()[1])

"""Odd public requests write at most one line to the web process's log, without an address."""

import json
import re
import socket
from urllib.parse import urlsplit

import pytest

from tests.admin.support import make_house, make_root, signed_in
from tests.api.support import owner_of
from tests.factories import make_channel
from tests.pipeline.processes import running_web

GRANIANS = re.compile(r"\[[A-Z]+\] .+", re.ASCII)  # what the web server prints
SECRET = "of-nobodys-business"  # the longest address that is accepted
CSRF = b"a" * 32  # anybody may make one up, for cookie and form alike
FORM = b"application/x-www-form-urlencoded"
PARTS = b"multipart/form-data; boundary=x"
BODIES = [
    (PARTS, b'--x\r\nContent-Disposition: form-data; name="a'),
    (b"multipart/form-data", b"x"),
    (b"multipart/form-data; boundary=" + b"a" * 500, b"x"),
    (b"multipart/form-data; boundary=\xff", b"x"),
    (
        PARTS,
        b'--x\r\nContent-Disposition: form-data; name="f"; filename="../x"\r\n\r\na\r\n--x--\r\n',
    ),
    (
        PARTS,
        b'--x\r\nContent-Disposition: form-data; name="username"\r\n'
        b"Content-Transfer-Encoding: base64\r\n\r\n!!!\r\n--x--\r\n",
    ),
    (FORM, b"a=1&" * 2_000),
    (FORM, b"username=%00&password=%00"),
    (FORM, b"username=%ff&password=%ff"),
    (FORM + b"; charset=nonsense", b"username=a&password=b"),
    (FORM + b"; charset=utf-16", b"username=a&password=b"),
    (b"application/json; charset=nonsense", b"{}"),
    (b"application/json", b'{"a":"\\ud800"}'),
    (b"text/plain; charset=\xff", b"{}"),
    # longer than a browser's form allows
    (FORM, b"username=" + b"u" * 3_000 + b"&password=x&csrfmiddlewaretoken=" + CSRF),
    (
        FORM,
        b"username=a%0aERROR&password=" + b"x" * 5_000 + b"&csrfmiddlewaretoken=" + CSRF,
    ),
]
PATHS = [
    *(
        b"/%00",
        b"/%",
        b"/%zz",
        b"/%ff%fe",
        b"/\xff\xfe",
        b"//x",
        b"/..%2f..%2fetc/passwd",
        b"/\x01",
    ),
    *(b"/static/%00", b"/static/../settings.py", b"/static/" + b"a" * 5_000, b"/sdk/%00"),
    *(b"/c/%00", b"/c/" + b"a" * 5_000, b"/notification/" + b"9" * 3_000, b"*", b"/\x01"),
    *(b"/admin/%00", b"/admin/%ff", b"/admin/r/" + b"9" * 30 + b"/x/", b"http://localhost/healthz"),
    *(b"/healthz?" + b"a=1&" * 2_000, b"/admin/login/?next=%00", b"/admin/login/?next=%ff"),
]
HEADERS = [
    (b"Cookie", b"sessionid=\xff\x01; csrftoken=\xff"),
    (b"Cookie", b"sessionid=" + b"a" * 5_000),
    (b"Cookie", b";;;==,\x7f"),
    (b"X-Forwarded-For", b"\xff" * 100),
    (b"X-Forwarded-Host", b"evil"),
    (b"Content-Length", b"abc"),
    (b"Accept-Language", b"\xff"),
    (b"If-None-Match", b'\xff"'),
    (b"If-Modified-Since", b"Sun, 99 Foo 99999 99:99:99 GMT"),
    (b"Range", b"bytes=zz-1"),
    (b"Origin", b"https://[::1"),
    (b"Referer", b"https://[::1"),
    (b"User-Agent", b"\xff" * 3_000),
    (b"X-Channel-ID", b"\xff"),
    (b"Authorization", b"Key \xff"),
]
HOSTS = [b"", b"evil.example", b"\xff", b"localhost:99999999", b"[::1", b"a b", b"x" * 3_000]
PLACES = [
    b"/healthz",
    b"/admin/login/",
    b"/static/console/plain.css",
    b"/sdk/push.js",
    b"/subscribe",
]
# pages that staff reach only in other ways
QUERIES = [
    *(b"channel__account__name__startswith=B", b"nope=1", b"id__exact=" + b"9" * 30, b"q=%00"),
    *(b"_to_field=secret_sha256", b"status__regex=(((", b"user__password__startswith=p", b"e=1"),
    *(b"p=" + b"9" * 30, b"o=" + b"9" * 30 + b".x"),
]
LISTS = [b"channels_app/account", b"channels_app/channel", b"auth/user", b"auditlog/logentry"]
IDS = [b"%00", b"9" * 30 + b"/change/", b"x/change/", b"%ff/change/", b"_5F/change/"]
ELSEWHERE = [
    b"autocomplete/?app_label=channels_app&model_name=channel&field_name=account&term=%00",
    b"autocomplete/?app_label=x&model_name=y&field_name=z",
    b"search/?s=%00",
]


def request(method, path, *headers, body=b"", host=b"localhost"):
    if method == b"POST":
        headers += ((b"Content-Length", b"%d" % len(body)),)
    lines = b"".join(b"%s: %s\r\n" % header for header in headers)
    head = b"%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n" % (method, path, host)
    return head + lines + b"\r\n" + body


def ask(port, data):
    """The status line of the answer; empty if the connection was closed without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(data)
        with connection.makefile("rb") as file:
            line = file.readline()
            file.read()
            return line.decode("latin1").rstrip()


def with_secret(path):
    return path + (b"&" if b"?" in path else b"?") + b"x=" + SECRET.encode()


def of_anonymous(channel):
    place = (b"X-Channel-ID", str(channel.id).encode())
    token = ((b"Cookie", b"csrftoken=" + CSRF), (b"X-CSRFToken", CSRF))
    yield from (request(b"GET", with_secret(path)) for path in PATHS)
    for path in map(with_secret, PLACES):
        yield from (request(b"GET", path, header) for header in HEADERS)
        yield from (request(b"GET", path, host=host) for host in HOSTS)
    for path in (
        b"/admin/login/",
        b"/admin/logout/",
        b"/admin/password_change/",
        b"/subscribe",
        b"/events",
    ):
        for kind, body in BODIES:
            for headers in ((), token):
                kinds = ((b"Content-Type", kind), place, *headers)
                yield request(b"POST", with_secret(path), *kinds, body=body)


def of_staff(client):
    cookie = (b"Cookie", f"sessionid={client.cookies['sessionid'].value}".encode())
    for name in LISTS:
        here = b"/admin/" + name + b"/"
        yield from (request(b"GET", with_secret(here + b"?" + query), cookie) for query in QUERIES)
        yield from (request(b"GET", with_secret(here + each), cookie) for each in IDS)
    yield from (request(b"GET", with_secret(b"/admin/" + path), cookie) for path in ELSEWHERE)


@pytest.fixture
def requests(transactional_db):
    house = make_house("Alice")
    people = [signed_in(make_root()), signed_in(house.members["viewer"])]
    channel = owner_of(make_channel()).channel
    return [*of_anonymous(channel), *(each for person in people for each in of_staff(person))]


def test_no_odd_request_fails_or_fills_the_log(requests, tmp_path):
    log = tmp_path / "web.log"
    with running_web(log) as address:
        for each in requests:
            status = ask(urlsplit(address).port, each)
            assert not status.startswith("HTTP/1.1 5"), (status, each[:300])
        written = log.read_text()

    assert "Traceback" not in written
    assert SECRET not in written
    assert "WSGIRequest" not in written
    assert "django.security.DisallowedModelAdminLookup" in written  # one line, no traceback
    lines = [line for line in written.splitlines() if not GRANIANS.fullmatch(line)]
    assert all(json.loads(line)["fields"]["request_id"] for line in lines)

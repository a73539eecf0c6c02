"""The service behind nginx with deploy/nginx.conf: the client's address, cookies, bounds."""

import re
import select
import socket
import ssl
from contextlib import ExitStack
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User

from pushsvc.web.bulkhead import THREADS, Busy
from tests.api.sockets import unsent
from tests.factories import browser
from tests.limits import lengthen_windows
from tests.pipeline.support import until
from tests.proxy.nginx import HOST, running_nginx
from tests.proxy.wire import answer, ask, everything, message, post, send_notification

pytestmark = pytest.mark.django_db(transaction=True)  # the web process sees what is committed

HEALTH = message("GET", "/healthz")
LIES = (
    "X-Forwarded-For: 198.51.100.{}",
    "X_Forwarded_For: 198.51.100.{}",
    "X-Real-IP: 198.51.100.{}",
)


def refused_key(nginx, address, number=0):
    lies = [lie.format(number) for lie in LIES]
    made_up = message("GET", f"/channel/{'0' * 8}-0000-7000-8000-{'0' * 12}", *lies)
    return ask(
        nginx.connect(address), made_up.replace(b"\r\n\r\n", b"\r\nAuthorization: Key x\r\n\r\n")
    )[0]


@pytest.fixture(params=["nginx", "two_proxies"])
def proxy(request):
    return request.getfixturevalue(request.param)


def test_limits_count_the_client_whatever_headers_it_sends(proxy):
    answered = [refused_key(proxy, "127.0.0.5")]
    lengthen_windows()
    answered += [refused_key(proxy, "127.0.0.5", number) for number in range(1, 61)]

    assert answered == [401] * 60 + [429]
    assert refused_key(proxy, "127.0.0.6") == 401


def test_no_client_passes_for_this_machine(nginx):
    status, _, _ = ask(nginx.connect(), message("GET", "/metrics"))

    assert status == 401


def test_the_console_is_served_over_https_only(proxy):
    User.objects.create_superuser("root", password="correct horse battery")
    status, headers, page = ask(proxy.connect(), message("GET", "/admin/login/"))
    assert (status, headers.get_all("Strict-Transport-Security")) == (
        200,
        ["max-age=31536000; includeSubDomains; preload"],
    )
    (cookie,) = headers.get_all("Set-Cookie")
    assert_bound_to_host(cookie, "__Host-csrftoken")

    token = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', page)[1].decode()
    fields = {"login": "root", "password": "correct horse battery", "next": "/admin/"}
    sign_in = message(
        "POST",
        "/admin/login/",
        "Content-Type: application/x-www-form-urlencoded",
        f"Origin: https://{HOST}",
        f"Cookie: {cookie.partition(';')[0]}",
        body=urlencode(fields | {"csrfmiddlewaretoken": token}),
    )
    status, headers, _ = ask(proxy.connect(), sign_in)

    assert (status, headers["Location"]) == (302, "/admin/")
    (session,) = [each for each in headers.get_all("Set-Cookie") if "session" in each]
    assert_bound_to_host(session, "__Host-sessionid")


def assert_bound_to_host(cookie, name):
    parts = {part.strip().lower() for part in cookie.split(";")}
    assert cookie.startswith(f"{name}=")
    assert {"secure", "httponly", "path=/"} <= parts
    assert not [part for part in parts if part.startswith("domain")]


def test_a_request_without_tls_or_to_another_name_is_not_served(nginx):
    plain = socket.create_connection(("127.0.0.1", nginx.plain_port), 60)
    status, headers, _ = ask(plain, message("GET", "/subscribe?x=1"))
    assert (status, headers["Location"]) == (308, f"https://{HOST}/subscribe?x=1")

    assert ask(nginx.connect(), HEALTH.replace(HOST.encode(), b"other.example.com"))[0] == 421
    with pytest.raises(ssl.SSLError):
        nginx.connect(host="other.example.com")


def test_only_http_1_is_spoken(nginx):
    nginx.tls.set_alpn_protocols(["h2", "http/1.1"])
    with nginx.connect() as connection:
        assert connection.selected_alpn_protocol() == "http/1.1"

    upgrade = message("GET", "/healthz", "Connection: Upgrade", "Upgrade: websocket")
    assert ask(nginx.connect(), upgrade)[0] == 200


def test_large_headers_are_rejected_by_the_proxy(nginx):
    assert ask(nginx.connect(), message("GET", "/healthz", *["X: " + "a" * 7_000] * 3))[0] == 200
    assert everything(
        nginx.connect(), message("GET", "/healthz", *["X: " + "a" * 7_000] * 5)
    ).startswith(b"HTTP/1.1 400")
    assert everything(nginx.connect(), message("GET", "/healthz", "X: " + "a" * 9_000)).startswith(
        b"HTTP/1.1 400"
    )


def test_large_bodies_are_rejected_by_the_service_or_the_proxy(nginx, owner):
    status, headers, _ = ask(nginx.connect(), send_notification(owner, "x" * 100_000))
    assert (status, headers["Content-Type"]) == (413, "application/problem+json")

    assert everything(nginx.connect(), send_notification(owner, "x" * 200_000)).startswith(
        b"HTTP/1.1 413"
    )


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/channel/x/subscriptions/import", b"404"),
        ("/admin/subscriptions_app/subscription/import/x/part/", b"403"),
        ("/admin/subscriptions_app/subscription/import/x/rows/", b"413"),
    ],
)
def test_only_imports_have_bodies_of_a_mebibyte(nginx, path, status):
    body = b"x" * 1024 * 1024
    request = message("POST", path, f"Content-Length: {len(body)}", "Content-Type: text/csv")
    assert everything(nginx.connect(), request + body).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    "part",
    [message("GET", "/healthz")[:-4], message("POST", "/subscribe", "Content-Length: 1000") + b"{"],
    ids=["headers", "body"],
)
def test_a_slowly_sent_request_waits_in_the_proxy(nginx, web, owner, part):
    of_other_tests = unsent(web).keys()
    with ExitStack() as stack:
        for _ in range(4 * THREADS):
            stack.enter_context(nginx.connect()).sendall(part)

        subscribe = post("/subscribe", browser(), f"X-Channel-ID: {owner.channel.id}")
        assert ask(nginx.connect(), subscribe)[0] == 201
        assert ask(nginx.connect(), send_notification(owner, "x"))[0] == 202
        opened = unsent(web).keys() - of_other_tests
        assert len(opened) <= THREADS  # the two requests' own connections, and those of the start


@pytest.fixture
def patient(web, tmp_path, certificate):
    """An nginx that waits for headers and bodies longer than a busy machine needs to open 200
    connections."""
    timeouts = ("client_header_timeout", "client_body_timeout")
    changes = {f"{name} 10s;": f"{name} 300s;" for name in timeouts}
    with running_nginx(tmp_path / "nginx", certificate, web, **changes) as running:
        yield running


def test_an_address_has_a_limited_number_of_simultaneous_requests(patient):
    slow = message("POST", "/subscribe", "Content-Length: 1000") + b"{"
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(patient.connect("127.0.0.5")).sendall(slow)

        until(lambda: ask(patient.connect("127.0.0.5"), HEALTH)[0] == 429, seconds=60)
        assert ask(patient.connect("127.0.0.6"), HEALTH)[0] == 200


def test_the_console_has_a_rate_limit_for_each_address(nginx):
    """Of 120 requests that come before an answer is read, nginx passes on 51, and ten more in each
    second that they take to come. The web process has fewer places for an address."""
    with ExitStack() as stack:
        opened = [stack.enter_context(nginx.connect("127.0.0.5")) for _ in range(120)]
        for connection in opened:
            connection.sendall(message("GET", "/admin"))
        statuses = {answer(each)[0] for each in opened}

    assert {302, 429} <= statuses <= {302, 429, Busy.status}
    assert ask(nginx.connect("127.0.0.6"), message("GET", "/admin/login/"))[0] == 200


HOSTS = ("0:0:0:0", "0:0:0:1", "a:b:c:d", "a:0:0:d", "a:b:0:0", "a:0:0:0", "0:b:c:d", "0:0:c:d")
NETWORKS = (
    "2001:db8:1:2", "2001:db8:1:0", "2001:db8:0:2", "2001:db8:0:0", "2001:0:1:2", "2001:0:1:0",
    "2001:0:0:2", "2001:0:0:0", "2001:10:0:20",
)  # fmt: skip


@pytest.fixture
def counting(web, tmp_path, certificate):
    """An nginx that believes `X-Client`, and says under which name it counts a client."""
    believes = "server_tokens off; set_real_ip_from 127.0.0.1; real_ip_header X-Client;"
    tells = 'location = /counted { return 200 "$customer"; } location / {'
    changes = {"server_tokens off;": believes, "location / {": tells}
    with running_nginx(tmp_path / "nginx", certificate, web, **changes) as running:
        yield running


def counted(nginx, address):
    status, _, name = ask(nginx.connect(), message("GET", "/counted", f"X-Client: {address}"))
    assert status == 200
    return name


@pytest.mark.parametrize("network", NETWORKS)
def test_the_addresses_of_an_ipv6_network_count_as_one(counting, network):
    """nginx writes some of them with `::` before the fourth part, and others not."""
    names = {counted(counting, f"{network}:{host}") for host in HOSTS}

    assert len(names) == 1, names
    assert counted(counting, "2001:db8:1:7::1") not in names
    assert counted(counting, "203.0.113.7") == b"203.0.113.7"


def test_a_long_download_is_not_ahead_of_its_client(tmp_path, certificate):
    """By more than buffers of the kernel. Otherwise the web process would wait until the client has
    read what nginx stored, and take a slow client for one that left."""
    with (
        socket.create_server(("127.0.0.1", 0)) as upstream,
        running_nginx(tmp_path / "nginx", certificate, upstream.getsockname()[1]) as nginx,
        nginx.connect() as client,
    ):
        client.sendall(message("GET", "/admin/log.csv"))
        web, _ = upstream.accept()
        with web:
            web.recv(65_536)
            web.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")
            accepted = _accepted_unread(web)

    assert accepted < 14 * 2**20


def _accepted_unread(web):
    """How many bytes nginx accepts from the web process while its client reads nothing."""
    web.setblocking(False)
    accepted = 0
    while accepted < 64 * 2**20 and select.select([], [web], [], 2)[1]:
        accepted += web.send(bytes(65_536))
    return accepted


def test_the_log_holds_no_query_and_no_token(nginx):
    ask(nginx.connect(), message("GET", "/c/abc.def?x=secret"))
    ask(nginx.connect(), message("GET", "/healthz?x=secret"))

    until(lambda: " GET /c/ 4" in nginx.log() and " GET /healthz 200 " in nginx.log())
    assert "secret" not in nginx.log()
    assert "abc" not in nginx.log()

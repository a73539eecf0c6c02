"""The check of an image, against a real TLS server. It stands at a public name, which the tests
resolve to loopback; only the tests of the guard leave the guard in place."""

import asyncio
import socket
import ssl
import threading
from contextlib import contextmanager

import pytest

from notifications_app.delivery.http_client import HttpClient
from notifications_app.sends import image_check as checks
from notifications_app.sends.image_check import image_check
from pushsvc.common.egress import MAX_RESPONSE_BODY, tls_context
from tests.delivery.support import PushService, answer, hang, hang_up, raw

URL = "https://images.example.org/bread.png"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(2_000)
KINDS = {
    "PNG": PNG,
    "JPEG": b"\xff\xd8\xff\xe0" + bytes(2_000),
    "GIF": b"GIF89a" + bytes(2_000),
    "WebP": b"RIFF\0\0\0\0WEBP" + bytes(2_000),
}


@contextmanager
def serving(behave, certificate):
    """The server, in an event loop of its own."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(30)

    service = PushService(behave, tls=tls)
    run(service.__aenter__())
    try:
        yield service
    finally:
        run(service.__aexit__())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def client_of(service, certificate, **options):
    """Makes clients that trust the certificate, and for which every name is the server's."""

    async def look_up(_host, _port):
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", service.port))]

    def make(_look_up):
        tls = tls_context(str(certificate))
        return HttpClient(
            tls, connections_per_origin=1, keepalive=5.0, **{"look_up": look_up} | options
        )

    return make


def checked(behave, certificate, url=URL, **options):
    with serving(behave, certificate) as service:
        found = image_check(url, client_of(service, certificate, **options))
        return found, service


@pytest.fixture
def patience(monkeypatch):
    """Busy machines need longer than users have patience."""
    monkeypatch.setattr(checks, "SECONDS", 30.0)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("kind", KINDS)
def test_an_image_is_recognised_by_its_first_bytes(certificate, kind):
    found, service = checked(answer(200, body=KINDS[kind]), certificate)
    assert (found.error, found.found) == ("", f"{kind}, 3 KB")
    asked = service.received[0]
    assert (asked.method, asked.path, asked.headers["Host"]) == (
        "GET",
        "/bread.png",
        "images.example.org",
    )
    assert asked.body == b""
    assert "Content-Length" not in asked.headers


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("behave", "words"),
    [
        (answer(200, body=b"<!doctype html><p>Not here</p>"), "not an image"),
        (answer(200, body=b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "not an image"),
        (answer(200, body=b"RIFF\0\0\0\0WAVEfmt "), "not an image"),
        (answer(200), "not an image"),
        (answer(404, body=PNG), "responds with 404"),
        (answer(500), "responds with 500"),
        (answer(302, headers=["Location: https://images.example.org/other.png"]), "another one"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000001\r\n\r\n" + PNG * 3), "too large: 1.0 MB"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n" + PNG * 3), "too large"),
        (hang_up, "does not respond"),
        (raw(b"220 smtp.example.org\r\n"), "does not respond"),
    ],
)
def test_what_devices_would_not_show_is_reported(certificate, behave, words):
    found, service = checked(behave, certificate)
    assert words in found.error
    assert found.found == ""
    assert len(service.received) == 1


def test_a_server_that_never_answers_ends_the_check_in_its_time(certificate, monkeypatch):
    monkeypatch.setattr(checks, "SECONDS", 1.0)
    found, service = checked(hang, certificate)
    assert found.error == "The server does not respond."
    assert service.connections == 1


@pytest.mark.usefixtures("patience")
def test_only_the_beginning_of_an_endless_image_is_read(certificate):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nConnection: close\r\n\r\n"
    found, service = checked(raw(head + PNG, forever=bytes(MAX_RESPONSE_BODY)), certificate)
    assert (found.error, found.found, len(service.received)) == ("", "PNG", 1)


@pytest.mark.usefixtures("patience")
def test_a_certificate_that_nobody_vouches_for_is_an_error(certificate):
    with serving(answer(200, body=PNG), certificate) as service:
        trusting = client_of(service, certificate)
        strict = client_of(service, "")
        assert image_check(URL, trusting).error == ""
        assert "certificate" in image_check(URL, strict).error


@pytest.mark.usefixtures("patience")
def test_letters_are_escaped_as_browsers_do_and_the_fragment_is_not_sent(certificate):
    url = "https://images.example.org/Brötchen 1.png?größe=2%20#oben"
    found, service = checked(answer(200, body=PNG), certificate, url)
    assert found.error == ""
    assert service.received[0].path == "/Br%C3%B6tchen%201.png?gr%C3%B6%C3%9Fe=2%20"


@pytest.mark.parametrize(
    "url",
    [
        "https://localhost/x.png",
        "https://127.0.0.1/x.png",
        "https://2130706433/x.png",
        "https://[::1]/x.png",
        "https://169.254.169.254/latest/meta-data/",
        "https://metadata.internal/x.png",
        "https://images.example.org:8443/x.png",
        "https://user:secret@images.example.org/x.png",
        "https://",
        "https://[/x.png",
        "https://images.example.org\\@localhost/x.png",
    ],
)
def test_an_address_that_cannot_be_checked_is_not_asked(url):
    assert image_check(url, _no_client).error.startswith("Only addresses of public names")


@pytest.mark.parametrize("url", ["http://images.example.org/x.png", "ftp://x.example", "", "x"])
def test_only_https_is_asked(url):
    assert "https://" in image_check(url, _no_client).error


def _no_client(_look_up):
    raise AssertionError("nothing may be asked")


@pytest.mark.usefixtures("patience")
def test_a_public_name_that_leads_to_a_private_address_is_refused_at_the_socket(certificate):
    found, service = checked(answer(200, body=PNG), certificate, is_guarded=True)
    assert found.error.startswith("The address is not public")
    assert service.connections == 0


@pytest.mark.usefixtures("patience")
def test_the_usual_client_is_the_guarded_one(certificate, monkeypatch):
    with serving(answer(200, body=PNG), certificate) as service:
        here = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", service.port))
        monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [here])
        assert image_check(URL).error.startswith("The address is not public")
        assert service.connections == 0


def test_nobody_learns_which_private_names_there_are(monkeypatch):
    """An unknown name gets the same result as one that resolves to a private address."""

    def no_such_name(*_, **__):
        raise socket.gaierror

    private = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("10.0.0.1", 443))
    found = []
    for look_up in (no_such_name, lambda *_, **__: [private]):
        monkeypatch.setattr("socket.getaddrinfo", look_up)
        found.append(image_check(URL))
    assert found[0] == found[1]
    assert "Check the spelling" in found[0].error

"""`manage.py doctor` calls the public address as a browser does."""

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest

from sandbox import certificate
from sandbox.certificate import server_chain
from tests.ops.doctor.findings import errors, report, the_error

pytestmark = pytest.mark.django_db


@contextmanager
def web_server(answer, tmp_path, monkeypatch, name="127.0.0.1"):
    """The address of a TLS server that answers once; this process trusts its authority."""
    chain, authority = server_chain(name)
    (tmp_path / "chain.pem").write_bytes(chain)
    (tmp_path / "authority.pem").write_text(authority)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "chain.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            peer, _ = listener.accept()
            with suppress(ssl.SSLError), context.wrap_socket(peer, server_side=True) as connection:
                connection.recv(10_000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


HSTS = "Strict-Transport-Security: max-age=31536000\r\n"


def answered(status, body="", headers=HSTS):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n{body}".encode()


def test_the_public_address_is_called_as_a_browser_would(healthy, tmp_path, monkeypatch):
    with web_server(answered("200 OK", "{}"), tmp_path, monkeypatch) as url:
        found, _ = report("--url", url)

    assert found[-1]["title"] == "127.0.0.1 responds over TLS"


def test_a_proxy_that_drops_the_scheme_is_named(healthy, tmp_path, monkeypatch):
    with web_server(answered("200 OK", "{}", headers=""), tmp_path, monkeypatch) as url:
        found = errors("--url", url)

    title = "The proxy of 127.0.0.1 does not report that requests arrive over https"
    assert "X-Forwarded-Proto" in found[title]


def test_the_answer_of_a_proxy_is_quoted(healthy, tmp_path, monkeypatch):
    with web_server(answered("502 Bad Gateway", "nobody"), tmp_path, monkeypatch) as url:
        found = errors("--url", url)

    assert "was: nobody" in found["127.0.0.1: GET /healthz returned 502"]


def test_a_self_signed_certificate_is_refused(healthy, tmp_path, monkeypatch):
    with web_server(answered("200 OK"), tmp_path, monkeypatch) as url:
        monkeypatch.delenv("SSL_CERT_FILE")
        found = errors("--url", url)

    (title,) = [title for title in found if title.startswith(url)]
    assert "certificate" in found[title]


def test_a_certificate_that_ends_soon_is_named(healthy, tmp_path, monkeypatch):
    monkeypatch.setattr(certificate, "_LIFETIME", timedelta(days=10))
    with web_server(answered("200 OK", "{}"), tmp_path, monkeypatch) as url:
        error = the_error("--url", url)

    assert error == ("The certificate of 127.0.0.1 expires in 10 days", "Renew it.")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://push.example.com", "is not an https address"),
        ("https://nowhere.invalid", "the name does not resolve"),
        ("https://push..example.com", "the name does not resolve"),
        ("https://push.example.com ", "the name does not resolve"),
        ("https://push.example.com:99999", "is not an https address"),
    ],
)
def test_an_invalid_public_address_is_a_finding(healthy, url, said):
    (title,) = [title for title in errors("--url", url) if title.startswith(url)]
    assert said in title

"""Where and how long the sandbox serves: threads, TLS, restarts."""

import datetime
import http.client
import ipaddress
import ssl
import threading
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pywebpush import WebPusher

from sandbox import running_sandbox
from tests.sandbox.webpush.sender import TEXT, encoded


def test_a_hanging_request_does_not_prevent_the_sandbox_from_stopping(sender):
    with running_sandbox() as sandbox:
        device = sandbox.subscribe()
        device.behave("hang")
        hanging = _request_begun(device.subscription, sender.headers(device))
        while not sandbox.messages(device.id):
            threading.Event().wait(0.01)
    with pytest.raises(http.client.RemoteDisconnected):
        hanging.getresponse()
    hanging.close()


def _request_begun(subscription, headers):
    """A connection whose message is sent and whose answer is still to come."""
    parts = urlsplit(subscription["endpoint"])
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    body = WebPusher(subscription).encode(TEXT, content_encoding="aes128gcm")["body"]
    connection.request("POST", parts.path, body, headers)
    return connection


def test_accepted_counts_are_correct_as_soon_as_the_sender_has_the_response(sender):
    with running_sandbox() as sandbox:
        device = sandbox.subscribe(sender.public_key)
        for count in range(1, 101):
            assert sender.send(device).status == 201
            assert sandbox.accepted_count(device.id) == sandbox.accepted_count() == count


def test_the_restrictions_of_a_subscription_survive_a_restart(sender, tmp_path):
    path = tmp_path / "devices"
    with running_sandbox(state_file=path) as before:
        kept = before.subscribe(sender.public_key, is_bridged=True)
    with running_sandbox(port=urlsplit(before.origin).port, state_file=path):
        assert sender.send(kept, Authorization=None).status == 401
        assert sender.send(kept, encoded(kept, b"x" * 3_000)).status == 413


@pytest.fixture
def certificate(tmp_path):
    """The paths of a self-signed certificate for 127.0.0.1 and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sandbox")])
    now = datetime.datetime.fromtimestamp(1_700_000_000, datetime.UTC)
    loopback = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=36_500))
        .add_extension(loopback, critical=False)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return tmp_path / "cert.pem", tmp_path / "key.pem"


def test_the_sandbox_serves_over_tls_and_cuts_connections_there_too(sender, certificate):
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(*certificate)
    client = ssl.create_default_context(cafile=str(certificate[0]))
    with running_sandbox(ssl_context=server) as sandbox:
        assert sandbox.origin.startswith("https://127.0.0.1:")
        device = sandbox.subscribe(sender.public_key)
        device.behave("reset", times=1)
        with pytest.raises(ConnectionResetError):
            _send_over_tls(sender, device, client)
        assert _send_over_tls(sender, device, client) == 201
        assert sandbox.accepted_count(device.id) == 1


def _send_over_tls(sender, device, context):
    parts = urlsplit(device.endpoint)
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=context)
    try:
        connection.request("POST", parts.path, encoded(device), sender.headers(device))
        return connection.getresponse().status
    finally:
        connection.close()

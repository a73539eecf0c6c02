"""The iOS transport without a connection to Apple, and which certificates it trusts."""

import asyncio
import socket
import ssl

from notifications_app.delivery.apns import pool
from notifications_app.delivery.apns import server as apns_server
from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.apns.server import Server, tls_for_http2
from notifications_app.delivery.types import Deferred
from sandbox.certificate import server_tls
from tests.delivery.apns.support import (
    CREDENTIALS,
    DEVICE,
    behaving,
    deliver,
    destination_of,
    ended,
)
from tests.delivery.support import connection_settings, make_message


def refused_by(server, *, count=1, ca_file="", **settings):
    async def whole():
        client = apns.Client(connection_settings(apns_server=server, ca_file=ca_file, **settings))
        destination = destination_of(DEVICE)
        sends = [client.send(make_message(), destination, CREDENTIALS) for _ in range(count)]
        outcomes = await asyncio.gather(*sends)
        await client.close()
        return outcomes

    return asyncio.run(whole())


def unused_address():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"127.0.0.1:{closed.getsockname()[1]}"


def test_a_refused_connection_is_an_outage_for_every_waiting_send():
    outcomes = refused_by(unused_address(), count=20, call_seconds=5.0)
    failed = Deferred("connection_failed", "ConnectionRefusedError", outage=True)
    assert set(outcomes) == {failed}


def test_a_long_outage_stays_an_outage(monkeypatch):
    monkeypatch.setattr(pool, "FIRST_WAIT", 0.0)

    async def whole():
        client = apns.Client(connection_settings(apns_server=unused_address()))
        codes = set()
        for _ in range(1_100):
            codes.add((await client.send(make_message(), destination_of(DEVICE), CREDENTIALS)).code)
        await client.close()
        return codes

    assert asyncio.run(whole()) == {"connection_failed"}


def test_a_certificate_of_an_unknown_authority_is_refused(sandbox):
    assert refused_by(sandbox.server) == [Deferred("tls_failed", outage=True)]
    assert sandbox.open_connection_count == 0


def test_a_certificate_of_another_host_is_refused(sandbox, monkeypatch):
    port = sandbox.server.split(":")[1]
    monkeypatch.setattr(
        "socket.getaddrinfo",
        lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", int(port)))],
    )
    outcomes = refused_by(f"api.push.apple.com:{port}", ca_file=str(sandbox.ca_file))
    assert outcomes == [Deferred("tls_failed", outage=True)]


def test_a_name_that_does_not_resolve_is_an_outage(monkeypatch):
    def look_up(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    assert refused_by("apns.example.org:443") == [Deferred("name_not_resolved", outage=True)]


def test_a_server_that_never_finishes_its_handshake_does_not_use_up_the_calls_time(monkeypatch):
    monkeypatch.setattr(apns_server, "CONNECT_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Server("127.0.0.1", silent.getsockname()[1])

        async def whole():
            return await ended(address.connect(tls_for_http2(), lambda: None), 5.0)

        assert asyncio.run(whole()) == "TimeoutError"
        server = address.authority
        assert refused_by(server, count=2) == [Deferred("timeout", outage=True)] * 2


def test_a_server_that_ends_every_connection_is_called_with_pauses(sandbox, key):
    device = behaving(sandbox, "close_after_accept")
    waiting = [behaving(sandbox, "close_after_accept") for _ in range(20)]
    outcomes = deliver(sandbox, key, device, *waiting, proven=False, call_seconds=1.0)
    assert {outcome.outage for outcome in outcomes} == {True}
    assert sandbox.connection_count < 8


def test_the_default_servers_are_apples():
    assert {name: server.authority for name, server in apns.SERVERS.items()} == {
        "production": "api.push.apple.com",
        "sandbox": "api.sandbox.push.apple.com",
    }


def test_tls_is_verified_and_of_a_recent_version():
    context = tls_for_http2()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_tls_offers_only_http2(tmp_path):
    chosen = []

    async def note(_, writer):
        chosen.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        writer.close()

    async def whole():
        tls, pem = server_tls("127.0.0.1")
        tls.set_alpn_protocols(["http/1.1", "h2"])
        (tmp_path / "ca.pem").write_text(pem)
        async with await asyncio.start_server(note, "127.0.0.1", 0, ssl=tls) as server:
            address = Server("127.0.0.1", server.sockets[0].getsockname()[1])
            client_tls = tls_for_http2(str(tmp_path / "ca.pem"))
            connection = await address.connect(client_tls, lambda: None)
            await connection.wait_closed(1.0)

    asyncio.run(whole())
    assert chosen == ["h2"]

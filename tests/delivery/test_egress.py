import asyncio
import socket
import ssl
import threading
from ipaddress import IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.delivery.http_connection import NoResponseError
from pushsvc.common.egress import (
    MAX_RESPONSE_BODY,
    AddressRefused,
    SeparateResolver,
    address_is_public,
    public_socket,
    tls_context,
)
from tests.delivery.support import PushService, answer, http_client, raw


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "142.250.74.74",
        "100.63.255.255",
        "172.32.0.1",
        "223.255.255.254",
        "2606:4700:4700::1111",
        "2a00:1450:4001:82a::200a",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ],
)
def test_a_public_address_is_public(address):
    assert address_is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        # IPv4 in order: this network, private, shared, loopback, link-local, assignments, cloud
        # metadata, documentation, 6to4 relays, benchmarks, multicast, reserved, broadcast.
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1",  # noqa: S104 - dialled, not bound
        "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1",
        "192.0.0.192", "192.0.0.9", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
        "255.255.255.255",
        # IPv6: unspecified, loopback, IPv4-compatible, mapped, translated, discard, Teredo, ORCHID,
        # benchmarks, documentation, 6to4, AS112, segment routing, unique local, link-local,
        # site-local, multicast, not given out.
        "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "::ffff:192.0.0.192", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::169.254.169.254",
        "64:ff9b:1::7f00:1", "64:ff9b:1::8.8.8.8", "100::1", "2001::1", "2001:0:7f00:1::1",
        "2001:10::1", "2001:20::1", "2001:2::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1",
        "2620:4f:8000::1", "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1",
        "fe80::1%eth0", "2606:4700:4700::1111%eth0", "::ffff:8.8.8.8%eth0", "64:ff9b::8.8.8.8%1",
        "fec0::1", "ff02::1", "4000::1", "e000::1",
        "", "localhost", "0x7f000001",
    ],
)  # fmt: skip
def test_any_other_address_is_not_public(address):
    assert not address_is_public(address)


PRIVATE_V4 = st.sampled_from(
    ["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
     "100.64.0.0/10", "224.0.0.0/3"]
).flatmap(lambda network: st.ip_addresses(network=ip_network(network)))  # fmt: skip


@given(PRIVATE_V4, st.sampled_from(["::ffff:{}", "64:ff9b::{}", "64:ff9b:1::{}", "::{}"]))
def test_no_private_ipv4_address_becomes_public_inside_ipv6(inner, spelling):
    assert not address_is_public(spelling.format(inner))


@given(st.ip_addresses(v=4), st.integers(0, 2**32 - 1))
def test_no_tunnel_address_is_public(inner, server):
    """6to4 and Teredo: the owner of a relay decides where they lead."""
    sixtofour = (0x2002 << 112) | int(inner) << 80
    teredo = (0x20010000 << 96) | server << 64 | (int(inner) ^ 0xFFFF_FFFF)

    assert not address_is_public(str(IPv6Address(sixtofour)))
    assert not address_is_public(str(IPv6Address(teredo)))


def test_a_socket_is_made_only_for_a_public_address():
    kind, protocol = socket.SOCK_STREAM, socket.IPPROTO_TCP
    public_socket((socket.AF_INET, kind, protocol, "", ("8.8.8.8", 443))).close()
    with pytest.raises(AddressRefused):
        public_socket((socket.AF_INET, kind, protocol, "", ("10.0.0.1", 443)))
    with pytest.raises(AddressRefused):
        public_socket((socket.AF_UNIX, kind, 0, "", "/run/x.sock"))


def names(*addresses):
    """Resolves every name to the same addresses."""

    async def look_up(_, port):
        families = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in addresses]
        found = zip(families, addresses, strict=True)
        return [(family, socket.SOCK_STREAM, 0, "", (each, port)) for family, each in found]

    return look_up


async def post(made, url, *, total=5.0):
    until = asyncio.get_running_loop().time() + total
    return await made.post(url, headers={}, body=b"x", until=until)


async def try_post(url, *, total=5.0, **options):
    async with http_client(**options) as made:
        return await post(made, url, total=total)


async def refused(url, **options):
    """Whether a guarded request to `url` is refused; `{}` in it becomes a listening port."""
    async with PushService(answer()) as service:
        with pytest.raises(OSError) as failure:  # noqa: PT011 - the type is what is judged
            await try_post(url.format(service.port), is_guarded=True, **options)
        assert service.connections == 0
        return isinstance(failure.value, AddressRefused)


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["::1"], ["127.0.0.1", "::1"], ["10.0.0.1", "127.0.0.1", "::1", "10.0.0.2"]],
)
def test_a_public_name_that_resolves_to_loopback_is_refused_before_a_connection_is_made(addresses):
    assert asyncio.run(refused("https://push.example.org:{}/", look_up=names(*addresses)))


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "localhost"],  # noqa: S104 - dialled, not bound
)
def test_a_local_address_is_refused_before_a_connection_is_made(host):
    assert asyncio.run(refused(f"https://{host}:{{}}/"))


@pytest.mark.parametrize("host", ["2130706433", "127.1", "0x7f000001", "0177.0.0.1"])
def test_an_odd_spelling_of_loopback_reaches_nothing(host):
    asyncio.run(refused(f"https://{host}:{{}}/"))


def test_without_the_guard_the_same_request_would_connect():
    async def dial():
        async with PushService(answer()) as service:
            with pytest.raises((ssl.SSLError, TimeoutError)):
                await try_post(f"https://127.0.0.1:{service.port}/", total=0.5)
            return service.connections

    assert asyncio.run(dial()) == 1


def test_a_guarded_client_refuses_plain_http():
    with pytest.raises(ValueError, match="not https"):
        asyncio.run(try_post("http://push.example.org/", is_guarded=True))


def test_a_connection_that_fails_is_not_called_refused():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(try_post(f"http://127.0.0.1:{port}/"))


async def posted(behave, *, path="/", **over):
    async with PushService(behave) as service:
        response = await try_post(service.origin + path, **over)
        return response, service


def test_a_redirect_is_returned_and_not_followed():
    async def redirect():
        async with PushService(answer()) as elsewhere:
            location = f"Location: {elsewhere.origin}/"
            response, _ = await posted(answer(307, [location]))
            return response.status, elsewhere.connections

    assert asyncio.run(redirect()) == (307, 0)


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    async def proxied():
        async with PushService(answer(502)) as proxy:
            monkeypatch.setenv("http_proxy", proxy.origin)
            monkeypatch.setenv("no_proxy", "")
            response, _ = await posted(answer(201))
            return response.status, proxy.connections

    assert asyncio.run(proxied()) == (201, 0)


def test_the_path_is_sent_unchanged():
    _, service = asyncio.run(posted(answer(), path="/w/?token=a%2bb%3D//x~%7e;y"))
    assert service.received[0].path == "/w/?token=a%2bb%3D//x~%7e;y"


def test_a_cookie_is_not_sent_back_and_the_connection_is_kept():
    async def twice():
        async with PushService(answer(201, ["Set-Cookie: a=b"])) as service, http_client() as made:
            for _ in range(2):
                await post(made, service.origin)
            return service

    service = asyncio.run(twice())
    assert service.connections == 1
    assert "Cookie" not in service.received[1].headers


def chunked(status):
    return f"HTTP/1.1 {status} Whatever\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def test_an_endless_body_is_cut_off_and_its_connection_closed():
    async def endless():
        chunk = b"400\r\n" + b"x" * 1_024 + b"\r\n"
        async with PushService(raw(chunked(400), chunk)) as service, http_client() as made:
            response = await post(made, service.origin, total=30)
            await asyncio.wait_for(service.ended.wait(), 30)
            return response

    assert asyncio.run(endless()).body == b"x" * MAX_RESPONSE_BODY


def test_a_body_that_stalls_keeps_its_status():
    response, _ = asyncio.run(posted(raw(chunked(201), b"1\r\nx\r\n", pause=0.05), total=2.0))
    assert response.status == 201
    assert set(response.body) == {ord("x")}


def test_a_body_that_breaks_off_keeps_its_status():
    async def broken(_, writer):
        writer.write(chunked(410) + b"5\r\nhel")
        await writer.drain()
        writer.close()

    response, _ = asyncio.run(posted(broken))
    assert response.status == 410


def test_a_compressed_body_is_neither_requested_nor_unpacked():
    response, service = asyncio.run(posted(answer(400, ["Content-Encoding: gzip"], b"\x1f\x8bx")))
    assert response.body == b"\x1f\x8bx"
    assert "Accept-Encoding" not in service.received[0].headers


def test_endless_headers_fail_without_filling_memory():
    endless_headers = raw(b"HTTP/1.1 201 Created\r\n", b"X-More: and more\r\n" * 100)
    with pytest.raises(NoResponseError):
        asyncio.run(posted(endless_headers, total=30))


def test_an_unreadable_authority_file_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        tls_context(str(tmp_path / "missing.pem"))


def test_a_slow_name_look_up_delays_only_those_queued_behind_it(monkeypatch):
    asked, answered = [], threading.Event()

    def look_up(host, port, *_, **__):
        asked.append(host)
        if host == "slow.example.org":
            answered.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", port))]

    async def resolve_in_turn():
        resolver = SeparateResolver(threads=1, timeout=2.0)
        names = ["slow.example.org", "in-line.example.org"]
        waiting = [resolver.look_up(name, 443) for name in names]
        failures = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in failures] == [TimeoutError, TimeoutError]
        found = await resolver.look_up("fast.example.org", 443)
        assert not answered.is_set()
        resolver.close()
        return found[0][4][0]

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    try:
        assert asyncio.run(resolve_in_turn()) == "192.0.2.1"
    finally:
        answered.set()
    assert asked == ["slow.example.org", "fast.example.org"]

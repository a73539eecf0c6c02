"""The client's address: which headers are trusted, and which addresses limits count as one."""

from ipaddress import IPv6Address
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.conf import settings as django_settings
from django.test import RequestFactory, override_settings
from hypothesis import given
from hypothesis import strategies as st

from pushsvc.common.http.client_address import (
    client_ip,
    counted_address,
    counted_ip,
    is_from_this_machine,
)
from pushsvc.common.store.redis_client import redis_client
from tests.api.test_web_process import ask
from tests.pipeline.processes import running_web

PEER = "203.0.113.5"


def request_of(forwarded=None, peer=PEER):
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    return RequestFactory(REMOTE_ADDR=peer).get("/", headers=headers)


@pytest.mark.parametrize(
    ("hops", "forwarded", "expected"),
    [
        (0, None, PEER),
        (0, "192.0.2.1", PEER),
        (1, None, PEER),
        (1, "", PEER),
        (1, "192.0.2.1", "192.0.2.1"),
        (1, "10.9.9.9, 192.0.2.1", "192.0.2.1"),
        (2, "10.9.9.9, 192.0.2.1, 198.51.100.2", "192.0.2.1"),
        (2, "192.0.2.1", "192.0.2.1"),
        (1, "192.0.2.1:4711", "192.0.2.1"),
        (1, "[2001:DB8::1]:4711", "2001:db8::1"),
        (1, "2001:DB8:0::1", "2001:db8::1"),
        (1, "::ffff:192.0.2.1", "192.0.2.1"),
        (1, "[::FFFF:C000:201]:4711", "192.0.2.1"),
        (1, "64:ff9b::192.0.2.1", "64:ff9b::c000:201"),
        (1, "192.0.2.1, unknown", PEER),
        (1, "192.0.2.1,", PEER),
        (1, "192.0.2.01", PEER),
        (1, "3221225985", PEER),
        (1, "0xc0.0.2.1", PEER),
        (1, "192.0.513", PEER),
        (1, "١٩٢.0.2.1", PEER),
        (1, "2001:db8::1%eth0", PEER),
        (1, "[fe80::1%25eth0]:80", PEER),
        (1, "::ffff:192.0.2.1%1", PEER),
        (1, "2001:db8::1::2", PEER),
    ],
)
def test_only_as_many_hops_as_configured_are_trusted(settings, hops, forwarded, expected):
    settings.TRUSTED_PROXIES = hops

    assert client_ip(request_of(forwarded)) == expected


def test_an_ipv4_peer_of_a_dual_stack_socket_is_an_ipv4_address():
    assert client_ip(request_of(peer="::ffff:192.0.2.1")) == "192.0.2.1"
    assert is_from_this_machine(request_of(peer="::ffff:127.0.0.1"))


@pytest.mark.parametrize("peer", ["64:ff9b::127.0.0.1", "2002:7f00:1::", "::127.0.0.1", ""])
def test_a_loopback_address_from_a_header_is_not_this_machine(peer):
    assert not is_from_this_machine(request_of(peer=peer))


@pytest.mark.parametrize("peer", ["", "fe80::1%eth0", "fe80::2%eth0", "fe80::1%1"])
def test_peers_without_an_address_count_as_one(peer):
    assert client_ip(request_of(peer=peer)) is None
    assert counted_ip(request_of(peer=peer)) is None
    assert counted_address(request_of(peer=peer)) == "unknown"


V4 = st.ip_addresses(v=4)
V6 = st.ip_addresses(v=6, network="2600::/12")
LOW_64 = st.integers(0, 2**64 - 1)


def written(text):
    """As proxies and clients write an address."""
    v6 = ":" in text
    forms = [text, text.upper(), f" {text} ", f"[{text}]" if v6 else text]
    ported = f"[{text}]:4711" if v6 else f"{text}:4711"
    forms += [ported, IPv6Address(text).exploded if v6 else text]
    return st.sampled_from(forms)


@st.composite
def spellings_of_v4(draw, v4):
    number = int(v4)
    rest = draw(LOW_64)
    carried = [
        str(v4),
        f"::ffff:{v4}",
        f"64:ff9b::{v4}",
        str(IPv6Address(0x2002 << 112 | number << 80 | rest)),
        str(
            IPv6Address(
                0x20010000 << 96
                | (rest & 0xFFFF_FFFF) << 64
                | rest >> 32 << 32
                | number ^ 0xFFFF_FFFF
            )
        ),
    ]
    return draw(written(draw(st.sampled_from(carried))))


@st.composite
def spellings_of_site(draw, ip):
    inside = int(ip) >> 64 << 64 | draw(LOW_64)
    return draw(written(str(IPv6Address(inside))))


@given(st.data())
def test_all_spellings_of_an_ipv4_address_count_as_one(data):
    v4 = data.draw(V4)
    spelling = data.draw(spellings_of_v4(v4))
    with override_settings(TRUSTED_PROXIES=1):
        assert counted_ip(request_of(spelling)) == str(v4)


@given(st.data())
def test_all_addresses_of_an_ipv6_network_count_as_one_in_any_spelling(data):
    ip = data.draw(V6)
    one, other = data.draw(spellings_of_site(ip)), data.draw(spellings_of_site(ip))
    with override_settings(TRUSTED_PROXIES=1):
        assert counted_ip(request_of(one)) == counted_ip(request_of(other))
        assert counted_ip(request_of(one)).endswith("::")


@given(V6, V6)
def test_two_networks_count_separately(one, other):
    same = int(one) >> 64 == int(other) >> 64
    with override_settings(TRUSTED_PROXIES=1):
        counted = {counted_ip(request_of(str(ip))) for ip in (one, other)}
    assert len(counted) == (1 if same else 2)


def test_a_limit_counts_all_addresses_of_an_ipv6_network(transactional_db, tmp_path):
    """Each refused key comes from another address, as a host with a /64 can send them."""
    redis_client().flushdb()
    limit = django_settings.REFUSED_KEYS_PER_MINUTE
    with running_web(tmp_path / "web.log", TRUSTED_PROXIES="1") as address:
        port = urlsplit(address).port
        answers = [refused(port, f"2001:db8:1:2::{n + 1:x}") for n in range(limit + 1)]
        elsewhere = refused(port, "2001:db8:1:3::1")
        redis_client().flushdb()
        as_v6 = [refused(port, "::ffff:192.0.2.1") for _ in range(limit)]
        as_v4 = refused(port, "192.0.2.1")

    assert answers == [401] * limit + [429]
    assert elsewhere == 401
    assert (as_v6, as_v4) == ([401] * limit, 429)


def refused(port, address):
    """The status for a mistyped key that a proxy sends for this address."""
    path = f"/channel/{uuid4()}"
    lines = f"Host: localhost\r\nAuthorization: Key none\r\nX-Forwarded-For: {address}\r\n"
    return ask(port, f"GET {path} HTTP/1.1\r\n{lines}\r\n")[0]

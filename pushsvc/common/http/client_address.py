"""The address of a client: for the audit log, for limits, and for pages of this machine only."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from django.conf import settings
from django.http import HttpRequest

from pushsvc.common.addresses import translated, tunnelled

_FORWARDING: Final = (
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "Forwarded",
    "X-Real-IP",
)
_SITE_BITS: Final = 64  # the usual network of one customer (RFC 6177)

_Address = IPv4Address | IPv6Address


def client_ip(request: HttpRequest) -> str | None:
    """The client's whole address in canonical form. None if the peer has none (a local socket).

    Without proxies it is the peer's. With TRUSTED_PROXIES = n, it is the n-th entry of
    X-Forwarded-For from the right; the client itself may have written entries further left. If
    there are fewer entries, the leftmost counts. If the entry is not an address, the peer's counts.
    """
    found = _client(request)
    return None if found is None else str(found)


def counted_ip(request: HttpRequest) -> str | None:
    """The address that limits and lock-outs count, which is the same for all addresses of one
    customer: the IPv4 address, even inside IPv6, or the first address of the IPv6 /64."""
    found = _client(request)
    return None if found is None else str(_counted(found))


def counted_address(request: HttpRequest) -> str:
    """`counted_ip`, or one text for all peers without an address."""
    return counted_ip(request) or "unknown"


def is_from_this_machine(request: HttpRequest) -> bool:
    """Whether the peer is on the loopback and does not forward for other clients."""
    if any(header in request.headers for header in _FORWARDING):
        return False
    peer = _peer(request)
    return peer is not None and peer.is_loopback


def _client(request: HttpRequest) -> _Address | None:
    hops: int = settings.TRUSTED_PROXIES
    given = request.META.get("HTTP_X_FORWARDED_FOR", "").strip()
    if hops == 0 or not given:
        return _peer(request)
    entries = [part.strip() for part in given.split(",")]
    return _address(entries[-min(hops, len(entries))]) or _peer(request)


def _peer(request: HttpRequest) -> _Address | None:
    return _address(request.META.get("REMOTE_ADDR", ""))


def _counted(ip: _Address) -> _Address:
    """The counted address. IPv4 inside IPv6 counts as IPv4, because all of NAT64 share a /64, and a
    6to4 site has many."""
    if isinstance(ip, IPv4Address):
        return ip
    site = IPv6Network((ip, _SITE_BITS), strict=False)
    return translated(ip) or tunnelled(ip) or site.network_address


def _address(entry: str) -> _Address | None:
    """Parses an address. None if it is malformed or has a zone (`fe80::1%eth0`).

    Some proxies write `1.2.3.4:567` or `[2001:db8::1]:567`. A socket for both families writes IPv4
    as mapped IPv6.
    """
    host = entry.removeprefix("[").partition("]")[0] if "[" in entry else entry
    if host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        ip = ip_address(host)
    except ValueError:
        return None
    if isinstance(ip, IPv4Address):
        return ip
    return None if ip.scope_id is not None else ip.ipv4_mapped or ip

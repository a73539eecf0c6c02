"""Whose request it is: for the audit log, for limits and lock-outs by address, and for what only
this machine may do."""

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
_SITE_BITS: Final = 64  # what a network of one customer has at the least (RFC 6177)

_Address = IPv4Address | IPv6Address


def client_ip(request: HttpRequest) -> str | None:
    """The whole address in its one spelling; None for a peer that has none (a local socket).

    It is the peer's; with TRUSTED_PROXIES = n, the one n hops further by X-Forwarded-For. Entries
    left of those hops were written by the client and are never believed. A header with fewer
    entries gives its leftmost; an entry that is no address gives the peer's.
    """
    found = _client(request)
    return None if found is None else str(found)


def counted_ip(request: HttpRequest) -> str | None:
    """The address that limits and lock-outs count, the same for all that one customer can send
    from: an IPv4 address, however IPv6 carries it, else the first address of the /64."""
    found = _client(request)
    return None if found is None else str(_counted(found))


def counted_address(request: HttpRequest) -> str:
    """`counted_ip`; all peers without an address count as one."""
    return counted_ip(request) or "unknown"


def is_from_this_machine(request: HttpRequest) -> bool:
    """Whether the peer is on the loopback and forwards for nobody."""
    if any(header in request.headers for header in _FORWARDING):
        return False
    peer = _peer(request)
    return peer is not None and peer.is_loopback


def _client(request: HttpRequest) -> _Address | None:
    hops: int = settings.TRUSTED_PROXIES
    entries = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    if hops == 0 or entries == [""]:
        return _peer(request)
    return _address(entries[-min(hops, len(entries))]) or _peer(request)


def _peer(request: HttpRequest) -> _Address | None:
    return _address(request.META.get("REMOTE_ADDR", ""))


def _counted(ip: _Address) -> _Address:
    """IPv4 behind a translator would all share its /64; a 6to4 site has as many /64 as it likes."""
    if isinstance(ip, IPv4Address):
        return ip
    site = IPv6Network((ip, _SITE_BITS), strict=False)
    return translated(ip) or tunnelled(ip) or site.network_address


def _address(entry: str) -> _Address | None:
    """None for what is no address, or one of a link (`fe80::1%eth0`): its zone means nothing here.

    Some proxies write `1.2.3.4:567` or `[2001:db8::1]:567`. Mapped IPv4 is how a socket for both
    families writes IPv4.
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

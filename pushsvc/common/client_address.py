"""Whose request it is: for limits by address, and for what only this machine may do."""

from ipaddress import ip_address
from typing import Final

from django.conf import settings
from django.http import HttpRequest

_FORWARDING: Final = (
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "Forwarded",
    "X-Real-IP",
)


def client_address(request: HttpRequest) -> str:
    """The peer's address; with TRUSTED_PROXIES = n, the one n hops further by X-Forwarded-For.

    Entries left of those hops were written by the client and are never believed. A header with
    fewer entries gives its leftmost; an entry that is no address gives the peer's.
    """
    peer: str = request.META.get("REMOTE_ADDR") or "unknown"
    hops: int = settings.TRUSTED_PROXIES
    entries = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    if hops == 0 or entries == [""]:
        return peer
    return _address(entries[-min(hops, len(entries))]) or peer


def is_from_this_machine(request: HttpRequest) -> bool:
    """Whether the peer is on the loopback and forwards for nobody."""
    if any(header in request.headers for header in _FORWARDING):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def client_ip(request: HttpRequest) -> str | None:
    """The same where only an address will do; None for a peer that has none (a local socket)."""
    return _address(client_address(request))


def _address(entry: str) -> str | None:
    """`entry` in its one spelling; some proxies write `1.2.3.4:567` or `[2001:db8::1]:567`."""
    host = entry.removeprefix("[").partition("]")[0] if "[" in entry else entry
    if host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        return str(ip_address(host))
    except ValueError:
        return None

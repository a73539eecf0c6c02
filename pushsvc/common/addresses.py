"""IPv4 addresses inside IPv6 addresses."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

_NAT64: Final = IPv6Network("64:ff9b::/96")


def translated(ip: IPv6Address) -> IPv4Address | None:
    """The IPv4 address to which the network translates `ip`: mapped (RFC 4291), or with NAT64's
    well-known prefix (RFC 6052). Addresses with the local prefix 64:ff9b:1::/48 (RFC 8215) are not
    decoded, because their layout is known only in their own network."""
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.ipv4_mapped


def tunnelled(ip: IPv6Address) -> IPv4Address | None:
    """The IPv4 address of the owner of `ip`, if it is 6to4 (RFC 3056) or Teredo (RFC 4380)."""
    return ip.sixtofour or (ip.teredo[1] if ip.teredo else None)

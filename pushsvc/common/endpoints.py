"""Decides which web push endpoints are allowed, and which push service they belong to. Pure.

The check runs when a browser subscribes and again before every send, because the operator's lists
may have changed. It checks names only; `pushsvc.common.egress` checks the address to which a name
resolves.
"""

import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from pushsvc.common.platforms import Platform

MAX_ENDPOINT_LENGTH: Final = 2_000
OTHER: Final = "other"

# The canonical hosts, by their whole names. Anyone can invent names under the same domains that do
# not resolve, and their failures say nothing about the service. For WNS, Microsoft documents only
# `*.notify.windows.com`. These are the regions that Edge was observed to use.
_WNS_REGIONS: Final = (
    "am3p", "bl2p", "bn3p", "by3p", "ch1p", "db5p", "ln2p", "par02p", "pn1p", "sg2p",
)  # fmt: skip
_SERVICE_BY_HOST: Final = {
    "fcm.googleapis.com": "fcm",
    "updates.push.services.mozilla.com": "mozilla",
    "web.push.apple.com": "apple",
    **{f"wns2-{region}.notify.windows.com": "wns" for region in _WNS_REGIONS},
}
# Hosts that follow a vendor's rules for requests, canonical or not.
_VENDOR_BY_SUFFIX: Final = (("push.apple.com", "apple"), ("notify.windows.com", "wns"))
# The push service of a platform's tokens.
TOKEN_SERVICES: Final = {Platform.ANDROID: "fcm_v1", Platform.IOS: "apns"}
WELL_KNOWN_SERVICES: Final = frozenset(_SERVICE_BY_HOST.values())
# RFC 6761, 6762 (appendix G), 8375 and ICANN's reservation of .internal.
_LOCAL_DOMAINS: Final = (
    "localhost", "localdomain", "local", "internal", "home.arpa", "lan", "home", "intranet",
    "private", "corp",
)  # fmt: skip
# Names outside of the public DNS: RFC 6761, 7686 and 9476. RFC 6761 also reserves example.com, .net
# and .org, which resolve. Chromium without a subscription returns an endpoint under .invalid
# (`https://permanently-removed.invalid/`).
_RESERVED_DOMAINS: Final = ("invalid", "test", "example", "onion", "alt")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_HOST_CHARACTERS: Final = re.compile(r"[a-z0-9._-]+")
# Resolvers read a host whose last label is a number as an IPv4 address (WHATWG URL, "ends in a
# number"): 127.1, 2130706433, 0177.0.0.1, 0x7f000001.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Scheme, user, host and port.
_BEFORE_PATH: Final = re.compile(r"[^/?#]*//[^/?#]*")
# RFC 3986 section 2.1, and the characters of section 2.3 that need no encoding.
_ESCAPE: Final = re.compile(r"%[0-9a-fA-F]{2}")
_NO_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]")
_FORBIDDEN_CHARACTERS: Final = re.compile(r"[\x00-\x20\x7f-\xa0\\\s]")


class EndpointNotAllowed(ValueError):
    """`reason`: a sentence for the client, without any part of the endpoint."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class EndpointNeverResolves(EndpointNotAllowed):
    """The host's name is reserved. `is_certain`: it is under .invalid, so no network has it (RFC
    6761 section 6.4). An operator may have trusted other names until now."""

    def __init__(self, *, is_certain: bool) -> None:
        super().__init__(
            "The endpoint's host is a reserved name that never resolves, so no push service is"
            " there. Subscribe the browser again, and send the endpoint that it gets."
        )
        self.is_certain = is_certain


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`origin`: in the form of RFC 6454 (host in lower case, without the default port). `service`:
    one of a bounded set of names. `vendor`: `apple` or `wns` if the host follows their rules, else
    empty. `url`: the URL to store and to call, in its canonical form. `is_trusted`: private
    addresses and http are allowed."""

    origin: str
    service: str
    vendor: str
    url: str
    is_trusted: bool


def push_service(host: str) -> str:
    """`fcm`, `mozilla`, `apple`, `wns` or `other`, by a lower-case host name."""
    return _SERVICE_BY_HOST.get(host, OTHER)


def is_under(host: str, suffix: str) -> bool:
    return host == suffix or host.endswith(f".{suffix}")


def normalise_origin(text: str) -> str:
    """`scheme://host[:port]` of an http or https origin. Raises ValueError if `text` is more than
    an origin. One slash at its end is allowed."""
    parts = _parse(text)
    if parts.rest not in ("", "/"):
        raise EndpointNotAllowed("An origin has no path and no query.")
    return parts.origin


def check_endpoint(
    url: str, *, trusted_origins: frozenset[str], allowed_hosts: tuple[str, ...]
) -> Endpoint:
    """Checks the URL and returns its endpoint, whose `url` has at most MAX_ENDPOINT_LENGTH
    characters. Raises EndpointNotAllowed.

    `trusted_origins` are exempt from the rules about scheme, port and host. Each is a separate push
    service, named `host:port`. `allowed_hosts`: host suffixes in lower case without a leading dot.
    If it is empty, any public host is allowed.
    """
    _check_characters(url)
    found = _BEFORE_PATH.match(url)
    begin = found[0] if found else url
    judged = _judged(begin, trusted_origins, allowed_hosts)
    canonical = judged.origin + _canonical_rest(url[len(begin) :])
    _check_length(canonical)  # again: the ASCII form of a host is longer
    return Endpoint(judged.origin, judged.service, judged.vendor, canonical, judged.is_trusted)


def canonical_endpoint(url: str) -> str:
    """The `url` of `check_endpoint`, whether or not the endpoint is allowed. Two URLs with the same
    canonical form name one endpoint (RFC 3986 section 6.2.2). A text that is not a URL is returned
    as it is."""
    try:
        _check_characters(url)
        found = _BEFORE_PATH.match(url)
        begin = found[0] if found else url
        return _origin_of(begin) + _canonical_rest(url[len(begin) :])
    except EndpointNotAllowed:
        return url


@lru_cache(maxsize=1024)
def _origin_of(begin: str) -> str:
    return _parse(begin).origin


def _canonical_rest(rest: str) -> str:
    """Path and query, with only the necessary characters escaped. Digits are in lower case, as WNS
    writes them, so that endpoints of browsers stay as they are. With a malformed escape, all stay
    as they are, because it could become another escape."""
    rest = _checked_rest(rest)
    if "%" in rest and not _NO_ESCAPE.search(rest):
        rest = _ESCAPE.sub(_escaped, rest)
    return rest if rest.startswith("/") else f"/{rest}"


def _escaped(escape: re.Match[str]) -> str:
    character = chr(int(escape[0][1:], 16))
    return character if _UNRESERVED.fullmatch(character) else escape[0].lower()


@lru_cache(maxsize=1024)
def _judged(
    begin: str, trusted_origins: frozenset[str], allowed_hosts: tuple[str, ...]
) -> Endpoint:
    """The endpoint without its path. Cached, because most endpoints share a few origins."""
    parts = _parse(begin)
    service = push_service(parts.host)
    is_trusted = parts.origin in _normalised(trusted_origins)
    if not is_trusted:
        _check_public(parts, allowed_hosts)
    elif service == OTHER:
        service = f"{parts.host}:{parts.port}"
    return Endpoint(parts.origin, service, _vendor(parts.host), parts.origin, is_trusted)


def service_of(url: str, trusted_origins: frozenset[str]) -> str:
    """The `service` of `check_endpoint`, at a fraction of the cost. `other` if the endpoint is not
    allowed."""
    return _service_at("/".join(url.split("/", 3)[:3]), trusted_origins)


@lru_cache(maxsize=1024)
def _service_at(origin: str, trusted_origins: frozenset[str]) -> str:
    try:
        return check_endpoint(origin, trusted_origins=trusted_origins, allowed_hosts=()).service
    except EndpointNotAllowed:
        return OTHER


def _vendor(host: str) -> str:
    return next((name for suffix, name in _VENDOR_BY_SUFFIX if is_under(host, suffix)), "")


def own_services(trusted_origins: frozenset[str]) -> frozenset[str]:
    """The names of the push services at trusted origins."""
    parts = [_parse(origin) for origin in _normalised(trusted_origins)]
    return frozenset(
        f"{each.host}:{each.port}" for each in parts if push_service(each.host) == OTHER
    )


@lru_cache(maxsize=16)
def _normalised(origins: frozenset[str]) -> frozenset[str]:
    # An entry that is not an origin matches nothing. A system check reports it.
    return frozenset(_each_origin(origins))


def _each_origin(origins: frozenset[str]) -> Iterable[str]:
    for origin in origins:
        with suppress(EndpointNotAllowed):
            yield normalise_origin(origin)


@dataclass(frozen=True, slots=True)
class _Parts:
    """`host`: in lower case and in its ASCII form. An IPv6 address has no brackets. `rest`:
    everything after host and port, as given."""

    scheme: str
    host: str
    port: int
    rest: str

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


def _parse(url: str) -> _Parts:
    """Applies the rules for all endpoints, trusted or not."""
    _check_characters(url)
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError as error:
        raise EndpointNotAllowed("The endpoint is not a URL.") from error
    if split.scheme not in _DEFAULT_PORTS or not split.hostname:
        raise EndpointNotAllowed("The endpoint must be an https URL.")
    if "@" in split.netloc:
        raise EndpointNotAllowed("The endpoint must not hold a user name or password.")
    rest = _checked_rest(url[url.index("//") + 2 + len(split.netloc) :])
    host = _ipv6_literal(split.hostname) if "[" in split.netloc else _host_name(split.hostname)
    return _Parts(split.scheme, host, _DEFAULT_PORTS[split.scheme] if port is None else port, rest)


def _checked_rest(rest: str) -> str:
    if not rest.isascii():
        raise EndpointNotAllowed("The endpoint holds a character that a URL may not hold.")
    return rest


def _check_length(url: str) -> None:
    if len(url) > MAX_ENDPOINT_LENGTH:
        raise EndpointNotAllowed(f"The endpoint has more than {MAX_ENDPOINT_LENGTH} characters.")


def _check_characters(url: str) -> None:
    _check_length(url)
    if _FORBIDDEN_CHARACTERS.search(url):
        raise EndpointNotAllowed("The endpoint holds a character that a URL may not hold.")
    if "#" in url:
        raise EndpointNotAllowed("The endpoint must not have a fragment.")


def _host_name(host: str) -> str:
    try:
        name = host if host.isascii() else host.encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise EndpointNotAllowed("The endpoint's host is not a host name.") from error
    if not _HOST_CHARACTERS.fullmatch(name):
        raise EndpointNotAllowed("The endpoint's host is not a host name.")
    return name


def _ipv6_literal(host: str) -> str:
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError as error:
        raise EndpointNotAllowed("The endpoint's host is not a host name.") from error
    return address.compressed


def _check_public(parts: _Parts, allowed_hosts: tuple[str, ...]) -> None:
    if parts.scheme != "https":
        raise EndpointNotAllowed("The endpoint must be an https URL.")
    if parts.port != 443:
        raise EndpointNotAllowed("The endpoint must use port 443.")
    _check_public_name(parts.host)
    if allowed_hosts and not any(is_under(parts.host, suffix) for suffix in allowed_hosts):
        raise EndpointNotAllowed("The endpoint's host is not among the allowed hosts.")


def _check_public_name(host: str) -> None:
    labels = host.rstrip(".").split(".")
    if ":" in host or _NUMBER.fullmatch(labels[-1]):
        raise EndpointNotAllowed("The endpoint's host must be a name, not an IP address.")
    name = ".".join(labels)
    if len(labels) == 1 or any(is_under(name, domain) for domain in _LOCAL_DOMAINS):
        raise EndpointNotAllowed("The endpoint's host must not be a name of the local network.")
    if any(is_under(name, domain) for domain in _RESERVED_DOMAINS):
        raise EndpointNeverResolves(is_certain=is_under(name, "invalid"))
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise EndpointNotAllowed("The endpoint's host is not a host name.")

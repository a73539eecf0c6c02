"""The only way out to addresses that a stranger can name: push endpoints and webhooks.

A guarded session looks at the address that is really dialled, so that neither an odd spelling of an
IP literal nor a name that changes its answer between check and use gets past it. It speaks https
only. No session made here follows a redirect (given `post`), keeps cookies, decompresses, or reads
proxies and passwords from the environment.
"""

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from typing_extensions import override

from pushsvc.common.addresses import translated

MAX_RESPONSE_BODY: Final = 4_096
MAX_ANSWER: Final = 64 * 1024  # bytes of one answer, with all that is no body

# Not reachable over the public internet although `is_global` (up to Python 3.13) says so.
_DENIED_V4: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "192.0.0.0/24",  # IETF protocol assignments; 192.0.0.192 is a cloud's metadata service
        "192.88.99.0/24",  # 6to4 relays, RFC 7526
    )
)
_UNICAST_V6: Final = ipaddress.IPv6Network("2000::/3")  # all that IANA has given out
_DENIED_V6: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # IETF protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: whoever runs a relay decides where it leads
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)


class AddressRefused(OSError):
    """Nothing was dialled: the address is not a public one.

    Neither errno nor text tells addresses apart, because aiohappyeyeballs keeps the exception's
    class only if all of a name's addresses failed with the same words.
    """

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "the address is not public")


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered. `headers` compares names without case; `body` is at most
    MAX_RESPONSE_BODY bytes, and less than the server sent if it stalled or broke off."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def address_is_public(address: str) -> bool:
    """Whether an IP address is one that anybody on the internet can reach.

    IPv4 inside IPv6 is judged by the IPv4 address where the network really translates. All other
    transition formats are refused, and every address with a zone.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.scope_id is not None:
            return False
        inner = translated(ip)
        if inner is None:
            return ip in _UNICAST_V6 and not any(ip in network for network in _DENIED_V6)
        ip = inner
    return (
        ip.is_global
        and not (ip.is_multicast or ip.is_reserved)
        and not any(ip in network for network in _DENIED_V4)
    )


def public_socket(addr_info: aiohttp.AddrInfoType) -> socket.socket:
    """A socket for the address, or AddressRefused."""
    family, kind, proto, _, address = addr_info
    if family not in (socket.AF_INET, socket.AF_INET6) or not address_is_public(address[0]):
        raise AddressRefused
    return socket.socket(family, kind, proto)


def is_refusal(error: BaseException) -> bool:
    """Whether a request failed because every address of its host was refused."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return isinstance(cause, AddressRefused)


class _MeasuredAnswers(ResponseHandler):
    """Drops the connection once an answer has more than MAX_ANSWER bytes. aiohttp bounds lines and
    headers, but not what it passes over: empty lines, interim answers, extensions of chunks."""

    _left = MAX_ANSWER

    @override
    def set_response_params(self, **params: Any) -> None:
        """Called before each request of a connection."""
        self._left = MAX_ANSWER
        super().set_response_params(**params)

    @override
    def data_received(self, data: bytes) -> None:
        taken = data[: self._left]  # the status may be in it, and counts
        self._left -= len(taken)
        if taken:
            super().data_received(taken)
        if len(taken) < len(data) and isinstance(self.transport, asyncio.Transport):
            self.transport.abort()  # its own `abort` would leave the body's reader waiting


class _Connector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # aiohttp (3.14) has no public way to say what reads answers.
        self._factory = partial(_MeasuredAnswers, loop=self._loop)  # type: ignore[assignment]


class GuardedConnector(_Connector):
    allowed_protocol_schema_set = frozenset({"https"})


class SeparateResolver(AbstractResolver):
    """The system's resolver on threads of its own, so that names whose servers never answer hold
    up only those that are looked up with them; one that is still in line after `timeout` seconds
    leaves it, and those that come later get other threads. So there may be `threads` more for each
    `timeout` that the system's resolver tries on. `close` waits for none of them."""

    def __init__(self, threads: int, timeout: float) -> None:
        self._at_once = threads
        self._timeout = timeout
        self._threads = self._new_threads()

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        look_up = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        threads = self._threads
        try:
            # aiohttp lets a look-up go on when the request that wanted it has given up.
            async with asyncio.timeout(self._timeout):
                found = await asyncio.get_running_loop().run_in_executor(threads, look_up)
        except TimeoutError:
            self._put_aside(threads)
            raise
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=found_family,
                proto=proto,
                flags=socket.AI_NUMERICHOST,
            )
            for found_family, _, proto, _, address in found
        ]

    @override
    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _put_aside(self, threads: ThreadPoolExecutor) -> None:
        """They end by themselves, when what they look up is answered or given up."""
        if threads is self._threads:
            threads.shutdown(wait=False)
            self._threads = self._new_threads()

    def _new_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._at_once, thread_name_prefix="resolve")


def tls_context(ca_file: str = "") -> ssl.SSLContext:
    """Verifies against the system's authorities and, where given, those of the PEM file `ca_file`.
    Raises OSError if the file cannot be read."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context


def guarded_session(
    tls: ssl.SSLContext,
    *,
    connections_per_origin: int,
    keepalive: float,
    resolver: AbstractResolver | None = None,
) -> aiohttp.ClientSession:
    """For addresses that strangers name. `keepalive`: seconds that an idle connection is kept.
    A `resolver` stays the caller's to close."""
    return _session(
        GuardedConnector(
            ssl=tls,
            limit=0,
            limit_per_host=connections_per_origin,
            keepalive_timeout=keepalive,
            resolver=resolver,
            socket_factory=public_socket,
        )
    )


def plain_session(
    tls: ssl.SSLContext, *, connections_per_origin: int, keepalive: float
) -> aiohttp.ClientSession:
    """For addresses that the operator names: http and private addresses too."""
    return _session(
        _Connector(
            ssl=tls,
            limit=0,
            limit_per_host=connections_per_origin,
            keepalive_timeout=keepalive,
        )
    )


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "pushsvc"},
        skip_auto_headers=("Accept-Encoding",),
        auto_decompress=False,
        trust_env=False,
        read_bufsize=MAX_RESPONSE_BODY,
    )


async def post(
    session: aiohttp.ClientSession,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes,
    limits: aiohttp.ClientTimeout,
) -> Response:
    """One request to `url` exactly as spelt. A redirect is a response like any other.

    `limits.total` spans everything, the wait for a free connection included. Raises
    aiohttp.ClientError, OSError or TimeoutError if no status arrived; once it has, the status
    stands, whatever becomes of the body.
    """
    async with session.post(
        yarl.URL(url, encoded=True),
        headers=headers,
        data=body,
        timeout=limits,
        allow_redirects=False,
    ) as response:
        return Response(response.status, response.headers, await _read(response))


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    with suppress(aiohttp.ClientError, OSError, TimeoutError):
        while len(body) < MAX_RESPONSE_BODY and not response.content.at_eof():
            body += await response.content.read(MAX_RESPONSE_BODY - len(body))
    # A connection whose response is not read to its end is dropped by aiohttp.
    return bytes(body)

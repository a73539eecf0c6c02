"""Calls to addresses that anybody can name, such as push endpoints. All such calls go through here.

A guarded session checks the IP address that it connects to. So neither an odd spelling of an IP
address nor a name that changes its answer gets past it. It uses https only. Sessions made here do
not follow redirects (with `post`), keep no cookies, do not decompress, and read no proxies or
passwords from the environment.
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
MAX_ANSWER: Final = 64 * 1024  # bytes of one answer, headers and framing included

# Not public, although `is_global` of Python up to 3.13 says so.
_DENIED_V4: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "192.0.0.0/24",  # IETF protocol assignments; 192.0.0.192 is a cloud's metadata service
        "192.88.99.0/24",  # 6to4 relays, RFC 7526
    )
)
_UNICAST_V6: Final = ipaddress.IPv6Network("2000::/3")  # everything that IANA has allocated
_DENIED_V6: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # IETF protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: the operator of a relay decides where it leads
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)


class AddressRefused(OSError):
    """The address is not public, so no connection was made.

    The text does not name the address, because aiohappyeyeballs keeps the exception's class only if
    all addresses of a name failed with the same text.
    """

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "the address is not public")


@dataclass(frozen=True, slots=True)
class Response:
    """A server's answer. `headers` ignores the case of names. `body` has at most MAX_RESPONSE_BODY
    bytes. It is shorter than what the server announced if the server stalled or broke off."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def address_is_public(address: str) -> bool:
    """Whether anybody on the internet can reach this IP address.

    For IPv4 inside IPv6, the IPv4 address decides if the network translates it. All other
    transition formats, and addresses with a zone, are refused.
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
    """A socket for the address. Raises AddressRefused."""
    family, kind, proto, _, address = addr_info
    if family not in (socket.AF_INET, socket.AF_INET6) or not address_is_public(address[0]):
        raise AddressRefused
    return socket.socket(family, kind, proto)


def is_refusal(error: BaseException) -> bool:
    """Whether a request failed because every address of its host was refused."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return isinstance(cause, AddressRefused)


class _MeasuredAnswers(ResponseHandler):
    """Ends the connection after MAX_ANSWER bytes of one answer. aiohttp limits lines and headers,
    but not what it skips: empty lines, interim answers, chunk extensions."""

    _left = MAX_ANSWER

    @override
    def set_response_params(self, **params: Any) -> None:
        """Called before each request of a connection."""
        self._left = MAX_ANSWER
        super().set_response_params(**params)

    @override
    def data_received(self, data: bytes) -> None:
        taken = data[: self._left]  # it may contain the status
        self._left -= len(taken)
        if taken:
            super().data_received(taken)
        if len(taken) < len(data) and isinstance(self.transport, asyncio.Transport):
            self.transport.abort()  # `self.abort` would leave the reader of the body waiting


class _Connector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # aiohttp (3.14) has no public way to set the class that reads answers.
        self._factory = partial(_MeasuredAnswers, loop=self._loop)  # type: ignore[assignment]


class GuardedConnector(_Connector):
    allowed_protocol_schema_set = frozenset({"https"})


class SeparateResolver(AbstractResolver):
    """The system's resolver on its own threads.

    A look-up that takes longer than `timeout` seconds fails, and later look-ups get new threads. So
    names whose servers never answer delay only look-ups of the same time. While the system's
    resolver keeps trying, there may be `threads` more threads for each `timeout`. `close` does not
    wait for them."""

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
            # aiohttp does not cancel a look-up when its request is cancelled.
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
        """Replaces the threads. The old ones end when their look-ups end."""
        if threads is self._threads:
            threads.shutdown(wait=False)
            self._threads = self._new_threads()

    def _new_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._at_once, thread_name_prefix="resolve")


def tls_context(ca_file: str = "") -> ssl.SSLContext:
    """Trusts the system's authorities, and those of the PEM file `ca_file` if given. Raises OSError
    if the file cannot be read."""
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
    """For addresses that anybody can name. `keepalive`: seconds for which an idle connection stays
    open. The caller closes the `resolver`."""
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
    """For addresses that the operator names. Allows http and private addresses."""
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
    """One request to exactly this `url`. A redirect is a response like any other.

    `limits.total` covers everything, including the wait for a free connection. Raises
    aiohttp.ClientError, OSError or TimeoutError if no status arrived. After the status, errors
    while reading the body are ignored.
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
    # aiohttp closes a connection whose response was not read to its end.
    return bytes(body)

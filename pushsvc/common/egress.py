"""Opens all connections to push services, of which some are at addresses that anyone can name.

A guarded connection goes only to a public IP address, which is checked when the socket is created.
So neither an unusual form of an IP address nor a name that resolves differently the next time can
bypass the guard.
"""

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from aiohappyeyeballs import AddrInfoType, start_connection
from typing_extensions import Buffer, override

from pushsvc.common.addresses import translated

ProtocolT = TypeVar("ProtocolT", bound=asyncio.Protocol)
LookUp: TypeAlias = Callable[[str, int], Coroutine[Any, Any, Sequence[AddrInfoType]]]
MakeSocket: TypeAlias = Callable[[AddrInfoType], socket.socket]

CONNECT_TIMEOUT: Final = 5.0
# How long to wait for one address before the next one is tried too (RFC 8305 section 5).
NEXT_ADDRESS_SECONDS: Final = 0.25
MAX_RESPONSE_BODY: Final = 4_096

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
        "2001::/23",  # IETF protocol assignments, including Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: the operator of a relay decides where it leads
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)


class AddressRefused(OSError):
    """The address is not public, so no connection was opened.

    The text does not name the address, because aiohappyeyeballs keeps the exception's class only if
    all addresses of a name failed with the same text.
    """

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "the address is not public")


class NameNotFound(socket.gaierror):
    """The host's name does not exist (NXDOMAIN)."""


@dataclass(slots=True)  # not frozen, because each message makes one, which takes longer
class Response:
    """A server's response. `headers` ignores the case of names. `body` has at most
    MAX_RESPONSE_BODY bytes, or as many as the client reads. It is shorter than announced if the
    server stalled or closed the connection. `is_whole`: whether the response ended as it
    announced."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool = True


def address_is_public(address: str) -> bool:
    """Whether the IP address can be reached from the internet.

    For IPv4 inside IPv6, the IPv4 address decides if the network translates it. All other
    transition formats, and addresses with a zone, count as not public.
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


class SocketReadToItsEnd(socket.socket):
    """A socket that ignores failed sends after the server has closed or reset the connection.

    The server may have sent responses before it closed. At a failed send, asyncio would end the
    connection without reading them, and their notifications would be sent again. With this socket,
    only reading finds the end, after all responses.
    """

    @override
    def send(self, data: Buffer, flags: int = 0, /) -> int:
        try:
            return super().send(data, flags)
        except ConnectionError:
            return memoryview(data).nbytes

    @override
    def sendmsg(self, buffers: Iterable[Buffer], /, *others: Any) -> int:
        """asyncio uses this from Python 3.12 on."""
        whole = list(buffers)
        try:
            return super().sendmsg(whole, *others)
        except ConnectionError:
            return sum(memoryview(part).nbytes for part in whole)


def any_socket(address: AddrInfoType) -> socket.socket:
    """A socket for the address, public or not. For names that the operator configured."""
    family, kind, protocol, _, _ = address
    return SocketReadToItsEnd(family, kind, protocol)


def public_socket(address: AddrInfoType) -> socket.socket:
    """A socket for the address. Raises AddressRefused."""
    family, _, _, _, (host, *_) = address
    if family not in (socket.AF_INET, socket.AF_INET6) or not address_is_public(str(host)):
        raise AddressRefused
    return any_socket(address)


async def look_up(host: str, port: int) -> Sequence[AddrInfoType]:
    """Resolves the name with the system's resolver. Raises socket.gaierror."""
    loop = asyncio.get_running_loop()
    return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def connect(
    make_protocol: Callable[[], ProtocolT],
    addresses: Sequence[AddrInfoType],
    *,
    host: str,
    tls: ssl.SSLContext | None,
    make_socket: MakeSocket = any_socket,
) -> ProtocolT:
    """Opens a connection to one of the addresses, which belong to `host`.

    Raises TimeoutError, or OSError; the error of `make_socket` if it is the same for all addresses.
    """
    async with asyncio.timeout(CONNECT_TIMEOUT):
        dialled = await start_connection(
            addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS, socket_factory=make_socket
        )
    _, protocol = await asyncio.get_running_loop().create_connection(
        make_protocol, sock=dialled, ssl=tls, server_hostname=host if tls else None
    )
    return protocol


class SeparateResolver:
    """The system's resolver on its own threads.

    A look-up that takes longer than `timeout` seconds fails, and later look-ups get new threads. So
    names whose servers never respond delay only concurrent look-ups. While the system's resolver
    keeps trying, there may be `threads` more threads for each `timeout`. `close` does not wait for
    them."""

    def __init__(self, threads: int, timeout: float) -> None:
        self._at_once = threads
        self._timeout = timeout
        self._threads = self._new_threads()

    async def look_up(self, host: str, port: int) -> Sequence[AddrInfoType]:
        """Raises NameNotFound, another socket.gaierror, or TimeoutError."""
        look_up_name = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        threads = self._threads
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.get_running_loop().run_in_executor(threads, look_up_name)
        except TimeoutError:
            self._put_aside(threads)
            raise
        except socket.gaierror as error:
            # glibc: NXDOMAIN alone is EAI_NONAME. SERVFAIL, REFUSED and silence are EAI_AGAIN; a
            # name without addresses is EAI_NODATA.
            if error.errno == socket.EAI_NONAME:
                raise NameNotFound(*error.args) from error
            raise

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _put_aside(self, threads: ThreadPoolExecutor) -> None:
        """Replaces the threads. The old ones end when their look-ups end."""
        if threads is self._threads:
            threads.shutdown(wait=False)
            self._threads = self._new_threads()

    def _new_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._at_once, thread_name_prefix="resolve")


def tls_context(ca_file: str = "") -> ssl.SSLContext:
    """A context for HTTP/1.1 that trusts the system's authorities, and those of the PEM file
    `ca_file` if given. Raises OSError if the file cannot be read."""
    context = verifying_context(ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context


def verifying_context(ca_file: str = "") -> ssl.SSLContext:
    """As `tls_context` without ALPN, for protocols other than HTTP."""
    context = ssl.create_default_context()
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context

"""Fetches newsfeeds: conditional GETs, a few redirects, and a bounded part of the response.

Owners choose the addresses, so each request, including that of a redirect, goes through the guard
of `pushsvc.common.egress`: https on port 443 of a public address.
"""

import asyncio
import socket
import ssl
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote, urldefrag, urljoin
from uuid import UUID

import structlog
from django.conf import settings

from notifications_app.delivery.event_loop import EventLoopThread
from notifications_app.delivery.types import parse_retry_after
from pushsvc.common.egress import AddressRefused, Response, SeparateResolver, tls_context
from pushsvc.common.endpoints import EndpointNotAllowed, check_endpoint

if TYPE_CHECKING:
    from notifications_app.delivery.http_client import HttpClient

logger = structlog.stdlib.get_logger(__name__)

FETCH_SECONDS: Final = 15.0  # with all redirects
MAX_DOCUMENT: Final = 2 * 1024 * 1024  # bytes that are read, also after decompression
MOST_REDIRECTS: Final = 5
LONGEST_WAIT: Final = 86_400.0  # seconds for which a server can ask
_MAX_VALIDATOR: Final = 300
_KEEPALIVE: Final = 5.0
_RESOLVER_THREADS: Final = 32
_NOT_MODIFIED: Final = 304
_GONE: Final = 410
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ACCEPT: Final = (
    "application/atom+xml, application/rss+xml, application/rdf+xml, application/xml;q=0.9,"
    " text/xml;q=0.8, */*;q=0.1"
)


@dataclass(frozen=True)
class Check:
    """A claimed newsfeed. Only the claim with the newest `lease_number` may write. `known`: the
    hashes of the entries that were seen, or None. `most`: how many new entries may be sent."""

    newsfeed_id: UUID
    lease_number: int
    account_id: UUID
    url: str = field(repr=False)
    etag: str = field(default="", repr=False)
    modified: str = field(default="", repr=False)
    known: Sequence[int] | None = field(default=None, repr=False)
    most: int = 0


@dataclass(frozen=True)
class Unchanged:
    """The document is the one that was fetched before."""


@dataclass(frozen=True)
class Fetched:
    """A document. `url`: where it was, after redirects."""

    body: bytes = field(repr=False)
    content_type: str
    url: str = field(repr=False)
    etag: str = field(repr=False)
    modified: str = field(repr=False)


@dataclass(frozen=True)
class Failed:
    """`words`: for people, with a remedy. `retry_after`: seconds that the server asked for."""

    words: str
    is_gone: bool = False
    retry_after: float | None = None


Result: TypeAlias = Fetched | Unchanged | Failed


class _BadDocumentError(Exception):
    """The words are for people."""


class Fetcher:
    """Makes one turn's requests in its own event loop, at most `most` at once. Close it when the
    turn ends."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._thread = EventLoopThread()
        self._resolver = SeparateResolver(_RESOLVER_THREADS, FETCH_SECONDS)
        self._guarded, self._trusted = self._thread.run(self._clients())

    def begin(self, check: Check) -> Future[Result]:
        """Begins to fetch. The result never raises."""
        return asyncio.run_coroutine_threadsafe(self._fetch(check), self._thread.loop)

    def close(self) -> None:
        for client in (self._guarded, self._trusted):
            self._thread.run(client.close())
        self._resolver.close()
        self._thread.stop()

    async def _clients(self) -> "list[HttpClient]":
        # Imported here, so that only the processes that fetch load an HTTP client.
        from notifications_app.delivery.http_client import HttpClient

        tls, look_up = _tls(settings.PROVIDER_CA_FILE), self._resolver.look_up
        return [
            HttpClient(
                tls,
                connections_per_origin=self._most,
                keepalive=_KEEPALIVE,
                is_guarded=is_guarded,
                look_up=look_up,
                max_body=MAX_DOCUMENT,
            )
            for is_guarded in (True, False)
        ]

    async def _fetch(self, check: Check) -> Result:
        try:
            return await self._followed(check)
        except Exception as error:  # noqa: BLE001 - anything that a server of others can cause
            return Failed(_words(error))

    async def _followed(self, check: Check) -> Result:
        url, until = check.url, asyncio.get_running_loop().time() + FETCH_SECONDS
        for _ in range(MOST_REDIRECTS + 1):
            response = await self._get(url, check, until)
            location = response.headers.get("Location")
            if response.status not in _REDIRECTS or not location:
                return _result(response, url, check)
            url = _next(url, location)
        raise _BadDocumentError(
            f"The address redirects more than {MOST_REDIRECTS} times. Use the one where it ends."
        )

    async def _get(self, url: str, check: Check, until: float) -> Response:
        endpoint = check_endpoint(
            url, trusted_origins=settings.NEWSFEED_TRUSTED_ORIGINS, allowed_hosts=()
        )
        client = self._trusted if endpoint.is_trusted else self._guarded
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip"}
        if check.etag:
            headers["If-None-Match"] = check.etag
        if check.modified:
            headers["If-Modified-Since"] = check.modified
        return await client.get(endpoint.url, headers=headers, until=until)


@cache
def _tls(ca_file: str) -> ssl.SSLContext:
    """Kept for the process, because reading the authorities takes longer than a request."""
    return tls_context(ca_file)


def _next(url: str, location: str) -> str:
    """The address to which the response at `url` redirects."""
    try:
        return quote(urldefrag(urljoin(url, location.strip())).url, safe="%/:=&?~#+!$,;'@()*[]")
    except ValueError as error:
        raise EndpointNotAllowed("The endpoint is not a URL.") from error


def _result(response: Response, url: str, check: Check) -> Result:
    if response.status == _NOT_MODIFIED and (check.etag or check.modified):
        return Unchanged()
    if response.status != 200:
        return _refusal(response)
    return Fetched(
        body=_document(response),
        content_type=response.headers.get("Content-Type", ""),
        url=url,
        etag=_validator(response.headers, "ETag"),
        modified=_validator(response.headers, "Last-Modified"),
    )


def _refusal(response: Response) -> Failed:
    status = response.status
    now = datetime.fromtimestamp(time.time(), UTC)
    wait = parse_retry_after(response.headers.get("Retry-After"), now, LONGEST_WAIT)
    if status in (401, 403):
        words = "The site does not let the service read it. Allow the user agent pushsvc."
    elif status == _GONE:
        words = "The feed was removed for good. Use the address of another one."
    elif status < 500:
        words = "Check the address in a browser."
    else:
        words = "The site has an error. The feed is checked again."
    return Failed(f"{status}: {words}", is_gone=status == _GONE, retry_after=wait)


def _document(response: Response) -> bytes:
    """The beginning of the body, decompressed. Raises _BadDocumentError."""
    body = response.body
    if not response.is_whole and len(body) < MAX_DOCUMENT:
        raise _BadDocumentError(
            f"The document did not arrive within {FETCH_SECONDS:.0f} seconds. Make the feed shorter"
            " or the site faster."
        )
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise _BadDocumentError("The document is compressed in another way than gzip.")
    try:
        # 47: the beginning says whether it is gzip or zlib.
        return zlib.decompressobj(47).decompress(body, MAX_DOCUMENT)
    except zlib.error as error:
        raise _BadDocumentError("The document is not the gzip that its header says.") from error


def _validator(headers: Mapping[str, str], name: str) -> str:
    """A header for the next request; "" if a request cannot have it."""
    value = headers.get(name, "")
    is_usable = len(value) <= _MAX_VALIDATOR and value.isascii() and value.isprintable()
    return value if is_usable else ""


def _words(error: Exception) -> str:
    match error:
        case _BadDocumentError():
            return str(error)
        case EndpointNotAllowed():
            return error.reason.replace("The endpoint", "The address") + " Correct the address."
        case AddressRefused():
            return "The host's address is not public. Use an address that the internet reaches."
        case TimeoutError():
            return f"No response within {FETCH_SECONDS:.0f} seconds. The feed is checked again."
        case socket.gaierror():
            return "The host's name could not be resolved. Check the address."
        case ssl.SSLError():
            return "The TLS handshake failed. Check the site's certificate."
        case OSError():
            return "The connection failed. The feed is checked again."
        case _:
            # Neither text nor traceback is logged: both may contain the address.
            logger.error("newsfeed.unexpected_error", error=type(error).__name__)
            return "The request could not be sent. Check the address."

"""Checks whether a URL returns an image that devices can show.

Users who write a notification choose the address, so the request goes through the guard of
`pushsvc.common.egress`: https on port 443 of a public address, no redirect, a short time, and only
the beginning of the response.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from django.utils.translation import gettext

from notifications_app.delivery.http_client import HttpClient
from pushsvc.common.egress import (
    AddressRefused,
    LookUp,
    Response,
    SeparateResolver,
    tls_context,
)
from pushsvc.common.endpoints import EndpointNotAllowed, check_endpoint
from pushsvc.common.texts import later

MakeClient = Callable[[LookUp], HttpClient]

SECONDS: Final = 5.0
# FCM, "Send an image in the notification payload": images are limited to 1 MB.
MOST_BYTES: Final = 1_000_000
_BEGINNINGS: Final = {
    "PNG": b"\x89PNG\r\n\x1a\n",
    "JPEG": b"\xff\xd8\xff",
    "GIF": b"GIF8",
    "WebP": b"RIFF",
}
_UNESCAPED: Final = "/%:@!$&'()*+,;=~?"
_HEADERS: Final = {"Accept": "image/*", "Accept-Encoding": "identity", "Connection": "close"}

NOT_HTTPS: Final = later("The address must begin with https://. Devices load no other images.")
# The same for a name that does not exist, so that the result does not reveal private names.
_NOT_PUBLIC: Final = later(
    "The address is not public: devices on the internet cannot reach it. Check the spelling."
)
_UNCHECKABLE: Final = later("Only addresses of public names at port 443 can be checked.")
_NO_TLS: Final = later("The server's certificate is not valid, so devices refuse the connection.")
_SILENT: Final = later("The server does not respond.")
_MOVED: Final = later("The address redirects to another one. Enter that address instead.")
_OTHER: Final = later("This is not an image that devices show. They show PNG, JPEG, GIF and WebP.")


@dataclass(frozen=True, slots=True)
class ImageCheck:
    """`error`: why devices would show no image; "" if they would. `found`: what was found."""

    error: str = ""
    found: str = ""


def image_check(url: str, make_client: MakeClient | None = None) -> ImageCheck:
    """Requests the address; takes SECONDS at most. Safe to repeat. Never raises."""
    if not url.startswith("https://"):
        return ImageCheck(NOT_HTTPS)
    try:
        checked = _checked(_encoded(url))
    except (EndpointNotAllowed, ValueError):
        return ImageCheck(_UNCHECKABLE)
    resolver = SeparateResolver(threads=1, timeout=SECONDS)
    try:
        return _check_of(asyncio.run(_fetch(checked, resolver, make_client or _guarded_client)))
    except Exception as error:  # noqa: BLE001 - anything that a server of others can cause
        return ImageCheck(_failure(error))
    finally:
        resolver.close()


def _encoded(url: str) -> str:
    """The URL as browsers send it: non-ASCII letters are escaped, and the fragment is removed."""
    parts = urlsplit(url)
    path, query = quote(parts.path, _UNESCAPED), quote(parts.query, _UNESCAPED)
    return parts._replace(path=path, query=query, fragment="").geturl()


def _checked(url: str) -> str:
    """The URL with its origin in the form for calls. Raises EndpointNotAllowed."""
    origin = check_endpoint(url, trusted_origins=frozenset(), allowed_hosts=()).origin
    parts = urlsplit(url)
    return origin + (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


async def _fetch(url: str, resolver: SeparateResolver, make_client: MakeClient) -> Response:
    client = make_client(resolver.look_up)
    try:
        until = asyncio.get_running_loop().time() + SECONDS
        return await client.get(url, headers=_HEADERS, until=until)
    finally:
        await client.close()


def _guarded_client(look_up: LookUp) -> HttpClient:
    return HttpClient(
        tls_context(), connections_per_origin=1, keepalive=SECONDS, is_guarded=True, look_up=look_up
    )


def _failure(error: Exception) -> str:
    match error:
        case AddressRefused() | socket.gaierror():
            return _NOT_PUBLIC
        case ssl.SSLError():
            return _NO_TLS
        case _:
            return _SILENT


def _check_of(response: Response) -> ImageCheck:
    if 300 <= response.status < 400:
        return ImageCheck(_MOVED)
    if response.status != 200:
        return ImageCheck(
            gettext("The server responds with %(status)s instead of an image.")
            % {"status": response.status}
        )
    kind = _kind(response.body)
    if not kind:
        return ImageCheck(_OTHER)
    size = response.headers.get("Content-Length", "")
    if not size.isascii() or not size.isdigit():
        return ImageCheck(found=kind)
    if len(size) > 12 or int(size) > MOST_BYTES:
        return ImageCheck(
            gettext("The image is too large: %(size)s. Android shows up to 1 MB.")
            % {"size": _in_words(size)}
        )
    return ImageCheck(found=f"{kind}, {_in_words(size)}")


def _kind(beginning: bytes) -> str:
    """The kind of image by its first bytes, as browsers decide it; "" if it is not an image. RIFF
    may also contain sound."""
    kind = next((name for name, first in _BEGINNINGS.items() if beginning.startswith(first)), "")
    return "" if kind == "WebP" and beginning[8:12] != b"WEBP" else kind


def _in_words(size: str) -> str:
    if len(size) > 12:
        return "over 1,000 GB"
    kilobytes = -(-int(size) // 1000)
    return f"{kilobytes:,} KB" if kilobytes < 1000 else f"{kilobytes / 1000:,.1f} MB"

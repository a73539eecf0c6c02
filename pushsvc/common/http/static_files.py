"""Static files with their hash in the name, so that browsers cache them for a year.

Pages name a file with `{% static %}`. The files come from the installed packages and are compressed
at the first request, so a deployment needs no build step (no collectstatic).

A page with many small files names a bundle of STATIC_BUNDLES instead, which is one request.
"""

import gzip
import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256, sha384
from pathlib import Path
from typing import Final

import brotli
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from typing_extensions import override
from whitenoise.media_types import MediaTypes
from whitenoise.middleware import WhiteNoiseMiddleware

_HASHED: Final = re.compile(r"(?P<stem>.+)\.(?P<digest>[0-9a-f]{16})\.(?P<kind>\w+)")
# A year, which is the maximum.
FOR_EVER: Final = "public, max-age=31536000, immutable"
_SHORTLY: Final = "public, max-age=300"
_HASH_DIGITS: Final = 16
_ZERO_WEIGHT: Final = re.compile(r"q=0(\.0*)?")
_BROTLI_QUALITY: Final = 9  # the best one, 11, takes twenty times as long for a tenth less


@dataclass(frozen=True)
class ServedFile:
    """`is_immutable`: the content of this name never changes."""

    content: bytes
    content_type: str
    is_immutable: bool = False

    @cached_property
    def gzipped(self) -> bytes:
        return gzip.compress(self.content, mtime=0)

    @cached_property
    def brotli(self) -> bytes:
        return bytes(brotli.compress(self.content, quality=_BROTLI_QUALITY))

    def encoded(self, encoding: str) -> bytes:
        """The content in a `Content-Encoding`: br, gzip, or "" for none."""
        if encoding == "br":
            return self.brotli
        return self.gzipped if encoding == "gzip" else self.content

    @cached_property
    def digest(self) -> str:
        return sha256(self.content).hexdigest()[:_HASH_DIGITS]

    @cached_property
    def integrity(self) -> str:
        """The value of the `integrity` attribute (W3C Subresource Integrity)."""
        return f"sha384-{b64encode(sha384(self.content).digest()).decode()}"


def file_response(request: HttpRequest, file: ServedFile) -> HttpResponseBase:
    """The file in the shortest form that the browser accepts, or 304 if the browser has it."""
    whole = _whole(file, request.headers.get("Accept-Encoding", ""))
    return get_conditional_response(request, etag=whole["ETag"], response=whole) or whole


def _whole(file: ServedFile, accepted: str) -> HttpResponse:
    encoding = next((name for name in ("br", "gzip") if name in _encodings(accepted)), "")
    headers = {
        "Cache-Control": FOR_EVER if file.is_immutable else _SHORTLY,
        "ETag": f'"{file.digest}{f"-{encoding}" if encoding else ""}"',
        "Vary": "Accept-Encoding",
    }
    if encoding:
        headers["Content-Encoding"] = encoding
    return HttpResponse(file.encoded(encoding), content_type=file.content_type, headers=headers)


def _encodings(accepted: str) -> set[str]:
    """The names in an Accept-Encoding, without those of weight 0 (RFC 9110 section 12.4.2)."""
    parts = [part.partition(";") for part in accepted.replace(" ", "").lower().split(",")]
    return {name for name, _, weight in parts if not _ZERO_WEIGHT.fullmatch(weight)}


class HashedNames(StaticFilesStorage):
    """For `{% static %}`: console/console.css becomes /static/console/console.<hash>.css."""

    @override
    def url(self, name: str | None) -> str:
        file = _file(name) if name else None
        if name is None or file is None:
            return super().url(name)
        stem, _, kind = name.rpartition(".")
        return super().url(f"{stem}.{file.digest}.{kind}")


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc] # it has no types
    """Serves names with a hash, compressed. WhiteNoise serves plain names.

    A request with the hash of another version gets the current file, to be cached for a short time:
    during an upgrade, the page and its files may come from different processes.
    """

    @override
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        file = self._hashed(request.path_info) if request.method in {"GET", "HEAD"} else None
        if file is not None:
            return file_response(request, file)
        response: HttpResponseBase = super().__call__(request)
        return response

    def _hashed(self, path: str) -> ServedFile | None:
        hashed = _HASHED.fullmatch(path)
        plain = f"{hashed['stem']}.{hashed['kind']}" if hashed else ""
        name = plain.removeprefix(self.static_prefix)
        if hashed is None or (plain not in self.files and not self._is_bundle(plain, name)):
            return None
        file = _file(name)
        is_other = file is not None and file.digest != hashed["digest"]
        return _file(name, is_immutable=False) if is_other else file

    def _is_bundle(self, plain: str, name: str) -> bool:
        return plain.startswith(self.static_prefix) and name in settings.STATIC_BUNDLES


@cache
def _file(name: str, *, is_immutable: bool = True) -> ServedFile | None:
    """The file with its compressed forms. Cached until the process ends."""
    parts = settings.STATIC_BUNDLES.get(name, (name,))
    paths = [path for part in parts if (path := finders.find(part)) is not None]
    if len(paths) < len(parts):
        return None
    kind = MediaTypes().get_type(name)
    content_type = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    content = b"".join(Path(path).read_bytes() for path in paths)
    return ServedFile(content, content_type, is_immutable)

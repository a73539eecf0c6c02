"""Files that browsers load: their hashes, their compressed forms, and the answer to a request."""

import gzip
import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256, sha384
from typing import Final

import brotli
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

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

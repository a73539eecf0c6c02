"""The files that browsers load from /sdk/: their names, hashes and compressed forms.

A page names push.js by its hash, so that it may be kept for a year, and with `integrity`, so that
nothing else runs in its place. Such a page must go on working after an upgrade: texts of push.js
that were released and replaced since stay in released/.
"""

import gzip
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256, sha384
from pathlib import Path

_FOLDER = Path(__file__).parent
_SCRIPT = "text/javascript; charset=utf-8"
_TYPES = "application/typescript; charset=utf-8"
_HASH_DIGITS = 16


@dataclass(frozen=True)
class SdkFile:
    """`is_immutable`: the name will never stand for another text."""

    content: bytes
    content_type: str = _SCRIPT
    is_immutable: bool = False

    @cached_property
    def gzipped(self) -> bytes:
        return gzip.compress(self.content, mtime=0)

    @cached_property
    def digest(self) -> str:
        return sha256(self.content).hexdigest()[:_HASH_DIGITS]

    @cached_property
    def integrity(self) -> str:
        """For the `integrity` attribute (W3C Subresource Integrity)."""
        return f"sha384-{b64encode(sha384(self.content).digest()).decode()}"


def script() -> tuple[str, SdkFile]:
    """push.js as it is now, with the name that holds its hash."""
    current = files()["push.js"]
    return f"push.{current.digest}.js", current


@cache
def files() -> dict[str, SdkFile]:
    """All of them, by name."""
    exports = (_FOLDER / "push.mjs").read_bytes()
    current = (_FOLDER / "push.js").read_bytes()
    texts = [current, *(path.read_bytes() for path in sorted(_FOLDER.glob("released/*.js")))]
    return {
        "push.js": SdkFile(current),
        "push.mjs": SdkFile(current + exports),
        "push-sw.js": SdkFile((_FOLDER / "push-sw.js").read_bytes()),
        "push.d.ts": SdkFile((_FOLDER / "push.d.ts").read_bytes(), _TYPES),
        **dict(_by_hash("js", texts)),
        **dict(_by_hash("mjs", [text + exports for text in texts])),
    }


def _by_hash(kind: str, texts: list[bytes]) -> Iterator[tuple[str, SdkFile]]:
    for text in texts:
        file = SdkFile(text, is_immutable=True)
        yield f"push.{file.digest}.{kind}", file

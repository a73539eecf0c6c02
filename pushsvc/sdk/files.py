"""The files that browsers load from /sdk/: their names, hashes and compressed forms.

A page names push.js by its hash, so that it may be kept for a year, and with `integrity`, so that
nothing else runs in its place. Such a page must go on working after an upgrade: texts of push.js
that were released and replaced since stay in released/.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pushsvc.common.http.served_files import ServedFile

_FOLDER = Path(__file__).parent
_SCRIPT = "text/javascript; charset=utf-8"
_TYPES = "application/typescript; charset=utf-8"


def script() -> tuple[str, ServedFile]:
    """push.js as it is now, with the name that holds its hash."""
    current = files()["push.js"]
    return f"push.{current.digest}.js", current


@cache
def files() -> dict[str, ServedFile]:
    """All of them, by name."""
    exports = (_FOLDER / "push.mjs").read_bytes()
    current = (_FOLDER / "push.js").read_bytes()
    texts = [current, *(path.read_bytes() for path in sorted(_FOLDER.glob("released/*.js")))]
    return {
        "push.js": ServedFile(current, _SCRIPT),
        "push.mjs": ServedFile(current + exports, _SCRIPT),
        "push-sw.js": ServedFile((_FOLDER / "push-sw.js").read_bytes(), _SCRIPT),
        "push.d.ts": ServedFile((_FOLDER / "push.d.ts").read_bytes(), _TYPES),
        **dict(_by_hash("js", texts)),
        **dict(_by_hash("mjs", [text + exports for text in texts])),
    }


def _by_hash(kind: str, texts: list[bytes]) -> Iterator[tuple[str, ServedFile]]:
    for text in texts:
        file = ServedFile(text, _SCRIPT, is_immutable=True)
        yield f"push.{file.digest}.{kind}", file

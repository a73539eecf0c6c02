"""The files that browsers load from /sdk/: their names, hashes and compressed forms.

push.js is the modules of page/ as one classic script: one after the other in one function, without
imports, exports and comments. A page names push.js by its hash, so that browsers may
cache it for a year, and with `integrity`, so that no other script runs instead. Such a page must
still work after an upgrade, so replaced releases of push.js are kept in released/.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pushsvc.common.http.static_files import ServedFile

_FOLDER = Path(__file__).parent
_SCRIPT = "text/javascript; charset=utf-8"
# In the order in which they import each other.
_MODULES = ("errors", "record", "service", "browser", "client", "script")
# Links between modules, and comments for developers. Visitors need neither.
_COMMENTS = r"^ */\*\*(?:[^*]|\*(?!/))*\*/\n"
_LEFT_OUT = re.compile(rf"^import [^;]*;\n|^export |^ *// .*\n|{_COMMENTS}", re.MULTILINE)
_HEAD = """\
/*
 * pushsvc in the page: subscribes this browser to a channel, and keeps the subscription right.
 *
 *   const push = pushsvc.init({ channel: "<channel id>", serviceWorker: "/push-sw.js" });
 *   button.onclick = () => push.subscribe({ attributes: { plan: "pro" } });
 *
 * This is a classic script, which sets `pushsvc`; the ES module is /sdk/push.mjs, the types are
 * /sdk/push.d.ts. One record for each channel in localStorage says what the site wants and what
 * the service was told last. `#synchronize` makes browser and service agree with it, wherever an
 * earlier attempt ended. So it is always safe to repeat.
 */
(() => {
"use strict";

"""
_TYPES = "application/typescript; charset=utf-8"


def script() -> tuple[str, ServedFile]:
    """The current push.js, with its name, which contains its hash."""
    current = files()["push.js"]
    return f"push.{current.digest}.js", current


@cache
def files() -> dict[str, ServedFile]:
    """All files, by name."""
    exports = (_FOLDER / "push.mjs").read_bytes()
    worker = ServedFile((_FOLDER / "push-sw.js").read_bytes(), _SCRIPT)
    current = _page_script()
    texts = [current, *(path.read_bytes() for path in sorted(_FOLDER.glob("released/*.js")))]
    return {
        "push.js": ServedFile(current, _SCRIPT),
        "push.mjs": ServedFile(current + exports, _SCRIPT),
        "push-sw.js": worker,
        "push-sw.mjs": worker,  # for `import`, which module workers have in place of importScripts
        "push.d.ts": ServedFile((_FOLDER / "push.d.ts").read_bytes(), _TYPES),
        "prompt.mjs": ServedFile(_prompt(), _SCRIPT),
        "prompt.d.ts": ServedFile((_FOLDER / "prompt.d.ts").read_bytes(), _TYPES),
        **dict(_by_hash("js", texts)),
        **dict(_by_hash("mjs", [text + exports for text in texts])),
    }


def _page_script() -> bytes:
    texts = ((_FOLDER / "page" / f"{name}.js").read_text(encoding="utf-8") for name in _MODULES)
    body = "".join(_LEFT_OUT.sub("", text) for text in texts)
    return f"{_HEAD}{body}}})();\n".encode()


def _prompt() -> bytes:
    text = (_FOLDER / "prompt.mjs").read_text(encoding="utf-8")
    return re.sub(_COMMENTS, "", text, flags=re.MULTILINE).encode()


def _by_hash(kind: str, texts: list[bytes]) -> Iterator[tuple[str, ServedFile]]:
    for text in texts:
        file = ServedFile(text, _SCRIPT, is_immutable=True)
        yield f"push.{file.digest}.{kind}", file

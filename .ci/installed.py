"""`make audit`: which packages production installs, and which of our modules import each.

The exit status is 1 if nothing imports a requirement of base.in. A module that the settings name
counts as imported by them.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, partial
from importlib.metadata import files, packages_distributions
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PRODUCT = ("manage.py", "pushsvc", "channels_app", "subscriptions_app", "notifications_app")
# Requirements that no module of ours imports.
UNIMPORTED = {
    "fido2": "allauth imports it for passkeys; its extra `mfa` would add a second QR library",
    "granian": "the Procfile starts it",
    "tzdata": "zoneinfo and pushsvc.common.timestamps read its files",
}
# A pinned package, and the lines that say what requires it.
_PINNED = re.compile(r"^(?P<name>[a-z0-9-]+)(?:\[[a-z,]+\])?==.*\n(?P<lines>(?: +.*\n)+)", re.M)


def main() -> int:
    importers, unused = _importers(), set()
    for name, needed_by in _installed():
        is_direct = any(each.endswith("base.in") for each in needed_by)
        if is_direct and not importers[name]:
            unused.add(name)
        why = UNIMPORTED.get(name, "") if is_direct else f"required by {_few(needed_by)}"
        ours = f"imported by {_few(importers[name])}" if importers[name] else ""
        print(f"{name}: {'; '.join(filter(None, (ours, why)))}")
    for name in sorted(unused ^ UNIMPORTED.keys()):
        print(f"audit: {name} must either be imported, or be in UNIMPORTED of .ci/installed.py")
    return 0 if unused == UNIMPORTED.keys() else 1


def _installed() -> Iterator[tuple[str, list[str]]]:
    """The packages of base.txt, and what requires each."""
    text = (CHECKOUT / "requirements" / "base.txt").read_text(encoding="utf-8")
    for found in _PINNED.finditer(text):
        needed_by = re.findall(r"#(?: via)? +(?:-r )?([\w./-]+)$", found["lines"], re.M)
        yield found["name"], [each for each in needed_by if each != "via"]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _importers() -> dict[str, set[str]]:
    """The modules of ours by the packages that they import."""
    packages = packages_distributions()
    found = defaultdict(set)
    for path in _files():
        module = path.relative_to(CHECKOUT).with_suffix("").as_posix().replace("/", ".")
        for name in _imported(path):
            owners = packages.get(name.partition(".")[0], ())
            for package in owners if len(owners) < 2 else filter(partial(_has, name), owners):
                found[_canonical(package)].add(module.removesuffix(".__init__"))
    return found


@cache
def _has(name: str, package: str) -> bool:
    """Whether the package provides this module, for packages that share a top-level name."""
    path = name.replace(".", "/")
    return any(str(file).startswith((f"{path}/", f"{path}.py")) for file in files(package) or ())


def _files() -> Iterator[Path]:
    for name in PRODUCT:
        path = CHECKOUT / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else (path,)


def _imported(path: Path) -> Iterator[str]:
    """The modules that a file imports or, if it has settings, names in its strings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.Constant(value=str(text)) if path.name == "settings.py":
                yield text


def _few(names: Iterable[str], most: int = 4) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + more


if __name__ == "__main__":
    sys.exit(main())

"""Writes the pages of modules in docs/: the first sentence of each module's docstring.

`make modules` runs it for docs/; `make lint` runs it for another directory and compares.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "modules.md": ("channels_app", "subscriptions_app", "notifications_app"),
    "modules-pushsvc.md": ("pushsvc", "sandbox", "local"),
}
USUAL = {"__init__.py", "apps.py", "urls.py"}  # Django's own
LONGEST = 100  # characters
HEAD = """\
# Modules of {packages}

`make modules` writes this page: every module with the first sentence of its docstring.
[architecture.md](architecture.md) explains how the parts work together.
"""


def main(directory: str) -> int:
    for name, packages in PAGES.items():
        text = "\n".join(_page(packages))
        (Path(directory) / name).write_text(text, encoding="utf-8")
    problems = [
        f"{path.relative_to(ROOT)}: {_sentence(path) or 'no docstring'}"
        for packages in PAGES.values()
        for path in _modules(packages)
        if path.name not in USUAL and not 0 < len(_sentence(path)) <= LONGEST
    ]
    if problems:
        rule = f"A module's docstring begins with a sentence of at most {LONGEST} characters:"
        print(rule, *problems, sep="\n", file=sys.stderr)
    return bool(problems)


def _modules(packages: Sequence[str]) -> list[Path]:
    found = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    return [path for path in found if "migrations" not in path.parts and path.stat().st_size]


def _page(packages: Sequence[str]) -> Iterator[str]:
    yield HEAD.format(packages=", ".join(packages))
    for folder in sorted({path.parent for path in _modules(packages)}):
        yield f"## {folder.relative_to(ROOT)}/\n"
        if about := _sentence(folder / "__init__.py"):
            yield f"{about}.\n"
        own = sorted(path for path in folder.glob("*.py") if path.name not in USUAL)
        yield from (f"- `{path.name}`: {_sentence(path)}" for path in own)
        yield ""


def _sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

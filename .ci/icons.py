"""Writes the font of the console's icons, a subset of the theme's, to the file that it is given.

`make icons`, after a page uses another icon or the theme changed; `make lint` compares the result.
The font is Google's Material Symbols (Apache-2.0). All of it would be 290 KB on each first visit;
the icons that the theme and the console use are 6 KB.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fontTools import subset
from fontTools.ttLib import TTFont

CHECKOUT: Final = Path(__file__).resolve().parent.parent
THEMES: Final = "static/unfold/fonts/material-symbols/Material-Symbols-Outlined.woff2"
_OURS: Final = ("templates", "pushsvc", "channels_app", "subscriptions_app", "notifications_app")

# Where names of icons are: the words in an element of the icons' class, an argument or key `icon`,
# a link of the side bar, and what CSS draws in check boxes.
_TEMPLATE_TAG: Final = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
_ELEMENT: Final = re.compile(
    r"""material-symbols-outlined[^"]*"(?:[^">]|"[^"]*")*>(.*?)</""", re.DOTALL
)
_ARGUMENT: Final = re.compile(r"""icon["']?(?:=|:\s*)["']([a-z_0-9]+)["']""")
_LINK: Final = re.compile(r"""\bLink\(\s*later\("[^"]*"\),\s*"(\w+)\"""")
_DRAWN: Final = re.compile(r"""content-\['([^']+)'\]""")


def main(written: str) -> None:
    theme = next((CHECKOUT / ".venv").glob("lib/*/site-packages/unfold"))
    font = TTFont(theme / THEMES, recalcTimestamp=False)  # the same bytes each time
    glyphs = _ligatures(font)
    ours = {word for name in _OURS for word in _words(CHECKOUT / name)}
    if unknown := ours - glyphs.keys():
        sys.exit(f"Material Symbols has no such icon: {', '.join(sorted(unknown))}")
    # The theme's conditions in its elements are words too.
    names = sorted(ours | _words(theme) & glyphs.keys())
    # Without closure, because the letters of the names would bring every other icon along.
    options = subset.Options(
        layout_closure=False,
        layout_features=["*"],
        flavor="woff2",
        hinting=False,
        drop_tables=["FFTM"],
    )
    subsetter = subset.Subsetter(options)
    subsetter.populate(glyphs=[glyphs[name] for name in names], text="".join(names))
    subsetter.subset(font)
    subset.save_font(font, written, options)


def _words(root: Path) -> set[str]:
    """The words of the files that can show icons. The theme's additions for other packages are not
    installed."""
    files = (each for each in root.rglob("*") if each.suffix in {".html", ".py", ".js"})
    own = (each for each in files if "contrib" not in each.relative_to(root).parts)
    return {word for each in own for word in _words_of(each.read_text())}


def _words_of(text: str) -> Iterator[str]:
    # The quotes of a template's tag would end an attribute.
    for shown in _ELEMENT.findall(_TEMPLATE_TAG.sub(" ", text)):
        yield from re.findall(r"\w+", shown)
    for pattern in (_ARGUMENT, _LINK, _DRAWN):
        yield from (name.replace("\\", "") for name in pattern.findall(text))


def _ligatures(font: TTFont) -> dict[str, str]:
    """The names of icons as pages write them, and their glyphs."""
    letters = {glyph: chr(code) for code, glyph in font.getBestCmap().items()}
    tables = [each for look in font["GSUB"].table.LookupList.Lookup for each in look.SubTable]
    return {
        "".join(letters.get(part, "") for part in (first, *each.Component)): each.LigGlyph
        for table in (getattr(each, "ExtSubTable", each) for each in tables)
        for first, found in getattr(table, "ligatures", {}).items()
        for each in found
    }


if __name__ == "__main__":
    main(sys.argv[1])

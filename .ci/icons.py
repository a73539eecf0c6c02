"""Writes the font of the console's icons, a subset of the theme's, to the file that it is given.

`make icons`, after a change of NAMES or of the theme; `make lint` compares the result. The font is
Google's Material Symbols (Apache-2.0). All of it would be 290 KB on each first visit; a few dozen
icons are 7 KB.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

CHECKOUT = Path(__file__).resolve().parent.parent
THEMES = "unfold/static/unfold/fonts/material-symbols/Material-Symbols-Outlined.woff2"
# The names in the theme's templates, in ours, and in the side bar
# (channels_app/console/navigation.py).
_NAMES = """
    add apps arrow_back arrow_circle_down arrow_circle_up arrow_forward badge calendar_month
    campaign cancel chevron_right close computer dark_mode delete dock_to_right domain
    download drag_indicator draft edit edit_note edit_square error expand_more file_upload
    filter_alt filter_list filter_list_off first_page group help history hub inbox info
    insights keyboard_arrow_down last_page light_mode lock_clock logout manage_search menu
    monitoring more_horiz more_vert navigate_before navigate_next notifications open_in_new
    person progress_activity refresh schedule search settings stethoscope undo unfold_more upload
    visibility warning
"""
NAMES = _NAMES.split()


def main(written: str) -> None:
    theme = next((CHECKOUT / ".venv").glob(f"lib/*/site-packages/{THEMES}"))
    font = TTFont(theme, recalcTimestamp=False)  # the same bytes each time
    glyphs = _ligatures(font)
    # Without closure, because the letters of the names would bring every other icon along.
    options = subset.Options(
        layout_closure=False,
        layout_features=["*"],
        flavor="woff2",
        hinting=False,
        drop_tables=["FFTM"],
    )
    subsetter = subset.Subsetter(options)
    subsetter.populate(glyphs=[glyphs[name] for name in NAMES], text="".join(NAMES))
    subsetter.subset(font)
    subset.save_font(font, written, options)


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

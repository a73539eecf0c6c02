"""Texts of the console that are written before the reader's language is known (.ci/texts.py)."""

from django.utils.formats import get_format
from django.utils.functional import lazy
from django.utils.translation import gettext


def later(text: str, **values: object) -> str:
    """The text with its values, in the language that is active when it is shown. For what is made
    once, such as an attribute of a class. It is a `str` to the type checker, but cannot be joined
    to others with `join`."""
    return _in_language(text, values)


def localized(figure: str) -> str:
    """The figure with the separators of the active language instead of the English ones."""
    separators = get_format("THOUSAND_SEPARATOR"), get_format("DECIMAL_SEPARATOR")
    if separators == (",", "."):
        return figure
    return figure.translate(str.maketrans(",.", "".join(separators)))


def _translated(text: str, values: dict[str, object]) -> str:
    return gettext(text) % values if values else gettext(text)


_in_language = lazy(_translated, str)

"""QR codes as pictures in a page."""

import segno
from django.utils.safestring import SafeString, mark_safe


def qr_svg(text: str) -> SafeString:
    """The QR code of the text as an SVG element.

    It is black on white in dark mode too, because phones need that.
    """
    code = segno.make(text, error="m")
    drawn: str = code.svg_inline(scale=4, border=4, light="#fff", dark="#000", title="QR code")
    return mark_safe(drawn)  # noqa: S308 - drawn by segno, squares only: the text is not in it

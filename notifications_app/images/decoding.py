"""Decodes an uploaded image, and encodes it as devices show it: its pixels only, not too large.

What is stored was encoded here, so it has no metadata, and is nothing else at the same time. Pillow
is imported by the function that needs it, so that processes that decode nothing do not load it.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from io import BytesIO
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext

from pushsvc.common.errors import FieldError, Invalid

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

MOST_UPLOADED_BYTES: Final = 5 * 1024 * 1024
MOST_PIXELS: Final = 16_000_000  # 64 MB, decoded, of which there are up to three copies
# Of a JPEG. A progressive one has about ten. Each takes a pass over all pixels, in a few bytes.
MOST_SCANS: Final = 50
# FCM, "Send an image in the notification payload": images are limited to 1 MB.
MOST_BYTES: Final = 1_000_000
# A PNG without transparency stays a PNG up to here, because JPEG blurs text and logos.
_PNG_BYTES: Final = 200_000
_READ: Final = ("PNG", "JPEG", "GIF", "WEBP")
_LOSSLESS: Final = frozenset({"PNG", "GIF"})
_SCANNED: Final = frozenset({"JPEG", "MPO"})  # MPO: a JPEG that others follow in the file
_SCAN: Final = b"\xff\xda"  # the marker of a scan, which no compressed data of a JPEG contains


class Use(StrEnum):
    """What the image is for, which decides its size."""

    ICON = "icon"
    IMAGE = "image"


# The longest side in pixels. Chrome shows icons with 192, Android large icons with up to 256, and
# large images about as wide as the phone.
SIDES: Final = {Use.ICON: 256, Use.IMAGE: 1_200}


@dataclass(frozen=True, slots=True)
class Encoded:
    """`kind`: `png` or `jpg`."""

    content: bytes
    kind: str
    width: int
    height: int


class ImageRefused(Invalid):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__([FieldError("file", code, detail)])


def encoded(data: bytes, use: Use) -> Encoded:
    """The image with at most SIDES, upright, without metadata. Of an animation, the first frame.

    The same for the same input. Raises ImageRefused.
    """
    if len(data) > MOST_UPLOADED_BYTES:
        raise ImageRefused(
            "too_long",
            gettext("The file has more than %(most)s MB.") % {"most": MOST_UPLOADED_BYTES >> 20},
        )
    try:
        pixels, format_ = _decoded(data, SIDES[use])
    except ImageRefused:
        raise
    except Exception as error:  # a decoder may raise anything for a malformed file
        detail = gettext("This is not a complete image that devices show: PNG, JPEG, GIF or WebP.")
        raise ImageRefused("malformed", detail) from error
    fitting = (each for each in _encodings(pixels, format_) if len(each.content) <= MOST_BYTES)
    found = next(fitting, None)
    if found is None:
        raise ImageRefused(
            "too_long", gettext("The image is too large, even when it is made smaller.")
        )
    return found


def _decoded(data: bytes, side: int) -> "tuple[Pixels, str]":
    from PIL import Image, ImageOps

    # With twice as many pixels, decoders raise before they allocate anything. For fewer they warn.
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    try:
        image = Image.open(BytesIO(data), formats=_READ)
    except Image.DecompressionBombError as error:
        raise _too_many_pixels() from error
    with image:
        if image.width * image.height > MOST_PIXELS:
            raise _too_many_pixels()
        format_ = image.format or ""
        if format_ in _SCANNED and data.count(_SCAN) > MOST_SCANS:
            raise ImageRefused("too_many", f"The JPEG has more than {MOST_SCANS} scans.")
        image.draft("RGB", (side, side))  # a JPEG is decoded at about this size
        upright = ImageOps.exif_transpose(image)
        pixels = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    if pixels.mode == "RGBA" and pixels.getchannel("A").getextrema() == (255, 255):
        pixels = pixels.convert("RGB")
    pixels.info.clear()  # comments, which Pillow would write again
    pixels.thumbnail((side, side), Image.Resampling.LANCZOS)
    return pixels, format_


def _too_many_pixels() -> ImageRefused:
    return ImageRefused("too_many", f"The image has more than {MOST_PIXELS:,} pixels.")


def _encodings(pixels: "Pixels", format_: str) -> Iterator[Encoded]:
    """The best encoding first, then smaller ones."""
    if pixels.mode == "RGB" and format_ in _LOSSLESS:
        png = _as(pixels, "png")
        if len(png.content) <= _PNG_BYTES:
            yield png
    kind = "png" if pixels.mode == "RGBA" else "jpg"
    for share in (1, 0.7, 0.5, 0.35):
        size = [max(1, round(each * share)) for each in pixels.size]
        yield _as(pixels if share == 1 else pixels.resize((size[0], size[1])), kind)


def _as(pixels: "Pixels", kind: str) -> Encoded:
    content = BytesIO()
    if kind == "png":
        pixels.save(content, "PNG", optimize=True)
    else:
        pixels.save(content, "JPEG", quality=85, optimize=True, progressive=True)
    return Encoded(content.getvalue(), kind, *pixels.size)

"""Uploaded images: what is decoded, what is stored of it, and what is refused."""

import struct
import zlib
from resource import RUSAGE_SELF, getrusage

import pytest
from PIL import Image

from notifications_app.images.decoding import (
    MOST_BYTES,
    MOST_PIXELS,
    MOST_SCANS,
    MOST_UPLOADED_BYTES,
    SIDES,
    ImageRefused,
    Use,
    encoded,
)
from tests.images import file_of, noise, opened, saved, with_text


def refused(data, use=Use.IMAGE):
    with pytest.raises(ImageRefused) as caught:
        encoded(data, use)
    [error] = caught.value.errors
    assert error.attr == "file"
    return error.code


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "GIF", "WEBP"])
def test_an_image_is_made_as_large_as_devices_show_it(format_):
    data = file_of(format_, (2_400, 1_200))

    for use, side in SIDES.items():
        found = encoded(data, use)
        assert (found.width, found.height) == (side, side // 2)
        assert opened(found.content).size == (found.width, found.height)
        assert opened(found.content).format == {"png": "PNG", "jpg": "JPEG"}[found.kind]
    assert encoded(data, Use.IMAGE) == encoded(data, Use.IMAGE)


def test_a_small_image_keeps_its_size():
    found = encoded(file_of(size=(40, 30)), Use.ICON)
    assert (found.width, found.height) == (40, 30)


def test_transparency_is_kept_and_an_opaque_channel_is_not():
    clear = encoded(file_of(mode="RGBA", color=(200, 0, 0, 128)), Use.ICON)
    opaque = encoded(noise((600, 300), "RGBA"), Use.IMAGE)

    assert opened(clear.content).mode == "RGBA"
    assert opened(opaque.content).mode == "RGBA"
    solid = encoded(file_of(mode="RGBA", color=(200, 0, 0, 255)), Use.ICON)
    assert opened(solid.content).mode == "RGB"


MODES = [("P", "GIF"), ("L", "PNG"), ("CMYK", "JPEG"), ("1", "PNG"), ("LA", "PNG"), ("I;16", "PNG")]


@pytest.mark.parametrize(("mode", "format_"), MODES)
def test_every_colour_mode_is_shown(mode, format_):
    assert encoded(file_of(format_, mode=mode), Use.ICON).kind in {"png", "jpg"}


def test_a_photo_is_stored_upright_and_without_its_metadata():
    pixels = Image.new("RGB", (400, 200), "#fff")
    pixels.paste("#c00", (0, 0, 200, 200))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright
    exif[0x010F] = "Secret Camera"
    exif[0x8825] = {1: "N", 2: (52.0, 30.0, 0.0)}
    data = saved(pixels, "JPEG", exif=exif, comment=b"secret comment", quality=95)

    found = encoded(data, Use.IMAGE)
    stored = opened(found.content)

    assert stored.size == (200, 400)
    red, white = stored.getpixel((100, 50)), stored.getpixel((100, 350))
    assert red[1] < 60 < 200 < white[1]
    assert not stored.getexif()
    assert b"secret" not in found.content.lower()


def test_text_in_a_png_is_not_stored():
    assert b"secret" not in encoded(with_text("secret"), Use.IMAGE).content


def test_of_an_animation_the_first_frame_is_stored():
    frames = [Image.new("RGB", (60, 60), color) for color in ("#c00", "#0c0", "#00c")]
    data = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])

    stored = opened(encoded(data, Use.IMAGE).content)

    assert getattr(stored, "n_frames", 1) == 1
    assert stored.convert("RGB").getpixel((30, 30))[0] > 150


def test_what_follows_the_image_in_the_file_is_not_stored():
    """A polyglot is an image and, for another reader, a page or an archive."""
    for hidden in (b"<script>alert(1)</script>", b"PK\x03\x04secret"):
        assert hidden not in encoded(file_of() + hidden, Use.IMAGE).content


def test_an_image_that_compresses_badly_is_made_smaller():
    found = encoded(noise((1_100, 1_000), "RGBA"), Use.IMAGE)
    assert len(found.content) <= MOST_BYTES
    assert found.width < 1_100


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<html><img src=x onerror=alert(1)>",
        b"%PDF-1.7",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        b"RIFF\x24\x00\x00\x00WAVEfmt ",
    ],
)
def test_what_is_no_image_is_refused(data):
    assert refused(data) == "malformed"


@pytest.mark.parametrize("format_", ["BMP", "TIFF", "ICO", "PPM", "TGA"])
def test_an_image_of_another_format_is_refused_whatever_its_name_is(format_):
    assert refused(file_of(format_, (64, 64))) == "malformed"


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_truncated_image_is_refused(format_):
    data = noise((300, 300), "RGB", format_)
    assert refused(data[: len(data) // 2]) == "malformed"


def test_an_image_with_too_many_pixels_is_refused_before_it_is_decoded():
    assert refused(png_that_says(10_000, 10_000)) == "too_many"
    assert refused(png_that_says(2**31 - 1, 2**31 - 1)) in {"too_many", "malformed"}
    assert refused(png_that_says(MOST_PIXELS + 1, 1)) == "too_many"


def test_decoders_allocate_nothing_for_an_image_with_too_many_pixels():
    """Pillow prepares the disposal of a GIF's first frame when it opens the file."""
    before = getrusage(RUSAGE_SELF).ru_maxrss
    assert refused(gif_that_says(25_000, 25_000)) == "too_many"
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 200_000  # KB; it would take 625 MB


def test_a_jpeg_that_repeats_its_scans_is_refused_before_it_is_decoded():
    data = saved(Image.new("L", (400, 400), 90), "JPEG", progressive=True)
    scan = data[data.rindex(b"\xff\xda") : -2]

    assert encoded(data[:-2] + scan * 20 + b"\xff\xd9", Use.ICON)
    assert refused(data[:-2] + scan * MOST_SCANS + b"\xff\xd9") == "too_many"
    several = saved(Image.new("L", (40, 40)), "MPO", append_images=[Image.new("L", (40, 40))])
    assert opened(several).format == "MPO"
    assert refused(several + scan * MOST_SCANS) == "too_many"


def test_a_file_with_too_many_bytes_is_refused_before_it_is_read():
    assert refused(file_of() + bytes(MOST_UPLOADED_BYTES)) == "too_long"


def test_compressed_text_that_is_a_bomb_is_refused():
    bomb = zlib.compress(bytes(200_000_000), 9)
    text = chunk(b"zTXt", b"Comment\x00\x00" + bomb)
    data = file_of()
    assert refused(data[:33] + text + data[33:]) == "malformed"


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(
        ">I", zlib.crc32(kind + content)
    )  # fmt: skip


def png_that_says(width, height):
    """A small file that announces a large image."""
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    rest = chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + rest


def gif_that_says(width, height):
    """A small file that announces a large image, to be cleared to the background."""
    size = struct.pack("<HH", width, height)
    head = b"GIF89a" + size + b"\x80\0\0" + b"\0\0\0\xff\xff\xff"
    control = b"\x21\xf9\x04\x08\0\0\0\0"
    return head + control + b"\x2c\0\0\0\0" + size + b"\0\x02\x02\x44\x01\0;"

"""Files that people upload as images."""

from io import BytesIO

from PIL import Image, PngImagePlugin


def file_of(format_="PNG", size=(600, 300), mode="RGB", color=None, **options):
    """The bytes of an image of one color."""
    pixels = Image.new(mode, size, color or ("#c33" if mode == "RGB" else 0))
    return saved(pixels, format_, **options)


def saved(pixels, format_, **options):
    content = BytesIO()
    pixels.save(content, format_, **options)
    return content.getvalue()


def noise(size, mode="RGB", format_="PNG"):
    """An image that compresses badly."""
    channels = [Image.effect_noise(size, 100) for _ in mode]
    return saved(Image.merge(mode, channels), format_)


def with_text(text):
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", text)
    return file_of(pnginfo=info)


def opened(content):
    return Image.open(BytesIO(content))

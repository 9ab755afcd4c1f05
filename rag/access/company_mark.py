"""Turn an uploaded picture into a company's mark: a small PNG of our own making.

Only its colours are taken over. Whatever else the file holds, such as scripts, places or a camera's name, is not kept,
and a drawing in SVG, which may hold scripts, is refused.
"""

from __future__ import annotations

import io
import warnings

from PIL import Image, ImageOps, UnidentifiedImageError

from rag.errors import InvalidInput

FORMATS = ("PNG", "JPEG", "WEBP")
MAXIMUM_BYTES = 2 * 1024 * 1024
MAXIMUM_PIXELS = 16_000_000
#: The sidebar shows a mark at most 32 points high; screens have up to three pixels a point.
LARGEST = (480, 96)
#: Fewer colours where the picture is one that PNG packs badly.
MAXIMUM_KEPT_BYTES = 100_000
NO_PICTURE = "This is not a picture that can be used. Choose a PNG, JPEG or WebP file."


def drawn_again(picture: bytes) -> bytes:
    """Return the picture as a PNG of at most 480 x 96 pixels. Raises `InvalidInput`."""
    if len(picture) > MAXIMUM_BYTES:
        raise InvalidInput("The mark has more than 2 MB. Choose a smaller picture.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(picture), formats=FORMATS) as opened:
                if opened.width * opened.height > MAXIMUM_PIXELS:
                    raise InvalidInput("The mark has more than 16 million pixels. Choose a smaller picture.")
                upright = ImageOps.exif_transpose(opened).convert("RGBA")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as exc:
        raise InvalidInput(NO_PICTURE) from exc
    if box := upright.getchannel("A").getbbox():
        upright = upright.crop(box)
    upright.thumbnail(LARGEST, Image.Resampling.LANCZOS)
    written = _png(upright)
    return written if len(written) <= MAXIMUM_KEPT_BYTES else _png(upright.quantize(64))


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    clean = Image.new(image.mode, image.size)
    clean.paste(image)
    if image.mode == "P" and (palette := image.getpalette("RGBA")):
        clean.putpalette(palette, "RGBA")
    clean.save(file, "PNG", optimize=True)
    return file.getvalue()

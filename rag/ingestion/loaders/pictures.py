"""Pictures as vision models take them. Runs in the sandbox process."""

from __future__ import annotations

import io
from collections.abc import Sequence
from math import hypot
from typing import Any

from PIL import Image, ImageChops, ImageFilter, UnidentifiedImageError

from rag.errors import FileDamaged

#: Models look at no more; a larger picture only costs more. Pixels.
LONGEST_SIDE = 1600
#: A picture of more pixels was made to fill the memory.
MOST_PIXELS = 80_000_000


def as_png(content: bytes) -> bytes:
    """The first frame of a picture of any kind (jpg, png, gif, webp, bmp) as PNG. Raises `FileDamaged`."""
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG", "GIF", "WEBP", "BMP")) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise FileDamaged
            drawn = picture.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as exc:
        raise FileDamaged from exc
    drawn.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    buffer = io.BytesIO()
    drawn.save(buffer, "PNG")
    return buffer.getvalue()


#: The part of a page that a picture with text in it covers: less is a logo, more a background or the page's own scan.
LEAST_OF_PAGE, MOST_OF_PAGE = 0.06, 0.9
#: Its width, compared with the page's, and its pixels.
LEAST_OF_WIDTH, LEAST_PIXELS = 0.25, 30_000
#: Print has one ground under most of it, and many sharp edges: the share of its pixels at one.
LEAST_GROUND, LEAST_EDGES = 0.22, 0.012
SHARP = 60
#: Pixels around one that it is compared with at 288 dots per inch, and how much darker ink is.
AROUND, DARKER = 24, 40


def is_large(matrix: Sequence[float], pixels: int, box: tuple[float, float, float, float]) -> bool:
    """Whether a picture drawn by this matrix on a page of this box is large enough to be read."""
    width, height = hypot(matrix[0], matrix[1]), hypot(matrix[2], matrix[3])
    page_width, page_height = box[2] - box[0], box[3] - box[1]
    if min(page_width, page_height) <= 0 or pixels < LEAST_PIXELS or width < LEAST_OF_WIDTH * page_width:
        return False
    return LEAST_OF_PAGE <= width * height / (page_width * page_height) <= MOST_OF_PAGE


def looks_like_print(picture: Any) -> bool:
    """Whether a picture may hold text: print on a ground, and neither a photograph nor a plain shape."""
    grey = picture.convert("L")
    if grey.width < 8 or grey.height < 8:
        return False
    counts = grey.histogram()
    total = grey.width * grey.height
    ground = max(sum(counts[first : first + 16]) for first in range(0, 256, 8))
    moved = ImageChops.offset(grey, 1, 0)
    edges = sum(ImageChops.difference(grey, moved).histogram()[SHARP:])
    return bool(ground >= LEAST_GROUND * total and edges >= LEAST_EDGES * total)


def as_ink(content: bytes) -> bytes:
    """A drawn page in black on white, by what is darker than its surroundings: print on a coloured ground is seen."""
    with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
        grey = picture.convert("L")
    around = grey.filter(ImageFilter.BoxBlur(AROUND))
    ink = ImageChops.subtract(around, grey).point([0 if value > DARKER else 255 for value in range(256)])
    buffer = io.BytesIO()
    ink.save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()

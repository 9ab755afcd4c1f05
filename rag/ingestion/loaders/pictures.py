"""Pictures as vision models take them. Runs in the sandbox process."""

from __future__ import annotations

import io

from PIL import Image, UnidentifiedImageError

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

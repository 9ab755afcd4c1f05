"""Load pictures as documents: photographs, screenshots and scans. Their text is recognised in the next step.

Runs in the sandbox process. Each picture in a TIFF or HEIC file is a page; an animation is a single page.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import pi_heif
from PIL import ExifTags, Image

from rag.errors import FileDamaged, FileKindUnknown, FileTooLarge, TooManyPages
from rag.ingestion.loaders import PHONE_PICTURE, CheckedFile, ExtractedDocument, LoadOptions
from rag.ingestion.loaders.page_text import BLANK_PAGE
from rag.ingestion.loaders.pictures import MOST_PIXELS
from rag.sandbox.child_process import threads_allowed
from rag.types import Page

FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "HEIF")
#: Formats with a page for each picture.
WITH_PAGES = ("TIFF", "HEIF")
#: An A4 page in points: a drawing's scale refers to it, because pictures rarely know their true size.
PAGE = (595, 842)
#: The longest side of a drawing, in pixels.
LONGEST = 5000
#: The tones in a blank frame differ by less than this, of 256.
PLAIN = 24
#: The camera orientation from Exif, and the transposition to put the picture upright.
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # fmt: skip
pi_heif.register_heif_opener(thumbnails=False, depth_images=False, aux_images=False, decode_threads=0)
WITHOUT_THREADS = "This is a picture in the format of phones (HEIC). Save it as JPEG and upload that."
DAMAGED = "This picture is damaged and cannot be opened. Save it again and upload that."


def check_picture(content: bytes, options: LoadOptions) -> CheckedFile:
    """Check that the first page can be opened, and count the pages. Raises `DocumentError`s."""
    with opened(content) as picture:
        count = frames_of(picture)
        if count > options.limits.maximum_pages:
            raise TooManyPages(
                f"This picture has {count:,} pages; the limit is {options.limits.maximum_pages:,}. Split it and upload "
                "the parts."
            )
        frame_of(picture, 1, scale=0.1)
    return CheckedFile(page_count=count)


def load_picture(content: bytes, options: LoadOptions) -> ExtractedDocument:
    """Return a picture's pages without text; blank pages get a warning. Raises `DocumentError`s."""
    pages = []
    with opened(content) as picture:
        count = frames_of(picture)
        for number in range(1, count + 1):
            tones = frame_of(picture, number, scale=1.0).convert("L").tobytes()
            is_blank = max(tones) - min(tones) < PLAIN
            pages.append(Page(number=number, text="", method="none", warnings=(BLANK_PAGE,) if is_blank else ()))
            if options.on_page is not None:
                options.on_page(number, count)
    return ExtractedDocument(pages=tuple(pages))


def drawn_picture(content: bytes, number: int, *, scale: float) -> bytes:
    """Draw a page as PNG, upright and never enlarged."""
    buffer = io.BytesIO()
    with opened(content) as picture:
        frame_of(picture, number, scale=scale).save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def pictures_as_pdf(content: bytes, numbers: Sequence[int]) -> bytes:
    """Make a PDF from these pages of a picture, counted from 1, for text recognition providers."""
    buffer = io.BytesIO()
    with opened(content) as picture:
        first, *others = (frame_of(picture, number, scale=3.0) for number in numbers)
        first.save(buffer, "PDF", resolution=216, save_all=True, append_images=others)
    return buffer.getvalue()


@contextmanager
def opened(content: bytes) -> Iterator[Image.Image]:
    """Open a picture without decoding, if it is within the size limits. Raises `FileDamaged` and `FileTooLarge`."""
    is_of_phone = PHONE_PICTURE.match(content) is not None
    # The decoder starts a thread for each part, and ends the process if this fails.
    with threads_allowed() if is_of_phone else nullcontext(True) as can_decode:
        if not can_decode:
            raise FileKindUnknown(WITHOUT_THREADS)
        with _opened(content) as picture:
            yield picture


@contextmanager
def _opened(content: bytes) -> Iterator[Image.Image]:
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
            yield picture
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as exc:
        raise too_large() from exc
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError, TypeError, LookupError) as exc:
        raise FileDamaged(DAMAGED) from exc


def frames_of(picture: Image.Image) -> int:
    """Count the pages; an animation is a single page."""
    return int(getattr(picture, "n_frames", 1)) if picture.format in WITH_PAGES else 1


def frame_of(picture: Image.Image, number: int, *, scale: float) -> Image.Image:
    """Decode a page, counted from 1, upright on white; `scale` is pixels per point on an A4 sheet."""
    if frames_of(picture) > 1:
        picture.seek(number - 1)
    width, height = picture.size
    if width * height > MOST_PIXELS:
        raise too_large()
    short, long = sorted((width, height))
    factor = min(1.0, max(PAGE[0] * scale / short, PAGE[1] * scale / long), LONGEST / long)
    size = max(round(width * factor), 1), max(round(height * factor), 1)
    picture.draft("RGB", size)  # a JPEG decodes no more pixels than needed
    picture.load()
    turn = TURNS.get(picture.getexif().get(ExifTags.Base.Orientation, 1))
    frame: Image.Image = picture
    if frame.mode.startswith("I;16"):
        frame = frame.convert("I").point(lambda tone: tone / 256).convert("L")
    if frame.mode not in ("L", "RGB", "RGBA"):
        frame = frame.convert("RGBA")
    frame = frame.resize(size, reducing_gap=2.0) if frame.size != size else frame.copy()
    upright = (frame.transpose(turn) if turn is not None else frame).convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright).convert("RGB")


def too_large() -> FileTooLarge:
    return FileTooLarge(
        f"This picture has more than {MOST_PIXELS // 1_000_000} million pixels. Save it smaller and upload that."
    )

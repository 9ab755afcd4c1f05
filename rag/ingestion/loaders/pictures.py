"""Load image files, render pages with a highlighted passage, and prepare images for text recognition.

Runs in the sandbox process. Photographs, screenshots and scans become documents, and their text is recognised in the
next step. Each image in a TIFF or HEIC file is a page. An animation is a single page.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import hypot
from typing import Any

import pypdfium2
from PIL import ExifTags, Image, ImageChops, ImageDraw, ImageFilter, UnidentifiedImageError

from rag.errors import FileDamaged, FileTooLarge, PdfDamaged, TooManyPages
from rag.ingestion.loaders.format_table import file_formats
from rag.ingestion.loaders.loader import function_of
from rag.ingestion.loaders.page_text import BLANK_PAGE
from rag.ingestion.loaders.pdf_fonts import open_pdf
from rag.ingestion.loaders.pdf_objects import Box, turned
from rag.ingestion.loaders.values import CheckedFile, ExtractedDocument, LoadOptions
from rag.types import Page

#: Colours multiplied with the page to keep print dark: for a passage, and for the used sentence.
MARK, STRONG_MARK = (255, 246, 196), (255, 212, 64)
#: The longest side of a picture, in pixels; larger pages are drawn smaller.
LONGEST_DRAWN = 5000
#: Characters which two texts may write differently: blank space, hyphens, ligatures, cell separators.
INSIGNIFICANT = re.compile(r"[\s|\u00ad\u2010\ufffe-]+")
LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "ſt", "ﬆ": "st"}
SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
#: Shorter pieces of a passage occur in too many places to be marked.
SHORTEST_PIECE = 12


def draw_page(content: bytes, number: int, *, highlight: str, scale: float, sentence: str = "") -> bytes:
    """Render a page, counted from 1, to PNG. Raises `PdfDamaged`.

    `highlight` is the passage to mark, if found on the page. `sentence` is a part of this passage to mark more
    strongly.
    """
    try:
        document = open_pdf(content)
    except pypdfium2.PdfiumError as exc:
        raise PdfDamaged("This page cannot be shown.") from exc
    try:
        page = document[number - 1]
        width, height = page.get_size()
        scale = min(scale, LONGEST_DRAWN / max(width, height, 1))
        picture = page.render(scale=scale).to_pil().convert("RGB")
        if highlight.strip() and (boxes := passage_boxes(page, highlight)):
            picture = marked(picture, page, boxes, passage_boxes(page, highlight, sentence) if fold(sentence) else [])
    except (pypdfium2.PdfiumError, ValueError, IndexError) as exc:
        raise PdfDamaged("This page cannot be shown.") from exc
    finally:
        document.close()
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def passage_boxes(page: Any, passage: str, sentence: str = "") -> list[Box]:
    """Find a passage on the page. Returns a rectangle (left, bottom, right, top) in points for each line.

    With `sentence`, a part of the passage, only the sentence's lines are returned.
    """
    text_page = page.get_textpage()
    count = text_page.count_chars()
    text = text_page.get_text_range(0, count, errors="ignore") if count else ""
    # Characters are addressed by index, which requires exactly one character of text for each.
    characters = list(text)
    if len(characters) != count:
        characters = [text_page.get_text_range(index, 1, errors="ignore") for index in range(count)]
    folded, positions = folded_with_positions(characters)
    boxes: list[Box] = []
    spans = spans_of(folded, passage)
    if sentence and (folded_sentence := fold(sentence)):
        places = (folded.find(folded_sentence, first, last) for first, last in spans)
        start_of_sentence = next((at for at in places if at >= 0), None)
        # If a passage continues on a different page, parts are found.
        parts = [(first, last) for first, last in spans if folded[first:last] in folded_sentence]
        spans = parts if start_of_sentence is None else [(start_of_sentence, start_of_sentence + len(folded_sentence))]
    for first, last in spans:
        start, end = positions[first], positions[last - 1] + 1
        boxes.extend(text_page.get_rect(index) for index in range(text_page.count_rects(start, end - start)))
    return boxes


def folded_with_positions(characters: list[str]) -> tuple[str, list[int]]:
    """Fold characters for comparison. Returns the folded text, and the original index of each folded character."""
    folded: list[str] = []
    positions: list[int] = []
    for index, character in enumerate(characters):
        plain = LIGATURES.get(character, character)
        if INSIGNIFICANT.fullmatch(plain):
            continue
        for folded_character in plain.casefold():
            folded.append(folded_character)
            positions.append(index)
    return "".join(folded), positions


def spans_of(folded: str, passage: str) -> list[tuple[int, int]]:
    """Find a passage in a folded text, and return the span.

    If the whole passage is not found, for example because of a page break, returns the lines' and sentences' spans.
    """
    folded_passage = fold(passage)
    start = folded.find(folded_passage) if folded_passage else -1
    if start >= 0:
        return [(start, start + len(folded_passage))]
    spans = []
    position = 0
    for piece in (fold(match[0]) for line in passage.split("\n") for match in SENTENCE.finditer(line)):
        if len(piece) < SHORTEST_PIECE:
            continue
        start = folded.find(piece, position)
        if start < 0:
            start = folded.find(piece)
        if start >= 0:
            spans.append((start, start + len(piece)))
            position = start + len(piece)
    return spans


def fold(text: str) -> str:
    return INSIGNIFICANT.sub("", "".join(LIGATURES.get(c, c) for c in text)).casefold()


def marked(picture: Image.Image, page: Any, boxes: list[Box], strong: Sequence[Box] = ()) -> Image.Image:
    """Return the image with rectangles marked, also on rotated and cropped pages. `strong` rectangles are on top."""
    layer = Image.new("RGB", picture.size, (255, 255, 255))
    draw = ImageDraw.Draw(layer)
    left, bottom, right, top = page.get_bbox()
    rotation = page.get_rotation()
    lines = [*((box, MARK) for box in line_boxes(boxes)), *((box, STRONG_MARK) for box in line_boxes(list(strong)))]
    for (x1, y1, x2, y2), color in lines:
        corners = [turned(x - left, y - bottom, right - left, top - bottom, rotation) for x, y in ((x1, y1), (x2, y2))]
        width, height = (right - left, top - bottom) if rotation % 180 == 0 else (top - bottom, right - left)
        across, down = picture.width / max(width, 1), picture.height / max(height, 1)
        xs = sorted(corner[0] * across for corner in corners)
        ys = sorted(corner[1] * down for corner in corners)
        draw.rectangle((xs[0] - 2, ys[0] - 2, xs[1] + 2, ys[1] + 2), fill=color)
    return ImageChops.multiply(picture, layer)


def line_boxes(boxes: list[Box]) -> list[Box]:
    """Join neighbouring boxes on a line, because PDFs divide lines into pieces."""
    merged: list[Box] = []
    for box in boxes:
        if merged:
            left, bottom, right, top = merged[-1]
            height = min(top - bottom, box[3] - box[1])
            shared = min(top, box[3]) - max(bottom, box[1])
            if height > 0 and shared > 0.6 * height and -height < box[0] - right < 1.5 * height:
                merged[-1] = (min(left, box[0]), min(bottom, box[1]), max(right, box[2]), max(top, box[3]))
                continue
        merged.append(box)
    return merged


#: The longest side in pixels which models look at; a larger picture only costs more.
LONGEST_SHOWN = 1600
#: A picture with more pixels was made to fill the memory.
MOST_PIXELS = 80_000_000


def as_png(content: bytes) -> bytes:
    """Convert the first frame of an image (jpg, png, gif, webp, bmp) to PNG. Raises `FileDamaged`."""
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG", "GIF", "WEBP", "BMP")) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise FileDamaged
            drawn = picture.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as exc:
        raise FileDamaged from exc
    drawn.thumbnail((LONGEST_SHOWN, LONGEST_SHOWN))
    buffer = io.BytesIO()
    drawn.save(buffer, "PNG")
    return buffer.getvalue()


#: The share of a page covered by a picture with text: a smaller picture is a logo, a larger a background or page scan.
LEAST_OF_PAGE, MOST_OF_PAGE = 0.06, 0.9
#: The smallest width, compared with the page's, and the fewest pixels.
LEAST_OF_WIDTH, LEAST_PIXELS = 0.25, 30_000
#: Print has an even ground and many sharp edges: their smallest shares of pixels.
LEAST_GROUND, LEAST_EDGES = 0.22, 0.012
SHARP = 60
#: The neighbourhood in pixels for comparing a pixel at 288 dots per inch, and how much darker ink is.
AROUND, DARKER = 24, 40


def is_large(matrix: Sequence[float], pixels: int, box: tuple[float, float, float, float]) -> bool:
    """Whether an image is large enough on the page for readable text. `matrix` is the image's PDF matrix."""
    width, height = hypot(matrix[0], matrix[1]), hypot(matrix[2], matrix[3])
    page_width, page_height = box[2] - box[0], box[3] - box[1]
    if min(page_width, page_height) <= 0 or pixels < LEAST_PIXELS or width < LEAST_OF_WIDTH * page_width:
        return False
    return LEAST_OF_PAGE <= width * height / (page_width * page_height) <= MOST_OF_PAGE


def looks_like_print(picture: Any) -> bool:
    """Whether an image may contain text: sharp edges on an even background, unlike a photograph or a plain shape."""
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
    """Convert a rendered page (PNG) to black and white. Pixels with brighter surroundings become black.

    Used for text on coloured backgrounds.
    """
    with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
        grey = picture.convert("L")
    around = grey.filter(ImageFilter.BoxBlur(AROUND))
    ink = ImageChops.subtract(around, grey).point([0 if value > DARKER else 255 for value in range(256)])
    buffer = io.BytesIO()
    ink.save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


#: An A4 page in points: a drawing's scale refers to it, because pictures rarely know their true size.
PAGE = (595, 842)
#: The tones in a blank frame differ by less than this, of 256.
PLAIN = 24
#: The camera orientation from Exif, and the transposition to put the picture upright.
TRANSPOSITIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # fmt: skip
DAMAGED = "This picture is damaged and cannot be opened. Save it again and upload the new file."


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
    """Return all pages of an image file with empty text, to be recognised later.

    Blank pages get a warning. Raises `DocumentError`s.
    """
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
    """Render an image file's page to PNG, upright and never enlarged."""
    buffer = io.BytesIO()
    with opened(content) as picture:
        frame_of(picture, number, scale=scale).save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def pictures_as_pdf(content: bytes, numbers: Sequence[int]) -> bytes:
    """Make a PDF from some pages of an image file, counted from 1, for text recognition by a provider."""
    buffer = io.BytesIO()
    with opened(content) as picture:
        first, *other_pages = (frame_of(picture, number, scale=3.0) for number in numbers)
        first.save(buffer, "PDF", resolution=216, save_all=True, append_images=other_pages)
    return buffer.getvalue()


@contextmanager
def opened(content: bytes) -> Iterator[Image.Image]:
    """Yield an image within the size limits, opened but not decoded.

    Raises `FileDamaged`, `FileTooLarge`, and `FileKindUnknown` if packages for the format are missing.
    """
    formats = file_formats()
    own = formats.picture_of(content)
    names = tuple(loader.pillow_format for loader in formats.pictures if not loader.decoding or loader is own)
    with function_of(own.decoding)() if own and own.decoding else nullcontext(), _open(content, names) as picture:
        yield picture


@contextmanager
def _open(content: bytes, formats: tuple[str, ...]) -> Iterator[Image.Image]:
    try:
        with Image.open(io.BytesIO(content), formats=formats) as picture:
            yield picture
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as exc:
        raise too_large() from exc
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError, TypeError, LookupError) as exc:
        raise FileDamaged(DAMAGED) from exc


def frames_of(picture: Image.Image) -> int:
    """Count the pages of an image file. An animation is a single page."""
    has_pages = any(loader.has_pages for loader in file_formats().pictures if loader.pillow_format == picture.format)
    return int(getattr(picture, "n_frames", 1)) if has_pages else 1


def frame_of(picture: Image.Image, number: int, *, scale: float) -> Image.Image:
    """Decode a page, counted from 1, upright on white. `scale` is in pixels per point of an A4 sheet."""
    if frames_of(picture) > 1:
        picture.seek(number - 1)
    width, height = picture.size
    if width * height > MOST_PIXELS:
        raise too_large()
    short, long = sorted((width, height))
    factor = min(1.0, max(PAGE[0] * scale / short, PAGE[1] * scale / long), LONGEST_DRAWN / long)
    size = max(round(width * factor), 1), max(round(height * factor), 1)
    picture.draft("RGB", size)  # a JPEG decodes no more pixels than needed
    picture.load()
    transposition = TRANSPOSITIONS.get(picture.getexif().get(ExifTags.Base.Orientation, 1))
    frame: Image.Image = picture
    if frame.mode.startswith("I;16"):
        frame = frame.convert("I").point(lambda tone: tone / 256).convert("L")
    if frame.mode not in ("L", "RGB", "RGBA"):
        frame = frame.convert("RGBA")
    frame = frame.resize(size, reducing_gap=2.0) if frame.size != size else frame.copy()
    upright = (frame.transpose(transposition) if transposition is not None else frame).convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright).convert("RGB")


def too_large() -> FileTooLarge:
    return FileTooLarge(
        f"This picture has more than {MOST_PIXELS // 1000000} million pixels. Save it in a smaller size and upload "
        f"the new file."
    )

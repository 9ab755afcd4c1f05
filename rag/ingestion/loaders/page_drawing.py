"""A page as a picture with a passage marked where it stands. Runs in the sandbox process."""

from __future__ import annotations

import io
import re
from typing import Any

import pypdfium2
from PIL import Image, ImageChops, ImageDraw

from rag.errors import PdfDamaged

#: Multiplied with the page, so that print stays as dark as it is.
MARK = (255, 236, 128)
#: Longest side of a picture, in pixels; larger pages are drawn smaller.
LONGEST_SIDE = 5000
#: Characters two texts may write differently: blank space, hyphens, ligatures, what parts cells of a table.
INSIGNIFICANT = re.compile(r"[\s|\u00ad\u2010\ufffe-]+")
LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "ſt", "ﬆ": "st"}
SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
#: Shorter pieces of a passage stand in too many places to be marked.
SHORTEST_PIECE = 12

Box = tuple[float, float, float, float]


def draw_page(content: bytes, number: int, *, highlight: str, scale: float) -> bytes:
    """The page, counted from 1, as PNG; `highlight` is marked as far as it is found. Raises `PdfDamaged`."""
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as exc:
        raise PdfDamaged("This page cannot be drawn.") from exc
    try:
        page = document[number - 1]
        width, height = page.get_size()
        scale = min(scale, LONGEST_SIDE / max(width, height, 1))
        picture = page.render(scale=scale).to_pil().convert("RGB")
        boxes = passage_boxes(page, highlight) if highlight.strip() else []
        if boxes:
            picture = marked(picture, page, boxes)
    except (pypdfium2.PdfiumError, ValueError, IndexError) as exc:
        raise PdfDamaged("This page cannot be drawn.") from exc
    finally:
        document.close()
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def passage_boxes(page: Any, passage: str) -> list[Box]:
    """Where the passage stands, in points: rectangles (left, bottom, right, top) of its lines on this page."""
    text_page = page.get_textpage()
    count = text_page.count_chars()
    text = text_page.get_text_range(0, count, errors="ignore") if count else ""
    # Characters are addressed by index; only when every one is one character of the text do both agree.
    characters = list(text)
    if len(characters) != count:
        characters = [text_page.get_text_range(index, 1, errors="ignore") for index in range(count)]
    folded, positions = folded_with_positions(characters)
    boxes: list[Box] = []
    for first, last in spans_of(folded, passage):
        start, end = positions[first], positions[last - 1] + 1
        for index in range(text_page.count_rects(start, end - start)):
            boxes.append(text_page.get_rect(index))
    return boxes


def folded_with_positions(characters: list[str]) -> tuple[str, list[int]]:
    """The text without what does not matter, and for each of its characters the index it came from."""
    folded: list[str] = []
    positions: list[int] = []
    for index, character in enumerate(characters):
        plain = LIGATURES.get(character, character)
        if INSIGNIFICANT.fullmatch(plain):
            continue
        for letter in plain.casefold():
            folded.append(letter)
            positions.append(index)
    return "".join(folded), positions


def spans_of(folded: str, passage: str) -> list[tuple[int, int]]:
    """Where the passage stands in a folded text: as a whole, else its parts, lines and sentences, in their order.

    A passage that began on the page before or goes on to the next is found by its parts.
    """
    whole = fold(passage)
    found = folded.find(whole) if whole else -1
    if found >= 0:
        return [(found, found + len(whole))]
    spans = []
    position = 0
    for piece in (fold(match[0]) for line in passage.split("\n") for match in SENTENCE.finditer(line)):
        if len(piece) < SHORTEST_PIECE:
            continue
        found = folded.find(piece, position)
        if found < 0:
            found = folded.find(piece)
        if found >= 0:
            spans.append((found, found + len(piece)))
            position = found + len(piece)
    return spans


def fold(text: str) -> str:
    return INSIGNIFICANT.sub("", "".join(LIGATURES.get(c, c) for c in text)).casefold()


def marked(picture: Image.Image, page: Any, boxes: list[Box]) -> Image.Image:
    """The picture with translucent rectangles, also for turned and cropped pages."""
    layer = Image.new("RGB", picture.size, (255, 255, 255))
    draw = ImageDraw.Draw(layer)
    left, bottom, right, top = page.get_bbox()
    rotation = page.get_rotation()
    for x1, y1, x2, y2 in line_boxes(boxes):
        corners = [turned(x - left, y - bottom, right - left, top - bottom, rotation) for x, y in ((x1, y1), (x2, y2))]
        width, height = (right - left, top - bottom) if rotation % 180 == 0 else (top - bottom, right - left)
        across, down = picture.width / max(width, 1), picture.height / max(height, 1)
        xs = sorted(corner[0] * across for corner in corners)
        ys = sorted(corner[1] * down for corner in corners)
        draw.rectangle((xs[0] - 2, ys[0] - 2, xs[1] + 2, ys[1] + 2), fill=MARK)
    return ImageChops.multiply(picture, layer)


def line_boxes(boxes: list[Box]) -> list[Box]:
    """Boxes side by side on a line as one: PDFs break lines into pieces that leave gaps."""
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


def turned(x: float, y: float, width: float, height: float, rotation: int) -> tuple[float, float]:
    """A point of the unturned page (origin bottom left) on the page as shown (origin top left)."""
    if rotation == 90:
        return y, x
    if rotation == 180:
        return width - x, y
    if rotation == 270:
        return height - y, width - x
    return x, height - y

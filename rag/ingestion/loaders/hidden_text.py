"""Text of a page that its reader cannot see: white on white, microscopic, off the page, or drawn invisibly.

It is kept out of the text, for an index that holds it answers with what nobody wrote to be read. Whether white letters
stand on something dark is looked up in the drawn page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pypdf

#: Smaller than this nobody reads, in points; footnotes have 6, microprint has 1.
SMALLEST = 1.5
#: Lighter than this is white, of 255.
WHITE = 235
#: The invisible mode of drawing text, PDF 32000-1 table 106.
INVISIBLE = 3
#: Width of a letter by its size, about.
LETTER_WIDTH = 0.5
DRAWS = frozenset({b"S", b"s", b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*"})
SHOWS = frozenset({b"Tj", b"TJ", b"'", b'"'})
REPORT = "Text that a reader of this page does not see was left out ({kinds}): “{text}”."
LONGEST_REPORT = 120


@dataclass(frozen=True)
class TextPiece:
    """A piece of a page's text as pypdf gives it: its effective size and place in points, and how it was drawn."""

    text: str
    size: float
    x: float
    y: float
    is_bold: bool
    is_white: bool
    is_invisible: bool
    is_scalable: bool = True
    #: Runs from left to right.
    is_level: bool = True


@dataclass(frozen=True)
class PageFacts:
    """Where a page begins and ends (left, bottom, right, top, in points), how it is turned, and whether it has
    pictures."""

    box: tuple[float, float, float, float]
    rotation: int
    has_pictures: Callable[[], bool]


class DrawingState:
    """Follows the operators of a page as far as they say how text is drawn. Used as pypdf's operand visitor."""

    def __init__(self) -> None:
        self._is_white = False
        self._mode = 0
        self._saved: list[tuple[bool, int]] = []
        #: Lines and rectangles drawn so far, as a table has them; those that only clip are none.
        self.rules = 0
        self._begun = 0
        #: What was drawn by name, with the matrix that says where.
        self.drawn: list[tuple[str, tuple[float, ...]]] = []
        # Of the text shown since the last piece: was any of it white, invisible, neither?
        self._white = self._invisible = self._seen = False

    def __call__(self, operator: bytes, operands: Any, cm: Any = (), *_: Any) -> None:
        if operator in SHOWS:
            if self._mode == INVISIBLE:
                self._invisible = True
            elif self._is_white:
                self._white = True
            else:
                self._seen = True
        elif operator in (b"l", b"re"):
            self._begun += 1
        elif operator in DRAWS:
            self.rules += self._begun
            self._begun = 0
        elif operator == b"n":
            self._begun = 0
        elif operator == b"Do" and operands and len(cm) == 6:
            self.drawn.append((str(operands[0]), tuple(map(float, cm))))
        elif operator in (b"g", b"rg", b"sc", b"scn", b"k"):
            self._is_white = _is_white(operator, operands)
        elif operator == b"Tr" and operands:
            self._mode = int(operands[0])
        elif operator == b"q":
            self._saved.append((self._is_white, self._mode))
        elif operator == b"Q" and self._saved:
            self._is_white, self._mode = self._saved.pop()

    def take(self) -> tuple[bool, bool]:
        """(white, invisible) of all that was shown since the last call."""
        result = self._white and not self._seen and not self._invisible, self._invisible and not self._seen
        self._white = self._invisible = self._seen = False
        return result


def _is_white(operator: bytes, operands: Any) -> bool:
    try:
        values = [float(value) for value in operands]
    except (TypeError, ValueError):
        return False  # a pattern
    if operator == b"k" or len(values) == 4:
        return bool(values) and max(values) <= 0.03
    # One component may be a tint, of which 1 is the full colour: the drawn page decides.
    return bool(values) and min(values) >= 0.97


def facts_of(page: pypdf.PageObject) -> PageFacts | None:
    """What pypdf says of a page; None when it cannot be had."""
    try:
        box = page.mediabox
        edges = (float(box.left), float(box.bottom), float(box.right), float(box.top))
        return PageFacts(box=edges, rotation=int(page.rotation) % 360, has_pictures=lambda: _has_pictures(page))
    except (Exception, RecursionError):
        return None


def hidden_pieces(page: PageFacts | None, pieces: Sequence[TextPiece], draw: Callable[[], Any]) -> dict[int, str]:
    """Why each hidden piece is, by its index. `draw` gives the page as a picture of one pixel a point, or None."""
    if page is None:
        return {}
    left, bottom, right, top = page.box
    rotation = page.rotation
    reasons: dict[int, str] = {}
    white: list[int] = []
    has_pictures: bool | None = None
    for index, piece in enumerate(pieces):
        if not piece.text.strip():
            continue
        width = LETTER_WIDTH * piece.size * len(piece.text.strip())
        if piece.is_invisible:
            if has_pictures is None:
                has_pictures = page.has_pictures()
            # Over a scan the invisible text is what text recognition read in the picture.
            if not has_pictures:
                reasons[index] = "invisible"
        elif 0 < piece.size < SMALLEST and piece.is_scalable:
            reasons[index] = "microscopic"
        elif rotation == 0 and (
            piece.x > right or piece.y > top or piece.y + piece.size < bottom or piece.x + width < left
        ):
            reasons[index] = "off the page"
        elif piece.is_white:
            white.append(index)
    letters = sum(len(piece.text.strip()) for piece in pieces)
    doubtful = [index for index, reason in reasons.items() if reason != "invisible"]
    if sum(len(pieces[index].text.strip()) for index in doubtful) > letters / 2:
        # Most of a page is not hidden: its measures are read wrongly.
        for index in doubtful:
            del reasons[index]
    if white and (picture := draw()) is not None:
        for index in white:
            piece = pieces[index]
            width = LETTER_WIDTH * piece.size * len(piece.text.strip())
            region = (piece.x, piece.y - 0.2 * piece.size, piece.x + max(width, 4.0), piece.y + 0.75 * piece.size)
            if _is_blank(picture, region, (left, bottom, right, top), rotation):
                reasons[index] = "white"
    return reasons


def report_of(pieces: Sequence[TextPiece], reasons: dict[int, str]) -> str:
    """One sentence for the admin on what was left out."""
    text = " ".join(" ".join(pieces[index].text.split()) for index in sorted(reasons))
    shown = text if len(text) <= LONGEST_REPORT else text[: LONGEST_REPORT - 1] + "…"
    return REPORT.format(kinds=", ".join(sorted(set(reasons.values()))), text=shown)


def _is_blank(
    picture: Any, region: tuple[float, float, float, float], box: tuple[float, float, float, float], rotation: int
) -> bool:
    """Whether there is nothing but white in a region of the drawn page."""
    left, bottom, right, top = box
    width, height = right - left, top - bottom
    corners = []
    for x, y in ((region[0] - left, region[1] - bottom), (region[2] - left, region[3] - bottom)):
        corners.append({90: (y, x), 180: (width - x, y), 270: (height - y, width - x)}.get(rotation, (x, height - y)))
    (first_x, first_y), (second_x, second_y) = corners
    area = (
        max(0, int(min(first_x, second_x))),
        max(0, int(min(first_y, second_y))),
        min(picture.width, int(max(first_x, second_x)) + 1),
        min(picture.height, int(max(first_y, second_y)) + 1),
    )
    if area[0] >= area[2] or area[1] >= area[3]:
        return True
    darkest, _ = picture.crop(area).convert("L").getextrema()
    return bool(darkest >= WHITE)


def _has_pictures(page: pypdf.PageObject) -> bool:
    try:
        objects = page["/Resources"]["/XObject"]  # type: ignore[index]
        return any(item.get_object().get("/Subtype") == "/Image" for item in objects.values()) or any(
            item.get_object().get("/Subtype") == "/Form" for item in objects.values()
        )
    except (Exception, RecursionError):
        return False

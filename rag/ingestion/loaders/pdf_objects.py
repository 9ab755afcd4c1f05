"""Define values for the objects which pdfium draws on a page."""

from __future__ import annotations

from dataclasses import dataclass

#: Left, lower, right and upper edge on a page, in points from its lower left corner.
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class TextObject:
    """A piece of text which is drawn together: baseline start, font size and box in points, and style."""

    #: The place in the drawing order.
    order: int
    x: float
    y: float
    size: float
    box: Box
    is_bold: bool
    #: Whether all letters have the same width.
    is_fixed: bool
    is_white: bool
    is_invisible: bool
    #: Whether the text runs from left to right.
    is_level: bool
    #: Quarter turns counterclockwise: text with turn 1 runs upwards.
    turn: int = 0
    #: Whether the letters are raised or lowered beside a line with this letter size; `y` is then the line's.
    is_small: bool = False
    line_size: float = 0.0


def turned(x: float, y: float, width: float, height: float, rotation: int) -> tuple[float, float]:
    """Convert a point on the unrotated page (origin bottom left) to the displayed page (origin top left)."""
    if rotation == 90:
        return y, x
    if rotation == 180:
        return width - x, y
    if rotation == 270:
        return height - y, width - x
    return x, height - y

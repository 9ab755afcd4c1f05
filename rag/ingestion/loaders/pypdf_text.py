"""The text of a page by pypdf, the first engine: rows kept whole, what a reader does not see left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pypdf

from rag.ingestion.loaders.headings import BOLD, Style
from rag.ingestion.loaders.hidden_text import DrawingState, TextPiece, facts_of, hidden_pieces, report_of
from rag.ingestion.loaders.page_text import normalise_characters
from rag.ingestion.loaders.pictures import is_large

if TYPE_CHECKING:
    from rag.ingestion.loaders.page_tables import PageTable

#: Drawn lines, or rows of text with a gap in them, from which on a page may hold a table and is looked at for one.
FEWEST_RULES, FEWEST_GAPS = 3, 3
#: The share of a table's letters that the text has too; with fewer its place on the page is not known well enough.
SAME_LETTERS = 0.97


@dataclass
class RawPage:
    """A page as an engine gave it."""

    text: str
    styles: dict[str, Style] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    has_hidden: bool = False
    #: Where its large pictures stand: left, bottom, right, top.
    pictures: list[tuple[float, float, float, float]] = field(default_factory=list)


def page_by_pypdf(
    page: pypdf.PageObject,
    draw: Callable[[], Any] = lambda: None,
    tables: Callable[[], Sequence[PageTable]] = tuple,
) -> RawPage:
    """The text of a page with the style of each short line, in one pass, without what a reader does not see.

    `draw` gives the page as a picture of one pixel a point; asked for only where white letters may be hidden,
    as is `tables`, which finds the page's tables, only where there may be some.
    """
    pieces: list[TextPiece] = []
    state = DrawingState()

    def visit(text: str, cm: Any, tm: Any, font: Any, size: float) -> None:
        if text:
            scale = abs(tm[3] or tm[1]) * abs(cm[3] or cm[1])
            is_white, is_invisible = state.take()
            pieces.append(
                TextPiece(
                    text,
                    size=float(size or 0) * scale,
                    x=float(tm[4] * cm[0] + tm[5] * cm[2] + cm[4]),
                    y=float(tm[4] * cm[1] + tm[5] * cm[3] + cm[5]),
                    is_bold=BOLD.search(str(font.get("/BaseFont", "") if font else "")) is not None,
                    is_white=is_white,
                    is_invisible=is_invisible,
                    is_level=runs_level(tm, cm),
                    is_scalable=not font or font.get("/Subtype") != "/Type3",
                )
            )

    page.extract_text(visitor_text=visit, visitor_operand_before=state)
    hidden = hidden_pieces(facts_of(page), pieces, draw)
    seen = [
        replace(piece, text="\n" * piece.text.count("\n")) if index in hidden else piece
        for index, piece in enumerate(pieces)
    ]
    if state.rules >= FEWEST_RULES or has_gaps(seen):
        seen = with_tables(seen, tables())
    kept = with_whole_rows(seen)
    text = normalise_characters("".join(piece.text for piece in kept))
    warnings = [report_of(pieces, hidden)] if hidden else []
    pictures = large_pictures(page, state.drawn) if state.drawn else []
    return RawPage(text, styles=line_styles(kept), warnings=warnings, has_hidden=bool(hidden), pictures=pictures)


def large_pictures(
    page: pypdf.PageObject, drawn: Sequence[tuple[str, tuple[float, ...]]]
) -> list[tuple[float, float, float, float]]:
    """Where the pictures of a page stand that are large enough to hold text."""
    found = []
    try:
        box = page.mediabox
        edges = (float(box.left), float(box.bottom), float(box.right), float(box.top))
        objects = page["/Resources"]["/XObject"]  # type: ignore[index]
        for name, (a, b, c, d, e, f) in drawn:
            item = objects[name].get_object() if name in objects else {}
            pixels = int(item.get("/Width", 0)) * int(item.get("/Height", 0))
            if item.get("/Subtype") == "/Image" and is_large((a, b, c, d, e, f), pixels, edges):
                xs, ys = (e, e + a, e + c, e + a + c), (f, f + b, f + d, f + b + d)
                found.append((min(xs), min(ys), max(xs), max(ys)))
    except (Exception, RecursionError):
        return []
    return found


def has_gaps(pieces: Sequence[TextPiece]) -> bool:
    """Whether several lines have a gap in them as between columns."""
    gaps = set()
    before: TextPiece | None = None
    for piece in pieces:
        if not piece.text.strip():
            continue
        if before is not None and abs(before.y - piece.y) < 0.2 * max(piece.size, 1.0):
            # Letters are taken to be wide: of a row of a table some cells are short.
            right = before.x + 0.62 * before.size * len(before.text.strip())
            if piece.x - right > max(piece.size, 4.0):
                gaps.add(round(piece.y))
                if len(gaps) >= FEWEST_GAPS:
                    return True
        before = piece
    return False


def with_tables(pieces: Sequence[TextPiece], tables: Sequence[PageTable]) -> list[TextPiece]:
    """The pieces with each table as rows in the place of its first piece.

    Only where both engines see the same letters in it: so nothing is lost, and nothing that was left out comes back.
    """
    found = list(pieces)
    for table in tables:
        left, bottom, right, top = table.box
        inside = [
            index
            for index, piece in enumerate(found)
            if piece.text.strip() and left - 4 <= piece.x <= right + 4 and bottom - 1 <= piece.y <= top + 1
        ]
        held, wanted = (
            Counter("".join(normalise_characters(text).split()))
            for text in ("".join(found[index].text for index in inside), table.source)
        )
        if not inside or (held & wanted).total() < SAME_LETTERS * max(held.total(), wanted.total()):
            continue
        begins = all(not piece.text or piece.text.endswith("\n") for piece in found[max(0, inside[0] - 1) : inside[0]])
        text = ("" if begins else "\n") + "\n".join(table.lines()) + "\n\n"
        for index in inside:
            found[index] = replace(found[index], text="")
        found[inside[0]] = replace(found[inside[0]], text=text, is_bold=False)
    return found


def runs_level(tm: Any, cm: Any) -> bool:
    """Whether text under these matrices runs from left to right."""
    across, up = tm[0] * cm[0] + tm[1] * cm[2], tm[0] * cm[1] + tm[1] * cm[3]
    return bool(across > 0 and abs(up) < across * 0.01)


def with_whole_rows(pieces: Iterable[TextPiece]) -> list[TextPiece]:
    """The pieces with line ends only where a line ends: cells that are drawn one by one stay in their row."""
    joined: list[TextPiece] = []
    last = -1  # the last piece with visible text
    for piece in pieces:
        if piece.text.strip():
            before = joined[last] if last >= 0 else None
            if before is not None and goes_on(before, piece):
                joined[last:] = [replace(part, text=part.text.replace("\n", " ")) for part in joined[last:]]
            last = len(joined)
        joined.append(piece)
    return joined


def goes_on(before: TextPiece, piece: TextPiece) -> bool:
    """Whether a piece stands to the right of the one before, on the same line."""
    return (
        before.text.endswith("\n")
        and "\n" not in before.text.strip()
        and before.is_level
        and piece.is_level
        and abs(before.y - piece.y) <= 0.2 * max(piece.size, before.size, 1.0)
        and piece.x > before.x + 0.2 * before.size * len(before.text.strip())
    )


def line_styles(pieces: Sequence[TextPiece]) -> dict[str, Style]:
    """Styles by line, for lines short enough to be headings and, for the body's size, the others cut short."""
    styles: dict[str, Style] = {}
    line, size, longest, is_bold = "", 0.0, 0, True
    for piece in pieces:
        for index, part in enumerate(piece.text.split("\n")):
            if index:
                content = normalise_characters(line)
                if content:
                    styles.setdefault(content, Style(size, is_bold))
                line, size, longest, is_bold = "", 0.0, 0, True
            visible = len(part.strip())
            if visible:
                line += part
                is_bold = is_bold and piece.is_bold
                if visible > longest:
                    size, longest = piece.size, visible
            else:
                line += part
    content = normalise_characters(line)
    if content:
        styles.setdefault(content, Style(size, is_bold))
    return styles


def has_fonts(page: pypdf.PageObject) -> bool:
    try:
        resources = page.get("/Resources")
        return bool(resources and resources.get_object().get("/Font"))
    except (Exception, RecursionError):
        return True

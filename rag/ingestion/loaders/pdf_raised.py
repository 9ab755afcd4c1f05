"""Find superscripts and subscripts on a PDF page, and convert them to plain text. Runs in the sandbox.

A PDF does not mark superscripts. They are recognised by their smaller size and their position above the baseline, next
to normal letters. Typst is an exception: superscripts have the normal font size, but smaller glyphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rag.ingestion.loaders.characters import SPACES
from rag.ingestion.loaders.page_text import Style
from rag.ingestion.loaders.pdf_objects import TextObject
from rag.ingestion.loaders.pdf_words import LINE_END, PlacedWord
from rag.ingestion.loaders.raised import (
    LOOKED_AT,
    PART_MARKS,
    Notes,
    lowered,
    lowered_part,
    notes_below,
    raised,
    raised_part,
    with_small_parts,
)

#: The smallest and largest distance raised or lowered, in sizes of the neighbouring letters.
LEAST_RAISED, MOST_RAISED = 0.18, 0.75
LEAST_LOWERED, MOST_LOWERED = 0.06, 0.5
#: The smallest and largest size of small letters, in sizes of their neighbours.
SMALLEST, LARGEST = 0.4, 0.93
#: The largest gap between small letters and their neighbours, in sizes of the neighbours.
FARTHEST = 0.6
FRACTION = re.compile(r"\d{1,3}\s*[/⁄]\s*\d")
DIVIDED = re.compile(r"\d\s*[/⁄]\s*\Z")
#: Where fonts draw raised and lowered figures, and their largest height, in letter sizes.
RAISED_FROM, LOWERED_TO, HIGHEST = 0.25, 0.4, 0.55
#: Longer runs of small letters are no mark, unit or number.
MOST_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class SmallRun:
    """Consecutive superscript or subscript characters, by start and (exclusive) end in the page's text."""

    start: int
    end: int
    is_raised: bool
    #: A number in a fraction, as in 2 1/2.
    is_fraction: bool = False

    def describe(self, before: str, part: str) -> tuple[str, bool]:
        """Convert the run to text ("10³", "CO₂"). Also returns whether the run is a footnote reference."""
        if self.is_fraction:
            return f"{' ' if before[-1:].isdigit() else ''}{part}", False
        return raised(before, part) if self.is_raised else (lowered(part), False)


def set_on_lines(texts: dict[int, TextObject]) -> dict[int, bool]:
    """Move superscript and subscript text objects to the baseline.

    Returns a dict from addresses to `True` for superscripts and `False` for subscripts.
    """
    is_raised_by_address: dict[int, bool] = {}
    neighbour: TextObject | None = None
    #: The previous piece, which may be a mark at the start of its line.
    waiting: tuple[int, TextObject] | None = None
    for address, item in list(texts.items()):
        if item.box[2] - item.box[0] < 0.01:
            continue
        if (
            waiting is not None
            and waiting[1].size < LARGEST * item.size
            and _is_raised(waiting[1], item, is_before=True)
        ):
            # Only a mark comes before its line, never a lowered letter.
            is_raised_by_address[waiting[0]] = True
            texts[waiting[0]] = _set_on(waiting[1], item)
        waiting = None
        # Nearly all pieces have the same size and are excluded quickly.
        is_smaller = neighbour is not None and item.size < LARGEST * (neighbour.line_size or neighbour.size)
        is_raised = _is_raised(item, neighbour) if neighbour is not None and is_smaller else None
        if neighbour is not None and is_raised is not None:
            is_raised_by_address[address] = is_raised
            # The next small piece is compared with the same line.
            item = texts[address] = _set_on(item, neighbour)
        else:
            waiting = address, item
        neighbour = item
    return is_raised_by_address


def _set_on(item: TextObject, line: TextObject) -> TextObject:
    return replace(item, y=line.y, line_size=line.line_size or line.size, is_small=True)


def _is_raised(item: TextObject, neighbour: TextObject, *, is_before: bool = False) -> bool | None:
    """Compare a text object with the neighbour. Returns `True` for superscript, `False` for subscript, else `None`."""
    size = neighbour.line_size or neighbour.size
    if not (item.is_level and neighbour.is_level and SMALLEST * size <= item.size <= LARGEST * size):
        return None
    gap = neighbour.box[0] - item.box[2] if is_before else item.box[0] - neighbour.box[2]
    if not -0.3 * size < gap < FARTHEST * size or item.box[2] - item.box[0] > MOST_CHARACTERS * item.size:
        return None
    rise = (item.y - neighbour.y) / size
    if LEAST_RAISED <= rise <= MOST_RAISED:
        return True
    return False if LEAST_LOWERED <= -rise <= MOST_LOWERED else None


def drawn_small(texts: dict[int, TextObject]) -> dict[int, bool]:
    """Find small glyphs in the normal font size, above (`True`) or below (`False`) a line's middle, by address.

    They may be superscript or subscript digits, for which the font has separate glyphs.
    """
    is_raised_by_address: dict[int, bool] = {}
    for address, item in texts.items():
        left, bottom, right, top = item.box
        if (
            not item.is_level
            or not 0 < right - left < MOST_CHARACTERS * item.size
            or top - bottom > HIGHEST * item.size
        ):
            continue
        if bottom - item.y > RAISED_FROM * item.size:
            is_raised_by_address[address] = True
        elif bottom < item.y - 0.05 * item.size and top - item.y < LOWERED_TO * item.size:
            is_raised_by_address[address] = False
    return is_raised_by_address


def small_runs(
    text: str,
    placed: dict[int, bool],
    span_of: Callable[[int], tuple[int, int]],
    characters: Sequence[str],
    drawn: dict[int, bool],
) -> list[SmallRun]:
    """Return the runs of superscript and subscript characters. Adjacent pieces are joined.

    `span_of(address)` returns a piece's start and end in the text. Only digits are used from `drawn`.
    """
    runs: list[SmallRun] = []
    pieces = [(*span_of(address), is_raised) for address, is_raised in placed.items()]
    for address, is_raised in drawn.items():
        start, end = (0, 0) if address in placed else span_of(address)
        if text[start:end].strip().isdecimal() and start and not text[start - 1].isspace():
            pieces.append((start, end, is_raised))
    for start, end, is_raised in sorted(pieces):
        run_text = text[start:end].rstrip()
        end = start + len(run_text)
        if not run_text.strip() or len(run_text) > MOST_CHARACTERS or not "".join(characters[start:end]).strip():
            continue
        if runs and runs[-1].end == start and runs[-1].is_raised == is_raised:
            start = runs.pop().start
        number = FRACTION.match(text, start) if is_raised else DIVIDED.search(text[max(0, start - LOOKED_AT) : start])
        runs.append(SmallRun(start, end, is_raised, is_fraction=number is not None))
    return [run for run in runs if run.end - run.start <= MOST_CHARACTERS]


def mark_runs(characters: list[str], runs: Sequence[SmallRun]) -> None:
    """Replace superscripts and subscripts in a page's text by placeholders, which `written_lines` resolves."""
    for run in runs:
        run_text = "".join(characters[run.start : run.end]).strip()
        if run.is_fraction:
            part, _ = run.describe("".join(characters[max(0, run.start - 1) : run.start]), run_text)
        else:
            part = raised_part(run_text) if run.is_raised else lowered_part(run_text)
        characters[run.start : run.end] = [part, *[""] * (run.end - run.start - 1)]


def with_small_characters(words: Sequence[PlacedWord], text: str, runs: Sequence[SmallRun]) -> list[PlacedWord]:
    """Insert superscripts and subscripts into table cells' words. A footnote reference stays in the cell."""
    changed = list(words)
    for number, placed in enumerate(words):
        # If some letters of a word were not found, the letters have no known places.
        inside = [run for run in runs if placed.start <= run.start and run.end <= placed.end]
        if not inside or len(placed.word.text) != placed.end - placed.start:
            continue
        characters = list(placed.word.text)
        for run in inside:
            start, end = run.start - placed.start, run.end - placed.start
            before = LINE_END.split(text[: run.start])[-1][-LOOKED_AT:]
            piece, is_mark = run.describe(before, "".join(characters[start:end]))
            characters[start:end] = [f" {piece}" if is_mark and start else piece, *[""] * (end - start - 1)]
        changed[number] = replace(placed, word=replace(placed.word, text="".join(characters)))
    return changed


class _PageNotes(Notes):
    """The references to a page's footnotes. The footnotes' texts stay at the bottom of the page."""

    def add_line(self, mark: str, text: str) -> None:
        pass


def written_lines(lines: Sequence[str], styles: dict[str, Style]) -> tuple[list[str], dict[str, Style]]:
    """Convert placeholders for superscripts and subscripts to text, and move footnote references to the end of the
    sentence.

    Returns the lines, and the styles by line text.
    """
    if not any(PART_MARKS.search(line) for line in lines):
        return list(lines), styles
    notes = _PageNotes()
    rewritten: list[str] = []
    for group in _group_continued(lines):
        if "\n" in group[0]:
            rewritten.append(notes_below(group[0], notes, is_in_place=True))
            continue
        sentences = "\n".join(SPACES.sub(" ", with_small_parts(line, notes)) for line in group)
        rewritten += notes.placed(sentences, is_wrapped=True)[0].split("\n")
    changed = dict(zip(lines, rewritten, strict=True))
    return rewritten, {changed.get(line, line): style for line, style in styles.items()}


def _group_continued(lines: Sequence[str]) -> Iterator[list[str]]:
    """Group each line with the following lines which continue the sentence in lower case.

    An item with line breaks is a table, and a separate group.
    """
    group: list[str] = []
    for line in lines:
        if group and ("\n" in line or "\n" in group[-1] or not (line[:1].islower() and group[-1])):
            yield group
            group = []
        group.append(line)
    if group:
        yield group

"""Text that Tesseract found, from its words and their places: tables as rows with the heads of their columns."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from rag.ingestion.loaders.page_tables import PageTable, Rules, Word, tables_among

#: What Tesseract's table of words begins with.
FIRST_COLUMN = "level\t"
#: Ruling lines that were read as letters.
FRAME = re.compile(r"[|\[\]_—–=-]+")
#: The most between the rows of a table in heights of its letters: pictures pad their cells, and the boxes of what
#: was recognised end at the ink.
ROW_GAP = 5.0
#: Scripts written without spaces between words.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True)
class Line:
    """A line as Tesseract made it up, with the paragraph it belongs to."""

    paragraph: tuple[str, str]
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        text = ""
        for word in self.words:
            is_joined = not text or (UNSPACED.match(text[-1]) and UNSPACED.match(word.text[:1]))
            text += word.text if is_joined else f" {word.text}"
        return text


def text_of(output: str, scale: float) -> str:
    """The text of a page from Tesseract's output; `scale` is how many of its pixels make a point.

    What is no table of words is text already.
    """
    if not output.startswith(FIRST_COLUMN):
        return output
    lines = _lines(output, scale)
    tables = tables_among([word for line in lines for word in line.words], Rules((), ()), row_gap=ROW_GAP)
    said: list[str] = []
    shown: set[int] = set()
    paragraph: tuple[str, str] | None = None
    for line in lines:
        place = next((n for n, table in enumerate(tables) if _is_in(line, table)), None)
        if place is None:
            if said and paragraph not in (None, line.paragraph):
                said.append("")
            said.append(line.text)
            paragraph = line.paragraph
        elif place not in shown:
            shown.add(place)
            said += ["", *tables[place].lines(), ""]
            paragraph = None
    return re.sub(r"\n{3,}", "\n\n", "\n".join(said)).strip("\n")


def _lines(output: str, scale: float) -> list[Line]:
    """The lines in Tesseract's order; the words of one stand at one height, as the line does."""
    by_line: dict[tuple[str, str, str], list[Word]] = {}
    for row in csv.DictReader(output.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        text = (row.get("text") or "").strip()
        if row["level"] != "5" or not text:
            continue
        left, top, width, height = (int(row[name]) / scale for name in ("left", "top", "width", "height"))
        key = (row["block_num"], row["par_num"], row["line_num"])
        by_line.setdefault(key, []).append(Word(text, (left, -top - height, left + width, -top)))
    found = []
    for key, words in by_line.items():
        # A ruling line beside the words is as tall as the row.
        letters = [word for word in words if not FRAME.fullmatch(word.text)] or words
        bottom, top = min(word.box[1] for word in letters), max(word.box[3] for word in letters)
        found.append(Line(key[:2], tuple(Word(w.text, (w.box[0], bottom, w.box[2], top)) for w in letters)))
    return found


def _is_in(line: Line, table: PageTable) -> bool:
    left, bottom, right, top = table.box
    is_beside = all(left - 1 <= word.box[0] and word.box[2] <= right + 1 for word in line.words)
    return is_beside and bottom <= line.words[0].middle <= top

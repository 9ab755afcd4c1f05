"""Convert spans of a text to chunks, with pages and section."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from rag.text.tables import Table, are_heads, tables_in
from rag.types import Chunk, Page, Section

#: Start and end in characters of the joined text, end exclusive.
Span = tuple[int, int]
#: Separates headings in a section path.
PATH_SEPARATOR = " › "
#: Longer table heads are not repeated in each chunk, in characters.
LONGEST_HEADS = 300
NOTHING: Mapping[str, Any] = {}


class HasText(Protocol):
    """A page with a text, either just extracted or read from the database."""

    @property
    def text(self) -> str: ...


class Piece(NamedTuple):
    """A text span (start and end), with metadata from the chunker."""

    start: int
    end: int
    metadata: Mapping[str, Any] = NOTHING
    #: Put before the chunk's text if the text alone means little.
    before: str = ""


def chunks_from_spans(
    pages: Sequence[Page],
    sections: Sequence[Section],
    spans: Iterable[Span | Piece],
    *,
    text: str | None = None,
    is_exact: bool = False,
) -> list[Chunk]:
    """Convert spans to chunks without surrounding whitespace. Spans without new text are skipped.

    A chunk which starts inside a table begins with the table's column headings. With `is_exact`, spans without new text
    are kept, and no headings are added.
    """
    text = join_pages(pages) if text is None else text
    starts = page_starts(pages)
    numbers = [page.number for page in pages]
    only_page = numbers[0] if len(pages) == 1 else None
    ordered = sorted(sections, key=lambda section: section.start)
    paths = section_paths(ordered)
    section_starts = [section.start for section in ordered]
    chunks: list[Chunk] = []
    covered = 0
    heads = _ColumnHeadings(text)
    for span in spans:
        start, end = span[0], span[1]
        content = text[start:end]
        length = len(content)
        content = content.lstrip()
        start += length - len(content)
        content = content.rstrip()
        end = start + len(content)
        if not content or (chunks and end <= covered and not is_exact):
            continue  # blank or already covered
        piece = span if isinstance(span, Piece) else None
        content = content if is_exact else heads.above(start) + content
        chunks.append(
            Chunk(
                index=len(chunks),
                content=f"{piece.before}\n\n{content}" if piece and piece.before else content,
                first_page=only_page or numbers[bisect_right(starts, start) - 1],
                last_page=only_page or numbers[bisect_right(starts, end - 1) - 1],
                start=start,
                end=end,
                section=_section_of(max(start, covered), end, section_starts, paths) if paths else "",
                metadata=piece.metadata if piece else NOTHING,
            )
        )
        covered = end
    return chunks


class _ColumnHeadings:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tables = [table for table in tables_in(text) if table.heads is not None]
        self._starts = [table.rows[0].start for table in self._tables]
        #: By table, because a long table has many chunks.
        self._lines: dict[int, str] = {}

    def above(self, start: int) -> str:
        """Return the column headings on a line if the position `start` is inside a table, else ""."""
        index = bisect_right(self._starts, start) - 1
        if index < 0 or start >= self._tables[index].end:
            return ""
        if index not in self._lines:
            self._lines[index] = self._line_of(self._tables[index])
        return self._lines[index]

    def _line_of(self, table: Table) -> str:
        heads = table.heads
        if heads is None or heads.end - heads.start > LONGEST_HEADS:
            return ""
        # Heads like "01/2026" are recognised by the ruled line below.
        is_plain = are_heads(heads.cells, [row.cells for row in table.rows])
        rule = "" if is_plain else " | ".join(["---"] * len(heads.cells)) + "\n"
        return f"{self._text[heads.start : heads.end].strip()}\n{rule}"


def join_pages(pages: Sequence[HasText]) -> str:
    """Join the texts of a document's pages with a newline."""
    return "\n".join(page.text for page in pages)


def page_starts(pages: Sequence[HasText]) -> list[int]:
    """Return the start of each page in the joined text."""
    starts = [0]
    for page in pages[:-1]:
        starts.append(starts[-1] + len(page.text) + 1)
    return starts


def parts_between(places: Iterable[int], stop: int) -> list[Span]:
    """Split the range from 0 to `stop` at the positions `places`."""
    return list(pairwise(sorted({0, stop, *(place for place in places if 0 < place < stop)}))) or [(0, stop)]


def breaks_of(sections: Sequence[Section]) -> list[int]:
    """Return the starts of the sections before which a chunk may end.

    A section directly below a different heading is left out, to keep both headings together.
    """
    breaks: list[int] = []
    bare_until = -1
    for section in sorted(sections, key=lambda section: section.start):
        if section.start > bare_until:
            breaks.append(section.start)
        bare_until = section.start + len(section.title) + 2
    return breaks


def section_paths(sections: Sequence[Section]) -> list[str]:
    """Return each section's path: the headings above, then the section's heading."""
    paths = []
    above: list[Section] = []
    for section in sections:
        while above and above[-1].level >= section.level:
            above.pop()
        above.append(section)
        paths.append(PATH_SEPARATOR.join(item.title for item in above))
    return paths


def _section_of(start: int, end: int, starts: Sequence[int], paths: Sequence[str]) -> str:
    first = bisect_right(starts, start) - 1
    last = bisect_right(starts, end - 1) - 1
    best, longest = "", 0
    for index in range(first, last + 1):
        begin = max(start, starts[index]) if index >= 0 else start
        until = min(end, starts[index + 1]) if index + 1 < len(starts) else end
        if until - begin > longest:
            longest = until - begin
            best = paths[index] if index >= 0 else ""
    return best

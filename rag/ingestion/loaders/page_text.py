"""Clean the text on PDF pages: characters, repeated lines, hyphens, blank space.

Repeated lines are only known after the last page. Until then, `RawPages` keeps the pages compressed.
"""

from __future__ import annotations

import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import astuple, dataclass, field
from functools import reduce

from rag.ingestion.loaders.page_marks import around
from rag.ingestion.loaders.page_tables import PageTable
from rag.language import N_
from rag.types import MOST_MARKS, Page, PageMark

BLANK_LINES = re.compile(r"\n{3,}")
BROKEN_WORD = re.compile(r"(?<![^\W\d_])([^\W\d_]{2,}+)[-\u2010]\n([^\W\d_]+)")
COMPOUND = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,}+-[^\W\d_]+")
NUMBERS = re.compile(r"\d+")
#: A line with only a page number: "7", "- 7 -", "Page 7 of 12", "7 / 12", "Pagina 7", "7쪽".
PAGE_NUMBER = re.compile(
    r"[-–—|\s]*(?:p(?:age|agina|ágina)?\.?|seite|side|strana|sayfa|쪽|페이지|第)?\s*\d{1,4}\s*"
    r"(?:(?:/|of|von|van|de|sur|di)\s*\d{1,4}|쪽|페이지|页|頁|ページ)?[-–—|\s]*",
    re.IGNORECASE,
)
#: Headings which count like pages if each starts a page.
COUNTED_HEADING = re.compile(
    r"(chapter|section|part|article|annex|appendix|module|unit|week|day|hoofdstuk|artikel|deel|bijlage|kapitel|abschnitt"
    r"|teil|anlage|chapitre|partie|annexe|capítulo|parte|anexo|capitolo|bölüm|제|第)\b|[제第]\s?\d",
    re.IGNORECASE,
)
#: Lines at the top and bottom of a page which may be running heads.
EDGE_LINES = 3
#: Fewer pages than this show no reliable repetition.
FEWEST_PAGES = 3

#: Warning for a page with struck text.
STRUCK_TEXT = "Struck-through text was left out: “{text}”."
#: Warning for a page whose text is incomplete according to a second count.
UNREAD_TEXT = ("1 character of the text was not read.", "{count} characters of the text were not read.")
UNREAD_PICTURES = (
    "1 picture may contain text that was not read.",
    "{count} pictures may contain text that was not read.",
)
#: Warning for a page with columns in an uncertain order.
UNSURE_ORDER = (
    "Columns of text stand side by side on this page, so their order is uncertain. Compare the text with the page."
)
#: Warnings for files inside a file, and how many are named.
UNREAD_ATTACHMENTS = (
    "This file has 1 attachment that was not read: {names}.",
    "This file has {count} attachments that were not read: {names}.",
)
#: Remark on attached files with documents in the library.
SEPARATE_ATTACHMENTS = (
    "The attached file was added as a separate document: {names}.",
    "{count} attached files were added as separate documents: {names}.",
)
MOST_NAMED = 10
#: Warning for an empty page.
BLANK_PAGE = "This page is blank."
#: Warning for a page with text and a large picture which seems to hold text too.
PICTURED_PAGE = "A large picture on this page may contain text that was not read. Text recognition can read it."

#: Characters beyond ASCII and the common Latin letters; only text with them is examined more closely.
UNUSUAL = re.compile(r"[^\x00-\x7f‘’“”–—…•€™]")
LATIN_SYMBOLS = re.compile(r"[¡-¦¨ª¬¯±-¶¸-º¼-¾×÷]")  # without the signs used in sentences: « » § ° © ® · ¿
#: Scripts which share words: Japanese uses three, and Latin letters occur in any text.
CJK = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "KATAKANA-HIRAGANA"})


def shortened(text: str, longest: int = 120) -> str:
    """Return a text's beginning, for use in a warning."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def attachment_remarks(names: Sequence[str], separate_files: Set[str]) -> list[str]:
    """Return remarks about attached files: unread files, and separately stored files (`separate_files`)."""
    unread = [name for name in names if name not in separate_files]
    documents = [name for name in names if name in separate_files]
    return [
        sentences[len(named) > 1].format(count=f"{len(named):,}", names=_list_names(named))
        for sentences, named in ((UNREAD_ATTACHMENTS, unread), (SEPARATE_ATTACHMENTS, documents))
        if named
    ]


def _list_names(names: Sequence[str]) -> str:
    named = [shortened(" ".join(name.split()), 80) or "?" for name in names[:MOST_NAMED]]
    return ", ".join(named) + (", …" if len(names) > MOST_NAMED else "")


def letters_in(text: str) -> str:
    """Return only the letters and digits in a text, normalised, to compare two extractions."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text)))


def unreadable_reason(text: str) -> str:
    """Return why a text probably differs from the visible page, or "" if the text seems right.

    Signs of a wrong encoding are undefined characters, Latin symbols instead of letters, words which mix scripts, and
    accents without a letter.
    """
    unusual = UNUSUAL.findall(text)
    if not unusual:
        return ""
    visible = len("".join(text.split())) or 1
    categories = Counter(unicodedata.category(c) for c in unusual)
    undefined = categories["Co"] + categories["Cn"] + categories["Cs"] + text.count("\ufffd")
    if undefined / visible > 0.05:
        return N_("holds characters without a meaning")
    if len(LATIN_SYMBOLS.findall(text)) / visible > 0.12:
        return N_("is in a character encoding that the file does not name")
    if categories["Mn"] and _stray_accents(text) / visible > 0.05:
        return N_("has accents without letters")
    if len(unusual) / visible > 0.1 and _mixed_fraction(text) > 0.15:
        return N_("mixes scripts within its words")
    return ""


def _stray_accents(text: str) -> int:
    stray = 0
    previous = " "
    for character in text:
        if "\u0300" <= character <= "\u036f":
            stray += not previous.isalpha()
        else:
            previous = character
    return stray


def _mixed_fraction(text: str) -> float:
    looked_at = mixed = 0
    for word in text.split()[:2000]:
        if not UNUSUAL.search(word):
            continue
        scripts = {unicodedata.name(c, "?").split(" ")[0] for c in word if c.isalpha()}
        if not scripts:
            continue
        looked_at += 1
        scripts -= {"LATIN", "FULLWIDTH", "MODIFIER", "FEMININE", "MASCULINE", "MICRO", "HALFWIDTH"}
        mixed += len(scripts - CJK) + bool(scripts & CJK) > 1
    return mixed / looked_at if looked_at else 0.0


class RepeatedLines:
    """Finds running headers, footers and page numbers: lines at the top or bottom of many pages.

    Pages are added in order. A line is dropped if it is at the top or bottom of at least half the pages, either
    unchanged or with a single number which grows with the page number. A page with only repeated lines keeps them.
    """

    def __init__(self) -> None:
        self._pages = 0
        self._filled = 0
        self._seen: Counter[int] = Counter()  # by hash, because many pages have many edges

    def add(self, lines: Sequence[str]) -> None:
        """Add the next page's lines."""
        self._pages += 1
        edges = _outer_lines(lines)
        self._filled += bool(edges)
        self._seen.update({hash(shape) for position in edges for shape in _line_keys(lines[position], self._pages)})

    def without(self, number: int, lines: Sequence[str]) -> list[str]:
        """Return a page's lines without repeated lines. Pages are numbered from 1, and all must have been added."""
        dropped = self.dropped(number, lines)
        return [line for position, line in enumerate(lines) if position not in dropped]

    def dropped(self, number: int, lines: Sequence[str]) -> Set[int]:
        """Return the positions of repeated lines on a page."""
        if self._pages < FEWEST_PAGES:
            return set()
        dropped = {
            position
            for position in _outer_lines(lines)
            if self._repeats(lines[position], number) and not _is_row(lines, position)
        }
        return dropped if any(line for position, line in enumerate(lines) if position not in dropped) else set()

    def _repeats(self, line: str, number: int) -> bool:
        # A page number may be missing on title pages and begin again in an appendix.
        needed = max(2, self._filled / 4) if _is_number(line) else max(FEWEST_PAGES, self._filled / 2)
        return max(self._seen[hash(shape)] for shape in _line_keys(line, number)) >= needed


def _is_row(lines: Sequence[str], position: int) -> bool:
    # Empty cells at the ends of a line have lost their blanks.
    counts = [f" {line} ".count(" | ") for line in lines[max(0, position - 1) : position + 2]]
    cell_count = counts[min(position, 1)]
    return cell_count > 0 and counts.count(cell_count) > 1


def _outer_lines(lines: Sequence[str]) -> list[int]:
    filled = [index for index, line in enumerate(lines) if line]
    return list(dict.fromkeys((*filled[:EDGE_LINES], *filled[-EDGE_LINES:])))


def _line_keys(line: str, page: int) -> list[str]:
    """Return keys by which a header or footer line is recognised on different pages.

    The keys are the line in lower case, and a variant for each number in the line, with the number replaced by the
    difference from the page number.
    """
    folded = line.casefold()
    shapes = [] if _is_number(line) else [folded]
    if COUNTED_HEADING.match(folded):
        return shapes or [folded]
    shapes.extend(
        f"{folded[: match.start()]}<{int(match[0]) - page}>{folded[match.end() :]}"
        for match in list(NUMBERS.finditer(folded))[:4]
        if len(match[0]) < 6
    )
    return shapes or [folded]


def _is_number(line: str) -> bool:
    return len(line) <= 30 and PAGE_NUMBER.fullmatch(line) is not None


def joined_lines(lines: Sequence[str], compounds: frozenset[str]) -> str:
    """Join a page's lines: rejoin words broken at a hyphen, and reduce blank space to paragraph breaks.

    `compounds` are words which have a hyphen within a line elsewhere in the document. These words keep their hyphen.
    """

    def join(match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        if second[0].isupper() or f"{first}-{second}".casefold() in compounds:
            return f"{first}-{second}"
        return first + second

    text = BLANK_LINES.sub("\n\n", "\n".join(lines)).strip("\n ")
    return BROKEN_WORD.sub(join, text) if "-\n" in text or "\u2010\n" in text else text


def compounds_in(text: str) -> set[str]:
    """Find words with a hyphen within a line. This hyphen must be intended."""
    return {word.casefold() for word in COMPOUND.findall(text)}


@dataclass(frozen=True)
class Style:
    """The style of a line: size in points, and whether the whole line is bold."""

    size: float
    is_bold: bool


@dataclass(frozen=True)
class StyledPage:
    """A page's final text, and the style of each line, by the line's text."""

    number: int
    text: str
    styles: dict[str, Style]


@dataclass
class RawPage:
    """A page as read by pdfium or pypdf, before cleaning."""

    text: str
    styles: dict[str, Style] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    has_hidden: bool = False
    #: Boxes of large pictures: left, bottom, right, top.
    pictures: list[tuple[float, float, float, float]] = field(default_factory=list)
    #: The last table on the page, which may continue on the next.
    last_table: PageTable | None = None
    #: `None` if the places are unknown.
    marks: list[PageMark] | None = None
    #: The boxes of lines as shares of the page, by position in the text.
    line_places: dict[int, tuple[float, float, float, float]] = field(default_factory=dict)


#: zlib's fastest level: a page with 2,000 characters and its styles takes about a kilobyte and a tenth of a
#: millisecond.
FASTEST = 1


class RawPages:
    """Collects the raw pages in order, and yields the clean pages at the end."""

    def __init__(self) -> None:
        self.has_text = False
        self._packed: list[bytes] = []
        self._repeated = RepeatedLines()
        self._compounds: set[str] = set()
        self._sizes: Counter[float] = Counter()

    def add(self, page: RawPage) -> None:
        """Add the next page."""
        self.has_text = self.has_text or bool(page.text.strip())
        self._repeated.add(page.text.split("\n"))
        self._compounds |= compounds_in(page.text)
        for line, style in page.styles.items():
            self._sizes[round(style.size, 1)] += len(line)
        styles = [(line, style.size, style.is_bold) for line, style in page.styles.items()]
        marks = None if page.marks is None else [astuple(mark) for mark in page.marks]
        packed = (page.text, styles, page.warnings, marks, list(page.line_places.items()))
        self._packed.append(zlib.compress(json.dumps(packed).encode(), FASTEST))

    @property
    def body_size(self) -> float:
        """Return the font size of most characters in points, or 0 if sizes are unknown."""
        return self._sizes.most_common(1)[0][0] if self._sizes else 0.0

    def finished(
        self,
        labels: Sequence[str],
        first_warnings: Sequence[str],
        headings: Callable[[StyledPage], Sequence[Sequence[str]]],
    ) -> Iterator[tuple[Page, StyledPage]]:
        """Yield each clean page, and the lines' styles. A page has the printed page number (label) and marks (boxes).

        The first page also gets `first_warnings`. `headings` finds the headings on a page; each is a list of lines.
        """
        compounds = frozenset(self._compounds)
        for number, packed in enumerate(self._packed, 1):
            raw, styles, warnings, marks, places = json.loads(zlib.decompress(packed))
            lines = raw.split("\n")
            dropped = self._repeated.dropped(number, lines)
            remaining = {position: line for position, line in enumerate(lines) if position not in dropped}
            text = joined_lines(list(remaining.values()), compounds)
            styled = StyledPage(number, text, {line: Style(size, is_bold) for line, size, is_bold in styles})
            label = labels[number - 1] if labels else ""
            page_marks = None
            if marks is not None:
                at = dict(places)
                page_marks = [PageMark(*mark) for mark in marks]
                page_marks += [PageMark("left out", *at[position]) for position in sorted(dropped) if position in at]
                by_line = {line: at[position] for position, line in reversed(remaining.items()) if position in at}
                for heading in headings(styled):
                    if boxes := [by_line[line] for line in heading if line in by_line]:
                        page_marks.append(PageMark("heading", *reduce(around, boxes)))
            page = Page(
                number=number,
                text=text,
                method="text" if text.strip() else "none",
                label=label if label != str(number) else "",
                warnings=(*warnings, *(first_warnings if number == 1 else ())),
                marks=None if page_marks is None else tuple(page_marks[:MOST_MARKS]),
            )
            yield page, styled

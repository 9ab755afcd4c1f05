"""Read a PDF's properties with pypdf (outline, page labels, title, author, language, dates), and find the sections.

Sections follow the outline. Without an outline, a section starts at each line in larger or bolder type than the
surrounding text.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pypdf
from pypdf.generic import IndirectObject

from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.page_text import Style, StyledPage
from rag.types import Section

#: The longest line which may be a heading, in characters.
LONGEST_HEADING = 90
#: Size of a heading compared with the text.
LARGER = 1.12
#: More levels than this are useless to a reader.
LEVELS = 4
#: With more headings than this, they were detected wrongly.
MOST_SECTIONS = 2000
ENDS_LIKE_TEXT = re.compile(r"[.,;:!?。、，；：]$|\.{4,}|\. \. \.|…")
#: Articles and chapters of rules in Korean, Chinese, Japanese and German are headings whatever their style.
ARTICLE = re.compile(r"^(제\s?\d+\s?[조장절관편]|第[\d一二三四五六七八九十百]+[条章節节編编]|§\s?\d+\s)")


@dataclass(frozen=True)
class Heading:
    """A heading on a page: lines, rank (higher is more important), and start in the page's text."""

    lines: tuple[str, ...]
    rank: float
    start: int


def sections_by_style(pages: Iterable[StyledPage], body: float) -> tuple[Section, ...]:
    """Find sections by heading style. `body` is the text's font size in points.

    A section's start is a character position in the text of all pages, joined by line breaks.
    """
    headings: list[tuple[str, float, int, int]] = []
    start = 0
    for page in pages:
        headings += [
            (" ".join(heading.lines), heading.rank, page.number, start + heading.start)
            for heading in headings_by_style(page, body)
        ]
        start += len(page.text) + 1
    if len(headings) > MOST_SECTIONS:
        return ()
    ranks = sorted({item[1] for item in headings}, reverse=True)
    levels = {rank: min(level, LEVELS) for level, rank in enumerate(ranks, 1)}
    return tuple(
        Section(title=title, level=levels[rank], page=number, start=position)
        for title, rank, number, position in headings
    )


def headings_by_style(page: StyledPage, body: float) -> list[Heading]:
    """Find a page's headings by font size and weight."""
    headings: list[Heading] = []
    position, previous_end = 0, -1
    for line in page.text.split("\n"):
        style = page.styles.get(line)
        rank = _rank(line, style, body)
        if rank:
            last = headings[-1] if headings else None
            is_set_alike = last is not None and last.rank == rank and style is not None
            if last and previous_end == position and _is_second_line(" ".join(last.lines), line, is_set_alike):
                headings[-1] = Heading((*last.lines, line), rank, last.start)
            else:
                headings.append(Heading((line,), rank, position))
            previous_end = position + len(line) + 1
        position += len(line) + 1
    return headings


def _is_second_line(heading: str, line: str, is_set_alike: bool) -> bool:
    return is_set_alike and line != heading and len(heading) + len(line) < LONGEST_HEADING


def _rank(line: str, style: Style | None, body: float) -> float:
    if not 2 <= len(line) <= LONGEST_HEADING or not re.search(r"[^\W\d_]{2}", line):
        return 0.0
    if ARTICLE.match(line) and not ENDS_LIKE_TEXT.search(line):
        return max(round(style.size * 2) / 2 if style else 0.0, 0.5)
    if style is None or not body or ENDS_LIKE_TEXT.search(line) or line[0].islower() or line[0] in "•-–*·○":
        return 0.0
    if style.size >= body * LARGER:
        return round(style.size * 2) / 2
    if style.is_bold and style.size >= body * 0.97 and len(line) <= 70:
        return round(body * 2) / 2
    return 0.0


def sections_by_outline(entries: Sequence[tuple[str, int, int]], texts: Iterable[str]) -> tuple[Section, ...]:
    """Make sections from outline entries (title, level, page from 1). A section starts at its title on the page."""
    titles: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for title, level, page in entries[:MOST_SECTIONS]:
        titles[page].append((title, level))
    sections = []
    start = 0
    for number, text in enumerate(texts, 1):
        for title, level in titles.get(number, ()):
            match = _title_in(text, title)
            offset = match.start() if match else 0
            sections.append(Section(title=title, level=min(level, LEVELS), page=number, start=start + offset))
        start += len(text) + 1
    return tuple(sorted(sections, key=lambda section: section.start))


def headings_by_outline(entries: Sequence[tuple[str, int, int]], page: StyledPage) -> list[tuple[str, ...]]:
    """Find the lines on a page which are titles in the outline."""
    headings = []
    for title in (title for title, _, number in entries[:MOST_SECTIONS] if number == page.number):
        if (match := _title_in(page.text, title)) is not None:
            first = page.text.rfind("\n", 0, match.start()) + 1
            headings.append(tuple(page.text[first : match.end()].split("\n")))
    return headings


def _title_in(text: str, title: str) -> re.Match[str] | None:
    return re.search(r"\s+".join(map(re.escape, title.split())), text, re.IGNORECASE)


#: `D:20240131094500+09'00'`; everything after the year is optional, and some programs omit the mark or the quotes.
PDF_DATE = re.compile(
    r"\s*(?:D:)?\s*(?P<year>(?:19|20)\d\d)(?P<month>\d\d)?(?P<day>\d\d)?(?P<hour>\d\d)?(?P<minute>\d\d)?"
    r"(?P<second>\d\d)?\s*(?P<zone>Z|[+-]\d\d(?:'?:?\d\d)?)?.*",
    re.DOTALL,
)
#: XMP is searched by its marks and not parsed as XML: its content is not worth the harm entities can do to a parser.
#: The pattern passes only a few tags around a value, so that the time grows only with the length.
XMP_LOOKED_AT = 200_000
XMP_VALUE = r"(?:{name}\s*=\s*[\"'](?P<attribute>[^\"'<>]*)|<{name}>(?:\s*+<[^<>]*+>){{0,8}}+\s*+(?P<element>[^<]+))"
LONGEST = 500


#: Start dates of clocks and reproducible builds (ReportLab: 2000). A model would read them as the day of the policy.
NO_DATES = ("1601-01-01", "1904-01-01", "1970-01-01", "1980-01-01", "2000-01-01T00:00:00")


@dataclass(frozen=True)
class PdfFacts:
    """A PDF's properties; "" for missing properties.

    Dates are in ISO 8601, without time if unknown. The language is a two-letter code.
    """

    title: str = ""
    author: str = ""
    language: str = ""
    created_at: str = ""
    modified_at: str = ""

    def metadata(self) -> dict[str, str]:
        """Return the dates, for the document's metadata. Placeholder dates written by programs are left out."""
        dates = {"file_created_at": self.created_at, "file_modified_at": self.modified_at}
        return {name: value for name, value in dates.items() if value and not value.startswith(NO_DATES)}


def facts_of(reader: pypdf.PdfReader) -> PdfFacts:
    """Read properties from the document information dictionary, else from the XMP metadata."""
    information, xmp = _information(reader), _xmp(reader)
    return PdfFacts(
        title=information.get("/Title") or _in_xmp(xmp, "dc:title"),
        author=information.get("/Author") or _in_xmp(xmp, "dc:creator"),
        language=_language(reader) or language_code(_in_xmp(xmp, "dc:language")),
        created_at=iso_date(information.get("/CreationDate", "")) or iso_date(_in_xmp(xmp, "xmp:CreateDate")),
        modified_at=iso_date(information.get("/ModDate", "")) or iso_date(_in_xmp(xmp, "xmp:ModifyDate")),
    )


def iso_date(text: str) -> str:
    """Convert a date from a PDF or XMP to ISO 8601. Returns "" for other text."""
    text = text.strip()[:60]
    if re.match(r"\d{4}-\d\d", text):
        return _iso_of_xmp(text)
    match = PDF_DATE.fullmatch(text)
    if match is None:
        return ""
    try:
        value = datetime(
            int(match["year"]),
            int(match["month"] or 1),
            int(match["day"] or 1),
            int(match["hour"] or 0),
            int(match["minute"] or 0),
            min(int(match["second"] or 0), 59),
            tzinfo=_zone(match["zone"]),
        )
    except ValueError:
        return ""
    return value.isoformat() if match["hour"] else value.date().isoformat()


def language_code(claimed: str) -> str:
    """Shorten a language tag to a two-letter code. Returns "" for other text."""
    match = re.match(r"[A-Za-z]{2}(?![A-Za-z])", claimed)
    return match[0].lower() if match else ""


def _iso_of_xmp(text: str) -> str:
    try:
        value = datetime.fromisoformat(f"{text}-01" if len(text) == len("2024-01") else text)
    except ValueError:
        return ""
    return value.isoformat() if "T" in text else value.date().isoformat()


def _zone(text: str | None) -> timezone | None:
    if not text:
        return None
    if text == "Z":
        return UTC
    digits = re.sub(r"\D", "", text)
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4] or 0))
    return timezone(-offset if text[0] == "-" else offset) if offset <= timedelta(hours=14) else None


def _information(reader: pypdf.PdfReader) -> dict[str, str]:
    entries: dict[str, str] = {}
    try:
        metadata: Mapping[str, Any] = reader.metadata or {}
    except (Exception, RecursionError):
        return entries
    for name in ("/Title", "/Author", "/CreationDate", "/ModDate"):
        try:
            entries[name] = str(metadata.get(name) or "")
        except (Exception, RecursionError):  # noqa: S112 - a broken entry is no reason to lose the others
            continue
    return entries


def _xmp(reader: pypdf.PdfReader) -> str:
    try:
        stream: Any = reader.root_object["/Metadata"]
        data = bytes(stream.get_data()[:XMP_LOOKED_AT])
    except (Exception, RecursionError, MemoryError):
        return ""
    return data.decode("utf-16" if data[:2] in (b"\xfe\xff", b"\xff\xfe") else "utf-8", "replace")


def _in_xmp(xmp: str, name: str) -> str:
    match = re.search(XMP_VALUE.format(name=name), xmp) if name in xmp else None
    return html.unescape(match["attribute"] or match["element"] or "").strip()[:LONGEST] if match else ""


def _language(reader: pypdf.PdfReader) -> str:
    try:
        return language_code(str(reader.root_object.get("/Lang", "")))
    except (Exception, RecursionError):
        return ""


def labels_of(reader: pypdf.PdfReader, page_count: int) -> list[str]:
    """Read the printed page numbers (page labels). Empty if the file has no labels."""
    try:
        labels = [str(label) for label in reader.page_labels]
    except (Exception, RecursionError):
        return []
    return labels if len(labels) == page_count else []


def outline_of(reader: pypdf.PdfReader) -> Iterator[tuple[str, int, int]]:
    """Yield each readable outline entry's title, level and page."""
    try:
        entries = reader.outline
        numbers = {
            page.indirect_reference.idnum: number
            for number, page in enumerate(reader.pages, start=1)
            if page.indirect_reference is not None
        }
    except (Exception, RecursionError):
        return
    waiting: list[tuple[Any, int]] = [(entry, 1) for entry in reversed(entries)]
    while waiting:
        entry, level = waiting.pop()
        if isinstance(entry, list):
            waiting.extend((child, level + 1) for child in reversed(entry))
            continue
        try:
            page = entry.raw_get("/Page") if "/Page" in entry else None
            title = " ".join(normalise_characters(str(entry.title)).split())
        except Exception:  # noqa: S112 - a broken entry is no reason to lose the others
            continue
        if title and isinstance(page, IndirectObject) and page.idnum in numbers:
            yield title[:200], level, numbers[page.idnum]

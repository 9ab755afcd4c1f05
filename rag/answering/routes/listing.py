"""List everything of one kind in the documents: headings, list items and table rows, each with its passage.

The kind is searched in the heading of tables' first columns, in section headings and in documents' titles. A matching
section heading gives the items, rows and sub-headings below; a matching title gives the document's outline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from rag.answering.groundedness import is_negated
from rag.answering.routes.documents import (
    Contents,
    NumberedPassages,
    OutlineSection,
    ReadableDocuments,
    WholeDocument,
    telling_sentence,
)
from rag.answering.routes.replies import QuotedReply, RouteReply, cell, say
from rag.answering.sentences import POINTS_BACK, units_of
from rag.retrieval.bm25.index import tokenize

MOST_ENTRIES = 40
#: The most documents listed from.
MOST_DOCUMENTS = 5
MOST_CHARACTERS = 240
#: A table row with merged cells is short and no sentence.
LONGEST_ROW = 90
MOST_HEAD_WORDS = 8
#: With at least this many headings below, a heading is a chapter's title and the inner headings are listed.
FEWEST_HEADINGS = 8
#: Not a negation: "including but not limited to".
NOT_LIMITED = re.compile(
    r"\bnot (?:limited|restricted|only)\b|\bniet (?:beperkt|alleen|uitsluitend)\b|\bnicht (?:nur|beschränkt)\b"
    r"|\bno (?:limitad|solo)",
    re.IGNORECASE,
)
ENDING = re.compile(r"[.!?:;,。！？]$")


@dataclass(frozen=True)
class Entry:
    """A line in the list, which ends in a citation marker, and the heading above."""

    heading: str
    text: str


def candidates(library: ReadableDocuments, subject: str, named: Sequence[WholeDocument]) -> list[WholeDocument]:
    """Return the documents to list from: named documents, else those with the subject's words in title or headings."""
    if named:
        return list(named[:MOST_DOCUMENTS])
    words = [beginning(word) for word in re.findall(r"\w{2,}", subject.lower())]
    if not words:
        return []
    return library.documents(words=words, limit=MOST_DOCUMENTS) or _find_by_passages(library, words)


def _find_by_passages(library: ReadableDocuments, words: Sequence[str]) -> list[WholeDocument]:
    ids = library.naming(words, limit=MOST_DOCUMENTS)
    by_id: dict[UUID, WholeDocument] = {d.id: d for d in library.documents()} if ids else {}
    return [by_id[document_id] for document_id in ids if document_id in by_id]


def beginning(word: str) -> str:
    """Return a word without the ending, to match other word forms."""
    return word if len(word) < 5 or not word.isascii() else word[: max(4, len(word) - 3)]


def list_all(documents: Sequence[Contents], subject: str, language: str) -> QuotedReply | None:
    """List all entries for the subject. At least two are needed, else returns `None`."""
    passages = NumberedPassages()
    lines: list[str] = []
    count, omitted = 0, 0
    for contents in documents:
        document_language = contents.document.language or language
        heading = None
        for entry in _entries(contents, subject, document_language, passages):
            count += 1
            if count > MOST_ENTRIES:
                omitted += 1
                continue
            if heading is None:
                lines += ["", f"**{cell(contents.document.title)}**", ""]
            if entry.heading != heading:
                heading = entry.heading
                if heading:
                    lines.append(f"- {heading}")
            lines.append(f"  - {entry.text}" if heading else f"- {entry.text}")
    if count < 2:
        return None
    if omitted:
        lines += ["", say("more", language, count=omitted)]
    text = "\n".join([say("listed", language), *lines])
    return QuotedReply(RouteReply(text=text, citations=tuple(passages.citations), task="listing"), passages)


def _entries(contents: Contents, subject: str, language: str, passages: NumberedPassages) -> Iterator[Entry]:
    terms = frozenset(tokenize(subject, language))
    if not terms:
        return
    is_subject_negated = is_negated(subject, language)
    seen: set[str] = set()

    def entry(part: OutlineSection, text: str, look_for: str) -> Iterator[Entry]:
        entry_text = cell(text)[:MOST_CHARACTERS]
        if entry_text and entry_text.casefold() not in seen:
            seen.add(entry_text.casefold())
            marker = passages.cite(contents.document, contents.chunk_with(look_for, part.start), part.path)
            yield Entry(cell(part.title), f"{entry_text}{marker}")

    for part in contents.parts:
        for row in _rows_headed(part, terms, language):
            yield from entry(part, _row_text(row), row)
    named = [p for p in contents.parts if terms <= frozenset(tokenize(p.title, language))]
    for part in named:
        below = [p for p in contents.parts if p.path.startswith(f"{part.path} › ")]
        if len(below) >= FEWEST_HEADINGS:
            # For a chapter's title, list only its headings and not the whole chapter.
            for inner in _highest(below):
                sentence = telling_sentence(inner.text, inner.title)
                if sentence:
                    yield from entry(replace(inner, title=""), f"**{cell(inner.title)}** {sentence}", sentence)
            continue
        for inner in (part, *below):
            for item in _items(inner):
                yield from entry(inner, _row_text(item), item)
    for part in contents.parts:
        for item in _items_below_opening(part, terms, language, is_subject_negated=is_subject_negated):
            yield from entry(part, item, item)
    if not seen and terms <= frozenset(tokenize(contents.document.title, language)):
        for part in contents.parts:
            if part.title and part.title.casefold() != contents.document.title.casefold():
                sentence = telling_sentence(part.text, part.title)
                if sentence:
                    yield from entry(part, sentence, sentence)


def _highest(parts: Sequence[OutlineSection]) -> list[OutlineSection]:
    highest = min(part.level for part in parts)
    return [part for part in parts if part.level == highest]


def _items_below_opening(
    part: OutlineSection, terms: frozenset[str], language: str, *, is_subject_negated: bool
) -> Iterator[str]:
    units = units_of(part.text)
    for place, unit in enumerate(units):
        if not unit.text.endswith((":", "：")) or unit.kind in ("row", "column"):
            continue
        # "These are: …" refers to the subject of the previous sentence.
        before = units[place - 1].text if place and POINTS_BACK.match(unit.text) else ""
        if not terms <= frozenset(tokenize(f"{before} {unit.text}", language)):
            continue
        # "Things that are not covered:" opens the opposite list.
        if is_negated(NOT_LIMITED.sub("", f"{before} {unit.text}"), language) and not is_subject_negated:
            continue
        for item in units[place + 1 :]:
            if item.kind != "item":
                break
            yield item.text


def _rows_headed(part: OutlineSection, terms: frozenset[str], language: str) -> list[str]:
    lines = part.text.splitlines()
    for place, line in enumerate(lines):
        heads = cells(line)
        first = heads[0] if heads else " ".join(line.split()[: max(1, len(terms))])
        if not terms <= frozenset(tokenize(first, language)) or not first or len(first.split()) > len(terms) + 1:
            continue
        if not heads and not (_is_row(line) and len(line.split()) <= MOST_HEAD_WORDS and not re.search(r"\d", line)):
            continue
        rows = []
        for row in lines[place + 1 :]:
            if heads and re.fullmatch(r"[\s|:+-]+", row):
                continue
            if not (cells(row) if heads else _is_row(row)):
                break
            rows.append(row)
        if len(rows) > 1:
            return rows
    return []


def _is_row(line: str) -> bool:
    text = line.strip()
    return 0 < len(text) <= LONGEST_ROW and not ENDING.search(text)


def _items(part: OutlineSection) -> list[str]:
    lines = part.text.splitlines()
    bullets = [unit.text for unit in units_of(part.text) if unit.kind == "item"]
    if len(bullets) > 1:
        return bullets
    rows = [line for line in lines if cells(line)]
    if len(rows) > 2:
        return [row for row in rows[1:] if not re.fullmatch(r"[\s|:+-]+", row)]
    sentence = telling_sentence(part.text, part.title)
    return [sentence] if sentence else []


def _row_text(row: str) -> str:
    row_cells = cells(row)
    return f"{row_cells[0]}: {', '.join(value for value in row_cells[1:] if value)}" if row_cells else row


BAR = re.compile(r"\s*(?:\||\t)\s*")
RULE = re.compile(r"[\s|:+-]+")
#: A value at the end of a row with merged cells.
VALUE = (
    r"(?:not covered|not included|not available|none|yes|no|n/a|included|full|–|-"
    r"|niet gedekt|geen|ja|nee|nicht versichert|keine?|nein|없음|해당 없음|미보장|보장"
    r"|(?:[£$€₩]\s?)?\d[\d.,]*(?:\s?(?:%|[£$€₩]|[^\W\d_]{1,12}))?)"
)
TWO_VALUES = re.compile(rf"(?P<label>.*\S)\s+(?P<one>{VALUE})\s+(?P<other>{VALUE})", re.IGNORECASE)
HALVES = re.compile(r"(?P<label>\S.*?)\s+(?P<one>\S.*\S)\s+(?P=one)")


def cells(line: str) -> list[str]:
    """Split a table row into cells at bars or tabs. Returns [] for a line with neither."""
    if "|" not in line and "\t" not in line:
        return []
    line = line.strip()
    # The first head may be empty: only Markdown has a bar at both ends.
    if line.startswith("|") and line.endswith("|"):
        line = line.strip("|")
    parts = [part.strip() for part in BAR.split(line)]
    return parts if len(parts) > 1 and not RULE.fullmatch(line) else []


def rows_of(text: str) -> list[list[str]]:
    """Return all rows with cells separated by bars or tabs, in order."""
    return [row for line in text.splitlines() if (row := cells(line))]


def split_pair(line: str) -> tuple[str, str, str] | None:
    """Split a table row with lost cell borders into a label and two values, or return `None` if no pattern matches."""
    text = " ".join(line.split())
    for pattern in (HALVES, TWO_VALUES):
        if match := pattern.fullmatch(text):
            other = match["other"] if "other" in match.groupdict() else match["one"]
            return match["label"], match["one"], other
    return None


def columns_of(heads: Sequence[str], names: tuple[str, str]) -> tuple[int, int] | None:
    """Return the positions of the columns headed by two names, or `None` unless each name has exactly one column."""
    places = []
    for name in names:
        matching = [place for place, head in enumerate(heads) if place and _names(head, name)]
        if len(matching) != 1:
            return None
        places.append(matching[0])
    return (places[0], places[1]) if places[0] != places[1] else None


def _names(head: str, name: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", head, re.IGNORECASE))

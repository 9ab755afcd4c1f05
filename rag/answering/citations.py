"""Connect the citation numbers in an answer with passages, and check whether each passage supports the citing sentence.

The model gets numbered passages and cites these numbers. While the answer streams, the cited passages are renumbered by
first mention: the first passage cited becomes 1, the next 2. Numbers without a passage are dropped.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any
from uuid import UUID

from rag.answering.events import CitationKind
from rag.answering.groundedness import CitedSource, QuestionContext, faults
from rag.answering.sentences import Unit, units_of
from rag.ingestion.loaders.format_table import has_rows
from rag.records.chat_logs import PassagePlace, SheetPage
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.known_by import known_by, with_folder
from rag.text.spans import PATH_SEPARATOR, section_paths
from rag.text.tables import row_in_words, tables_in
from rag.types import Citation, title_with_pages

#: `[1]`, `[^1]`, `[1, 2]`, `[1-3]`, `【1†source】`, with preceding spaces and a following link target. A match starts
#: at the first space, here and below: a model may send thousands of spaces, and a search from each would be slow.
MARKER = re.compile(
    r"(?:(?<![ \t])(?P<space>[ \t]*+))[\[【]\s{0,2}"
    r"(?P<numbers>\^?\d{1,4}(?:\s{0,2}[,;–-]\s{0,2}\^?\d{1,4}){0,9})\s{0,2}"
    r"(?:†[^\]】\n]{0,40})?[\]】](?:\((?:https?:|mailto:|www\.|[#/])[^)\s]{0,300}\))?"
)
#: The last part in a piece of text which may still become a marker or a marker's link target.
UNDECIDED = re.compile(
    r"(?<![ \t])[ \t]*+(?:[\[【][^\]】\n]{0,120}|[\[【][^\]】\n]{1,120}[\]】](?:\([^)\s]{0,300})?)$|(?<![ \t])[ \t]++$"
)
SHOWN_MARKER = re.compile(r"\[(\d+)\]")
SHOWN_GROUP = re.compile(r"(?:\[\d+\]\s?)+")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
LIST_NUMBER = re.compile(r"^\s*\d{1,3}[.)]\s")
#: A quotation in an answer.
QUOTED = re.compile(r"“([^”]+)”")
BOLD = re.compile(r"\*\*([^*]+)\*\*")
#: Words up to this length say little about a sentence's subject.
SHORT_WORD = 3
WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
#: Scripts without spaces between words, and Hangul, where words carry endings.
UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
MAXIMUM_MATCHED_TERMS = 40
#: The most sentences marked on a citation, and their length in characters.
MAXIMUM_CLAIMS, MAXIMUM_CLAIM_CHARACTERS = 3, 300


class CitationFilter:
    """Renumbers a text's citations during streaming.

    `text_numbers` maps a passage's number in the context to the number in the text. Numbers in the text follow the
    order of first mention.
    """

    def __init__(self, context_numbers: Sequence[int]) -> None:
        self._allowed = frozenset(context_numbers)
        self._buffer = ""
        self.text_numbers: dict[int, int] = {}

    def allow(self, context_numbers: Sequence[int]) -> None:
        """Accept further context numbers in citations, when the model gets the passages in several parts."""
        self._allowed |= frozenset(context_numbers)

    def feed(self, delta: str) -> str:
        """Return the text which can be shown after this piece. An incomplete citation is kept for the next piece."""
        # Fast path: nearly every piece is plain words.
        if not self._buffer and "[" not in delta and "【" not in delta and delta[-1:] not in (" ", "\t"):
            return delta
        text = self._buffer + delta
        undecided = UNDECIDED.search(text)
        end = undecided.start() if undecided else len(text)
        self._buffer = text[end:]
        return MARKER.sub(self._renumber, text[:end])

    def finish(self) -> str:
        """Return the text held back when the stream ended."""
        rest, self._buffer = self._buffer, ""
        # An open bracket with only a number is an incomplete marker at the end of the text.
        return re.sub(r"(?<![ \t])[ \t]*+[\[【][\^\d\s,;–-]*$", "", MARKER.sub(self._renumber, rest)).rstrip(" \t")

    def _renumber(self, match: re.Match[str]) -> str:
        numbers = [number for number in _numbers(match["numbers"]) if number in self._allowed]
        if not numbers:
            return ""
        new_numbers = [
            self.text_numbers.setdefault(number, len(self.text_numbers) + 1) for number in dict.fromkeys(numbers)
        ]
        return match["space"] + "".join(f"[{number}]" for number in new_numbers)


def cited(citations: Sequence[Citation], text_numbers: Mapping[int, int]) -> tuple[Citation, ...]:
    """Return the citations used in the text, renumbered and sorted by their numbers in the text."""
    by_number = {citation.number: citation for citation in citations}
    ordered = sorted(text_numbers.items(), key=lambda pair: pair[1])
    return tuple(replace(by_number[number], number=text_number) for number, text_number in ordered)


def verified(
    text: str,
    citations: Sequence[Citation],
    *,
    question: str,
    page_text: Callable[[Citation], str],
    language: str = "",
    likely: tuple[str, ...] = (),
) -> tuple[Citation, ...]:
    """Set `is_supported` on each citation, and list the answer's sentences which the cited passage does not support.

    A sentence with several citations may take facts from any cited passage; facts from the question need no support.
    `page_text` returns the text on a citation's pages and is called only if the passages do not support a sentence.
    `language` is the answer's ISO 639-1 code; with "", only numbers are compared. `likely` are the passages' likely
    languages.
    """
    by_number = {citation.number: citation for citation in citations}
    # All sentences share these sources, because each source keeps its parsed text.
    read = {number: source_of(citation, likely) for number, citation in by_number.items()}
    question_context = QuestionContext(question, language)
    unsupported: dict[int, list[str]] = {}
    for claim, numbers in claims(text):
        sources = [by_number[number] for number in numbers if number in by_number]

        def pages(sources: Sequence[Citation] = sources) -> list[CitedSource]:
            return [CitedSource(page_text(source), "", likely) for source in sources]

        if claim and faults(claim, [read[source.number] for source in sources], question_context, more=pages):
            plain_claim = BOLD.sub(r"\1", claim)
            for source in sources:
                unsupported.setdefault(source.number, []).append(plain_claim[:MAXIMUM_CLAIM_CHARACTERS])
    return tuple(
        replace(
            citation,
            is_supported=citation.number not in unsupported,
            unsupported=tuple(dict.fromkeys(unsupported.get(citation.number, ())))[:MAXIMUM_CLAIMS],
        )
        for citation in citations
    )


def source_of(citation: Citation, likely: tuple[str, ...], *, read: str = "") -> CitedSource:
    """Convert a citation for comparison with sentences.

    `read` is the passage with the surrounding text given to the model, or "" if only the passage was given.
    """
    heading = f"{known_by(citation.title, citation.folder)} {citation.file_name} {citation.section}"
    return CitedSource(f"{citation.passage}\n\n{read}".strip(), heading, likely)


def claims(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return each sentence or clause which ends in citations, with the cited numbers."""
    pairs: list[tuple[str, tuple[int, ...]]] = []
    start = 0
    for group in SHOWN_GROUP.finditer(text):
        sentences = [part for part in SENTENCE_END.split(text[start : group.start()]) if part and part.strip()]
        claim = LIST_NUMBER.sub("", sentences[-1]).strip() if sentences else ""
        numbers = tuple(int(number) for number in SHOWN_MARKER.findall(group[0]))
        # "… 25 days. [1]\n[2]": a separate group belongs to the sentence before.
        pairs.append((claim or (pairs[-1][0] if pairs else ""), numbers))
        start = group.end()
    return pairs


def quoted(text: str, citations: Sequence[Citation]) -> dict[int, tuple[Citation, ...]]:
    """Copy the citation for each `[n]` in the answer, with the words to highlight in `matched_terms`.

    The highlighted words occur both in the passage and in the quotation, or else in the citing sentence. If no word
    does, for example across languages, `matched_terms` stays unchanged. The result maps citation numbers to copies in
    text order.
    """
    by_number = {citation.number: citation for citation in citations}
    copies: dict[int, list[Citation]] = {number: [] for number in by_number}
    start = 0
    for group, (claim, numbers) in zip(SHOWN_GROUP.finditer(text), claims(text), strict=True):
        quotes = QUOTED.findall(text[start : group.start()])
        # In a quotation with neighbouring sentences, the bold sentence is the answer.
        bold = BOLD.findall(quotes[-1]) if quotes else []
        quoted_words = frozenset(WORD.findall((bold[0] if bold else quotes[-1] if quotes else claim).casefold()))
        for number in numbers:
            if number in copies:
                copies[number].append(_mark_words(by_number[number], quoted_words))
        start = group.end()
    return {number: tuple(places) or (by_number[number],) for number, places in copies.items()}


def _mark_words(citation: Citation, quoted_words: Collection[str]) -> Citation:
    words = dict.fromkeys(word for word in WORD.findall(citation.passage) if word.casefold() in quoted_words)
    sentence = telling_sentence(citation.passage, tuple(words))
    # Short words are in every sentence; they would be marked everywhere.
    markable = (
        word for word in words if len(word) > SHORT_WORD or any(map(str.isdigit, word)) or UNSPACED.search(word)
    )
    terms = tuple(word for word in markable if count_terms([word], sentence))[:MAXIMUM_MATCHED_TERMS]
    return replace(citation, matched_terms=terms) if terms else citation


def cited_figures(text: str, number: int) -> str:
    """Return all words with a digit from the sentences citing `[number]`, joined by spaces."""
    cited_by = (claim for claim, numbers in claims(text) if number in numbers)
    return " ".join(word for claim in cited_by for word in claim.split() if any(map(str.isdigit, word)))


def with_matched_terms(citation: Citation, texts: Sequence[str], language: str) -> Citation:
    """Add words to the citation's `matched_terms`: all passage words which share an index term with `texts`."""
    expected_terms = {term for text in texts for term in tokenize(SHOWN_MARKER.sub(" ", text), language)}
    matched = dict.fromkeys(citation.matched_terms)
    for word in dict.fromkeys(WORD.findall(citation.passage)):
        terms = tokenize(word, language)
        if UNSPACED.search(word):
            # A run of characters is no word: mark the terms themselves, longest first.
            matched.update(
                dict.fromkeys(sorted((t for t in terms if t in expected_terms and t in word), key=len, reverse=True))
            )
        elif expected_terms.intersection(terms):
            matched[word] = None
    return replace(citation, matched_terms=tuple(matched)[:MAXIMUM_MATCHED_TERMS])


def without_markers(text: str) -> str:
    """Remove the citations from a text for the history, where the numbers have no meaning."""
    return MARKER.sub("", text)


def citation_to_json(citation: Citation, kind: CitationKind = "cited") -> dict[str, Any]:
    """Convert a citation to JSON, for storage with a message: the fields by name, with ids in text form, and `kind`."""
    stored = {field.name: getattr(citation, field.name) for field in fields(citation)}
    return stored | {
        "kind": kind,
        "chunk_id": str(citation.chunk_id),
        "document_id": str(citation.document_id),
        "matched_terms": list(citation.matched_terms),
        "unsupported": list(citation.unsupported),
        "attachments": [list(file) for file in citation.attachments],
    }


def citation_from_json(stored: Mapping[str, Any]) -> Citation:
    values = {field.name: stored[field.name] for field in fields(Citation) if field.name in stored}
    return Citation(
        **values
        | {
            "chunk_id": UUID(stored["chunk_id"]),
            "document_id": UUID(stored["document_id"]),
            "matched_terms": tuple(stored.get("matched_terms", ())),
            "unsupported": tuple(stored.get("unsupported", ())),
            "attachments": tuple((str(name), str(address)) for name, address in stored.get("attachments", ())),
        }
    )


def _numbers(marker: str) -> list[int]:
    """Return the numbers in a citation marker: "1, 3-5" gives 1, 3, 4, 5."""
    numbers: list[int] = []
    for part in re.split(r"\s*[,;]\s*", marker.replace("^", "")):
        first, *rest = (int(number) for number in re.split(r"\s*[–-]\s*", part))
        if rest and 0 < rest[-1] - first <= 10:
            numbers.extend(range(first, rest[-1] + 1))
        else:
            numbers.extend([first, *rest])
    return numbers


def count_terms(terms: Sequence[str], text: str) -> int:
    """Count how many distinct words from `terms` occur in a text, ignoring case."""
    folded = text.casefold()
    return sum(
        # "25" is not found within "125" or "1.25".
        bool(re.search(rf"(?<!\d)(?<!\d[.,]){re.escape(term)}(?!\d)", folded))
        for term in {term.casefold() for term in terms}
    )


def telling_sentence(passage: str, terms: Sequence[str]) -> str:
    """Return the passage's sentence which contains the most `terms`.

    If several sentences contain equally many, the sentence with the most numbers from `terms` is returned, then the
    earliest. A heading is returned only if no sentence contains any term.
    """
    figures = [term for term in terms if any(map(str.isdigit, term))]

    def rank(unit: Unit) -> tuple[bool, int, int]:
        count = count_terms(terms, unit.text)
        return unit.kind != "heading" and count > 0, count, count_terms(figures, unit.text)

    units = units_of(passage)
    return max(units, key=rank).text if units else passage


def telling_span(passage: str, terms: Sequence[str]) -> tuple[int, int] | None:
    """Return where `telling_sentence` starts and ends in a passage, or `None` if no sentence has any of the `terms`.

    A sentence composed from table cells and column headings has the table row's span. If a sentence is not found
    literally, the line with the most terms is used.
    """
    sentence = telling_sentence(passage, terms)
    if not count_terms(terms, sentence):
        return None
    if match := re.search(r"\s+".join(map(re.escape, sentence.split())), passage):
        return match.span()
    for table in tables_in(passage):
        heads = table.heads.cells if table.heads else None
        for row in table.rows:
            if " ".join(row_in_words(heads, row.cells).split()) == sentence:
                return row.start, row.end
    lines = list(re.finditer(r"[^\n]+", passage))
    best = max(lines, key=lambda line: count_terms(terms, line[0]))
    return best.span() if count_terms(terms, best[0]) else None


def with_section(citation: Citation, place: PassagePlace, marked: Sequence[Citation] = ()) -> Citation:
    """Set the citation's section to the heading above the cited sentences.

    If they are below several headings, the section is the heading paths' common part, else the first heading. `marked`
    are the citation's copies from `quoted`, for each `[n]` in the answer. If no cited sentence is found in the passage,
    the section becomes the heading above the most marked words; on a tie, the section stays unchanged.
    """
    # A chunker may put a table header before the text; a shortened text has lost its end.
    before = len(citation.passage) - (place.end - place.start)
    if before < 0:
        return citation
    ordered = sorted(place.sections, key=lambda section: section.start)
    starts = [max(0, before + section.start - place.start) for section in ordered]
    paths = section_paths(ordered)
    spans = [telling_span(copy.passage, copy.matched_terms) for copy in marked if copy is not citation]
    above = dict.fromkeys(bisect_right(starts, span[0]) - 1 for span in spans if span is not None)
    if above and min(above) >= 0:
        shared = _shared_path([paths[index] for index in above])
        return replace(citation, section=shared or paths[next(iter(above))])
    counts: dict[str, int] = {}
    for path, start, end in zip(paths, starts, [*starts[1:], len(citation.passage)], strict=True):
        counts[path] = max(counts.get(path, 0), count_terms(citation.matched_terms, citation.passage[start:end]))
    most = max(counts.values(), default=0)
    if counts.get(citation.section, 0) == most:
        return citation
    return replace(citation, section=next(path for path, count in counts.items() if count == most))


def _shared_path(paths: Sequence[str]) -> str:
    parts = [path.split(PATH_SEPARATOR) for path in paths]
    levels = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*parts, strict=False))
    return PATH_SEPARATOR.join(level[0] for level in levels)


def title_with_place(citation: Citation) -> str:
    """Return the document's title followed by the cited pages, or by the sheet and rows."""
    title = with_folder(citation.title or citation.file_name, citation.folder)
    if has_rows(citation.file_name):
        return f"{title}, {citation.section}" if citation.section else title
    return title_with_pages(title, citation.first_page, citation.last_page)


#: The most rows named in a spreadsheet citation.
MOST_ROWS = 3


def with_rows(citation: Citation, marked: Sequence[Citation], pages: Sequence[SheetPage]) -> Citation:
    """Append the cell ranges of the cited spreadsheet rows to the citation's section: "Salaries › A17:F17".

    `marked` are the citation's copies from `quoted`, for each `[n]` in the answer. The marked words identify a row.
    """
    cell_ranges = dict.fromkeys(filter(None, (_cells_of(copy, pages) for copy in marked)))
    cells = ", ".join(list(cell_ranges)[:MOST_ROWS])
    return (
        replace(citation, section=PATH_SEPARATOR.join(filter(None, (citation.section, cells)))) if cells else citation
    )


def _cells_of(citation: Citation, pages: Sequence[SheetPage]) -> str:
    """Return the cell range of the row with the most matched words, for example "A17:F17", or "" without a match."""
    span = telling_span(citation.passage, citation.matched_terms)
    if span is None:
        return ""
    line = citation.passage[citation.passage.rfind("\n", 0, span[0]) + 1 :].partition("\n")[0].strip()
    for page in pages:
        for index, text in enumerate(page.text.split("\n")):
            # `places` lists only lines whose row does not follow the row of the line above.
            before = [place for place in page.places if place[0] <= index] if text.strip() == line else []
            if before and before[-1][1]:
                start, first_row, left, right = before[-1]
                row = first_row + index - start
                return f"{left}{row}" if left == right else f"{left}{row}:{right}{row}"
    return ""

"""Connect the numbers in a text with passages: which passage a number means, and whether the passage says so.

A model is given passages numbered by their place in the context. While its answer streams, each number that was in the
context is replaced by the order in which the answer first names it, and every other number is dropped. So a reader
sees 1, 2, 3 …, and no number ever points to a passage that the model was not given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any
from uuid import UUID

from rag.answering.events import CitationKind
from rag.answering.groundedness import CitedSource, QuestionContext, faults
from rag.answering.sentences import Unit, units_of
from rag.ingestion.loaders import has_rows
from rag.records.chat_logs import PassagePlace, SheetPage
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.known_by import known_by, with_folder
from rag.text.spans import PATH_SEPARATOR, section_paths
from rag.text.tables import row_in_words, tables_in
from rag.types import Citation, title_with_pages

#: `[1]`, `[^1]`, `[1, 2]`, `[1-3]`, `【1†source】`, with the space before it and a link target after it. Spaces
#: count from the first of them, here and below: a model may send thousands, which would be looked through from each.
MARKER = re.compile(
    r"(?:(?<![ \t])(?P<space>[ \t]*+))[\[【]\s{0,2}"
    r"(?P<numbers>\^?\d{1,4}(?:\s{0,2}[,;–-]\s{0,2}\^?\d{1,4}){0,9})\s{0,2}"
    r"(?:†[^\]】\n]{0,40})?[\]】](?:\((?:https?:|mailto:|www\.|[#/])[^)\s]{0,300}\))?"
)
#: The end of a piece of text that may become a marker, or go on as one's link target, with the next piece.
UNDECIDED = re.compile(
    r"(?<![ \t])[ \t]*+(?:[\[【][^\]】\n]{0,120}|[\[【][^\]】\n]{1,120}[\]】](?:\([^)\s]{0,300})?)$|(?<![ \t])[ \t]++$"
)
SHOWN_MARKER = re.compile(r"\[(\d+)\]")
SHOWN_GROUP = re.compile(r"(?:\[\d+\]\s?)+")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
LIST_NUMBER = re.compile(r"^\s*\d{1,3}[.)]\s")
#: A quotation of an answer.
QUOTED = re.compile(r"“([^”]+)”")
BOLD = re.compile(r"\*\*([^*]+)\*\*")
#: Shorter words say little about a sentence's subject.
SHORT_WORD = 3
WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
#: Scripts written without spaces between words, and Hangul, whose words carry their endings.
UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
MAXIMUM_MATCHED_TERMS = 40
#: Sentences marked on one citation, and how much of each.
MAXIMUM_CLAIMS, MAXIMUM_CLAIM_CHARACTERS = 3, 300


class CitationFilter:
    """Renumbers the citations of a text while it streams.

    `shown` maps the numbers of the context to those in the text, in the order in which the text first names them.
    """

    def __init__(self, context_numbers: Sequence[int]) -> None:
        self._known = frozenset(context_numbers)
        self._held = ""
        self.shown: dict[int, int] = {}

    def allow(self, context_numbers: Sequence[int]) -> None:
        """Know further passages, where they are given one part after the other."""
        self._known |= frozenset(context_numbers)

    def feed(self, delta: str) -> str:
        """Return what may be shown once this piece has come; the rest is held until the next."""
        # Nearly every piece is plain words.
        if not self._held and "[" not in delta and "【" not in delta and delta[-1:] not in (" ", "\t"):
            return delta
        text = self._held + delta
        undecided = UNDECIDED.search(text)
        end = undecided.start() if undecided else len(text)
        self._held = text[end:]
        return MARKER.sub(self._renumber, text[:end])

    def finish(self) -> str:
        """Return the text held back when the stream ended."""
        held, self._held = self._held, ""
        # An opened bracket with nothing but a number is a marker the text broke off in.
        return re.sub(r"(?<![ \t])[ \t]*+[\[【][\^\d\s,;–-]*$", "", MARKER.sub(self._renumber, held)).rstrip(" \t")

    def _renumber(self, match: re.Match[str]) -> str:
        wanted = [number for number in _numbers(match["numbers"]) if number in self._known]
        if not wanted:
            return ""
        shown = [self.shown.setdefault(number, len(self.shown) + 1) for number in dict.fromkeys(wanted)]
        return match["space"] + "".join(f"[{number}]" for number in shown)


def cited(citations: Sequence[Citation], shown: Mapping[int, int]) -> tuple[Citation, ...]:
    """Return the citations of the context that a text names, numbered and ordered as in the text."""
    by_number = {citation.number: citation for citation in citations}
    ordered = sorted(shown.items(), key=lambda pair: pair[1])
    return tuple(replace(by_number[number], number=as_shown) for number, as_shown in ordered)


def verified(
    text: str,
    citations: Sequence[Citation],
    *,
    question: str,
    page_text: Callable[[Citation], str],
    language: str = "",
    likely: tuple[str, ...] = (),
) -> tuple[Citation, ...]:
    """Return the citations with `is_supported` and the sentences that cite them and are not in them, nor on their
    pages.

    A sentence that cites several passages may take its facts from any of them; what the question says counts as given.
    `page_text` is asked only where a passage alone does not hold a sentence. `language` is the answer's; without it
    only figures are compared. `likely` are the passages' likely languages.
    """
    by_number = {citation.number: citation for citation in citations}
    # Shared by all sentences, because each passage keeps its parsed text.
    read = {number: source_of(citation, likely) for number, citation in by_number.items()}
    asked = QuestionContext(question, language)
    unsupported: dict[int, list[str]] = {}
    for claim, numbers in claims(text):
        sources = [by_number[number] for number in numbers if number in by_number]

        def pages(sources: Sequence[Citation] = sources) -> list[CitedSource]:
            return [CitedSource(page_text(source), "", likely) for source in sources]

        if claim and faults(claim, [read[source.number] for source in sources], asked, more=pages):
            shown = BOLD.sub(r"\1", claim)
            for source in sources:
                unsupported.setdefault(source.number, []).append(shown[:MAXIMUM_CLAIM_CHARACTERS])
    return tuple(
        replace(
            citation,
            is_supported=citation.number not in unsupported,
            unsupported=tuple(dict.fromkeys(unsupported.get(citation.number, ())))[:MAXIMUM_CLAIMS],
        )
        for citation in citations
    )


def source_of(citation: Citation, likely: tuple[str, ...], *, read: str = "") -> CitedSource:
    """Return a passage to compare sentences with. `read` is the text the model got, with surroundings."""
    heading = f"{known_by(citation.title, citation.folder)} {citation.file_name} {citation.section}"
    return CitedSource(f"{citation.passage}\n\n{read}".strip(), heading, likely)


def claims(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return each sentence or clause before citations, with the cited numbers."""
    found: list[tuple[str, tuple[int, ...]]] = []
    start = 0
    for group in SHOWN_GROUP.finditer(text):
        sentences = [part for part in SENTENCE_END.split(text[start : group.start()]) if part and part.strip()]
        claim = LIST_NUMBER.sub("", sentences[-1]).strip() if sentences else ""
        numbers = tuple(int(number) for number in SHOWN_MARKER.findall(group[0]))
        # "… 25 days. [1]\n[2]": a separate group belongs to the sentence before.
        found.append((claim or (found[-1][0] if found else ""), numbers))
        start = group.end()
    return found


def quoted(text: str, citations: Sequence[Citation]) -> dict[int, tuple[Citation, ...]]:
    """Return the citations of each number, one for each place in the answer, with the words marked for that place.

    Marked are words of the quotation, or of the sentence without one, found in the passage. Without such words, as in
    another language, those of the question and the whole answer stay marked.
    """
    by_number = {citation.number: citation for citation in citations}
    found: dict[int, list[Citation]] = {number: [] for number in by_number}
    start = 0
    for group, (claim, numbers) in zip(SHOWN_GROUP.finditer(text), claims(text), strict=True):
        quotes = QUOTED.findall(text[start : group.start()])
        # Of a quotation with its neighbourhood, the sentence in bold is what answers.
        bold = BOLD.findall(quotes[-1]) if quotes else []
        said = frozenset(WORD.findall((bold[0] if bold else quotes[-1] if quotes else claim).casefold()))
        for number in numbers:
            if number in found:
                found[number].append(_marked_by(by_number[number], said))
        start = group.end()
    return {number: tuple(places) or (by_number[number],) for number, places in found.items()}


def _marked_by(citation: Citation, said: Collection[str]) -> Citation:
    words = dict.fromkeys(word for word in WORD.findall(citation.passage) if word.casefold() in said)
    sentence = telling_sentence(citation.passage, tuple(words))
    # Short words are in every sentence; they would be marked everywhere.
    kept = (word for word in words if len(word) > SHORT_WORD or any(map(str.isdigit, word)) or UNSPACED.search(word))
    terms = tuple(word for word in kept if terms_held([word], sentence))[:MAXIMUM_MATCHED_TERMS]
    return replace(citation, matched_terms=terms) if terms else citation


def cited_figures(text: str, number: int) -> str:
    """Return the words with digits of the sentences that cite `[number]`: what a reader looks for on the page."""
    cited_by = (claim for claim, numbers in claims(text) if number in numbers)
    return " ".join(word for claim in cited_by for word in claim.split() if any(map(str.isdigit, word)))


def with_matched_terms(citation: Citation, texts: Sequence[str], language: str) -> Citation:
    """Return the citation with the words of its passage, as written there, that share a term with the texts."""
    wanted = {term for text in texts for term in tokenize(SHOWN_MARKER.sub(" ", text), language)}
    found = dict.fromkeys(citation.matched_terms)
    for word in dict.fromkeys(WORD.findall(citation.passage)):
        terms = tokenize(word, language)
        if UNSPACED.search(word):
            # A run of characters is no word: mark the terms themselves, longest first.
            found.update(dict.fromkeys(sorted((t for t in terms if t in wanted and t in word), key=len, reverse=True)))
        elif wanted.intersection(terms):
            found[word] = None
    return replace(citation, matched_terms=tuple(found)[:MAXIMUM_MATCHED_TERMS])


def without_markers(text: str) -> str:
    """Return the text without its citations, as it goes into the history: there their numbers mean nothing any more."""
    return MARKER.sub("", text)


def citation_to_json(citation: Citation, kind: CitationKind = "cited") -> dict[str, Any]:
    """Return the citation for storage with a message: fields by name, ids as text, and the `kind`."""
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
    """Return the citation that `citation_to_json` stored; `stored["kind"]` says whether the answer cites it."""
    known = {field.name: stored[field.name] for field in fields(Citation) if field.name in stored}
    return Citation(
        **known
        | {
            "chunk_id": UUID(stored["chunk_id"]),
            "document_id": UUID(stored["document_id"]),
            "matched_terms": tuple(stored.get("matched_terms", ())),
            "unsupported": tuple(stored.get("unsupported", ())),
            "attachments": tuple((str(name), str(address)) for name, address in stored.get("attachments", ())),
        }
    )


def _numbers(written: str) -> list[int]:
    """1, 3, 4, 5 from "1, 3-5"."""
    numbers: list[int] = []
    for part in re.split(r"\s*[,;]\s*", written.replace("^", "")):
        first, *last = (int(number) for number in re.split(r"\s*[–-]\s*", part))
        if last and 0 < last[-1] - first <= 10:
            numbers.extend(range(first, last[-1] + 1))
        else:
            numbers.extend([first, *last])
    return numbers


def terms_held(terms: Sequence[str], text: str) -> int:
    """Count how many different ones of these words a text has."""
    folded = text.casefold()
    return sum(
        # "25" is not found within "125" or "1.25".
        bool(re.search(rf"(?<!\d)(?<!\d[.,]){re.escape(term)}(?!\d)", folded))
        for term in {term.casefold() for term in terms}
    )


def telling_sentence(passage: str, terms: Sequence[str]) -> str:
    """Return the sentence of a passage with the most marked words; among equals the one with the most figures of the
    question and the answer, else the first.

    A heading only announces the answer below it. It counts when no other sentence has any of these words.
    """
    figures = [term for term in terms if any(map(str.isdigit, term))]

    def rank(unit: Unit) -> tuple[bool, int, int]:
        held = terms_held(terms, unit.text)
        return unit.kind != "heading" and held > 0, held, terms_held(figures, unit.text)

    units = units_of(passage)
    return max(units, key=rank).text if units else passage


def telling_span(passage: str, terms: Sequence[str]) -> tuple[int, int] | None:
    """Return the position of the telling sentence in a passage; None if no sentence has these words.

    A sentence made from the cells and heads of a table has the position of its row. Any other sentence that is not
    literally in the passage has the position of the line with most of the words.
    """
    sentence = telling_sentence(passage, terms)
    if not terms_held(terms, sentence):
        return None
    if found := re.search(r"\s+".join(map(re.escape, sentence.split())), passage):
        return found.span()
    for table in tables_in(passage):
        heads = table.heads.cells if table.heads else None
        for row in table.rows:
            if " ".join(row_in_words(heads, row.cells).split()) == sentence:
                return row.start, row.end
    lines = list(re.finditer(r"[^\n]+", passage))
    best = max(lines, key=lambda line: terms_held(terms, line[0]))
    return best.span() if terms_held(terms, best[0]) else None


def with_section(citation: Citation, place: PassagePlace) -> Citation:
    """Return the citation with the heading above most of its marked words; among equals the passage's own."""
    # Before the text a chunker may have put the header of a table; a text cut short has lost its end.
    before = len(citation.passage) - (place.end - place.start)
    if before < 0:
        return citation
    ordered = sorted(place.sections, key=lambda section: section.start)
    starts = [max(0, before + section.start - place.start) for section in ordered]
    held: dict[str, int] = {}
    for path, start, end in zip(section_paths(ordered), starts, [*starts[1:], len(citation.passage)], strict=True):
        held[path] = max(held.get(path, 0), terms_held(citation.matched_terms, citation.passage[start:end]))
    most = max(held.values(), default=0)
    if held.get(citation.section, 0) == most:
        return citation
    return replace(citation, section=next(path for path, count in held.items() if count == most))


def title_with_place(citation: Citation) -> str:
    """Return the title of a citation's document and its pages, or the sheet and its rows."""
    title = with_folder(citation.title or citation.file_name, citation.folder)
    if has_rows(citation.file_name):
        return f"{title}, {citation.section}" if citation.section else title
    return title_with_pages(title, citation.first_page, citation.last_page)


#: A citation names so many rows of a sheet at most.
MOST_ROWS = 3


def with_rows(citation: Citation, marked: Sequence[Citation], pages: Sequence[SheetPage]) -> Citation:
    """Return a citation of a spreadsheet with the cells of its rows behind the sheet's name: "Salaries › A17:F17".

    `marked` is the citation at each of its places in the answer; each marks a row.
    """
    found = dict.fromkeys(filter(None, (_cells_of(one, pages) for one in marked)))
    cells = ", ".join(list(found)[:MOST_ROWS])
    return (
        replace(citation, section=PATH_SEPARATOR.join(filter(None, (citation.section, cells)))) if cells else citation
    )


def _cells_of(citation: Citation, pages: Sequence[SheetPage]) -> str:
    """Return the cells of the row with the most marked words, by their names in the sheet; "" without a row."""
    span = telling_span(citation.passage, citation.matched_terms)
    if span is None:
        return ""
    line = citation.passage[citation.passage.rfind("\n", 0, span[0]) + 1 :].partition("\n")[0].strip()
    for page in pages:
        for index, text in enumerate(page.text.split("\n")):
            # The places of lines with another row than expected after the line above.
            before = [place for place in page.places if place[0] <= index] if text.strip() == line else []
            if before and before[-1][1]:
                start, first_row, left, right = before[-1]
                row = first_row + index - start
                return f"{left}{row}" if left == right else f"{left}{row}:{right}{row}"
    return ""

"""Compare two things side by side: a table with a row for each aspect and a cited passage in each cell.

Aspects come from tables with both names in columns or rows, and from headings below both names. If none are found, they
come from sentences about each name which share words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rag.answering.groundedness import is_negated
from rag.answering.routes.documents import Contents, NumberedPassages, OutlineSection, is_telling, telling_sentence
from rag.answering.routes.listing import cells, columns_of, split_pair
from rag.answering.routes.replies import QuotedReply, RouteReply, cell, say
from rag.answering.sentences import sentences
from rag.retrieval.bm25.index import tokenize
from rag.types import DocumentChunk

MOST_ASPECTS = 20
#: If the tables give fewer rows, sentences from the text are compared too.
FEWEST_ASPECTS = 6
#: Words two sentences must share beside the names to be about the same subject.
LEAST_SHARED = 2
#: Lowest similarity between two sentences at which a negation in either counts as a difference.
LEAST_ALIKE_DENIED = 0.5
#: Lowest similarity of two compared sentences, and the most sentences compared in a section.
LEAST_ALIKE, MOST_SENTENCES = 0.34, 24
MOST_CELL_CHARACTERS = 300
LABEL_WORDS = 3
FIGURE = re.compile(r"\d[\d.,]*")
NUMBERING = re.compile(r"^\s*(?:\d+(?:\.\d+)*[.)]?|[A-Z]\.|§+\s*\d+)\s+")
#: Words stripped from the start or end of a name: articles and kinds.
AROUND_NAME = re.compile(
    r"^(?:the|de|het|der|die|das|den|dem|le|la|les|el|los|las|il|lo|i|gli|o|a|os|as|our|this) |"
    r" (?:plan|plans|option|tier|package|scheme|tarif|tarief|planı|planları|paketi|플랜|요금제)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Aspect:
    """A row in the comparison: a label and two texts with their citations."""

    label: str
    left: str
    right: str


def bare_name(name: str) -> str:
    """Return a name without article, quotation marks and words like "plan": "the Standard plan" gives "Standard"."""
    name = name.strip(" \"'“”„«»")
    while (shorter := AROUND_NAME.sub("", name)) != name and shorter:
        name = shorter
    return name


def compare(
    sides: tuple[Sequence[Contents], Sequence[Contents]],
    both: Sequence[Contents],
    names: tuple[str, str],
    language: str,
) -> QuotedReply | None:
    """Return a table comparing two names, or `None` if the documents have nothing to compare.

    `sides` are the documents titled after each name. `both` are the documents about both names, most relevant first.
    """
    passages = NumberedPassages()
    aspects = _first_aspects(_from_tables(contents, names, passages) for contents in both)
    for left in sides[0]:
        for right in sides[1]:
            aspects += _shared_headings(left, left.parts, right, right.parts, passages, names)
    if not aspects:
        aspects = _first_aspects(_from_sections(contents, names, passages) for contents in both)
    if len(aspects) < FEWEST_ASPECTS:
        from_sentences = _first_aspects(_from_sentences(([c], [c]), names, passages, language) for c in both)
        # A single pair may share words by chance.
        aspects += from_sentences if aspects or len(from_sentences) > 1 else []
    if not aspects and all(sides):
        aspects = _from_sentences(sides, names, passages, language)
    if not aspects:
        return None
    lines = [
        say("compared", language),
        "",
        f"| {say('aspect', language)} | {cell(names[0])} | {cell(names[1])} |",
        "| --- | --- | --- |",
        *(f"| {a.label} | {a.left} | {a.right} |" for a in aspects[:MOST_ASPECTS]),
    ]
    if len(aspects) > MOST_ASPECTS:
        lines += ["", say("more", language, count=len(aspects) - MOST_ASPECTS)]
    reply = RouteReply(text="\n".join(lines), citations=tuple(passages.citations), task="comparison")
    return QuotedReply(reply, passages)


def _first_aspects(aspect_lists: Iterable[list[Aspect]]) -> list[Aspect]:
    """Return the first list which is not empty, because rows from different tables must not be mixed."""
    return next((aspects for aspects in aspect_lists if aspects), [])


def _from_tables(contents: Contents, names: tuple[str, str], passages: NumberedPassages) -> list[Aspect]:
    aspects: list[Aspect] = []
    for part in contents.parts:
        chunk_of = _finder(contents, part)
        lines = part.text.splitlines()
        for place, line in enumerate(lines):
            heads = cells(line)
            columns = columns_of(heads, names) if heads else None
            if columns:
                for row in lines[place + 1 :]:
                    values = cells(row)
                    if not values and row.strip() and not re.fullmatch(r"[\s|:+-]+", row):
                        break
                    if len(values) > max(columns):
                        marker = passages.cite(contents.document, chunk_of(row), part.path)
                        aspects.append(_aspect(values[0], values[columns[0]], values[columns[1]], marker))
                continue
            if heads:
                aspects += _rows_of_names(contents, part, lines[place:], names, passages)
                if aspects:
                    break
            elif _is_run_together(line, names):
                # Rows follow until the first line with a sentence.
                order = line.casefold().find(names[0].casefold()) < line.casefold().find(names[1].casefold())
                for row in lines[place + 1 :]:
                    pair = split_pair(row)
                    if pair is None:
                        break
                    marker = passages.cite(contents.document, chunk_of(row), part.path)
                    label, first, second = pair
                    aspects.append(_aspect(label, *((first, second) if order else (second, first)), marker))
    return aspects


def _rows_of_names(
    contents: Contents, part: OutlineSection, lines: Sequence[str], names: tuple[str, str], passages: NumberedPassages
) -> list[Aspect]:
    heads = cells(lines[0])
    rows: dict[int, tuple[list[str], str]] = {}
    for line in lines[1:]:
        values = cells(line)
        for number, name in enumerate(names):
            if len(values) == len(heads) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", values[0], re.IGNORECASE):
                rows.setdefault(number, (values, line))
    if len(rows) < 2 or rows[0][1] == rows[1][1]:
        return []
    chunk_of = _finder(contents, part)
    markers = [passages.cite(contents.document, chunk_of(rows[n][1]), part.path) for n in (0, 1)]
    return [
        Aspect(cell(head), f"{cell(rows[0][0][n])}{markers[0]}", f"{cell(rows[1][0][n])}{markers[1]}")
        for n, head in enumerate(heads)
        if n
    ]


def _is_run_together(line: str, names: tuple[str, str]) -> bool:
    """Whether a short line ends in both names, like a table's heading row without cell borders."""
    if len(line) > 80 or line.rstrip().endswith((".", "?", "!", ":", ",")):
        return False
    first, second = (re.escape(name) for name in names)
    return bool(re.search(rf"(?<!\w)(?:{first}\s+{second}|{second}\s+{first})\s*$", line, re.IGNORECASE))


def _aspect(label: str, left: str, right: str, marker: str) -> Aspect:
    return Aspect(cell(label), f"{cell(left)}{marker}", f"{cell(right)}{marker}")


def _from_sections(contents: Contents, names: tuple[str, str], passages: NumberedPassages) -> list[Aspect]:
    below = []
    for name, rival in (names, names[::-1]):
        named = [p for p in contents.parts if _has(p.path, name) and not _has(p.path, rival)]
        below.append(named)
    if not below[0] or not below[1]:
        return []
    return _shared_headings(contents, below[0], contents, below[1], passages, names)


def _shared_headings(
    left: Contents,
    left_parts: Sequence[OutlineSection],
    right: Contents,
    right_parts: Sequence[OutlineSection],
    passages: NumberedPassages,
    names: tuple[str, str],
) -> list[Aspect]:
    """Return a row for each heading which occurs in both documents, with the two sentences which best show the
    difference.
    """
    by_title = {_title(part): part for part in right_parts if part.title}
    name_terms = frozenset(word for name in names for word in tokenize(name, left.document.language))
    rows: list[tuple[float, int, OutlineSection, OutlineSection, str, str]] = []
    for place, part in enumerate(left_parts):
        match = by_title.get(_title(part))
        if match is None or not part.title:
            continue
        pair = _most_telling_pair(part, match, name_terms, left.document.language)
        if pair is not None:
            rows.append((pair[0], place, part, match, pair[1], pair[2]))
    # Rows showing a difference come first, then all others in the document's order.
    rows.sort(key=lambda row: (-row[0], row[1]))
    aspects = []
    for _, _, part, match, first, second in rows:
        markers = [
            passages.cite(side.document, side.chunk_with(text, at.start), at.path)
            for side, at, text in ((left, part, first), (right, match, second))
        ]
        label = cell(NUMBERING.sub("", part.title))
        aspects.append(Aspect(label, f"{cell(first)}{markers[0]}", f"{cell(second)}{markers[1]}"))
    return aspects


def _most_telling_pair(
    part: OutlineSection, match: OutlineSection, name_terms: frozenset[str], language: str
) -> tuple[float, str, str] | None:
    """Return (rank, sentence, sentence): the sentences from both sections which best show a difference, if any.

    The rank is 2 for a different number, 1 for a negation and 0 for any other difference. If no pair is similar enough,
    the rank is -1 and the sentences are the first in each section.
    """
    sides = [
        [
            (sentence, frozenset(tokenize(sentence, language)) - name_terms)
            for sentence in sentences(side.text)
            if len(sentence) <= MOST_CELL_CHARACTERS and is_telling(sentence)
        ][:MOST_SENTENCES]
        for side in (part, match)
    ]
    # Leave out sentences which are in both sections, because they show no difference.
    both = {sentence for sentence, _ in sides[0]} & {sentence for sentence, _ in sides[1]}
    sides = [[(sentence, terms) for sentence, terms in side if sentence not in both] for side in sides]
    best: tuple[float, float, str, str] | None = None
    for first, terms in sides[0]:
        for second, other_terms in sides[1]:
            shared = _without_figures(terms) & _without_figures(other_terms)
            alike = len(shared) / max(1, len(_without_figures(terms) | _without_figures(other_terms)))
            if len(shared) < LEAST_SHARED or alike < LEAST_ALIKE:
                continue
            tells = _difference(first, second, language)
            if tells == 1 and alike < LEAST_ALIKE_DENIED:
                tells = 0
            if best is None or (tells, alike) > best[:2]:
                best = (tells, alike, first, second)
    if best is not None:
        return best[0], best[2], best[3]
    pair = [telling_sentence(side.text, side.title)[:MOST_CELL_CHARACTERS] for side in (part, match)]
    return (-1.0, pair[0], pair[1]) if all(pair) and pair[0] != pair[1] else None


def _difference(left: str, right: str, language: str) -> float:
    first, second = set(FIGURE.findall(left)), set(FIGURE.findall(right))
    if first and second and first != second:
        return 2.0
    return 1.0 if is_negated(left, language) != is_negated(right, language) else 0.0


def _without_figures(terms: frozenset[str]) -> frozenset[str]:
    return frozenset(term for term in terms if not any(map(str.isdigit, term)))


def _from_sentences(
    sides: tuple[Sequence[Contents], Sequence[Contents]],
    names: tuple[str, str],
    passages: NumberedPassages,
    language: str,
) -> list[Aspect]:
    by_side: list[list[tuple[Contents, OutlineSection, str, frozenset[str]]]] = []
    both = frozenset(term for name in names for term in tokenize(name, language))
    for documents, name, rival in zip(sides, names, names[::-1], strict=True):
        candidates = []
        for contents in documents:
            document_language = contents.document.language or language
            for part in contents.parts:
                for sentence in sentences(part.text):
                    is_of_one = _has(sentence, name) and not _has(sentence, rival)
                    if is_of_one and len(sentence) <= MOST_CELL_CHARACTERS and is_telling(sentence):
                        candidates.append(
                            (contents, part, sentence, frozenset(tokenize(sentence, document_language)) - both)
                        )
        by_side.append(candidates)
    counts = Counter(term for side in by_side for candidate in side for term in candidate[3])
    pairs = [
        (len(a[3] & b[3]) / max(1, min(len(a[3]), len(b[3]))), i, j)
        for i, a in enumerate(by_side[0])
        for j, b in enumerate(by_side[1])
        if len(a[3] & b[3]) >= LEAST_SHARED
    ]
    used: set[tuple[int, int]] = set()
    aspects: list[tuple[int, Aspect]] = []
    for _, i, j in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if (0, i) in used or (1, j) in used:
            continue
        used |= {(0, i), (1, j)}
        left, right = by_side[0][i], by_side[1][j]
        label = _label(left[2], left[3] & right[3], counts, language)
        markers = [passages.cite(s[0].document, s[0].chunk_with(s[2], s[1].start), s[1].path) for s in (left, right)]
        aspects.append((i, Aspect(cell(label), f"{cell(left[2])}{markers[0]}", f"{cell(right[2])}{markers[1]}")))
    return [aspect for _, aspect in sorted(aspects, key=lambda pair: pair[0])]


def _label(sentence: str, shared: frozenset[str], counts: Counter[str], language: str) -> str:
    words: dict[str, str] = {}
    for word in re.findall(r"[^\W\d_]{3,}(?:-[^\W\d_]+)*", sentence):
        for term in shared.intersection(tokenize(word, language)):
            words.setdefault(term, word.lower())
    rarest = sorted(words, key=lambda term: counts[term])[:LABEL_WORDS]
    return ", ".join(dict.fromkeys(words[term] for term in words if term in rarest))


def _has(text: str, name: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?![^\W\d_])", text, re.IGNORECASE))


def _title(part: OutlineSection) -> str:
    return NUMBERING.sub("", part.title).strip().casefold()


def _finder(contents: Contents, part: OutlineSection) -> Callable[[str], DocumentChunk | None]:
    return lambda line: contents.chunk_with(line, part.start)

"""Compare two versions of a document: added, removed and reworded sentences.

An earlier version may be a separate document: "Handbook 2024.pdf" beside "Handbook 2025.pdf".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from difflib import SequenceMatcher

from rag.answering.routes.documents import Contents, NumberedPassages, ReadableDocuments, WholeDocument
from rag.answering.routes.recognise import YEAR
from rag.answering.routes.replies import RouteReply, ask_which, cell, day_of, say
from rag.answering.sentences import sentences
from rag.types import DocumentChunk, DocumentPage, Outcome

MOST_CHANGES = 40
MOST_CHARACTERS = 300
#: Two sentences at the same place count as reworded if at least this share agrees, in characters.
SAME_SENTENCE = 0.55
#: A word replacement is reported only once if affecting at least this many sentences.
FEWEST_PLACES = 4
BESIDE_FIGURES = re.compile(r"(?<!\d)\W+|\W+(?!\d)")
PUNCTUATION = ".,;:!?()[]“”\"'‘’"
POSSESSIVE = re.compile(r"['’]s?$")
VERSION = re.compile(r"\b(?:v|version|versie|versión|versione|versão|wersj\w+|버전|版)\s*(\d{1,3})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Sentence:
    """A sentence with its page."""

    text: str
    page: int

    @property
    def folded(self) -> str:
        return re.sub(r"\W+", " ", self.text).casefold().strip()

    @property
    def comparable_text(self) -> str:
        """Return the text for comparison, without hyphens and spaces outside figures, which extractors may lose."""
        return BESIDE_FIGURES.sub("", self.text).casefold()

    @property
    def words(self) -> list[str]:
        return [POSSESSIVE.sub("", word.strip(PUNCTUATION)) for word in self.text.split()]


def what_changed(
    library: ReadableDocuments, documents: Sequence[WholeDocument], *, since: str, language: str
) -> RouteReply:
    """Describe the changes between an earlier version of a document and the current version.

    `documents` are the documents which the question may mean; if there are several, the reply asks which. `since` is
    the question's text for the period.
    """
    if not documents:
        return RouteReply(text=say("no_versions", language), outcome=Outcome.NO_CONTEXT)
    if len(documents) > 1:
        return ask_which(documents, language, "changed")
    versions = library.versions(documents[0])
    current = next(version for version in versions if version.id == documents[0].id)
    earlier = [version for version in versions if version.version != current.version]
    if not earlier:
        text = say("one_version", language, title=cell(current.title), date=day_of(current))
        return RouteReply(text=text, outcome=Outcome.NO_CONTEXT)
    base = _base(earlier, since)
    days = (day_of(base), day_of(current))
    if days[0] == days[1]:
        days = (f"{days[0]} ({base.version})", f"{days[1]} ({current.version})")
    return compare_documents(library, base, current, days, language)


def _base(earlier: Sequence[WholeDocument], since: str) -> WholeDocument:
    """Return the version to compare with.

    This is the version numbered in `since`, else the last version before the year in `since`, or the oldest if all are
    later. Without a number or year in `since`, this is the previous version.
    """
    if number := VERSION.search(since):
        named = [version for version in earlier if version.version == int(number[1])]
        if named:
            return named[0]
    if years := YEAR.findall(since):
        year = min(map(int, years))
        before = [version for version in earlier if (version.published_at or version.created_at).year < year]
        return before[-1] if before else earlier[0]
    return earlier[-1]


def compare_documents(
    library: ReadableDocuments, old: WholeDocument, new: WholeDocument, names: tuple[str, str], language: str
) -> RouteReply:
    """Compare two documents, the older first. `names` label the two in the reply, for example with their dates."""
    before, after = _sentences(library.pages(old)), _sentences(library.pages(new))
    contents = {old.id: library.contents(old), new.id: library.contents(new)}
    passages = NumberedPassages()
    pairs: list[tuple[Sentence | None, Sentence | None]] = []
    matcher = SequenceMatcher(
        None, [s.comparable_text for s in before], [s.comparable_text for s in after], autojunk=False
    )
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag != "equal":
            pairs += _pair(before[first:last], after[start:end])
    renamed = _find_renames(pairs)
    lines: list[str] = []
    for (was, now), places in renamed.items():
        old_sentence, new_sentence = pairs[places[0]]
        markers = [
            passages.cite(c.document, _chunk_of(s, c))
            for s, c in ((old_sentence, contents[old.id]), (new_sentence, contents[new.id]))
            if s
        ]
        label = say("everywhere", language, count=len(places))
        lines += ["", f"- {label}: “{cell(was)}”{markers[0]} → “{cell(now)}”{markers[1]}"]
    collapsed = {place for places in renamed.values() for place in places}
    page, count = 0, 0
    for place, (old_sentence, new_sentence) in enumerate(pairs):
        if place in collapsed:
            continue
        count += 1
        if count > MOST_CHANGES:
            continue
        at = new_sentence or old_sentence
        if at is not None and at.page != page:
            page = at.page
            lines += ["", f"**{say('page', language, number=page)}**", ""]
        old_quote = _quote(old_sentence, contents[old.id], passages)
        new_quote = _quote(new_sentence, contents[new.id], passages)
        if old_sentence and new_sentence:
            lines.append(f"- {say('changed_to', language)}: {old_quote} → {new_quote}")
        else:
            lines.append(f"- {say('added' if new_sentence else 'removed', language)}: {new_quote or old_quote}")
    if not pairs:
        first_chunk = contents[new.id].chunk_at(0)
        same = say("same", language, title=cell(new.title)) + passages.cite(new, first_chunk)
        return RouteReply(text=same, citations=tuple(passages.citations))
    if count > MOST_CHANGES:
        lines += ["", say("more", language, count=count - MOST_CHANGES)]
    opening = say("versions", language, title=cell(new.title), old=names[0], new=names[1])
    return RouteReply(text="\n".join([opening, *lines]), citations=tuple(passages.citations))


def _find_renames(pairs: Sequence[tuple[Sentence | None, Sentence | None]]) -> dict[tuple[str, str], list[int]]:
    """Find replacements which are the only change in many sentences, for example a new company name.

    Returns the positions in `pairs`, by (old words, new words).
    """
    places_by_change: dict[tuple[str, str], list[int]] = {}
    for place, (old_sentence, new_sentence) in enumerate(pairs):
        if old_sentence is None or new_sentence is None:
            continue
        was, now = old_sentence.words, new_sentence.words
        opcodes = [code for code in SequenceMatcher(None, was, now, autojunk=False).get_opcodes() if code[0] != "equal"]
        changes = {(" ".join(was[a:b]), " ".join(now[c:d])) for _, a, b, c, d in opcodes}
        if len(changes) == 1 and all(change := next(iter(changes))):
            places_by_change.setdefault(change, []).append(place)
    return {change: places for change, places in places_by_change.items() if len(places) >= FEWEST_PLACES}


def _sentences(pages: Sequence[DocumentPage]) -> list[Sentence]:
    return [Sentence(text, page.number) for page in pages for text in sentences(page.text)]


def _pair(
    old_sentences: Sequence[Sentence], new_sentences: Sequence[Sentence]
) -> list[tuple[Sentence | None, Sentence | None]]:
    """Pair each new sentence with the old sentence which it replaces.

    Added and removed sentences are paired with `None`.
    """
    remaining = list(old_sentences)
    pairs: list[tuple[Sentence | None, Sentence | None]] = []
    for new in new_sentences:
        best = max(remaining, key=lambda old: _alike(old, new), default=None)
        if best is not None and _alike(best, new) >= SAME_SENTENCE:
            remaining.remove(best)
            pairs.append((best, new))
        else:
            pairs.append((None, new))
    return [*pairs, *((old, None) for old in remaining)]


def _alike(sentence: Sentence, other: Sentence) -> float:
    matcher = SequenceMatcher(None, sentence.folded, other.folded, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= SAME_SENTENCE else 0.0


def _quote(sentence: Sentence | None, contents: Contents, passages: NumberedPassages) -> str:
    if sentence is None:
        return ""
    text = cell(sentence.text)
    shortened = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    return f"“{shortened}”{passages.cite(contents.document, _chunk_of(sentence, contents))}"


def _chunk_of(sentence: Sentence, contents: Contents) -> DocumentChunk | None:
    sentence_text = " ".join(sentence.text.split())
    on_page = [c for c in contents.chunks if c.first_page <= sentence.page <= c.last_page]
    return next((c for c in on_page if sentence_text in " ".join(c.content.split())), on_page[0] if on_page else None)


#: An edition's mark in a title, file name or folder: a year, a month with year, a date, or a number.
MARK = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)(?:[-._/](?P<month>0[1-9]|1[0-2])(?:[-._/](?P<day>0[1-9]|[12]\d|3[01]))?)?(?!\d)"
    r"|(?<![^\W_])(?:v|version|versie|versión|versione|versão|edition|fassung|ausgabe|edición|édition)"
    r"[ ._-]?(?P<number>\d{1,3})(?!\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Edition:
    """A document, with the place among the editions sharing a title."""

    document: WholeDocument
    begins: date
    number: int
    #: The mark as written, or the first day if set.
    words: str

    @property
    def place(self) -> tuple[date, int]:
        return self.begins, self.number


def two_editions(
    documents: Iterable[WholeDocument], requested: Sequence[WholeDocument], since: str
) -> tuple[Edition, Edition] | None:
    """Return an earlier and a later edition for the requested work, or `None` if there are not two.

    `since` is the question's text for the period; the years in this text choose the editions. Without years, the result
    is the latest edition and the preceding edition. If `requested` is empty, exactly one work must have several
    editions.
    """
    works: dict[tuple[str, ...], list[Edition]] = {}
    for document in documents:
        if edition := _edition(document):
            works.setdefault(_work(document), []).append(edition)
    requested_works = {_work(document) for document in requested}
    chosen = [
        sorted(editions, key=lambda edition: edition.place)
        for work, editions in works.items()
        if len({edition.place for edition in editions}) > 1 and (not requested or work in requested_works)
    ]
    if len(chosen) != 1:
        return None
    (ordered,) = chosen
    years = [int(year) for year in YEAR.findall(since)]
    named = [edition for edition in ordered if edition.begins.year in years]
    if len(named) > 1:
        return named[0], named[-1]
    latest = len(ordered) - 1
    if len(requested) == 1:
        latest = (
            next((at for at, edition in enumerate(ordered) if edition.document.id == requested[0].id), latest) or latest
        )
    before = [edition for edition in ordered[:latest] if not years or edition.begins.year <= min(years)]
    return (before or ordered)[-1 if before else 0], ordered[latest]


def _edition(document: WholeDocument) -> Edition | None:
    if document.valid_from is not None:
        return Edition(document, document.valid_from, 0, f"{document.valid_from:%Y-%m-%d}")
    for name in (document.title, document.file_name, document.folder):
        if (match := MARK.search(name)) is None:
            continue
        if number := match["number"]:
            return Edition(document, date.min, int(number), match[0])
        with suppress(ValueError):  # the 30th of February
            begins = date(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))
            return Edition(document, begins, 0, match[0])
    return None


def _work(document: WholeDocument) -> tuple[str, ...]:
    """Return a key which all editions share: language, folder, and title without years and the like."""
    return (document.language, *(_bare(name) for name in (document.folder, document.title)))


def _bare(name: str) -> str:
    return " ".join(re.findall(r"\w+", MARK.sub(" ", name.replace("_", " ")).casefold()))

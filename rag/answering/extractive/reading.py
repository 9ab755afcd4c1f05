"""Read passages as candidate sentences for a question, each with a score factor."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from rag.answering.answer_types import AMOUNTS, AnswerType, counts_in, requested_type
from rag.answering.applicability import (
    Marks,
    Naming,
    asks_for_meaning,
    compare_marks,
    condition_of,
    defined_in,
    grants,
    holds,
    is_contract_definition,
    is_for_another_group,
    is_for_another_period,
    is_for_another_stage,
    marks_in,
    says_whether,
    states_case,
    tells_how,
)
from rag.answering.extractive.in_words import rarity, shares_of_words, weigh_synonyms
from rag.answering.extractive.likeness import ComparedPart, Similarities
from rag.answering.extractive.rule import RULE
from rag.answering.extractive.words import (
    ASKS_HOW,
    ASKS_WHERE,
    comparable_terms,
    figures_written,
    other_words,
    passage_language,
    years_in_words,
)
from rag.answering.quotations import EXCEPTION, CandidateSentence, bare_heading
from rag.answering.sentences import (
    IN_THIS_CASE,
    LINK_ALONE,
    OF_ANOTHER_PARAGRAPH,
    POINTER,
    Unit,
    ends,
    folded,
    section_pointed_to,
    units_of,
)
from rag.answering.thresholds import is_reached
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.bm25.synonyms import ideas_in, named_in
from rag.retrieval.known_by import known_by
from rag.retrieval.meaning import named_languages
from rag.text.spans import PATH_SEPARATOR
from rag.text.tables import tables_in
from rag.types import Citation

WITHDRAWN = re.compile(
    r"\b(?:withdrawn|superseded|repealed|obsolete|expired|no longer valid|vervallen|ingetrokken|aufgehoben|außer kraft"
    r"|abrogée?s?|abrogad[oa]s?|derogad[oa]s?|abrogat[oaie]|revogad[oa]s?|uchylon[yae]|nieaktualn[yae]"
    r"|yürürlükten kaldırıl\w*)\b|폐지|廃止|废止|作废|ملغى|ملغاة",
    re.IGNORECASE,
)
#: Factors for rows with the letter or number from the question ("Band B", "Zone 2"), a different one, several, or no
#: mark.
MARK_VALUES: Mapping[Naming, float] = {"asked": 1.5, "another": 0.3, "several": 1.0, "none": 1.0}
#: Factors for sentences whose limit is reached by the question's years ("from the fifth year"), missed, or missing.
REACHED_VALUES: Mapping[bool | None, float] = {True: 1.25, False: 0.6, None: 1.0}
#: Instructions addressed to a language model, not to employees.
TO_A_MODEL = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instructions?|prompts?|rules?)\b|^(?:system|assistant)\s*:|\bprompt\b",
    re.IGNORECASE,
)
#: Words which introduce an example.
EXAMPLE = re.compile(
    r"(?:for (?:instance|example)|e\.g\.|zum beispiel|z\. ?b\.|bijvoorbeeld|par exemple|por ejemplo|per esempio"
    r"|por exemplo|na przykład|np\.|örneğin|예를 들|例えば|たとえば|例如|比如|على سبيل المثال"
    r"|(?:if|imagine|suppose|say|let's say)(?: that)? (?:you|we|someone|an employee)"
    r" (?:had|were|was|got|owned|earned)\b"
    r"|(?:imagine|suppose|let's say|stel(?: je voor)? dat|angenommen|nehmen wir an|supposons|imaginons|supongamos"
    r"|imagina|supponiamo|immagina|suponha(?:mos)?|imagine que|załóżmy|diyelim ki|仮に|假设|لنفترض)\b)",
    re.IGNORECASE,
)
WORD_OR_NUMBER = re.compile(r"\w+")
#: Text with two letters in a row, or with a date; other text is a paragraph number, a page number or dots.
SAYING = re.compile(r"[^\W\d_]{2}|\b(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})\b")
#: Opens a list with links to further pages, which never answers a question.
SEE_ALSO = re.compile(
    r"(?:see also|elsewhere|related|further reading|zie ook|siehe auch|voir aussi|véase también|vedi anche|ver também"
    r"|zobacz (?:też|także)|ayrıca bakınız)\b|함께 보기|관련|関連|参考|另见|相关|انظر أيضا",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Passages:
    """The passages to quote from, best first, with the question's language and the known similarities."""

    citations: Sequence[Citation]
    #: The question's language.
    language: str
    #: Compares sentences by meaning; without it, words and places decide.
    similarities: Similarities | None = None
    #: Parts with their cosines to the question, by passage number.
    parts_by_number: Mapping[int, Sequence[ComparedPart]] = field(default_factory=dict)

    @cached_property
    def languages(self) -> list[str]:
        return [passage_language(citation, self.language) for citation in self.citations]

    def language_of(self, candidate: CandidateSentence) -> str:
        return self.languages[candidate.passage]

    def document_of(self, candidate: CandidateSentence) -> UUID:
        return self.citations[candidate.passage].document_id


class Reading(NamedTuple):
    """A question compared with the passages: all sentences, and the quotable sentences (candidates)."""

    question: str
    question_terms: frozenset[str]
    #: The terms in `question_terms` which come from the follow-up.
    followed: frozenset[str]
    #: The terms in `question_terms`, grouped by the expressions naming the question's subjects.
    subjects: tuple[frozenset[str], ...]
    everything: list[CandidateSentence]
    candidates: list[CandidateSentence]
    weights: dict[str, float]
    in_words: dict[CandidateSentence, float]
    #: The largest share of the question's words in any sentence, with all words' full weights.
    most: float

    @property
    def is_followed(self) -> bool:
        """Whether any candidate sentence contains a word from the follow-up question."""
        return any(not self.followed.isdisjoint(c.terms) for c in self.candidates)

    @property
    def subject(self) -> frozenset[str]:
        """The terms in all the question's subjects."""
        return frozenset[str]().union(*self.subjects)


def read(question: str, passages: Passages, focus: str, original: Reading | None = None) -> Reading:
    """Split the passages into sentences, and weight them by the question's words.

    `focus` is the follow-up's text. If `question` is the user's question in synonyms, `original` is the result for the
    unchanged question.
    """
    language, citations = passages.language, passages.citations
    wording = _Wording(question, language, question if original is None else original.question)
    followed = wording.terms.intersection(tokenize(focus, language))
    everything = [
        candidate
        for place, citation in enumerate(citations)
        for candidate in _candidates(_open_passage(citation, passages.languages[place], wording), place, wording)
    ]
    candidates = _quotable(everything)
    subjects = tuple(wording.terms.intersection(tokenize(name, language)) for name in named_in(question, language))
    weights = rarity(wording.terms, everything)

    def shares(weights: dict[str, float]) -> dict[CandidateSentence, float]:
        return shares_of_words(candidates, everything, weights, subjects, len(citations)) if candidates else {}

    in_words = shares(weights)
    most = max(in_words.values(), default=0.0)
    if original is not None:
        weights = weigh_synonyms(weights, original.weights)
        in_words = shares(weights)
    return Reading(question, wording.terms, followed, subjects, everything, candidates, weights, in_words, most)


@dataclass(frozen=True)
class _Wording:
    text: str
    language: str
    #: The question in the user's words, if `text` is in synonyms.
    original: str

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(tokenize(self.text, self.language))

    @cached_property
    def kind(self) -> AnswerType | None:
        """The type of fact the question asks for; `None` if any sentence may answer."""
        return requested_type(self.original)

    @cached_property
    def asks_for_meaning(self) -> bool:
        return asks_for_meaning(self.text)

    @cached_property
    def ideas(self) -> frozenset[int]:
        """The question's synonym groups by id, for example the group for annual leave; see
        `rag/retrieval/bm25/synonyms.py`.
        """
        return ideas_in(self.text, self.language)

    @cached_property
    def figures(self) -> frozenset[str]:
        return figures_written(self.text)

    @cached_property
    def amounts(self) -> frozenset[str]:
        """The question's figures, including numbers in words: "after six years"."""
        return self.figures | years_in_words(self.text, self.language)

    @cached_property
    def folded(self) -> str:
        """The question's words in lower case, separated and enclosed by single spaces."""
        return f" {' '.join(WORD_OR_NUMBER.findall(self.text.casefold()))} "

    @cached_property
    def marks(self) -> Marks:
        """The letter or number in the question, as in "Band B"."""
        return marks_in(self.text)


@dataclass(frozen=True)
class _OpenPassage:
    citation: Citation
    language: str
    is_across: bool
    units: Sequence[Unit]
    #: Terms in the document's title with its folders; in the folders alone; in title and section; in the section's last
    #: heading.
    title: frozenset[str]
    folder: frozenset[str]
    section: frozenset[str]
    last_heading: frozenset[str]
    #: The last heading of the section.
    heading: str
    #: The heads of all tables in the passage.
    heads_of_rows: str
    #: For each unit, whether the row's range includes the question's figure; `None` if the unit is no row with a range.
    in_range: Sequence[bool | None]
    #: The passage's factor: below 1 for a document from a different branch, or a withdrawn document.
    value: float
    terms_in: Callable[[str], frozenset[str]]


def _open_passage(citation: Citation, text_language: str, wording: _Wording) -> _OpenPassage:
    question, language = wording.text, wording.language
    words = other_words(question, language, text_language)
    terms_in = partial(
        comparable_terms,
        language=language,
        text_language=text_language,
        words=words,
        question_terms=wording.terms,
        ideas=wording.ideas,
    )
    name = known_by(citation.title, citation.folder, question, frozenset([language]))
    title = terms_in(name)
    folder = title - terms_in(citation.title)
    heading = citation.section.rpartition(PATH_SEPARATOR)[2]
    units = units_of(citation.passage, frozenset([citation.title, *citation.section.split(PATH_SEPARATOR)]))
    tables = tables_in(citation.passage) if any(wording.marks) else ()
    return _OpenPassage(
        citation=citation,
        language=text_language,
        is_across=text_language != language,
        units=units,
        title=title,
        folder=folder,
        section=title | terms_in(citation.section),
        last_heading=terms_in(heading),
        heading=heading,
        heads_of_rows=" ".join(cell for table in tables if table.heads for cell in table.heads.cells),
        in_range=[holds(unit.text, wording.amounts) if unit.kind == "row" else None for unit in units],
        value=_branch_value(name, text_language, folder, wording),
        terms_in=terms_in,
    )


def _branch_value(name: str, text_language: str, folder: frozenset[str], wording: _Wording) -> float:
    # A question which names a country is about the documents in the country's folder or language.
    named = named_languages(wording.text)
    value = RULE.other_branch_value if named and text_language not in named and not folder & wording.terms else 1.0
    if WITHDRAWN.search(name) and not WITHDRAWN.search(wording.text):
        # A question with a figure from the title, for example the year, is about this document although it is
        # withdrawn.
        value *= 1.0 if wording.figures & figures_written(name) else RULE.withdrawn_value
    return value


@dataclass(frozen=True)
class _Place:
    position: int
    #: The heading above, as text and as terms; and the heading to prepend when comparing by meaning, "" within the same
    #: language.
    heading: str
    above: frozenset[str]
    headed: str
    #: Whether the unit is an item in a list with an opening line, or is the opening line.
    is_listed: bool
    #: Whether the unit belongs to an example.
    is_example: bool


def _place_units(passage: _OpenPassage) -> Iterator[tuple[Unit, _Place]]:
    heading, above = passage.heading, frozenset[str]()
    # Across languages, a short sentence compares better with its heading (docs/measurements/answering.md, "Replies").
    headed = bare_heading(heading) if passage.is_across else ""
    is_listed = False
    example_block = -1
    for position, unit in enumerate(passage.units):
        is_listed = (unit.text.endswith(":") and not SEE_ALSO.match(unit.text)) or (is_listed and unit.kind == "item")
        if unit.kind == "heading":
            heading, above = unit.text, passage.terms_in(unit.subject or unit.text)
            headed = (bare_heading(unit.text) or headed) if passage.is_across else ""
        # An example goes on to the end of the paragraph.
        if EXAMPLE.match(unit.text):
            example_block = unit.block
        is_example = unit.block == example_block and unit.kind not in ("row", "column", "heading")
        yield unit, _Place(position, heading, above, headed, is_listed, is_example)


def _candidates(passage: _OpenPassage, place: int, wording: _Wording) -> Iterator[CandidateSentence]:
    kind, question = wording.kind, wording.text
    for unit, near in _place_units(passage):
        terms = passage.terms_in(unit.subject or unit.text)
        if unit.kind == "column" and not wording.terms & (passage.terms_in(unit.subject) - passage.title):
            continue
        # For a row, terms from the column heads; for a column, from the row names.
        heads = passage.terms_in(unit.text) if unit.subject else frozenset()
        is_headed = kind is not None and kind.name in AMOUNTS and counts_in(near.heading, question)
        is_of_type = kind is None or is_headed or kind.is_in(unit.text, question)
        above = f"{passage.heads_of_rows} {near.heading}"
        mark = compare_marks(unit.text, above, wording.marks, is_across=passage.is_across)
        is_within = is_reached(unit.text, passage.language, question, wording.language) if unit.kind != "row" else None
        factors = _factors(unit, near, passage, wording, is_of_type=is_of_type, mark=mark)
        yield CandidateSentence(
            text=unit.text,
            kind=unit.kind,
            terms=terms,
            passage=place,
            position=near.position,
            heading=passage.section | near.above | heads,
            title=passage.title,
            figures=figures_written(unit.text) - wording.figures,
            value=math.prod(factors) * REACHED_VALUES[is_within],
            is_of_type=is_of_type,
            under=near.above or passage.last_heading,
            block=unit.block,
            headed=near.headed,
            folder=passage.folder,
            is_headed=is_headed,
            step=unit.step,
            mark=mark,
            is_reached=is_within,
        )


def _factors(
    unit: Unit, near: _Place, passage: _OpenPassage, wording: _Wording, *, is_of_type: bool, mark: Naming
) -> Iterator[float]:
    question, kind, text = wording.text, wording.kind, unit.text
    is_last = near.position == len(passage.units) - 1
    yield passage.value
    if _is_cut(unit, is_first=near.position == 0, is_last=is_last):
        yield RULE.fragment_value
    if kind is not None:
        yield RULE.type_value if is_of_type else RULE.other_type_value
        if kind.definite_regex is not None and kind.definite_regex.search(text):
            yield RULE.definite_value
        if (
            is_of_type
            and not passage.is_across
            and kind.heading_regex is not None
            and kind.heading_regex.search(near.heading)
        ):
            yield RULE.headed_value
    if _is_named(near.heading, wording):
        yield RULE.named_heading_value
    if unit.kind == "column" and any(passage.in_range):
        yield RULE.outside_value
    if (is_inside := passage.in_range[near.position]) is not None:
        yield RULE.inside_value if is_inside else RULE.outside_value
    if near.is_example:
        yield RULE.example_value
    yield MARK_VALUES[mark]
    yield from _rule_factors(text, near.heading, passage, wording)
    if _is_label(unit) and not near.is_listed:
        yield RULE.label_value
    if len(text) <= RULE.longest_pointer and (POINTER.search(text) or section_pointed_to(text)):
        yield RULE.pointer_value
    if LINK_ALONE.fullmatch(text) and not ASKS_WHERE.search(question):
        yield RULE.pointer_value
    if text.endswith((":", "：")):
        following = None if is_last else passage.units[near.position + 1].kind
        # After a heading or at the end, the announced text is in a different passage.
        if following in (None, "heading"):
            yield RULE.label_value
        elif following == "sentence":
            yield RULE.announcement_value


def _rule_factors(text: str, heading: str, passage: _OpenPassage, wording: _Wording) -> Iterator[float]:
    question = wording.text
    if _limits_another(text, question):
        yield RULE.after_rule_value
    if says_whether(text, question):
        yield RULE.permission_value
    # Across languages the lists of words would be unfair.
    if not passage.is_across and grants(text, question):
        yield RULE.entitlement_value
    if not passage.is_across and tells_how(text, question):
        yield RULE.instruction_value
    if wording.asks_for_meaning:
        if (terms := passage.terms_in(defined_in(text))) and terms <= wording.terms:
            yield RULE.definition_value
    elif is_contract_definition(text):
        yield RULE.contract_definition_value
    if not passage.is_across and _sets_another_condition(text, passage, wording):
        yield RULE.other_condition_value
    if is_for_another_group(text, heading, question):
        yield RULE.other_group_value
    if is_for_another_period(text, question):
        yield RULE.other_period_value
    if is_for_another_stage(text, question):
        yield RULE.other_stage_value


def _is_named(heading: str, wording: _Wording) -> bool:
    words = folded(heading)
    is_in_terms = len(tokenize(words, wording.language)) >= len(words.split())
    return " " in words and f" {words} " in wording.folded and not is_in_terms


def _is_cut(unit: Unit, *, is_first: bool, is_last: bool) -> bool:
    if unit.kind in ("row", "column"):
        return False
    ends_within = is_last and not ends(unit.text) and len(unit.text) > RULE.heading_characters
    # List items may start in lower case.
    begins_within = is_first and unit.kind == "sentence" and unit.text[:1].islower()
    return ends_within or begins_within


def _limits_another(text: str, question: str) -> bool:
    """Whether a sentence is an exception to the preceding sentence, or refers to a paragraph which the question does
    not name.
    """
    return bool(
        EXCEPTION.match(text)
        or IN_THIS_CASE.match(text)
        or (OF_ANOTHER_PARAGRAPH.search(text) and not OF_ANOTHER_PARAGRAPH.search(question))
    )


def _sets_another_condition(text: str, passage: _OpenPassage, wording: _Wording) -> bool:
    """Whether a sentence has a condition which the question hardly mentions.

    For "Can I work from home?", an example is "If you feel ill, work from home".
    """
    if states_case(wording.text) or ASKS_HOW.search(wording.text) or not (condition := condition_of(text)):
        return False
    terms = passage.terms_in(condition)
    return len(terms & wording.terms) < RULE.least_of_condition * len(terms)


def _is_label(unit: Unit) -> bool:
    """Whether a text is only a label, like in a contents list: few words, no final punctuation, no digits."""
    return (
        unit.kind in ("item", "sentence")
        and not ends(unit.text)
        and len(unit.text.split()) <= RULE.label_words
        and not any(map(str.isdigit, unit.text))
    )


def _quotable(everything: Sequence[CandidateSentence]) -> list[CandidateSentence]:
    quotable = [
        c for c in everything if c.kind != "heading" and not c.text.endswith(("?", "？")) and SAYING.search(c.text)
    ]
    # A sentence or row cut by the edge of its passage is complete in the next passage.
    texts = sorted({c.text for c in quotable})
    cut = {text for text, following in pairwise(texts) if len(text) >= RULE.least_cut and following.startswith(text)}
    quotable = [c for c in quotable if c.text not in cut]
    return quotable or [c for c in everything if c.kind != "heading"]

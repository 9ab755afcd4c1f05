"""Answer without a language model: quote the sentences which say most about the question.

A sentence scores by the rarity (idf) of the question's terms it contains (terms in the headings above count half) and,
if the caller can compare meaning, by its similarity to the question. Length and a low-ranked passage cost points. An
earlier step decides whether the passages answer at all; this module quotes the best sentences.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from rag.answering.answer_types import asked_type, counts_in
from rag.answering.applicability import Naming, is_for_another_group, is_for_another_period, mark_named, marks_asked
from rag.answering.carried_over import NOTHING, Carried
from rag.answering.quotations import (
    EXCEPTION,
    LONGEST_SENTENCE,
    SAME,
    CandidateSentence,
    Quotes,
    Selected,
    bare_heading,
    says_otherwise,
    written,
)
from rag.answering.ranges import holds
from rag.answering.reply_odds import ReplySignals
from rag.answering.sentences import (
    IN_THIS_CASE,
    LINK_ALONE,
    OF_ANOTHER_PARAGRAPH,
    POINTER,
    Kind,
    ends,
    section_pointed_to,
    units_of,
)
from rag.errors import RagError
from rag.ingestion.meaning import parts_of
from rag.providers import Embedder
from rag.providers.processor import waiting
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.bm25.synonyms import ideas_in, is_only_within_another, named_in, reworded
from rag.retrieval.evidence import compound_share
from rag.retrieval.known_by import known_by
from rag.retrieval.meaning import named_languages, without_place
from rag.retrieval.query_understanding import split_question
from rag.retrieval.search_query import COMPOUNDING, asked_words
from rag.text.analysers import analyser_code
from rag.text.figures import figures
from rag.text.language_detection import detect_language
from rag.text.number_words import years_written
from rag.text.spans import PATH_SEPARATOR
from rag.text.tables import tables_in
from rag.types import Citation, ContextResponse

#: Compares questions with sentences by meaning, with the cosine or any other measure growing with likeness. Returns a
#: list per question with a value per sentence.
Similarities = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]


@dataclass(frozen=True, kw_only=True)
class QuoteRule:
    """Factors of a sentence's score and limits of a reply, from known questions (docs/measurements/answering.md)."""

    maximum_quotes: int = 3
    maximum_characters: int = 900
    #: Lowest score for a further sentence, relative to the best.
    least_of_best: float = 0.6
    least_of_best_row: float = 0.85
    #: The same for a sentence from a different passage if the best sentence holds the whole question.
    least_beside_whole: float = 0.8
    #: The same for sentences right beside the best: they continue its thought in different words and need less.
    least_beside: float = 0.4
    #: Share of the question's words a further sentence must hold itself, relative to the best. Under a heading naming
    #: the subject, every sentence would otherwise count.
    least_own: float = 0.5
    #: A sentence answers a part of the question from this share of the part's words on.
    least_of_part: float = 0.4
    heading_weight: float = 0.5
    #: Weight of a single word from an expression: "second" from "second job".
    part_of_expression: float = 0.5
    #: Gain for the first sentences below a heading which holds the whole question.
    below_heading: tuple[float, float] = (0.5, 0.25)
    #: Factor for a sentence with all question words missing in its headings: "They never expire", below "Credit hours".
    whole_value: float = 1.15
    #: Factor for a row beside a section with the question in the heading.
    overview_value: float = 0.4
    #: A text at least this long which starts another text is a cut copy.
    least_cut: int = 40
    #: Factor for a sentence cut by the edge of its passage, because it reads badly.
    fragment_value: float = 0.5
    #: Factor for a sentence from a different document than the question names, such as the second health plan.
    other_document_value: float = 0.5
    #: Questions about rules and plans mostly ask for an amount, a date or a time limit.
    figure_value: float = 1.25
    type_value: float = 1.6
    #: Factor for the right kind of fact below a matching heading, "Number of days".
    headed_value: float = 1.15
    #: Factor for a sentence without the kind of fact the question asks for.
    other_type_value: float = 0.8
    #: Factor for a different language than the named country's, because the rule belongs to a different branch.
    other_branch_value: float = 0.6
    #: The passage nowhere names the question's subject, and a different passage does. From 0.3 to 0.6 the same
    #: quotations come first.
    other_subject_value: float = 0.6
    #: Gain for a sentence with all words from a follow-up; factor for a sentence with names foreign to the
    #: conversation; share of the best sentence's words required from further quotations.
    focus_value: float = 0.6
    other_name_value: float = 0.85
    least_of_follow_up: float = 0.7
    #: Factor for a document withdrawn according to its title.
    withdrawn_value: float = 0.5
    #: The question's figure is inside a row's range, or outside: "up to 2 years" for somebody with six.
    inside_value: float = 2.5
    outside_value: float = 0.5
    #: Factor for a sentence which only says where to find the answer.
    pointer_value: float = 0.4
    longest_pointer: int = 240
    heading_characters: int = 60
    #: Factor from a passage to the next in the list.
    next_passage: float = 0.92
    #: Sentences compared by meaning; each takes a model about ten milliseconds.
    most_compared: int = 16
    #: Further sentences compared for each part of a question.
    more_compared: int = 6
    #: A quotation from a further document may have this much less cosine by meaning than the first. Branches' rules on
    #: the same thing in three languages have up to 0.046 less, sentences on something else in their documents from
    #: 0.086.
    less_alike: float = 0.06
    #: Lowest score, relative to the anchor, without a model of meaning: for a sentence from the asker's place to come
    #: first, and for sentences from different places to be named.
    least_of_another_place: float = 0.7
    #: A foreign-language sentence must score this much higher than the place's next sentence.
    stands_out: float = 1.2
    #: Sentences from the asker's place to compare with the best.
    most_of_own_place: int = 8
    #: The largest gain by meaning; all words of the question together count 1.
    meaning_weight: float = 0.8
    #: The largest gain from the part of the passage around a sentence; the part's similarity is already known.
    part_weight: float = 0.8
    #: Below this share, the question's words do not tell which sentence answers.
    least_in_words: float = 0.12
    #: From this share on, words alone decide and meaning is not compared.
    all_in_words: float = 0.9
    #: From this share on, the sentence covers the whole question.
    all_said: float = 0.99
    #: From this share on, words are enough. Below, further sentences from the best passage need only the second value.
    sure_in_words: float = 0.5
    least_of_unsure: float = 0.2
    #: Sentences quoted from the start of the best passage when no words decide.
    first_sentences: int = 3
    #: Neighbours of the best sentence: their offsets in the order tried, and the most characters in total.
    neighbours: tuple[int, int, int, int] = (-1, 1, 2, -2)
    longest_neighbourhood: int = 560
    #: Factor for a bare label, such as an entry in a table of contents, and its most words. `example_value` is the
    #: factor for a sentence with an example.
    label_value: float = 0.3
    label_words: int = 6
    example_value: float = 0.7
    #: Factor for a list item: with equal scores a sentence wins, because it can be understood alone.
    item_value: float = 0.97
    #: Factor for a sentence limiting the sentence before: the rule comes before its exception.
    after_rule_value: float = 0.85
    #: Factors for a rule about a different group and for a different period than the question's.
    other_group_value: float = 0.75
    other_period_value: float = 0.75
    #: In languages with compounds, words from this length on are also searched inside longer words. A compound split
    #: into parts must be found to this share.
    least_compounded: int = 5
    enough_of_compound: float = 0.7
    #: Terms allowed between the terms of an expression: "work from the home office" matches "work from home".
    within_expression: int = 1
    #: Characters used to detect a passage's language.
    language_characters: int = 400


RULE = QuoteRule()

WITHDRAWN = re.compile(
    r"\b(?:withdrawn|superseded|repealed|obsolete|expired|no longer valid|vervallen|ingetrokken|aufgehoben|außer kraft"
    r"|abrogée?s?|abrogad[oa]s?|derogad[oa]s?|abrogat[oaie]|revogad[oa]s?|uchylon[yae]|nieaktualn[yae]"
    r"|yürürlükten kaldırıl\w*)\b|폐지|廃止|废止|作废|ملغى|ملغاة",
    re.IGNORECASE,
)
#: Factors for rows with the right letter or number ("Band B", "Zone 2"), without any, and with a wrong one.
MARK_VALUES: Mapping[Naming, float] = {"asked": 1.5, "another": 0.3, "several": 1.0, "none": 1.0}

#: Text written for a model, not for employees.
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
#: Names by spelling: "PerksPlus", "eBike"; in languages with lower-case nouns also "Northwind" inside a sentence.
NAME = re.compile(r"\b\w*[a-zà-ÿ][A-ZÀ-Þ]\w*")
NAME_OR_CAPITAL = re.compile(rf"{NAME.pattern}|(?<=[\w,;] )[A-ZÀ-Þ][\w-]+")
#: Asks for a place; a link is an answer.
ASKS_WHERE = re.compile(
    r"\b(?:where|link|url|website|site|form|page|waar|pagina|formulier|wo|seite|formular|où|lien|formulaire|dónde|enlace"
    r"|formulario|dove|modulo|onde|formulário|gdzie|strona|formularz|nerede|sayfa)\b|어디|링크|どこ|リンク|哪|链接|أين|رابط",
    re.IGNORECASE,
)
#: Asks how to do something; a list of steps answers.
ASKS_HOW = re.compile(
    r"\b(?:how (?:do|can|should|to|does|must|would)|steps?|hoe|stappen|wie|schritte?|comment|étapes?|cómo|pasos|come"
    r"|passaggi|como|passos|jak|kroki|nasıl|adımlar)\b|어떻게|방법|절차|どうやって|どのように|どうすれば|方法|手順|怎么|怎样|如何|步骤|كيف|خطوات",
    re.IGNORECASE,
)
#: Text without a word is useless: a paragraph number, a page number, a line full of dots.
SAYING = re.compile(r"[^\W\d_]{2}")
QUOTED = re.compile("“(.*?)”")
FIGURE = re.compile(r"\d[\d.,]*")
#: Opens a list of links to further pages, which answers nothing.
SEE_ALSO = re.compile(
    r"(?:see also|elsewhere|related|further reading|zie ook|siehe auch|voir aussi|véase también|vedi anche|ver também"
    r"|zobacz (?:też|także)|ayrıca bakınız)\b|함께 보기|관련|関連|参考|另见|相关|انظر أيضا",
    re.IGNORECASE,
)
#: A number before "years" in words. Tables count service in years; days and weeks are mixed.
YEARS = re.compile(
    r"([^\W\d_]+) (?:(?:full|complete|volle|hele) )?(?:years?|jaar|jaren|dienstja\w+|jahre?n?|ans|années|años|ann[io]"
    r"|anos?|lat|lata(?:ch)?|yıl\w*)\b"
)
#: Words between the parts of a question, by language: "i" means "and" in Polish.
_AND = {
    "en": "and|or", "nl": "en|of", "de": "und|oder", "fr": "et|ou", "es": "y|e|o", "it": "e|ed|o", "pt": "e|ou",
    "pl": "i|oraz|lub", "tr": "ve|veya", "ar": "و|أو",
}  # fmt: skip
#: Separators between the parts of a question: "Overtime on Sunday + time off?", "pay; notice", "임금과 휴가".
_BETWEEN = r"[?？]\s*(?=\S)|\s[+&/]\s|;\s|；|及び|및|그리고|와\s|과\s|、|と(?=\S{2})|和|以及|\sو(?=\S)"


class MeantPart(NamedTuple):
    """A part of a passage with its cosine to the question."""

    text: str
    cosine: float


@dataclass(frozen=True)
class _Part:
    """A part of a question: its terms, and each sentence's points by meaning."""

    terms: frozenset[str]
    meaning: dict[CandidateSentence, float]


def best_quotes(
    question: str,
    citations: Sequence[Citation],
    *,
    language: str = "",
    similarities: Similarities | None = None,
    parts_by_number: Mapping[int, Sequence[MeantPart]] | None = None,
    days: Mapping[UUID, str] | None = None,
    with_neighbours: bool = False,
    carried: Carried = NOTHING,
    own_documents: Collection[UUID] = (),
) -> Quotes | None:
    """Quote the sentences about the question; return `None` if the passages hold no sentence.

    `language` is the question's. `citations` are the context's passages, best first; their numbers are cited.
    `similarities` compares sentences by meaning; without it, words and places decide. `parts_by_number` maps passage
    numbers to parts with their cosines, as `meant_parts` returns them. `days` are the documents' dates (ISO 8601): if
    two documents disagree, the newer comes first. `with_neighbours` also quotes the sentences around the best sentence
    and sets the best in bold. `carried` separates the follow-up's words from earlier words: sentences with the
    follow-up's words come first. `own_documents` are the documents for the asker's place: if other documents have
    different rules, the asker's documents come first and the others are named.
    """
    language = language or detect_language(question)
    if not re.search(r"\w", question):
        return None
    kind = asked_type(carried.focus) or asked_type(question)
    similarities = similarities and _remembering(similarities)
    readings = [_read(question, citations, language, carried.focus)]
    other = reworded(question, language)
    if other and not _parts(question, language):
        # The question says "vacation", the document "annual leave": each sentence counts by its better match.
        focus = reworded(carried.focus, language) or carried.focus
        readings.append(_read(other, citations, language, focus))
    reading = max(readings, key=lambda reading: (reading.is_followed, reading.most))
    question, asked, followed, subjects, everything, _, weights, _ = reading
    candidates = of_folder = _of_named_folder(reading.candidates, asked)
    if not candidates:
        return None
    if similarities and any(c.folder & asked for c in everything):
        similarities = _without_place(similarities)
    in_words = {c: max(reading.in_words.get(c, 0.0) for reading in readings) for c in candidates}
    parts = _parts(question, language)
    by_part = _by_part(candidates, citations, parts_by_number or {})
    known = [_known(question, language, _spoken(citation, language)) for citation in citations]
    words = [_said_by(everything, place) for place in range(len(citations))]
    said = _subjects_said(words, subjects, known)
    about = _subject_values(words, said, asked)
    below = _first_below(everything, weights, known)
    likely = {c: about[c.passage] * (in_words[c] + by_part.get(c, 0.0) + below.get(c, 0.0)) for c in candidates}
    # Comparing takes about 20 ms a sentence, so a full match in words decides alone.
    is_compared = bool(parts) or max(in_words.values()) < RULE.all_in_words
    meanings = _meanings([question, *parts], candidates, likely, similarities) if is_compared else []
    meaning = meanings[0] if meanings else {}
    if kind is None and below:
        # Beside a section about the question, a row in an overview only names the subject.
        likely = {
            c: v * (RULE.overview_value if c.kind == "row" and c not in below else 1.0) for c, v in likely.items()
        }
    scores = {c: likely[c] + about[c.passage] * meaning.get(c, 0.0) for c in candidates}
    if kind is None:
        scores.update({c: RULE.whole_value * scores[c] for c in candidates if _says_the_rest(c, weights)})
    names, replaced = (frozenset(tokenize(words, language)) for words in (carried.names, carried.replaced))
    scores = _focused(scores, {t: w for t, w in weights.items() if t in followed}, names, replaced)
    best = max(in_words[c] + meaning.get(c, 0.0) for c in candidates)
    scored = _Scored(reading, scores, citations, language, similarities)
    own: _OwnPlace | None = None
    if not meaning and best < RULE.least_in_words:
        chosen = _beginning(candidates)
    else:
        if not meaning and best < RULE.sure_in_words:
            # Few words of the question occur anywhere: trust the order of the passages, not a chance word.
            candidates = [c for c in candidates if c.passage == candidates[0].passage]
        ranked = sorted(
            candidates,
            key=lambda c: (-scores[c] * (RULE.item_value if c.kind == "item" else 1.0), c.passage, c.position),
        )
        if own_documents:
            own = _of_own_place(ranked, own_documents, scored)
        if own is None:
            ranked = _of_one_branch(ranked, in_words, question, citations, language)
        else:
            rivals = set() if parts else {citations[c.passage].document_id for c in own.others}
            rest = (c for c in ranked if c != own.first and citations[c.passage].document_id not in rivals)
            ranked = [own.first, *rest]
        ranked = _of_what_is_named(ranked, everything, question, asked, citations, language)
        ranked = _of_the_follow_up(ranked, weights, followed, replaced)
        asked_parts = [
            _Part(frozenset(tokenize(part, language)), meanings[place] if meanings else {})
            for place, part in enumerate(parts, start=1)
        ]
        is_sure = bool(meaning) or best >= RULE.sure_in_words
        chosen = _choose(ranked, asked_parts, meaning, scored, is_sure=is_sure)
    around = _around(chosen[0], everything) if with_neighbours else []
    elsewhere: list[CandidateSentence] = []
    if own is not None:
        said_in = {citations[c.passage].document_id for c in chosen}
        elsewhere = [c for c in own.others if citations[c.passage].document_id not in said_in]
    elif similarities and not (carried.names or _names(question, language) or named_languages(question)):
        ordered = sorted(of_folder, key=lambda c: (-scores[c], c.passage, c.position))
        elsewhere = _elsewhere(chosen, ordered, scored)
    is_across = scored.spoken(chosen[0]) != language
    quotable = [c for c in elsewhere if is_across or (own is None and c.folder != chosen[0].folder)]
    quotable = quotable[: max(0, RULE.maximum_quotes - len(chosen))]
    also = [c for c in elsewhere if c not in quotable]
    chosen = [*chosen, *quotable]
    with_steps = kind is None and ASKS_HOW.search(reading.question) is not None
    if with_steps and not any(c.step for c in chosen):
        chosen = [*chosen, *_first_step(candidates, weights)]
    selected = Selected(chosen, around=around, own=own.passages if own else (), with_steps=with_steps)
    quotes = written(selected, scores, everything, citations, asked, days or {})
    return replace(
        quotes,
        is_of_type=kind is None
        or any(c.is_headed for c in chosen)
        or any(kind.is_in(text, question) for text in QUOTED.findall(quotes.text)),
        is_about=not subjects
        or any(said[place] for place, citation in enumerate(citations) if citation.number == quotes.numbers[0]),
        points_to=_pointed_to(candidates, scores, citations),
        best=(citations[chosen[0].passage].number, chosen[0].text),
        said=_said_near(chosen[0]),
        is_own_place=own is not None,
        has_parts=bool(parts),
        also=tuple(citations[c.passage].number for c in also),
        signals=_signals(readings[0].question, chosen[0], scored),
    )


class _Scored(NamedTuple):
    """A reading's sentences with their scores, the passages, and the comparison by meaning, if any."""

    reading: _Reading
    scores: dict[CandidateSentence, float]
    citations: Sequence[Citation]
    #: The question's language.
    language: str
    similarities: Similarities | None

    def spoken(self, candidate: CandidateSentence) -> str:
        """Return the language of a sentence's passage."""
        return _spoken(self.citations[candidate.passage], self.language)

    def document(self, candidate: CandidateSentence) -> UUID:
        return self.citations[candidate.passage].document_id


class _OwnPlace(NamedTuple):
    """The best sentence from the asker's place, and the best sentences from documents with different rules."""

    first: CandidateSentence
    others: list[CandidateSentence]
    #: All passages of the place.
    passages: frozenset[int]


def _of_own_place(
    ranked: Sequence[CandidateSentence], documents: Collection[UUID], scored: _Scored
) -> _OwnPlace | None:
    """Find the sentence from the asker's place which answers as well as the best sentence.

    Returns `None` without such a sentence, or without a different rule elsewhere.
    """
    passages = frozenset(place for place, citation in enumerate(scored.citations) if citation.document_id in documents)
    best = ranked[0]
    subject = frozenset[str]().union(*scored.reading.subjects)
    own = [best]
    if best.passage not in passages:
        fitting = [
            c
            for c in ranked
            if c.passage in passages
            and c.is_of_type >= best.is_of_type
            and bool(c.figures) >= bool(best.figures)
            and (subject <= _said_near(c) or not subject <= _said_near(best))
        ]
        own = _as_near(fitting[: RULE.most_of_own_place], best, scored)
        if own and scored.spoken(own[0]) != scored.language:
            own = _standing_out(own, [c for c in ranked if c.passage in passages], scored)
    if not own:
        return None
    others = [c for c in ranked if c.passage not in passages]
    others = _elsewhere(own[:1], others, scored, anchor=best)
    return _OwnPlace(own[0], others, passages) if others else None


def _standing_out(
    own: list[CandidateSentence], ranked: Sequence[CandidateSentence], scored: _Scored
) -> list[CandidateSentence]:
    """Return the foreign-language sentence nearest in meaning; by words, the best sentence if it stands out.

    Words alone often hold equally for many foreign-language sentences.
    """
    scores = scored.scores
    if scored.similarities is not None:
        likeness = scored.similarities([scored.reading.question], [c.compared for c in own])[0]
        return [max(zip(own, likeness, strict=True), key=lambda pair: pair[1])[0]]
    next_best = max((scores[c] for c in ranked if c != own[0]), default=0.0)
    return own[:1] if scores[own[0]] >= RULE.stands_out * next_best else []


def _as_near(
    further: Sequence[CandidateSentence], anchor: CandidateSentence, scored: _Scored
) -> list[CandidateSentence]:
    """Keep the sentences about as close to the question as the anchor, by meaning or else by score."""
    if not further:
        return []
    if scored.similarities is None:
        least_score = RULE.least_of_another_place * scored.scores[anchor]
        return [c for c in further if scored.scores[c] >= least_score]
    least, *likeness = scored.similarities([scored.reading.question], [c.compared for c in (anchor, *further)])[0]
    return [c for c, alike in zip(further, likeness, strict=True) if alike >= least - RULE.less_alike]


def _elsewhere(
    chosen: Sequence[CandidateSentence],
    ranked: Sequence[CandidateSentence],
    scored: _Scored,
    *,
    anchor: CandidateSentence | None = None,
) -> list[CandidateSentence]:
    """Return the best sentences from further documents with different figures, such as a branch's rule.

    They differ from the first quotation in language or folder, or have similar titles: "Leave in Utrecht" and "Leave in
    Leeds". `anchor` is the best sentence beside a rule from the asker's place; with an anchor, all documents and rules
    without figures count.
    """
    first, is_own_place = chosen[0], anchor is not None
    if not is_own_place and not (first.is_of_type and first.figures):
        return []
    reading = scored.reading
    spoken = [_spoken(citation, scored.language) for citation in scored.citations]
    known = _amounts(first.text, spoken[first.passage])
    subject = frozenset[str]().union(*reading.subjects) or reading.asked
    meant = ideas_in(reading.question, scored.language)
    found: dict[UUID, CandidateSentence] = {}
    for candidate in ranked:
        stated = _amounts(candidate.text, spoken[candidate.passage])
        is_sibling = bool(candidate.title & first.title) and bool(candidate.title - first.title)
        is_apart = candidate.folder != first.folder
        if (
            (is_own_place or is_sibling or is_apart or spoken[candidate.passage] != spoken[first.passage])
            and not any(title and title <= reading.asked for title in (first.title, candidate.title))
            and candidate.is_of_type >= first.is_of_type
            and bool(candidate.figures) == bool(first.figures)
            and (not (stated <= known or known <= stated) if first.figures else not _say_the_same(candidate, first))
            and subject <= _said_near(candidate)
            and ideas_in(candidate.headed, spoken[candidate.passage]) <= meant
        ):
            found.setdefault(scored.document(candidate), candidate)
    for quoted in chosen:
        found.pop(scored.document(quoted), None)
    return _as_near(list(found.values()), anchor or first, scored)


def _amounts(text: str, language: str) -> frozenset[str]:
    """Return the figures in a text; "27 days a year" holds 27, not 1."""
    found = figures(text, language)
    return found - {"1"} or found


def _signals(asked: str, first: CandidateSentence, scored: _Scored) -> ReplySignals:
    """Describe how well the first quotation matches. The caller adds the similarity of its passage.

    `asked` is the question in the asker's words.
    """
    reading, language, similarities = scored.reading, scored.language, scored.similarities
    question, everything, weights = reading.question, reading.everything, reading.weights
    near = [c for c in everything if c.passage == first.passage and abs(c.position - first.position) <= 1]
    said = first.heading.union(*(c.terms for c in near))
    likeness = similarities([question], [first.compared])[0][0] if similarities is not None else 0.0
    share = _weight(weights, said) / (sum(weights.values()) or 1.0)
    marks = {candidate.mark for candidate in everything}
    is_across = scored.spoken(first) != language
    return ReplySignals(
        words=len(asked_words(question, language, analyser_code(language))),
        said=share,
        meaning=None,
        # Without an answer from the model there is no similarity.
        likeness=likeness or None,
        is_across=is_across,
        is_exact=share >= RULE.all_said and not is_across and asked_type(question) is not None and first.is_of_type,
        says_all=not is_across and len(weights) > 1 and weights.keys() <= first.terms,
        # The question asks for band D, and the table has A, B and C.
        names_another="another" in marks and marks.isdisjoint(("asked", "several")),
        is_within_another=is_only_within_another(asked, "\n".join(c.text for c in near), language),
    )


def _subjects_said(
    words: Sequence[frozenset[str]], subjects: Sequence[frozenset[str]], known: Sequence[frozenset[str] | None]
) -> list[int]:
    """Count the question's subjects in each passage, including the headings above.

    `words` are the passages' words. `known` are the question's terms with a word in the passage's language, or `None`
    for a passage in the question's language.
    """
    found = []
    for said, terms in zip(words, known, strict=True):
        # In "월급은 언제 들어오나요", the pay has a word in other languages and the verb has no word.
        named = subjects if terms is None else [subject & terms or subject for subject in subjects]
        found.append(sum(subject <= said for subject in named))
    return found


def _subject_values(words: Sequence[frozenset[str]], said: Sequence[int], asked: frozenset[str]) -> list[float]:
    """Return a weight from 0 to 1 for the sentences in each passage.

    The weight is below 1 if a different passage names more of the question's subjects, and 0 if the passage also holds
    no word from the question.
    """
    most = max(said, default=0)
    if not most:
        return [1.0] * len(said)
    return [
        RULE.other_subject_value + (1 - RULE.other_subject_value) * number / most if own & asked else 0.0
        for own, number in zip(words, said, strict=True)
    ]


def _said_by(everything: Sequence[CandidateSentence], place: int) -> frozenset[str]:
    return frozenset[str]().union(*(c.terms | c.heading for c in everything if c.passage == place))


def _of_one_branch(
    ranked: list[CandidateSentence],
    in_words: dict[CandidateSentence, float],
    question: str,
    citations: Sequence[Citation],
    language: str,
) -> list[CandidateSentence]:
    """Drop sentences in other languages if the best sentence is in the question's language and covers everything.

    Documents in other languages belong to other branches: the answer is "27 days" in Ottermere and 28 in Utrecht.
    """
    best = ranked[0]
    if best.value < 1 or in_words[best] < RULE.all_in_words * best.value or named_languages(question):
        return ranked
    own = {place for place, citation in enumerate(citations) if _spoken(citation, language) == language}
    return [c for c in ranked if c.passage in own] if best.passage in own else ranked


def _of_named_folder(candidates: list[CandidateSentence], asked: frozenset[str]) -> list[CandidateSentence]:
    """If the question names a folder, drop documents with the same title in folders the question does not name."""
    folders: dict[frozenset[str], set[frozenset[str]]] = {}
    for candidate in candidates:
        if candidate.folder:
            folders.setdefault(candidate.title - candidate.folder, set()).add(candidate.folder)
    shared = {title: frozenset.intersection(*found) for title, found in folders.items()}
    named = {
        title for title, found in folders.items() if any(shared[title] < own <= asked | shared[title] for own in found)
    }
    return [
        c
        for c in candidates
        if not c.folder or (title := c.title - c.folder) not in named or (c.folder - shared[title]) & asked
    ]


def _of_what_is_named(
    ranked: list[CandidateSentence],
    everything: Sequence[CandidateSentence],
    question: str,
    asked: frozenset[str],
    citations: Sequence[Citation],
    language: str,
) -> list[CandidateSentence]:
    """Drop documents without the question's names, if the best sentence's document has a name.

    The yearly amount in the benefits guide does not apply to PerksPlus, nor the handbook's to the folder "France".
    """
    names = _names(question, language).union(*(c.folder & asked for c in ranked))
    if not names:
        return ranked
    naming = {citations[c.passage].document_id for c in everything if names & (c.terms | c.heading | c.title)}
    if citations[ranked[0].passage].document_id not in naming:
        return ranked
    return [c for c in ranked if citations[c.passage].document_id in naming]


def _focused(
    scores: dict[CandidateSentence, float],
    focus: dict[str, float],
    names: frozenset[str],
    replaced: frozenset[str],
) -> dict[CandidateSentence, float]:
    """Raise the scores of sentences with the follow-up's words, and lower the scores of sentences about other names."""
    total = sum(focus.values())
    is_named = any(names <= _said_near(c) for c in scores) if names else False
    return {
        c: score
        * (1 + RULE.focus_value * _weight(focus, _said_near(c)) / total if total else 1.0)
        * (RULE.other_name_value if (is_named and not names <= _said_near(c)) or replaced & c.terms else 1.0)
        for c, score in scores.items()
    }


def _of_the_follow_up(
    ranked: list[CandidateSentence], weights: dict[str, float], focus: frozenset[str], replaced: frozenset[str]
) -> list[CandidateSentence]:
    """Drop sentences which say less about the follow-up or its subject than the best sentence."""
    said = _said_near(ranked[0])
    ranked = [c for c in ranked if c == ranked[0] or not replaced & c.terms]
    if not focus & said:
        return ranked
    least = RULE.least_of_follow_up * _weight(weights, said)
    return [c for c in ranked if focus & said <= _said_near(c) and _weight(weights, _said_near(c)) >= least]


def _said_near(candidate: CandidateSentence) -> frozenset[str]:
    """Return the terms of a sentence and the heading right above; a passage may hold several sections."""
    is_tabular = candidate.kind in ("row", "column")
    return candidate.terms | (candidate.heading if is_tabular else candidate.under | candidate.title)


def _names(question: str, language: str) -> frozenset[str]:
    """Return the terms of names in a question: words with a capital inside, or capitalised inside a sentence."""
    pattern = NAME if language == "de" else NAME_OR_CAPITAL
    return frozenset(term for name in pattern.findall(question) for term in tokenize(name, language))


def _pointed_to(
    candidates: Sequence[CandidateSentence], scores: dict[CandidateSentence, float], citations: Sequence[Citation]
) -> tuple[int, str] | None:
    """Return the citation number and the section the best sentence points to, or `None` without a pointer."""
    leading = {c: section for c in candidates if c.value < 1 and (section := section_pointed_to(c.text))}
    best = max(leading, key=lambda c: scores[c], default=None)
    if best is None:
        return None
    others = max((scores[c] for c in candidates if c not in leading), default=0.0)
    if scores[best] / RULE.pointer_value < others:
        return None
    return citations[best.passage].number, leading[best]


def meant_parts(context: ContextResponse) -> dict[int, list[MeantPart]]:
    """Return the parts of each passage with their cosines, by passage number.

    The search already compared the parts, so they cost nothing more. The result is empty if any cited passage has no
    vectors of meaning yet, because the others would be quoted only for having them.
    """
    meanings = {result.chunk_id: result.part_meanings for result in context.results}
    if not all(meanings.get(citation.chunk_id) for citation in context.citations):
        return {}
    found = {}
    for citation in context.citations:
        known, parts = meanings.get(citation.chunk_id, ()), parts_of(citation.passage)
        # A part unreadable for the model has no cosine, so the remaining parts cannot be ranked.
        if known and len(known) == len(parts):
            found[citation.number] = list(map(MeantPart, parts, known))
    return found


def likeness_by(embedder: Embedder) -> Similarities:
    """Return a comparison of sentences with questions by meaning; all equal if the model does not answer."""

    def likeness(questions: Sequence[str], sentences: Sequence[str]) -> Sequence[Sequence[float]]:
        try:
            # Both sides are embedded as questions: the model's authors advise this for texts of the same kind.
            with waiting():
                vectors = embedder.embed([*questions, *sentences], purpose="query").vectors
        except RagError:
            return [[0.0] * len(sentences) for _ in questions]
        asked, said = vectors[: len(questions)], vectors[len(questions) :]
        return [[float(value) for value in said @ vector] for vector in asked]

    return likeness


def _remembering(compare: Similarities) -> Similarities:
    """Cache the comparison by question and sentence."""
    known: dict[tuple[str, str], float] = {}

    def likeness(questions: Sequence[str], sentences: Sequence[str]) -> Sequence[Sequence[float]]:
        new = [s for s in dict.fromkeys(sentences) if any((q, s) not in known for q in questions)]
        for question, values in zip(questions, compare(questions, new) if new else [], strict=False):
            known.update(zip(((question, s) for s in new), values, strict=True))
        return [[known[question, sentence] for sentence in sentences] for question in questions]

    return likeness


def _without_place(compare: Similarities) -> Similarities:
    """Compare questions without the country they name, because the folder names it and sentences do not."""
    return lambda questions, sentences: compare([without_place(question) for question in questions], sentences)


def _by_part(
    candidates: Sequence[CandidateSentence],
    citations: Sequence[Citation],
    parts_by_number: Mapping[int, Sequence[MeantPart]],
) -> dict[CandidateSentence, float]:
    """Score each sentence by its part of the passage: 0 for the least similar part, `part_weight` for the most."""
    known = [part.cosine for parts in parts_by_number.values() for part in parts]
    if not known or max(known) <= min(known):
        return {}
    words = {number: [(frozenset(part.text.split()), part.cosine) for part in parts]
             for number, parts in parts_by_number.items()}  # fmt: skip
    found = {}
    for candidate in candidates:
        parts = words.get(citations[candidate.passage].number, [])
        said = frozenset(candidate.text.split())
        cosine = max(parts, key=lambda part: len(part[0] & said), default=(said, min(known)))[1]
        nearness = (cosine - min(known)) / (max(known) - min(known))
        found[candidate] = RULE.part_weight * nearness * candidate.value
    return found


def _first_below(
    everything: Sequence[CandidateSentence], weights: dict[str, float], known: Sequence[frozenset[str] | None]
) -> dict[CandidateSentence, float]:
    """Score the first sentences below a heading which holds the whole question: "Payday" gives them their meaning.

    Only the first passage with such a heading counts, because the order of the passages tells them apart.
    """
    found: dict[CandidateSentence, float] = {}
    totals = [sum(weights.values()) if terms is None else _weight(weights, terms) for terms in known]
    for candidate in everything:
        total = totals[candidate.passage]
        if found and candidate.passage != next(iter(found)).passage:
            break
        own = candidate.under - candidate.title
        if candidate.kind == "heading" or not own or not total or _weight(weights, own) < RULE.all_in_words * total:
            continue
        if len(found) < len(RULE.below_heading):
            found[candidate] = RULE.below_heading[len(found)] * candidate.value
    return found


def _first_step(candidates: Sequence[CandidateSentence], weights: dict[str, float]) -> list[CandidateSentence]:
    """Return the first step of a list below a heading with all words of the question; [] without such a list."""
    least = RULE.all_in_words * sum(weights.values())
    listed = (c for c in candidates if c.step and c.under and _weight(weights, c.under | c.title) >= least)
    return list(itertools.islice(listed, 1))


class _Reading(NamedTuple):
    """The passages' sentences for a wording of the question."""

    question: str
    asked: frozenset[str]
    #: The follow-up's terms in `asked`.
    followed: frozenset[str]
    #: The terms in `asked`, grouped by the expressions naming the question's subjects.
    subjects: tuple[frozenset[str], ...]
    everything: list[CandidateSentence]
    candidates: list[CandidateSentence]
    weights: dict[str, float]
    in_words: dict[CandidateSentence, float]

    @property
    def is_followed(self) -> bool:
        """Whether a sentence has a word of the follow-up."""
        return any(not self.followed.isdisjoint(c.terms) for c in self.candidates)

    @property
    def most(self) -> float:
        """The largest share of the question's words in a sentence."""
        return max(self.in_words.values(), default=0.0)


def _read(question: str, citations: Sequence[Citation], language: str, focus: str) -> _Reading:
    asked = frozenset(tokenize(question, language))
    followed = asked.intersection(tokenize(focus, language))
    everything = [
        c for place, citation in enumerate(citations) for c in _candidates(citation, place, language, question, asked)
    ]
    candidates = _quotable(everything)
    subjects = tuple(asked.intersection(tokenize(name, language)) for name in named_in(question, language))
    weights = _rarity(asked, everything)
    in_words = _scores(candidates, everything, weights, subjects, len(citations)) if candidates else {}
    return _Reading(question, asked, followed, subjects, everything, candidates, weights, in_words)


def _parts(question: str, language: str) -> list[str]:
    """Return the parts of a compound question, or an empty list for a simple question."""
    parts = split_question(question, language) or _between(language).split(question)
    said = [part.strip() for part in parts if part and tokenize(part, language)]
    return said if len(said) > 1 else []


@cache
def _between(language: str) -> re.Pattern[str]:
    words = _AND.get(language)
    return re.compile(_BETWEEN + (rf"|,?\s(?:{words})\s" if words else ""), re.IGNORECASE)


def _spoken(citation: Citation, language: str) -> str:
    return detect_language(citation.passage[: RULE.language_characters], [language])


def _candidates(
    citation: Citation, place: int, language: str, question: str, asked: frozenset[str]
) -> list[CandidateSentence]:
    spoken = _spoken(citation, language)
    terms_in = partial(
        _terms_said, language=language, spoken=spoken, words=_other_words(question, language, spoken), asked=asked
    )
    name = known_by(citation.title, citation.folder, question, frozenset([language]))
    title = terms_in(name)
    folder = title - terms_in(citation.title)
    # A question with a country is about the documents in the country's folder or language.
    named = named_languages(question)
    branch_value = RULE.other_branch_value if named and spoken not in named and not folder & asked else 1.0
    if WITHDRAWN.search(name) and not WITHDRAWN.search(question):
        # A question with a figure from the title, such as the year, means this document.
        branch_value *= 1.0 if _figures(question) & _figures(name) else RULE.withdrawn_value
    section = title | terms_in(citation.section)
    heading = citation.section.rpartition(PATH_SEPARATOR)[2]
    last = terms_in(heading)
    known = _figures(question)
    asked_figures = known | _years_in_words(question, language)
    kind = asked_type(question)
    units = units_of(citation.passage, frozenset([citation.title, *citation.section.split(PATH_SEPARATOR)]))
    in_range = [holds(unit.text, asked_figures) if unit.kind == "row" else None for unit in units]
    marks = marks_asked(question)
    tables = tables_in(citation.passage) if any(marks) else ()
    heads_of_rows = " ".join(cell for table in tables if table.heads for cell in table.heads.cells)
    found: list[CandidateSentence] = []
    above: frozenset[str] = frozenset()
    # Across languages, a short sentence compares better with its heading (docs/measurements/answering.md, "Replies").
    headed = bare_heading(heading) if spoken != language else ""
    is_listed = False
    example_block = -1
    for position, unit in enumerate(units):
        is_listed = (unit.text.endswith(":") and not SEE_ALSO.match(unit.text)) or (is_listed and unit.kind == "item")
        terms = terms_in(unit.subject or unit.text)
        # Column heads are above each row, row names beside each column.
        heads = terms_in(unit.text) if unit.subject else frozenset()
        if unit.kind == "heading":
            above, heading = terms, unit.text
            headed = (bare_heading(unit.text) or headed) if spoken != language else ""
        if unit.kind == "column" and not asked & (terms_in(unit.subject) - title):
            continue
        value = _value(unit.text, unit.kind, is_first=position == 0, is_last=position == len(units) - 1)
        value *= branch_value
        is_headed = kind is not None and kind.name == "amount" and counts_in(heading, question)
        is_of_type = kind is None or is_headed or kind.is_in(unit.text, question)
        if kind is not None:
            value *= RULE.type_value if is_of_type else RULE.other_type_value
            if is_of_type and spoken == language and kind.headed is not None and kind.headed.search(heading):
                value *= RULE.headed_value
        if unit.kind == "column" and any(in_range):
            value *= RULE.outside_value
        if unit.kind == "row" and (is_inside := in_range[position]) is not None:
            value *= RULE.inside_value if is_inside else RULE.outside_value
        # An example goes on to the end of the paragraph.
        if EXAMPLE.match(unit.text):
            example_block = unit.block
        if unit.block == example_block and unit.kind not in ("row", "column", "heading"):
            value *= RULE.example_value
        if (
            EXCEPTION.match(unit.text)
            or IN_THIS_CASE.match(unit.text)
            or (OF_ANOTHER_PARAGRAPH.search(unit.text) and not OF_ANOTHER_PARAGRAPH.search(question))
        ):
            value *= RULE.after_rule_value
        mark = mark_named(unit.text, f"{heads_of_rows} {heading}", marks, is_across=spoken != language)
        value *= MARK_VALUES[mark]
        if is_for_another_group(unit.text, heading, question):
            value *= RULE.other_group_value
        if is_for_another_period(unit.text, question):
            value *= RULE.other_period_value
        if (
            unit.kind in ("item", "sentence")
            and not ends(unit.text)
            and len(unit.text.split()) <= RULE.label_words
            and not any(map(str.isdigit, unit.text))
            and not is_listed
        ):
            value *= RULE.label_value
        if len(unit.text) <= RULE.longest_pointer and (POINTER.search(unit.text) or section_pointed_to(unit.text)):
            value *= RULE.pointer_value
        if LINK_ALONE.fullmatch(unit.text) and not ASKS_WHERE.search(question):
            value *= RULE.pointer_value
        # The announced text is in a different passage.
        if unit.text.endswith((":", "：")) and all(
            following.kind == "heading" for following in units[position + 1 :][:1]
        ):
            value *= RULE.label_value
        found.append(
            CandidateSentence(
                unit.text,
                unit.kind,
                terms,
                place,
                position,
                section | above | heads,
                title,
                _figures(unit.text) - known,
                value,
                is_of_type,
                above or last,
                unit.block,
                headed,
                folder,
                is_headed,
                unit.step,
                mark,
            )
        )
    return found


def _known(question: str, language: str, spoken: str) -> frozenset[str] | None:
    """Return the question's terms which have words in a different language, or `None` for the question's language."""
    if spoken == language:
        return None
    return frozenset[str]().union(*(own for own, _ in _other_words(question, language, spoken)))


@lru_cache(maxsize=500)
def _other_words(
    question: str, language: str, spoken: str
) -> tuple[tuple[frozenset[str], tuple[frozenset[str], ...]], ...]:
    """Return the terms of question words with a different wording in a language, each with the alternatives."""
    own = {word.text: word.terms for word in asked_words(question, language, analyser_code(language))}
    return tuple(
        (frozenset(own[word.text]), tuple(map(frozenset, word.synonyms)))
        for word in asked_words(question, language, analyser_code(spoken))
        if word.synonyms and word.text in own
    )


def _terms_said(
    text: str,
    *,
    language: str,
    spoken: str,
    words: Sequence[tuple[frozenset[str], tuple[frozenset[str], ...]]],
    asked: frozenset[str] = frozenset(),
) -> frozenset[str]:
    """Return a text's terms in the question's language, and the question's terms which the text words differently."""
    in_order = tokenize(text, language)
    terms = frozenset(in_order)
    written = in_order if spoken == language else tokenize(text, spoken)
    said = (own for own, others in words if any(_stand_together(other, written) for other in others))
    return terms.union(*said, _in_compounds(asked, terms) if language in COMPOUNDING else ())


def _stand_together(wanted: frozenset[str], terms: Sequence[str]) -> bool:
    """Whether an expression's terms are close together in a text: "pay" and "working days" are no "pay day"."""
    if not wanted <= frozenset(terms):
        return False
    width = len(wanted) + RULE.within_expression
    return any(wanted <= frozenset(terms[start : start + width]) for start in range(max(1, len(terms) - width + 1)))


def _in_compounds(asked: frozenset[str], terms: frozenset[str]) -> frozenset[str]:
    """Return the question's terms which a text has inside longer words, or split into parts.

    "Zulassung" is in "Zulassungsverfahren", and "Kündigungsfrist" in "die Frist der Kündigung".
    """
    return frozenset(
        own
        for own in asked - terms
        if len(own) >= RULE.least_compounded
        and (
            any(own != term and (term.startswith(own) or term.endswith(own)) for term in terms)
            or compound_share(own, terms) >= RULE.enough_of_compound
        )
    )


def _quotable(everything: Sequence[CandidateSentence]) -> list[CandidateSentence]:
    """Return the units an answer may quote alone, without headings, questions, wordless text and cut copies."""
    told = [c for c in everything if c.kind != "heading" and not c.text.endswith(("?", "？")) and SAYING.search(c.text)]
    # A sentence or row cut by the edge of its passage is complete in the next passage.
    texts = sorted({c.text for c in told})
    cut = {text for text, following in pairwise(texts) if len(text) >= RULE.least_cut and following.startswith(text)}
    told = [c for c in told if c.text not in cut]
    return told or [c for c in everything if c.kind != "heading"]


def _years_in_words(question: str, language: str) -> frozenset[str]:
    """Return the numbers of years written in words: "after six years"."""
    values = (years_written(word, language) for word in YEARS.findall(question.lower()))
    return frozenset(str(value) for value in values if value >= 1)


def _figures(text: str) -> frozenset[str]:
    return frozenset(number.rstrip(".,") for number in FIGURE.findall(text))


def _value(text: str, kind: Kind, *, is_first: bool, is_last: bool) -> float:
    if kind in ("row", "column"):
        return 1.0
    is_cut = is_last and not ends(text) and len(text) > RULE.heading_characters
    # List items may start in lower case.
    begins_within = is_first and kind == "sentence" and text[:1].islower()
    return RULE.fragment_value if is_cut or begins_within else 1.0


def _rarity(asked: frozenset[str], candidates: Sequence[CandidateSentence]) -> dict[str, float]:
    """Weight each question term from 1 to 2 by its idf (Lucene's formula) over the sentences.

    The first half of the weight is equal for all terms. The search found the passages by the question's subject, so the
    subject's words are frequent in them, while a chance word from the question is rare. The terms are sorted,
    because rounding depends on the order of a sum.
    """
    counts = Counter(term for candidate in candidates for term in candidate.terms & asked)
    total = len(candidates)
    rarest = math.log(1 + (total + 0.5) / 0.5)
    return {
        term: 1 + math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5)) / rarest for term in sorted(asked)
    }


def _weight(weights: dict[str, float], terms: frozenset[str]) -> float:
    return sum(weight for term, weight in weights.items() if term in terms)


def _scores(
    candidates: Sequence[CandidateSentence],
    everything: Sequence[CandidateSentence],
    weights: dict[str, float],
    subjects: Sequence[frozenset[str]],
    passages: int,
) -> dict[CandidateSentence, float]:
    """Return the share of the question's words in each sentence, 0 … 1."""
    total = sum(weights.values()) or 1.0
    held = [
        _weight(weights, frozenset().union(*(c.terms | c.heading for c in everything if c.passage == place)))
        for place in range(passages)
    ]
    most = max(held) or 1.0
    # The same words count more in a passage which also covers the rest of the question.
    named = max((c.title & weights.keys() for c in candidates), key=lambda terms: _weight(weights, terms))
    return {c: _score(c, weights, named, subjects) / total * held[c.passage] / most for c in candidates}


def _score(
    candidate: CandidateSentence, weights: dict[str, float], named: frozenset[str], subjects: Sequence[frozenset[str]]
) -> float:
    """`named` are the question's terms in the document title which holds most of them."""
    # A subject named in the document's title adds nothing in a sentence.
    said = candidate.terms | candidate.heading
    torn = frozenset().union(*(expression for expression in subjects if not expression <= said))
    own = _weight(weights, _own(candidate, weights))
    own -= (1 - RULE.part_of_expression) * _weight(weights, _own(candidate, weights) & torn)
    if not own or len(candidate.text) > 2 * LONGEST_SENTENCE:
        return 0.0
    above = _weight(weights, candidate.heading - _own(candidate, weights))
    # A very short unit says nothing; a very long unit is mostly about something else.
    length = len(candidate.text.split()) if candidate.kind in ("row", "column") else len(candidate.terms)
    brevity = min(1.0, length / 5) / (1 + max(0, length - 30) / 40)
    value = candidate.value * (RULE.figure_value if candidate.figures else 1.0)
    if named - candidate.title - candidate.terms:
        value *= RULE.other_document_value
    return (own + RULE.heading_weight * above) * brevity * value * (RULE.next_passage**candidate.passage)


def _says_the_rest(candidate: CandidateSentence, weights: dict[str, float]) -> bool:
    """Whether a sentence has every question word missing in the headings above."""
    rest = weights.keys() - candidate.heading
    return candidate.kind in ("sentence", "item") and len(weights) > 1 and bool(rest) and rest <= candidate.terms


def _meanings(
    questions: Sequence[str],
    candidates: Sequence[CandidateSentence],
    likely: dict[CandidateSentence, float],
    similarities: Similarities | None,
) -> list[dict[CandidateSentence, float]]:
    """Score each sentence by meaning for each question: 0 for the least similar, `meaning_weight` for the most similar.

    The list is empty if meaning cannot be compared.
    """
    if similarities is None:
        return []
    ordered = sorted(candidates, key=lambda c: (-likely[c] - RULE.next_passage**c.passage, c.passage, c.position))
    compared = ordered[: RULE.most_compared + RULE.more_compared * (len(questions) - 1)]
    found = []
    for values in similarities(questions, [c.compared for c in compared]):
        least, most = min(values), max(values)
        spread = (most - least) or 1.0
        found.append(
            {
                c: RULE.meaning_weight * (float(value) - least) / spread * c.value * RULE.next_passage**c.passage
                for c, value in zip(compared, values, strict=True)
            }
        )
    return found


def _beginning(candidates: Sequence[CandidateSentence]) -> list[CandidateSentence]:
    """Return the first sentences of the best passage, because no question word distinguishes its sentences."""
    best = [c for c in candidates if c.passage == candidates[0].passage and c.kind != "column"]
    chosen: list[CandidateSentence] = []
    for candidate in [c for c in best if c.value >= 1.0] or best:
        room = LONGEST_SENTENCE - sum(len(c.text) for c in chosen)
        if len(chosen) == RULE.first_sentences or (chosen and len(candidate.text) > room):
            break
        chosen.append(candidate)
    return chosen


def _own(candidate: CandidateSentence, weights: dict[str, float]) -> frozenset[str]:
    """Return the terms a sentence adds to its document's title, or all terms if the title holds the whole question."""
    rest = candidate.terms - candidate.title
    return rest if weights.keys() - candidate.title else candidate.terms


def _choose(
    ranked: Sequence[CandidateSentence],
    parts: Sequence[_Part],
    meaning: dict[CandidateSentence, float],
    scored: _Scored,
    *,
    is_sure: bool,
) -> list[CandidateSentence]:
    """Choose the best sentence, the best sentence for each part of the question, and further good sentences.

    A contradicting sentence from another document, in otherwise equal words, comes second.
    """
    scores, weights = scored.scores, scored.reading.weights
    chosen, document = [ranked[0]], scored.document(ranked[0])
    others = (c for c in ranked if scored.document(c) != document and c.kind == ranked[0].kind)
    chosen.extend(itertools.islice((c for c in others if says_otherwise(c, ranked[0])), 1))
    for part in parts:
        # "And in Germany": the folder of a chosen sentence already covers this part.
        named = part.terms & weights.keys()
        if any(named <= c.folder for c in chosen):
            continue
        of_folder = next((c for c in ranked if named <= c.folder), None)
        best = of_folder or _best_of_part(part, ranked, scores, weights)
        if best is not None and not any(_say_the_same(best, other) for other in chosen):
            chosen.append(best)
    best_own = _weight(weights, _own(ranked[0], weights))
    said = _weight(weights, ranked[0].terms | ranked[0].heading)
    is_whole = bool(weights.keys() & ranked[0].terms) and said >= RULE.all_in_words * sum(weights.values())
    about = frozenset[str]().union(*scored.reading.subjects) & (ranked[0].terms | ranked[0].heading)
    characters = sum(len(c.text) for c in chosen)
    for candidate in _beside(ranked[0], ranked):
        # Sentences beside the best continue the thought in other words.
        if (
            characters + len(candidate.text) <= RULE.maximum_characters
            and scores[candidate] >= RULE.least_beside * scores[ranked[0]]
        ):
            chosen.append(candidate)
            characters += len(candidate.text)
    for candidate in ranked[1:]:
        least = RULE.least_of_best if is_sure else RULE.least_of_unsure
        # After a sentence about the dentist, a sentence about glasses is no answer.
        if about - candidate.terms - candidate.heading:
            continue
        # If the best sentence has the requested amount, a different passage without an amount is no answer.
        if candidate.is_of_type < ranked[0].is_of_type and candidate.passage != ranked[0].passage:
            continue
        if len(chosen) >= RULE.maximum_quotes or scores[candidate] < max(least * scores[ranked[0]], 1e-9):
            break
        is_elsewhere = candidate.passage != ranked[0].passage
        if is_whole and is_elsewhere and scores[candidate] < RULE.least_beside_whole * scores[ranked[0]]:
            continue
        is_near = meaning.get(candidate, 0.0) > 0.8 * RULE.meaning_weight
        if _weight(weights, _own(candidate, weights)) < RULE.least_own * best_own and is_sure and not is_near:
            continue
        if any(_say_the_same(candidate, other) or _crowds(candidate, other, scores) for other in chosen):
            continue
        if characters + len(candidate.text) > RULE.maximum_characters:
            continue
        chosen.append(candidate)
        characters += len(candidate.text)
    return chosen


def _around(best: CandidateSentence, everything: Sequence[CandidateSentence]) -> list[CandidateSentence]:
    """Return the sentences around the best sentence in its paragraph, which often explain it."""
    if best.kind != "sentence":
        return []
    same = {c.position: c for c in everything if c.passage == best.passage}
    found: list[CandidateSentence] = []
    said = {best.text}
    room = RULE.longest_neighbourhood - len(best.text)
    for step in RULE.neighbours:
        beside = same.get(best.position + step)
        is_next = best.position + step - (1 if step > 0 else -1) in {best.position, *(c.position for c in found)}
        if beside is None or beside.kind != "sentence" or not is_next:
            continue
        if POINTER.search(beside.text) or TO_A_MODEL.search(beside.text) or beside.text in said:
            continue
        if len(beside.text) <= room:
            found.append(beside)
            said.add(beside.text)
            room -= len(beside.text)
    return found


def _beside(best: CandidateSentence, ranked: Sequence[CandidateSentence]) -> list[CandidateSentence]:
    """Return the sentences right before and after the best sentence."""
    return [
        c
        for c in ranked
        if c.passage == best.passage
        and abs(c.position - best.position) == 1
        and c.kind == best.kind == "sentence"
        and not POINTER.search(c.text)
    ]


def _best_of_part(
    part: _Part, ranked: Sequence[CandidateSentence], scores: dict[CandidateSentence, float], weights: dict[str, float]
) -> CandidateSentence | None:
    """Return the best sentence for a part of the question, or `None` if words and meaning are too different."""
    own = {term: weight for term, weight in weights.items() if term in part.terms}
    total = sum(own.values())
    if not total:
        return None

    def in_words(candidate: CandidateSentence) -> float:
        return (_weight(own, candidate.terms) + RULE.heading_weight * _weight(own, candidate.heading)) / total

    fitting = [c for c in ranked if in_words(c) > RULE.least_of_part and (scores[c] > 0 or part.meaning.get(c))]
    if not part.meaning:
        return max(fitting, key=lambda c: (_weight(own, c.terms - c.title), scores[c]), default=None)
    return max(fitting, key=lambda c: (in_words(c) * c.value + part.meaning.get(c, 0.0), scores[c]), default=None)


def _crowds(candidate: CandidateSentence, other: CandidateSentence, scores: dict[CandidateSentence, float]) -> bool:
    """Whether a row or column is useless beside another from its table, because all share the words in the heads."""
    tabular = ("row", "column")
    if candidate.kind not in tabular or other.kind not in tabular or candidate.passage != other.passage:
        return False
    return candidate.kind != other.kind or scores[candidate] < RULE.least_of_best_row * scores[other]


def _say_the_same(one: CandidateSentence, other: CandidateSentence) -> bool:
    if one == other:
        return True
    if one.figures - other.figures or says_otherwise(one, other):
        return False
    return len(one.terms & other.terms) > SAME * max(1, min(len(one.terms), len(other.terms)))

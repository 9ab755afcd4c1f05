"""Judge whether chunks answer a question: "answered", "perhaps" or "none".

A single rule combines all signals into a probability: shared words, similarity in meaning, and the score from a
reranker or an embedding model. Rare words count more. A question word which is in no document counts most, because
questions about missing subjects consist mostly of such words.
"""

from __future__ import annotations

import math
import re
import statistics
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from uuid import UUID

from rag.retrieval.bm25.index import contextual_text, term_id
from rag.retrieval.bm25.synonyms import named_in
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.known_by import known_by
from rag.retrieval.meaning import is_only_an_address, is_worded
from rag.retrieval.search_query import MAXIMUM_QUESTION_WORDS, QuestionWord, question_words
from rag.text.analysers import STOPWORDS, analyse, is_unspaced, words_with_terms
from rag.types import Evidence, SearchResult


@dataclass(frozen=True, kw_only=True)
class EvidenceRule:
    """The limits for judging evidence. The comments name the questions on which they were tuned."""

    #: A word is found if at least this share in its terms is: a Korean word has syllable pairs for terms.
    matched_share: float = 0.5
    #: How much of the word share is replaced by the margin: a passage's similarity above the candidates' usual
    #: similarity. The similarity itself depends on the embedder and on how alike a collection's passages are.
    margin_weight: float = 2.0
    #: Share plus margin at which an answer is equally likely and unlikely, if only words are compared. Measured on
    #: eight sets of paragraphs in seven languages, in which each half got its questions and the other half's. Validated
    #: on further sets (docs/measurements/finding.md, "What is not in the documents").
    enough: float = 0.55
    #: With fewer candidates there is no usual similarity to compare with.
    least_candidates: int = 8
    #: Least weight for a word, as a share of the highest weight: a collection's main subject is a common word, yet the
    #: question is about it.
    least_weight: float = 0.3
    #: Factor for an unknown character pair in scripts without spaces: half the pairs straddle two words.
    unknown_pair: float = 0.5
    #: Share from which a passage has all words of the question.
    all_words: float = 0.99
    #: Shortest and longest part of a compound which counts as a word.
    shortest_part: int = 4
    longest_part: int = 40
    #: Probability from which a question is answered, and from which it is "perhaps". With the second value, 6 % of the
    #: tuning half's everyday questions without an answer are not refused.
    answered: float = 0.5
    perhaps: float = 0.26
    #: By words alone, without a model of meaning: log odds per distance of share plus margin from `enough`. "Perhaps"
    #: begins 0.03 below, which 4 in 102 everyday questions reach.
    words_slope: float = 30.0
    #: By words and meaning together: log odds per share plus margin, and per cosine. A logistic regression on the best
    #: passage for each question in the tuning half: 131 natural and 102 everyday questions (`benchmarks/natural.py
    #: --fit`). The base is 0.4 below the fit, because 6 in 102 everyday questions to the samples, which are not in the
    #: fit, were answered.
    meaning_base: float = -0.91
    meaning_words: float = 2.69
    meaning_cosine: float = 58.6
    #: Added to a cosine if question and passage differ in language. Answers to the same question lose 0.05 (European
    #: languages) to 0.09 across five languages; less is added, because the best wrong passages lose less too. More is
    #: added if no passage is in the question's language, because there is nothing to compare with.
    across: float = 0.035
    across_alone: float = 0.04
    #: The cosine for which `meaning_base` holds.
    usual_cosine: float = 0.84
    #: A question with fewer words, all missing from the candidates, is at most "perhaps": a non-word ("qwertyuiop") has
    #: cosines just as high, so `cosine_without_words` limits them.
    words_of_a_question: int = 3
    #: Least share of function words ("the", "how") in a question. Code, Latin filler text and random keys have fewer,
    #: yet their cosines equal an answer's. Their cosine counts at most as an unrelated passage's, unless a passage has
    #: half their words.
    least_small_words: float = 0.3
    unrelated_cosine: float = 0.82
    #: If meaning is compared, passages are cited down to this share of the best probability.
    cited_share: float = 0.1
    #: Up to this probability, other languages get a reserved place each, or three places if the question names a
    #: country.
    sure: float = 0.95
    foreign_places: int = 1
    places_of_named: int = 3
    #: The reciprocal rank constant for choosing passages in other languages, by meaning and by words.
    foreign_constant: int = 20
    #: In this choice, a passage with all the question's words scores as much as the first rank by meaning.
    foreign_words: float = 0.2
    #: The reciprocal rank constant for joining the search order with the order by probability.
    rank_constant: int = 10
    #: Passages with a lower relevance are not cited: Cohere gives unrelated passages 0.01 and less, and related
    #: passages for two-word questions sometimes little more.
    relevance_floor: float = 0.02
    #: Relevance from which a reranked passage needs no shared word: it may be in a different language.
    sure_relevance: float = 0.3
    #: Log odds per distance from the collection's similarity threshold: 0.05 below it means 1 in 24.
    nearness_slope: float = 63.0
    #: Share of the question's words from which a chunk with all known subjects is at least "perhaps".
    share_of_subjects: float = 0.4
    #: Further passages are cited if they cover at least this share of the question's words covered by the evidence.
    companion_share: float = 0.5
    #: Log odds subtracted if the document does not name the company or country in the question, and the highest log
    #: odds then: at most "perhaps".
    lacking_name: float = 3.0
    just_no_answer: float = -0.01

    @property
    def cosine_without_words(self) -> float:
        """The cosine up to which a hit without the question's words is no evidence."""
        return self.usual_cosine - self.meaning_base / self.meaning_cosine - 0.001

    @property
    def margin_of_one_word(self) -> float:
        """The margin assumed for a hit with a single matching word, if the usual similarity is unknown."""
        return (self.enough - 0.5) / self.margin_weight


RULE = EvidenceRule()


Idf = Callable[[str], float]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How much of a question a chunk covers: `share` (0 to 1, weighted by idf), and the words found."""

    share: float
    matched: tuple[str, ...]
    words: int


#: Coverage by a wording which is not compared with the passage, being in a different language; lower than any other.
NOTHING_COVERED = Coverage(share=-1.0, matched=(), words=0)


def background(similarities: Sequence[float | None]) -> float | None:
    """Return the candidates' median similarity, or `None` if there are too few candidates."""
    values = [similarity for similarity in similarities if similarity is not None]
    return statistics.median(values) if len(values) >= RULE.least_candidates else None


def is_sentence(text: str, language: str) -> bool:
    """Whether a text looks like a question in any language.

    Signs are a final question mark, enough function words, or a known subject ("deadline for expenses"). Always true
    for Korean, for scripts without spaces, and for languages without a stopword list.
    """
    if text.rstrip(" \"'”’»)").endswith(("?", "؟", "？")) or named_in(text, language):
        return True
    words = re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", text[: 10 * MAXIMUM_QUESTION_WORDS]).lower())
    if language not in STOPWORDS or not words or any(is_unspaced(word) or "가" <= word[0] <= "힣" for word in words):
        return True
    most = max(sum(word in small for word in words) for small in STOPWORDS.values())
    return most >= RULE.least_small_words * len(words)


def coverage(words: Sequence[QuestionWord], passage_terms: Iterable[str], idf: Idf) -> Coverage:
    """Return the share of the question's words which a chunk contains, weighted by idf, and the words found."""
    present = frozenset(passage_terms)
    highest = idf("")  # of a term found nowhere
    total = reached = 0.0
    matched = []
    for word in words:
        weights = [idf(term) for term in word.terms]
        # Average the terms: a word counts the same however many terms the analyser makes.
        weight = sum(weights) / len(weights)
        if word.is_pair and weight >= highest:
            weight *= RULE.unknown_pair
        # The most common expression decides how rare an idea is.
        weight = min([weight, *(max(map(idf, synonym)) for synonym in word.synonyms)])
        counted = max(weight, RULE.least_weight * highest)
        part = sum(w for w, term in zip(weights, word.terms, strict=True) if term in present) / (sum(weights) or 1.0)
        if not part and word.is_compounding and weight >= highest:
            part = compound_share(word.terms[0], present)
        if any(present.issuperset(synonym) for synonym in word.synonyms):
            part = 1.0
        total += counted
        reached += counted * part
        if part >= RULE.matched_share:
            matched.append(word.text)
    return Coverage(share=reached / total if total else 0.0, matched=tuple(matched), words=len(words))


def compound_share(word: str, present: Collection[str]) -> float:
    """Return the share (0 to 1) of a compound's letters which a chunk has in two separate words: beginning and end.

    "zwangerschapsverlof" matches "Zwangerschaps- en bevallingsverlof".
    """
    longest = min(len(word) - 1, RULE.longest_part)
    # Try the word's few parts instead of every term in every passage.
    start = next((n for n in range(longest, RULE.shortest_part - 1, -1) if word[:n] in present), 0)
    end = next(
        (n for n in range(longest, RULE.shortest_part - 1, -1) if word[-n:] in present and word[:n] != word[-n:]), 0
    )
    return min(1.0, (start + end) / len(word))


@lru_cache(maxsize=2_000)
def passage_terms(text: str, language: str) -> tuple[str, ...]:
    """Split a chunk into index terms, with a cache, because splitting takes 0.2 ms."""
    return tuple(analyse(text, language))


def matched_words(text: str, words: Iterable[QuestionWord], language: str) -> tuple[str, ...]:
    """Return the words in a text which match question words, in lower case, to highlight them for readers."""
    question_terms = {term for word in words for terms in (word.terms, *word.synonyms) for term in terms}
    matches = dict.fromkeys(
        word for word, terms in _words_of_passage(text, language) if question_terms.intersection(terms)
    )
    return tuple(matches)


@lru_cache(maxsize=256)
def _words_of_passage(text: str, language: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a chunk's words with their index terms. The result is cached, because many people find the same chunks."""
    return tuple(words_with_terms(text, language))


# The rule


@dataclass(frozen=True, kw_only=True)
class PassageSignals:
    """A chunk's measurements, from which `probability` is computed. Missing measurements are `None`."""

    #: Share of the question's words by rarity; and the similarity above the candidates' usual similarity.
    share: float
    margin: float = 0.0
    #: The cosine by the built-in meaning model.
    meaning: float | None = None
    #: A real embedder's similarity minus the collection's threshold.
    nearness: float | None = None
    #: The reranker's relevance, 0 … 1.
    relevance: float | None = None
    #: Whether the passage has all words of a question with two or more, in the same language.
    says_all: bool = False
    #: Whether the document does not name the company in the question.
    lacks_name: bool = False
    #: Whether the document is in the folder for a country not named in the question.
    is_elsewhere: bool = False
    #: Whether the document is in no country's folder, while others are in the asked country's folder.
    is_general: bool = False

    @property
    def is_unnamed(self) -> bool:
        """Whether the document may not apply to the company or country in the question."""
        return self.lacks_name or self.is_general


def probability(signals: PassageSignals) -> float:
    """Return the probability (0 to 1) that a chunk with these measurements answers the question.

    Words and meaning are combined. A similarity above the threshold, or a reranker's relevance, can be enough alone. A
    chunk which the reranker calls unrelated is no evidence.
    """
    odds = _log_odds_of_text(signals)
    if signals.nearness is not None:
        odds = max(odds, RULE.nearness_slope * signals.nearness)
    if signals.relevance is not None:
        by_reranker = _log_odds(signals.relevance) - _log_odds(RULE.sure_relevance)
        odds = (
            max(odds, by_reranker)
            if signals.relevance >= RULE.relevance_floor
            else min(odds, _log_odds(RULE.perhaps) - 1)
        )
    if signals.lacks_name:
        odds = min(odds - RULE.lacking_name, RULE.just_no_answer)
    if signals.is_general:
        odds = min(odds, RULE.just_no_answer)
    if signals.is_elsewhere:
        odds = min(odds, _log_odds(RULE.perhaps) - 1)
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, odds))))


def _log_odds_of_text(signals: PassageSignals) -> float:
    words = signals.share + RULE.margin_weight * max(0.0, signals.margin) if signals.share else 0.0
    if signals.meaning is None:
        return RULE.words_slope * (words - RULE.enough)
    odds = (
        RULE.meaning_base
        + RULE.meaning_words * min(1.0, words)
        + RULE.meaning_cosine * (signals.meaning - RULE.usual_cosine)
    )
    # A passage about something else may have a sentence with all words: at least "perhaps".
    return max(odds, _log_odds(RULE.perhaps)) if signals.says_all else odds


def _log_odds(share: float) -> float:
    share = min(1 - 1e-6, max(1e-6, share))
    return math.log(share / (1 - share))


def outcome_of(best: float) -> Evidence:
    """Convert the best chunk's probability into "answered", "perhaps" or "none"."""
    return "answered" if best >= RULE.answered else "perhaps" if best >= RULE.perhaps else "none"


@dataclass(frozen=True, kw_only=True)
class ScoredHit:
    """A hit, with measurements which tell whether the hit answers the question."""

    result: SearchResult
    coverage: Coverage
    #: The similarity above the candidates' usual similarity.
    margin: float = 0.0
    signals: PassageSignals
    #: The question's words in the passage's language, to be marked in the passage, and this language.
    words: tuple[QuestionWord, ...]
    language: str
    #: Whether the passage is in a different language and unusually near for this language.
    has_place: bool = False
    #: The score for the order of all passages, set by `in_order`.
    order: float | None = None
    #: Text around the passage for the model, and the pages of both; 0 stands for the passage's pages.
    before: str = ""
    after: str = ""
    first_read_page: int = 0
    last_read_page: int = 0

    @property
    def probability(self) -> float:
        """The probability, 0 to 1, that the chunk answers the question."""
        return probability(self.signals)

    def is_in(self, language: str) -> bool:
        """Whether the document is in a language (ISO 639-1)."""
        return self.language.partition("+")[0] == language.partition("-")[0]


def score_hits(
    results: Sequence[SearchResult],
    hits: SearchHits,
    *,
    wordings: Sequence[tuple[str, str]],
    own_language: str = "",
    thresholds: Sequence[float] = (),
) -> list[ScoredHit]:
    """Score each hit against each of the question's wordings (text, language), and keep the best score.

    `own_language` is the user's language if the question was translated. Hits in this language are compared only with
    the original question. `thresholds` are cosines above which a hit is evidence: the first threshold which any hit
    reaches is used. Empty if the embedder only compares words.
    """
    words: dict[tuple[int, str], list[QuestionWord]] = {}

    def idf(term: str) -> float:
        return hits.statistics.idf(term_id(term))

    question_language = wordings[0][1].split("-")[0]
    across = RULE.across if any(hit.language == question_language for hit in hits.meaning_hits) else RULE.across_alone
    has_sentence = any(is_sentence(*wording) for wording in wordings)
    # If the question has no words, any text would look like a match.
    has_words = any(is_worded(wording) for wording, _ in wordings)
    is_address = all(is_only_an_address(wording) for wording, _ in wordings)
    nearest = max((r.similarity for r in results if r.similarity is not None), default=-1.0)
    threshold = next((t for t in thresholds if nearest >= t), thresholds[-1] if thresholds else None)
    # Use passages found by words or vectors: passages near only in meaning are lower and would make the rest look near.
    usual = background([r.similarity for r in hits.results if r.vector_rank or r.keyword_rank])
    question_text, question_languages = (
        "\n".join(text for text, _ in wordings),
        frozenset(code.partition("-")[0] for _, code in wordings),
    )
    scored = []
    for result in results:
        language = hits.languages[result.document_id]
        name = known_by(result.title, result.folder, question_text, question_languages)
        text = contextual_text(name, result.section, result.content)
        coverages = []
        is_own = own_language != "" and language.partition("+")[0] == own_language
        for number, (wording, wording_language) in enumerate(wordings):
            if is_own and wording_language.split("-")[0] != own_language:
                coverages.append(NOTHING_COVERED)
                continue
            key = (number, language)
            if key not in words:
                words[key] = question_words(wording, wording_language, language)
            coverages.append(coverage(words[key], passage_terms(text, language), idf))
        best = max(range(len(coverages)), key=lambda i: coverages[i].share)
        best_coverage = coverages[best]
        margin = _margin(result, best_coverage, usual) if has_words else 0.0
        signals = PassageSignals(
            share=best_coverage.share if best_coverage.matched and not is_address else 0.0,
            margin=margin,
            meaning=_meaning(result, language, question_language, across),
            nearness=None if threshold is None or result.similarity is None else result.similarity - threshold,
            says_all=has_words
            and language.partition("+")[0] == question_language
            and (
                (len(best_coverage.matched) > 1 and best_coverage.share >= RULE.all_words)
                or _names_subjects(words[best, language], best_coverage)
            ),
        )
        scored.append(
            ScoredHit(
                result=result,
                coverage=best_coverage,
                margin=margin,
                signals=signals,
                words=tuple(words[best, language]),
                language=language,
            )
        )
    # If the question has two words, one match is enough: people type "leave policy".
    least = RULE.matched_share if any(item.coverage.words >= RULE.words_of_a_question for item in scored) else 1e-9
    if not has_sentence and all(item.coverage.share < least for item in scored):
        return [_with_cosine_up_to(RULE.unrelated_cosine, item) for item in scored]
    if any(item.coverage.share or item.coverage.words >= RULE.words_of_a_question for item in scored):
        return scored
    return [_with_cosine_up_to(RULE.cosine_without_words, item) for item in scored]


def _names_subjects(words: Sequence[QuestionWord], covered: Coverage) -> bool:
    subjects = {word.text for word in words if word.synonyms}
    return bool(subjects) and subjects <= set(covered.matched) and covered.share >= RULE.share_of_subjects


def _with_cosine_up_to(most: float, item: ScoredHit) -> ScoredHit:
    meaning = item.signals.meaning
    return item if meaning is None else replace(item, signals=replace(item.signals, meaning=min(meaning, most)))


def _meaning(result: SearchResult, language: str, question_language: str, across: float) -> float | None:
    """Return the cosine similarity by the built-in model. `across` is added if hit and question are in different
    languages.
    """
    is_other = question_language and question_language != language.partition("+")[0]
    return result.meaning + across if result.meaning is not None and is_other else result.meaning


def without_name(item: ScoredHit) -> ScoredHit:
    """Mark a hit whose document does not name the company in the question."""
    return replace(item, signals=replace(item.signals, lacks_name=True))


def of_elsewhere(item: ScoredHit) -> ScoredHit:
    """Mark a hit from the folder of a country which the question does not name."""
    return replace(item, signals=replace(item.signals, is_elsewhere=True))


def of_no_country(item: ScoredHit) -> ScoredHit:
    """Mark a hit from no country's folder, because its rules may not apply in the question's country.

    Only used if other hits are from this country's folder.
    """
    return replace(item, signals=replace(item.signals, is_general=True))


def named_first(scored: Sequence[ScoredHit]) -> list[ScoredHit]:
    """Sort the hits: first for the company or country named in the question, last for other countries.

    Hits are moved to the front only if at least one may answer.
    """
    if any(outcome_of(item.probability) != "none" for item in scored if not item.signals.is_unnamed):
        return sorted(scored, key=lambda item: (item.signals.is_elsewhere, item.signals.is_unnamed))
    return sorted(scored, key=lambda item: item.signals.is_elsewhere)


def reranked(item: ScoredHit, result: SearchResult) -> ScoredHit:
    """Set the reranker's score, which is then also used to judge the evidence."""
    return replace(item, result=result, signals=replace(item.signals, relevance=result.rerank_score))


def _margin(result: SearchResult, passage_coverage: Coverage, usual: float | None) -> float:
    """Return how far a hit's similarity is above the usual similarity.

    If the usual similarity is unknown, returns half the hit's similarity, or a constant if less than two words match.
    """
    if result.similarity is None:
        return 0.0
    if usual is None:
        return result.similarity / 2 if len(passage_coverage.matched) > 1 else RULE.margin_of_one_word
    return result.similarity - usual


def in_order(
    scored: Sequence[ScoredHit], hits: SearchHits, *, places: int, language: str, named: Collection[str] = ()
) -> list[ScoredHit]:
    """Order the hits by search rank and probability. The order stays unchanged after a reranker, or without meaning
    cosines.

    Cosines across languages are lower. Therefore some of the first `places` ranks are reserved for hits in other
    languages if no hit in the question's language is sure, or if the question names a country. Usually, the last of
    these ranks are reserved. If the question names a country, or if no hit is in the question's language, the first
    ranks are reserved. `language` is the question's language, and `named` the languages of the named countries. If the
    question names a document, hits from documents with a very similar title have the lowest probability ranks.
    """
    if not any(item.result.meaning is not None for item in scored) or any(
        item.result.rerank_score is not None for item in scored
    ):
        return list(scored)
    in_language = [item for item in scored if item.is_in(language)]
    is_sure = best_of(in_language) >= RULE.sure and not named

    def likelihood(item: ScoredHit) -> float:
        # The correction for other languages applies only if no passage in the question's language is sure.
        signals = replace(item.signals, meaning=item.result.meaning) if is_sure else item.signals
        return probability(signals)

    by_likelihood = sorted(scored, key=lambda item: (item.result.document_id in hits.twins, -likelihood(item)))
    likely = {id(item): rank for rank, item in enumerate(by_likelihood, 1)}
    # A passage which is first in both orders gets the best probability.
    most = best_of(scored) * (RULE.rank_constant + 1) / 2
    scored = [
        replace(item, order=most * (1 / (RULE.rank_constant + rank) + 1 / (RULE.rank_constant + likely[id(item)])))
        for rank, item in enumerate(scored, 1)
    ]
    ordered = sorted(scored, key=lambda item: -(item.order or 0.0))
    reserved = RULE.places_of_named if named else 0 if is_sure else RULE.foreign_places
    # Passages which are early anyway need no reserved place.
    early = {item.result.chunk_id for item in ordered[:places]}
    foreign = _of_other_languages(scored, hits, language, early=set() if named else early)
    # A refused passage would only be here because no passage in its language is better.
    foreign = [item for item in foreign if named or outcome_of(item.probability) != "none"]
    foreign = [item for item in foreign if not named or item.language in named][: min(reserved, places // 2 + 1)]
    if not foreign:
        return ordered
    chosen = {item.result.chunk_id for item in foreign}
    rest = [item for item in ordered if item.result.chunk_id not in chosen]
    foreign = [replace(item, has_place=True) for item in foreign]
    # If no passage is in the question's language, the first place is reserved.
    first = max(0, places - len(foreign)) if in_language and not named else 0
    return [*rest[:first], *foreign, *rest[first:]]


def with_order_scores(ordered: Sequence[ScoredHit]) -> list[ScoredHit]:
    """Adjust the scores to the order: each hit gets at least the score of the hit after it."""
    least, rescored = 0.0, list[ScoredHit]()
    for item in reversed(ordered):
        least = max(least, item.result.score if item.order is None else item.order)
        rescored.append(replace(item, result=replace(item.result, score=least)))
    return rescored[::-1]


def _of_other_languages(
    scored: Sequence[ScoredHit], hits: SearchHits, language: str, *, early: Collection[UUID]
) -> list[ScoredHit]:
    standing = {chunk_id: rank for rank, chunk_id in enumerate(hits.foreign_ids)}
    foreign = [
        item
        for item in scored
        if item.result.chunk_id in standing
        or (not item.is_in(language) and item.signals.share > 0 and item.result.chunk_id not in early)
    ]

    def by_both(item: ScoredHit) -> float:
        by_meaning = standing.get(item.result.chunk_id, len(standing))
        return -1 / (RULE.foreign_constant + by_meaning) - RULE.foreign_words * item.signals.share

    return sorted(foreign, key=by_both)


def select_citable(scored: Sequence[ScoredHit]) -> list[ScoredHit]:
    """Return the hits to cite, in order. Empty if the documents do not answer.

    These are the hits which surely answer, else the hits which perhaps answer. Hits with a similar share of the
    question's words are added.
    """
    best = best_of(scored)
    outcome = outcome_of(best)
    if outcome == "none":
        return []
    least = RULE.answered if outcome == "answered" else RULE.perhaps
    evidence = [item for item in scored if item.probability >= least]
    needed = RULE.companion_share * max(item.coverage.share for item in evidence)
    return [item for item in scored if item.probability >= least or _accompanies(item, best, needed)]


def best_of(scored: Sequence[ScoredHit]) -> float:
    """Return the highest probability; 0 without passages."""
    return max((item.probability for item in scored), default=0.0)


def _accompanies(item: ScoredHit, best: float, needed: float) -> bool:
    if item.signals.is_elsewhere:
        return False
    relevance = item.result.rerank_score
    if relevance is not None:
        return relevance >= RULE.relevance_floor and 0 < needed <= item.coverage.share
    is_near = item.result.meaning is not None and item.probability >= RULE.cited_share * best
    return item.has_place or is_near or 0 < needed <= item.coverage.share


def usual_meanings(scored: Sequence[ScoredHit], cited: Sequence[ScoredHit]) -> dict[UUID, float]:
    """Return the usual cosine for each cited hit: the median for all hits in this hit's language.

    With few hits in a language, the median for all hits is used. Cosines across languages are lower: a common median
    would make every hit in a different language look irrelevant.
    """
    meanings = [(item.language, item.result.meaning) for item in scored if item.result.meaning is not None]
    if not meanings:
        return {}
    usual = statistics.median(meaning for _, meaning in meanings)
    usual_by_language = {
        item.language: background([m for language, m in meanings if language == item.language]) for item in cited
    }
    return {
        item.result.chunk_id: usual
        if (usual_in_language := usual_by_language[item.language]) is None
        else usual_in_language
        for item in cited
    }

"""Judge whether passages answer a question: one rule yields "answered", "perhaps" and "not in the documents".

All signals of a passage (how many of the question's words it holds, how near it is in meaning, the scores of a reranker
or a real embedder) become one probability that it answers. A word counts by its rarity in the documents. A word found
nowhere counts most: questions about things the documents do not mention consist mostly of such words.
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
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.known_by import known_by
from rag.retrieval.meaning import is_only_an_address, is_worded
from rag.retrieval.search_query import MAXIMUM_QUESTION_WORDS, QuestionWord, question_words
from rag.text.analysers import STOPWORDS, analyse, is_unspaced, words_with_terms
from rag.types import Evidence, SearchResult

#: A word counts as found when at least half of it is: Korean words have their pairs of syllables as terms.
FOUND = 0.5
#: How much of the share a similarity well above the other candidates' makes up for. The margin counts, because the
#: similarity itself depends on the embedder and on how similar a collection's passages are to each other.
MARGIN_WEIGHT = 2.0
#: The sum of share and margin that means even odds when only words are compared. Measured on eight sets of paragraphs
#: in seven languages: each half got its own questions and the other half's. Validated on further sets
#: (docs/measurements/finding.md, "What is not in the documents").
ENOUGH = 0.55
#: Fewer candidates give no usual similarity to compare with.
LEAST_CANDIDATES = 8
#: Least weight of a word, as a share of the highest: in documents all about one thing its words are common, and still
#: the question is about it.
LEAST_WEIGHT = 0.3
#: In a script without spaces half of the pairs of characters straddle two words, so a pair found nowhere says less.
UNKNOWN_PAIR = 0.5

#: Shortest and longest part of a compound that counts as a word.
SHORTEST_PART = 4
LONGEST_PART = 40

Idf = Callable[[str], float]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The part of the question that a passage covers: `share` by idf, 0 … 1, and the question's words in `found`."""

    share: float
    found: tuple[str, ...]
    words: int


#: The coverage for a wording in a language the passage is not compared in; less than any other.
NOTHING_COVERED = Coverage(share=-1.0, found=(), words=0)


def background(similarities: Sequence[float | None]) -> float | None:
    """Return the similarity that any candidate has: their median; None where there are too few to say."""
    known = [similarity for similarity in similarities if similarity is not None]
    return statistics.median(known) if len(known) >= LEAST_CANDIDATES else None


def is_sentence(text: str, language: str) -> bool:
    """Whether a text ends with a question mark, or has small words as sentences have, of any language.

    Scripts without spaces, Korean and languages whose small words are not known count as such.
    """
    if text.rstrip(" \"'”’»)").endswith(("?", "؟", "？")):
        return True
    words = re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", text[: 10 * MAXIMUM_QUESTION_WORDS]).lower())
    if language not in STOPWORDS or not words or any(is_unspaced(word) or "가" <= word[0] <= "힣" for word in words):
        return True
    most = max(sum(word in small for word in words) for small in STOPWORDS.values())
    return most >= LEAST_SMALL_WORDS * len(words)


def coverage(words: Sequence[QuestionWord], passage_terms: Iterable[str], idf: Idf) -> Coverage:
    """Return the share of the question's words, weighed by idf, that a passage contains."""
    present = frozenset(passage_terms)
    highest = idf("")  # of a term found nowhere
    total = reached = 0.0
    found = []
    for word in words:
        weights = [idf(term) for term in word.terms]
        # The mean: a word counts once, even if the analyser makes several terms.
        weight = sum(weights) / len(weights)
        if word.is_pair and weight >= highest:
            weight *= UNKNOWN_PAIR
        # A meaning is as rare as the commonest way to express it.
        weight = min([weight, *(max(map(idf, synonym)) for synonym in word.synonyms)])
        counted = max(weight, LEAST_WEIGHT * highest)
        part = sum(w for w, term in zip(weights, word.terms, strict=True) if term in present) / (sum(weights) or 1.0)
        if not part and word.is_compounding and weight >= highest:
            part = compound_share(word.terms[0], present)
        if any(present.issuperset(synonym) for synonym in word.synonyms):
            part = 1.0
        total += counted
        reached += counted * part
        if part >= FOUND:
            found.append(word.text)
    return Coverage(share=reached / total if total else 0.0, found=tuple(found), words=len(words))


def compound_share(word: str, present: Collection[str]) -> float:
    """Return the share of a compound, 0 … 1, that its beginning and end make up if the passage has them as words.

    "zwangerschapsverlof" is in a passage on "Zwangerschaps- en bevallingsverlof".
    """
    longest = min(len(word) - 1, LONGEST_PART)
    # Try the few parts of the word rather than each term of each passage.
    start = next((n for n in range(longest, SHORTEST_PART - 1, -1) if word[:n] in present), 0)
    end = next((n for n in range(longest, SHORTEST_PART - 1, -1) if word[-n:] in present and word[:n] != word[-n:]), 0)
    return min(1.0, (start + end) / len(word))


@lru_cache(maxsize=2_000)
def passage_terms(text: str, language: str) -> tuple[str, ...]:
    """Analyse a passage; recent results are cached, because each takes a fifth of a millisecond."""
    return tuple(analyse(text, language))


def matched_words(text: str, words: Iterable[QuestionWord], language: str) -> tuple[str, ...]:
    """Return the words of a passage, as written there in lower case, that are words of the question: to be marked."""
    wanted = {term for word in words for terms in (word.terms, *word.synonyms) for term in terms}
    found = dict.fromkeys(word for word, terms in _words_of_passage(text, language) if wanted.intersection(terms))
    return tuple(found)


@lru_cache(maxsize=256)
def _words_of_passage(text: str, language: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the words of a passage with their terms; the ones that many ask about at a time are kept."""
    return tuple(words_with_terms(text, language))


# The rule

#: From this probability on a question is answered, and below the other it is not in the documents; between, perhaps.
#: The second is where 6 in 100 everyday questions of the tuning half are not refused.
ANSWERED, PERHAPS = 0.5, 0.26
#: Words alone, where there is no model of meaning: log odds by how far share and margin are above `ENOUGH`, so that
#: "perhaps" begins 0.03 below it: 4 in 102 everyday questions.
WORDS_SLOPE = 30.0
#: Words and meaning together: log odds by share with margin, and by cosine. A logistic regression on the best passage
#: of each question of the tuning half of 131 natural questions and of the 102 everyday ones: `benchmarks/natural.py
#: --fit`. The base is 0.4 lower than fitted: 6 in 102 everyday questions to the samples, no part of it, were answered.
MEANING_BASE, MEANING_WORDS, MEANING_COSINE = -0.91, 2.69, 58.6
#: What a cosine loses when question and passage are in two languages. The same questions and paragraphs in five of them
#: lose 0.05 (European ones) to 0.09 when they answer; less is given back, because the best wrong ones lose less, too.
#: More of it where no passage is in the question's language, so that none of its own stands beside the others.
ACROSS, ACROSS_ALONE = 0.035, 0.04
#: The cosine at which `MEANING_BASE` holds.
USUAL_COSINE = 0.84
#: A question of fewer words, none of them in any candidate, is perhaps answered at most: of one that is no word at all
#: ("qwertyuiop") cosines are as high. This one has just not even odds.
WORDS_OF_A_QUESTION = 3
COSINE_WITHOUT_WORDS = USUAL_COSINE - MEANING_BASE / MEANING_COSINE - 0.001
#: The share of small words ("the", "how") in questions is at least this. Code, filler text in Latin and random keys
#: have fewer, with cosines as high as an answer's: unless a passage holds half of such a text, its cosine counts at
#: most as an unrelated passage's.
LEAST_SMALL_WORDS = 0.3
UNRELATED_COSINE = 0.82
#: With meaning, passages are cited beside the best down to this share of its probability.
CITED_SHARE = 0.1
#: Up to this probability passages of other languages have places, and so many; more where the question names a country.
SURE, PLACES_OF_OTHERS, PLACES_OF_NAMED = 0.95, 1, 3
#: The constant of reciprocal ranks by which passages of other languages are chosen, by meaning and by their words.
OTHERS_CONSTANT = 20
#: What all words of the question count there: as much as the first rank by meaning.
OTHERS_WORDS = 0.2
#: The constant of reciprocal ranks for joining the search's order with the order by probability.
RANK_CONSTANT = 10
#: Below this relevance a reranked passage is not cited: Cohere gives unrelated passages 0.01 and less, and related ones
#: to a question of two words sometimes little more than this.
RELEVANCE_FLOOR = 0.02
#: From this relevance on a reranked passage needs no shared word: it may be in another language.
SURE_RELEVANCE = 0.3
#: Log odds by how far a similarity is above its collection's threshold: 0.05 below, one in twenty-four.
NEARNESS_SLOPE = 63.0
#: Beside a passage that is evidence, others are cited when they cover at least this share of what it covers.
COMPANION_SHARE = 0.5
#: What makes half of a question enough where there is no background.
MARGIN_OF_ONE_WORD = (ENOUGH - 0.5) / MARGIN_WEIGHT


#: What log odds lose where a document nowhere says whose rules the question asks for, perhaps those of another, and the
#: most they are there: it perhaps answers.
LACKING_NAME, JUST_NO_ANSWER = 3.0, -0.01


@dataclass(frozen=True, kw_only=True)
class PassageSignals:
    """The signals of how well one passage answers; None for a missing signal."""

    #: Of the question's words, by rarity, and how far the similarity is above that of the other candidates.
    share: float
    margin: float = 0.0
    #: Cosine by meaning.
    meaning: float | None = None
    #: How far the similarity of a real embedder is above the collection's threshold.
    nearness: float | None = None
    #: What the reranker gives it, 0 … 1.
    relevance: float | None = None
    #: Whether its document nowhere says whose rules the question asks for.
    lacks_name: bool = False
    #: Whether its folder is for a country that the question does not name.
    is_elsewhere: bool = False
    #: Whether it is for no country, and others are for the one that the question names.
    is_general: bool = False

    @property
    def is_unnamed(self) -> bool:
        """Whether nothing says that the passage holds for whom the question names."""
        return self.lacks_name or self.is_general


def probability(signals: PassageSignals) -> float:
    """How likely it is that a passage with these signals answers the question.

    Words and meaning are weighed against each other. A similarity over its threshold, and a reranker, which reads
    question and passage together, may each be sure by themselves; what the reranker calls unrelated is not evidence.
    """
    odds = _log_odds_of_text(signals)
    if signals.nearness is not None:
        odds = max(odds, NEARNESS_SLOPE * signals.nearness)
    if signals.relevance is not None:
        by_reranker = _log_odds(signals.relevance) - _log_odds(SURE_RELEVANCE)
        odds = max(odds, by_reranker) if signals.relevance >= RELEVANCE_FLOOR else min(odds, _log_odds(PERHAPS) - 1)
    if signals.lacks_name:
        odds = min(odds - LACKING_NAME, JUST_NO_ANSWER)
    if signals.is_general:
        odds = min(odds, JUST_NO_ANSWER)
    if signals.is_elsewhere:
        odds = min(odds, _log_odds(PERHAPS) - 1)
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, odds))))


def _log_odds_of_text(signals: PassageSignals) -> float:
    words = signals.share + MARGIN_WEIGHT * max(0.0, signals.margin) if signals.share else 0.0
    if signals.meaning is None:
        return WORDS_SLOPE * (words - ENOUGH)
    return MEANING_BASE + MEANING_WORDS * min(1.0, words) + MEANING_COSINE * (signals.meaning - USUAL_COSINE)


def _log_odds(share: float) -> float:
    share = min(1 - 1e-6, max(1e-6, share))
    return math.log(share / (1 - share))


def outcome_of(best: float) -> Evidence:
    """Return what a question comes to whose best passage answers with this probability."""
    return "answered" if best >= ANSWERED else "perhaps" if best >= PERHAPS else "none"


@dataclass(frozen=True, kw_only=True)
class ScoredHit:
    """A passage with the signals of its relevance."""

    result: SearchResult
    coverage: Coverage
    #: How far the similarity is above the usual similarity of candidates.
    margin: float = 0.0
    signals: PassageSignals
    #: The question's words in the passage's language, and that language: what to mark in the passage.
    words: tuple[QuestionWord, ...]
    language: str
    #: Whether the passage is in another language and unusually near among the passages in that language.
    has_place: bool = False
    #: The score for the place among all passages, if `in_order` gave one.
    order: float | None = None
    #: Text around the passage for the model, and the pages of both; 0: the passage's pages.
    before: str = ""
    after: str = ""
    first_read_page: int = 0
    last_read_page: int = 0

    @property
    def probability(self) -> float:
        """That it answers the question."""
        return probability(self.signals)

    def is_in(self, language: str) -> bool:
        """Whether its document is in a language, given as an ISO 639-1 code."""
        return self.language.partition("+")[0] == language.partition("-")[0]


def score_hits(
    results: Sequence[SearchResult],
    found: SearchHits,
    *,
    wordings: Sequence[tuple[str, str]],
    own_language: str = "",
    thresholds: Sequence[float] = (),
) -> list[ScoredHit]:
    """Score each result by the question's wordings, pairs of text and language; the best wording counts.

    `own_language` is that of a question that was translated: passages in it are measured by what was asked alone.

    `thresholds` are similarities that are evidence by themselves, the first that a passage reaches; none where the
    embedder compares words only.
    """
    words: dict[tuple[int, str], list[QuestionWord]] = {}

    def idf(term: str) -> float:
        return found.statistics.idf(term_id(term))

    asked_in = wordings[0][1].split("-")[0]
    across = ACROSS if any(hit.language == asked_in for hit in found.meant) else ACROSS_ALONE
    is_said = any(is_sentence(*wording) for wording in wordings)
    # Compared with a question without words, any passage that has some seems near.
    has_words = any(is_worded(wording) for wording, _ in wordings)
    is_address = all(is_only_an_address(wording) for wording, _ in wordings)
    nearest = max((r.similarity for r in results if r.similarity is not None), default=-1.0)
    threshold = next((t for t in thresholds if nearest >= t), thresholds[-1] if thresholds else None)
    # Of passages found by words: those near in meaning alone lie lower and would make everything else seem near.
    usual = background([r.similarity for r in found.results if r.vector_rank or r.keyword_rank])
    said, spoken = "\n".join(text for text, _ in wordings), frozenset(code.partition("-")[0] for _, code in wordings)
    scored = []
    for result in results:
        language = found.languages[result.document_id]
        name = known_by(result.title, result.folder, said, spoken)
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
        held = coverages[best]
        margin = _margin(result, held, usual) if has_words else 0.0
        signals = PassageSignals(
            share=held.share if held.found and not is_address else 0.0,
            margin=margin,
            meaning=_meaning(result, language, asked_in, across),
            nearness=None if threshold is None or result.similarity is None else result.similarity - threshold,
        )
        scored.append(
            ScoredHit(
                result=result,
                coverage=held,
                margin=margin,
                signals=signals,
                words=tuple(words[best, language]),
                language=language,
            )
        )
    # Of two words, one is enough: people write "leave policy".
    least = FOUND if any(item.coverage.words >= WORDS_OF_A_QUESTION for item in scored) else 1e-9
    if not is_said and all(item.coverage.share < least for item in scored):
        return [_with_cosine_up_to(UNRELATED_COSINE, item) for item in scored]
    if any(item.coverage.share or item.coverage.words >= WORDS_OF_A_QUESTION for item in scored):
        return scored
    return [_with_cosine_up_to(COSINE_WITHOUT_WORDS, item) for item in scored]


def _with_cosine_up_to(most: float, item: ScoredHit) -> ScoredHit:
    meaning = item.signals.meaning
    return item if meaning is None else replace(item, signals=replace(item.signals, meaning=min(meaning, most)))


def _meaning(result: SearchResult, language: str, asked_in: str, across: float) -> float | None:
    """Return the cosine by meaning as it would be were the passage in the question's language."""
    is_other = asked_in and asked_in != language.partition("+")[0]
    return result.meaning + across if result.meaning is not None and is_other else result.meaning


def without_name(item: ScoredHit) -> ScoredHit:
    """Return a passage of a document that does not say whose rules the question asks for."""
    return replace(item, signals=replace(item.signals, lacks_name=True))


def of_elsewhere(item: ScoredHit) -> ScoredHit:
    """Return a passage from the folder of a country that the question does not name."""
    return replace(item, signals=replace(item.signals, is_elsewhere=True))


def of_no_country(item: ScoredHit) -> ScoredHit:
    """Return a passage for no country, where others are for the one that the question names: it holds there perhaps."""
    return replace(item, signals=replace(item.signals, is_general=True))


def named_first(scored: Sequence[ScoredHit]) -> list[ScoredHit]:
    """Put passages with the owner's or the country's name first, if one may answer, those for other countries last."""
    if any(outcome_of(item.probability) != "none" for item in scored if not item.signals.is_unnamed):
        return sorted(scored, key=lambda item: (item.signals.is_elsewhere, item.signals.is_unnamed))
    return sorted(scored, key=lambda item: item.signals.is_elsewhere)


def reranked(item: ScoredHit, result: SearchResult) -> ScoredHit:
    """Return a passage with what a reranker gave it."""
    return replace(item, result=result, signals=replace(item.signals, relevance=result.rerank_score))


def _margin(result: SearchResult, held: Coverage, usual: float | None) -> float:
    """Return how far a passage's similarity is above the usual one.

    With too few candidates for a usual similarity, half of it counts beside several shared words. A single shared word
    already makes a short passage near: beside it only a little counts, so that half of the question is enough.
    """
    if result.similarity is None:
        return 0.0
    if usual is None:
        return result.similarity / 2 if len(held.found) > 1 else MARGIN_OF_ONE_WORD
    return result.similarity - usual


def in_order(
    scored: Sequence[ScoredHit], found: SearchHits, *, places: int, language: str, named: Collection[str] = ()
) -> list[ScoredHit]:
    """Order the passages by search and probability together, if meaning was compared and no reranker ran.

    Some of the first `places` go to passages in other languages if none in the question's own is sure or the question
    names their country, because cosines across languages are lower: the last places, or the first if the question
    names a country or has no passage in its language. Passages of a document come last by probability if
    the question names its near twin.
    """
    if not any(item.result.meaning is not None for item in scored) or any(
        item.result.rerank_score is not None for item in scored
    ):
        return list(scored)
    own = [item for item in scored if item.is_in(language)]
    is_sure = best_of(own) >= SURE and not named

    def likelihood(item: ScoredHit) -> float:
        # What a cosine loses across languages is given back only where the question's own has no sure answer.
        signals = replace(item.signals, meaning=item.result.meaning) if is_sure else item.signals
        return probability(signals)

    by_likelihood = sorted(scored, key=lambda item: (item.result.document_id in found.twins, -likelihood(item)))
    likely = {id(item): rank for rank, item in enumerate(by_likelihood, 1)}
    # A passage that is first in both orders gets the probability of the best.
    most = best_of(scored) * (RANK_CONSTANT + 1) / 2
    scored = [
        replace(item, order=most * (1 / (RANK_CONSTANT + rank) + 1 / (RANK_CONSTANT + likely[id(item)])))
        for rank, item in enumerate(scored, 1)
    ]
    ordered = sorted(scored, key=lambda item: -(item.order or 0.0))
    wanted = PLACES_OF_NAMED if named else 0 if is_sure else PLACES_OF_OTHERS
    # What comes early by itself needs no place.
    early = {item.result.chunk_id for item in ordered[:places]}
    others = _of_other_languages(scored, found, language, early=set() if named else early)
    # A refused passage would only be here as the best in its language.
    others = [item for item in others if named or outcome_of(item.probability) != "none"]
    others = [item for item in others if not named or item.language in named][: min(wanted, places // 2 + 1)]
    if not others:
        return ordered
    chosen = {item.result.chunk_id for item in others}
    rest = [item for item in ordered if item.result.chunk_id not in chosen]
    others = [replace(item, has_place=True) for item in others]
    # If no passage is in the question's language, the place is the first.
    first = max(0, places - len(others)) if own and not named else 0
    return [*rest[:first], *others, *rest[first:]]


def with_order_scores(ordered: Sequence[ScoredHit]) -> list[ScoredHit]:
    """Set each score to the one for its place. A passage moved up by a rule gets the score of the next."""
    least, found = 0.0, list[ScoredHit]()
    for item in reversed(ordered):
        least = max(least, item.result.score if item.order is None else item.order)
        found.append(replace(item, result=replace(item.result, score=least)))
    return found[::-1]


def _of_other_languages(
    scored: Sequence[ScoredHit], found: SearchHits, language: str, *, early: Collection[UUID]
) -> list[ScoredHit]:
    """Return passages in other languages than the question's, best first: those unusually near for their language, and
    those that hold the question's words in translation and are not `early`.
    """
    standing = {chunk_id: rank for rank, chunk_id in enumerate(found.from_others)}
    others = [
        item
        for item in scored
        if item.result.chunk_id in standing
        or (not item.is_in(language) and item.signals.share > 0 and item.result.chunk_id not in early)
    ]

    def by_both(item: ScoredHit) -> float:
        by_meaning = standing.get(item.result.chunk_id, len(standing))
        return -1 / (OTHERS_CONSTANT + by_meaning) - OTHERS_WORDS * item.signals.share

    return sorted(others, key=by_both)


def worth_citing(scored: Sequence[ScoredHit]) -> list[ScoredHit]:
    """Return the passages to cite, in their order; none if the documents do not answer.

    Cited are the passages sure to answer, or else the probable ones, and passages with much of their content.
    """
    best = best_of(scored)
    outcome = outcome_of(best)
    if outcome == "none":
        return []
    least = ANSWERED if outcome == "answered" else PERHAPS
    evidence = [item for item in scored if item.probability >= least]
    needed = COMPANION_SHARE * max(item.coverage.share for item in evidence)
    return [item for item in scored if item.probability >= least or _accompanies(item, best, needed)]


def best_of(scored: Sequence[ScoredHit]) -> float:
    """Return the probability of the passage that most likely answers; 0 without passages."""
    return max((item.probability for item in scored), default=0.0)


def _accompanies(item: ScoredHit, best: float, needed: float) -> bool:
    if item.signals.is_elsewhere:
        return False
    relevance = item.result.rerank_score
    if relevance is not None:
        return relevance >= RELEVANCE_FLOOR and 0 < needed <= item.coverage.share
    is_near = item.result.meaning is not None and item.probability >= CITED_SHARE * best
    return item.has_place or is_near or 0 < needed <= item.coverage.share


def usual_meanings(scored: Sequence[ScoredHit], cited: Sequence[ScoredHit]) -> dict[UUID, float]:
    """Return for each cited passage the median cosine in its language; with few passages, the median in all.

    Cosines across languages are lower, so a common median would call every foreign passage unusually far.
    """
    known = [(item.language, item.result.meaning) for item in scored if item.result.meaning is not None]
    if not known:
        return {}
    usual = statistics.median(meaning for _, meaning in known)
    own = {item.language: background([m for spoken, m in known if spoken == item.language]) for item in cited}
    return {item.result.chunk_id: usual if (of_own := own[item.language]) is None else of_own for item in cited}

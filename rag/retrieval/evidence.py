"""How much of a question a passage speaks to, by words: what tells "not in the documents" apart without a model.

A word counts by its rarity in the documents; one that stands nowhere counts most, because a question about what the
documents do not mention is mostly made of such words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag.retrieval.analysers import analyse, is_unspaced, words_with_terms
from rag.retrieval.stopwords import STOPWORDS

#: A word counts as found when at least half of it is: Korean words have their pairs of syllables as terms.
FOUND = 0.5
#: Least share of the question's weight for one word alone: as much as all the missing ones. Beside a word that stands
#: nowhere, which weighs most, one word is never enough: "What is the capital of France?"
SINGLE_WORD = 0.5
#: Least share for several words, the similarity added. Measured on eight languages, each half of a set of paragraphs
#: asked the questions of its own half and of the other: 85-98 % of the former pass, 3-20 % of the latter.
SEVERAL_WORDS = 0.55
#: In a script without spaces half of the pairs of characters straddle two words; one that stands nowhere says less.
UNKNOWN_PAIR = 0.5

#: Languages that write compounds as one word, and the shortest part of one that is a word.
COMPOUNDING = frozenset({"nl", "de", "da", "sv", "no", "nb", "fi"})
SHORTEST_PART = 4

Idf = Callable[[str], float]


@dataclass(frozen=True)
class QuestionWord:
    """A word of the question that carries topic, with its index terms."""

    text: str
    terms: tuple[str, ...]
    #: Two characters of a script without spaces.
    is_pair: bool = False
    #: A word of a language that writes compounds as one word.
    is_compounding: bool = False


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What of the question a passage holds. `share` is by idf, 0 … 1; `found` are the question's words."""

    share: float
    found: tuple[str, ...]
    words: int

    def is_evidence(self, similarity: float | None) -> bool:
        """Whether the passage speaks to the question: all words, several that weigh enough, or one that weighs most.

        The similarity, -1 … 1, helps several words, since word parts and close spellings show there.
        """
        if self.words == 0 or not self.found:
            return False
        if len(self.found) == self.words:
            return True
        if len(self.found) == 1:
            return self.share >= SINGLE_WORD
        return self.share + max(0.0, similarity or 0.0) >= SEVERAL_WORDS


def question_words(text: str, language: str, analyser: str) -> list[QuestionWord]:
    """The words of a question that carry topic, each once, analysed as documents of one language are.

    Stopwords of the question's own language are left out too: an English "the" would be a rare word in Dutch documents.
    """
    stopwords = STOPWORDS.get(language, frozenset())
    found: dict[tuple[str, ...], QuestionWord] = {}
    for word, terms in words_with_terms(text, analyser):
        if terms and word not in stopwords:
            found.setdefault(terms, QuestionWord(word, terms, is_unspaced(word), analyser in COMPOUNDING))
    return list(found.values())


def coverage(words: Sequence[QuestionWord], passage_terms: Iterable[str], idf: Idf) -> Coverage:
    """How much of the question's words, weighed by idf, stands in a passage."""
    present = frozenset(passage_terms)
    highest = idf("")  # of a term that stands nowhere
    total = reached = 0.0
    found = []
    for word in words:
        weights = [idf(term) for term in word.terms]
        # The mean, so that a word counts once however many terms its analyser makes of it.
        weight = sum(weights) / len(weights)
        if word.is_pair and weight >= highest:
            weight *= UNKNOWN_PAIR
        part = sum(w for w, term in zip(weights, word.terms, strict=True) if term in present) / (sum(weights) or 1.0)
        if not part and word.is_compounding and weight >= highest:
            part = compound_share(word.terms[0], present)
        total += weight
        reached += weight * part
        if part >= FOUND:
            found.append(word.text)
    return Coverage(share=reached / total if total else 0.0, found=tuple(found), words=len(words))


def compound_share(word: str, present: Iterable[str]) -> float:
    """How much of a compound its beginning and its end make up, where these stand in the passage as words, 0 … 1.

    "zwangerschapsverlof" is in a passage on "Zwangerschaps- en bevallingsverlof".
    """
    start = end = 0
    for term in present:
        if SHORTEST_PART <= len(term) < len(word):
            if word.startswith(term):
                start = max(start, len(term))
            elif word.endswith(term):
                end = max(end, len(term))
    return min(1.0, (start + end) / len(word))


@lru_cache(maxsize=2_000)
def passage_terms(text: str, language: str) -> tuple[str, ...]:
    """`analyse`, remembered for passages looked at lately: taking one apart takes a fifth of a millisecond."""
    return tuple(analyse(text, language))


def matched_words(text: str, words: Iterable[QuestionWord], language: str) -> tuple[str, ...]:
    """The words of a passage, as written there in lower case, that are words of the question: to be marked."""
    wanted = {term for word in words for term in word.terms}
    found = dict.fromkeys(word for word, terms in words_with_terms(text, language) if wanted.intersection(terms))
    return tuple(found)

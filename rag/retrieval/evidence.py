"""How much of a question a passage speaks to, by words: what tells "not in the documents" apart without a model.

A word counts by its rarity in the documents; one that stands nowhere counts most, because a question about what the
documents do not mention is mostly made of such words. Half of the words are enough for a passage that is much nearer to
the question than the other candidates are.
"""

from __future__ import annotations

import statistics
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag.retrieval.analysers import analyse, is_unspaced, words_with_terms
from rag.retrieval.stopwords import STOPWORDS

#: A word counts as found when at least half of it is: Korean words have their pairs of syllables as terms.
FOUND = 0.5
#: Least share of the question's weight, with what its similarity stands out by. Measured on eight sets of paragraphs in
#: seven languages, each half asked the questions of its own and of the other half, and tried on others
#: (benchmarks/README.md, "What is not in the documents").
ENOUGH = 0.55
#: How much of the share a similarity makes up for that stands out from the other candidates'. The margin counts and not
#: the similarity: that one differs by embedder and by how alike a collection's passages are.
MARGIN_WEIGHT = 2.0
#: Fewer candidates are no background to stand out from.
LEAST_CANDIDATES = 8
#: Least weight of a word, as a share of the highest: in documents all about one thing its words are common, and still
#: the question is about it.
LEAST_WEIGHT = 0.3
#: In a script without spaces half of the pairs of characters straddle two words; one that stands nowhere says less.
UNKNOWN_PAIR = 0.5

#: Languages that write compounds as one word, and the shortest part of one that is a word.
COMPOUNDING = frozenset({"nl", "de", "da", "sv", "no", "nb", "fi"})
SHORTEST_PART = 4
LONGEST_PART = 40

#: Words of a question that are searched for; a pasted page would otherwise make the scan slow.
MAXIMUM_QUESTION_WORDS = 300

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

    def is_evidence(self, margin: float = 0.0) -> bool:
        """Whether the passage speaks to the question: it holds enough of it, or somewhat less and stands out.

        `margin` is how far the passage's similarity is above that of the other candidates; word parts and close
        spellings show there, and with a model what is said in other words.
        """
        return bool(self.found) and self.share + MARGIN_WEIGHT * max(0.0, margin) >= ENOUGH


def background(similarities: Sequence[float | None]) -> float | None:
    """The similarity that any candidate has: their median; None where there are too few to say."""
    known = [similarity for similarity in similarities if similarity is not None]
    return statistics.median(known) if len(known) >= LEAST_CANDIDATES else None


def question_words(text: str, language: str, analyser: str) -> list[QuestionWord]:
    """The words of a question that carry topic, each once, analysed as documents of one language are.

    Stopwords of the question's own language are left out too: an English "the" would be a rare word in Dutch documents.
    """
    stopwords = STOPWORDS.get(language, frozenset())
    found: dict[tuple[str, ...], QuestionWord] = {}
    # One letter may be short for a sentence (U+FDFA for four words): what a question is read as stays near its length.
    text = unicodedata.normalize("NFKC", text)[: 2 * len(text)]
    for word, terms in words_with_terms(text, analyser):
        if len(found) == MAXIMUM_QUESTION_WORDS:
            break
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
        counted = max(weight, LEAST_WEIGHT * highest)
        part = sum(w for w, term in zip(weights, word.terms, strict=True) if term in present) / (sum(weights) or 1.0)
        if not part and word.is_compounding and weight >= highest:
            part = compound_share(word.terms[0], present)
        total += counted
        reached += counted * part
        if part >= FOUND:
            found.append(word.text)
    return Coverage(share=reached / total if total else 0.0, found=tuple(found), words=len(words))


def compound_share(word: str, present: Collection[str]) -> float:
    """How much of a compound its beginning and its end make up, where these stand in the passage as words, 0 … 1.

    "zwangerschapsverlof" is in a passage on "Zwangerschaps- en bevallingsverlof".
    """
    longest = min(len(word) - 1, LONGEST_PART)
    # By the word's own parts, of which there are few, and not by each term of each passage.
    start = next((n for n in range(longest, SHORTEST_PART - 1, -1) if word[:n] in present), 0)
    end = next((n for n in range(longest, SHORTEST_PART - 1, -1) if word[-n:] in present and word[:n] != word[-n:]), 0)
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

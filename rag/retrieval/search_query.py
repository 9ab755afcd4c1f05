"""Prepare a question for the search: words, vectors, and how many chunks contain each term.

A misspelt word which is in no document is replaced by the most similar word in the chunks found. No dictionary is
needed: vector search compares parts of words, and the chunks found contain the intended word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from rag.errors import InvalidInput
from rag.retrieval.bm25.index import term_id
from rag.retrieval.bm25.scoring import inverse_document_frequency
from rag.retrieval.bm25.synonyms import synonyms_of
from rag.retrieval.fusion import WEIGHTS, FusionWeights
from rag.text.analysers import (
    STOPWORDS,
    analyse,
    analyser_code,
    is_plain,
    is_unspaced,
    without_particle,
    words_with_terms,
)

#: Weight of a synonym for a word in the question.
SYNONYM_WEIGHT = 0.5
#: Weight of a synonym in a different language; with more, every passage on the subject would come first.
FOREIGN_WEIGHT = 0.15
#: Languages which write compounds without spaces, like German.
COMPOUNDING = frozenset({"nl", "de", "da", "sv", "no", "nb", "fi"})
#: The most words of a question which are searched; a pasted page would make the scan slow.
MAXIMUM_QUESTION_WORDS = 300


@dataclass(frozen=True)
class QuestionWord:
    """A word in the question which is no stopword, with the index terms."""

    text: str
    terms: tuple[str, ...]
    #: Whether the word is a character pair in a script without spaces.
    is_pair: bool = False
    #: Whether the word is in a language with compounds.
    is_compounding: bool = False
    #: The index terms for each other expression for the word.
    synonyms: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """A question with all settings needed for the search."""

    #: The text for keywords; several wordings, such as the original and a translation, are separate lines.
    text: str
    #: The question's ISO 639-1 code, "" if unknown. Stopwords of this language are left out for documents in any
    #: language.
    language: str = ""
    #: The question's embedding, of length 1; without it, only keywords are searched.
    vector: NDArray[np.float32] | None = field(default=None, repr=False)
    #: Id of the embedder; only passages with the same embedder are compared.
    embedding_model: str = ""
    #: The question's meaning vector, if `vector` compares words; `None` without a meaning model.
    meaning: NDArray[np.float32] | None = field(default=None, repr=False)
    #: Returns the question's meaning vectors in other languages' words, by language. Called when these are known.
    meaning_in_words_of: Callable[[Collection[str]], Mapping[str, NDArray[np.float32]]] | None = field(
        default=None, repr=False, compare=False
    )
    #: Least cosine similarity for results not found by keyword.
    threshold: float = -1.0
    #: Fewest neighbours which an approximate index compares.
    neighbours: int = 0
    fusion: Literal["weighted", "raw", "rrf"] = "weighted"
    #: BM25's parameters.
    k1: float = 1.5
    b: float = 0.75
    weights: FusionWeights = WEIGHTS
    #: Two passages of a document are equal if this many first characters are; with 0, only if all are.
    same_beginning: int = 0
    #: Whether the distance between words and document names affect the order.
    refine: bool = True
    #: Whether folder names count like titles.
    with_folders: bool = True
    #: Whether words which no document has are corrected from the found passages.
    correct_spelling: bool = True

    @property
    def is_dense(self) -> bool:
        """Whether vectors are dense. Dense vectors can first be compared by their sign bits.

        False only for the built-in hashing embedder: the vectors are mostly zeros, and a search by sign bits finds only
        6 to 27 % of the ten nearest chunks.
        """
        return not self.embedding_model.startswith("builtin/")

    @cached_property
    def halfvec(self) -> HalfVector | None:
        """The vector in Postgres's format, or `None` if missing or zero.

        Raises `InvalidInput` if the vector's length differs from the embedding model's dimensions.
        """
        if self.vector is None:
            return None
        _, _, dimensions = self.embedding_model.rpartition("@")
        if dimensions.isdigit() and len(self.vector) != int(dimensions):
            raise InvalidInput(
                f"The question's vector has {len(self.vector)} dimensions, but those of {self.embedding_model} "
                f"have {dimensions}. Embed the question with the collection's own model."
            )
        return HalfVector(self.vector) if np.any(self.vector) else None

    @cached_property
    def meaning_halfvec(self) -> HalfVector | None:
        """The built-in model's vector in Postgres's format; `None` if missing or zero."""
        return None if self.meaning is None else HalfVector(self.meaning)


@dataclass(frozen=True, kw_only=True)
class TermStatistics:
    """How many chunks contain each question term, and the total chunk count."""

    chunks_by_term: Mapping[int, float] = field(default_factory=dict)
    chunks: float = 0.0

    def idf(self, term: int) -> float:
        """Return Lucene's idf for a term; highest for a term in no chunk."""
        return inverse_document_frequency(self.chunks_by_term.get(term, 0.0), self.chunks)


@lru_cache(maxsize=2_000)
def question_terms(text: str, language: str, analyser: str) -> Mapping[str, float]:
    """Return a question's distinct index terms with their weights, for documents in a language.

    The question's terms come first, with weight 1; synonyms weigh less. With a plain analyser, a term's weight is how
    often the term occurs (source 003 in docs/sources.md, 2.3 A).
    """
    if is_plain(analyser):
        counted = Counter(word for word, _ in words_with_terms(text, analyser)[:MAXIMUM_QUESTION_WORDS])
        return {word: float(count) for word, count in counted.items()}
    words = cached_question_words(text, language, analyser)
    weights = dict.fromkeys((term for word in words for term in word.terms), 1.0)
    synonym_terms = (term for word in words for synonym in word.synonyms for term in synonym)
    weight = SYNONYM_WEIGHT if analyser_code(language) == analyser else FOREIGN_WEIGHT
    return weights | {term: weight for term in synonym_terms if term not in weights}


@lru_cache(maxsize=2_000)
def cached_question_words(text: str, language: str, analyser: str) -> tuple[QuestionWord, ...]:
    """Return `question_words` from a cache, because several steps need them."""
    return tuple(question_words(text, language, analyser))


def question_words(text: str, language: str, analyser: str) -> list[QuestionWord]:
    """Return a question's distinct words without stopwords, analysed for documents in a language.

    Stopwords in the question's language are left out too: an English "the" would be rare in Dutch documents.
    """
    stopwords = frozenset() if is_plain(analyser) else STOPWORDS.get(language, frozenset())
    by_terms: dict[tuple[str, ...], QuestionWord] = {}
    # Limit the length after normalization, because a character may become a sentence (U+FDFA stands for four words).
    if not is_plain(analyser):
        text = unicodedata.normalize("NFKC", text)[: 2 * len(text)]
    synonyms = {} if is_plain(analyser) else synonyms_of(text, language, analyser)
    for word, terms in words_with_terms(text, analyser):
        if len(by_terms) == MAXIMUM_QUESTION_WORDS:
            break
        if terms and word not in stopwords:
            item = QuestionWord(word, terms, is_unspaced(word), analyser in COMPOUNDING, synonyms.get(word, ()))
            by_terms.setdefault(terms, item)
    return list(by_terms.values())


#: In shorter words, a changed letter gives too many other words.
SHORTEST_CORRECTED = 4
#: In shorter words no letter is replaced: "gold" is no misspelt "good", and "Mars" no "ears".
SHORTEST_REPLACED = 5
#: The same limit in Korean syllables: two-syllable words with a replaced letter are mostly different, like "사장" and
#: "시장".
SHORTEST_REPLACED_KOREAN = 3
#: Longer strings are no typing errors, and would give a variant for each letter.
LONGEST_CORRECTED = 40
_WORD = re.compile(r"[^\W\d_]{4,}")
_HANGUL = re.compile("[가-힣]{2,}")


class WrittenPassage(Protocol):
    """A found passage, used for spelling correction: its text and language."""

    @property
    def content(self) -> str: ...
    @property
    def language(self) -> str: ...


def correct_spelling(query: SearchQuery, statistics: TermStatistics, passages: Sequence[WrittenPassage]) -> SearchQuery:
    """Replace the query's unknown words by the most similar words in the chunks found."""
    if not query.correct_spelling:
        return query
    language, analysers = query.language or "en", {passage.language for passage in passages}

    def is_indexed(word: QuestionWord, analyser: str) -> bool:
        terms = word.terms if analyser == language else tuple(analyse(word.text, analyser))
        # A Korean word's first term is the whole word; its syllable pairs occur in other words too.
        main_terms = terms[:1] if is_hangul(word.text) else terms
        return any(term_id(term) in statistics.chunks_by_term for term in main_terms)

    unknown = [
        word.text
        for word in cached_question_words(query.text, query.language, language)
        if not word.synonyms and not any(is_indexed(word, analyser) for analyser in analysers)
    ]
    replacements = corrections(unknown, (r.content for r in passages)) if unknown else {}
    if not replacements:
        return query
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, replacements))})\b", re.IGNORECASE)
    return replace(
        query, text=pattern.sub(lambda match: replacements.get(match.group().lower(), match.group()), query.text)
    )


def is_hangul(word: str) -> bool:
    """Whether a word consists of at least two Korean syllables and nothing else."""
    return _HANGUL.fullmatch(word) is not None


def corrections(unknown: Iterable[str], passages: Iterable[str]) -> dict[str, str]:
    """Return a correction for each misspelt word: the most probable word in the chunks which differs by a single slip,
    if any.

    A slip is a letter added, missing, wrong or swapped with the next letter: 80 % of misspellings (Damerau 1964).
    Korean words are compared by the letters within syllables, without particles.
    """
    unknown = [
        w for w in unknown if len(w) <= LONGEST_CORRECTED and len(_letters(w)) >= SHORTEST_CORRECTED and w.isalpha()
    ]
    if not unknown:
        return {}
    texts = [passage.lower() for passage in passages]
    korean = [word for word in unknown if is_hangul(word)]
    spaced = [word for word in unknown if not is_hangul(word)]
    return _nearest_words(spaced, texts) | _nearest_korean_words(korean, texts)


def _nearest_words(unknown: list[str], texts: list[str]) -> dict[str, str]:
    counts = Counter(word for text in texts for word in _WORD.findall(text)) if unknown else Counter()
    document_words = list(counts)
    close = {
        word: {document_words[i]: counts[document_words[i]] for i in near if is_one_slip_away(word, document_words[i])}
        for word, near in zip(unknown, _one_slip_away(unknown, document_words), strict=True)
    }
    return {word: _likeliest(word, candidates) for word, candidates in close.items() if candidates}


def _nearest_korean_words(unknown: list[str], texts: list[str]) -> dict[str, str]:
    counts = Counter(word for text in texts for word in _HANGUL.findall(text)) if unknown else Counter()
    # A slip changes a single syllable, and the other syllables are equal.
    by_rest: dict[tuple[str, str], list[str]] = defaultdict(list)
    stems = {word: without_particle(word) for word in unknown}
    for word, stem in stems.items():
        for rest in _rests(stem):
            by_rest[rest].append(word)
    lengths = sorted({len(stem) for stem in stems.values()})
    close: dict[str, Counter[str]] = {word: Counter() for word in unknown}
    for document_word, n in counts.items():
        near = {
            word
            for length in lengths
            if length <= len(document_word)
            for rest in _rests(document_word[:length])
            for word in by_rest.get(rest, ())
        }
        if near:
            other = without_particle(document_word)
            for word in near:
                if stems[word] != other and _is_korean_slip(stems[word], other):
                    close[word][other] += n
    return {
        word: _likeliest(stems[word], candidates) + word[len(stems[word]) :]
        for word, candidates in close.items()
        if candidates
    }


def _rests(word: str) -> list[tuple[str, str]]:
    return [(word[:i], word[i + 1 :]) for i in range(len(word))]


def _is_korean_slip(word: str, other: str) -> bool:
    letters, other_letters = _letters(word), _letters(other)
    is_long_enough = len(word) >= SHORTEST_REPLACED_KOREAN or len(letters) != len(other_letters)
    return is_long_enough and len(word) == len(other) and is_one_slip_away(letters, other_letters)


def _likeliest(word: str, close: Mapping[str, int]) -> str:
    """Return the word with the longest beginning in common with the unknown word, because people seldom mistype the
    beginning.

    On a tie, returns the most frequent word.
    """
    return max(close, key=lambda other: (_shared_start(word, other), close[other], other))


def _letters(word: str) -> str:
    return unicodedata.normalize("NFD", word) if is_hangul(word) else word


def _shared_start(word: str, other: str) -> int:
    shortest = min(len(word), len(other))
    return next((i for i in range(shortest) if word[i] != other[i]), shortest)


def _one_slip_away(unknown: Sequence[str], document_words: Sequence[str]) -> list[list[int]]:
    if not unknown or not document_words:
        return [[] for _ in unknown]
    distances = cdist(unknown, document_words, scorer=OSA.distance, score_cutoff=1, dtype=np.uint8)
    return [np.flatnonzero(row == 1).tolist() for row in distances]


def is_one_slip_away(word: str, other: str) -> bool:
    """Whether inserting, removing, replacing or swapping a letter turns one word into the other."""
    if OSA.distance(word, other, score_cutoff=1) != 1:
        return False
    is_replaced = len(word) == len(other) and sorted(word) != sorted(other)
    return not is_replaced or len(word) >= SHORTEST_REPLACED

"""The question as a search query: its words, its vectors, and how rare its terms are in the documents."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from rag.errors import InvalidInput
from rag.retrieval.bm25.scoring import inverse_document_frequency
from rag.retrieval.bm25.synonyms import synonyms_of
from rag.retrieval.fusion import WEIGHTS, FusionWeights
from rag.text.analysers import STOPWORDS, analyser_code, is_plain, is_unspaced, words_with_terms

#: Weight of a synonym for a word in the question.
SYNONYM_WEIGHT = 0.5
#: Weight of a synonym in a different language: more, and every passage mentioning the subject would come first.
FOREIGN_WEIGHT = 0.15
#: Languages with closed compounds, such as German.
COMPOUNDING = frozenset({"nl", "de", "da", "sv", "no", "nb", "fi"})
#: How many words of a question are searched for; a pasted page would make the scan slow.
MAXIMUM_QUESTION_WORDS = 300


@dataclass(frozen=True)
class QuestionWord:
    """A topic word in the question, with its index terms."""

    text: str
    terms: tuple[str, ...]
    #: Two characters in a script without spaces.
    is_pair: bool = False
    #: A word in a language with compounds.
    is_compounding: bool = False
    #: Other expressions in documents: the terms for each.
    synonyms: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """A question with everything the search needs."""

    #: The text for keywords, possibly several wordings, such as the original and a translation.
    text: str
    #: The question's ISO 639-1 code, "" if unknown. Its stopwords are left out whatever the documents' language.
    language: str = ""
    #: The question's embedding, of length 1; `None` searches by keywords alone.
    vector: NDArray[np.float32] | None = field(default=None, repr=False)
    #: Id of the vector's embedder; only passages with the same embedder are compared.
    embedding_model: str = ""
    #: The question's meaning vector, if `vector` compares words; `None` without a meaning model.
    meaning: NDArray[np.float32] | None = field(default=None, repr=False)
    #: Makes meaning vectors for the question in other languages' words, by language, after these languages are known.
    meaning_in_words_of: Callable[[Collection[str]], Mapping[str, NDArray[np.float32]]] | None = field(
        default=None, repr=False, compare=False
    )
    #: Least cosine similarity for results not found by keyword.
    threshold: float = -1.0
    #: Least number of neighbours to compare with an approximate index.
    neighbours: int = 0
    fusion: Literal["weighted", "raw", "rrf"] = "weighted"
    #: Of BM25.
    k1: float = 1.5
    b: float = 0.75
    weights: FusionWeights = WEIGHTS
    #: Passages in a document count as equal if this number of first characters is equal; 0: only identical passages do.
    same_beginning: int = 0
    #: Whether word closeness and document names affect the order.
    refine: bool = True
    #: Whether folders are compared beside titles.
    with_folders: bool = True
    #: Whether words found nowhere are corrected from the found passages.
    correct_spelling: bool = True

    @property
    def is_dense(self) -> bool:
        """Whether the signs of the vector's dimensions show its direction.

        True for every model except the built-in embedder, whose vectors are hashed words, mostly zeros: recall@10 .06 …
        .27.
        """
        return not self.embedding_model.startswith("builtin/")

    @cached_property
    def halfvec(self) -> HalfVector | None:
        """The vector in Postgres's format; `None` if it is missing or zero.

        Raises `InvalidInput` if it has the wrong number of dimensions for its embedding model.
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
        """The meaning vector in Postgres's format, or `None`."""
        return None if self.meaning is None else HalfVector(self.meaning)


@dataclass(frozen=True, kw_only=True)
class TermStatistics:
    """The question's known terms with their passage counts, and the total number of passages."""

    chunks_by_term: Mapping[int, float] = field(default_factory=dict)
    chunks: float = 0.0

    def idf(self, term: int) -> float:
        """Return Lucene's idf, the highest for a term found nowhere."""
        return inverse_document_frequency(self.chunks_by_term.get(term, 0.0), self.chunks)


@lru_cache(maxsize=2_000)
def question_terms(text: str, language: str, analyser: str) -> Mapping[str, float]:
    """Return a question's distinct index terms for documents in a language, with weights.

    The question's terms come first, in order, with full weight; synonyms weigh less. With a plain analyser, words count
    every time they occur (source 003, 2.3 A: the sum is over its tokens).
    """
    if is_plain(analyser):
        counted = Counter(word for word, _ in words_with_terms(text, analyser)[:MAXIMUM_QUESTION_WORDS])
        return {word: float(count) for word, count in counted.items()}
    words = asked_words(text, language, analyser)
    own = dict.fromkeys((term for word in words for term in word.terms), 1.0)
    others = (term for word in words for synonym in word.synonyms for term in synonym)
    weight = SYNONYM_WEIGHT if analyser_code(language) == analyser else FOREIGN_WEIGHT
    return own | {term: weight for term in others if term not in own}


@lru_cache(maxsize=2_000)
def asked_words(text: str, language: str, analyser: str) -> tuple[QuestionWord, ...]:
    """Return `question_words` from a cache: several steps need them."""
    return tuple(question_words(text, language, analyser))


def question_words(text: str, language: str, analyser: str) -> list[QuestionWord]:
    """Return a question's distinct topic words, analysed for documents in a language.

    Stopwords in the question's language are left out too: an English "the" would be rare in Dutch documents.
    """
    stopwords = frozenset() if is_plain(analyser) else STOPWORDS.get(language, frozenset())
    found: dict[tuple[str, ...], QuestionWord] = {}
    # A single character may expand to a sentence (U+FDFA stands for four words); limit the length after normalization.
    if not is_plain(analyser):
        text = unicodedata.normalize("NFKC", text)[: 2 * len(text)]
    synonyms = {} if is_plain(analyser) else synonyms_of(text, language, analyser)
    for word, terms in words_with_terms(text, analyser):
        if len(found) == MAXIMUM_QUESTION_WORDS:
            break
        if terms and word not in stopwords:
            item = QuestionWord(word, terms, is_unspaced(word), analyser in COMPOUNDING, synonyms.get(word, ()))
            found.setdefault(terms, item)
    return list(found.values())

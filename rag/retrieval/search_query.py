"""The question as the search takes it: its words, its vectors, and how rare its terms are in the documents."""

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
from rag.text.analysers import STOPWORDS, analyser_code, is_plain, is_unspaced, words_with_terms

#: Weight of a synonym of the question's words.
SYNONYM_WEIGHT = 0.5
#: The same in another language than the question's: there, every passage that mentions the subject would come first.
FOREIGN_WEIGHT = 0.15
#: Languages with closed compounds, such as German.
COMPOUNDING = frozenset({"nl", "de", "da", "sv", "no", "nb", "fi"})
#: Words of a question that are searched for; a pasted page would otherwise make the scan slow.
MAXIMUM_QUESTION_WORDS = 300


@dataclass(frozen=True)
class QuestionWord:
    """A word of the question that carries topic, with its index terms."""

    text: str
    terms: tuple[str, ...]
    #: Two characters of a script without spaces.
    is_pair: bool = False
    #: A word in a language with compounds.
    is_compounding: bool = False
    #: Expressions that documents may use instead: the terms of each.
    synonyms: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """A question with everything the search needs."""

    #: The source of keywords, possibly several wordings, such as the original and a translation.
    text: str
    #: ISO 639-1 code of the question, "" when unknown: its stopwords are left out whatever the documents' language.
    language: str = ""
    #: The question's embedding, of length 1; None searches by keywords alone.
    vector: NDArray[np.float32] | None = field(default=None, repr=False)
    #: Id of the vector's embedder; passages with vectors from other embedders are not compared.
    embedding_model: str = ""
    #: The question's vector of meaning, if `vector` compares words; None without a model of meaning.
    meaning: NDArray[np.float32] | None = field(default=None, repr=False)
    #: The same of the question in the words of other languages, by language, made once it is known which there are.
    meaning_in_words_of: Callable[[Collection[str]], Mapping[str, NDArray[np.float32]]] | None = field(
        default=None, repr=False, compare=False
    )
    #: Least cosine similarity of a result that keywords did not find.
    threshold: float = -1.0
    #: Neighbours that are compared at least where an approximate index is used.
    neighbours: int = 0
    fusion: Literal["weighted", "raw", "rrf"] = "weighted"
    #: Of BM25.
    k1: float = 1.5
    b: float = 0.75
    vector_weight: float = 0.6
    keyword_weight: float = 0.4
    vector_rank_weight: float = 0.3
    keyword_rank_weight: float = 0.2
    rank_constant: int = 60
    #: Passages of a document with so many first characters in common count once; 0: only identical passages do.
    same_beginning: int = 0
    #: Whether the closeness of words and the names of documents affect the order.
    refine: bool = True
    #: Whether folders are compared beside titles.
    with_folders: bool = True
    #: Whether words found nowhere are corrected to what the found passages suggest.
    correct_spelling: bool = True

    @property
    def is_dense(self) -> bool:
        """Whether the signs of the vector's dimensions say where it points.

        They do for every model; the built-in embedder's vectors are hashed words, mostly zeros: recall@10 .06 … .27.
        """
        return not self.embedding_model.startswith("builtin/")

    @cached_property
    def halfvec(self) -> HalfVector | None:
        """The vector as Postgres takes it; None when it is missing or has no direction.

        Raises `InvalidInput` when it has not the dimensions its embedding model names.
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
        """The vector of meaning in the form Postgres takes, or None."""
        return None if self.meaning is None else HalfVector(self.meaning)


@dataclass(frozen=True, kw_only=True)
class TermStatistics:
    """The question's terms known in the scope, the number of passages with each, and the number of all passages."""

    chunks_by_term: Mapping[int, float] = field(default_factory=dict)
    chunks: float = 0.0

    def idf(self, term: int) -> float:
        """Return Lucene's idf, the highest for a term found nowhere."""
        return inverse_document_frequency(self.chunks_by_term.get(term, 0.0), self.chunks)


@lru_cache(maxsize=2_000)
def question_terms(text: str, language: str, analyser: str) -> Mapping[str, float]:
    """Return the distinct index terms of a question for documents of one language, each with its weight.

    The question's own terms come in its order with full weight; synonyms weigh less. Words taken as they are count as
    often as the question has them (source 003, 2.3 A: the sum is over its tokens).
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
    """Return `question_words` from a cache: several steps of one question need them."""
    return tuple(question_words(text, language, analyser))


def question_words(text: str, language: str, analyser: str) -> list[QuestionWord]:
    """Return the words of a question that carry topic, each once, analysed as documents of one language are.

    Stopwords of the question's own language are left out too: an English "the" would be a rare word in Dutch documents.
    """
    stopwords = frozenset() if is_plain(analyser) else STOPWORDS.get(language, frozenset())
    found: dict[tuple[str, ...], QuestionWord] = {}
    # One letter may be short for a sentence (U+FDFA for four words): what a question is read as stays near its length.
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

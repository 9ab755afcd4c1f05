"""A question as the search takes it, and what the keyword index knows of its terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from rag.errors import InvalidInput
from rag.retrieval.bm25.analysers import analyser_code
from rag.retrieval.bm25.scoring import inverse_document_frequency
from rag.retrieval.evidence import QuestionWord, question_words

#: What a term counts that the question does not say, but means.
SYNONYM_WEIGHT = 0.5
#: The same in another language than the question's: there every passage that speaks of it at all would come first.
FOREIGN_WEIGHT = 0.15


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """A question as the search takes it."""

    #: What keywords are taken from; may hold several wordings, such as the original and its translation.
    text: str
    #: ISO 639-1 code of the question, "" when unknown: its stopwords are left out whatever the documents' language.
    language: str = ""
    #: The question's embedding, of length 1; None searches by keywords alone.
    vector: NDArray[np.float32] | None = field(default=None, repr=False)
    #: Id of the embedder that made it; passages of other embedders are not compared.
    embedding_model: str = ""
    #: The question's vector of meaning, beside `vector` where that compares words; None where there is no such model.
    meaning: NDArray[np.float32] | None = field(default=None, repr=False)
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
    #: Passages of one document with the same so many first characters are one; 0: only those of the same text.
    same_beginning: int = 0
    #: Whether nearness of the words and names of documents have a say in the order.
    refine: bool = True
    #: Whether words that stand nowhere are read as what the found passages suggest.
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
        """The vector of meaning as Postgres takes it; None where there is none."""
        return None if self.meaning is None else HalfVector(self.meaning)


@dataclass(frozen=True, kw_only=True)
class TermStatistics:
    """The question's terms that the scope knows, in how many passages each stands, and how many passages there are."""

    chunks_by_term: Mapping[int, float] = field(default_factory=dict)
    chunks: float = 0.0

    def idf(self, term: int) -> float:
        """Lucene's idf; a term that stands nowhere has the highest."""
        return inverse_document_frequency(self.chunks_by_term.get(term, 0.0), self.chunks)


@lru_cache(maxsize=2_000)
def question_terms(text: str, language: str, analyser: str) -> Mapping[str, float]:
    """Distinct index terms of a question for documents of one language, each with what it counts.

    The question's own come in its order and count whole; those of other words for the same count less.
    """
    words = asked_words(text, language, analyser)
    own = dict.fromkeys((term for word in words for term in word.terms), 1.0)
    others = (term for word in words for synonym in word.synonyms for term in synonym)
    weight = SYNONYM_WEIGHT if analyser_code(language) == analyser else FOREIGN_WEIGHT
    return own | {term: weight for term in others if term not in own}


@lru_cache(maxsize=2_000)
def asked_words(text: str, language: str, analyser: str) -> tuple[QuestionWord, ...]:
    """`question_words`, remembered: several steps of one question look at them."""
    return tuple(question_words(text, language, analyser))

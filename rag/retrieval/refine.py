"""What is done with the best candidates once their text is there: misspelt words put right, the order refined."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from rag.retrieval import ranking, spelling
from rag.retrieval.bm25.analysers import analyse
from rag.retrieval.bm25.index import contextual_text, packed_terms, term_id, tokenize, unpacked_terms
from rag.retrieval.evidence import QuestionWord
from rag.retrieval.fusion import Passage
from rag.retrieval.search_query import SearchQuery, TermStatistics, asked_words, question_terms
from rag.types import SearchResult

#: A name counts as said when more than this share of it is, by the words that tell it from the others.
NAMED = 0.5


class Candidate(Passage, Protocol):
    """A passage with its score so far, and what the keyword index keeps of it."""

    @property
    def score(self) -> float: ...
    @property
    def language(self) -> str: ...
    @property
    def terms(self) -> bytes | None: ...


Item = TypeVar("Item", bound=Candidate)


def corrected(query: SearchQuery, statistics: TermStatistics, found: Sequence[Candidate]) -> SearchQuery:
    """Return the query with words that stand nowhere replaced by what the passages suggest was meant."""
    if not query.correct_spelling:
        return query
    own, analysers = query.language or "en", {passage.language for passage in found}

    def is_known(word: QuestionWord, analyser: str) -> bool:
        terms = word.terms if analyser == own else tuple(analyse(word.text, analyser))
        # Of a Korean word the first stands for the whole; pairs of its syllables are parts of other words too.
        whole = terms[:1] if spelling.is_hangul(word.text) else terms
        return any(term_id(term) in statistics.chunks_by_term for term in whole)

    unknown = [
        word.text
        for word in asked_words(query.text, query.language, own)
        if not word.synonyms and not any(is_known(word, analyser) for analyser in analysers)
    ]
    meant = spelling.corrections(unknown, (r.content for r in found)) if unknown else {}
    if not meant:
        return query
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, meant))})\b", re.IGNORECASE)
    return replace(query, text=pattern.sub(lambda match: meant.get(match.group().lower(), match.group()), query.text))


def refined(query: SearchQuery, statistics: TermStatistics, found: Sequence[Item]) -> list[tuple[Item, float]]:
    """Return the passages in a new order, with the scores it is of: nearness of words and names of documents count
    too.
    """
    codes = [passage.language for passage in found]
    said: set[str] = set()
    near = [0.0] * len(found)
    for language in set(codes):
        asked = question_terms(query.text, query.language, language)
        said.update(asked)
        own = [i for i, code in enumerate(codes) if code == language]
        weights = {term_id(term): weight * statistics.idf(term_id(term)) for term, weight in asked.items()}
        held = ranking.closenesses([_terms_of(found[i]) for i in own], weights)
        for i, closeness in zip(own, held, strict=True):
            near[i] = closeness
    titles = [_name_terms(passage.title, code) for passage, code in zip(found, codes, strict=True)]
    sections = [_name_terms(_heading(passage), code) for passage, code in zip(found, codes, strict=True)]
    scores = ranking.raised_scores(
        [passage.score for passage in found],
        closenesses=near,
        title_shares=ranking.naming(titles, said),
        section_shares=ranking.naming(sections, said),
    )
    return sorted(zip(found, scores, strict=True), key=lambda item: (-item[1], item[0].chunk_id.int))


def _heading(passage: Passage) -> str:
    """Return the last part of its section path."""
    return passage.section.split(" › ")[-1]


def _terms_of(passage: Candidate) -> NDArray[np.int32]:
    """Its index terms in their order; an earlier version stored none, so that its text is taken apart here."""
    packed = passage.terms
    if packed is None:
        text = contextual_text(passage.title, passage.section, passage.content)
        packed = packed_terms(tokenize(text, passage.language))
    return unpacked_terms(packed)


def names_said(
    query: str, language: str, found: Sequence[SearchResult], languages: Mapping[UUID, str]
) -> tuple[str, ...]:
    """Titles and sections among the results that the question names: what it says of them is more than half."""
    said = {term for code in set(languages.values()) for term in question_terms(query, language, code)}
    by_name = {r.title: languages[r.document_id] for r in found if r.title}
    sections = {_heading(r): languages[r.document_id] for r in found if r.section}
    named = []
    for names in (by_name, sections):
        shares = ranking.naming([_name_terms(name, code) for name, code in names.items()], said)
        named += [name for name, share in zip(names, shares, strict=True) if share > NAMED]
    return tuple(dict.fromkeys(named))


@lru_cache(maxsize=20_000)
def _name_terms(name: str, language: str) -> frozenset[str]:
    return frozenset(tokenize(name, language))

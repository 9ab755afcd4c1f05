"""Raise hits in which the question's words are close together, and hits from a document or section named in the
question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from rag.retrieval.bm25.index import contextual_text, packed_terms, term_id, tokenize, unpacked_terms
from rag.retrieval.deduplication import Hit
from rag.retrieval.known_by import known_by
from rag.retrieval.search_query import SearchQuery, TermStatistics, question_terms
from rag.types import SearchResult


@dataclass(frozen=True, kw_only=True)
class ProximityRule:
    """The factors for both boosts: for words close together, and for named documents and sections."""

    #: Window width, in terms, in which the question's words should be: about two sentences.
    window_terms: int = 60
    #: The largest boost for closeness, as a share of the best fused score. Half or double the value hardly changes
    #: results.
    closeness_weight: float = 0.3
    name_weight: float = 0.15
    #: Titles cannot distinguish a document's passages, sections can: both weights are added.
    section_weight: float = 0.2
    #: A question names a title or section if it has more than this share of the distinguishing words.
    named: float = 0.5


RULE = ProximityRule()


class ScoredPassage(Hit, Protocol):
    """A passage with its current score and its terms in the keyword index."""

    @property
    def score(self) -> float: ...
    @property
    def language(self) -> str: ...
    @property
    def terms(self) -> bytes | None: ...


Item = TypeVar("Item", bound=ScoredPassage)


def refined(query: SearchQuery, statistics: TermStatistics, passages: Sequence[Item]) -> list[tuple[Item, float]]:
    """Order hits by fused score, words' closeness, and named titles and sections. Returns hits with new scores."""
    codes = [passage.language for passage in passages]
    terms: set[str] = set()
    near = [0.0] * len(passages)
    for language in set(codes):
        term_weights = question_terms(query.text, query.language, language)
        terms.update(term_weights)
        indexes = [i for i, code in enumerate(codes) if code == language]
        weights = {term_id(term): weight * statistics.idf(term_id(term)) for term, weight in term_weights.items()}
        group_closenesses = closenesses([_terms_of(passages[i]) for i in indexes], weights)
        for i, closeness in zip(indexes, group_closenesses, strict=True):
            near[i] = closeness
    titles = [
        _name_terms(known_by(passage.title, passage.folder), code)
        for passage, code in zip(passages, codes, strict=True)
    ]
    sections = [_name_terms(_heading(passage), code) for passage, code in zip(passages, codes, strict=True)]
    scores = raised_scores(
        [passage.score for passage in passages],
        closenesses=near,
        title_shares=naming(titles, terms),
        section_shares=naming(sections, terms),
    )
    return sorted(zip(passages, scores, strict=True), key=lambda item: (-item[1], item[0].chunk_id.int))


def _heading(passage: Hit) -> str:
    return passage.section.split(" › ")[-1]


def _terms_of(passage: ScoredPassage) -> NDArray[np.int32]:
    """Return a chunk's index terms in order. Earlier versions stored no terms; the text is then split again."""
    packed = passage.terms
    if packed is None:
        text = contextual_text(known_by(passage.title, passage.folder), passage.section, passage.content)
        packed = packed_terms(tokenize(text, passage.language))
    return unpacked_terms(packed)


def mentioned_names(
    query: str, language: str, results: Sequence[SearchResult], languages: Mapping[UUID, str]
) -> tuple[str, ...]:
    """Return the titles and sections which the question names by their distinctive words."""
    terms = {term for code in set(languages.values()) for term in question_terms(query, language, code)}
    by_name = {known_by(r.title, r.folder): languages[r.document_id] for r in results if r.title}
    sections = {_heading(r): languages[r.document_id] for r in results if r.section}
    named = []
    for names in (by_name, sections):
        shares = naming([_name_terms(name, code) for name, code in names.items()], terms)
        named += [name for name, share in zip(names, shares, strict=True) if share > RULE.named]
    return tuple(dict.fromkeys(named))


def unnamed_twins(query: SearchQuery, passages: Sequence[Item]) -> frozenset[UUID]:
    """Return the ids of documents which the question does not mean, because a document with a similar title is named.

    An example is a second health plan, if the question names the first.
    """
    terms = {
        term
        for code in {item.language for item in passages}
        for term in question_terms(query.text, query.language, code)
    }
    names = {item.document_id: _name_terms(known_by(item.title, item.folder), item.language) for item in passages}
    unnamed = _names_of_unnamed_twins(set(names.values()), frozenset(terms))
    twins = frozenset(document for document, name in names.items() if name in unnamed)
    return twins | _in_unnamed_folders({item.document_id: item for item in passages if item.folder}.values(), terms)


def _in_unnamed_folders(passages: Iterable[Item], terms: Collection[str]) -> frozenset[UUID]:
    folders: dict[tuple[str, str], dict[UUID, frozenset[str]]] = {}
    for item in passages:
        name_terms = _name_terms(known_by("", item.folder), item.language)
        folders.setdefault((item.title.casefold(), item.language), {})[item.document_id] = name_terms
    unnamed = set[UUID]()
    for siblings in folders.values():
        shared = frozenset.intersection(*siblings.values())
        distinct = {document: name_terms - shared for document, name_terms in siblings.items() if name_terms - shared}
        if any(name_terms <= set(terms) for name_terms in distinct.values()):
            unnamed |= {document for document, name_terms in distinct.items() if name_terms.isdisjoint(terms)}
    return frozenset(unnamed)


@lru_cache(maxsize=20_000)
def _name_terms(name: str, language: str) -> frozenset[str]:
    return frozenset(tokenize(name, language))


def closenesses(passages: Sequence[NDArray[np.int32]], weights: Mapping[int, float]) -> list[float]:
    """Return for each chunk how close together the question's terms are.

    This is the highest total weight which the question's terms have in any window. Windows overlap by half. `passages`
    holds each chunk's term ids in order.
    """
    if not passages or not weights:
        return [0.0] * len(passages)
    ends = np.cumsum([len(terms) for terms in passages])
    terms = np.concatenate(passages)
    # Search for each question term, instead of looking up every passage term. Sorted, because the order decides how a
    # sum is rounded.
    query_terms = sorted(weights)
    places = [np.flatnonzero(terms == term) for term in query_terms]
    numbers = np.repeat(np.arange(len(weights)), [len(positions) for positions in places])
    hits = np.concatenate(places)
    owners = np.searchsorted(ends, hits, side="right")
    halves = (hits - np.concatenate([[0], ends])[owners]) // (RULE.window_terms // 2)
    present = np.zeros((len(passages), int(halves.max(initial=0)) + 2, len(weights)), dtype=bool)
    present[owners, halves, numbers] = True
    window_weights = (present[:, :-1] | present[:, 1:]) @ np.array([weights[term] for term in query_terms])
    return list(window_weights.max(axis=1).tolist())


def naming(names: Sequence[Collection[str]], question: Collection[str]) -> list[float]:
    """Return for each name the share (0 to 1) of the name's terms which are in the question.

    A name is the set of terms in a title or section. Rare terms count more: "Plus" distinguishes two health plans,
    "plan" does not. If the question has a similar name's term which this name lacks, the similar name is meant, and
    this name gets 0.
    """
    term_sets, terms = [frozenset(name) for name in names], frozenset(question)
    distinct = set(term_sets)
    shares = dict.fromkeys(distinct, 0.0)
    if any(not terms.isdisjoint(name) for name in distinct):
        frequency = Counter(term for name in distinct for term in name)
        weight = {term: math.log(1 + len(distinct) / count) for term, count in frequency.items()}
        for name in distinct - _names_of_unnamed_twins(distinct, terms):
            if total := math.fsum(weight[term] for term in name):
                shares[name] = math.fsum(weight[term] for term in name & terms) / total
    return [shares[name] for name in term_sets]


def _names_of_unnamed_twins(names: Collection[frozenset[str]], question: frozenset[str]) -> set[frozenset[str]]:
    """Return the names which the question does not mean, because a similar name is meant.

    "Northwind Health" does not mean "Health Plus".
    """
    return {name for name, _twin in _twin_pairs(names, question)}


def unshared_terms(names: Collection[frozenset[str]], question: frozenset[str]) -> set[frozenset[str]]:
    """For each name which the question does not mean, because a similar name is meant, return the terms which only it
    has.
    """
    return {name - twin for name, twin in _twin_pairs(names, question)}


def _twin_pairs(
    names: Collection[frozenset[str]], question: frozenset[str]
) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    mentioned = [(other, other & question) for other in names if not other.isdisjoint(question)]
    for name in names:
        for other, terms in mentioned:
            if (
                not terms <= name
                and other - name <= question
                and (name & question) <= other
                and 2 * len(name & other) >= len(name | other)
            ):
                yield name, other


def raised_scores(
    scores: Sequence[float],
    *,
    closenesses: Sequence[float],
    title_shares: Sequence[float],
    section_shares: Sequence[float],
) -> list[float]:
    """Raise scores for chunks with the question's words close together, and for named documents and sections."""
    best, highest = max(scores, default=0.0), max(closenesses, default=0.0) or 1.0
    return [
        score
        + best * (RULE.closeness_weight * near / highest + RULE.name_weight * title + RULE.section_weight * section)
        for score, near, title, section in zip(scores, closenesses, title_shares, section_shares, strict=True)
    ]

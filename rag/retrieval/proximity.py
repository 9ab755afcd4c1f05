"""Raise passages with the question's words close together, and passages from a document or section named in it."""

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
    """The numbers of the boosts for word distance and names."""

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


def refined(query: SearchQuery, statistics: TermStatistics, found: Sequence[Item]) -> list[tuple[Item, float]]:
    """Reorder passages by fused score, word distance and names; return them with their new scores."""
    codes = [passage.language for passage in found]
    said: set[str] = set()
    near = [0.0] * len(found)
    for language in set(codes):
        asked = question_terms(query.text, query.language, language)
        said.update(asked)
        own = [i for i, code in enumerate(codes) if code == language]
        weights = {term_id(term): weight * statistics.idf(term_id(term)) for term, weight in asked.items()}
        held = closenesses([_terms_of(found[i]) for i in own], weights)
        for i, closeness in zip(own, held, strict=True):
            near[i] = closeness
    titles = [
        _name_terms(known_by(passage.title, passage.folder), code) for passage, code in zip(found, codes, strict=True)
    ]
    sections = [_name_terms(_heading(passage), code) for passage, code in zip(found, codes, strict=True)]
    scores = raised_scores(
        [passage.score for passage in found],
        closenesses=near,
        title_shares=naming(titles, said),
        section_shares=naming(sections, said),
    )
    return sorted(zip(found, scores, strict=True), key=lambda item: (-item[1], item[0].chunk_id.int))


def _heading(passage: Hit) -> str:
    """Return the last heading in the passage's section path."""
    return passage.section.split(" › ")[-1]


def _terms_of(passage: ScoredPassage) -> NDArray[np.int32]:
    """Return the passage's index terms in order.

    If an earlier version of the product stored none, the text is analysed.
    """
    packed = passage.terms
    if packed is None:
        text = contextual_text(known_by(passage.title, passage.folder), passage.section, passage.content)
        packed = packed_terms(tokenize(text, passage.language))
    return unpacked_terms(packed)


def names_said(
    query: str, language: str, found: Sequence[SearchResult], languages: Mapping[UUID, str]
) -> tuple[str, ...]:
    """Return the titles and sections among the results of which the question has most distinguishing words."""
    said = {term for code in set(languages.values()) for term in question_terms(query, language, code)}
    by_name = {known_by(r.title, r.folder): languages[r.document_id] for r in found if r.title}
    sections = {_heading(r): languages[r.document_id] for r in found if r.section}
    named = []
    for names in (by_name, sections):
        shares = naming([_name_terms(name, code) for name, code in names.items()], said)
        named += [name for name, share in zip(names, shares, strict=True) if share > RULE.named]
    return tuple(dict.fromkeys(named))


def with_twin_meant(query: SearchQuery, found: Sequence[Item]) -> frozenset[UUID]:
    """Return documents with a near twin named in the question: among two health plans, the unnamed plan."""
    said = {
        term for code in {item.language for item in found} for term in question_terms(query.text, query.language, code)
    }
    names = {item.document_id: _name_terms(known_by(item.title, item.folder), item.language) for item in found}
    meant = _with_twin_meant(set(names.values()), frozenset(said))
    twins = frozenset(document for document, name in names.items() if name in meant)
    return twins | _with_folder_meant({item.document_id: item for item in found if item.folder}.values(), said)


def _with_folder_meant(found: Iterable[Item], said: Collection[str]) -> frozenset[UUID]:
    """Return documents whose title also exists in a folder which the question names."""
    folders: dict[tuple[str, str], dict[UUID, frozenset[str]]] = {}
    for item in found:
        own = _name_terms(known_by("", item.folder), item.language)
        folders.setdefault((item.title.casefold(), item.language), {})[item.document_id] = own
    meant = set[UUID]()
    for siblings in folders.values():
        shared = frozenset.intersection(*siblings.values())
        apart = {document: own - shared for document, own in siblings.items() if own - shared}
        if any(own <= set(said) for own in apart.values()):
            meant |= {document for document, own in apart.items() if own.isdisjoint(said)}
    return frozenset(meant)


@lru_cache(maxsize=20_000)
def _name_terms(name: str, language: str) -> frozenset[str]:
    return frozenset(tokenize(name, language))


def closenesses(passages: Sequence[NDArray[np.int32]], weights: Mapping[int, float]) -> list[float]:
    """Return the weight of the question's terms in each passage's best window. `passages` hold term ids in order.

    BM25 ignores whether the words are in a single sentence or far apart. Windows start every half window; terms missing
    in the question count 0.
    """
    if not passages or not weights:
        return [0.0] * len(passages)
    ends = np.cumsum([len(terms) for terms in passages])
    terms = np.concatenate(passages)
    # Search for each question term, instead of looking up every passage term. Sorted, because the order decides how a
    # sum is rounded.
    asked = sorted(weights)
    places = [np.flatnonzero(terms == term) for term in asked]
    numbers = np.repeat(np.arange(len(weights)), [len(found) for found in places])
    hits = np.concatenate(places)
    owners = np.searchsorted(ends, hits, side="right")
    halves = (hits - np.concatenate([[0], ends])[owners]) // (RULE.window_terms // 2)
    present = np.zeros((len(passages), int(halves.max(initial=0)) + 2, len(weights)), dtype=bool)
    present[owners, halves, numbers] = True
    held = (present[:, :-1] | present[:, 1:]) @ np.array([weights[term] for term in asked])
    return list(held.max(axis=1).tolist())


def naming(names: Sequence[Collection[str]], question: Collection[str]) -> list[float]:
    """Return the share of each name which the question mentions, 0 … 1.

    A name is the set of terms in a title or section. Rare terms count more: "Plus" tells two health plans apart, "plan"
    does not. If the question has terms which only a near twin has, the twin is meant, and shared terms do not count for
    the name.
    """
    given, said = [frozenset(name) for name in names], frozenset(question)
    distinct = set(given)
    shares = dict.fromkeys(distinct, 0.0)
    if any(not said.isdisjoint(name) for name in distinct):
        frequency = Counter(term for name in distinct for term in name)
        weight = {term: math.log(1 + len(distinct) / count) for term, count in frequency.items()}
        for name in distinct - _with_twin_meant(distinct, said):
            if total := math.fsum(weight[term] for term in name):
                shares[name] = math.fsum(weight[term] for term in name & said) / total
    return [shares[name] for name in given]


def _with_twin_meant(names: Collection[frozenset[str]], question: frozenset[str]) -> set[frozenset[str]]:
    """Return the names whose near twin is meant.

    Twins share at least half their terms. The twin is meant if the question has all terms which only the twin has:
    "Northwind Health" does not mean "Health Plus", although "Standard" lacks "health".
    """
    return {name for name, _twin in _apart_from_twins(names, question)}


def own_terms_of_others(names: Collection[frozenset[str]], question: frozenset[str]) -> set[frozenset[str]]:
    """Return, for each name whose near twin is meant, the terms which the twin lacks."""
    return {name - twin for name, twin in _apart_from_twins(names, question)}


def _apart_from_twins(
    names: Collection[frozenset[str]], question: frozenset[str]
) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Yield pairs: a name whose near twin is meant, and the twin."""
    said = [(other, other & question) for other in names if not other.isdisjoint(question)]
    for name in names:
        for other, terms in said:
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
    """Return the scores, raised for words close together and for a named document or section."""
    best, highest = max(scores, default=0.0), max(closenesses, default=0.0) or 1.0
    return [
        score
        + best * (RULE.closeness_weight * near / highest + RULE.name_weight * title + RULE.section_weight * section)
        for score, near, title, section in zip(scores, closenesses, title_shares, section_shares, strict=True)
    ]

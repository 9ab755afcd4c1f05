"""The last say on the order: what the source documents raise beyond relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from rag.profile import Profile
from rag.retrieval.boosts import (
    category_factor,
    multi_signal_score,
    priority,
    quality_factor,
    recency_factor,
    year_factor,
)
from rag.retrieval.evidence import Judged
from rag.retrieval.posts import written_on
from rag.storage.database import Database, queries
from rag.types import SearchFilters, SearchResult, Who, tenant_of


@dataclass(frozen=True, kw_only=True)
class Signals:
    """What a document's metadata says beside its text."""

    written_on: date
    is_pinned: bool = False
    is_important: bool = False
    categories: tuple[str, ...] = ()
    years: tuple[int, ...] = ()


def of_passage(result: SearchResult, document: Signals) -> Signals:
    """The signals of one passage: where it says its year or kind itself, that counts; else its document's."""
    category, year = result.metadata.get("category"), _value(result.metadata, "year")
    return replace(
        document,
        categories=tuple(dict.fromkeys((*document.categories, *map(str, _listed(category))))),
        years=tuple(int(item) for item in _listed(year) if str(item).isdigit()) or document.years,
    )


def meets(signals: Signals, filters: SearchFilters) -> bool:
    """Whether a passage is of one of the categories, and of one of the years, where any are wanted."""
    return (not filters.categories or not set(filters.categories).isdisjoint(signals.categories)) and (
        not filters.years or not set(filters.years).isdisjoint(signals.years)
    )


def needs_signals(profile: Profile) -> bool:
    """Whether the profile's order looks at metadata at all."""
    return profile.ranking.recency_boost or profile.ranking.pinned_first or profile.ranking.multi_signal


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a document beside its text."""

    document_id: UUID
    metadata: Mapping[str, Any]
    created_at: datetime

    @property
    def signals(self) -> Signals:
        return signals_from(self.metadata, self.created_at)

    @property
    def shown(self) -> Mapping[str, Any]:
        """The metadata; `createdAt` is the day it came where it says none."""
        return {"createdAt": self.created_at.isoformat(), **self.metadata}


def read_facts(database: Database, who: Who, results: Sequence[SearchResult]) -> dict[UUID, Facts]:
    """What is known of the results' documents, in one statement."""
    ids = list({result.document_id for result in results})
    if not ids:
        return {}
    with database.pipeline(who) as pipeline:
        asked = pipeline.execute(queries["document_signals"], {"tenant_id": tenant_of(who), "document_ids": ids})
        pipeline.finish()
        found = asked.read(Facts)
    return {facts.document_id: facts for facts in found}


def signals_from(metadata: Mapping[str, Any], created_at: datetime) -> Signals:
    """Read the signals from metadata as the sources write them, camelCase, or as we do.

    The day is `backdatedAt` if there, else the post's `createdAt`, else the day it came here (source 000).
    """
    written = written_on(metadata) or created_at.date()
    years = metadata.get("years") or _value(metadata, "year")
    categories = metadata.get("categories") or _value(metadata, "category_slug") or metadata.get("category")
    return Signals(
        written_on=written,
        is_pinned=_value(metadata, "is_pinned") is True,
        is_important=_value(metadata, "is_important") is True,
        categories=tuple(str(item) for item in _listed(categories)),
        years=tuple(int(item) for item in _listed(years) if str(item).isdigit()),
    )


def ordered(
    judged: Sequence[Judged], signals: Mapping[UUID, Signals], *, profile: Profile, top_k: int, today: date
) -> list[Judged]:
    """The passages in the profile's own order, the best `top_k` of them.

    Multi-signal scores decide who is among them (source 001). Recency and priority reorder the `top_k` that the
    reranker chose (source 000, steps 4 to 6), so that a pinned post never displaces a relevant one.
    """
    items = [replace(item, result=replace(item.result, score=_base_score(item.result, profile))) for item in judged]
    unknown = Signals(written_on=today)

    def of(item: Judged) -> Signals:
        return of_passage(item.result, signals.get(item.result.document_id, unknown))

    if profile.ranking.multi_signal:
        items = _by_score(
            items,
            [
                multi_signal_score(
                    item.result.score,
                    category=category_factor(of(item).categories, dict(profile.ranking.category_boosts)),
                    year=year_factor(of(item).years, today.year, profile.ranking.year_boosts),
                    quality=quality_factor(
                        item.result.content,
                        least_words=profile.ranking.quality_minimum_words,
                        most_words=profile.ranking.quality_maximum_words,
                        factor=profile.ranking.quality_boost,
                    ),
                )
                for item in items
            ],
        )
    items = items[:top_k]
    if profile.ranking.recency_boost:
        factors = [
            recency_factor(
                of(item).written_on, today, steps=profile.ranking.recency_steps, older=profile.ranking.recency_older
            )
            for item in items
        ]
        items = _by_score(items, [item.result.score * factor for item, factor in zip(items, factors, strict=True)])
    if profile.ranking.pinned_first:
        # A stable sort: within a class the order stays.
        items.sort(key=lambda item: priority(is_pinned=of(item).is_pinned, is_important=of(item).is_important))
    return items


def _base_score(result: SearchResult, profile: Profile) -> float:
    """What the factors multiply: the reranker's relevance, the cosine of a search by vector, else the fused score."""
    if result.rerank_score is not None:
        return result.rerank_score
    if profile.search.search_type == "vector" and result.similarity is not None:
        return max(0.0, result.similarity)
    return result.score


def _by_score(items: Sequence[Judged], scores: Sequence[float]) -> list[Judged]:
    scored = [replace(i, result=replace(i.result, score=s)) for i, s in zip(items, scores, strict=True)]
    return sorted(scored, key=lambda item: -item.result.score)


def _value(metadata: Mapping[str, Any], name: str) -> Any:
    first, *others = name.split("_")
    return metadata.get(name, metadata.get(first + "".join(map(str.capitalize, others))))


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [] if value in (None, "") else [value]

"""Order hits by several signals, recency and pinned posts, and read posts' metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from rag.profiles.profile import Profile
from rag.retrieval.evidence import ScoredHit
from rag.storage.database import Database, queries
from rag.storage.pipeline import Pipeline
from rag.text.dates import KOREA
from rag.types import ATTACHMENT_HEADS, SearchResult, Who, tenant_of


@dataclass(frozen=True, kw_only=True)
class Signals:
    """The metadata used for ordering: date, categories, years, pinned, important."""

    written_on: date
    is_pinned: bool = False
    is_important: bool = False
    categories: tuple[str, ...] = ()
    years: tuple[int, ...] = ()


#: A typing error in a date must not make a job last for centuries.
LONGEST_JOB_YEARS = 80


def own_years(result: SearchResult, this_year: int | None = None) -> tuple[int, ...]:
    """Return the years in a chunk's metadata.

    For a job in a curriculum vitae, these are all years from start to end. A current job ends in `this_year`.
    """
    year = _value(result.metadata, "year")
    first, last = (str(_value(result.metadata, name) or "") for name in ("start_year", "end_year"))
    if first.isdigit() and (last.isdigit() or last == "present"):
        until = int(last) if last.isdigit() else this_year or datetime.now(UTC).year
        return tuple(range(int(first), min(until, int(first) + LONGEST_JOB_YEARS) + 1))
    return tuple(int(item) for item in _as_list(year) if str(item).isdigit())


def of_passage(result: SearchResult, document: Signals, this_year: int | None = None) -> Signals:
    """Return a chunk's ordering metadata: the document's, with the chunk's category added and the chunk's years
    preferred.
    """
    category = result.metadata.get("category")
    return replace(
        document,
        categories=tuple(dict.fromkeys((*document.categories, *map(str, _as_list(category))))),
        years=own_years(result, this_year) or document.years,
    )


def of_categories(
    results: Sequence[SearchResult], facts: Mapping[UUID, Facts], categories: Sequence[str]
) -> tuple[SearchResult, ...]:
    """Return the chunks with any of the categories, in the chunk's or the document's metadata."""
    requested = set(categories)
    return tuple(r for r in results if requested & set(of_passage(r, facts[r.document_id].signals).categories))


def of_years(
    results: Sequence[SearchResult], facts: Mapping[UUID, Facts], years: Sequence[int]
) -> tuple[SearchResult, ...]:
    """Return the chunks from any of these years.

    If no chunk in a document has a year, all have the document's years. If some chunks have years, chunks without a
    year are left out: in a curriculum vitae with dated jobs, the list of skills has no year.
    """
    requested, passage_years = set(years), [own_years(result) for result in results]
    dated = {
        result.document_id for result, years_of_result in zip(results, passage_years, strict=True) if years_of_result
    }
    return tuple(
        result
        for result, years_of_result in zip(results, passage_years, strict=True)
        if requested
        & set(years_of_result or (() if result.document_id in dated else facts[result.document_id].signals.years))
    )


def needs_signals(profile: Profile) -> bool:
    """Whether the profile orders hits by metadata, for example by date or category."""
    return profile.ranking.recency_boost or profile.ranking.pinned_first or profile.ranking.multi_signal


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A document's metadata and upload time."""

    document_id: UUID
    metadata: Mapping[str, Any]
    created_at: datetime

    @property
    def signals(self) -> Signals:
        return signals_from(self.metadata, self.created_at)

    @property
    def dated_metadata(self) -> Mapping[str, Any]:
        """The metadata, with `createdAt` set to the upload time if missing."""
        return {"createdAt": self.created_at.isoformat(), **self.metadata}


def read_facts(database: Database, who: Who, results: Sequence[SearchResult]) -> dict[UUID, Facts]:
    """Read metadata and upload time for each result's document, by document id, in a single statement."""
    ids = list({result.document_id for result in results})
    if not ids:
        return {}

    def read(pipeline: Pipeline) -> list[Facts]:
        pending = pipeline.execute(queries["document_signals"], {"tenant_id": tenant_of(who), "document_ids": ids})
        pipeline.finish()
        return pending.read(Facts)

    return {facts.document_id: facts for facts in database.read(who, read)}


def signals_from(metadata: Mapping[str, Any], created_at: datetime) -> Signals:
    """Read the values used for ordering from metadata in camelCase or snake_case.

    The date is `backdatedAt` if present, else the post's `createdAt`, else the upload time (source 000 in
    docs/sources.md).
    """
    written_day = written_on(metadata) or created_at.date()
    years = metadata.get("years") or _value(metadata, "year")
    categories = metadata.get("categories") or _value(metadata, "category_slug") or metadata.get("category")
    return Signals(
        written_on=written_day,
        is_pinned=_value(metadata, "is_pinned") is True,
        is_important=_value(metadata, "is_important") is True,
        categories=tuple(str(item) for item in _as_list(categories)),
        years=tuple(int(item) for item in _as_list(years) if str(item).isdigit()),
    )


def ordered(
    scored: Sequence[ScoredHit], signals: Mapping[UUID, Signals], *, profile: Profile, top_k: int, today: date
) -> list[ScoredHit]:
    """Order chunks by the profile's rules and return the best `top_k`.

    Multi-signal scores decide which chunks are included (source 001 in docs/sources.md). Recency and priority only
    reorder the `top_k` chunks chosen by the reranker (source 000, steps 4 to 6). A pinned post therefore never
    displaces a relevant chunk.
    """
    items = [replace(item, result=replace(item.result, score=_base_score(item.result, profile))) for item in scored]
    unknown = Signals(written_on=today)

    def of(item: ScoredHit) -> Signals:
        return of_passage(item.result, signals.get(item.result.document_id, unknown), today.year)

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
        floor = profile.ranking.pinned_floor

        def rank(item: ScoredHit) -> int:
            leads = not floor or item.probability >= floor
            return priority(is_pinned=leads and of(item).is_pinned, is_important=leads and of(item).is_important)

        items.sort(key=rank)  # stable: within a class the order stays
    return items


def _base_score(result: SearchResult, profile: Profile) -> float:
    if result.rerank_score is not None:
        return result.rerank_score
    if profile.search.search_type == "vector" and result.similarity is not None:
        return max(0.0, result.similarity)
    return result.score


def _by_score(items: Sequence[ScoredHit], scores: Sequence[float]) -> list[ScoredHit]:
    scored = [replace(i, result=replace(i.result, score=s)) for i, s in zip(items, scores, strict=True)]
    return sorted(scored, key=lambda item: -item.result.score)


def _value(metadata: Mapping[str, Any], name: str) -> Any:
    first, *rest = name.split("_")
    return metadata.get(name, metadata.get(first + "".join(map(str.capitalize, rest))))


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [] if value in (None, "") else [value]


# Factors from the source documents, with figures in the profiles. They multiply scores of 0 or more.


def recency_factor(written_on: date, today: date, *, steps: Sequence[tuple[int, float]], older: float) -> float:
    """Return the factor for a post's age (source 000 in docs/sources.md, "Recency boost").

    `steps` are (days, factor), youngest first. The first step with at least the post's age in days is used, else
    `older`.
    """
    age_days = (today - written_on).days
    return next((factor for days, factor in steps if age_days <= days), older)


def category_factor(categories: Iterable[str], factors: Mapping[str, float]) -> float:
    """Return the highest factor among a document's categories, by default 1.

    See source 001 in docs/sources.md, "Category Boost".
    """
    return max((factors.get(category.lower(), 1.0) for category in categories), default=1.0)


def year_factor(years: Iterable[int], this_year: int, factors: Sequence[float]) -> float:
    """Return the best factor for these years.

    `factors` are for this year, last year and so on; other years have the factor 1. See source 001 in docs/sources.md,
    "Recency Boost".
    """
    ages = (max(0, this_year - year) for year in years)
    return max((factors[age] if age < len(factors) else 1.0 for age in ages), default=1.0)


def quality_factor(content: str, *, least_words: int, most_words: int, factor: float) -> float:
    """Return `factor` for a passage with `least_words` to `most_words` words, else 1.

    Source 001 in docs/sources.md, "Chunk Quality Boost".
    """
    return factor if least_words <= len(content.split()) <= most_words else 1.0


def multi_signal_score(score: float, *, category: float, year: float, quality: float) -> float:
    """Return score × category × year × quality.

    Source 001 in docs/sources.md, "Re-ranking Formula": 0.85 · 1.3 · 1.3 · 1.1 = 1.58.
    """
    return score * category * year * quality


def priority(*, is_pinned: bool, is_important: bool) -> int:
    """Return a post's sort key: 0 if pinned, 1 if important, else 2.

    Source 000 in docs/sources.md, "Priority sorting".
    """
    return 0 if is_pinned else 1 if is_important else 2


IMPORTANT, PINNED = "(필독)", "(고정)"
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class AttachmentLines:
    """The lines in a profile's `attachment_format`: the heading, a line for a post, and lines for an attachment."""

    head: str
    post: str
    attachment: tuple[str, ...]

    @classmethod
    def of(cls, template: str) -> AttachmentLines:
        """Split a template at the line with `{title}`.

        The lines before are the heading, this line is for each post, and the following lines are for each attachment.
        """
        lines = template.split("\n")
        place = next((n for n, line in enumerate(lines) if "{title}" in line), len(lines) - 1)
        return cls(head="\n".join(lines[:place]), post=lines[place], attachment=tuple(lines[place + 1 :]))

    def of_post(self, title: str, metadata: Mapping[str, Any]) -> Iterator[str]:
        """Yield a text for the post, then a text for each attachment. Lines with an empty field are left out."""
        attachments = attachments_of(metadata)
        if attachments:
            yield self.post.replace("{title}", title)
        for item in attachments:
            values = {
                "kind": "이미지" if item.get("kind") == "image" else "문서",
                "name": str(item.get("fileName") or ""),
                "description": str(item.get("description") or ""),
            }
            lines = (line for line in self.attachment if all(values.get(name, "") for name in _FIELD.findall(line)))
            yield "\n".join(_FIELD.sub(lambda field: values.get(field[1], ""), line) for line in lines)  # noqa: B023


def attachment_part(template: str, posts: Iterator[tuple[str, Mapping[str, Any]]], fits: Callable[[str], bool]) -> str:
    """Format posts' attachments to text. Stops at the first text refused by `fits`; "" without attachments."""
    form = AttachmentLines.of(template)
    lines: list[str] = []
    for title, metadata in posts:
        for line in form.of_post(title, metadata):
            text = line if lines else f"{form.head}\n{line}" if form.head else line
            if not fits(f"\n{text}"):
                return "\n".join(lines)
            lines.append(text)
    return "\n".join(lines)


def attachments_of(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a post's attachments in order. Attachments with an unsafe address are left out."""
    stored = metadata.get("attachments", metadata.get("attachmentsJson"))
    try:
        attachments = json.loads(stored) if isinstance(stored, str) else stored
    except (ValueError, RecursionError):
        return []
    items = [item for item in attachments if isinstance(item, dict)] if isinstance(attachments, list) else []
    return [{**item, "url": web_address(item.get("url") or item.get("fileUrl"))} for item in items]


def web_address(value: object) -> str:
    """Return an address if safe to link, or "" for an address which is not on the web or contains a password."""
    try:
        parts = urlsplit(str(value or "").strip())
    except ValueError:
        return ""
    is_page = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    return parts.geturl() if is_page else ""


def without_attachments(text: str, metadata: Mapping[str, Any]) -> str:
    """Return a post's chunk without the part about attachments, or the excerpt if no text remains."""
    places = [place for place in map(text.find, ATTACHMENT_HEADS) if place >= 0]
    remaining = text[: min(places)].rstrip() if places else text
    return remaining or str(metadata.get("excerpt") or "") or text


def category_of(metadata: Mapping[str, Any]) -> str:
    """Return a post's or document's category from the metadata."""
    return str(metadata.get("categoryName") or metadata.get("category") or metadata.get("categorySlug") or "")


def marks_of(metadata: Mapping[str, Any]) -> str:
    """Return a post's labels in Korean: (필독) if important, (고정) if pinned."""
    important = IMPORTANT if metadata.get("isImportant") is True else ""
    return important + (PINNED if metadata.get("isPinned") is True else "")


def written_on(metadata: Mapping[str, Any]) -> date | None:
    """Return a post's date: `backdatedAt`, else `createdAt`, in camelCase or snake_case."""
    names = ("backdatedAt", "backdated_at", "createdAt", "created_at")
    return next((day for name in names if (day := day_of(metadata.get(name))) is not None), None)


def day_of(value: Any) -> date | None:
    """Parse a date from ISO 8601 text, or from milliseconds since 1970, which notice boards use.

    Milliseconds give the date in Korea; 0 gives `None`.
    """
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC).astimezone(KOREA).date() if value > 0 else None
        return datetime.fromisoformat(value).date() if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def korean_date(day: date | None) -> str:
    """Return a day in Korean form: "2024. 12. 15."; "" without a day."""
    return f"{day.year}. {day.month}. {day.day}." if day is not None else ""

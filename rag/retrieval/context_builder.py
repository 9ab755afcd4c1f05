"""Passages as a model and a reader get them: numbered, within a token budget, with the place they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from rag.profile import Profile
from rag.providers.tokens import estimate_tokens
from rag.retrieval.evidence import Judged, matched_words
from rag.retrieval.formats import Passage, format_context, format_passage, labels_of
from rag.retrieval.posts import attachment_part, category_of, written_on
from rag.retrieval.stitching import Neighbour, stitched
from rag.types import Citation, SearchResult

#: Characters, where only tokens count.
UNLIMITED = 10**9


def context_from(
    judged: Sequence[Judged],
    *,
    profile: Profile,
    metadata: Mapping[UUID, Mapping[str, Any]] | None = None,
    neighbours: Callable[[list[SearchResult]], Sequence[Neighbour]] | None = None,
) -> tuple[str, list[Judged]]:
    """The numbered passages as one text, and those of them that fit.

    The best one is shortened where it alone has more than `context_tokens`, the last one where the text ends at
    `context_characters`. `metadata` is that of the documents by their ids. `neighbours` reads the passages around those
    kept; they are added as far as there is room.
    """
    room = Room(tokens=profile.answer.context_tokens, characters=profile.answer.context_characters or UNLIMITED)

    labels = labels_of([item.result for item in judged], metadata)

    def part(number: int, item: Judged) -> str:
        return format_passage(profile, _passage(number, item, metadata or {}, labels))

    kept: list[Judged] = []
    for item in judged:
        number = len(kept) + 1
        joiner = profile.answer.context_joiner if kept else ""
        text = joiner + part(number, item)
        if room.take(text):
            kept.append(item)
            continue
        share = room.characters - (len(text) - len(item.result.content))
        if not kept:
            share = min(share, int(len(item.result.content) * room.tokens / max(1, estimate_tokens(text))))
        elif estimate_tokens(text) > room.tokens:
            share = 0
        if share > 0:
            kept.append(replace(item, result=replace(item.result, content=item.result.content[:share])))
        room.close()
        break
    if neighbours is not None and room.tokens > 0 and kept:
        kept = stitched(kept, neighbours([item.result for item in kept]), room.take)
    passages = [_passage(number, item, metadata or {}, labels) for number, item in enumerate(kept, 1)]
    text = format_context(profile, passages)
    if profile.answer.attachment_format:
        of_posts = ((passage.result.title, passage.document_metadata) for passage in passages)
        text = "\n".join(filter(None, (text, attachment_part(profile.answer.attachment_format, of_posts, room.take))))
    return text, kept


@dataclass
class Room:
    """How much text still fits."""

    tokens: int
    characters: int

    def take(self, text: str) -> bool:
        """Make room for a text; false when there is none."""
        tokens = estimate_tokens(text)
        if tokens > self.tokens or len(text) > self.characters:
            return False
        self.tokens -= tokens
        self.characters -= len(text)
        return True

    def close(self) -> None:
        self.tokens = self.characters = 0


def _passage(
    number: int, item: Judged, metadata: Mapping[UUID, Mapping[str, Any]], labels: Mapping[UUID, str]
) -> Passage:
    return Passage(
        number=number,
        result=item.result,
        text=f"{item.before}{item.result.content}{item.after}",
        label=labels.get(item.result.document_id, ""),
        document_metadata=metadata.get(item.result.document_id, {}),
    )


def citations_from(
    judged: Sequence[Judged], metadata: Mapping[UUID, Mapping[str, Any]] | None = None
) -> tuple[Citation, ...]:
    """The passages as citations, numbered from 1 as in the context; with what `metadata` says of posts."""
    posts = {key: values for key, values in (metadata or {}).items() if "postId" in values}
    return tuple(
        Citation(
            **_of_post(posts.get(item.result.document_id)),
            number=number,
            chunk_id=item.result.chunk_id,
            document_id=item.result.document_id,
            title=item.result.title,
            file_name=item.result.file_name,
            first_page=item.result.first_page,
            last_page=item.result.last_page,
            section=item.result.section,
            passage=item.result.content,
            score=shown_score(item),
            matched_terms=matched_words(item.result.content, item.words, item.language),
            first_read_page=item.first_read_page,
            last_read_page=item.last_read_page,
        )
        for number, item in enumerate(judged, 1)
    )


def _of_post(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a reader is shown of a post besides its passage."""
    if metadata is None:
        return {}
    day = written_on(metadata)
    return {
        "category": category_of(metadata),
        "written_on": day.isoformat() if day is not None else "",
        "is_pinned": metadata.get("isPinned") is True,
        "is_important": metadata.get("isImportant") is True,
    }


def shown_score(item: Judged) -> float:
    """What a reader sees, 0 … 1: the reranker's relevance, else the better of similarity and share of the question."""
    result = item.result
    if result.rerank_score is not None:
        return round(result.rerank_score, 4)
    return round(min(1.0, max(result.similarity or 0.0, item.coverage.share)), 4)

"""The text around a hit, for the model that reads it: a rule and its exception are often two passages.

What a reader sees stays the hit itself with its own pages; the pages that the model read are kept beside it, so that a
claim is checked against all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from rag.retrieval.evidence import Judged
from rag.storage.database import Database, queries
from rag.types import SearchResult, Who, tenant_of

#: Longest text that two passages may share; more is chance or the same passage.
LONGEST_OVERLAP = 2000


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A passage right before (`step` -1) or after (1) a hit; spans in characters of the document's joined text."""

    hit_id: UUID
    hit_start: int
    hit_end: int
    chunk_id: UUID
    step: int
    content: str
    section: str
    first_page: int
    last_page: int
    start: int
    end: int


def read_neighbours(database: Database, who: Who, hits: Sequence[SearchResult]) -> list[Neighbour]:
    """The passages next to the hits, in one statement; without those that are hits themselves."""
    ids = [hit.chunk_id for hit in hits]
    if not ids:
        return []
    with database.pipeline(who) as pipeline:
        asked = pipeline.execute(queries["neighbouring_passages"], {"tenant_id": tenant_of(who), "chunk_ids": ids})
        pipeline.finish()
        found = asked.read(Neighbour)
    return [neighbour for neighbour in found if neighbour.chunk_id not in ids]


def stitched(judged: Sequence[Judged], neighbours: Sequence[Neighbour], fits: Callable[[str], bool]) -> list[Judged]:
    """The hits with the text of their neighbours around them, as far as `fits` allows.

    Only neighbours of the hit's own section, each used once. What follows comes before what precedes, and
    the best hits come first. `fits(text)` is asked for every addition and keeps count.
    """
    by_place: Mapping[tuple[UUID, int], Neighbour] = {(n.hit_id, n.step): n for n in neighbours}
    items, used = list(judged), set[UUID]()
    for number, item in enumerate(items):
        for step in (1, -1):
            neighbour = by_place.get((item.result.chunk_id, step))
            if neighbour is None or neighbour.chunk_id in used or neighbour.section != item.result.section:
                continue
            addition = added_text(item.result.content, neighbour)
            if addition.strip() and fits(addition):
                used.add(neighbour.chunk_id)
                item = items[number] = _with_text(item, addition, neighbour)
    return items


def added_text(content: str, neighbour: Neighbour) -> str:
    """What a neighbour adds to a passage, what both share taken off."""
    shared = _shared(content, neighbour)
    if neighbour.step > 0:
        return neighbour.content[shared:]
    return neighbour.content[: len(neighbour.content) - shared]


def _shared(content: str, neighbour: Neighbour) -> int:
    has_spans = neighbour.end - neighbour.start == len(neighbour.content) and (
        neighbour.hit_end - neighbour.hit_start == len(content)
    )
    if has_spans:
        overlap = neighbour.hit_end - neighbour.start if neighbour.step > 0 else neighbour.end - neighbour.hit_start
        return min(max(0, overlap), len(neighbour.content))
    before, after = (content, neighbour.content) if neighbour.step > 0 else (neighbour.content, content)
    return _overlap(before[max(0, len(before) - LONGEST_OVERLAP) :], after)


def _overlap(before: str, after: str) -> int:
    """How many characters at the end of one text begin the other, at most."""
    at = before.find(after[0]) if after else -1
    while at >= 0 and not after.startswith(before[at:]):
        at = before.find(after[0], at + 1)
    return len(before) - at if at >= 0 else 0


def _with_text(item: Judged, addition: str, neighbour: Neighbour) -> Judged:
    # Spans that touch or overlap join as they stand in the document; between others the page broke.
    touches = (
        neighbour.start <= neighbour.hit_end if neighbour.step > 0 else neighbour.end >= neighbour.hit_start
    ) and neighbour.end > 0
    glue = "" if touches else "\n"
    return replace(
        item,
        before=addition + glue if neighbour.step < 0 else item.before,
        after=glue + addition if neighbour.step > 0 else item.after,
        first_read_page=min(item.first_read_page or item.result.first_page, neighbour.first_page),
        last_read_page=max(item.last_read_page or item.result.last_page, neighbour.last_page),
    )

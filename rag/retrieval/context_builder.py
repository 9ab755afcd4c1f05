"""Build the context, the numbered passages which the model reads, and the citations for readers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from uuid import UUID

from rag.profiles.profile import Profile
from rag.retrieval.evidence import ScoredHit, matched_words
from rag.retrieval.known_by import folder_shown
from rag.retrieval.ranking import (
    attachment_part,
    attachments_of,
    category_of,
    day_of,
    korean_date,
    marks_of,
    web_address,
    without_attachments,
    written_on,
)
from rag.storage.database import Database, queries
from rag.storage.pipeline import Pipeline
from rag.text.tokens import estimate_tokens
from rag.types import Citation, SearchResult, Who, tenant_of

#: Stands for "no limit" in characters, for profiles which only limit tokens.
UNLIMITED = 10**9


def context_from(
    scored: Sequence[ScoredHit],
    *,
    profile: Profile,
    metadata: Mapping[UUID, Mapping[str, Any]] | None = None,
    neighbours: Callable[[list[SearchResult]], Sequence[Neighbour]] | None = None,
) -> tuple[str, list[ScoredHit]]:
    """Return the context's text, and the hits included in it.

    The best chunk is shortened if it alone exceeds `context_tokens`; the last chunk is shortened at
    `context_characters`. `metadata` is by document id. `neighbours` returns the chunks before and after the included
    hits, which are added while there is room.
    """
    budget = ContextBudget(
        tokens=profile.answer.context_tokens, characters=profile.answer.context_characters or UNLIMITED
    )

    labels = labels_of([item.result for item in scored], metadata)

    def part(number: int, item: ScoredHit) -> str:
        return format_passage(profile, _passage(number, item, metadata or {}, labels))

    included: list[ScoredHit] = []
    for item in scored:
        number = len(included) + 1
        joiner = profile.answer.context_joiner if included else ""
        text = joiner + part(number, item)
        if budget.take(text):
            included.append(item)
            continue
        share = budget.characters - (len(text) - len(item.result.content))
        if not included:
            share = min(share, int(len(item.result.content) * budget.tokens / max(1, estimate_tokens(text))))
        elif estimate_tokens(text) > budget.tokens:
            share = 0
        if share > 0:
            included.append(replace(item, result=replace(item.result, content=item.result.content[:share])))
        budget.close()
        break
    if neighbours is not None and budget.tokens > 0 and included:
        included = stitched(included, neighbours([item.result for item in included]), budget.take)
    passages = [_passage(number, item, metadata or {}, labels) for number, item in enumerate(included, 1)]
    text = format_context(profile, passages)
    if profile.answer.attachment_format:
        of_posts = ((passage.result.title, passage.document_metadata) for passage in passages)
        text = "\n".join(filter(None, (text, attachment_part(profile.answer.attachment_format, of_posts, budget.take))))
    return text, included


@dataclass
class ContextBudget:
    """The tokens and characters still free in the context."""

    tokens: int
    characters: int

    def take(self, text: str) -> bool:
        """Reserve room for a text. Returns `False` if the text does not fit."""
        tokens = estimate_tokens(text)
        if tokens > self.tokens or len(text) > self.characters:
            return False
        self.tokens -= tokens
        self.characters -= len(text)
        return True

    def close(self) -> None:
        self.tokens = self.characters = 0


def _passage(
    number: int, item: ScoredHit, metadata: Mapping[UUID, Mapping[str, Any]], labels: Mapping[UUID, str]
) -> ContextPassage:
    return ContextPassage(
        number=number,
        result=item.result,
        text=f"{item.before}{item.result.content}{item.after}",
        label=labels.get(item.result.document_id, ""),
        document_metadata=metadata.get(item.result.document_id, {}),
    )


def citations_from(
    scored: Sequence[ScoredHit], metadata: Mapping[UUID, Mapping[str, Any]] | None = None
) -> tuple[Citation, ...]:
    """Convert hits to citations numbered from 1, like in the context. `metadata` adds details to posts."""
    posts = metadata or {}
    return tuple(
        Citation(
            **of_post(posts.get(item.result.document_id)),
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
            is_corrected="corrected_pages" in item.result.metadata,
            folder=item.result.folder,
        )
        for number, item in enumerate(scored, 1)
    )


def of_post(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a post's details for readers. For web pages and remote files, this is only the address (`url`)."""
    if not metadata:
        return {}
    if "postId" not in metadata:
        page = web_address(metadata.get("pageUrl"))
        return {"url": page} if page else {}
    day = written_on(metadata)
    return {
        "category": category_of(metadata),
        "written_on": day.isoformat() if day is not None else "",
        "is_pinned": metadata.get("isPinned") is True,
        "is_important": metadata.get("isImportant") is True,
        "url": web_address(metadata.get("postUrl")),
        "attachments": tuple((str(item.get("fileName") or ""), item["url"]) for item in attachments_of(metadata)),
    }


def shown_score(item: ScoredHit) -> float:
    """Return the score to show, from 0 to 1.

    This is the reranker's score. Without a reranker, this is the cosine or the share of the question's words found,
    whichever is larger.
    """
    result = item.result
    if result.rerank_score is not None:
        return round(result.rerank_score, 4)
    return round(min(1.0, max(result.similarity or 0.0, item.coverage.share)), 4)


#: The most passages to read from a section mentioned in a passage.
SECTION_PASSAGES = 3
#: A label such as 【양형기준 - 절도】, from which empty parts are removed.
_LABEL = re.compile(r"【([^】]*)】")
_LABEL_PARTS = " - "
_FIELD = re.compile(r"\{(\w+)\}")
#: A line with a field, left out if the field is empty.
_LINE_OF_FIELD = re.compile(r"^\{(?!content\})(\w+)\}\n", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class ContextPassage:
    """A passage prepared for the context."""

    #: The number to cite, from 1.
    number: int
    result: SearchResult
    #: The text for the model: the passage, and neighbouring text if there was room.
    text: str
    #: The document's folder and day, and the file name if other documents have the same title and folder.
    label: str = ""
    #: The document's metadata; the passage's metadata takes precedence.
    document_metadata: Mapping[str, Any] = field(default_factory=dict)

    def value(self, name: str) -> Any:
        """Return a metadata field by snake_case name, even if stored in camelCase. `None` if missing."""
        first, *rest = name.split("_")
        names = (name, first + "".join(map(str.capitalize, rest)))
        places = (self.result.metadata, self.document_metadata)
        return next((place[n] for place in places for n in names if place.get(n) not in (None, "")), None)


def format_context(profile: Profile, passages: Sequence[ContextPassage]) -> str:
    return profile.answer.context_joiner.join(format_passage(profile, passage) for passage in passages)


def format_passage(profile: Profile, passage: ContextPassage) -> str:
    """Format a passage for the context: title, date, page and section above the text, or by the profile's
    `context_format`.

    The number comes first unless `numbered_passages` is off.
    """
    head = f"[{passage.number}] " if profile.answer.numbered_passages else ""
    if not profile.answer.context_format:
        return f"{head}{place(passage.result, passage.label)}\n{passage.text}"
    if profile.answer.attachment_format:
        # Attachments are listed after all passages instead.
        passage = replace(passage, text=without_attachments(passage.text, passage.document_metadata))
    return head + fill_template(profile.answer.context_format, passage)


def fill_template(template: str, passage: ContextPassage) -> str:
    """Fill a template with a passage's values. Braces and labels inside the passage's text stay unchanged."""
    template = _LINE_OF_FIELD.sub(lambda line: line[0] if _text(passage, line[1]) else "", template)
    before, marker, after = template.partition("{content}")
    parts = [_clean_labels(_FIELD.sub(lambda name: _text(passage, name[1]), part), passage) for part in (before, after)]
    return parts[0] + (passage.text if marker else "") + parts[1]


def place(result: SearchResult, label: str = "") -> str:
    """Describe a chunk's location: the document's title and label, the pages, and the section."""
    title = f"{result.title} ({label})" if label else result.title
    return ", ".join(part for part in (title, pages_of(result), result.section) if part)


def labels_of(
    results: Sequence[SearchResult], metadata: Mapping[UUID, Mapping[str, Any]] | None = None
) -> dict[UUID, str]:
    """Return labels by document id which distinguish documents with equal titles.

    A label has folder and day. Documents with the same title and folder also get their file name, and a number if the
    file names are equal too.
    """
    documents = {result.document_id: result for result in results}
    names = {
        key: (result.title.casefold(), folder_shown(result.title, result.folder)) for key, result in documents.items()
    }
    titles = Counter(names.values())
    files = Counter((names[key], result.file_name) for key, result in documents.items())
    copies: Counter[tuple[tuple[str, str], str]] = Counter()
    labels: dict[UUID, str] = {}
    for document_id, result in documents.items():
        file = (names[document_id], result.file_name)
        copies[file] += 1
        parts = [file[0][1]]
        parts += [result.file_name] if titles[file[0]] > 1 else []
        parts += [f"copy {copies[file]}"] if files[file] > 1 else []
        day = document_day((metadata or {}).get(document_id, {}))
        labels[document_id] = ", ".join(filter(None, (*parts, day.isoformat() if day else "")))
    return labels


def document_day(metadata: Mapping[str, Any]) -> date | None:
    """Return a document's date: a post's day, else the file's last change, else when the document was created."""
    names = ("file_modified_at", "file_created_at")
    return written_on(metadata) or next((day for name in names if (day := day_of(metadata.get(name)))), None)


def pages_of(result: SearchResult) -> str:
    """Format a chunk's pages: "p. 3" or "pp. 3–4"."""
    if result.last_page > result.first_page:
        return f"pp. {result.first_page}–{result.last_page}"
    return f"p. {result.first_page}"


#: Template fields which are not metadata.
FIELDS: Mapping[str, Callable[[ContextPassage], str]] = {
    "number": lambda passage: str(passage.number),
    "title": lambda passage: passage.result.title,
    "section": lambda passage: passage.result.section,
    "pages": lambda passage: pages_of(passage.result),
    "category": lambda passage: str(passage.value("category_name") or passage.value("category") or ""),
    "date": lambda passage: korean_date(written_on(passage.document_metadata)),
    "marks": lambda passage: marks_of(passage.document_metadata),
}


def _text(passage: ContextPassage, name: str) -> str:
    value = FIELDS[name](passage) if name in FIELDS else passage.value(name)
    if isinstance(value, (list, tuple)):
        return ", ".join(str(part) for part in value)
    return "" if value is None else str(value)


def _clean_labels(text: str, passage: ContextPassage) -> str:
    """Remove empty parts from labels 【…】. An empty label gets the document's title."""

    def label(match: re.Match[str]) -> str:
        parts = (
            [part.strip() for part in match[1].split(_LABEL_PARTS.strip())] if _LABEL_PARTS in match[1] else [match[1]]
        )
        label_text = _LABEL_PARTS.join(part for part in parts if part.strip())
        return f"【{label_text or passage.result.title}】"

    return _LABEL.sub(label, text)


#: The longest overlap between two passages; more is chance or the same passage.
LONGEST_OVERLAP = 2000


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """The chunk before (`step` -1) or after (`step` 1) a hit. Spans are character positions in the whole document."""

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
    """Read the chunks before and after each hit with a single SQL statement. Chunks among the hits are left out."""
    ids = [hit.chunk_id for hit in hits]
    if not ids:
        return []

    def read(pipeline: Pipeline) -> list[Neighbour]:
        pending = pipeline.execute(queries["neighbouring_passages"], {"tenant_id": tenant_of(who), "chunk_ids": ids})
        pipeline.finish()
        return pending.read(Neighbour)

    return [neighbour for neighbour in database.read(who, read) if neighbour.chunk_id not in ids]


@dataclass(frozen=True, kw_only=True)
class SectionPassage:
    """A chunk from a section to which a hit refers."""

    chunk_id: UUID
    document_id: UUID
    title: str
    file_name: str
    folder: str
    first_page: int
    last_page: int
    section: str
    passage: str
    is_corrected: bool


def read_section(database: Database, who: Who, document_id: UUID, number: str) -> list[SectionPassage]:
    """Read the first chunks of a document's section by number ("5.2", "7"). Empty for an unknown section."""
    # "5.2 Leave", "Article 5.2", "제5조(휴가)"; 5 must not match 5.2, 50 or 제5조의2.
    numbered = rf"{re.escape(number)}(?![0-9]|[.]\s?[0-9]|조의)"
    before = rf"(?:#+ |§ ?|[제第] ?|[^\W\d]{{3,12}}[.]? )?{numbered}"
    return database.fetch_all(
        who,
        "passages_of_section",
        SectionPassage,
        document_id=document_id,
        # The heading path above a passage: "5 Time off › 5.2 Leave".
        heading=rf"(^|› ){before}",
        # A heading with this number, but also a table cell or list item with it, which are sorted last.
        line=rf"(^|\n)\s*{before}",
        wanted=SECTION_PASSAGES,
    )


def stitched(
    scored: Sequence[ScoredHit], neighbours: Sequence[Neighbour], fits: Callable[[str], bool]
) -> list[ScoredHit]:
    """Extend hits with text from neighbouring chunks in the same section.

    The callback `fits` is called for each addition, reserves room, and refuses the text if there is no room. Each
    neighbour is used once. The best hits are extended first, each with the following text before the preceding text.
    """
    by_place: Mapping[tuple[UUID, int], Neighbour] = {(n.hit_id, n.step): n for n in neighbours}
    items, used = list(scored), set[UUID]()
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
    """Return a neighbour's text without the overlap with the hit."""
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
    """Return the length in characters of the longest text which ends `before` and starts `after`."""
    at = before.find(after[0]) if after else -1
    while at >= 0 and not after.startswith(before[at:]):
        at = before.find(after[0], at + 1)
    return len(before) - at if at >= 0 else 0


def _with_text(item: ScoredHit, addition: str, neighbour: Neighbour) -> ScoredHit:
    # Touching or overlapping spans are joined directly, as in the document; others with a page break.
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

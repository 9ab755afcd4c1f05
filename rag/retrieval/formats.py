"""Passages as a model reads them: numbered, in the form their profile gives, joined by what it puts between them.

A profile's `context_format` names fields in braces: those of `FIELDS`, else metadata of the passage or its document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from uuid import UUID

from rag.profile import Profile
from rag.retrieval.posts import day_of, korean_date, marks_of, without_attachments, written_on
from rag.types import SearchResult

#: A label such as 【양형기준 - 절도】; parts that are not known are left out of it.
_LABEL = re.compile(r"【([^】]*)】")
_LABEL_PARTS = " - "
_FIELD = re.compile(r"\{(\w+)\}")
#: A line that is left out where its field is empty.
_LINE_OF_FIELD = re.compile(r"^\{(?!content\})(\w+)\}\n", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A passage of the context."""

    #: From 1; what an answer cites it by.
    number: int
    result: SearchResult
    #: What the model reads: the passage, with the text around it where that fits.
    text: str
    #: What tells its document from others of the same title, and the day it is of; empty where neither is known.
    label: str = ""
    #: Of its document. What the passage itself says of a field comes first.
    document_metadata: Mapping[str, Any] = field(default_factory=dict)

    def value(self, name: str) -> Any:
        """A field of the metadata by its name in snake_case, also where it is stored in camelCase; else None."""
        first, *others = name.split("_")
        names = (name, first + "".join(map(str.capitalize, others)))
        places = (self.result.metadata, self.document_metadata)
        return next((place[n] for place in places for n in names if place.get(n) not in (None, "")), None)


def format_context(profile: Profile, passages: Sequence[Passage]) -> str:
    """All passages as one text."""
    return profile.answer.context_joiner.join(format_passage(profile, passage) for passage in passages)


def format_passage(profile: Profile, passage: Passage) -> str:
    """One passage with its number: title, date, page and section above the text, or as `context_format` has it."""
    head = f"[{passage.number}] "
    if not profile.answer.context_format:
        return f"{head}{place(passage.result, passage.label)}\n{passage.text}"
    if profile.answer.attachment_format:
        # They follow all passages, in a part of their own.
        passage = replace(passage, text=without_attachments(passage.text, passage.document_metadata))
    return head + filled(profile.answer.context_format, passage)


def filled(template: str, passage: Passage) -> str:
    """A template with the passage's values; the content goes in last, so that no brace or label in it is touched."""
    template = _LINE_OF_FIELD.sub(lambda line: line[0] if _text(passage, line[1]) else "", template)
    before, found, after = template.partition("{content}")
    parts = [_labelled(_FIELD.sub(lambda name: _text(passage, name[1]), part), passage) for part in (before, after)]
    return parts[0] + (passage.text if found else "") + parts[1]


def place(result: SearchResult, label: str = "") -> str:
    """Where a passage is: title, with what tells its document from others, page or pages, section."""
    title = f"{result.title} ({label})" if label else result.title
    return ", ".join(part for part in (title, pages_of(result), result.section) if part)


def labels_of(
    results: Sequence[SearchResult], metadata: Mapping[UUID, Mapping[str, Any]] | None = None
) -> dict[UUID, str]:
    """The day of each document where it is known, after its file name where another has its title.

    Of documents that have the file name in common too, each gets a number.
    """
    documents = {result.document_id: result for result in results}
    titles = Counter(result.title.casefold() for result in documents.values())
    files = Counter((result.title.casefold(), result.file_name) for result in documents.values())
    seen: Counter[tuple[str, str]] = Counter()
    labels: dict[UUID, str] = {}
    for document_id, result in documents.items():
        file = (result.title.casefold(), result.file_name)
        seen[file] += 1
        parts = [result.file_name] if titles[file[0]] > 1 else []
        parts += [f"copy {seen[file]}"] if files[file] > 1 else []
        day = document_day((metadata or {}).get(document_id, {}))
        labels[document_id] = ", ".join(filter(None, (*parts, day.isoformat() if day else "")))
    return labels


def document_day(metadata: Mapping[str, Any]) -> date | None:
    """The day a document gives itself: of a post its own, of a file its last change, else its making."""
    names = ("file_modified_at", "file_created_at")
    return written_on(metadata) or next((day for name in names if (day := day_of(metadata.get(name)))), None)


def pages_of(result: SearchResult) -> str:
    """The pages in words: "p. 3" or "pp. 3–4"."""
    if result.last_page > result.first_page:
        return f"pp. {result.first_page}–{result.last_page}"
    return f"p. {result.first_page}"


#: Fields that are not metadata.
FIELDS: Mapping[str, Callable[[Passage], str]] = {
    "number": lambda passage: str(passage.number),
    "title": lambda passage: passage.result.title,
    "section": lambda passage: passage.result.section,
    "pages": lambda passage: pages_of(passage.result),
    "category": lambda passage: str(passage.value("category_name") or passage.value("category") or ""),
    "date": lambda passage: korean_date(written_on(passage.document_metadata)),
    "marks": lambda passage: marks_of(passage.document_metadata),
}


def _text(passage: Passage, name: str) -> str:
    value = FIELDS[name](passage) if name in FIELDS else passage.value(name)
    if isinstance(value, (list, tuple)):
        return ", ".join(str(part) for part in value)
    return "" if value is None else str(value)


def _labelled(text: str, passage: Passage) -> str:
    """Labels without the parts that are empty; one that would hold nothing holds the title."""

    def label(match: re.Match[str]) -> str:
        parts = (
            [part.strip() for part in match[1].split(_LABEL_PARTS.strip())] if _LABEL_PARTS in match[1] else [match[1]]
        )
        known = _LABEL_PARTS.join(part for part in parts if part.strip())
        return f"【{known or passage.result.title}】"

    return _LABEL.sub(label, text)

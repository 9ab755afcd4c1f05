"""What is told of a post beside its text: category, day, marks, attachments (source 000, step 7)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from rag.ingestion.loaders.attachments import ATTACHMENT_HEADS
from rag.ingestion.loaders.dates import KOREA

IMPORTANT, PINNED = "(필독)", "(고정)"
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class AttachmentLines:
    """A profile's `attachment_format` in its parts: once, for each post, for each attachment."""

    head: str
    post: str
    attachment: tuple[str, ...]

    @classmethod
    def of(cls, template: str) -> AttachmentLines:
        """The line with the title is repeated for each post, those after it for each of its attachments."""
        lines = template.split("\n")
        place = next((n for n, line in enumerate(lines) if "{title}" in line), len(lines) - 1)
        return cls(head="\n".join(lines[:place]), post=lines[place], attachment=tuple(lines[place + 1 :]))

    def of_post(self, title: str, metadata: Mapping[str, Any]) -> Iterator[str]:
        """The post's line, then those of each attachment; a line whose last field is empty is left out."""
        found = attachments_of(metadata)
        if found:
            yield self.post.replace("{title}", title)
        for item in found:
            values = {
                "kind": "이미지" if item.get("kind") == "image" else "문서",
                "name": str(item.get("fileName") or ""),
                "description": str(item.get("description") or ""),
            }
            lines = (line for line in self.attachment if all(values.get(name, "") for name in _FIELD.findall(line)))
            yield "\n".join(_FIELD.sub(lambda field: values.get(field[1], ""), line) for line in lines)  # noqa: B023


def attachment_part(template: str, posts: Iterator[tuple[str, Mapping[str, Any]]], fits: Callable[[str], bool]) -> str:
    """The attachments of posts as one text, as far as `fits` allows; "" where there are none."""
    form = AttachmentLines.of(template)
    lines: list[str] = []
    for title, metadata in posts:
        for line in form.of_post(title, metadata):
            text = line if lines else f"{form.head}\n{line}" if form.head else line
            if not fits(f"\n{text}"):
                return "\n".join(lines)
            lines.append(text)
    return "\n".join(lines)


def attachments_of(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The attachments as they are stored with a post."""
    stored = metadata.get("attachmentsJson")
    try:
        found = json.loads(stored) if isinstance(stored, str) else []
    except ValueError:
        return []
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def without_attachments(text: str, metadata: Mapping[str, Any]) -> str:
    """A post's passage without the part about its attachments; its excerpt where nothing else is in it."""
    places = [place for place in map(text.find, ATTACHMENT_HEADS) if place >= 0]
    kept = text[: min(places)].rstrip() if places else text
    return kept or str(metadata.get("excerpt") or "") or text


def category_of(metadata: Mapping[str, Any]) -> str:
    """The name of a post's category; for other documents what their metadata calls so."""
    return str(metadata.get("categoryName") or metadata.get("category") or metadata.get("categorySlug") or "")


def marks_of(metadata: Mapping[str, Any]) -> str:
    """(필독) of an important and (고정) of a pinned post."""
    important = IMPORTANT if metadata.get("isImportant") is True else ""
    return important + (PINNED if metadata.get("isPinned") is True else "")


def written_on(metadata: Mapping[str, Any]) -> date | None:
    """The day a post gives itself, else that of its making; by `backdatedAt` and `createdAt`, else by our own names."""
    names = ("backdatedAt", "backdated_at", "createdAt", "created_at")
    return next((day for name in names if (day := day_of(metadata.get(name))) is not None), None)


def day_of(value: Any) -> date | None:
    """A day from ISO text, or from milliseconds since 1970 as notice boards count: then it is Korea's; 0 is none."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC).astimezone(KOREA).date() if value > 0 else None
        return datetime.fromisoformat(value).date() if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def korean_date(day: date | None) -> str:
    """A day as Koreans write it: "2024. 12. 15."; "" for none."""
    return f"{day.year}. {day.month}. {day.day}." if day is not None else ""

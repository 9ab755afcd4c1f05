"""Offer the sample notice board: a source that any collection can follow.

`rag/samples/board/posts.toml` has each post's time and category; its HTML is in the same folder.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag.ingestion.sources.runs import SAMPLES
from rag.ingestion.sources.sync import SourceItem
from rag.profiles.notices.attachments import AttachmentFiles
from rag.profiles.notices.posts import Post, PostAttachment, moment
from rag.profiles.notices.table import item_from_post

FOLDER = Path(__file__).parents[2] / "samples" / "board"


class SampleBoard:
    """The source for the sample posts."""

    kind = SAMPLES

    def items(self) -> Iterator[SourceItem]:
        """Yield every sample post."""
        for post in sample_posts():
            yield item_from_post(post, files=AttachmentFiles())

    def expected(self) -> int:
        """Count the sample posts."""
        return len(sample_posts())


def sample_posts() -> list[Post]:
    """Read the sample posts."""
    listed = tomllib.loads((FOLDER / "posts.toml").read_text("utf-8"))
    return [_post(entry, listed["categories"]) for entry in listed["posts"]]


def _post(entry: Mapping[str, Any], categories: Mapping[str, str]) -> Post:
    created_at = moment(entry["created_at"])
    return Post(
        id=entry["id"],
        title=entry["title"],
        html=(FOLDER / entry["file"]).read_text("utf-8"),
        category_id=entry["category"],
        category_slug=entry["category"],
        category_name=categories[entry["category"]],
        created_at=created_at,
        updated_at=created_at,
        published_at=created_at,
        is_pinned=entry.get("pinned", False),
        is_important=entry.get("important", False),
        status="published",
        view_count=entry.get("views", 0),
        attachments=tuple(
            PostAttachment(file_name=item["name"], size=item["size"], description=item.get("description", ""))
            for item in entry.get("attachments", ())
        ),
    )

"""The fenced blocks of README and docs, and what stands before them of how they are tried."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (PROJECT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"(?:(?:<!-- not run: (?P<reason>[^>]+) -->|^ *\*(?P<marker>(?:Not run|Run) by the tests[^*]+)\*)\s*)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.S | re.M,
)


@dataclass(frozen=True)
class Block:
    """A block; `is_run` is false where the page says that it is not, `with_standin` where it says what stands in."""

    page: str
    language: str
    text: str
    is_run: bool
    with_standin: bool


def blocks(page: str, *languages: str) -> list[Block]:
    """The blocks of a page in their order, all or those of these languages."""
    found = []
    for match in BLOCK.finditer((PROJECT / page).read_text("utf-8")):
        marker = match["marker"] or ""
        text = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.M)
        is_run = not match["reason"] and not marker.startswith("Not run")
        found.append(Block(page, match["language"], text, is_run, marker.startswith("Run by the tests with ")))
    return [block for block in found if not languages or block.language in languages]

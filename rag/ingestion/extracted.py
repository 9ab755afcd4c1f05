"""Values read from a file, and their JSON between the sandbox and the application."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from rag.settings import Settings
from rag.types import Page, Section, sections_from_json, storable, storable_json

#: The name of a format in `rag.ingestion.loaders.LOADERS`.
FileKind: TypeAlias = str


@dataclass(frozen=True, kw_only=True)
class ExtractionLimits:
    """Limits of a single file."""

    maximum_bytes: int = 50 * 1024 * 1024
    maximum_pages: int = 5000
    timeout_seconds: float = 120.0
    memory_mb: int = 1024

    @classmethod
    def of(cls, settings: Settings) -> ExtractionLimits:
        return cls(
            maximum_bytes=settings.maximum_upload_bytes,
            maximum_pages=settings.maximum_pages,
            timeout_seconds=settings.extraction_timeout_seconds,
            memory_mb=settings.extraction_memory_mb,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """A file that can be opened. `decrypted` is the same PDF without its protection, if it had one."""

    page_count: int
    kind: FileKind = "pdf"
    decrypted: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class ExtractedDocument:
    """A file as it was read. `language` is declared by the file, often wrongly or not at all.

    `metadata` holds what only some kinds of files have, as JSON: `links` and `backdated_at` of a post.
    """

    pages: tuple[Page, ...]
    sections: tuple[Section, ...] = ()
    title: str = ""
    author: str = ""
    language: str = ""
    decrypted: bytes | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "pages": [asdict(page) for page in self.pages],
            "sections": [asdict(section) for section in self.sections],
            "title": self.title,
            "author": self.author,
            "language": self.language,
            "metadata": dict(self.metadata),
        }


def extracted_from_json(values: Mapping[str, Any], decrypted: bytes | None) -> ExtractedDocument:
    """Read the value from JSON, with every text free of what a database cannot hold."""
    return ExtractedDocument(
        pages=tuple(page_from_json(page) for page in values["pages"]),
        sections=sections_from_json(values["sections"]),
        title=storable(values["title"]),
        author=storable(values["author"]),
        language=storable(values["language"]),
        decrypted=decrypted,
        metadata=storable_json(values.get("metadata") or {}),
    )


def page_from_json(page: Mapping[str, Any]) -> Page:
    """Read a page from JSON."""
    return Page(
        number=int(page["number"]),
        text=storable(page["text"]),
        method=page["method"] if page["method"] in ("text", "ocr") else "none",
        label=storable(page["label"]),
        warnings=tuple(storable(warning) for warning in page["warnings"]),
    )


#: Titles that programs leave behind rather than people.
MACHINE_TITLE = re.compile(
    r"^(microsoft (word|powerpoint|excel)\b|untitled|document\d*$|powerpoint presentation|presentation\d*$|book\d*$"
    r"|slide \d+|layout \d+|print|printing|scan|img[_-]?\d|unknown|titel|title)"
    r"|\.(docx?|pptx?|xlsx?|indd|qxd|pdf|odt|rtf|txt|tex|dvi|hwpx?|pub)$|[\\/]",
    re.IGNORECASE,
)


def title_from_file_name(file_name: str) -> str:
    """Make a title of a file name: no ending, underscores as spaces, a capital first."""
    from rag.ingestion.loaders import ENDINGS  # which imports this module

    stem, dot, ending = file_name.rpartition(".")  # unlike splitext, a name that is only an ending has no stem
    stem = stem if dot + ending.lower() in ENDINGS else file_name
    stem = re.sub(r"[_\s]+|(?<=\w)-(?=[^\W\d])", " ", stem).strip() if " " not in stem else stem.strip()
    if not stem:
        return "Document"
    return stem[0].upper() + stem[1:] if stem.islower() else stem


def title_from_metadata(title: str) -> str:
    """Return the file's own title; empty when it looks like a program's rather than a person's."""
    title = " ".join(title.split())
    if not 4 <= len(title) <= 150 or MACHINE_TITLE.search(title) or not re.search(r"[^\W\d_]{2}", title):
        return ""
    return title

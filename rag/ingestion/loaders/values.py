"""Define the values used by loaders: limits, options, and a file's content, also in JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias, get_args

from rag.settings import Settings
from rag.types import MOST_MARKS, MarkKind, Page, PageMark, Section, sections_from_json, storable, storable_json

#: A format's name, for example "pdf".
FileKind: TypeAlias = str


@dataclass(frozen=True, kw_only=True)
class ExtractionLimits:
    """Limits for reading a single file."""

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
    """A file which passed `check`. `decrypted` is the unlocked PDF, or `None` if the PDF was not protected."""

    page_count: int
    kind: FileKind = "pdf"
    decrypted: bytes | None = None


@dataclass(frozen=True)
class AttachedFile:
    """A file attached to an email or PDF, with the name given there."""

    name: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class ExtractedDocument:
    """A file's pages and properties.

    `language` is the language declared in the file, often wrong or empty. `metadata` has properties which only some
    formats have, for example `links` and `backdated_at` for a post.
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
    """Convert JSON to an `ExtractedDocument`, without characters which Postgres cannot store."""
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
    return Page(
        number=int(page["number"]),
        text=storable(page["text"]),
        method=page["method"] if page["method"] in ("text", "ocr") else "none",
        label=storable(page["label"]),
        warnings=tuple(storable(warning) for warning in page["warnings"]),
        marks=marks_from_json(page.get("marks")),
    )


def marks_from_json(marks: Sequence[Mapping[str, Any]] | None) -> tuple[PageMark, ...] | None:
    """Convert JSON to page marks: boxes around a page's lines, tables and images.

    Drops marks with an unknown `kind`, and marks outside the page. Returns `None` for `None`.
    """
    if marks is None:
        return None
    edges = ("left", "top", "right", "bottom")
    return tuple(
        PageMark(mark["kind"], *(float(mark[edge]) for edge in edges))
        for mark in marks[:MOST_MARKS]
        if mark["kind"] in get_args(MarkKind) and all(0 <= mark[edge] <= 1 for edge in edges)
    )


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options for loading a file: limits, the password of a PDF, and callbacks for progress and for each page read."""

    limits: ExtractionLimits = field(default_factory=ExtractionLimits)
    password: str | None = None
    #: Whether a wider gap between two lines in a PDF starts a new paragraph.
    has_paragraphs_by_gaps: bool = False
    #: Names of attached files stored as separate documents in the collection.
    separate_files: frozenset[str] = frozenset()
    on_page: Callable[[int, int], None] | None = None
    #: Takes the pages one after the other; the value is then without pages.
    take: Callable[[Page], None] | None = None


DEFAULT_OPTIONS = LoadOptions()

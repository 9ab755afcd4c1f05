"""Bytes in, pages with provenance out: one entry for every kind of file, run in the sandbox process.

The loaders are imported when they are first used; the sandbox process does so before it confines itself.
"""

from __future__ import annotations

from collections.abc import Callable

from rag.errors import FileEmpty, FileTooLarge
from rag.ingestion.extracted import CheckedPdf, ExtractedPdf, ExtractionLimits
from rag.ingestion.loaders.kinds import ENDINGS, MIME_TYPES, kind_of, require_as_named
from rag.types import Page

__all__ = ["ENDINGS", "MIME_TYPES", "check", "kind_of", "load"]


def check(
    content: bytes, file_name: str, mime_type: str = "", *, password: str | None = None, limits: ExtractionLimits
) -> CheckedPdf:
    """Whether the file can be read at all. Raises the `DocumentError` that says why not."""
    kind = kind_of(content, file_name, mime_type) if content else "pdf"
    if kind == "pdf":
        from rag.ingestion.loaders.pdf import check_pdf

        return check_pdf(content, password=password, limits=limits)
    _require_size(content, limits)
    require_as_named(kind, content, file_name)
    if kind == "docx":
        from rag.ingestion.loaders.docx import require_docx

        require_docx(content, limits)
    return CheckedPdf(kind=kind, page_count=content.count(b"\f") + 1 if kind == "text" else 1)


def load(
    content: bytes,
    file_name: str,
    mime_type: str = "",
    *,
    password: str | None = None,
    limits: ExtractionLimits,
    on_page: Callable[[int, int], None] | None = None,
    take: Callable[[Page], None] | None = None,
) -> ExtractedPdf:
    """The pages of a file of any kind, with sections and what it says of itself. Raises `DocumentError`s.

    With `take`, the pages of a PDF are handed to it one after the other and are not in the value.

    What is not a PDF has one page; plain text one more for each form feed.
    """
    kind = kind_of(content, file_name, mime_type) if content else "pdf"
    if kind == "pdf":
        from rag.ingestion.loaders.pdf import extract_pages

        return extract_pages(content, password=password, limits=limits, on_page=on_page, take=take)
    _require_size(content, limits)
    require_as_named(kind, content, file_name)
    if kind == "docx":
        from rag.ingestion.loaders.docx import load_docx

        return load_docx(content, limits)
    from rag.ingestion.loaders.html import load_html
    from rag.ingestion.loaders.text import load_markdown, load_text

    return {"html": load_html, "markdown": load_markdown, "text": load_text}[kind](content)


def _require_size(content: bytes, limits: ExtractionLimits) -> None:
    if not content.strip():
        raise FileEmpty
    if len(content) > limits.maximum_bytes:
        raise FileTooLarge

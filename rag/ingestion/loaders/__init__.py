"""Bytes in, pages with provenance out: one entry for every kind of file, run in the sandbox process."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from rag.errors import FileEmpty, FileKindUnknown, FileTooLarge
from rag.ingestion.extracted import CheckedPdf, ExtractedPdf, ExtractionLimits

FileKind = Literal["pdf", "docx", "html", "markdown", "text"]
MIME_TYPES: dict[FileKind, str] = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "html": "text/html",
    "markdown": "text/markdown",
    "text": "text/plain",
}
ENDINGS: dict[str, FileKind] = {
    ".pdf": "pdf", ".docx": "docx", ".html": "html", ".htm": "html", ".xhtml": "html", ".md": "markdown",
    ".markdown": "markdown", ".txt": "text", ".text": "text", ".log": "text", ".csv": "text", ".tsv": "text",
}  # fmt: skip
#: How an HTML file begins, blank space and comments before it left out.
HTML_BEGINNING = re.compile(
    rb"\s*(?:<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html|head|body|div|p|table)\b", re.I | re.S
)
#: Control characters that no text has; a file with them is of some binary kind.
BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
LOOKED_AT = 8192


def kind_of(content: bytes, file_name: str, mime_type: str = "") -> FileKind:
    """What kind of file this is, by its name, else its declared type, else its bytes.

    A file called .pdf is taken for one, so that the PDF loader says what is wrong with it. Raises `FileKindUnknown`.
    """
    ending = re.search(r"\.[^./\\]+$", file_name.lower())
    kind = ENDINGS.get(ending[0]) if ending else None
    if kind is not None:
        return kind
    head = content[:LOOKED_AT]
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith(b"PK\x03\x04") and b"word/" in content:
        return "docx"
    declared = mime_type.split(";")[0].strip().lower()
    for known, name in MIME_TYPES.items():
        if declared == name:
            return known
    if HTML_BEGINNING.match(head):
        return "html"
    if ending is None and head and not BINARY.search(head):
        return "text"
    raise FileKindUnknown


def check(
    content: bytes, file_name: str, mime_type: str = "", *, password: str | None = None, limits: ExtractionLimits
) -> CheckedPdf:
    """Whether the file can be read at all. Raises the `DocumentError` that says why not."""
    from rag.ingestion.loaders.docx import require_docx
    from rag.ingestion.loaders.pdf import check_pdf

    kind = kind_of(content, file_name, mime_type) if content else "pdf"
    if kind == "pdf":
        return check_pdf(content, password=password, limits=limits)
    _require_size(content, limits)
    if kind == "docx":
        require_docx(content, limits)
    return CheckedPdf(page_count=content.count(b"\f") + 1 if kind == "text" else 1)


def load(
    content: bytes,
    file_name: str,
    mime_type: str = "",
    *,
    password: str | None = None,
    limits: ExtractionLimits,
    on_page: Callable[[int, int], None] | None = None,
) -> ExtractedPdf:
    """The pages of a file of any kind, with sections and what it says of itself. Raises `DocumentError`s.

    What is not a PDF has one page; plain text one more for each form feed.
    """
    from rag.ingestion.loaders.docx import load_docx
    from rag.ingestion.loaders.html import load_html
    from rag.ingestion.loaders.pdf import extract_pages
    from rag.ingestion.loaders.text import load_markdown, load_text

    kind = kind_of(content, file_name, mime_type) if content else "pdf"
    if kind == "pdf":
        return extract_pages(content, password=password, limits=limits, on_page=on_page)
    _require_size(content, limits)
    if kind == "docx":
        return load_docx(content, limits)
    return {"html": load_html, "markdown": load_markdown, "text": load_text}[kind](content)


def _require_size(content: bytes, limits: ExtractionLimits) -> None:
    if not content.strip():
        raise FileEmpty
    if len(content) > limits.maximum_bytes:
        raise FileTooLarge

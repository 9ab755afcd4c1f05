"""Bytes in, pages with provenance out: one entry for every kind of file, run in the sandbox process.

The loaders are imported when they are first used; the sandbox process does so before it confines itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rag.errors import FileEmpty, FileKindUnknown, FileNotAsNamed, FileTooLarge
from rag.ingestion.extracted import CheckedFile, ExtractedDocument, ExtractionLimits, FileKind
from rag.types import Page

__all__ = ["ENDINGS", "MIME_TYPES", "check", "kind_of", "load"]


def check(
    content: bytes, file_name: str, mime_type: str = "", *, password: str | None = None, limits: ExtractionLimits
) -> CheckedFile:
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
    return CheckedFile(kind=kind, page_count=content.count(b"\f") + 1 if kind == "text" else 1)


def load(
    content: bytes,
    file_name: str,
    mime_type: str = "",
    *,
    password: str | None = None,
    limits: ExtractionLimits,
    on_page: Callable[[int, int], None] | None = None,
    take: Callable[[Page], None] | None = None,
) -> ExtractedDocument:
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
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
#: A text has a stray control character at most.
MOST_CONTROLS = 0.02
#: How files begin that are often called something else: (bytes, what they are, their right ending).
BEGINNINGS = (
    (b"%PDF-", "a PDF", ".pdf"),
    (b"PK\x03\x04", "a Word document or an archive", ".docx"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document in the format of before 2007", ""),
    (b"\x89PNG", "a picture", ""),
    (b"\xff\xd8\xff", "a picture", ""),
    (b"GIF8", "a picture", ""),
    (b"{\\rtf", "a document in rich text format", ""),
)


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


def require_as_named(kind: FileKind, content: bytes, file_name: str) -> None:
    """Raise `FileNotAsNamed` when the bytes are of another kind than the name says; PDFs are their loader's to judge.

    Markup in a file of plain text is what it is; what cannot be text at all is refused.
    """
    if kind == "pdf":
        return
    ending = file_name[file_name.rfind(".") :].lower() if "." in file_name else "a text"
    for beginning, what, right in BEGINNINGS:
        if content.startswith(beginning) and not (kind == "docx" and right in ("", ".docx")):
            hint = f"Call it {right} and upload it again." if right else "Save it as a PDF or as text and upload that."
            raise FileNotAsNamed(f"This file is called {ending}, but it is {what}. {hint}")
    if kind != "docx" and _is_binary(content):
        raise FileNotAsNamed(f"This file is called {ending}, but it holds no text. Check that it is the right file.")


def _is_binary(content: bytes) -> bool:
    from rag.ingestion.loaders.text import decode

    text, _ = decode(content[:LOOKED_AT])
    return len(CONTROL.findall(text)) > len(text) * MOST_CONTROLS

"""Read a report's PDF."""

from __future__ import annotations

from io import BytesIO

from pypdf import PdfReader

from rag.records.digest import Digest
from rag.services import Services


def text_of_pdf(parts: Services, digest: Digest) -> str:
    """The words of a report's PDF, or of its e-mail while the packages for PDF exports are missing."""
    pdfs = parts.pdf_exports
    if pdfs is None or not pdfs.is_installed:
        return digest.as_text()
    pages = PdfReader(BytesIO(pdfs.write_report(digest))).pages
    return " ".join(" ".join(page.extract_text() for page in pages).split())

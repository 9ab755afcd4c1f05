"""Read a report's PDF."""

from __future__ import annotations

from io import BytesIO

from pypdf import PdfReader

from rag.records.digest import Digest
from rag.services import Services


def read_report_pdf(parts: Services, digest: Digest) -> PdfReader:
    assert parts.pdf_exports is not None
    return PdfReader(BytesIO(parts.pdf_exports.write_report(digest)))

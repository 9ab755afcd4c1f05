"""Small PDFs made in the test."""

from __future__ import annotations

import io

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas


def pdf(pages: tuple[tuple[str, ...], ...]) -> bytes:
    """A PDF with a line per text."""
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=A4)
    for lines in pages:
        for row, line in enumerate(lines):
            canvas.drawString(60, 780 - 24 * row, line)
        canvas.showPage()
    canvas.save()
    return written.getvalue()

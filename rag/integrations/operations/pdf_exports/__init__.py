"""PDF files: `report` writes a digest, `conversation` writes a conversation, and `document` has the fonts and pages."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="pdf_exports",
    title="PDF",
    packages=("fpdf2", "fonttools", "fontpkg-noto-sans", "fontpkg-noto-sans-arabic", "uharfbuzz"),
    report_pdf=f"{__name__}.report:digest_pdf",
    conversation_pdf=f"{__name__}.conversation:to_pdf",
)

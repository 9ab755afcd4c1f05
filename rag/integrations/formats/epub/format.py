"""Describe the format for books."""

from __future__ import annotations

from rag.ingestion.loaders.loader import Loader
from rag.ingestion.loaders.signatures import ZIP

FORMATS = (
    Loader(
        kind="epub",
        label="EPUB",
        named="a book (.epub)",
        media_type="application/epub+zip",
        endings=(".epub",),
        loads=f"{__package__}.book:load_epub",
        checks=f"{__package__}.book:check_epub",
        signature=ZIP,
        is_sure=lambda content: content[30:].startswith(b"mimetypeapplication/epub+zip"),
        is_text=False,
        after="pptx",
    ),
)

"""Draw pages of PDFs and images, only for people who may read the document.

Every call asks the database, even if the image is cached. Row-level security returns a document only within the tenant,
and only to groups with access to the collection. The sandbox draws an image at the first request.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from uuid import UUID

from rag.errors import NotFound
from rag.ingestion.document_rows import find_document
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.reading import may_be_pictures
from rag.storage.database import Database
from rag.storage.files import Originals
from rag.types import Document, Who

#: Cached pictures, each with some hundred kilobytes.
CACHED_IMAGES = 48
SMALLEST_SCALE, LARGEST_SCALE = 0.2, 4.0


class PageImages:
    """Render pages, and cache the latest images. Thread-safe."""

    def __init__(self, database: Database, files: Originals, sandbox: Sandbox) -> None:
        self._database = database
        self._files = files
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[UUID, int, str, str, float], bytes] = OrderedDict()

    def draw(
        self, who: Who, document_id: UUID, page: int, *, highlight: str = "", sentence: str = "", scale: float = 2.0
    ) -> bytes:
        """Render a page as PNG at `scale` times 72 dpi.

        The text `highlight` is highlighted, and the `sentence` in this text more strongly. Raises `NotFound` for a
        missing page or an unreadable document, `DocumentError` if rendering fails.
        """
        document = readable_document(self._database, who, document_id)
        if not may_be_pictures(document):
            raise NotFound("Only pages of PDFs can be shown as pictures. For other files, there is only the text.")
        if not 1 <= page <= max(document.page_count, 1):
            raise NotFound(f"This document has no page {page}.")
        scale = min(max(scale, SMALLEST_SCALE), LARGEST_SCALE)
        key = (document_id, page, highlight, sentence, scale)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        content = self._files.get(document.tenant_id, document.file_path)
        picture = self._sandbox.draw_page(
            content, page, highlight=highlight, sentence=sentence, scale=scale, tenant_id=document.tenant_id
        )
        with self._lock:
            self._kept[key] = picture
            while len(self._kept) > CACHED_IMAGES:
                self._kept.popitem(last=False)
        return picture

    def forget(self, document_id: UUID) -> None:
        """Remove a deleted document's images from the cache."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == document_id]:
                del self._kept[key]


def readable_document(database: Database, who: Who, document_id: UUID) -> Document:
    """Return a document. Raises `NotFound` if it does not exist or this person may not read it."""
    document = find_document(database, who, document_id)
    if document is None:
        raise NotFound("This document does not exist. It may have been deleted.")
    return document

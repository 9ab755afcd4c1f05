"""Pictures of pages, the last ones kept: a page script draws the same page again at every click."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from uuid import UUID

from rag.ingestion.sandbox import Sandbox

#: Pictures kept; one has some hundred kilobytes.
KEPT = 48


class PageImages:
    """Draws pages in the sandbox. Whether the asker may see the document is for the caller to decide, each time."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[UUID, int, str, float], bytes] = OrderedDict()

    def draw(
        self,
        document_id: UUID,
        page: int,
        content: Callable[[], bytes],
        *,
        highlight: str,
        scale: float,
        tenant_id: str = "",
    ) -> bytes:
        """The page as PNG; `content` is asked for the PDF only when the picture is not kept."""
        key = (document_id, page, highlight, scale)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        picture = self._sandbox.draw_page(content(), page, highlight=highlight, scale=scale, tenant_id=tenant_id)
        with self._lock:
            self._kept[key] = picture
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return picture

    def forget(self, document_id: UUID) -> None:
        """Keep nothing of a deleted document."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == document_id]:
                del self._kept[key]

"""Documents on their way through the pipeline: waits for what a worker does, and goes as far as the yes to the cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from rag.library.documents import DocumentLibrary
from rag.types import Collection, Document, DocumentStatus, Identity, PdfType, UploadOptions
from tests.patience import patient


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something that another thread or process brings about."""
    deadline = time.monotonic() + patient(seconds)
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.03)


def confirmed(
    library: DocumentLibrary,
    admin: Identity,
    collection: Collection,
    content: bytes,
    *,
    read: Callable[[str, UUID], object] | None = None,
    pdf_type: PdfType | None = None,
    file_name: str = "a.pdf",
) -> Document:
    """Upload a file and confirm its cost once it is estimated: read by `read`, else by the worker that runs."""
    document = library.upload(admin, collection, file_name, content, UploadOptions(pdf_type=pdf_type))
    if read is not None:
        read(document.tenant_id, document.id)
    else:
        until(lambda: library.get(document.tenant_id, document.id).status == DocumentStatus.ESTIMATED)
    library.confirm(admin, document.id)
    return library.get(document.tenant_id, document.id)

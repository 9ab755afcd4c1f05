"""Files of every kind through the whole pipeline, and the command that takes many."""

from __future__ import annotations

import io

import docx
import pytest

from rag.errors import FileKindUnknown
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.documents import DocumentLibrary
from rag.storage.database import Database
from rag.types import ChunkingMethod, Collection, UploadOptions


def word() -> bytes:
    document = docx.Document()
    document.add_heading("Leave", 1)
    document.add_paragraph("Everyone has 25 days of paid leave a year.")
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "method", "expected"),
    [
        ("rules.docx", word(), "smart", "25 days"),
        ("공지.html", "<h1>공지</h1><p>작성일: 2025-12-15</p>".encode("cp949"), "sentences", "작성일"),
        ("guide.md", b"# Guide\n\nText.\n\n# Use\n\nMore.", "markdown", "# Guide"),
        ("note.txt", "휴가는 25일입니다.".encode("utf-16"), "recursive", "25일"),
        (
            "robin_cv.txt",
            b"Experience\nNorthwind (Logistics) | Planner | Leeds | 2020 - 2022\nPlans.",
            "auto",
            "Northwind",
        ),
    ],
)
def test_a_file_becomes_passages(
    name: str,
    content: bytes,
    method: ChunkingMethod,
    expected: str,
    pipeline: IngestionPipeline,
    library: DocumentLibrary,
    collection: Collection,
    tenant: str,
) -> None:
    result = pipeline.process_document(
        file=content,
        file_name=name,
        tenant_id=tenant,
        collection=collection,
        options=UploadOptions(chunking_method=method),
    )
    chunks = library.chunks(tenant, result.document_id)
    assert expected in chunks[0].content
    assert result.chunk_count == len(chunks) > 0
    document = library.get(tenant, result.document_id)
    assert document.title == {"공지.html": "공지", "robin_cv.txt": "Robin cv"}.get(name, document.title)
    if name == "공지.html":
        assert document.metadata["backdated_at"].startswith("2025-12-15")
    if method == "auto":
        assert chunks[0].metadata["company"] == "Northwind"


def test_a_file_of_another_kind_is_refused_and_not_listed(
    pipeline: IngestionPipeline, library: DocumentLibrary, collection: Collection, tenant: str, database: Database
) -> None:
    with pytest.raises(FileKindUnknown):
        pipeline.process_document(file=b"\x00\x01", file_name="a.exe", tenant_id=tenant, collection=collection)
    assert library.list(tenant) == []

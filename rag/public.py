"""The pipeline as functions for programs: the HR document's names, on the services of this process."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from rag.answering.opinions import build_full_prompt
from rag.errors import InvalidInput
from rag.profile import Options
from rag.profiles import profile_of
from rag.services import services
from rag.types import (
    ChunkingMethod,
    Collection,
    ContextResponse,
    Document,
    Identity,
    PdfType,
    ProcessingResult,
    Question,
    Role,
)

__all__ = ["build_full_prompt", "delete_document", "list_documents", "process_document", "retrieve_context"]

#: The account behind calls made by programs on this machine.
PROGRAM = UUID(int=0)


def retrieve_context(
    *,
    query: str,
    tenant_id: str,
    top_k: int | None = None,
    language: str | None = None,
    collection: str | None = None,
    options: Options | None = None,
) -> ContextResponse:
    """Find the passages that answer `query` among one tenant's documents.

    `top_k` is how many are wanted, the profile's number when not given (5 for HR documents); `language` is the
    question's ISO 639-1 code, detected when not given; `collection` is a name or an id; when not given, it
    is the oldest HR collection with documents, else the oldest with any.
    `options` switch single steps for this call. What was paid is in the ledger and explained in the log. Raises
    `InvalidInput`, `NotFound`, `DatabaseUnavailable`.
    """
    if not query.strip():
        raise InvalidInput("The query is empty.")
    parts = services()
    chosen = _collection(tenant_id, collection)
    profile = profile_of(chosen)
    question = Question(text=query.strip(), identity=_program(tenant_id), collection=chosen)
    found = parts.searches.search(question, profile=profile, top_k=top_k, language=language, options=options)
    return found.response


def process_document(
    *,
    file: bytes | Path,
    tenant_id: str,
    file_name: str = "",
    chunking_method: ChunkingMethod | None = None,
    generate_metadata: bool = True,
    collection: str | None = None,
    pdf_type: PdfType | None = None,
) -> ProcessingResult:
    """Take a file (PDF, Word, HTML, Markdown, text) through the whole pipeline and return when it is searchable.

    `chunking_method` and `pdf_type` are the collection's own when not given. `pdf_type`: text is recognised on every
    page ("scanned"), on none ("digital") or where there is none ("auto").

    Raises `DocumentError` subclasses with the sentence for its reader, `ProviderError` when a provider fails.
    """
    name = file_name or (file.name if isinstance(file, Path) else "document.pdf")
    content = file.read_bytes() if isinstance(file, Path) else file
    return services().pipeline.process_document(
        file=content,
        file_name=name,
        tenant_id=tenant_id,
        collection=_collection(tenant_id, collection),
        chunking_method=chunking_method,
        generate_metadata=generate_metadata,
        pdf_type=pdf_type,
    )


def delete_document(document_id: UUID, tenant_id: str) -> None:
    """Delete a document with its pages, chunks, vectors and original. Raises `NotFound`."""
    services().documents.delete(_program(tenant_id), document_id)


def list_documents(tenant_id: str) -> list[Document]:
    """All documents of a tenant, newest first."""
    return services().documents.list(tenant_id)


def _collection(tenant_id: str, wanted: str | None) -> Collection:
    """The collection of that name or id, else the default one. Where there is none yet, the default one is made.

    Raises `InvalidInput` for one that is not there, `NotFound` for a tenant that nobody made.
    """
    parts = services()
    found = parts.documents.choose(tenant_id, wanted)
    if found is None and not parts.documents.collections(tenant_id):
        if tenant_id != parts.settings.tenant:
            parts.tenants.get(tenant_id)
        parts.documents.ensure_first_collection(tenant_id)
        found = parts.documents.choose(tenant_id, wanted)
    if found is None:
        known = ", ".join(collection.name for collection in parts.documents.collections(tenant_id))
        raise InvalidInput(f"Tenant {tenant_id} has no collection {wanted!r}; it has: {known}.")
    return found


def _program(tenant_id: str) -> Identity:
    return Identity(account_id=PROGRAM, tenant_id=tenant_id, email="", name="program", role=Role.ADMIN)

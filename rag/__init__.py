"""The HR Assistant's pipeline: answers from a company's documents, each claim with the page it comes from.

A question, in five lines:

1. `rag.answering` rewrites a question that leans on an earlier one, and chooses how to answer it.
2. `rag.retrieval` finds its language, translates it, and searches one tenant's chunks by meaning and by keyword.
3. It fuses and reranks the hits, judges whether they answer the question, and numbers the best within a token budget.
4. A model writes the answer from those chunks alone; each [n] in it is checked against its page.
5. Every step, what it took and what it cost is written to `chat_logs` and the cost ledger (`rag.records`, `rag.money`).

A document goes the other way: `rag.ingestion` reads it page by page, chunks, embeds and tags it, and publishes it in
one transaction.

The functions below are the pipeline for programs, by the names of the HR document, on the services of this process.
What they need is loaded at their first call, so importing `rag` costs nothing and needs no package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from rag.answering.opinions import build_full_prompt
    from rag.api.health import check_rag_health
    from rag.ingestion.chunking import chunk_document, chunk_text
    from rag.profile import Options
    from rag.providers.embeddings import generate_embedding, generate_embeddings_batch
    from rag.retrieval.language import detect_language_heuristic
    from rag.retrieval.reranker import is_reranking_enabled, rerank_results
    from rag.retrieval.translation import translate_query_if_needed
    from rag.types import ChunkingMethod, ContextResponse, Document, PdfType, ProcessingResult

__all__ = [  # noqa: RUF022 - grouped by stage, in the order of the story
    # Context retrieval
    "retrieve_context",
    "check_rag_health",
    # Document processing
    "process_document",
    "delete_document",
    "list_documents",
    # Embeddings
    "generate_embedding",
    "generate_embeddings_batch",
    # Chunking
    "chunk_text",
    "chunk_document",
    # Reranking
    "rerank_results",
    "is_reranking_enabled",
    # Query translation
    "translate_query_if_needed",
    "detect_language_heuristic",
    # Opinions
    "build_full_prompt",
]

#: The module of each name that is not below.
_HOME = {
    "check_rag_health": "rag.api.health",
    "generate_embedding": "rag.providers.embeddings",
    "generate_embeddings_batch": "rag.providers.embeddings",
    "chunk_text": "rag.ingestion.chunking",
    "chunk_document": "rag.ingestion.chunking",
    "rerank_results": "rag.retrieval.reranker",
    "is_reranking_enabled": "rag.retrieval.reranker",
    "translate_query_if_needed": "rag.retrieval.translation",
    "detect_language_heuristic": "rag.retrieval.language",
    "build_full_prompt": "rag.answering.opinions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rag' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def retrieve_context(
    *,
    query: str,
    tenant_id: str,
    top_k: int | None = None,
    language: str | None = None,
    collection: str | None = None,
    options: Options | None = None,
) -> ContextResponse:
    """Find the chunks that answer `query` among one tenant's documents.

    `top_k` is how many are wanted, the profile's number when not given (5 for HR documents); `language` is the
    question's ISO 639-1 code, detected when not given; `collection` is a name or an id; when not given, it
    is the oldest HR collection with documents, else the oldest with any.
    `options` switch single steps for this call. What was paid is in the ledger and explained in the log. Raises
    `InvalidInput`, `NotFound`, `DatabaseUnavailable`.
    """
    from rag.errors import InvalidInput
    from rag.profiles import profile_of
    from rag.services import program_of, services
    from rag.types import Question

    if not query.strip():
        raise InvalidInput("The query is empty.")
    parts = services()
    chosen = parts.choose_collection(tenant_id, collection)
    question = Question(text=query.strip(), identity=program_of(tenant_id), collection=chosen)
    found = parts.searches.search(question, profile=profile_of(chosen), top_k=top_k, language=language, options=options)
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
    from rag.services import services

    parts = services()
    return parts.pipeline.process_document(
        file=file if isinstance(file, bytes) else file.read_bytes(),
        file_name=file_name or ("document.pdf" if isinstance(file, bytes) else file.name),
        tenant_id=tenant_id,
        collection=parts.choose_collection(tenant_id, collection),
        chunking_method=chunking_method,
        generate_metadata=generate_metadata,
        pdf_type=pdf_type,
    )


def delete_document(document_id: UUID, tenant_id: str) -> None:
    """Delete a document with its pages, chunks, vectors and original. Raises `NotFound`."""
    from rag.services import program_of, services

    services().documents.delete(program_of(tenant_id), document_id)


def list_documents(tenant_id: str) -> list[Document]:
    """List all documents of a tenant, newest first."""
    from rag.services import services

    return services().documents.list(tenant_id)

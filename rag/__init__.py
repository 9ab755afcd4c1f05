"""The HR Assistant's pipeline: answers from a company's documents, each claim with the page it comes from.

A question, in five lines: `retrieve_context` detects its language and translates it if need be, searches one tenant's
passages by meaning and by keyword, fuses and reranks what it finds, and numbers the best within a token budget; the
answer is streamed from those passages alone, each [n] in it is checked against its page, and everything that was done,
what it took and what it cost is written to `chat_logs` and the cost ledger. A document goes the other way: extracted
page by page, chunked, embedded, tagged, and published in one transaction (`process_document`).

Names are loaded when first used, so that importing `rag` costs nothing and needs no package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag.answering.opinions import build_full_prompt
    from rag.api.health import check_rag_health
    from rag.ingestion.chunking import chunk_document, chunk_text
    from rag.providers.embeddings import generate_embedding, generate_embeddings_batch
    from rag.public import delete_document, list_documents, process_document, retrieve_context
    from rag.retrieval.query_analysis import detect_language_heuristic
    from rag.retrieval.query_translator import translate_query_if_needed
    from rag.retrieval.reranker import is_reranking_enabled, rerank_results

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

_HOME = {
    "retrieve_context": "rag.public",
    "process_document": "rag.public",
    "delete_document": "rag.public",
    "list_documents": "rag.public",
    "check_rag_health": "rag.api.health",
    "generate_embedding": "rag.providers.embeddings",
    "generate_embeddings_batch": "rag.providers.embeddings",
    "chunk_text": "rag.ingestion.chunking",
    "chunk_document": "rag.ingestion.chunking",
    "rerank_results": "rag.retrieval.reranker",
    "is_reranking_enabled": "rag.retrieval.reranker",
    "translate_query_if_needed": "rag.retrieval.query_translator",
    "detect_language_heuristic": "rag.retrieval.query_analysis",
    "build_full_prompt": "rag.public",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rag' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)

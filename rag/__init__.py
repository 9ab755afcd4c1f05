"""The HR Assistant's pipeline: answers from a company's documents, each claim with its source page.

A question, in five lines:

1. `rag.answering` rewrites a follow-up as a standalone question, and chooses how to answer it.
2. `rag.retrieval` finds its language, translates it, and searches a tenant's chunks by meaning and by keyword.
3. It fuses and reranks the hits, judges whether they answer the question, and numbers the best within a token budget.
4. A model writes the answer only from these chunks; each [n] in the answer is checked against its page.
5. Every step, its duration and its cost are written to `chat_logs` and the cost ledger (`rag.records`, `rag.money`).

A document goes the other way: `rag.ingestion` reads it page by page, chunks, embeds and tags it, and publishes it in
one transaction.

The functions below are the pipeline for programs, named like in the HR document, using this process's services. Their
modules are loaded at the first call, so importing `rag` costs nothing and needs no package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from uuid import UUID

    from rag.api.health import check_rag_health
    from rag.money.bill import Bill
    from rag.profiles import (
        DEFAULT_CHUNK_SIZE,
        DEFAULT_CHUNKING_OPTIONS,
        DEFAULT_EMBEDDING_MODEL,
        DEFAULT_MODEL,
        DEFAULT_OVERLAP,
        DEFAULT_TOP_K,
        SIMILARITY_THRESHOLD,
    )
    from rag.profiles.legal.opinions import build_full_prompt
    from rag.profiles.profile import Chunking, Options
    from rag.providers import ChatModel, Embedder, Reranker
    from rag.retrieval.reranker import is_reranking_enabled
    from rag.services import Services
    from rag.types import (
        Chunk,
        ChunkingMethod,
        Citation,
        ContextResponse,
        ContextSnippet,
        Document,
        DocumentChunk,
        FloatMatrix,
        Page,
        PdfType,
        ProcessingResult,
        RAGDetails,
        SearchResult,
        Section,
    )

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
    # Types
    "Document",
    "DocumentChunk",
    "SearchResult",
    "ContextSnippet",
    "Citation",
    "ContextResponse",
    "RAGDetails",
    # Constants
    "DEFAULT_CHUNKING_OPTIONS",
    "DEFAULT_CHUNK_SIZE",
    "DEFAULT_OVERLAP",
    "DEFAULT_EMBEDDING_MODEL",
    "DEFAULT_MODEL",
    "DEFAULT_TOP_K",
    "SIMILARITY_THRESHOLD",
]

#: The module for each name not defined below.
_HOME = {
    "check_rag_health": "rag.api.health",
    "is_reranking_enabled": "rag.retrieval.reranker",
    "build_full_prompt": "rag.profiles.legal.opinions",
    **dict.fromkeys(
        (
            "Document",
            "DocumentChunk",
            "SearchResult",
            "ContextSnippet",
            "Citation",
            "ContextResponse",
            "RAGDetails",
        ),
        "rag.types",
    ),
    **dict.fromkeys(
        (
            "DEFAULT_CHUNKING_OPTIONS",
            "DEFAULT_CHUNK_SIZE",
            "DEFAULT_OVERLAP",
            "DEFAULT_EMBEDDING_MODEL",
            "DEFAULT_MODEL",
            "DEFAULT_TOP_K",
            "SIMILARITY_THRESHOLD",
        ),
        "rag.profiles",
    ),
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

    `top_k` defaults to the profile's number (5 for HR documents). `language` is the question's ISO 639-1 code, detected
    by default. `collection` is a name or an id, by default the oldest HR collection with documents, else the oldest
    with any. `options` switch single steps for this call. The costs are in the ledger, and the steps in the log. Raises
    `InvalidInput`, `NotFound`, `DatabaseUnavailable`.
    """
    from rag.errors import InvalidInput
    from rag.profiles import profile_of
    from rag.profiles.profile import Options
    from rag.services import program_of, services
    from rag.types import Question

    text = _text("query", query).strip()
    if not text:
        raise InvalidInput("The query is empty.")
    parts = services()
    chosen = parts.choose_collection(tenant_id, collection)
    profile = profile_of(chosen)
    if top_k is not None:
        top_k = Options(top_k=top_k).applied_to(profile).search.top_k
    question = Question(text=text, identity=program_of(tenant_id), collection=chosen, language=language)
    retrieval = parts.searches.search(question, profile=profile, top_k=top_k, options=options)
    return retrieval.response


def process_document(
    *,
    file: bytes | str | Path | BinaryIO,
    tenant_id: str,
    file_name: str = "",
    chunking_method: ChunkingMethod | None = None,
    generate_metadata: bool = True,
    collection: str | None = None,
    pdf_type: PdfType | None = None,
) -> ProcessingResult:
    """Send a file (PDF, Word, Excel, HTML, text …) through the whole pipeline and return when it is searchable.

    `file` is bytes, a path, or a file opened in binary mode. `chunking_method` and `pdf_type` default to the
    collection's. `pdf_type` says on which pages text is recognised: on all ("scanned"), on none ("digital") or on pages
    without text ("auto").

    Raises `InvalidInput` for an invalid file or an unknown method, `DocumentError` subclasses with a sentence for
    readers, `ProviderError` if a provider fails.
    """
    from rag.services import services
    from rag.types import UploadOptions

    content, own_name = _read(file)
    parts = services()
    return parts.pipeline.process_document(
        file=content,
        file_name=file_name or own_name,
        tenant_id=tenant_id,
        collection=parts.choose_collection(tenant_id, collection),
        options=UploadOptions(chunking_method=chunking_method, generate_metadata=generate_metadata, pdf_type=pdf_type),
    )


def delete_document(document_id: UUID | str, tenant_id: str) -> None:
    """Delete a document with its pages, chunks, vectors and original, permanently. Raises `NotFound`."""
    from uuid import UUID

    from rag.errors import NotFound
    from rag.services import program_of, services

    try:
        document_uuid = UUID(str(document_id))
    except ValueError:
        raise NotFound(f"“{document_id}” is not the id of a document.") from None
    services().documents.delete(program_of(tenant_id), document_uuid)


def list_documents(tenant_id: str) -> list[Document]:
    """List a tenant's documents, newest first."""
    from rag.services import services

    return services().documents.list(tenant_id)


def generate_embedding(
    text: str,
    *,
    embedder: Embedder | None = None,
    tenant_id: str | None = None,
    collection: str | None = None,
    purpose: Literal["document", "query"] = "query",
) -> FloatMatrix:
    """Return a text's embedding: a float32 vector with length 1, shape (dimensions,).

    Uses `embedder`, else the embedder of the collection which a question of this tenant would search, else the default
    for new collections. The tenant defaults to RAG_TENANT. The call is recorded in the tenant's ledger. Raises
    `InvalidInput` for a text with only spaces, `ProviderError` if the provider fails.
    """
    vectors = generate_embeddings_batch(
        [text], embedder=embedder, tenant_id=tenant_id, collection=collection, purpose=purpose
    )
    vector: FloatMatrix = vectors[0]
    return vector


def generate_embeddings_batch(
    texts: Sequence[str],
    *,
    embedder: Embedder | None = None,
    tenant_id: str | None = None,
    collection: str | None = None,
    batch_size: int = 100,
    purpose: Literal["document", "query"] = "document",
) -> FloatMatrix:
    """Return the embeddings of many texts in order: float32, shape (texts, dimensions), each vector with length 1.

    Works like `generate_embedding`, with up to `batch_size` texts per request.
    """
    from rag.money.metered import MeteredEmbedder
    from rag.providers.embeddings import generate_embeddings_batch as embed

    texts = [_text("texts", text) for text in texts]
    parts, tenant = _at_work(tenant_id)
    used = embedder or _embedder(parts, tenant, collection)
    metered = MeteredEmbedder(used, _bill(parts, tenant))
    return embed(texts, embedder=metered, batch_size=batch_size, purpose=purpose).vectors


def chunk_text(
    text: str,
    *,
    method: ChunkingMethod = "smart",
    chunk_size: int | None = None,
    overlap: int | None = None,
    minimum_chunk_size: int | None = None,
    embedder: Embedder | None = None,
    file_name: str = "",
    limits: Chunking | None = None,
    tenant_id: str | None = None,
    collection: str | None = None,
) -> list[Chunk]:
    """Split a text into chunks with at most `chunk_size` characters.

    Sizes which are not given come from the method's source. The methods: `fixed` cuts by length, `smart` at paragraphs
    and sentences, `semantic` where the topic changes, `sentences` after sentences, `recursive` like LangChain, `paged`
    within pages, `generic` by paragraphs. `professional`, `narrative` and `markdown` fit résumés, stories and READMEs,
    and `auto` chooses by text and `file_name`. `semantic` embeds the sentences like `generate_embedding`, and is
    billed. Raises `InvalidInput` for contradictory sizes.
    """
    from rag.types import Page

    return chunk_document(
        [Page(number=1, text=_text("text", text))],
        method=method,
        chunk_size=chunk_size,
        overlap=overlap,
        minimum_chunk_size=minimum_chunk_size,
        embedder=embedder,
        file_name=file_name,
        limits=limits,
        tenant_id=tenant_id,
        collection=collection,
    )


def chunk_document(
    pages: Sequence[Page],
    sections: Sequence[Section] = (),
    *,
    method: ChunkingMethod = "smart",
    chunk_size: int | None = None,
    overlap: int | None = None,
    minimum_chunk_size: int | None = None,
    embedder: Embedder | None = None,
    file_name: str = "",
    limits: Chunking | None = None,
    tenant_id: str | None = None,
    collection: str | None = None,
) -> list[Chunk]:
    """Split a document into chunks with their pages, character span and section. Further arguments are as in
    `chunk_text`.
    """
    from rag.ingestion.chunking import DEFAULT_LIMITS
    from rag.ingestion.chunking import chunk_document as cut

    def chunks(used: Embedder | None) -> list[Chunk]:
        return cut(
            pages,
            sections,
            method=method,
            chunk_size=chunk_size,
            overlap=overlap,
            minimum_chunk_size=minimum_chunk_size,
            embedder=used,
            file_name=file_name,
            limits=limits or DEFAULT_LIMITS,
        )

    if method != "semantic":
        return chunks(embedder)
    from rag.money.metered import MeteredEmbedder

    parts, tenant = _at_work(tenant_id)
    used = embedder or _embedder(parts, tenant, collection)
    return chunks(MeteredEmbedder(used, _bill(parts, tenant), "chunking"))


def rerank_results(
    query: str,
    documents: Sequence[SearchResult],
    *,
    top_k: int | None = None,
    reranker: Reranker | None = None,
    template: str = "",
    tenant_id: str | None = None,
) -> list[SearchResult]:
    """Return the `top_k` most relevant results by the reranker, best first, with their `rerank_score`, 0 … 1.

    `documents` are search results, such as `retrieve_context(…).results`. The reranker reads each as `template`, with
    `{title}`, `{section}` and `{content}` filled in. The call is recorded in the tenant's ledger. Raises `InvalidInput`
    if `documents` are not search results, `SettingsError` without a reranker (`is_reranking_enabled`), `ProviderError`
    if the reranker does not answer.
    """
    from collections.abc import Iterable

    from rag.errors import InvalidInput, SettingsError
    from rag.money.metered import MeteredReranker
    from rag.profiles import DEFAULT
    from rag.retrieval.reranker import rerank_results as rerank
    from rag.types import SearchResult

    results = documents if isinstance(documents, Iterable) else [documents]
    if wrong_types := {type(document).__name__ for document in results if not isinstance(document, SearchResult)}:
        raise InvalidInput(
            "`documents` are search results, such as retrieve_context(…).results, and not "
            + " or ".join(sorted(wrong_types))
        )
    parts, tenant = _at_work(tenant_id)
    used = reranker or parts.providers.reranker_for(DEFAULT)
    if used is None:
        raise SettingsError("Nothing reranks here: set COHERE_API_KEY or RAG_CROSS_ENCODER.")
    metered = MeteredReranker(used, _bill(parts, tenant))
    return list(rerank(_text("query", query), documents, reranker=metered, limit=top_k, template=template).results)


def translate_query_if_needed(
    query: str,
    language: str,
    *,
    target_language: str = "en",
    model: ChatModel | None = None,
    tenant_id: str | None = None,
) -> str:
    """Return a question translated into `target_language`, or unchanged if it is already in this language.

    `language` is the question's ISO 639-1 code. The call is recorded in the tenant's ledger. A question which was
    translated before costs nothing. Raises `SettingsError` without a language model, `ProviderError` for an unusable
    answer.
    """
    from rag.errors import SettingsError
    from rag.money.metered import MeteredChatModel
    from rag.profiles import DEFAULT
    from rag.retrieval.translation import needs_translation
    from rag.retrieval.translation import translate_query_if_needed as translate

    query = _text("query", query)
    if not needs_translation(query, language, target_language):
        return query
    parts, tenant = _at_work(tenant_id)
    used = model or parts.providers.translation_model_for(DEFAULT)
    if used is None:
        raise SettingsError("No language model is configured to translate with: set OPENAI_API_KEY.")
    metered = MeteredChatModel(used, _bill(parts, tenant), "translation")
    return translate(query, language, target_language=target_language, model=metered).query


def detect_language_heuristic(text: str) -> str:
    """Return a text's language as an ISO 639-1 code by script and function words alone; "" if unclear.

    Raises `InvalidInput` for values other than text.
    """
    from rag.text.language_detection import detect_language_heuristic as detect

    return detect(_text("text", text))


def _text(name: str, value: object) -> str:
    """Remove the characters which Postgres cannot store from a text.

    Raises `InvalidInput` if the value is not a string.
    """
    from rag.errors import InvalidInput
    from rag.types import storable

    if not isinstance(value, str):
        raise InvalidInput(f"`{name}` has to be a text, not {type(value).__name__}.")
    return storable(value.replace("\0", ""))


def _read(file: bytes | str | Path | BinaryIO) -> tuple[bytes, str]:
    """Read a file and return its content and name. Raises `InvalidInput` if it cannot be read."""
    from pathlib import Path

    from rag.errors import InvalidInput

    if isinstance(file, bytes):
        return file, "document.pdf"
    if isinstance(file, str | Path):
        path = Path(file)
        try:
            return path.read_bytes(), path.name
        except OSError as exc:
            raise InvalidInput(f"{path} cannot be read: {exc.strerror}.") from exc
        except ValueError:
            raise InvalidInput("The path of the file contains a character that is not possible in a path.") from None
    content = file.read() if hasattr(file, "read") else None
    if not isinstance(content, bytes):
        raise InvalidInput("`file` is the content of a file, its path, or the file opened for reading bytes.")
    return content, Path(str(getattr(file, "name", ""))).name or "document.pdf"


def _at_work(tenant_id: str | None) -> tuple[Services, str]:
    """Return this process's services and the tenant's id. Without `tenant_id`, this is the tenant in the settings."""
    from rag.services import services

    parts = services()
    tenant = tenant_id or parts.settings.tenant
    if tenant != parts.settings.tenant:
        parts.tenants.get(tenant)
    return parts, tenant


def _embedder(parts: Services, tenant_id: str, collection: str | None) -> Embedder:
    from rag.profiles import DEFAULT

    if collection is not None:
        return parts.providers.embedder_for(parts.choose_collection(tenant_id, collection).embedding_model)
    default = parts.documents.choose(tenant_id, None)
    return parts.providers.embedder_for(
        default.embedding_model if default else parts.providers.default_embedder_id(DEFAULT)
    )


def _bill(parts: Services, tenant_id: str) -> Bill:
    from functools import partial

    from rag.money.bill import TenantBill

    return TenantBill(tenant_id, ledger=parts.ledger, prices=partial(parts.chat_logs.tenant_prices, tenant_id))

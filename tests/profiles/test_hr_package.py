"""The snippets of source 004, translated to Python one to one, on the product with the providers' stand-in."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints
from uuid import uuid4

import numpy as np
import pytest

import rag
from rag import (
    DEFAULT_CHUNK_SIZE,
    DEFAULT_CHUNKING_OPTIONS,
    DEFAULT_EMBEDDING_MODEL,
    DEFAULT_MODEL,
    DEFAULT_OVERLAP,
    DEFAULT_TOP_K,
    SIMILARITY_THRESHOLD,
)
from rag.errors import RagError, SettingsError
from rag.profiles.profile import Options
from rag.services import Services
from rag.types import Collection, Identity
from tests.hostile import leave_policy
from tests.standins.providers import ProviderStandin

#: "Main Exports" of the source, by their Python names.
EXPORTS = (
    "retrieve_context", "check_rag_health", "process_document", "delete_document", "list_documents",
    "generate_embedding", "generate_embeddings_batch", "chunk_text", "chunk_document", "rerank_results",
    "is_reranking_enabled", "translate_query_if_needed", "detect_language_heuristic",
)  # fmt: skip
TYPES = ("Document", "DocumentChunk", "SearchResult", "ContextSnippet", "Citation", "ContextResponse", "RAGDetails")
QUESTION = "What is the vacation policy?"
LONG = "Employees have 25 days of paid leave. They ask their manager for it. " * 60


@pytest.fixture
def policies(app_services: Services, admin: Identity) -> Collection:
    """The tenant's documents: one policy, in a collection on OpenAI's embedder."""
    made = app_services.documents.create_collection(admin, "Policies", "hr")
    rag.process_document(
        file=leave_policy(), file_name="leave.pdf", tenant_id="demo", chunking_method="smart", generate_metadata=True,
        collection="Policies",
    )  # fmt: skip
    return made


def ledger(parts: Services) -> list[tuple[str, str]]:
    with parts.database.transaction("demo") as connection:
        rows = connection.execute("SELECT operation, model FROM cost_ledger ORDER BY created_at, id").fetchall()
    return [(row[0], row[1]) for row in rows]


def test_every_export_type_and_constant_is_there_and_says_what_it_is() -> None:
    assert set(EXPORTS) | set(TYPES) <= set(rag.__all__)
    assert all(inspect.getdoc(getattr(rag, name)) for name in (*EXPORTS, *TYPES))
    assert dict(DEFAULT_CHUNKING_OPTIONS) == {
        "method": "smart", "chunk_size": 1000, "overlap": 200, "minimum_chunk_size": 100
    }  # fmt: skip
    assert DEFAULT_EMBEDDING_MODEL == DEFAULT_MODEL == "text-embedding-3-small"
    assert (DEFAULT_TOP_K, SIMILARITY_THRESHOLD, DEFAULT_CHUNK_SIZE, DEFAULT_OVERLAP) == (5, 0.7, 1000, 200)


def test_context_is_retrieved(policies: Collection) -> None:
    result = rag.retrieve_context(query=QUESTION, tenant_id="demo", top_k=5, language="en")
    assert result.context_text
    assert result.citations[0].title == "Leave"
    assert result.token_usage.input > 0
    assert result.cost > 0
    assert result.rag_details.query.original == QUESTION
    assert isinstance(result.snippets[0], rag.ContextSnippet)
    assert result.snippets[0].content in result.context_text
    assert rag.check_rag_health().ok


def test_texts_are_embedded_by_the_tenants_own_embedder_and_billed(
    app_services: Services, policies: Collection, provider_standin: ProviderStandin
) -> None:
    before = len(ledger(app_services))
    embedding = rag.generate_embedding("What is vacation policy?")
    assert embedding.shape == (1536,)
    assert np.linalg.norm(embedding) == pytest.approx(1, abs=1e-5)
    embeddings = rag.generate_embeddings_batch(["chunk 1 text", "chunk 2 text", "chunk 3 text"])
    assert embeddings.shape == (3, 1536)
    assert np.array_equal(rag.generate_embedding("chunk 2 text", purpose="document"), embeddings[1])
    assert ledger(app_services)[before:] == [("embedding", "text-embedding-3-small")] * 3
    # An embedder that is named comes first, and a free one is no bill.
    builtin = app_services.providers.embedder_for("builtin/lexical@1536")
    assert rag.generate_embedding("leave", embedder=builtin).shape == (1536,)
    assert len(ledger(app_services)) == before + 3


def test_texts_are_chunked_by_the_three_strategies(app_services: Services, policies: Collection) -> None:
    fixed = rag.chunk_text(LONG, method="fixed", chunk_size=1000, overlap=200)
    smart = rag.chunk_text(LONG, **DEFAULT_CHUNKING_OPTIONS)
    before = len(ledger(app_services))
    semantic = rag.chunk_text(LONG, method="semantic", chunk_size=1000)
    for chunks in (fixed, smart, semantic):
        assert len(chunks) > 3
        assert max(len(chunk.content) for chunk in chunks) <= 1000
    assert {operation for operation, _ in ledger(app_services)[before:]} == {"chunking"}


def test_documents_are_processed_listed_and_deleted(app_services: Services, admin: Identity) -> None:
    app_services.documents.create_collection(admin, "Policies", "hr")
    result = rag.process_document(
        file=leave_policy(), file_name="leave.pdf", tenant_id="demo", chunking_method="smart", generate_metadata=True
    )
    assert result.chunk_count > 0
    assert result.processing_time >= 0
    costs = result.costs
    assert None not in (costs.parsing, costs.chunking, costs.embedding, costs.metadata, costs.total)
    (document,) = rag.list_documents("demo")
    assert isinstance(document, rag.Document)
    assert document.id == result.document_id
    rag.delete_document(result.document_id, "demo")
    assert rag.list_documents("demo") == []


def test_a_file_is_taken_by_its_path_and_opened(app_services: Services, admin: Identity, tmp_path: Path) -> None:
    app_services.documents.create_collection(admin, "Policies", "hr")
    path = tmp_path / "leave.md"
    for number, way in enumerate(("path", "text", "opened"), start=1):
        path.write_text(f"# Leave\n\nEmployees have {number} days of leave.")
        with path.open("rb") as opened:
            file = {"path": path, "text": str(path), "opened": opened}[way]
            result = rag.process_document(file=file, tenant_id="demo", collection="Policies")  # type: ignore[arg-type]
        (document,) = [d for d in rag.list_documents("demo") if d.id == result.document_id]
        assert document.file_name == "leave.md"
        rag.delete_document(str(result.document_id), "demo")
    assert rag.list_documents("demo") == []


#: As a program calls them that no checker of types has read.
PROCESS: Any = rag.process_document
RERANK: Any = rag.rerank_results
RETRIEVE: Any = rag.retrieve_context
EMBED: Any = rag.generate_embedding
CHUNK: Any = rag.chunk_text
TRANSLATE: Any = rag.translate_query_if_needed
DETECT: Any = rag.detect_language_heuristic


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: PROCESS(file="/nowhere/leave.pdf", tenant_id="demo"),
            "/nowhere/leave.pdf cannot be read",
        ),
        (lambda: PROCESS(file="a\0b", tenant_id="demo"), "not possible in a path"),
        (lambda: PROCESS(file=io.StringIO("text"), tenant_id="demo"), "opened for reading bytes"),
        (lambda: PROCESS(file=None, tenant_id="demo"), "opened for reading bytes"),
        (
            lambda: PROCESS(file=leave_policy(), tenant_id="demo", chunking_method="clever"),
            "The splitting method “clever” does not exist. Choose one of: fixed, smart,",
        ),
        (
            lambda: PROCESS(file=leave_policy(), tenant_id="demo", pdf_type="paper"),
            "The kind of PDF “paper” does not exist. Choose one of: auto,",
        ),
        (lambda: rag.delete_document("nonsense", "demo"), "“nonsense” is not the id of a document."),
        (lambda: rag.delete_document(uuid4(), "demo"), "This does not exist"),
        (lambda: RERANK("vacation", ["one passage", "another"]), "search results.*and not str"),
        (lambda: RERANK("vacation", None), "search results.*and not NoneType"),
        (lambda: RETRIEVE(query=None, tenant_id="demo"), "`query` has to be a text, not NoneType"),
        (lambda: RETRIEVE(query="leave", tenant_id="demo", top_k=0), "Passages wanted cannot be 0"),
        (lambda: RETRIEVE(query="leave", tenant_id="demo", top_k="many"), "Passages wanted cannot be 'many'"),
        (lambda: EMBED(3), "not int"),
        (lambda: CHUNK(b"leave"), "not bytes"),
        (lambda: TRANSLATE(None, "nl"), "not NoneType"),
        (lambda: DETECT(None), "`text` has to be a text, not NoneType"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence_before_anything_is_stored(
    app_services: Services, admin: Identity, call: Callable[[], object], said: str
) -> None:
    app_services.documents.create_collection(admin, "Policies", "hr")
    with pytest.raises(RagError, match=said):
        call()
    assert rag.list_documents("demo") == []


def test_a_character_that_postgres_refuses_is_left_out_of_a_question(policies: Collection) -> None:
    plain, odd = (rag.retrieve_context(query=query, tenant_id="demo") for query in ("vacation", "vaca\0tion"))
    assert odd.rag_details.query.original == "vacation"
    assert [c.passage for c in odd.citations] == [c.passage for c in plain.citations]


def test_results_are_reranked(app_services: Services, policies: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    search_results = rag.retrieve_context(query="vacation policy", tenant_id="demo").results
    assert rag.is_reranking_enabled(app_services.settings)
    before = len(ledger(app_services))
    reranked = rag.rerank_results(query="vacation policy", documents=search_results, top_k=5)
    assert 0 < len(reranked) <= 5
    assert all(isinstance(result, rag.SearchResult) and result.rerank_score is not None for result in reranked)
    assert ledger(app_services)[before:] == [("reranking", "rerank-multilingual-v3.0")]
    monkeypatch.setattr(app_services.providers, "reranker_for", lambda profile: None)
    with pytest.raises(SettingsError, match="COHERE_API_KEY"):
        rag.rerank_results(query="vacation policy", documents=search_results)


def test_a_question_is_translated_or_it_is_said_why_not(
    app_services: Services, provider_standin: ProviderStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider_standin.reply(QUESTION)
    assert rag.translate_query_if_needed("Wat is het vakantiebeleid?", "nl") == QUESTION
    assert rag.detect_language_heuristic("Wat is het vakantiebeleid?") == "nl"
    assert rag.translate_query_if_needed(QUESTION, "en") == QUESTION
    assert ledger(app_services) == [("translation", "gpt-4o-mini")]
    monkeypatch.setattr(app_services.providers, "translation_model_for", lambda profile: None)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        rag.translate_query_if_needed("Hoeveel vakantiedagen heb ik?", "nl")


def test_the_sources_threshold_cuts_strictly_and_says_how_much(
    app_services: Services, admin: Identity, policies: Collection, provider_standin: ProviderStandin
) -> None:
    """`similarity > match_threshold`, 0.7, and its advice to lower it."""

    def search(**options: Any) -> tuple[int, int | None]:
        found = rag.retrieve_context(
            query=QUESTION, tenant_id="demo", options=Options(reranking=False, only_evidence=False, **options)
        )
        return len(found.results), found.rag_details.search.below_threshold

    everything, cut = search()
    assert (everything > 0, cut) == (True, None)
    assert search(similarity_threshold=0.999, strict_threshold=True) == (0, everything)
    assert search(similarity_threshold=-1.0, strict_threshold=True) == (everything, 0)
    # A collection's own setting does the same, until it is lowered.
    strict = {"threshold_mode": "absolute", "similarity_threshold": SIMILARITY_THRESHOLD, "strict_threshold": True}
    app_services.documents.override_collection(admin, policies.id, strict)
    kept, cut = search()
    assert kept + (cut or 0) == everything
    assert cut == everything - len(
        [r for r in rag.retrieve_context(query=QUESTION, tenant_id="demo").results if (r.similarity or 0) > 0.7]
    )


def test_details_have_every_field_of_the_interface() -> None:
    names = set(get_type_hints(rag.RAGDetails))
    assert {"query", "search", "reranking", "openai", "costs", "timing"} <= names

"""Source 004 from end to end: its Dutch question on an English policy, translated, searched, reranked, answered."""

from __future__ import annotations

from typing import Any

import pytest

from rag.profiles import AS_THE_SOURCE, profile_of
from rag.services import Services
from rag.types import Collection, DocumentStatus, Identity, Outcome, Question, UploadOptions
from tests.hostile import leave_policy
from tests.standins.providers import ProviderStandin

QUESTION = "Wat is het vakantiebeleid?"


def test_the_documents_own_question_is_translated_found_and_answered_with_its_costs(
    app_services: Services, admin: Identity, provider_standin: ProviderStandin, ask: Any
) -> None:
    collection: Collection = app_services.documents.create_collection(admin, "Policies", "hr")
    document = app_services.documents.upload(admin, collection, "leave.pdf", leave_policy())
    app_services.pipeline.run("demo", document.id)
    app_services.documents.confirm(admin, document.id)
    app_services.pipeline.run("demo", document.id)
    assert app_services.documents.get("demo", document.id).status is DocumentStatus.COMPLETED
    provider_standin.reply(
        lambda messages: (
            "What is the vacation policy? How many days of paid leave?"
            if "<passages>" not in str(messages)
            else "Iedereen heeft 25 dagen verlof [1]."
        )
    )
    _, message = ask(collection, QUESTION)
    assert message.outcome is Outcome.ANSWERED
    assert message.content == "Iedereen heeft 25 dagen verlof [1]."
    assert [citation["title"] for citation in message.citations] == ["Leave"]
    with app_services.database.transaction("demo") as connection:
        row = connection.execute("SELECT rag_details FROM chat_logs").fetchone()
    assert row is not None
    details = row[0]
    assert details["query"]["original"] == QUESTION
    assert details["query"]["translatedFrom"] == "nl"
    assert details["query"]["translatedQuery"].startswith("What is the vacation policy?")
    assert (details["reranking"]["enabled"], details["reranking"]["model"]) == (True, "rerank-multilingual-v3.0")
    assert details["openai"]["model"] == "gpt-4o"
    assert all(details["costs"][part] > 0 for part in ("embedding", "reranking", "translation", "openai", "total"))
    assert (message.cost or 0) > 0


def test_a_question_that_leans_on_the_conversation_is_searched_as_it_is_meant(
    app_services: Services, admin: Identity, provider_standin: ProviderStandin, ask: Any
) -> None:
    collection: Collection = app_services.documents.create_collection(admin, "Policies", "hr")
    app_services.pipeline.process_document(
        file=leave_policy(), file_name="leave.pdf", tenant_id="demo", collection=collection
    )
    live, _ = ask(collection, "How many days of paid leave are there?")
    provider_standin.reply(
        lambda messages: (
            "How many days of paid leave may be carried over?"
            if "stands alone" in str(messages[0]["content"])
            else "Up to five days [1]."
        )
    )
    _, message = ask(collection, "And carried over?", conversation_id=live.conversation_id)
    assert app_services.chat_logs.searched_as(admin, message.chat_log_id) == (
        "How many days of paid leave may be carried over?"
    )


def test_a_collection_as_its_source_is_reranked_once_a_question(
    app_services: Services, admin: Identity, provider_standin: ProviderStandin, ask: Any
) -> None:
    """Passages of both languages are found: reranked apart, unless the collection does as its document says."""
    collection = app_services.documents.create_collection(admin, "Policies", "hr")
    for name, file in (("leave.pdf", leave_policy()), ("verlof.txt", b"Het vakantiebeleid: 25 dagen verlof.")):
        app_services.pipeline.process_document(
            file=file,
            file_name=name,
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        )
    provider_standin.reply(lambda messages: "What is the vacation policy?")

    def reranks() -> int:
        provider_standin.requests.clear()
        ask(app_services.documents.collection("demo", collection.id), QUESTION)
        return sum(endpoint == "rerank" for endpoint, _ in provider_standin.requests)

    assert reranks() == 2
    app_services.documents.override_collection(admin, collection.id, {"rerank_each_wording": False})
    assert reranks() == 1
    assert AS_THE_SOURCE["hr"]["rerank_each_wording"] is False


def test_the_documents_price_of_a_rerank_is_set_and_counted(app_services: Services, admin: Identity) -> None:
    """004: $1 for 1000 searches; the price list has the vendor's $2."""
    collection = app_services.documents.create_collection(admin, "Policies", "hr")
    app_services.pipeline.process_document(
        file=leave_policy(),
        file_name="leave.pdf",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )

    def reranking() -> float:
        question = Question(text="How many days of paid leave?", identity=admin, collection=collection)
        found = app_services.searches.search(question, profile=profile_of(collection))
        return found.response.rag_details.costs.reranking

    assert reranking() == pytest.approx(0.002)
    app_services.prices.set(admin, "rerank-multilingual-v3.0", "search_unit", "0.001", None)
    assert reranking() == pytest.approx(0.001)


#: 004, "RAG Details Logging": the fields of each part.
RAG_DETAILS = {
    "query": "original expanded alternativeQueries translatedFrom translatedQuery",
    "search": "type vectorTopK finalTopK queries rawResults matchedTerms",
    "reranking": "enabled model inputDocuments outputDocuments latencyMs results",
    "openai": "model temperature systemPromptTokens inputTokens outputTokens streamingDurationMs",
    "costs": "embedding reranking translation openai total",
    "timing": "translationMs embeddingMs searchMs rerankingMs openaiMs totalMs",
}


def test_a_question_in_the_chat_is_logged_with_every_field_of_rag_details(
    app_services: Services, admin: Identity, provider_standin: ProviderStandin, ask: Any
) -> None:
    collection = app_services.documents.create_collection(admin, "Policies", "hr", is_as_source=True)
    app_services.documents.override_collection(admin, collection.id, {"similarity_threshold": 0.1})
    app_services.pipeline.process_document(
        file=leave_policy(),
        file_name="leave.pdf",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    provider_standin.reply(
        lambda messages: (
            "Iedereen heeft 25 dagen verlof [1]."
            if "<passages>" in str(messages)
            else "What is the vacation policy? How many days of paid leave?"
        )
    )
    ask(app_services.documents.collection("demo", collection.id), QUESTION)
    with app_services.database.transaction("demo") as connection:
        row = connection.execute("SELECT rag_details FROM chat_logs").fetchone()
    assert row is not None
    details = row[0]
    missing = {part: set(names.split()) - details[part].keys() for part, names in RAG_DETAILS.items()}
    assert missing == {part: set() for part in RAG_DETAILS}
    search, reranking = details["search"], details["reranking"]
    assert set(search["queries"][0]) == {"query", "embeddingMs", "searchMs", "resultCount"}
    assert set(search["rawResults"][0]) == {"chunkId", "documentId", "similarity", "preview"}
    assert set(reranking["results"][0]) == {"chunkId", "originalRank", "newRank", "score"}
    assert (search["type"], search["finalTopK"]) == ("vector", 5)
    assert details["openai"]["inputTokens"] > details["openai"]["systemPromptTokens"] > 0

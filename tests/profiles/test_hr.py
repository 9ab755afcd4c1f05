"""Source 004 from end to end: its Dutch question on an English policy, translated, searched, reranked, answered."""

from __future__ import annotations

from typing import Any

from rag.services import Services
from rag.types import Collection, DocumentStatus, Identity, Outcome
from tests.hostile import leave_policy
from tests.standin import ProviderStandin

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

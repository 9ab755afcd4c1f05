"""The whole way of a question over real HTTP: search, model, ledger, log, conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event
from uuid import UUID

import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from rag.answering.events import CitationsEvent, TextEvent
from rag.answering.jobs import LiveAnswers
from rag.answering.pipeline import Answerer
from rag.profiles import profile_of
from rag.providers.embeddings import generate_embeddings_batch
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import Conversations
from rag.retrieval.bm25.index import contextual_text, index_document
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, MessageState, Outcome, Question
from tests.answering.scripted import add_account, add_document
from tests.standins.providers import ProviderStandin

PAGES = (
    "Full-time employees receive 25 vacation days per calendar year.",
    "Parking at the office is free for all employees.",
    "Expenses are reimbursed within two weeks of the claim.",
)


def publish(database: Database, providers: Providers, collection: Collection, pages: Sequence[str] = PAGES) -> UUID:
    document_id = add_document(database, collection, *pages)
    embedder = providers.embedder_for(collection.embedding_model)
    texts = [contextual_text("Leave policy", "", page) for page in pages]
    vectors = generate_embeddings_batch(texts, embedder=embedder).vectors
    with database.transaction("demo") as connection:
        for index, (page, vector) in enumerate(zip(pages, vectors, strict=True)):
            connection.execute(
                "INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, embedding, chunk_index, "
                "embedding_model, first_page, last_page) "
                "VALUES (%s, 'demo', %s, %s, %s::vector::halfvec, %s, %s, %s, %s)",
                (document_id, collection.id, page, vector, index, embedder.id, index + 1, index + 1),
            )
        index_document(connection, tenant_id="demo", collection_id=collection.id, document_id=document_id)
    return document_id


def ask(database: Database, settings: Settings, collection: Collection, question: str) -> LiveAnswers:
    providers = Providers(settings)
    try:
        publish(database, providers, collection)
        chat_logs, conversations = ChatLogs(database), Conversations(database)
        answerer = Answerer(Retriever(database, providers), providers, chat_logs, settings)
        answers = LiveAnswers(answerer, conversations, database)
        identity = add_account(database, "demo", "somebody@example.org")
        live = answers.ask(Question(text=question, identity=identity, collection=collection))
        for _ in live.tail(every_seconds=0.01):
            pass
        message = conversations.messages(identity, live.conversation_id)[-1]
        assert message.content == live.text
        assert message.state is MessageState.COMPLETE
        assert message.outcome is Outcome.ANSWERED
        assert [c["first_page"] for c in message.citations if c["number"] == 1] == [1]
        return answers
    finally:
        providers.close()


def test_every_call_the_providers_counted_is_in_the_ledger_and_the_log(
    database: Database, collection: Collection, settings: Settings, provider_standin: ProviderStandin
) -> None:
    settings = replace(
        settings,
        openai_api_key="key",
        openai_base_url=provider_standin.openai_url,
        cohere_api_key="key",
        cohere_base_url=provider_standin.cohere_url,
    )
    ask(database, settings, collection, "How many vacation days do full-time employees receive?")
    with database.transaction("demo") as connection, connection.cursor(row_factory=dict_row) as cursor:
        ledger = cursor.execute("SELECT * FROM cost_ledger").fetchall()
        (log,) = cursor.execute("SELECT * FROM chat_logs").fetchall()
    counted = [(u["model"], u.get("input_tokens", 0), u.get("output_tokens", 0)) for u in provider_standin.usages]
    assert sorted((r["model"], r["input_tokens"], r["output_tokens"]) for r in ledger) == sorted(counted)
    assert log["cost"] == sum(r["cost"] for r in ledger) > 0
    assert abs(log["rag_details"]["costs"]["total"] - float(log["cost"])) < 1e-9
    assert "25 vacation days" in log["answer"]


def test_a_source_is_under_the_heading_below_which_it_says_what_it_is_cited_for(
    database: Database, collection: Collection, settings: Settings
) -> None:
    passage = (
        "1 Time off\n1.1 Vacation\nFull-time employees receive 25 vacation days per calendar year.\n"
        "1.2 Moving house\nWho moves house stays at home for the day. It is paid, and is asked for two weeks before."
    )
    sections = [
        {"title": title, "level": level, "page": 1, "start": passage.index(title)}
        for title, level in (("1 Time off", 1), ("1.1 Vacation", 2), ("1.2 Moving house", 2))
    ]
    providers = Providers(settings)
    document_id = publish(database, providers, collection, pages=(passage,))
    with database.transaction("demo") as connection:
        connection.execute(
            "UPDATE documents SET metadata = %s WHERE id = %s",
            (Jsonb({"sections": sections}), document_id),
        )
        connection.execute(
            "UPDATE document_chunks SET section = '1 Time off › 1.2 Moving house', end_character = %s", (len(passage),)
        )
    chat_logs, conversations = ChatLogs(database), Conversations(database)
    answerer = Answerer(Retriever(database, providers), providers, chat_logs, settings)
    answers = LiveAnswers(answerer, conversations, database)
    identity = add_account(database, "demo", "somebody@example.org")
    for question, heading in (
        ("How many vacation days do full-time employees receive?", "1 Time off › 1.1 Vacation"),
        ("Is moving house paid?", "1 Time off › 1.2 Moving house"),
    ):
        live = answers.ask(Question(text=question, identity=identity, collection=collection))
        for _ in live.tail(every_seconds=0.01):
            pass
        (source,) = conversations.messages(identity, live.conversation_id)[-1].citations
        assert source["section"] == heading
    providers.close()


def test_without_keys_the_documents_are_quoted_and_nothing_is_paid(
    database: Database, collection: Collection, settings: Settings
) -> None:
    ask(database, settings, collection, "How many vacation days do full-time employees receive?")
    with database.transaction("demo") as connection:
        paid = connection.execute("SELECT coalesce(sum(cost), 0) FROM cost_ledger").fetchone()
        (answer,) = connection.execute("SELECT answer FROM chat_logs").fetchone() or ("",)
    assert paid == (0,)
    assert answer.startswith("These are the documents' own words.")
    assert "“Full-time employees receive 25 vacation days per calendar year.” [1]" in answer


def test_an_answer_says_that_its_document_is_no_longer_or_not_yet_valid(
    database: Database, collection: Collection, settings: Settings
) -> None:
    providers = Providers(settings)
    document_id = publish(database, providers, collection)
    answerer = Answerer(Retriever(database, providers), providers, ChatLogs(database), settings)
    identity = add_account(database, "demo", "somebody@example.org")
    text = "How many vacation days do full-time employees receive?"
    question = Question(text=text, identity=identity, collection=collection)

    def notice(first: str | None, last: str | None) -> str:
        with database.transaction("demo") as connection:
            parameters = (first, last, document_id)
            connection.execute("UPDATE documents SET valid_from = %s, valid_until = %s WHERE id = %s", parameters)
        events = list(answerer.answer(question, profile=profile_of(collection), cancel=Event()))
        (ending,) = [event for event in events if isinstance(event, CitationsEvent)]
        assert ending.citations
        return ending.notice

    try:
        assert "was valid until 2020-05-03" in notice(None, "2020-05-03")
        assert "is valid from 2999-01-01 on" in notice("2999-01-01", None)
        assert "valid" not in notice("2020-05-03", "2999-01-01")
    finally:
        providers.close()


def test_a_sentence_that_only_points_to_a_section_is_followed_there(
    database: Database, collection: Collection, settings: Settings
) -> None:
    """The section shares no word with the question: the search does not find it, the sentence leads to it."""
    keyless = replace(settings, builtin_embedder="lexical")
    pages = (
        "Sabbatical entitlement is described in section 5.2.",
        "5.2 Longer absences\nAfter ten years of service staff may be away for four weeks at full pay.",
        "5.20 Parking\nParking at the office is free.",
    )
    providers = Providers(keyless)
    try:
        publish(database, providers, collection, pages)
        answerer = Answerer(Retriever(database, providers), providers, ChatLogs(database), keyless)
        identity = add_account(database, "demo", "reader@example.org")
        question = Question(text="What is the sabbatical entitlement?", identity=identity, collection=collection)
        events = list(answerer.answer(question, profile=profile_of(collection), cancel=Event()))
    finally:
        providers.close()
    text = "".join(event.text for event in events if isinstance(event, TextEvent))
    assert "“After ten years of service staff may be away for four weeks at full pay.”" in text
    assert "section 5.2" not in text
    cited = next(event.citations for event in events if isinstance(event, CitationsEvent))
    assert [citation.first_page for citation in cited] == [2]


@pytest.mark.parametrize(
    ("other", "is_said"),
    [
        ("Business trips abroad are approved by the board of directors.", True),
        ("Business trips abroad are approved by the head of department.", False),
    ],
)
def test_documents_that_differ_are_quoted_both_and_it_is_said(
    database: Database, collection: Collection, settings: Settings, other: str, is_said: bool
) -> None:
    keyless = replace(settings, builtin_embedder="lexical")
    providers = Providers(keyless)
    first = "Business trips abroad are approved by the head of department."
    try:
        for page in (first, other):
            publish(database, providers, collection, [page, *PAGES[1:]])
        answerer = Answerer(Retriever(database, providers), providers, ChatLogs(database), keyless)
        identity = add_account(database, "demo", "traveller@example.org")
        question = Question(text="Who approves business trips abroad?", identity=identity, collection=collection)
        events = list(answerer.answer(question, profile=profile_of(collection), cancel=Event()))
    finally:
        providers.close()
    text = "".join(event.text for event in events if isinstance(event, TextEvent))
    assert ("The documents differ here" in text) == is_said
    assert first in text.replace("**", "")
    assert (text.replace("**", "").count("abroad are approved") == 2) == is_said

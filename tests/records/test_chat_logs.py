from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

import pytest

from rag.money.ledger import Ledger
from rag.records.chat_logs import ChatLogs, QuestionEnd, to_json
from rag.storage.database import Database
from rag.types import (
    Charge,
    Collection,
    CostDetails,
    Identity,
    OpenAIDetails,
    Outcome,
    QueryDetails,
    Question,
    RAGDetails,
    RawResultDetails,
    RerankedResultDetails,
    RerankingDetails,
    Role,
    SearchDetails,
    SearchQueryDetails,
    TimingDetails,
    Usage,
)

PROGRAM = Identity(account_id=uuid4(), tenant_id="demo", email="", name="", role=Role.ADMIN, user_group="office")


def test_full_details_are_the_hr_documents_json() -> None:
    details = RAGDetails(
        query=QueryDetails(
            original="Wat?", expanded=["a"], alternative_queries=["b"], translated_from="nl", translated_query="What?"
        ),
        search=SearchDetails(
            type="vector",
            vector_top_k=20,
            final_top_k=5,
            queries=[SearchQueryDetails(query="What?", embedding_ms=1.5, search_ms=2.5, result_count=3)],
            raw_results=[RawResultDetails(chunk_id="c", document_id="d", similarity=0.5, preview="p")],
            matched_terms=["m"],
        ),
        reranking=RerankingDetails(
            enabled=True,
            model="r",
            input_documents=20,
            output_documents=5,
            latency_ms=9.0,
            results=[RerankedResultDetails(chunk_id="c", original_rank=3, new_rank=1, score=0.9)],
        ),
        openai=OpenAIDetails(
            model="g",
            temperature=0.2,
            system_prompt_tokens=1,
            input_tokens=2,
            output_tokens=3,
            streaming_duration_ms=4.0,
        ),
        costs=CostDetails(embedding=0.1, reranking=0.2, translation=0.3, openai=0.4, total=1.0),
        timing=TimingDetails(
            translation_ms=1.0, embedding_ms=2.0, search_ms=3.0, reranking_ms=4.0, openai_ms=5.0, total_ms=15.0
        ),
    )
    assert to_json(details) == {
        "query": {
            "original": "Wat?",
            "expanded": ["a"],
            "alternativeQueries": ["b"],
            "translatedFrom": "nl",
            "translatedQuery": "What?",
        },
        "search": {
            "type": "vector",
            "vectorTopK": 20,
            "finalTopK": 5,
            "queries": [{"query": "What?", "embeddingMs": 1.5, "searchMs": 2.5, "resultCount": 3}],
            "rawResults": [{"chunkId": "c", "documentId": "d", "similarity": 0.5, "preview": "p"}],
            "matchedTerms": ["m"],
        },
        "reranking": {
            "enabled": True,
            "model": "r",
            "inputDocuments": 20,
            "outputDocuments": 5,
            "latencyMs": 9.0,
            "results": [{"chunkId": "c", "originalRank": 3, "newRank": 1, "score": 0.9}],
        },
        "openai": {
            "model": "g",
            "temperature": 0.2,
            "systemPromptTokens": 1,
            "inputTokens": 2,
            "outputTokens": 3,
            "streamingDurationMs": 4.0,
        },
        "costs": {"embedding": 0.1, "reranking": 0.2, "translation": 0.3, "openai": 0.4, "total": 1.0},
        "timing": {
            "translationMs": 1.0,
            "embeddingMs": 2.0,
            "searchMs": 3.0,
            "rerankingMs": 4.0,
            "openaiMs": 5.0,
            "totalMs": 15.0,
        },
    }


@pytest.mark.parametrize(
    ("costs", "total"),
    [([], Decimal(0)), (["0.1", "0.00000002"], Decimal("0.10000002")), (["0.1", None], None)],
    ids=["nothing paid", "added up", "one without a price"],
)
def test_the_cost_of_a_question_is_the_sum_of_its_ledger(
    database: Database, collection: Collection, costs: list[str | None], total: Decimal | None
) -> None:
    logs, ledger = ChatLogs(database), Ledger(database)
    log_id = logs.open(Question(text="Vacation?", identity=PROGRAM, collection=collection))
    for cost in costs:
        paid = Charge(
            operation="chat",
            usage=Usage(provider="p", model="m", input_tokens=1),
            cost=None if cost is None else Decimal(cost),
        )
        ledger.record("demo", paid, chat_log_id=log_id)
        ledger.record("demo", paid, chat_log_id=uuid4())
    closed = logs.close(
        "demo", log_id, QuestionEnd(outcome=Outcome.ANSWERED, answer="25", details=RAGDetails(), total_ms=7)
    )
    assert closed == total


def test_what_programs_ask_is_not_taken_for_dead_while_it_may_live_and_no_call_is_charged_twice(
    database: Database, collection: Collection
) -> None:
    """Another process begins while a command waits for a slow model: it must not close what is under way."""
    logs, ledger = ChatLogs(database), Ledger(database)
    log_id = logs.open(Question(text="Vacation?", identity=PROGRAM, collection=collection), kind="evaluation")
    usage = Usage(provider="p", model="m", input_tokens=10, is_estimated=True)
    call_id = ledger.begin("demo", log_id, "chat", "answer", usage)
    paid = Charge(operation="chat", usage=replace(usage, output_tokens=5, is_estimated=False), cost=Decimal(1))

    def age(seconds: int) -> None:
        with database.transaction("demo") as connection:
            connection.execute("UPDATE chat_logs SET created_at = created_at - make_interval(secs => %s)", (seconds,))

    age(60)
    assert logs.close_abandoned("demo") == 0
    age(600)
    assert logs.close_abandoned("demo") == 1
    for _ in range(2):
        ledger.finish("demo", [(paid, call_id)], chat_log_id=log_id)
    other = ledger.begin("demo", log_id, "chat", "answer", usage)
    for _ in range(2):
        ledger.finish("demo", [(paid, other)], chat_log_id=log_id)
    with database.transaction("demo") as connection:
        rows = connection.execute(
            "SELECT output_tokens, is_estimated FROM cost_ledger ORDER BY output_tokens"
        ).fetchall()
    assert rows == [(0, True), (5, False)]


def test_a_program_without_an_account_is_logged_too(database: Database, collection: Collection) -> None:
    log_id = ChatLogs(database).open(Question(text="Vacation?", identity=PROGRAM, collection=collection))
    with database.transaction("demo") as connection:
        row = connection.execute("SELECT account_id, user_group, outcome FROM chat_logs").fetchall()
    assert row == [(None, "office", None)]
    assert ChatLogs(database).close_abandoned("demo", quiet_seconds=0) == 1
    with database.transaction("demo") as connection:
        closed = connection.execute("SELECT id, outcome FROM chat_logs").fetchall()
    assert closed == [(log_id, "failed")]

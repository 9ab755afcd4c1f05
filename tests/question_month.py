"""A month of questions, answers and costs, written through SQL; the same for the same seed.

For the analytics page's tests and for looking at it. Texts are invented for this purpose.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

from psycopg import Connection

from rag.storage.database import Database

QUESTIONS = (
    ("en", "How many days of annual leave do I have after five years?", 0),
    ("en", "Can I carry unused leave over to next year?", 0),
    ("nl", "Hoeveel dagen ouderschapsverlof krijg ik?", 1),
    ("ko", "육아휴직은 얼마나 쓸 수 있나요?", 1),
    ("de", "Wie reiche ich Reisekosten ein?", 2),
    ("en", "What is the daily allowance for meals abroad?", 2),
    ("en", "Which dental treatments are covered?", 3),
    ("es", "¿Cuándo empieza la cobertura del seguro médico?", 3),
    ("en", "Do I need a doctor's note for two days of sick leave?", 0),
    ("en", "How is overtime paid on public holidays?", 4),
)
UNANSWERED = (
    ("en", "Is there a parking space for visitors?"),
    ("en", "When does the canteen open on Fridays?"),
    ("fr", "Puis-je amener mon chien au bureau ?"),
)
TITLES = ("Leave policy", "Parental leave guide", "Travel and expenses", "Benefits guide", "Employee handbook")
GROUPS = ("Sales", "Engineering", "Operations", "Finance")

DOCUMENT = """
INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, page_count)
VALUES (%s, %s, %s, %s, %s, 'completed', 24) RETURNING id
"""
CHUNK = """
INSERT INTO document_chunks
    (document_id, tenant_id, collection_id, content, chunk_index, first_page, last_page, section, tokens)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 180) RETURNING id
"""
QUESTION = """
INSERT INTO chat_logs (tenant_id, user_group, collection_id, question, answer, language, outcome, error, model,
    document_ids, rag_details, cost, is_priced, first_token_ms, total_ms, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id
"""
CHARGE = """
INSERT INTO cost_ledger (tenant_id, operation, provider, model, input_tokens, output_tokens, search_units, cost,
    document_id, chat_log_id, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
FEEDBACK = "INSERT INTO feedback (tenant_id, chat_log_id, rating, comment, created_at) VALUES (%s, %s, %s, %s, %s)"


def write_month(
    database: Database,
    tenant_id: str,
    collection_id: UUID,
    *,
    until: date,
    days: int = 60,
    questions_per_day: int = 18,
    seed: int = 7,
) -> list[UUID]:
    """Write `days` days that end with `until`; the ids of the questions, oldest first."""
    chance = random.Random(seed)
    with database.transaction(tenant_id) as connection:
        documents = [_document(connection, tenant_id, collection_id, title, until, days) for title in TITLES]
        written = []
        for back in range(days - 1, -1, -1):
            day = until - timedelta(days=back)
            busy = 0.35 if day.weekday() >= 5 else 1.0 + 0.4 * (1 - back / days)
            for _ in range(max(1, round(questions_per_day * busy * chance.uniform(0.7, 1.3)))):
                at = datetime.combine(day, time(chance.randint(7, 18), chance.randint(0, 59)), UTC)
                written.append(_question(connection, tenant_id, collection_id, documents, chance, at))
    return written


def _document(
    connection: Connection, tenant_id: str, collection_id: UUID, title: str, until: date, days: int
) -> tuple[UUID, list[UUID]]:
    file_name = f"{title.lower().replace(' ', '_')}.pdf"
    document_id = _id(connection, DOCUMENT, (tenant_id, collection_id, title, file_name, f"sha-{title}"))
    chunks = [
        _id(
            connection,
            CHUNK,
            (document_id, tenant_id, collection_id, f"{title}, passage {n}.", n, n + 1, n + 1, f"{n + 1} Terms"),
        )
        for n in range(6)
    ]
    added = datetime.combine(until - timedelta(days=days // 3), time(9), UTC)
    charge = (tenant_id, "embedding", "openai", "text-embedding-3-small", 21_000, 0, 0, Decimal("0.00042"))
    connection.execute(CHARGE, (*charge, document_id, None, added))
    connection.execute(
        CHARGE,
        (tenant_id, "tagging", "openai", "gpt-4o-mini", 9_000, 900, 0, Decimal("0.00189"), document_id, None, added),
    )
    return document_id, chunks


def _question(
    connection: Connection,
    tenant_id: str,
    collection_id: UUID,
    documents: list[tuple[UUID, list[UUID]]],
    chance: random.Random,
    at: datetime,
) -> UUID:
    outcome = chance.choices(("answered", "no_context", "stopped", "failed"), (86, 9, 3, 2))[0]
    language, text, about = chance.choice(QUESTIONS)
    if outcome == "no_context":
        language, text = chance.choice(UNANSWERED)
    ms = {
        "translation": chance.uniform(350, 700) if language != "en" else 0.0,
        "embedding": chance.uniform(60, 160),
        "search": chance.uniform(6, 30),
        "reranking": chance.uniform(180, 420),
        "model": chance.lognormvariate(7.6, 0.35) if outcome in ("answered", "stopped") else 0.0,
    }
    total = sum(ms.values()) + chance.uniform(20, 60)
    used = [] if outcome in ("no_context", "failed") else [documents[about]]
    if used and chance.random() < 0.3:
        used.append(chance.choice([d for d in documents if d is not documents[about]]))
    charges = _charges(ms, outcome, chance)
    known = sum((c[-1] for c in charges if c[-1] is not None), Decimal(0))
    chat_log_id = _id(
        connection,
        QUESTION,
        (
            tenant_id,
            chance.choice(GROUPS),
            collection_id,
            text,
            "Full-time staff have **25 days** a year [1]; after five years 27 days [2]." if used else "",
            language,
            outcome,
            "The provider cannot be reached at the moment. Try again in a moment." if outcome == "failed" else "",
            "gpt-4o",
            [document_id for document_id, _ in used],
            json.dumps(_rag_details(text, language, documents, about, ms, total, charges, chance)),
            known,
            all(c[-1] is not None for c in charges),
            round(total - ms["model"] + chance.uniform(250, 500)) if used else None,
            round(total),
            at,
        ),
    )
    for operation, provider, model, tokens_in, tokens_out, units, cost in charges:
        connection.execute(
            CHARGE,
            (tenant_id, operation, provider, model, tokens_in, tokens_out, units, cost, None, chat_log_id, at),
        )
    if used and chance.random() < 0.35:
        helpful = int(chance.random() < 0.8)
        comment = "" if helpful else "The amount is from last year."
        connection.execute(FEEDBACK, (tenant_id, chat_log_id, helpful, comment, at))
    return chat_log_id


Call = tuple[str, str, str, int, int, int, Decimal | None]


def _charges(ms: dict[str, float], outcome: str, chance: random.Random) -> list[Call]:
    calls: list[Call] = []
    if ms["translation"]:
        calls.append(("translation", "openai", "gpt-4o-mini", 90, 20, 0, Decimal("0.0000255")))
    calls.append(("embedding", "openai", "text-embedding-3-small", 14, 0, 0, Decimal("0.00000028")))
    calls.append(("reranking", "cohere", "rerank-multilingual-v3.0", 0, 0, 1, Decimal("0.002")))
    if ms["model"]:
        tokens_in, tokens_out = chance.randint(1500, 2600), chance.randint(90, 320)
        if chance.random() < 0.04:
            calls.append(("chat", "openai", "house-model-1", tokens_in, tokens_out, 0, None))
        else:
            cost = Decimal(tokens_in) * Decimal("0.0000025") + Decimal(tokens_out) * Decimal("0.00001")
            calls.append(("chat", "openai", "gpt-4o", tokens_in, tokens_out, 0, cost))
    return calls


def _rag_details(
    text: str,
    language: str,
    documents: list[tuple[UUID, list[UUID]]],
    about: int,
    ms: dict[str, float],
    total: float,
    charges: list[Call],
    chance: random.Random,
) -> dict[str, object]:
    passages = [(d, c) for d, chunks in (documents[about], documents[(about + 1) % 5]) for c in chunks[:4]]
    similarities = sorted((chance.uniform(0.28, 0.82) for _ in passages), reverse=True)
    order = list(range(len(passages)))
    chance.shuffle(order)
    cost = {c[0]: float(c[-1] or 0) for c in charges}
    chat = next((c for c in charges if c[0] == "chat"), None)
    return {
        "query": {
            "original": text,
            "expanded": [],
            "alternativeQueries": [],
            "translatedFrom": None if language == "en" else language,
            "translatedQuery": None if language == "en" else "How many days of leave do I get?",
        },
        "search": {
            "type": "hybrid",
            "vectorTopK": 20,
            "finalTopK": 5,
            "queries": [
                {"query": text, "embeddingMs": ms["embedding"], "searchMs": ms["search"], "resultCount": len(passages)}
            ],
            "rawResults": [
                {
                    "chunkId": str(chunk),
                    "documentId": str(document),
                    "similarity": round(similarity, 4),
                    "preview": "Full-time staff are entitled to 25 working days of annual leave, accrued monthly.",
                }
                for (document, chunk), similarity in zip(passages, similarities, strict=True)
            ],
            "matchedTerms": ["leave", "days"],
        },
        "reranking": {
            "enabled": True,
            "model": "rerank-multilingual-v3.0",
            "inputDocuments": len(passages),
            "outputDocuments": 5,
            "latencyMs": ms["reranking"],
            "results": [
                {
                    "chunkId": str(passages[place][1]),
                    "originalRank": place + 1,
                    "newRank": new + 1,
                    "score": round(0.96 - 0.13 * new, 3),
                }
                for new, place in enumerate(order[:5])
            ],
        },
        "openai": {
            "model": "gpt-4o" if chat else "",
            "temperature": 0.2,
            "systemPromptTokens": 412 if chat else 0,
            "inputTokens": chat[3] if chat else 0,
            "outputTokens": chat[4] if chat else 0,
            "streamingDurationMs": ms["model"] * 0.8,
        },
        "costs": {
            "embedding": cost.get("embedding", 0.0),
            "reranking": cost.get("reranking", 0.0),
            "translation": cost.get("translation", 0.0),
            "openai": cost.get("chat", 0.0),
            "total": sum(cost.values()),
        },
        "timing": {
            "translationMs": ms["translation"],
            "embeddingMs": ms["embedding"],
            "searchMs": ms["search"],
            "rerankingMs": ms["reranking"],
            "openaiMs": ms["model"],
            "totalMs": total,
        },
    }


def _id(connection: Connection, statement: str, parameters: tuple[object, ...]) -> UUID:
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None
    found: UUID = row[0]
    return found

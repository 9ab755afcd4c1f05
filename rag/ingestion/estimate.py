"""What processing a document would cost, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rag.ingestion import chunk_tags as chunk_tagging
from rag.ingestion import tagging
from rag.ingestion.counted import Counted
from rag.prices import charge, estimate_tokens
from rag.providers import ChatModel, Embedder
from rag.retrieval.keywords import contextual_text
from rag.types import Chunk, ChunkingMethod, CostEstimate, ProcessingCosts, Usage

NOTHING_COUNTED = Counted()
#: A tagged document's answer, until there are answers to go by. Written out for two handbooks and counted with o200k:
#: 87 and 118.
TAG_OUTPUT_TOKENS = 110
#: One chunk's: a sentence, up to eight keywords and two fields; reckoned, not measured.
CHUNK_TAG_OUTPUT_TOKENS = 70


def estimate_costs(
    title: str,
    text: str,
    pages: int,
    chunks: Sequence[Chunk],
    *,
    method: ChunkingMethod,
    embedder: Embedder,
    tagger: ChatModel | None,
    prices: Mapping[str, Any],
    chunk_tags: Sequence[str] = (),
    recognition: Usage | None = None,
    counted: Counted = NOTHING_COUNTED,
) -> CostEstimate:
    """The cost of each step. Tokens are estimated from exactly what will be sent, and corrected by what was counted.

    A semantic cut embeds every sentence once more. A model without a known price gives None, never 0.
    """
    embedding_tokens = sum(
        estimate_tokens(contextual_text(title, chunk.section, chunk.content), model=embedder.model) for chunk in chunks
    )
    if method == "semantic":
        embedding_tokens += estimate_tokens(text, model=embedder.model)
    tokens = counted.embedding(embedding_tokens)
    embedding: Decimal | None = Decimal(0)
    if embedder.is_paid:
        usage = Usage(provider=embedder.provider, model=embedder.model, input_tokens=tokens)
        embedding = charge("embedding", usage, prices).cost
    metadata: Decimal | None = Decimal(0)
    tagging_tokens = 0
    if tagger is not None:
        tagging_tokens = tokens_sent(title, text, chunks, chunk_tags, tagger.model)
        usage = Usage(
            provider=tagger.provider,
            model=tagger.model,
            input_tokens=counted.tagging(tagging_tokens),
            output_tokens=tokens_answered(len(chunks) if chunk_tags else 0, counted),
        )
        metadata = charge("tagging", usage, prices).cost
    zero = Decimal(0)
    parsing = charge("ocr", recognition, prices).cost if recognition is not None else zero
    return CostEstimate(
        pages=pages,
        characters=len(text),
        tokens=tokens,
        embedding_tokens=embedding_tokens,
        tagging_tokens=tagging_tokens,
        chunks=len(chunks),
        parsing=parsing,
        chunking=Decimal(0),
        embedding=embedding,
        metadata=metadata,
        total=None
        if None in (parsing, embedding, metadata)
        else sum(filter(None, (parsing, embedding, metadata)), zero),
    )


def tokens_sent(title: str, text: str, chunks: Sequence[Chunk], chunk_tags: Sequence[str], model: str) -> int:
    """Input tokens of all tagging calls of a document: its own, and one for each chunk where chunks have tags."""
    calls = [tagging.messages_for(title, text)]
    if chunk_tags:
        calls += [chunk_tagging.messages_for_chunk(chunk.content) for chunk in chunks]
    return sum(estimate_tokens(message.content, model=model) for messages in calls for message in messages)


def tokens_answered(tagged_chunks: int, counted: Counted) -> int:
    """Output tokens of all tagging calls of a document."""
    if counted.answer_tokens is not None:
        return round(float(counted.answer_tokens) * (1 + tagged_chunks))
    return TAG_OUTPUT_TOKENS + CHUNK_TAG_OUTPUT_TOKENS * tagged_chunks


def amounts_to_json(value: CostEstimate | ProcessingCosts) -> dict[str, Any]:
    """Amounts as JSON: dollars as strings, exact; null where no price is known."""
    return {name: str(amount) if isinstance(amount, Decimal) else amount for name, amount in asdict(value).items()}

"""What processing a document would cost, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rag.ingestion import chunk_tags as chunk_tagging
from rag.ingestion.tagging import MAXIMUM_OUTPUT_TOKENS, SYSTEM, TAGGED_CHARACTERS
from rag.prices import charge, estimate_tokens
from rag.providers import ChatModel, Embedder
from rag.retrieval.keywords import contextual_text
from rag.types import Chunk, ChunkingMethod, CostEstimate, ProcessingCosts, Usage

#: A tagged document's answer. Written out for two handbooks and counted with o200k: 87 and 118; no real model's yet.
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
) -> CostEstimate:
    """The cost of each step. Tokens are estimated; the ledger will hold what the provider counted.

    A semantic cut embeds every sentence once more. A model without a known price gives None, never 0.
    """
    tokens = sum(estimate_tokens(contextual_text(title, chunk.section, chunk.content)) for chunk in chunks)
    if method == "semantic":
        tokens += estimate_tokens(text)
    embedding: Decimal | None = Decimal(0)
    if embedder.is_paid:
        usage = Usage(provider=embedder.provider, model=embedder.model, input_tokens=tokens)
        embedding = charge("embedding", usage, prices).cost
    metadata: Decimal | None = Decimal(0)
    if tagger is not None:
        tagged = written = 0
        if chunk_tags:
            tagged = sum(estimate_tokens(chunk_tagging.SYSTEM + chunk.content) for chunk in chunks)
            written = CHUNK_TAG_OUTPUT_TOKENS * len(chunks)
        usage = Usage(
            provider=tagger.provider,
            model=tagger.model,
            input_tokens=estimate_tokens(SYSTEM + text[:TAGGED_CHARACTERS]) + tagged,
            output_tokens=min(TAG_OUTPUT_TOKENS, MAXIMUM_OUTPUT_TOKENS) + written,
        )
        metadata = charge("tagging", usage, prices).cost
    zero = Decimal(0)
    parsing = charge("ocr", recognition, prices).cost if recognition is not None else zero
    return CostEstimate(
        pages=pages,
        characters=len(text),
        tokens=tokens,
        chunks=len(chunks),
        parsing=parsing,
        chunking=Decimal(0),
        embedding=embedding,
        metadata=metadata,
        total=None
        if None in (parsing, embedding, metadata)
        else sum(filter(None, (parsing, embedding, metadata)), zero),
    )


def amounts_to_json(value: CostEstimate | ProcessingCosts) -> dict[str, Any]:
    """Amounts as JSON: dollars as strings, exact; null where no price is known."""
    return {name: str(amount) if isinstance(amount, Decimal) else amount for name, amount in asdict(value).items()}

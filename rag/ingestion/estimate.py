"""Estimate the cost of processing a document before anything is spent.

Estimates are corrected by the tenant's earlier documents, because tokenizers count differently and the length of a
model's answers cannot be predicted from the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from rag.ingestion import tagging
from rag.ingestion.document_jobs import DocumentJob
from rag.money.ledger import amounts_to_json
from rag.money.price_list import charge, price_overrides
from rag.providers import ChatModel, Embedder
from rag.retrieval.bm25.index import contextual_text
from rag.storage.database import Database
from rag.text.tokens import estimate_tokens
from rag.types import Chunk, ChunkingMethod, CostEstimate, Usage

#: A correction outside these limits has a different cause than the tokenizer, such as a repeated embedding.
LEAST_RATIO, LARGEST_RATIO = 0.4, 2.5
#: The deviation of a bill from its estimate: for a tenant's first document (five HR PDFs were 28 % low), and the
#: minimum for later documents.
FIRST_SPREAD, LEAST_SPREAD = 0.3, 0.1
#: The range in standard deviations which holds 95 % of documents.
DEVIATIONS = 2


@dataclass(frozen=True)
class EstimateCorrection:
    """Corrections learned from earlier documents; `None` if unknown.

    A ratio is billed tokens divided by estimated tokens. `answer_tokens` is the mean length of a tagging answer. A
    deviation is the standard deviation over documents, divided by the mean; `None` for less than two documents.
    """

    embedding_ratio: Decimal | None = None
    tagging_ratio: Decimal | None = None
    answer_tokens: Decimal | None = None
    embedding_deviation: Decimal | None = None
    tagging_deviation: Decimal | None = None
    answer_deviation: Decimal | None = None

    @property
    def embedding_spread(self) -> Decimal:
        """Return the expected relative error of the estimate for embedding."""
        return _spread(self.embedding_ratio, self.embedding_deviation)

    @property
    def tagging_spread(self) -> Decimal:
        """Return the expected relative error of the estimate for tagging."""
        return max(
            _spread(self.tagging_ratio, self.tagging_deviation), _spread(self.answer_tokens, self.answer_deviation)
        )

    def embedding(self, tokens: int) -> int:
        """Convert estimated to billed tokens for embedding."""
        return _correct(tokens, self.embedding_ratio)

    def tagging(self, tokens: int) -> int:
        """Convert estimated to billed input tokens for tagging."""
        return _correct(tokens, self.tagging_ratio)


def find_correction(
    database: Database, job: DocumentJob, embedder: Embedder, tagger: ChatModel | None
) -> EstimateCorrection:
    """Return the corrections learned from the tenant's latest documents processed with the same models.

    The length of tagging answers is learned from the same collection, else from collections with the same profile.
    """
    parameters = {
        "collection_id": job.collection.id,
        "embedding_model": embedder.model,
        "tagging_model": tagger.model if tagger is not None else "",
    }
    return (
        database.fetch_one(job.document.tenant_id, "estimate_correction", EstimateCorrection, **parameters)
        or EstimateCorrection()
    )


def estimate_work(database: Database, job: DocumentJob, work: PlannedWork) -> dict[str, Any]:
    """Estimate the cost at the tenant's prices, and return the estimate in JSON."""
    correction = find_correction(database, job, work.embedder, work.tagger)
    return amounts_to_json(estimate_costs(work, price_overrides(database, job.document.tenant_id), correction))


def costs_money(estimate: Mapping[str, Any] | None) -> bool:
    """Whether a stored estimate is above zero or has an unknown price."""
    total = (estimate or {}).get("total", "0")
    return total is None or Decimal(str(total)) != 0


def _spread(learned: Decimal | None, deviation: Decimal | None) -> Decimal:
    if learned is None:
        return Decimal(str(FIRST_SPREAD))
    return min(Decimal(1), max(Decimal(str(LEAST_SPREAD)), DEVIATIONS * (deviation or Decimal(0))))


def _correct(tokens: int, ratio: Decimal | None) -> int:
    return tokens if ratio is None else round(tokens * min(max(float(ratio), LEAST_RATIO), LARGEST_RATIO))


NO_CORRECTION = EstimateCorrection()
#: Tokens which introduce a schema to the model.
SCHEMA_TOKENS_AROUND = 9
#: Letters counted as a word in languages without blanks between words, such as Japanese.
CHARACTERS_OF_A_WORD = 2.0
#: Longer average words mean that words are written without blanks.
LONGEST_WORD = 12.0
#: Tokens per word, for a document without words.
TOKENS_A_WORD = 1.3
WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, kw_only=True)
class PlannedWork:
    """The texts of a document which will be sent to models, and these models."""

    title: str
    text: str
    #: The number of pages.
    pages: int
    chunks: Sequence[Chunk]
    #: Chunking by topic also embeds every sentence.
    method: ChunkingMethod = "smart"
    embedder: Embedder
    #: The model for summary, topics and tags; `None` without tagging.
    tagger: ChatModel | None = None
    #: The fields tagged in every chunk, with their allowed values.
    chunk_tags: Sequence[str] = ()
    tag_values: Sequence[tuple[str, str]] = ()
    #: The expected usage for text recognition.
    recognition: Usage | None = None


def estimate_costs(
    work: PlannedWork, prices: Mapping[str, Any], correction: EstimateCorrection = NO_CORRECTION
) -> CostEstimate:
    """Estimate the cost for each step from the tokens sent to models.

    The cost is `None`, never 0, if a model has no known price.
    """
    embedder, tagger, text = work.embedder, work.tagger, work.text
    embedding_tokens = sum(
        estimate_tokens(contextual_text(work.title, chunk.section, chunk.content), model=embedder.model)
        for chunk in work.chunks
    )
    cutting_tokens = estimate_tokens(text, model=embedder.model) if work.method == "semantic" else 0
    tokens = correction.embedding(embedding_tokens + cutting_tokens)
    embedding: Decimal | None = Decimal(0)
    chunking: Decimal | None = Decimal(0)
    if embedder.is_paid:
        cut = correction.embedding(cutting_tokens)
        usage = Usage(provider=embedder.provider, model=embedder.model, input_tokens=tokens - cut)
        embedding = charge("embedding", usage, prices).cost
        if cut:
            chunking = charge("chunking", replace(usage, input_tokens=cut), prices).cost
    metadata: Decimal | None = Decimal(0)
    tagging_tokens = 0
    if tagger is not None:
        tagging_tokens = tokens_sent(work, tagger.model)
        usage = Usage(
            provider=tagger.provider,
            model=tagger.model,
            input_tokens=correction.tagging(tagging_tokens),
            output_tokens=tokens_answered(
                text, len(work.chunks) if work.chunk_tags else 0, work.chunk_tags, tagger.model, correction
            ),
        )
        metadata = charge("tagging", usage, prices).cost
    parsing = charge("ocr", work.recognition, prices).cost if work.recognition is not None else Decimal(0)
    total = low = high = None
    if parsing is not None and chunking is not None and embedding is not None and metadata is not None:
        total = parsing + chunking + embedding + metadata
        spread = (chunking + embedding) * correction.embedding_spread + metadata * correction.tagging_spread
        low, high = total - spread, total + spread
    return CostEstimate(
        pages=work.pages,
        characters=len(text),
        tokens=tokens,
        embedding_tokens=embedding_tokens + cutting_tokens,
        tagging_tokens=tagging_tokens,
        chunks=len(work.chunks),
        parsing=parsing,
        chunking=chunking,
        embedding=embedding,
        metadata=metadata,
        total=total,
        low=low,
        high=high,
    )


def tokens_sent(work: PlannedWork, model: str) -> int:
    """Estimate the input tokens for tagging: a call for the document, and a call for each chunk to tag."""
    calls = [(tagging.messages_for_document(work.title, work.text), tagging.DOCUMENT_SCHEMA)]
    if work.chunk_tags:
        schema, vocabulary = tagging.tag_schema(work.chunk_tags), tagging.vocabulary_of(work.tag_values)
        calls += [(tagging.messages_for_chunk(chunk.content, vocabulary), schema) for chunk in work.chunks]
    tokens = sum(estimate_tokens(message.content, model=model) for messages, _ in calls for message in messages)
    return tokens + sum(tokens_of_schema(schema, model) for _, schema in calls)


def tokens_of_schema(schema: Mapping[str, Any], model: str) -> int:
    """Estimate the tokens of a JSON schema. OpenAI does not count `required` (cookbook, issue 2140)."""
    counted = {name: part for name, part in schema.items() if name not in ("required", "additionalProperties")}
    return estimate_tokens(json.dumps(counted, separators=(",", ":")), model=model) + SCHEMA_TOKENS_AROUND


def tokens_answered(
    text: str, tagged_chunks: int, fields: Sequence[str], model: str, correction: EstimateCorrection
) -> int:
    """Estimate the output tokens for tagging from earlier answers, else from the word limits in the prompts."""
    if correction.answer_tokens is not None:
        return round(float(correction.answer_tokens) * (1 + tagged_chunks))
    a_word = tokens_a_word(text[: tagging.TAGGED_CHARACTERS], model)
    document_tokens = tagging.DOCUMENT_ANSWER_TOKENS_AROUND + tagging.DOCUMENT_ANSWER_WORDS * a_word
    words = tagging.CHUNK_ANSWER_WORDS + tagging.FIELD_WORDS * len(fields)
    around = tagging.CHUNK_ANSWER_TOKENS_AROUND + tagging.FIELD_TOKENS_AROUND * len(fields)
    return round(document_tokens + tagged_chunks * (around + words * a_word))


def tokens_a_word(text: str, model: str) -> float:
    """Estimate the tokens per word in a text, ignoring numbers."""
    words = WORD.findall(text)
    if not words:
        return TOKENS_A_WORD
    characters = sum(map(len, words))
    count = characters / CHARACTERS_OF_A_WORD if characters / len(words) > LONGEST_WORD else len(words)
    return estimate_tokens(" ".join(words), model=model) / count

"""Measure a collection's similarity threshold: the cosine above which a chunk is evidence for an answer.

Cosines depend on the embedder and the subject. A fixed threshold is too high or too low for many collections. No
questions have to be written: a sentence taken from a chunk is the question, and the rest of the chunk is the answer
(inverse cloze task, Lee et al. 2019).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from rag.errors import InvalidInput
from rag.money.metered import MeteredEmbedder
from rag.providers import Embedder
from rag.providers.embeddings import generate_embeddings_batch
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.retrieval.bm25.index import contextual_text
from rag.storage.database import Database, queries
from rag.types import Collection, FloatMatrix

#: Passages to examine; with 100, the fifth percentile varies by about .02.
SAMPLED_PASSAGES = 100
LEAST_PASSAGES = 8
LEAST_CHARACTERS = 300
SENTENCE_CHARACTERS = (40, 300)
#: Percentile, between a sentence and the remaining passage, used for the threshold: 95 % have a higher cosine. Real
#: questions are safe: with the built-in embedder in eight languages, their fifth percentile is 1.4 to 4 times higher,
#: because a question shares words with its passage which the remaining passage lacks.
PERCENTILE = 5
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]?")


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A measured threshold, and the cosines from which it was computed."""

    threshold: float
    default: float
    #: Fifth percentile and median cosine between sentences and the remaining passage.
    related: tuple[float, float]
    #: Median and 95th percentile cosine between sentences and other passages.
    unrelated: tuple[float, float]
    #: Share of sentences, 0 … 1, with a different passage above the threshold.
    mistaken: float
    embedding_model: str
    passages: int


def calibrate(database: Database, collection: Collection, embedder: Embedder) -> Calibration:
    """Measure a collection's threshold and return it without storing. Embeds about 200 short texts.

    Raises `InvalidInput` if the collection has too little text or the embedder only compares words, and `ProviderError`
    if the embedder fails.
    """
    if embedder.provider == "builtin":
        raise InvalidInput("The built-in model only compares words. It cannot measure how similar the meaning is.")
    with database.transaction(collection.tenant_id) as connection:
        rows = connection.execute(
            queries["passages_to_calibrate"],
            {
                "tenant_id": collection.tenant_id,
                "collection_id": collection.id,
                "least_characters": LEAST_CHARACTERS,
                "wanted": SAMPLED_PASSAGES,
            },
        ).fetchall()
    pairs = [(pair, section, title) for content, section, title in rows if (pair := cloze(content)) is not None]
    if len(pairs) < LEAST_PASSAGES:
        raise InvalidInput(f"{collection.name} has too little text: {LEAST_PASSAGES} longer passages are needed.")
    questions = generate_embeddings_batch([pair[0] for pair, _, _ in pairs], embedder=embedder, purpose="query")
    answers = generate_embeddings_batch(
        [contextual_text(title, section, pair[1]) for pair, section, title in pairs], embedder=embedder
    )
    cosines = questions.vectors @ answers.vectors.T
    related = np.diag(cosines)
    unrelated = cosines[~np.eye(len(pairs), dtype=bool)]
    low, middle = np.percentile(related, [PERCENTILE, 50])
    threshold = round(max(0.0, float(low)), 3)
    return Calibration(
        threshold=threshold,
        default=embedder.default_threshold,
        related=(round(float(low), 3), round(float(middle), 3)),
        unrelated=(
            round(float(np.percentile(unrelated, 50)), 3),
            round(float(np.percentile(unrelated, 95)), 3),
        ),
        mistaken=round(float(np.mean(unrelated >= threshold)), 3),
        embedding_model=embedder.id,
        passages=len(pairs),
    )


class Calibrations:
    """Measures thresholds for administrators and records the costs."""

    def __init__(self, database: Database, providers: Providers, chat_logs: ChatLogs) -> None:
        self._database = database
        self._providers = providers
        self._chat_logs = chat_logs

    def embed_questions(self, collection: Collection, texts: Sequence[str]) -> FloatMatrix:
        """Embed questions with the collection's embedder; the cost is charged to the collection. Raises
        `ProviderError`.
        """
        return generate_embeddings_batch(texts, embedder=self._embedder(collection), purpose="query").vectors

    def measure(self, collection: Collection, *, keep: bool = True) -> Calibration:
        """Measure a collection's threshold, and store it if `keep` is true. Raises the errors from `calibrate`."""
        calibration = calibrate(self._database, collection, self._embedder(collection))
        if keep and not keep_calibration(self._database, collection.tenant_id, collection.id, calibration):
            raise InvalidInput("The search model of the collection has changed. Measure again.")
        return calibration

    def _embedder(self, collection: Collection) -> Embedder:
        embedder = self._providers.embedder_for(collection.embedding_model)
        return MeteredEmbedder(embedder, self._chat_logs.bill_for(collection))


def keep_calibration(database: Database, tenant_id: str, collection_id: UUID, calibration: Calibration) -> bool:
    """Store the measured threshold with the collection. The profile decides whether the threshold is used.

    Returns `False`, and stores nothing, if the collection's embedding model has changed.
    """
    changed = database.execute(
        tenant_id,
        "note_calibration",
        collection_id=collection_id,
        threshold=calibration.threshold,
        embedding_model=calibration.embedding_model,
        passages=calibration.passages,
    )
    return bool(changed)


def cloze(content: str) -> tuple[str, str] | None:
    """Return (sentence, rest of the chunk) for a sentence near the middle; `None` without a sentence of suitable
    length.
    """
    least, most = SENTENCE_CHARACTERS
    sentences: Sequence[re.Match[str]] = [
        match for match in _SENTENCE.finditer(content) if least <= len(match.group().strip()) <= most
    ]
    if not sentences:
        return None
    chosen = sentences[len(sentences) // 2]
    rest = f"{content[: chosen.start()]} {content[chosen.end() :]}".strip()
    return (chosen.group().strip(), rest) if rest else None

"""What providers counted for earlier documents, beside what had been estimated for them: it corrects the next estimate.

Each tokenizer counts in its own way, and how long a model's answers are is not in the text that it is asked about.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from rag.ingestion.work import Work
from rag.providers import ChatModel, Embedder
from rag.storage.database import Database

#: A correction beyond these would be of another cause than a tokenizer: a document embedded several times over.
LEAST_RATIO, LARGEST_RATIO = 0.4, 2.5


@dataclass(frozen=True)
class Counted:
    """Tokens counted for each token estimated, and the tokens of a tagging answer. None where nothing is known yet."""

    embedding_ratio: Decimal | None = None
    tagging_ratio: Decimal | None = None
    answer_tokens: Decimal | None = None

    def embedding(self, tokens: int) -> int:
        """As many tokens as the provider of the vectors will count."""
        return _corrected(tokens, self.embedding_ratio)

    def tagging(self, tokens: int) -> int:
        """As many tokens as the provider of the tags will count in what it is sent."""
        return _corrected(tokens, self.tagging_ratio)


def counted_before(database: Database, work: Work, embedder: Embedder, tagger: ChatModel | None) -> Counted:
    """What the tenant's latest documents with these models tell; of answers, those of the collection or its profile."""
    parameters = {
        "collection_id": work.collection.id,
        "embedding_model": embedder.model,
        "tagging_model": tagger.model if tagger is not None else "",
    }
    return database.fetch_one(work.document.tenant_id, "counted_before", Counted, **parameters) or Counted()


def _corrected(tokens: int, ratio: Decimal | None) -> int:
    return tokens if ratio is None else round(tokens * min(max(float(ratio), LEAST_RATIO), LARGEST_RATIO))

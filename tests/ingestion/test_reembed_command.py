"""`python -m rag reembed` in processes of its own, and such a process killed again and again."""

from __future__ import annotations

import os
import random
import re
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.retrieval.hybrid_search import SearchQuery, vector_search
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, Scope, UploadOptions
from tests import hostile
from tests.forked import forked_python, kill
from tests.kill_storm import PROJECT
from tests.patience import patient
from tests.standins.providers import ProviderStandin

OLD, NEW = "openai/text-embedding-3-small@256", "openai/text-embedding-3-large@512"
Command = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def shelf(
    database: Database, files: FileStore, settings: Settings, sandbox: Sandbox, provider_standin: ProviderStandin
) -> Collection:
    """A collection of two documents in batches of three, embedded with the old model."""
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO collections (tenant_id, name, profile, embedding_model, language, overrides) "
            "VALUES ('demo', 'Shelf', 'hr', %s, 'en', '{\"embedding_batch_size\": 3}')",
            (OLD,),
        )
    found = database.fetch_all("demo", "find_collections", Collection, collection_id=None, collection_name="Shelf")
    pipeline = IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)
    for pages in (6, 10):
        pipeline.process_document(
            file=hostile.long_document(pages),
            file_name=f"{pages}.pdf",
            tenant_id="demo",
            collection=found[0],
            options=UploadOptions(generate_metadata=False),
        )
    provider_standin.reset()
    return found[0]


@pytest.fixture
def reembed(settings: Settings, provider_standin: ProviderStandin, database: Database, owner_conninfo: str) -> Command:
    environment = {
        **os.environ,
        "DATABASE_URL": database.conninfo,
        "MIGRATION_DATABASE_URL": owner_conninfo,
        "RAG_DATA_DIR": str(settings.data_dir),
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": provider_standin.openai_url,
    }

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [*forked_python(), "-m", "rag", "reembed", "--tenant", "demo", "--collection", "Shelf", *arguments]
        return subprocess.Popen(
            command, env=environment, cwd=PROJECT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


def outcome(process: subprocess.Popen[str], answer: str = "") -> tuple[int, str]:
    with process:
        said, trouble = process.communicate(answer, timeout=patient(60))
    return process.returncode, said + trouble


def models(database: Database) -> list[tuple[str, int]]:
    with database.transaction("demo") as connection:
        return connection.execute(
            "SELECT embedding_model || ' ' || vector_dims(embedding), count(*) FROM document_chunks GROUP BY 1"
        ).fetchall()


def test_the_cost_is_shown_and_refused_then_the_collection_moves_back_and_forth(
    shelf: Collection, reembed: Command, database: Database, provider_standin: ProviderStandin
) -> None:
    [(_, chunks)] = models(database)
    code, said = outcome(reembed("--model", NEW), "n\n")
    assert code == 1
    assert f"{OLD} to {NEW}, {chunks} passages" in said
    assert re.search(r"about \$0\.0\d+ \(between \$0\.0\d+ and \$0\.0\d+\)", said)
    assert provider_standin.calls["embeddings"] == 0

    code, said = outcome(reembed("--model", NEW), "y\n")
    assert (code, models(database)) == (0, [(f"{NEW} 512", chunks)]), said
    paid = provider_standin.calls["embeddings"]
    assert paid > 0

    code, said = outcome(reembed("--undo", "--yes"))
    assert (code, models(database)) == (0, [(f"{OLD} 256", chunks)]), said
    assert "0 passages, 0 tokens, about $0.0000" in said
    assert outcome(reembed("--model", NEW, "--yes"))[0] == 0
    assert provider_standin.calls["embeddings"] == paid

    assert outcome(reembed("--clean-up"))[0] == 0
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM spare_vectors").fetchone() == (0,)
    code, said = outcome(reembed("--undo"))
    assert code == 1
    assert "nothing to undo" in said


def test_killed_again_and_again_it_pays_once_and_searches_meet_one_model_only(
    shelf: Collection, reembed: Command, database: Database, provider_standin: ProviderStandin
) -> None:
    [(_, chunks)] = models(database)
    wrong: list[str] = []
    done = threading.Event()

    def search() -> None:
        """Every question finds as many passages as ever, with whichever model the collection has at that moment."""
        scope = Scope(tenant_id="demo", collection_ids=(shelf.id,))
        while not done.wait(0.01):
            found = 0
            for model, dimensions in ((OLD, 256), (NEW, 512)):
                vector = np.full(dimensions, dimensions**-0.5, dtype=np.float32)
                query = SearchQuery(text="q", language="en", vector=vector, embedding_model=model, threshold=-1.0)
                found += len(vector_search(database, query, scope=scope, limit=5)) == 5
            if not found:
                wrong.append("nothing was found with either model")

    searching = threading.Thread(target=search)
    searching.start()
    provider_standin.delay_seconds = 0.2
    dice, kills = random.Random(3), 0
    while kills < 5:
        process = reembed("--model", NEW, "--yes")
        with process:
            assert process.stdout is not None
            while provider_standin.calls["embeddings"] <= kills and process.poll() is None:
                time.sleep(0.01)
            time.sleep(dice.uniform(0.0, 0.3))
            kill(process)
        kills += 1
    code, said = outcome(reembed("--model", NEW, "--yes"))
    done.set()
    searching.join()
    assert (code, models(database)) == (0, [(f"{NEW} 512", chunks)]), said
    assert wrong == []
    with database.transaction("demo") as connection:
        ledger = connection.execute(
            "SELECT count(*), sum(input_tokens) FROM cost_ledger WHERE model = 'text-embedding-3-large' "
            "AND NOT is_estimated"  # of calls that were under way when their process was killed
        ).fetchone()
        assert connection.execute("SELECT count(*) FROM paid_calls").fetchone() == (0,)
        batches = connection.execute(
            "SELECT sum(batches) FROM (SELECT count(DISTINCT chunk_index / 3) AS batches FROM document_chunks "
            "GROUP BY document_id) AS d"
        ).fetchone()
    assert batches is not None
    assert ledger == (batches[0], provider_standin.tokens["embeddings"])

"""Passages for which the embedding model has no vector: the others are stored, and these are named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rag.errors import ProviderAnswerInvalid
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.reembedding import Reembeddings
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.profiles import profile_of
from rag.providers.registry import Providers
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import ChunkingMethod, Collection, DocumentStatus, Identity, Question, UploadOptions
from tests import hostile
from tests.standins.providers import ProviderStandin

SMALL, LARGE = "openai/text-embedding-3-small@256", "openai/text-embedding-3-large@512"
PAGES = [f"Rule {number}. A stay in city {number} may cost {number}0 euros a night." for number in range(1, 8)]
PAGES[3] = "Zebrafish are kept by the laboratory in tank nine."


@pytest.fixture
def keyed(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    provider_standin.without_vector = lambda text: "Zebrafish" in text
    return replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)


@pytest.fixture
def providers(keyed: Settings) -> Iterator[Providers]:
    made = Providers(keyed)
    yield made
    made.close()


@pytest.fixture
def paid(
    database: Database, files: FileStore, keyed: Settings, sandbox: Sandbox, providers: Providers
) -> IngestionPipeline:
    return IngestionPipeline(database, files, providers, Ledger(database), keyed, sandbox=sandbox)


@pytest.fixture
def rules(library: DocumentLibrary) -> Collection:
    return library.ensure_collection("demo", "Rules", "hr", SMALL, "en")


def add(paid: IngestionPipeline, rules: Collection, pages: list[str], method: ChunkingMethod = "paged") -> str:
    result = paid.process_document(
        file=hostile.pdf_of([[page] for page in pages]),
        file_name="rules.pdf",
        tenant_id="demo",
        collection=rules,
        options=UploadOptions(chunking_method=method, generate_metadata=False),
    )
    return result.message


def vectors(database: Database) -> list[bool]:
    with database.transaction("demo") as connection:
        rows = connection.execute("SELECT embedding IS NOT NULL FROM document_chunks ORDER BY chunk_index").fetchall()
    return [there for (there,) in rows]


def billed(database: Database) -> int:
    with database.transaction("demo") as connection:
        found = connection.execute("SELECT count(*) FROM cost_ledger").fetchone()
    assert found is not None
    return int(found[0])


@pytest.mark.parametrize("instead", [(), ([float("nan")] * 256,), (None,), ([0.5] * 3,)])
def test_one_passage_without_a_vector_does_not_fail_the_others(
    instead: tuple[object, ...],
    database: Database,
    paid: IngestionPipeline,
    providers: Providers,
    rules: Collection,
    library: DocumentLibrary,
    admin: Identity,
    provider_standin: ProviderStandin,
) -> None:
    provider_standin.vector_instead = instead
    message = add(paid, rules, PAGES)
    assert message.startswith(
        "Page 4: 1 of 7 passages cannot be searched by meaning, because openai/text-embedding-3-small@256"
    )
    assert "Zebrafish are kept" in message
    assert "Choose another search model" in message
    assert vectors(database) == [True, True, True, False, True, True, True]
    (document,) = library.list(admin)
    assert (document.status, document.message) == (DocumentStatus.COMPLETED, message)
    assert billed(database) == len(provider_standin.usages)
    provider_standin.without_vector = lambda text: False
    retriever = Retriever(database, providers)
    for text, page in (("Where are zebrafish kept?", 4), ("What may a stay in city 6 cost?", 6)):
        question = Question(text=text, identity=admin, collection=rules)
        found = retriever.retrieve_context(question, profile=profile_of(rules))
        assert found.citations[0].first_page == page


def test_a_document_none_of_whose_passages_has_a_vector_fails(paid: IngestionPipeline, rules: Collection) -> None:
    with pytest.raises(ProviderAnswerInvalid, match="no usable result"):
        add(paid, rules, PAGES[3:4])


def test_a_cut_by_topic_goes_on_without_one_sentence(
    database: Database, paid: IngestionPipeline, rules: Collection
) -> None:
    message = add(paid, rules, [" ".join(PAGES)], "semantic")
    assert "by meaning" in message or all(vectors(database))


def test_a_passage_without_a_vector_moves_to_another_model_and_back(
    database: Database,
    paid: IngestionPipeline,
    providers: Providers,
    rules: Collection,
    admin: Identity,
    provider_standin: ProviderStandin,
) -> None:
    add(paid, rules, PAGES)
    moves = Reembeddings(database, providers)

    def move(model: str) -> None:
        made = moves.estimate(admin, rules.id, model)
        moves.confirm(admin, made.id)
        assert paid.reembedding.run("demo", made.id).status == "switched"

    provider_standin.without_vector = lambda text: False
    move(LARGE)
    assert all(vectors(database))
    calls = provider_standin.calls["embeddings"]
    move(SMALL)
    assert provider_standin.calls["embeddings"] == calls  # all vectors were kept, and that there is none
    assert vectors(database).count(False) == 1
    provider_standin.without_vector = lambda text: "city 2" in text
    moves.clean_up(admin, rules.id)
    move(LARGE)
    assert vectors(database) == [True, False, True, True, True, True, True]

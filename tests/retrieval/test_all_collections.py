"""One question asked in several collections: their own embedders, one order, one answer's passages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from rag.money.bill import Bill
from rag.profiles import HR, profile_of
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.providers.registry import Providers
from rag.retrieval.multi_query import NO_EMBEDDING
from rag.retrieval.retriever import Retriever
from rag.retrieval.searching import IN_COLLECTION, groups_of
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Charge, Collection, Identity, Operation, Question, Usage
from tests.retrieval.shelf import Shelf
from tests.standins.providers import ProviderStandin

OPENAI = "openai/text-embedding-3-small@1536"


class RecordingBill(Bill):
    """Keeps what was sent and what was paid."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Operation] = []
        self.paid: list[Operation] = []

    def send(self, operation: Operation, expected: Usage) -> None:
        self.sent.append(operation)
        super().send(operation, expected)

    def drop(self) -> None:
        self.sent.pop()
        super().drop()

    def record(self, paid: Charge, *, line: str = "") -> None:
        self.paid.append(paid.operation)
        super().record(paid, line=line)


@pytest.fixture
def library(database: Database, new_collection: Callable[..., Collection]) -> Callable[..., Shelf]:
    def made(name: str, passages: list[str], *, tenant: str = "demo") -> Shelf:
        shelf = Shelf(database, new_collection(tenant, name), LexicalEmbedder())
        shelf.add(name, passages)
        return shelf

    return made


def asked(text: str, asker: Identity, *shelves: Shelf) -> Question:
    first, *others = (shelf.collection for shelf in shelves)
    return Question(text=text, identity=asker, collection=first, others=tuple(others))


def test_collections_alike_take_one_search_and_each_citation_names_its_own(
    asker: Identity, database: Database, library: Callable[..., Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    shelves = [library(f"Place {number}", [f"Shelf {number} holds paper."]) for number in range(8)]
    parking = library("Parking", ["The company rents forty parking spaces. They are given out by seniority."])
    foreign = library("Foreign", ["Canary: parking spaces of another company."], tenant="other")
    question = asked("Who is given the parking spaces?", asker, *shelves, parking)
    assert [len(group) for group in groups_of(question.collection, question.others)] == [9]
    other = replace(parking.collection, id=uuid4(), overrides={"top_k": 3})
    assert [len(group) for group in groups_of(question.collection, (other, *question.others))] == [9, 1]

    found = Retriever(database, Providers(Settings())).retrieve_context(question, profile=HR)
    assert [(c.title, c.collection) for c in found.citations] == [("Parking", "Parking")]
    alone = Retriever(database, Providers(Settings())).retrieve_context(
        asked("Who is given the parking spaces?", asker, parking), profile=HR
    )
    assert [c.collection for c in alone.citations] == [""]
    # Whoever names another company's collection is given nothing of it.
    posing = replace(question, others=(*question.others, replace(foreign.collection, tenant_id="demo")))
    assert "Foreign" not in {
        c.title
        for c in Retriever(database, Providers(Settings()))
        .retrieve(posing, profile=HR.changed(only_evidence=False))
        .response.citations
    }


def test_posts_are_shown_as_posts_whichever_collection_is_asked_first(
    asker: Identity, database: Database, new_collection: Callable[..., Collection]
) -> None:
    """The first collection's profile answers; what a citation shows is a matter of its own collection."""
    embedder = LexicalEmbedder()
    board = Shelf(database, replace(new_collection("demo", "Board"), profile="notices"), embedder)
    facts = {"postId": "7", "categoryName": "Sites", "category": "rules", "createdAt": "2026-09-15T08:00:00Z"}
    board.add("Parking at the mill", ["The forty parking spaces are given out by seniority."], metadata=facts)
    rules = Shelf(database, new_collection("demo", "Rules"), embedder)
    rules.add("Parking rules", ["Parking spaces are given to whoever was here first, all forty."], metadata=facts)
    retriever = Retriever(database, Providers(Settings()))
    for first, second in ((rules, board), (board, rules)):
        question = asked("Who is given the forty parking spaces?", asker, first, second)
        found = retriever.retrieve_context(question, profile=profile_of(first.collection))
        shown = {c.collection: (c.category, c.written_on) for c in found.citations}
        assert shown == {"Board": ("Sites", "2026-09-15"), "Rules": ("", "")}
        names = [step.name for step in found.rag_details.steps or []]
        models = [name for name in names if name.startswith("embed")]
        assert names.count("search") == 2
        assert len(models) == len(set(models)), "each model is asked once for the question"


def test_the_passage_that_most_probably_answers_leads_whichever_collection_is_asked_first(
    asker: Identity, database: Database, library: Callable[..., Shelf]
) -> None:
    likely = library("Parking", ["The forty parking spaces are given out by seniority."])
    other = library("Bicycles", ["Bicycles stand behind the house, where there is space for forty."])
    own = Shelf(database, replace(other.collection, overrides={"top_k": 3}), LexicalEmbedder())
    retriever = Retriever(database, Providers(Settings()))
    for first, second in ((likely, own), (own, likely)):
        question = asked("Who is given the forty parking spaces?", asker, first, second)
        found = retriever.retrieve_context(question, profile=HR.changed(only_evidence=False))
        assert [c.collection for c in found.citations] == ["Parking", "Bicycles"]


def test_each_embedder_is_asked_once_and_one_that_fails_is_named_while_the_rest_answers(
    asker: Identity,
    database: Database,
    library: Callable[..., Shelf],
    new_collection: Callable[..., Collection],
    provider_standin: ProviderStandin,
) -> None:
    providers = Providers(Settings(openai_api_key="key", openai_base_url=provider_standin.openai_url))
    words = library("Words", ["The company rents forty parking spaces. They are given out by seniority."])
    paid = []
    for name, top_k in (("Paid", 8), ("Board", 5)):
        collection = new_collection("demo", name, embedding_model=OPENAI)
        shelf = Shelf(database, replace(collection, overrides={"top_k": top_k}), providers.embedder_for(OPENAI))
        shelf.add(name, ["Bicycles: forty parking spaces are behind the house, given to whoever comes first."])
        paid.append(shelf)
    retriever, bill = Retriever(database, providers), RecordingBill()
    question = asked("Who is given the forty parking spaces?", asker, words, *paid)

    provider_standin.reset()
    with bill.open():
        found = retriever.retrieve_context(question, profile=HR.changed(top_k=6))
    assert {"Words"} < {c.collection for c in found.citations}
    assert [c.number for c in found.citations] == list(range(1, len(found.citations) + 1))
    assert bill.paid.count("embedding") == bill.sent.count("embedding") == 1, "one call for both"
    assert [charge.operation for charge in found.charges] == bill.paid
    steps = [step.detail for step in found.rag_details.steps or [] if step.name == "collections"]
    assert [detail.partition(":")[0] for detail in steps] == ["Words", "Paid", "Board"]

    keyless = Retriever(database, Providers(Settings()))
    found = keyless.retrieve_context(question, profile=HR)
    assert "Words" in {c.collection for c in found.citations}
    assert any(notice.startswith(IN_COLLECTION.format(name="Paid", notice=NO_EMBEDDING)) for notice in found.notices)
    by_meaning = HR.changed(search_type="vector")
    assert keyless.retrieve_context(replace(question, others=(paid[0].collection,)), profile=by_meaning).citations
    providers.close()

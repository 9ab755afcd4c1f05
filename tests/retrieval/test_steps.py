"""Each step can be switched for a profile and for a call, says what it did, and is paid at the tenant's own prices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal

import pytest

from rag.errors import InvalidInput
from rag.money.bill import Bill
from rag.money.metered import MeteredEmbedder
from rag.profiles import HR, NOTICES
from rag.profiles.profile import Options
from rag.providers.registry import Providers
from rag.retrieval.calibration import calibrate, cloze, keep_calibration
from rag.retrieval.explain import explained
from rag.retrieval.query_understanding import NO_REPHRASING, split_question
from rag.retrieval.reranker import text_to_rerank
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.collections import find_collections
from rag.storage.database import Database
from rag.types import Collection, Identity, Question
from tests.retrieval.shelf import Shelf
from tests.standins.providers import ProviderStandin

from tests.retrieval.test_fusion import result  # isort: skip

HANDBOOK = [
    "Vacation. Every employee has 25 days of vacation a year.",
    "Parking. The company rents forty parking spaces.",
    "Glasses. New glasses are paid up to 120 euros.",
]


@pytest.fixture
def providers(provider_standin: ProviderStandin) -> Iterator[Providers]:
    made = Providers(
        Settings(
            openai_api_key="key",
            openai_base_url=provider_standin.openai_url,
            cohere_api_key="key",
            cohere_base_url=provider_standin.cohere_url,
        )
    )
    yield made
    made.close()


@pytest.fixture
def paid(
    database: Database,
    providers: Providers,
    new_collection: Callable[..., Collection],
    provider_standin: ProviderStandin,
) -> Shelf:
    model = "openai/text-embedding-3-small@1536"
    shelf = Shelf(database, new_collection("demo", "Paid", embedding_model=model), providers.embedder_for(model))
    shelf.add("Handbook", HANDBOOK)
    provider_standin.reset()
    return shelf


def asked(text: str, asker: Identity, shelf: Shelf) -> Question:
    return Question(text=text, identity=asker, collection=shelf.collection)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "How many days of vacation do I have, and what do you pay for new glasses?",
            ["How many days of vacation do I have", "what do you pay for new glasses?"],
        ),
        ("Wie viele Urlaubstage habe ich und wer bezahlt meine neue Brille?", 2),
        ("Hoeveel vakantiedagen heb ik en wie betaalt mijn nieuwe bril?", 2),
        ("Which days are free, and what does Acme Plus pay for hearing aids", 2),
        ("What is the policy on food and drink?", []),
        ("When and how do I get paid?", []),
        ("", []),
    ],
)
def test_a_question_is_split_where_two_are_asked(text: str, parts: list[str] | int) -> None:
    found = split_question(text)
    assert (len(found) if isinstance(parts, int) else found) == parts


def test_a_half_keeps_the_names_of_the_other() -> None:
    text = "Under the Acme Plus plan, what do I pay at a hospital, and what is covered under hospice care?"
    assert split_question(text)[1].endswith("Acme Plus")


def test_both_halves_of_a_question_find_their_passage(database: Database, shelf: Shelf, asker: Identity) -> None:
    shelf.add("Handbook", HANDBOOK)
    retriever = Retriever(database, Providers(Settings()))
    question = asked("How many vacation days do I have, and what is paid for new glasses?", asker, shelf)
    found = retriever.retrieve_context(question, profile=HR)
    assert {1, 3} <= {c.first_page for c in found.citations}
    assert len(found.rag_details.query.alternative_queries) == 2
    assert len(found.rag_details.search.queries) == 3
    off = retriever.retrieve_context(question, profile=HR, options=Options(split_questions=False))
    assert len(off.rag_details.search.queries) == 1


def test_spelling_is_corrected_unless_switched_off(database: Database, shelf: Shelf, asker: Identity) -> None:
    shelf.add("Handbook", HANDBOOK)
    retriever = Retriever(database, Providers(Settings()))
    question = asked("vacaton", asker, shelf)
    assert retriever.retrieve_context(question, profile=HR).rag_details.query.expanded == ["vacation"]
    off = retriever.retrieve_context(question, profile=HR.changed(correct_spelling=False))
    assert off.rag_details.query.expanded == []


def test_korean_spelling_is_corrected_though_parts_of_the_word_are_known(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("규정", ["육아휴직은 일 년까지 쓸 수 있다.", "출장비는 삼십 일 안에 청구한다."], language="ko")
    found = Retriever(database, Providers(Settings())).retrieve_context(asked("육아휴칙", asker, shelf), profile=HR)
    assert found.rag_details.query.expanded == ["육아휴직"]
    assert [c.first_page for c in found.citations] == [1]


def test_translation_and_reranking_can_be_switched_off_for_a_call(
    providers: Providers, database: Database, paid: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    found = Retriever(database, providers).retrieve_context(
        asked("Hoeveel vakantiedagen heb ik?", asker, paid),
        profile=HR,
        options=Options(translate_queries=False, reranking=False),
    )
    assert dict(provider_standin.calls) == {"embeddings": 1}
    assert [c.operation for c in found.charges] == ["embedding"]


def test_a_model_rephrases_only_when_wanted_and_it_is_charged_and_logged(
    providers: Providers, database: Database, paid: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply(
        json.dumps({"expansion": "holiday leave", "alternatives": ["days off a year", "annual leave"], "parts": []})
    )
    retriever, question = Retriever(database, providers), asked("How many vacation days?", asker, paid)
    assert provider_standin.calls["chat"] == 0
    found = retriever.retrieve_context(
        question, profile=HR, options=Options(expand_question=True, alternative_questions=2, decompose_question=True)
    )
    assert provider_standin.calls["chat"] == provider_standin.calls["embeddings"] == 1
    assert [c.operation for c in found.charges] == ["chat", "embedding", "reranking"]
    assert found.rag_details.costs.rewriting
    assert found.rag_details.costs.total == pytest.approx(float(found.cost))
    assert found.rag_details.query.expanded == ["How many vacation days? holiday leave"]
    assert found.rag_details.query.alternative_queries == ["days off a year", "annual leave"]
    assert len(found.rag_details.search.queries) == 3


@pytest.mark.parametrize("reply", ["no json", "[]", '{"expansion": 3, "alternatives": "x", "parts": [1]}'])
def test_an_unusable_rephrasing_is_paid_and_survived(
    reply: str,
    providers: Providers,
    database: Database,
    paid: Shelf,
    asker: Identity,
    provider_standin: ProviderStandin,
) -> None:
    provider_standin.reply(lambda messages: reply)
    found = Retriever(database, providers).retrieve_context(
        asked("How many vacation days?", asker, paid), profile=HR, options=Options(expand_question=True)
    )
    assert found.citations
    assert found.charges[0].operation == "chat"
    assert found.notices in ((), (NO_REPHRASING,))


def test_every_charge_is_at_the_tenants_own_prices(
    providers: Providers, database: Database, paid: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("How many vacation days do I have?")
    own = {
        "text-embedding-3-small": {"input_mtok": "1000000"},
        "gpt-4o-mini": {"input_mtok": "2000000", "output_mtok": "0"},
        "rerank-multilingual-v3.0": {"search_unit": "7"},
    }
    question = asked("Hoeveel vakantiedagen krijg ik eigenlijk?", asker, paid)
    with Bill(lambda: own).open():
        found = Retriever(database, providers).retrieve_context(question, profile=HR)
    assert {c.operation: c.unit_prices["source"] for c in found.charges} == {
        "translation": "tenant",
        "embedding": "tenant",
        "reranking": "tenant",
    }
    used = {c.operation: c for c in found.charges}
    assert used["embedding"].cost == used["embedding"].usage.input_tokens
    assert used["reranking"].cost == Decimal(7)
    assert found.rag_details.costs.translation == float(2 * used["translation"].usage.input_tokens)


def test_a_notice_is_reranked_with_its_title_and_text() -> None:
    passage = result(1, title="{content}", content="Text {title}", section="Leave")
    assert text_to_rerank(passage, NOTICES.ranking.rerank_format) == "{content}\n\nText {title}"
    assert text_to_rerank(passage, "") == "{content}\nLeave\nText {title}"


def test_the_path_is_explained_with_every_score(database: Database, shelf: Shelf, asker: Identity) -> None:
    shelf.add("Handbook", HANDBOOK)
    retrieval = Retriever(database, Providers(Settings())).retrieve(asked("vacaton days", asker, shelf), profile=HR)
    text = "\n".join(explained(retrieval, profile=HR, collection=shelf.collection))
    assert "searched as   vacation days" in text
    assert "[1]  Handbook, p. 1: Vacation." in text
    for step in ("embed", "search", "neighbours"):
        assert f"\n{step}" in text
    found = retrieval.hits[0]
    assert f"{found.similarity:.3f}" in text
    assert f"{found.keyword_score:.2f}" in text


def test_a_named_document_or_section_is_raised_and_said(database: Database, shelf: Shelf, asker: Identity) -> None:
    """Two plans that differ in their names only; and a section of one of them."""
    for plan in ("Standard", "Plus"):
        for section in ("Hearing", "Vision"):
            shelf.add(f"Northwind {plan} plan {section}", ["The plan covers most of the costs."], section=section)
    retriever = Retriever(database, Providers(Settings()))
    found = retriever.retrieve(asked("What does the Plus plan cover under vision?", asker, shelf), profile=HR)
    assert found.hits[0].title == "Northwind Plus plan Vision"
    (names,) = [step.detail for step in found.response.rag_details.steps or [] if step.name == "names"]
    assert "Northwind Plus plan Vision" in names.split("; ")
    assert "Vision" in names.split("; ")
    assert "Hearing" not in names.split("; ")
    assert any(line.startswith("names ") for line in explained(found, profile=HR, collection=shelf.collection))
    unnamed = retriever.retrieve(asked("most of the costs", asker, shelf), profile=HR)
    assert "names" not in [step.name for step in unnamed.response.rag_details.steps or []]


def test_a_threshold_is_measured_on_the_collections_own_text_and_kept(
    providers: Providers, database: Database, paid: Shelf
) -> None:
    topics = ["vacation", "parking", "glasses", "travel", "overtime", "training", "pension", "canteen", "bicycle"]
    paid.add(
        "Rules",
        [
            " ".join(
                f"The {topic} rule number {n} is about {topic} for {'everyone here' if n % 2 else topics[n]}."
                for n in range(8)
            )
            for topic in topics
        ],
    )
    bill = Bill()
    found = calibrate(database, paid.collection, MeteredEmbedder(paid.embedder, bill))
    assert found.passages == len(topics)
    assert 0 < found.threshold == found.related[0] <= found.related[1] <= 1
    assert found.unrelated[0] < found.related[1]
    assert 0 <= found.mistaken < 1
    assert (found.mistaken > 0.5) is (found.unrelated[0] > found.threshold)
    assert bill.usages
    assert keep_calibration(database, "demo", paid.collection.id, found)
    (kept,) = find_collections(database, "demo", collection_id=paid.collection.id)
    assert (kept.calibrated_threshold, kept.overrides) == (found.threshold, {})
    assert (kept.calibrated_model, kept.calibrated_passages) == (paid.embedder.id, len(topics))
    assert not keep_calibration(
        database, "demo", paid.collection.id, replace(found, embedding_model="openai/another@1536", threshold=0.9)
    )
    (still,) = find_collections(database, "demo", collection_id=paid.collection.id)
    assert still.calibrated_threshold == found.threshold


def test_a_kept_threshold_decides_and_0_7_of_the_document_does_not_empty_a_collection(
    providers: Providers, database: Database, paid: Shelf, asker: Identity
) -> None:
    """Words alone would refuse this question; the similarity, far below 0.7, speaks for the passage."""
    retriever = Retriever(database, providers)
    text = "Whenever somebody wants sunshine instead: vacation?"
    options = Options(reranking=False)

    def cited(threshold: float) -> int:
        collection = replace(paid.collection, calibrated_threshold=threshold)
        question = Question(text=text, identity=asker, collection=collection)
        return len(retriever.retrieve_context(question, profile=HR, options=options).citations)

    assert cited(0.7) == 0
    assert cited(0.1) > 0


def test_an_absolute_threshold_no_passage_reaches_gives_way_to_the_embedders_own(
    providers: Providers, database: Database, paid: Shelf, asker: Identity
) -> None:
    """0.7 set for a collection does not empty it because its model never gives 0.7; asked for in a call, it counts."""
    absolute = HR.with_overrides({"threshold_mode": "absolute", "reranking": False})
    assert absolute.search.similarity_threshold == 0.7
    collection = replace(paid.collection, calibrated_threshold=0.1)
    question = Question(
        text="Whenever somebody wants sunshine instead: vacation?", identity=asker, collection=collection
    )
    retriever = Retriever(database, providers)
    assert retriever.retrieve_context(question, profile=absolute).citations
    by_meaning = retriever.retrieve(question, profile=absolute.changed(search_type="vector"))
    assert by_meaning.response.citations
    (said,) = [step.detail for step in by_meaning.response.rag_details.steps or [] if step.name == "search farther"]
    assert said.endswith("none has a similarity of 0.7")
    strict = Options(similarity_threshold=0.7)
    assert not retriever.retrieve_context(question, profile=absolute, options=strict).citations
    assert not retriever.retrieve(question, profile=absolute.changed(search_type="vector"), options=strict).hits


def test_too_little_text_and_words_only_cannot_be_calibrated(
    providers: Providers, database: Database, paid: Shelf, shelf: Shelf
) -> None:
    with pytest.raises(InvalidInput, match="too little text"):
        calibrate(database, paid.collection, paid.embedder)
    with pytest.raises(InvalidInput, match="compares words"):
        calibrate(database, shelf.collection, shelf.embedder)


def test_a_passage_gives_up_its_middle_sentence() -> None:
    text = f"{'One. ' * 3}This sentence is long enough to stand for a question somebody asks. And so on."
    found = cloze(text)
    assert found is not None
    assert found[0].startswith("This sentence")
    assert "This sentence" not in found[1]
    assert cloze("Too short.") is None

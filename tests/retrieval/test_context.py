"""A question's whole way to its passages, with and without providers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from rag.errors import DatabaseUnavailable, QuestionEmpty
from rag.profiles import HR
from rag.providers.registry import Providers
from rag.retrieval.multi_query import NO_EMBEDDING
from rag.retrieval.query_understanding import NO_TRANSLATION
from rag.retrieval.reranker import NO_RERANKING
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question
from tests.retrieval.shelf import Shelf
from tests.standins.providers import ProviderStandin

HANDBOOK = [
    "Vacation. Every employee has 25 days of vacation a year. Days not taken expire on 31 March.",
    "Sickness. Call your manager before 9 a.m. A doctor's certificate is needed from the third day.",
    "Parking. The company rents forty parking spaces. They are given out by seniority.",
    "Working capital is reviewed every quarter. We do not sell personal data.",
    "Expenses. Travel expenses are repaid within ten days after the form was sent.",
]


@pytest.fixture
def offline(database: Database) -> Retriever:
    return Retriever(database, Providers(Settings()))


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
def paid_shelf(database: Database, providers: Providers, new_collection: Callable[..., Collection]) -> Shelf:
    """A shelf embedded by the stand-in."""
    model = "openai/text-embedding-3-small@1536"
    shelf = Shelf(database, new_collection("demo", "Paid", embedding_model=model), providers.embedder_for(model))
    shelf.add("Handbook", HANDBOOK)
    return shelf


@pytest.fixture
def online(database: Database, providers: Providers, paid_shelf: Shelf, provider_standin: ProviderStandin) -> Retriever:
    provider_standin.reset()
    return Retriever(database, providers)


def question(text: str, asker: Identity, collection: Collection) -> Question:
    return Question(text=text, identity=asker, collection=collection)


def test_an_empty_question_is_refused(offline: Retriever, asker: Identity, collection: Collection) -> None:
    with pytest.raises(QuestionEmpty):
        offline.retrieve_context(question(" \n ", asker, collection), profile=HR)


def test_an_empty_collection_has_neither_answer_nor_nearest(
    offline: Retriever, asker: Identity, collection: Collection
) -> None:
    found = offline.retrieve_context(question("How many vacation days?", asker, collection), profile=HR)
    assert (found.citations, found.nearest, found.context_text, found.charges) == ((), (), "", ())


def test_a_question_finds_its_passage_numbered_and_placed(
    offline: Retriever, shelf: Shelf, asker: Identity, collection: Collection
) -> None:
    shelf.add("Handbook", HANDBOOK, section="Rules › Leave")
    steps: list[tuple[str, str]] = []
    found = offline.retrieve_context(
        question("How many vacation days do employees have?", asker, collection),
        profile=HR,
        on_step=lambda name, detail: steps.append((name, detail)),
    )
    first = found.citations[0]
    assert (first.number, first.title, first.first_page, first.passage) == (1, "Handbook", 1, HANDBOOK[0])
    assert {"vacation", "days"} <= set(first.matched_terms)
    assert found.context_text.startswith(f"[1] Handbook, p. 1, Rules › Leave\n{HANDBOOK[0]}")
    assert [c.number for c in found.citations] == list(range(1, len(found.citations) + 1))
    assert steps == [("searching", ""), ("found", "5")]
    assert found.nearest == ()
    assert found.notices == ()


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of France?",
        "Do you sell pizza?",
        "Who won the world cup?",
        "Tell me a joke",
        "프랑스의 수도는?",
    ],
)
def test_what_is_not_in_the_documents_is_not_cited_but_the_nearest_are_shown(
    text: str, offline: Retriever, shelf: Shelf, asker: Identity, collection: Collection
) -> None:
    shelf.add("Handbook", HANDBOOK)
    found = offline.retrieve_context(question(text, asker, collection), profile=HR)
    assert found.citations == ()
    assert found.context_text == ""
    assert 1 <= len(found.nearest) <= 3


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("how many vacaton days", 1),
        ("do I need a docters certificate", 2),
        ("parking", 3),
        ("When are my travel expenses repaid?", 5),
    ],
)
def test_real_questions_pass_with_typos_and_few_words(
    text: str, page: int, offline: Retriever, shelf: Shelf, asker: Identity, collection: Collection
) -> None:
    shelf.add("Handbook", HANDBOOK)
    found = offline.retrieve_context(question(text, asker, collection), profile=HR)
    assert found.citations[0].first_page == page


def test_a_corrected_question_is_logged_as_expanded(
    offline: Retriever, shelf: Shelf, asker: Identity, collection: Collection
) -> None:
    shelf.add("Handbook", HANDBOOK)
    found = offline.retrieve_context(question("vacaton days", asker, collection), profile=HR)
    assert found.rag_details.query.expanded == ["vacation days"]


def test_the_context_stays_within_its_tokens(
    offline: Retriever, shelf: Shelf, asker: Identity, collection: Collection
) -> None:
    shelf.add("Handbook", [f"{passage} {'Vacation days. ' * 40}" for passage in HANDBOOK])
    asked = question("vacation days", asker, collection)
    tiny = HR.model_copy(update={"answer": HR.answer.model_copy(update={"context_tokens": 60})})
    small = offline.retrieve_context(asked, profile=tiny)
    assert len(small.citations) == 1
    assert len(small.context_text) < 450
    assert small.citations[0].passage in small.context_text
    large = offline.retrieve_context(asked, profile=HR)
    assert len(large.citations) == 5


def test_one_result_per_document_is_kept_where_the_profile_says_so(
    offline: Retriever, shelf: Shelf, asker: Identity, collection: Collection
) -> None:
    for number in range(3):
        shelf.add(f"Handbook {number}", ["Vacation days.", "More on vacation days."])
    found = offline.retrieve_context(
        question("vacation days", asker, collection), profile=HR.changed(one_result_per_document=True)
    )
    assert len({c.document_id for c in found.citations}) == len(found.citations) == 3


def test_a_question_may_name_the_documents_to_look_in(
    offline: Retriever, shelf: Shelf, asker: Identity, collection: Collection
) -> None:
    shelf.add("Old handbook", HANDBOOK)
    new = shelf.add("New handbook", HANDBOOK)
    asked = Question(text="vacation days", identity=asker, collection=collection, document_ids=(new,))
    assert {c.document_id for c in offline.retrieve_context(asked, profile=HR).citations} == {new}


def test_everything_done_is_in_the_details(
    online: Retriever, paid_shelf: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("How many vacation days does an employee have?")
    steps: list[str] = []
    found = online.retrieve_context(
        question("Hoeveel vakantiedagen heeft een medewerker eigenlijk?", asker, paid_shelf.collection),
        profile=HR,
        on_step=lambda name, detail: steps.append(name),
    )
    details = found.rag_details
    assert steps == ["translating", "searching", "found", "reranking"]
    assert found.citations[0].first_page == 1
    assert (details.query.translated_from, details.query.translated_query) == (
        "nl",
        "How many vacation days does an employee have?",
    )
    assert details.search.type == "hybrid"
    assert (details.search.vector_top_k, details.search.final_top_k) == (20, 5)
    assert details.search.queries[0].result_count == len(details.search.raw_results) == 5
    assert all(len(r.preview) <= 200 and -1 <= r.similarity <= 1 for r in details.search.raw_results)
    assert "vacation" in details.search.matched_terms
    assert details.reranking.enabled
    # One entry for each wording: the translation with what embedding took, and the original, searched for by itself.
    assert [(q.query, q.embedding_ms > 0, q.search_ms > 0) for q in details.search.queries] == [
        ("How many vacation days does an employee have?", True, True),
        ("Hoeveel vakantiedagen heeft een medewerker eigenlijk?", False, True),
    ]
    # All were read by the reranker; what it left is what the answer is made from.
    assert (details.reranking.input_documents, details.reranking.output_documents) == (5, len(found.citations))
    assert len(found.citations) < 5
    assert [r.new_rank for r in details.reranking.results] == [1, 2, 3, 4, 5]
    assert {r.original_rank for r in details.reranking.results} == {1, 2, 3, 4, 5}
    timing = details.timing
    parts = timing.translation_ms + timing.embedding_ms + timing.search_ms + timing.reranking_ms
    assert 0 < parts <= timing.total_ms
    assert [c.operation for c in found.charges] == ["translation", "embedding", "reranking"]
    assert found.token_usage.input == sum(u.get("input_tokens", 0) for u in provider_standin.usages)
    assert details.costs.total == pytest.approx(float(found.cost))
    assert details.costs.total == pytest.approx(
        details.costs.translation + details.costs.embedding + details.costs.reranking
    )


def test_a_translation_cut_at_its_length_is_not_searched_for(
    online: Retriever, paid_shelf: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("How many", finish_reason="length")
    text = "Hoeveel vacation days krijgt een employee?"
    found = online.retrieve_context(question(text, asker, paid_shelf.collection), profile=HR)
    assert found.notices == (NO_TRANSLATION,)
    assert found.rag_details.query.translated_from is None
    assert [q.query for q in found.rag_details.search.queries] == [text]
    assert "translation" in [c.operation for c in found.charges]  # it was paid all the same


@pytest.mark.parametrize(
    ("written", "is_used"),
    [
        ("What is the capital of France?", True),  # a wrong translation
        ("犬を会社に連れて行ってもいいですか。", False),  # of another language than the documents'
    ],
)
def test_a_wrong_translation_hides_nothing_that_the_question_itself_finds(
    written: str,
    is_used: bool,
    online: Retriever,
    paid_shelf: Shelf,
    asker: Identity,
    provider_standin: ProviderStandin,
) -> None:
    dogs = "Hunde dürfen mit Zustimmung der Kollegen ins Büro mitgebracht werden."
    paid_shelf.add("Hausordnung", [dogs, "Der Parkplatz liegt hinter dem Haus."], language="de")
    paid_shelf.add("Offices", [f"Our office in France, the capital, is number {number}." for number in range(30)])
    provider_standin.reset()
    provider_standin.reply(written)
    found = online.retrieve_context(
        # Not the same words twice: translations are remembered.
        question(f"Dürfen Hunde ins Büro mitgebracht werden{'?' * (1 + is_used)}", asker, paid_shelf.collection),
        profile=HR.changed(reranking=False),
    )
    assert found.citations[0].passage == dogs
    assert (found.rag_details.query.translated_from == "de") is is_used
    assert found.notices == (() if is_used else (NO_TRANSLATION,))


def test_a_passage_in_the_questions_language_is_measured_by_what_was_asked(
    online: Retriever, paid_shelf: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    paid_shelf.add(
        "Parken", ["Der Parkplatz der firma liegt hinter dem Haus: parking garage level two."], language="de"
    )
    provider_standin.reset()
    provider_standin.reply("Where is the parking garage level two?")
    found = online.retrieve(
        question("Wie hoch ist mein Urlaubsgeld im Dezember?", asker, paid_shelf.collection),
        profile=HR.changed(reranking=False),
    )
    german = next(item for item in found.scored if item.language == "de")
    assert german.coverage.share == 0


def test_nothing_is_translated_into_a_language_that_no_document_has(
    online: Retriever, paid_shelf: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    wrong = replace(paid_shelf.collection, language="ja")
    found = online.retrieve_context(question("Wie viele Urlaubstage habe ich?", asker, wrong), profile=HR)
    assert found.rag_details.query.translated_from is None
    assert provider_standin.calls["chat"] == 0


def test_a_search_done_again_has_one_entry_for_each_wording(
    online: Retriever, paid_shelf: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    asked = question("How many vacation days are there in 1999?", asker, paid_shelf.collection)
    found = online.retrieve_context(asked, profile=HR.changed(filter_by_year=True))
    assert "search everywhere" in [step.name for step in found.rag_details.steps or []]
    assert [q.result_count for q in found.rag_details.search.queries] == [len(found.rag_details.search.raw_results)]


def test_a_dead_translator_leaves_the_original(
    online: Retriever, paid_shelf: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    provider_standin.fail_next(400, times=9, endpoint="chat")
    found = online.retrieve_context(
        question("Hoeveel vacation days heeft een employee?", asker, paid_shelf.collection), profile=HR
    )
    assert found.notices == (NO_TRANSLATION,)
    assert found.rag_details.query.translated_from is None
    assert found.citations


def test_a_dead_embedder_leaves_keywords(
    online: Retriever, paid_shelf: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    provider_standin.fail_next(400, times=9, endpoint="embeddings")
    found = online.retrieve_context(question("vacation days", asker, paid_shelf.collection), profile=HR)
    assert found.notices == (NO_EMBEDDING,)
    assert found.citations[0].first_page == 1
    assert found.rag_details.search.vector_top_k == 0
    assert "embedding" not in [c.operation for c in found.charges]


def test_a_dead_reranker_leaves_the_found_order(
    online: Retriever, paid_shelf: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    provider_standin.fail_next(400, times=9, endpoint="rerank")
    found = online.retrieve_context(question("vacation days", asker, paid_shelf.collection), profile=HR)
    assert found.notices == (NO_RERANKING,)
    assert found.citations[0].first_page == 1
    assert found.rag_details.reranking.results == []


def test_a_missing_key_is_said_and_keywords_are_searched(
    database: Database, paid_shelf: Shelf, asker: Identity
) -> None:
    keyless = Retriever(database, Providers(Settings()))
    found = keyless.retrieve_context(question("vacation days", asker, paid_shelf.collection), profile=HR)
    assert "Paste the key on the page Set-up" in found.notices[0]
    assert found.citations[0].first_page == 1


def test_without_a_database_there_is_no_answer(
    offline: Retriever, database: Database, asker: Identity, collection: Collection
) -> None:
    unreachable = Database("host=/nowhere dbname=none")
    with pytest.raises(DatabaseUnavailable):
        Retriever(unreachable, Providers(Settings())).retrieve_context(
            question("vacation", asker, collection), profile=HR
        )


def test_a_passage_in_the_questions_own_language_is_reranked_by_its_own_wording(
    online: Retriever, paid_shelf: Shelf, asker: Identity, provider_standin: ProviderStandin
) -> None:
    leave = "연차 휴가는 1년 근무하면 15일 생깁니다."
    paid_shelf.add("휴가 규정", [leave, "주차장은 본관 뒤에 있습니다."], language="ko")
    provider_standin.reset()
    provider_standin.reply("How much annual leave arises after working one year?")
    found = online.retrieve_context(
        replace(question("연차 휴가는 1년 근무하면 며칠 생깁니까?", asker, paid_shelf.collection), language="ko"),
        profile=HR,
    )
    assert found.rag_details.query.translated_from == "ko"
    assert found.citations[0].passage == leave
    assert (found.results[0].rerank_score or 0) > 0.3
    # One call for each wording, each paid.
    assert provider_standin.calls["rerank"] == 2
    assert [c.operation for c in found.charges] == ["translation", "embedding", "reranking", "reranking"]
    ranks = [r.new_rank for r in found.rag_details.reranking.results]
    assert ranks == list(range(1, found.rag_details.reranking.input_documents + 1))
    scores = [r.score for r in found.rag_details.reranking.results]
    assert scores == sorted(scores, reverse=True)

